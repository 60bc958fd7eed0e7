import CaptureCore
import FFmpeg
import Glibc
import LinuxIO

/// Plays a material into a queue in its own time: a thread that reads, and decodes, one frame ahead, waits for its
/// time, writes it into the next queued slot and wakes the loop.
///
/// A machine that can't decode as fast as the material runs plays it slower. Frames are lost, and counted, only where
/// there is no slot.
final class ReplayPlayer {
    private let stop: EventDescriptor
    private let thread: NamedThread

    /// Nanoseconds that a frame may be late before the times of those that follow are put off.
    private static let patience: Int64 = 1_000_000_000
    /// Nanoseconds between two frames: no film pauses longer, so a larger step of its clock is damage.
    private static let longestGap: Int64 = 86_400_000_000_000

    /// - Parameters:
    ///   - maxGap: nanoseconds that pass between two frames at most, but no less than the duration; nil: as long as the
    ///     material's clock says.
    ///   - picture: what is stated about the frames.
    ///   - reader: the first pass.
    ///   - again: begins another pass; nil: there is one only.
    ///   - onEnd: told on the player's thread that the last frame's time is over, before the queue fails with it.
    ///   - onChange: told likewise that something else is stated about the frames that come next; nil: that changes
    ///     nothing in what the queue gets.
    init(
        _ queue: VirtualQueue, _ layout: FrameLayout, _ duration: FrameDuration, maxGap: Int64?,
        _ picture: PictureDescription, reader: any ReplayReader, again: (() throws(SourceError) -> any ReplayReader)?,
        onEnd: @escaping () -> SourceError,
        onChange: @escaping (any ReplayReader, PictureDescription) -> SourceError?
    ) throws(SourceError) {
        do throws(SystemError) {
            let stop = try EventDescriptor()
            let run = Run(
                queue: queue, layout: layout, nominal: max(1_000_000, duration.nanoseconds), maxGap: maxGap, stop: stop,
                timer: try TimerDescriptor(), picture: picture, reader: reader, again: again, onEnd: onEnd,
                onChange: onChange)
            thread = try NamedThread(name: "replay") { run.play() }
            self.stop = stop
        } catch {
            throw SourceError(
                .noResources, operation: "VIDIOC_STREAMON", errno: error.code, message: error.description)
        }
    }

    /// Ends the thread and waits for it. To be called once.
    func end() {
        stop.signal()
        thread.join()
    }

    /// What the thread works with, and nobody else from then on.
    private final class Run: @unchecked Sendable {
        private let queue: VirtualQueue
        private let layout: FrameLayout
        private let nominal: Int64
        private let maxGap: Int64
        private let stop: EventDescriptor
        private let timer: TimerDescriptor
        /// What is stated about the frame before.
        private var picture: PictureDescription
        private var reader: any ReplayReader
        private let again: (() throws(SourceError) -> any ReplayReader)?
        private let onEnd: () -> SourceError
        private let onChange: (any ReplayReader, PictureDescription) -> SourceError?

        /// The first frame of the pass is due then.
        private var passStart: Int64 = 0
        /// Of the frame before in the pass, from its start; nil: there was none.
        private var lastTime: Int64?
        private var lastStamp: Int64?
        private var sequence: UInt64 = 0

        init(
            queue: VirtualQueue, layout: FrameLayout, nominal: Int64, maxGap: Int64?, stop: EventDescriptor,
            timer: TimerDescriptor, picture: PictureDescription, reader: any ReplayReader,
            again: (() throws(SourceError) -> any ReplayReader)?, onEnd: @escaping () -> SourceError,
            onChange: @escaping (any ReplayReader, PictureDescription) -> SourceError?
        ) {
            self.queue = queue
            self.layout = layout
            self.nominal = nominal
            self.maxGap = max(nominal, maxGap ?? .max)
            self.stop = stop
            self.timer = timer
            self.picture = picture
            self.reader = reader
            self.again = again
            self.onEnd = onEnd
            self.onChange = onChange
        }

        func play() {
            // As a camera's, the first frame's time comes one duration after the start.
            passStart = MonotonicClock.now() + nominal
            do throws(SourceError) {
                while true {
                    while let frame = try reader.next() {
                        let time = passStart + place(frame)
                        guard wait(until: time) else { return }
                        if let other = frame.picture, other != picture {
                            // The slots, or what is said of them, are for others.
                            if let change = onChange(reader, other) { throw change }
                            picture = other
                        }
                        capture(frame, time)
                    }
                    guard let lastTime else {
                        throw SourceError(.disconnected, operation: "replay", message: "it has no complete frame")
                    }
                    let end = passStart + lastTime + nominal
                    guard let again else {
                        guard wait(until: end) else { return }
                        throw onEnd()
                    }
                    reader = try again()
                    (passStart, self.lastTime, lastStamp) = (end, nil, nil)
                }
            } catch {
                queue.fail(error)
            }
        }

        /// When the frame is due, from the start of its pass. Clocks that stand, jump or run backwards are put right.
        private func place(_ frame: ReplayFrame) -> Int64 {
            var time: Int64 = 0
            if let lastTime {
                var step = nominal
                if let stamp = frame.time, let lastStamp {
                    let (difference, isTooLarge) = stamp.subtractingReportingOverflow(lastStamp)
                    if !isTooLarge, (1...ReplayPlayer.longestGap).contains(difference) {
                        step = min(difference, maxGap)
                    }
                }
                time = lastTime + step
            }
            lastTime = time
            lastStamp = frame.time
            return time
        }

        /// False when the stream is to end.
        private func wait(until time: Int64) -> Bool {
            let late = MonotonicClock.now() - time
            if late > ReplayPlayer.patience { passStart += late }
            timer.arm(at: time)
            while true {
                var waits = [2 of pollfd](repeating: pollfd(fd: stop.rawValue, events: Int16(POLLIN), revents: 0))
                waits[1].fd = timer.rawValue
                let result = withUnsafeMutablePointer(to: &waits) {
                    poll(UnsafeMutableRawPointer($0).assumingMemoryBound(to: pollfd.self), 2, -1)
                }
                if result < 0 { continue }
                if waits[0].revents != 0 { return false }
                if timer.drain() > 0 { return true }
            }
        }

        private func capture(_ frame: ReplayFrame, _ time: Int64) {
            defer { sequence += 1 }
            guard let slot = queue.take() else { return }
            slot.captureSequence = sequence
            slot.monotonicTime = time
            slot.presentationDelay = frame.presentationDelay
            slot.bytesUsed[0] = 0
            slot.isCorrupt = !reader.write(to: slot, layout) || frame.isDamaged
            queue.fill(slot)
        }
    }
}
