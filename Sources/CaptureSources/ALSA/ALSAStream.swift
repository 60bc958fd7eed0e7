package import ALSA
public import CaptureCore
import Glibc
import LinuxIO

/// The running capture of an ALSA PCM.
public final class ALSAStream: SoundStream {
    public let format: SoundFormat
    public let timestampSource: SoundTimestampSource
    public let descriptor: Int32
    public private(set) var overruns: UInt64 = 0
    public private(set) var lostFrames: UInt64 = 0

    private let pcm: CapturePCM
    /// The number of the frame after the last one that was read, and when it is to have been taken; nil: none was read.
    private var next: (frame: UInt64, time: Int64?) = (0, nil)
    /// Sound has been lost since the last period.
    private var isInterrupted = false

    /// - Parameters:
    ///   - pcm: runs in that format.
    ///   - hasTimes: it tells times on CLOCK_MONOTONIC.
    package init(_ pcm: CapturePCM, _ format: SoundFormat, hasTimes: Bool) {
        self.pcm = pcm
        self.format = format
        timestampSource = hasTimes ? .status : .read
        descriptor = pcm.descriptor
    }

    public func read(into memory: UnsafeMutableRawBufferPointer) throws(SourceError) -> SoundPeriod? {
        guard let target = memory.baseAddress, memory.count >= format.periodBytes else {
            throw SourceError(
                .failed, operation: "snd_pcm_readi", errno: EINVAL,
                message: "\(pcm.name): its buffer is smaller than a period")
        }
        do throws(ALSAError) {
            let status = try pcm.status()
            switch status.state {
            case .overrun, .suspended:
                try restart(from: status.state)
                return nil
            case .disconnected, .idle:
                throw ALSAError(operation: "snd_pcm_status", device: pcm.name, code: ENODEV)
            case .prepared, .running: break
            }
            guard status.available >= format.periodFrames else { return nil }
            let count: Int
            do throws(ALSAError) {
                count = try pcm.read(into: target, frames: format.periodFrames)
            } catch {
                switch error.code {
                case EAGAIN, EINTR: return nil
                // It has come since the status was asked for.
                case EPIPE: try restart(from: .overrun)
                case ESTRPIPE: try restart(from: .suspended)
                default: throw error
                }
                return nil
            }
            return period(count, status)
        } catch { throw SourceError(error, .capturing) }
    }

    private func restart(from state: CapturePCM.State) throws(ALSAError) {
        overruns += 1
        isInterrupted = true
        try pcm.restart(from: state)
    }

    private func period(_ frames: Int, _ status: CapturePCM.Status) -> SoundPeriod {
        // The status said how much there was at a time; the first frame of it is as much older.
        let told = timestampSource == .status && status.time > 0 ? status.time : MonotonicClock.now()
        let time = told - format.nanoseconds(frames: Int64(status.available))
        if isInterrupted, let expected = next.time {
            let lost = UInt64(max(0, format.frames(nanoseconds: time - expected)))
            lostFrames += lost
            next.frame += lost
        }
        let period = SoundPeriod(
            firstFrame: next.frame, frames: frames, monotonicTime: time, isDiscontinuous: isInterrupted)
        isInterrupted = false
        next = (next.frame + UInt64(frames), time + format.nanoseconds(frames: Int64(frames)))
        return period
    }
}
