import CaptureCore
import LinuxIO
import Synchronization

/// The buffers of a virtual camera between its sensor and the loop, as a driver's queue holds them.
final class VirtualQueue: @unchecked Sendable {
    // What changes is behind the mutex; a slot is touched only by whoever has it.

    let slots: [FrameSlot]
    /// Readable while a filled slot waits.
    let ready: EventDescriptor

    // Not to go before the sensor does, which writes there.
    private let memory: any SlotMemory
    private let state: Mutex<State>

    private enum Holder { case loop, queued, sensor, filled }
    private struct State {
        var holders: [Holder]
        var queued: SlotLine
        var filled: SlotLine
        /// Why the device has no more to give.
        var failure: SourceError?
    }

    /// What the memory gives out at once is queued.
    init(_ memory: any SlotMemory) throws(SourceError) {
        do { ready = try EventDescriptor() } catch {
            throw SourceError(
                .noResources, operation: "VIDIOC_REQBUFS", errno: error.code, message: error.description)
        }
        self.memory = memory
        slots = memory.frameSlots()
        let line = SlotLine(room: slots.count)
        var initial = State(holders: Array(repeating: .loop, count: slots.count), queued: line, filled: line)
        while let slot = memory.take() {
            initial.holders[slot] = .queued
            initial.queued.append(slot)
        }
        state = Mutex(initial)
    }

    // MARK: The loop's side

    func dequeue() throws(SourceError) -> FrameSlot? {
        if let slot = try takeFilled() { return slot }
        // Neither side has the lock while it calls the kernel, so that none waits for the other there: what was filled
        // before the signal went is found by the second look.
        ready.drain()
        return try takeFilled()
    }

    // In one look: a failure comes behind all that was filled before it.
    private func takeFilled() throws(SourceError) -> FrameSlot? {
        let (index, failure) = state.withLock { state -> (Int?, SourceError?) in
            guard let index = state.filled.popFirst() else { return (nil, state.failure) }
            state.holders[index] = .loop
            return (index, nil)
        }
        if let failure { throw failure }
        return index.map { slots[$0] }
    }

    /// False if the slot isn't the loop's to give.
    func enqueue(_ slot: FrameSlot) -> Bool {
        guard slots.indices.contains(slot.index), slots[slot.index] === slot else { return false }
        return state.withLock { state in
            guard state.holders[slot.index] == .loop else { return false }
            state.holders[slot.index] = .queued
            state.queued.append(slot.index)
            return true
        }
    }

    // MARK: The sensor's side

    /// Slots that it could fill now.
    var queuedCount: Int { state.withLock { $0.queued.count } }

    /// A slot to fill; nil when none is queued, and the frame is lost.
    func take() -> FrameSlot? {
        state.withLock { state in
            guard let index = state.queued.popFirst() else { return nil }
            state.holders[index] = .sensor
            return slots[index]
        }
    }

    /// - Parameter source: of the slot's time.
    func fill(_ slot: FrameSlot, _ source: TimestampSource = .startOfExposure) {
        memory.filled(slot, source)
        let isFirst = state.withLock { state in
            state.holders[slot.index] = .filled
            state.filled.append(slot.index)
            return state.filled.count == 1
        }
        if isFirst { ready.signal() }
    }

    /// There will be no more frames: said after those that are filled. The descriptor stays readable.
    func fail(_ failure: SourceError) {
        state.withLock { if $0.failure == nil { $0.failure = failure } }
        ready.signal()
    }

    /// Gives a slot back that could not be filled.
    func release(_ slot: FrameSlot) {
        state.withLock { state in
            state.holders[slot.index] = .queued
            state.queued.append(slot.index)
        }
    }
}

/// Numbers of slots in the order in which they came. There are never more than slots, so that taking one moves no
/// others.
private struct SlotLine {
    private var places: [Int]
    private var first = 0
    private(set) var count = 0

    init(room: Int) { places = Array(repeating: 0, count: room) }

    mutating func append(_ slot: Int) {
        places[(first + count) % places.count] = slot
        count += 1
    }

    mutating func popFirst() -> Int? {
        guard count > 0 else { return nil }
        let slot = places[first]
        first = first + 1 < places.count ? first + 1 : 0
        count -= 1
        return slot
    }
}
