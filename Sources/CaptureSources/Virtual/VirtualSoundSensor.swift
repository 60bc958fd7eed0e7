import CaptureCore
import Glibc
import LinuxIO
import Synchronization

/// What the device thread tells a running sensor of sound.
final class VirtualSoundState: Sendable {
    struct Value {
        var hearing = VirtualHearing()
        /// Nothing is heard before that monotonic time; `Int64.max`: nothing at all.
        var stalledUntil: Int64 = 0
        var pace = VirtualPace()
    }

    private let value: Mutex<Value>

    init() { value = Mutex(Value()) }

    var current: Value { value.withLock { $0 } }

    func update(_ change: (inout Value) -> Void) {
        value.withLock { change(&$0) }
    }
}

/// The part of a virtual microphone that hears: a thread that wakes when a period's last frame is over, writes the
/// period, and wakes the loop. Times follow from the start and the frame's number, so that they never drift unless they
/// are told to.
final class VirtualSoundSensor {
    private let stop: EventDescriptor
    private let thread: NamedThread

    init(_ queue: VirtualSoundQueue, index: Int, state: VirtualSoundState) throws(SourceError) {
        do {
            let stop = try EventDescriptor()
            let run = Run(queue: queue, state: state, stop: stop, timer: try TimerDescriptor())
            thread = try NamedThread(name: "microphone-\(index)") { run.loop() }
            self.stop = stop
        } catch {
            throw SourceError(
                .noResources, operation: "snd_pcm_start", errno: error.code, message: error.description)
        }
    }

    /// Ends the thread and waits for it. To be called once.
    func end() {
        stop.signal()
        thread.join()
    }

    /// What the thread works with, and nobody else from then on.
    private final class Run: @unchecked Sendable {
        let queue: VirtualSoundQueue
        let state: VirtualSoundState
        let stop: EventDescriptor
        let timer: TimerDescriptor
        /// The time of a frame.
        let duration: FrameDuration
        /// Frames of a period.
        let period: Int64

        init(queue: VirtualSoundQueue, state: VirtualSoundState, stop: EventDescriptor, timer: TimerDescriptor) {
            self.queue = queue
            self.state = state
            self.stop = stop
            self.timer = timer
            duration = FrameDuration(framesPerSecond: queue.format.rate)
            period = Int64(max(1, queue.format.periodFrames))
        }

        // Where the present pace began: a frame's number, and its time.
        private var origin: (frame: Int64, time: Int64) = (0, 0)
        private var pace = VirtualPace()

        func loop() {
            origin.time = MonotonicClock.now()
            pace = state.current.pace
            // The first frame of the next period.
            var frame: Int64 = 0
            while true {
                timer.arm(at: time(frame + period))
                var waits = [2 of pollfd](repeating: pollfd(fd: stop.rawValue, events: Int16(POLLIN), revents: 0))
                waits[1].fd = timer.rawValue
                let result = withUnsafeMutablePointer(to: &waits) {
                    poll(UnsafeMutableRawPointer($0).assumingMemoryBound(to: pollfd.self), 2, -1)
                }
                if result < 0 { continue }
                if waits[0].revents != 0 { return }
                guard timer.drain() > 0 else { continue }
                // Periods whose time came while this thread had no processor are not lost, as long as there is room for
                // them.
                let heard = origin.frame + pace.frames(in: MonotonicClock.now() - origin.time, duration)
                var due = max(1, (heard - frame) / period)
                if due > Int64(queue.capacity) {
                    frame += (due - Int64(queue.capacity)) * period
                    due = Int64(queue.capacity)
                }
                for _ in 0..<due {
                    capture(frame)
                    frame += period
                }
                changePace(at: frame)
            }
        }

        private func time(_ frame: Int64) -> Int64 {
            origin.time + pace.time(of: frame - origin.frame, duration)
        }

        private func changePace(at frame: Int64) {
            let present = state.current.pace
            guard present != pace else { return }
            origin = (frame, time(frame))
            pace = present
        }

        private func capture(_ frame: Int64) {
            let state = state.current
            let (begin, end) = (time(frame), time(frame + period))
            guard state.stalledUntil <= begin, let room = queue.room() else { return }
            VirtualSound.write(
                frames: Int(period), of: queue.format, at: begin,
                step: Double(end - begin) / Double(period) / 1_000_000_000, state.hearing, into: room)
            queue.written(firstFrame: UInt64(frame), time: begin)
        }
    }
}
