public import LinuxIO

/// One frame in a ring: where it lies and what is told of it. Its pixels are ``RingReader/use(_:_:)``'s to show.
public struct RingFrame: Hashable, Sendable {
    public let slot: Int
    /// Even; twice the frame's number in the ring.
    public let stamp: UInt64
    public let record: RingRecord
    /// Frames between the one taken before and this one, which were left out.
    public let skipped: UInt64

    /// Counts the ring's frames, from 1.
    public var number: UInt64 { stamp >> 1 }
}

/// A reader's side of a ring. Used by one thread at a time.
///
/// Whatever the memory holds, it never reads outside of it, never waits beyond its time limit, and tells nobody
/// anything: a reader leaves no trace in the ring. Frames are overwritten in their turn; who was too slow learns it
/// from ``use(_:_:)``.
public final class RingReader {
    /// Which frame is wanted.
    public enum Order: Hashable, Sendable {
        /// The newest that is newer than the last one taken.
        case newest
        /// The oldest that is still there and newer than the last one taken. The first is the newest.
        case next
    }

    public enum Outcome: Hashable, Sendable {
        case frame(RingFrame)
        /// The time limit has come.
        case timedOut
        /// No frame is left, and none will come. nil: for a reason that this version doesn't know.
        case closed(RingClosing?)
    }

    public struct Counters: Hashable, Sendable {
        /// Frames that were taken.
        public var frames: UInt64 = 0
        /// Frames that were left out between them.
        public var skipped: UInt64 = 0
        /// Frames that were overwritten while they were used.
        public var late: UInt64 = 0
        /// Frames whose record makes no sense.
        public var unusable: UInt64 = 0

        public init() {}

        /// These and those of another ring.
        public func adding(_ other: Counters) -> Counters {
            var sum = self
            sum.frames &+= other.frames
            sum.skipped &+= other.skipped
            sum.late &+= other.late
            sum.unusable &+= other.unusable
            return sum
        }
    }

    /// What the ring said of itself when it was mapped.
    public let plan: RingPlan
    public private(set) var counters = Counters()
    private let view: SharedMemoryView
    private let base: UnsafeRawPointer
    private var last: UInt64 = 0
    /// Bytes that a frame has at least.
    private let leastBytes: Int
    /// Periods, of a whole number of such frames.
    private let isSound: Bool

    /// Maps the ring behind a descriptor, which is not needed any more afterwards.
    public convenience init(_ descriptor: Int32) throws(RingError) {
        let view: SharedMemoryView
        do throws(SystemError) { view = try SharedMemoryView(descriptor) } catch { throw .system(error) }
        try self.init(view)
    }

    /// A ring in memory that is mapped already.
    public init(_ view: SharedMemoryView) throws(RingError) {
        guard let base = view.bytes.baseAddress else { throw .notARing(.tooShort) }
        plan = try RingPlan(of: view)
        self.view = view
        self.base = base
        leastBytes = plan.description.leastBytes
        isSound = plan.description.sound != nil
    }

    /// A frame as wanted, if there is one now.
    public func poll(_ order: Order = .newest) -> RingFrame? {
        // The publisher may be ahead by the time that a slot is looked at; not forever, since it must fill it
        // meanwhile.
        for _ in 0..<4 {
            guard let slot = find(order) else { return nil }
            let record = base + plan.record(slot)
            let stamp = SharedWord.load64(record)
            let number = stamp >> 1
            guard stamp & 1 == 0, number > last else { continue }
            let facts = RingRecord(record)
            guard isUnchanged(record, stamp) else { continue }
            let skipped = last == 0 ? 0 : number - last - 1
            last = number
            guard let facts, facts.bytes >= leastBytes, facts.bytes <= plan.description.slotBytes,
                !isSound || facts.bytes % leastBytes == 0 && facts.timestampSource != .endOfFrame
            else {
                counters.unusable &+= 1
                continue
            }
            counters.frames &+= 1
            counters.skipped &+= skipped
            return RingFrame(slot: slot, stamp: stamp, record: facts, skipped: skipped)
        }
        return nil
    }

    /// Waits for a frame as wanted.
    ///
    /// - Parameter deadline: CLOCK_MONOTONIC, nanoseconds.
    public func wait(_ order: Order = .newest, until deadline: Int64) -> Outcome {
        while true {
            let count = SharedWord.load32(base + RingLayout.countOffset)
            // Before the look for a frame: what was published before the end is still given.
            let closed = SharedWord.load32(base + RingLayout.closedOffset)
            if let frame = poll(order) { return .frame(frame) }
            if closed != 0 { return .closed(RingClosing(rawValue: closed)) }
            guard Futex.wait(base + RingLayout.countOffset, while: count, until: deadline),
                MonotonicClock.now() < deadline
            else { return poll(order).map(Outcome.frame) ?? .timedOut }
        }
    }

    /// Why the ring is closed; nil while it isn't, and for a reason that this version doesn't know.
    public var closing: RingClosing? { RingClosing(rawValue: SharedWord.load32(base + RingLayout.closedOffset)) }

    /// Whether no more frames come.
    public var isClosed: Bool { SharedWord.load32(base + RingLayout.closedOffset) != 0 }

    /// Shows a frame's pixels to the body. They may change while it reads: what it made of them is good only if this
    /// returns it.
    ///
    /// - Returns: nil when the frame was overwritten meanwhile; it counts as late.
    public func use<Result>(_ frame: RingFrame, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result? {
        try look(at: frame) { bytes, isIntact in
            let result = try body(bytes)
            return isIntact() ? result : nil
        } ?? nil
    }

    /// Shows a frame's pixels to the body, which asks for itself whether what it has read so far is good: before it
    /// keeps that.
    ///
    /// - Returns: nil for a frame that is none of this ring's.
    public func look<Result>(
        at frame: RingFrame, _ body: (_ bytes: UnsafeRawBufferPointer, _ isIntact: () -> Bool) throws -> Result
    ) rethrows -> Result? {
        guard (0..<plan.description.slots).contains(frame.slot), frame.record.bytes <= plan.description.slotBytes,
            frame.record.bytes >= 0
        else { return nil }
        let bytes = UnsafeRawBufferPointer(start: base + plan.pixels(frame.slot), count: frame.record.bytes)
        return try withExtendedLifetime(view) {
            try body(bytes) {
                if isUnchanged(base + plan.record(frame.slot), frame.stamp) { return true }
                counters.late &+= 1
                return false
            }
        }
    }

    private func isUnchanged(_ record: UnsafeRawPointer, _ stamp: UInt64) -> Bool {
        SharedWord.readsAreDone()
        return SharedWord.loadRelaxed64(record) == stamp
    }

    private func find(_ order: Order) -> Int? {
        let newest = SharedWord.load32(base + RingLayout.newestOffset)
        guard newest < plan.description.slots else { return nil }
        let stamp = SharedWord.load64(base + plan.record(Int(newest)))
        let isNew = stamp & 1 == 0 && stamp >> 1 > last
        if isNew, order == .newest || last == 0 || stamp >> 1 == last + 1 { return Int(newest) }
        // The newest is being overwritten already, or others come first.
        var best: (slot: Int, number: UInt64)?
        for slot in 0..<plan.description.slots {
            let stamp = SharedWord.load64(base + plan.record(slot))
            let number = stamp >> 1
            guard stamp & 1 == 0, number > last else { continue }
            let isNewest = order == .newest || last == 0
            if let best, isNewest ? number < best.number : number > best.number { continue }
            best = (slot, number)
        }
        return best?.slot
    }
}
