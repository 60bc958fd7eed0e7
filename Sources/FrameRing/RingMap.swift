public import LinuxIO

/// A ring whose frames are told of by messages: each is found where its message says that it lies. Safe to use from any
/// thread.
public final class RingMap: Sendable {
    /// What the ring said of itself when it was mapped.
    public let plan: RingPlan
    private let view: SharedMemoryView
    private let leastBytes: Int

    /// Maps the ring behind a descriptor, which is not needed any more afterwards.
    public convenience init(_ descriptor: Int32) throws(RingError) {
        let view: SharedMemoryView
        do throws(SystemError) { view = try SharedMemoryView(descriptor) } catch { throw .system(error) }
        try self.init(view)
    }

    /// A ring in memory that is mapped already.
    public init(_ view: SharedMemoryView) throws(RingError) {
        plan = try RingPlan(of: view)
        self.view = view
        leastBytes = plan.description.leastBytes
    }

    /// Where a message says that a frame lies.
    ///
    /// - Parameters:
    ///   - offset: bytes from the start of the ring.
    ///   - bytes: of the frame.
    ///   - stamp: that of its slot.
    /// - Returns: nil for a place that is none in this ring. Whether the frame is still there, ``RingPicture/isIntact``
    ///   says.
    public func picture(slot: Int, offset: Int, bytes: Int, stamp: UInt64) -> RingPicture? {
        guard (0..<plan.description.slots).contains(slot), offset == plan.pixels(slot), stamp & 1 == 0, stamp > 0,
            bytes >= leastBytes, bytes <= plan.description.slotBytes
        else { return nil }
        return RingPicture(ring: self, slot: slot, stamp: stamp, count: bytes)
    }

    fileprivate func bytes(_ slot: Int, _ count: Int) -> UnsafeRawBufferPointer {
        let start = plan.pixels(slot)
        return UnsafeRawBufferPointer(rebasing: view.bytes[start..<start + count])
    }

    fileprivate func isUnchanged(_ slot: Int, _ stamp: UInt64) -> Bool {
        guard let base = view.bytes.baseAddress else { return false }
        SharedWord.readsAreDone()
        return SharedWord.load64(base + plan.record(slot)) == stamp
    }
}

/// A frame's pixels in a ring, which the device overwrites some frames later. Safe to use from any thread.
public struct RingPicture: Sendable {
    private let ring: RingMap
    private let slot: Int
    private let stamp: UInt64
    /// Bytes of the frame.
    public let count: Int

    fileprivate init(ring: RingMap, slot: Int, stamp: UInt64, count: Int) {
        self.ring = ring
        self.slot = slot
        self.stamp = stamp
        self.count = count
    }

    /// Whether all that was read of it so far is good.
    public var isIntact: Bool { ring.isUnchanged(slot, stamp) }

    /// Calls the body with the bytes, which may change meanwhile: what it made of them is good only if ``isIntact``
    /// says so afterwards.
    public func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try withExtendedLifetime(ring) { () throws(Failure) in try body(ring.bytes(slot, count)) }
    }
}

extension RingPlan {
    /// Reads the head of a ring that somebody else made: from a copy, so that nothing can change between its check and
    /// its use.
    init(of view: SharedMemoryView) throws(RingError) {
        do throws(RingError.Flaw) {
            try self.init(head: [UInt8](view.bytes.prefix(RingLayout.headBytes)), memoryBytes: view.bytes.count)
        } catch {
            throw .notARing(error)
        }
    }
}

extension RingDescription {
    /// Bytes that a frame has at least.
    var leastBytes: Int {
        if let sound { return sound.frameBytes }
        return isCompressed ? 1 : planes.map { $0.offset + $0.bytes }.max() ?? 1
    }

}
