import CaptureCore
import Glibc
import LinuxIO
import Synchronization

/// What the device thread tells a running sensor.
final class VirtualSensorState: Sendable {
    struct Value {
        var look: VirtualLook
        /// What the controls alone make of the picture, and how the light comes to it.
        var still: VirtualLook
        var optics = VirtualOptics()
        /// Whom to tell what lens, exposure and white balance have come to.
        var told: VirtualEventQueue?
        /// No frames before that monotonic time; `Int64.max`: none at all.
        var stalledUntil: Int64 = 0
        /// How often a key frame was asked for.
        var keyframeRequests: UInt64 = 0
        var pace = VirtualPace()
        /// The next so many frames are to come damaged.
        var corruptLeft = 0
    }

    private let value: Mutex<Value>

    init(_ look: VirtualLook) { value = Mutex(Value(look: look, still: look)) }

    var current: Value { value.withLock { $0 } }

    func update(_ change: (inout Value) -> Void) {
        value.withLock { change(&$0) }
    }

    /// Whether the frame that has just been taken is to be damaged.
    func takeCorruption() -> Bool {
        value.withLock { value in
            guard value.corruptLeft > 0 else { return false }
            value.corruptLeft -= 1
            return true
        }
    }

    /// What the next frame is to show: lens, exposure and white balance go a frame's time further.
    func next() -> Value {
        value.withLock { value in
            guard value.optics.isSettling else { return value }
            let before = value.optics
            value.optics.advance()
            value.look = value.still.seen(through: value.optics)
            let shown = value
            if value.optics.isFlashing {
                value.optics.endFlash()
                value.look = value.still.seen(through: value.optics)
            }
            if before.hasEnded(in: value.optics) {
                value.tell(since: before)
            } else if let offset = value.optics.toldOffset(since: before) {
                let id = VirtualControlTable.ID.exposureOffset
                value.told?.tell(ControlEvent(id: id, value: .integer(offset), time: MonotonicClock.now()))
            }
            return shown
        }
    }
}

extension VirtualSensorState.Value {
    /// Lens, exposure and white balance go where the controls say; at once where no frame comes that would bring them
    /// there.
    mutating func follow(_ controls: VirtualControls, set: UInt32?, isStreaming: Bool) {
        optics.follow(controls, set: set)
        if !isStreaming { optics.finish() }
        still = VirtualLook(controls)
        look = still.seen(through: optics)
    }

    /// No further frames come.
    mutating func finish() {
        guard optics.isSettling else { return }
        let before = optics
        optics.finish()
        look = still.seen(through: optics)
        tell(since: before)
    }

    // As a driver does when its camera has come to an end by itself.
    fileprivate func tell(since before: VirtualOptics) {
        guard let told else { return }
        var old: [UInt32: Int64] = [:]
        before.told { old[$0] = $1 }
        let time = MonotonicClock.now()
        optics.told { id, value in
            let isFlag = VirtualControlTable.isFlag(id)
            guard value != old[id] || isFlag, still.has(id) else { return }
            told.tell(ControlEvent(id: id, value: isFlag ? .boolean(value != 0) : .integer(value), time: time))
        }
    }
}

/// The part of a virtual camera that takes pictures: a thread that wakes at each frame's time, draws it into the next
/// queued slot, and wakes the loop. Times follow from the start and the frame's number, so that they never drift unless
/// they are told to.
final class VirtualSensor {
    private let stop: EventDescriptor
    private let thread: NamedThread

    init(
        _ queue: VirtualQueue, _ selection: FormatSelection, _ duration: FrameDuration, index: Int,
        state: VirtualSensorState
    ) throws(SourceError) {
        let camera = UInt8(truncatingIfNeeded: index)
        guard let painter = VirtualPainter(selection, duration, camera: camera, slots: queue.slots.count) else {
            throw SourceError(
                .noResources, operation: "VIDIOC_STREAMON", errno: ENOMEM,
                message: "virtual:\(index): no memory for its pictures")
        }
        do {
            let stop = try EventDescriptor()
            let run = Run(
                queue: queue, painter: painter, duration: duration, isCompressed: selection.pixelFormat.isCompressed,
                state: state, stop: stop, timer: try TimerDescriptor())
            thread = try NamedThread(name: "sensor-\(index)") { run.loop() }
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
        let queue: VirtualQueue
        let painter: VirtualPainter
        let duration: FrameDuration
        let isCompressed: Bool
        let state: VirtualSensorState
        let stop: EventDescriptor
        let timer: TimerDescriptor

        init(
            queue: VirtualQueue, painter: VirtualPainter, duration: FrameDuration, isCompressed: Bool,
            state: VirtualSensorState, stop: EventDescriptor, timer: TimerDescriptor
        ) {
            self.queue = queue
            self.painter = painter
            self.duration = duration
            self.isCompressed = isCompressed
            self.state = state
            self.stop = stop
            self.timer = timer
        }

        // Where the present pace began: a frame's number, and its time.
        private var origin: (sequence: Int64, time: Int64) = (-1, 0)
        private var pace = VirtualPace()

        func loop() {
            origin.time = MonotonicClock.now()
            pace = state.current.pace
            var sequence: Int64 = 0
            while true {
                timer.arm(at: time(sequence))
                var waits = [2 of pollfd](repeating: pollfd(fd: stop.rawValue, events: Int16(POLLIN), revents: 0))
                waits[1].fd = timer.rawValue
                let result = withUnsafeMutablePointer(to: &waits) {
                    poll(UnsafeMutableRawPointer($0).assumingMemoryBound(to: pollfd.self), 2, -1)
                }
                if result < 0 { continue }
                if waits[0].revents != 0 { return }
                guard timer.drain() > 0 else { continue }
                let now = MonotonicClock.now()
                // Frames whose time came while this thread had no processor are not lost, as long as there are slots
                // for them: a camera doesn't wait for its reader.
                let newest = max(sequence, origin.sequence + pace.frames(in: now - origin.time, duration))
                sequence = max(sequence, newest - Int64(max(1, queue.queuedCount)) + 1)
                while sequence <= newest {
                    capture(sequence, time(sequence))
                    sequence += 1
                }
                changePace(after: newest)
            }
        }

        /// The first frame's time comes one duration after the start.
        private func time(_ sequence: Int64) -> Int64 {
            origin.time + pace.time(of: sequence - origin.sequence, duration)
        }

        private func changePace(after sequence: Int64) {
            let present = state.current.pace
            guard present != pace else { return }
            origin = (sequence, time(sequence))
            pace = present
        }

        private func capture(_ sequence: Int64, _ time: Int64) {
            let state = state.next()
            guard state.stalledUntil <= time, let slot = queue.take() else { return }
            slot.captureSequence = UInt64(sequence)
            slot.monotonicTime = time
            slot.isCorrupt = false
            if painter.paint(slot, state) {
                if self.state.takeCorruption() { damage(slot) }
                queue.fill(slot)
            } else {
                queue.release(slot)
            }
        }

        // What the driver marks it leaves there, and of what is compressed it has got a part only.
        private func damage(_ slot: FrameSlot) {
            slot.isCorrupt = true
            if isCompressed { for region in slot.bytesUsed.indices { slot.bytesUsed[region] /= 2 } }
        }
    }
}
