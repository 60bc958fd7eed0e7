import CameraBusTesting
import CaptureCore
import CaptureSources
import Glibc
import LinuxIO
import Testing

/// A virtual microphone, opened, with a format that it takes as it is.
func openMicrophone(
    _ sampleFormat: SampleFormat = .f32, rate: Int = 48000, channels: Int = 1, period: Int = 2400
) throws -> VirtualMicrophone {
    let microphone = VirtualMicrophone(index: 0)
    _ = try microphone.open()
    let wanted = SoundFormat(sampleFormat: sampleFormat, rate: rate, channels: channels, periodFrames: period)
    #expect(try microphone.setFormat(wanted) == wanted)
    return microphone
}

/// A period with its samples, channel by channel, from -1 to 1.
struct HeardPeriod {
    var period: SoundPeriod
    var channels: [[Double]]
}

/// Reads a stream; a period that doesn't come in time is an error.
final class SoundReader {
    let stream: any SoundStream
    private let memory: UnsafeMutableRawBufferPointer

    init(_ stream: any SoundStream) {
        self.stream = stream
        memory = .allocate(byteCount: stream.format.periodBytes, alignment: 16)
    }

    deinit { memory.deallocate() }

    func next() throws -> HeardPeriod {
        let deadline = Deadline.usual
        while true {
            if let period = try stream.read(into: memory) { return heard(period) }
            var wait = pollfd(fd: stream.descriptor, events: Int16(POLLIN), revents: 0)
            let isInTime = !deadline.hasPassed && poll(&wait, 1, Int32(clamping: deadline.millisecondsLeft)) >= 0
            try #require(isInTime, "no sound has come")
        }
    }

    /// The first period that has no tick in it, and begins at that time at the earliest.
    func nextWithoutTick(from time: Int64 = 0) throws -> HeardPeriod {
        while true {
            let heard = try next()
            let begin = heard.period.monotonicTime
            let end = begin + stream.format.nanoseconds(frames: Int64(heard.period.frames))
            if begin >= time, begin % 1_000_000_000 > 20_000_000, end / 1_000_000_000 == begin / 1_000_000_000 {
                return heard
            }
        }
    }

    private func heard(_ period: SoundPeriod) -> HeardPeriod {
        let format = stream.format
        let channels = (0..<format.channels).map { channel in
            (0..<period.frames).map { frame in
                let offset = (frame * format.channels + channel) * format.sampleFormat.bytes
                return format.sampleFormat == .s16
                    ? Double(memory.loadUnaligned(fromByteOffset: offset, as: Int16.self)) / 32767
                    : Double(memory.loadUnaligned(fromByteOffset: offset, as: Float.self))
            }
        }
        return HeardPeriod(period: period, channels: channels)
    }
}

/// How much of a frequency there is: the amplitude of its sine in the samples.
func amplitude(of frequency: Double, in samples: some Collection<Double>, rate: Int) -> Double {
    var (real, imaginary) = (0.0, 0.0)
    for (index, sample) in samples.enumerated() {
        let angle = 2 * .pi * frequency * Double(index) / Double(rate)
        real += sample * cos(angle)
        imaginary += sample * sin(angle)
    }
    return 2 * sqrt(real * real + imaginary * imaginary) / Double(max(1, samples.count))
}
