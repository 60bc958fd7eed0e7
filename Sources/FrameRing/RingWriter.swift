public import LinuxIO
import Synchronization

/// Why no more frames will come in a ring.
public enum RingClosing: UInt32, Hashable, Sendable {
    /// Another ring has taken its place: a new stream, or another format.
    case replaced = 1
    /// Nothing streams any more.
    case ended = 2
}

/// The publisher's side of a ring: hands out slots to be filled, and publishes them. The pixels of a slot belong to
/// whoever fills it.
///
/// One thread at a time publishes. Another one may take, lend and hold meanwhile; it closes the ring when nobody
/// publishes any more.
public final class RingWriter: Sendable {
    public let plan: RingPlan
    private let memory: SharedMemory
    private let state: Mutex<State>
    private let loans: [RingLoan]
    /// Bytes that are left for all else.
    private static let spared: UInt64 = 8 << 20

    private struct State {
        var ledger: RingLedger
        /// What readers wait on.
        var count: UInt32 = 0
        var isClosed = false
    }

    /// Makes the memory; nothing is published in it yet.
    ///
    /// - Parameters:
    ///   - description: its `slots` and `keep` are those of the ledger.
    ///   - ledger: a fresh one.
    ///   - part: so many times its size must be free, unless the room is the limit of a single file.
    ///   - room: how much memory this process may take yet; nil: that is not known.
    public init(
        _ description: RingDescription, _ ledger: RingLedger, part: UInt64 = 1, of room: MemoryRoom? = .now()
    ) throws(RingError) {
        var description = description
        description.slots = ledger.slots
        description.keep = ledger.keep
        let plan: RingPlan
        do throws(RingError.Flaw) { plan = try RingPlan(description) } catch { throw .notARing(error) }
        // Pages are only taken when they are written to, and then it is too late to say no.
        if let room {
            let part = room.limit == .fileSize ? 1 : part
            guard room.bytes >= UInt64(plan.size) * part + Self.spared else {
                throw .noRoom(needed: plan.size, part: part, room)
            }
        }
        let memory: SharedMemory
        do throws(SystemError) {
            memory = try SharedMemory(name: "camerabus-ring", count: plan.size)
        } catch { throw .system(error) }
        SharedWord.store32(memory.base + RingLayout.newestOffset, RingLayout.noSlot)
        plan.write(to: memory.bytes)
        self.plan = plan
        self.memory = memory
        state = Mutex(State(ledger: ledger))
        loans = (0..<ledger.slots).map { slot in
            RingLoan(
                memory,
                UnsafeRawBufferPointer(start: memory.base + plan.pixels(slot), count: description.slotBytes))
        }
    }

    deinit { close(.ended) }

    /// For readers in this process, who can't write through it.
    public var readerDescriptor: Int32 { memory.readerDescriptor }

    /// Readers in other processes. As long as somebody has this, the memory stays.
    public var readers: SharedMemoryReaders { memory.readers }

    /// A slot's pixels, to be written between ``take()`` and ``publish(_:_:)``.
    public func pixels(of slot: Int) -> UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(
            start: memory.base + plan.pixels(slot), count: plan.description.slotBytes)
    }

    /// Takes a slot to be filled; readers know from then on that it isn't theirs.
    ///
    /// - Returns: nil while as many are being filled as may be.
    public func take() -> Int? {
        guard let slot = withLedger({ $0.take() }) else { return nil }
        let stamp = memory.base + plan.record(slot)
        SharedWord.storeRelaxed64(stamp, SharedWord.loadRelaxed64(UnsafeRawPointer(stamp)) | 1)
        // No pixel is written before readers can see the stamp.
        SharedWord.fence()
        return slot
    }

    /// A slot was not filled after all.
    public func putBack(_ slot: Int) { state.withLock { _ = $0.ledger.putBack(slot) } }

    /// Publishes a filled slot and wakes the readers that wait.
    ///
    /// - Returns: the slot's stamp; nil, and nothing is done, if it was not being filled.
    @discardableResult
    public func publish(_ slot: Int, _ record: RingRecord) -> UInt64? {
        // What follows needs no lock: the slot goes to nobody before others have been published after it.
        guard let number = state.withLock({ $0.isClosed ? nil : $0.ledger.publish(slot) }) else { return nil }
        let start = memory.base + plan.record(slot)
        record.write(to: start)
        SharedWord.store64(start, number << 1)
        SharedWord.store32(memory.base + RingLayout.newestOffset, UInt32(clamping: slot))
        wake()
        return number << 1
    }

    /// Lends a published slot, to be read until each ``RingLoan/giveBack()``; nil when too many are lent.
    public func lend(_ slot: Int) -> RingLoan? {
        withLedger { $0.lend(slot) } ? loans[slot] : nil
    }

    /// Holds a published slot for work of the publisher's own, until ``letGo(_:)``; false when the device needs it.
    public func hold(_ slot: Int) -> Bool {
        withLedger { $0.hold(slot) }
    }

    /// A hold is over.
    public func letGo(_ slot: Int) { state.withLock { _ = $0.ledger.letGo(slot) } }

    /// Slots that are lent now.
    public var lentCount: Int { withLedger { $0.lentCount } }

    /// Frames that were published.
    public var published: UInt64 { state.withLock { $0.ledger.published } }

    /// Nothing is published in it any more.
    public var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Tells the readers that no more comes. What is published stays readable.
    public func close(_ why: RingClosing) {
        let isFirst = state.withLock { state in
            defer { state.isClosed = true }
            return !state.isClosed
        }
        guard isFirst else { return }
        SharedWord.store32(memory.base + RingLayout.closedOffset, why.rawValue)
        wake()
    }

    private func wake() {
        state.withLock { state in
            state.count &+= 1
            SharedWord.store32(memory.base + RingLayout.countOffset, state.count)
        }
        Futex.wakeAll(memory.base + RingLayout.countOffset)
    }

    // Takes note first of what borrowers on other threads have given back.
    private func withLedger<Result>(_ body: (inout RingLedger) -> sending Result) -> Result {
        state.withLock { state in
            if state.ledger.lentCount > 0 {
                for slot in loans.indices where state.ledger.uses(of: slot) > 0 {
                    for _ in 0..<loans[slot].takeReturned() { state.ledger.giveBack(slot) }
                }
            }
            return body(&state.ledger)
        }
    }
}

/// A published slot that somebody reads for longer than readers may. The ring's memory lives as long as this.
public final class RingLoan: Sendable {
    private let memory: SharedMemory
    private let start: UInt
    private let count: Int
    private let returned = Atomic<Int>(0)

    init(_ memory: SharedMemory, _ bytes: UnsafeRawBufferPointer) {
        self.memory = memory
        start = UInt(bitPattern: bytes.baseAddress)
        count = bytes.count
    }

    /// The whole slot.
    public var bytes: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: UnsafeRawPointer(bitPattern: start), count: count)
    }

    /// To be called once for each ``RingWriter/lend(_:)``, on any thread.
    public func giveBack() { returned.add(1, ordering: .releasing) }

    func takeReturned() -> Int { returned.exchange(0, ordering: .acquiring) }
}

extension SharedMemory {
    // A mapping has an address.
    var base: UnsafeMutableRawPointer { bytes.baseAddress.unsafelyUnwrapped }
}
