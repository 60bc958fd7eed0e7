import LinuxIO
import Synchronization

/// Why no more frames will come in a ring.
public enum RingClosing: UInt32, Hashable, Sendable {
    /// Another ring has taken its place: a new stream, or another format.
    case replaced = 1
    /// Nothing streams any more.
    case ended = 2
}

/// The publisher's side of a ring: hands out slots to be filled, and publishes them. Used by one thread at a time, but for the
/// pixels of a slot, which belong to whoever fills it.
public final class RingWriter {
    public let plan: RingPlan
    private let memory: SharedMemory
    // Unchecked access: see `PollSet`.
    @exclusivity(unchecked) private var ledger: RingLedger
    private let loans: [RingLoan]
    /// Bytes that are left for all else.
    private static let spared: UInt64 = 8 << 20
    @exclusivity(unchecked) private var count: UInt32 = 0
    @exclusivity(unchecked) private var isClosed = false

    /// Makes the memory; nothing is published in it yet.
    ///
    /// - Parameters:
    ///   - description: its `slots` and `keep` are those of the ledger.
    ///   - ledger: a fresh one.
    public init(_ description: RingDescription, _ ledger: RingLedger) throws(RingError) {
        var description = description
        description.slots = ledger.slots
        description.keep = ledger.keep
        let plan: RingPlan
        do throws(RingError.Flaw) { plan = try RingPlan(description) } catch { throw .notARing(error) }
        // Pages are only taken when they are written to, and then it is too late to say no.
        if let room = MemoryRoom.now(), room.bytes < UInt64(plan.size) + Self.spared {
            throw .noRoom(needed: plan.size, room)
        }
        let memory: SharedMemory
        do throws(SystemError) {
            memory = try SharedMemory(name: "camerabus-ring", count: plan.size)
        } catch { throw .system(error) }
        SharedWord.store32(memory.base + RingLayout.newestOffset, RingLayout.noSlot)
        plan.write(to: memory.bytes)
        self.plan = plan
        self.memory = memory
        self.ledger = ledger
        loans = (0..<ledger.slots).map { slot in
            RingLoan(
                memory,
                UnsafeRawBufferPointer(start: memory.base + plan.pixels(slot), count: description.slotBytes))
        }
    }

    deinit { close(.ended) }

    /// For readers: `SCM_RIGHTS` takes it, and they can't write through it.
    public var readerDescriptor: Int32 { memory.readerDescriptor }

    /// A slot's pixels, to be written between ``take()`` and ``publish(_:_:)``.
    public func pixels(of slot: Int) -> UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(
            start: memory.base + plan.pixels(slot), count: plan.description.slotBytes)
    }

    /// Takes a slot to be filled; readers know from then on that it isn't theirs.
    ///
    /// - Returns: nil while as many are being filled as may be.
    public func take() -> Int? {
        collect()
        guard let slot = ledger.take() else { return nil }
        let stamp = memory.base + plan.record(slot)
        SharedWord.storeRelaxed64(stamp, SharedWord.loadRelaxed64(UnsafeRawPointer(stamp)) | 1)
        // No pixel is written before readers can see the stamp.
        SharedWord.fence()
        return slot
    }

    /// A slot was not filled after all.
    public func putBack(_ slot: Int) { ledger.putBack(slot) }

    /// Publishes a filled slot and wakes the readers that wait.
    ///
    /// - Returns: the slot's stamp; nil, and nothing is done, if it was not being filled.
    @discardableResult
    public func publish(_ slot: Int, _ record: RingRecord) -> UInt64? {
        guard !isClosed, let number = ledger.publish(slot) else { return nil }
        let start = memory.base + plan.record(slot)
        record.write(to: start)
        SharedWord.store64(start, number << 1)
        SharedWord.store32(memory.base + RingLayout.newestOffset, UInt32(clamping: slot))
        wake()
        return number << 1
    }

    /// Lends a published slot, to be read until each ``RingLoan/giveBack()``; nil when too many are lent.
    public func lend(_ slot: Int) -> RingLoan? {
        collect()
        return ledger.lend(slot) ? loans[slot] : nil
    }

    /// Holds a published slot for work of the publisher's own, until ``letGo(_:)``; false when the device needs it.
    public func hold(_ slot: Int) -> Bool {
        collect()
        return ledger.hold(slot)
    }

    /// A hold is over.
    public func letGo(_ slot: Int) { ledger.letGo(slot) }

    /// Slots that are lent now.
    public var lentCount: Int {
        collect()
        return ledger.lentCount
    }

    /// Frames that were published.
    public var published: UInt64 { ledger.published }

    /// Tells the readers that no more comes. What is published stays readable.
    public func close(_ why: RingClosing) {
        guard !isClosed else { return }
        isClosed = true
        SharedWord.store32(memory.base + RingLayout.closedOffset, why.rawValue)
        wake()
    }

    private func wake() {
        count &+= 1
        SharedWord.store32(memory.base + RingLayout.countOffset, count)
        Futex.wakeAll(memory.base + RingLayout.countOffset)
    }

    // Takes note of what borrowers on other threads have given back.
    private func collect() {
        guard ledger.lentCount > 0 else { return }
        for slot in loans.indices where ledger.uses(of: slot) > 0 {
            for _ in 0..<loans[slot].takeReturned() { ledger.giveBack(slot) }
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
