/// A slot that a device fills: one of a fixed set, made when the stream starts and used again and again.
public final class FrameSlot: @unchecked Sendable {
    // The loop alone passes a slot from thread to thread; two threads never use it at once, except for reading. So
    // exclusive access is not checked on a frame's way to its readers. The attribute works in this module only: other
    // modules check each property that they use, and read ``metadata`` instead.

    /// Its number within the stream's memory (``SlotMemory/slots``).
    public let index: Int
    /// Its memory: one region, which holds all planes of the layout.
    public let regions: [UnsafeMutableRawBufferPointer]
    /// Bytes filled in each region (`bytesused`).
    @exclusivity(unchecked) public var bytesUsed: [Int]
    /// The device's own count of frames since the stream started, with holes for those it lost.
    @exclusivity(unchecked) public var captureSequence: UInt64 = 0
    /// CLOCK_MONOTONIC, nanoseconds.
    @exclusivity(unchecked) public var monotonicTime: Int64 = 0
    /// Nanoseconds from ``monotonicTime`` to when the picture is shown, of compressed pictures that come in the order
    /// in which they are decoded (`CMSampleBuffer`'s decode and presentation time stamps); else 0.
    @exclusivity(unchecked) public var presentationDelay: Int64 = 0
    /// The device says that the picture is damaged (`V4L2_BUF_FLAG_ERROR`).
    @exclusivity(unchecked) public var isCorrupt = false

    public init(index: Int, regions: [UnsafeMutableRawBufferPointer]) {
        self.index = index
        self.regions = regions
        bytesUsed = Array(repeating: 0, count: regions.count)
    }

    /// The metadata of the frame in a slot; each member is the slot's property of that name.
    public struct Metadata: Sendable {
        public var bytesUsed: [Int]
        public var captureSequence: UInt64
        public var monotonicTime: Int64
        public var presentationDelay: Int64
        public var isCorrupt: Bool
    }

    /// All metadata of the frame, read at once.
    public var metadata: Metadata {
        Metadata(
            bytesUsed: bytesUsed, captureSequence: captureSequence, monotonicTime: monotonicTime,
            presentationDelay: presentationDelay, isCorrupt: isCorrupt)
    }
}

/// The moment of a frame's time (`V4L2_BUF_FLAG_TSTAMP_SRC_MASK`), and whether the driver gave it.
public enum TimestampSource: String, Hashable, Sendable {
    case startOfExposure, endOfFrame
    /// The driver gives no monotonic time: it is taken when the frame is dequeued.
    case dequeue
}
