import CaptureCore
import Glibc
import LinuxIO
import Synchronization

/// The buffers of a virtual camera between its sensor and the loop, as a driver's queue holds them.
final class VirtualQueue: @unchecked Sendable {
    // What changes is behind the mutex; a slot is touched only by whoever has it.

    let slots: [FrameSlot]
    /// Readable while a filled slot waits.
    let ready: EventDescriptor

    private let memory: UnsafeMutableRawPointer
    private let length: Int
    private let state: Mutex<State>

    private enum Holder { case loop, queued, sensor, filled }
    private struct State {
        var holders: [Holder]
        /// Both in the order in which they came; they never grow beyond the number of slots.
        var queued: [Int]
        var filled: [Int]
    }

    /// All slots are queued.
    ///
    /// - Parameter bytes: of each slot; rounded up to whole pages, as drivers do.
    init(slots count: Int, bytes: Int) throws(SourceError) {
        let operation = "VIDIOC_REQBUFS"
        let page = Int(sysconf(Int32(_SC_PAGESIZE)))
        let (padded, overflow) = bytes.addingReportingOverflow(page - 1)
        let slotBytes = padded / page * page
        guard !overflow, slotBytes > 0, count > 0 else {
            throw SourceError(.noResources, operation: operation, errno: ENOMEM, message: "no such buffers")
        }
        let mapped = mmap(nil, slotBytes * count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        guard let mapped, mapped != MAP_FAILED else {
            throw SourceError(
                .noResources, operation: operation, errno: ENOMEM,
                message: "no memory for \(count) buffers of \(slotBytes) bytes")
        }
        do {
            ready = try EventDescriptor()
        } catch {
            munmap(mapped, slotBytes * count)
            throw SourceError(.noResources, operation: operation, errno: error.code, message: error.description)
        }
        memory = mapped
        length = slotBytes * count
        slots = (0..<count).map { index in
            FrameSlot(
                index: index,
                regions: [UnsafeMutableRawBufferPointer(start: mapped + index * slotBytes, count: slotBytes)])
        }
        var filled: [Int] = []
        filled.reserveCapacity(count)
        state = Mutex(
            State(holders: Array(repeating: .queued, count: count), queued: Array(0..<count), filled: filled))
    }

    deinit { munmap(memory, length) }

    // MARK: The loop's side

    func dequeue() -> FrameSlot? {
        state.withLock { state in
            guard !state.filled.isEmpty else { return nil }
            let index = state.filled.removeFirst()
            if state.filled.isEmpty { ready.drain() }
            state.holders[index] = .loop
            return slots[index]
        }
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

    /// A slot to fill; nil when none is queued, and the frame is lost.
    func take() -> FrameSlot? {
        state.withLock { state in
            guard !state.queued.isEmpty else { return nil }
            let index = state.queued.removeFirst()
            state.holders[index] = .sensor
            return slots[index]
        }
    }

    func fill(_ slot: FrameSlot) {
        state.withLock { state in
            state.holders[slot.index] = .filled
            state.filled.append(slot.index)
            if state.filled.count == 1 { ready.signal() }
        }
    }

    /// Gives a slot back that could not be filled.
    func release(_ slot: FrameSlot) {
        state.withLock { state in
            state.holders[slot.index] = .queued
            state.queued.append(slot.index)
        }
    }
}
