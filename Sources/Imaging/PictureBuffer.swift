import Glibc

/// Memory for a picture, used again and again: it grows when it must and never shrinks.
///
/// Page-aligned; pages that were never written take no memory, so that room for the worst case costs nothing.
public final class PictureBuffer: @unchecked Sendable {
    // Owned by one thread at a time, which hands it on as a whole.

    private var base: UnsafeMutableRawPointer?
    /// Bytes of room.
    public private(set) var capacity = 0
    /// Bytes that hold the picture, from the start.
    public private(set) var count = 0

    /// Empty, without memory yet.
    public init() {}

    deinit { free(base) }

    /// The picture.
    public var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: count) }

    /// All of the room, for writing.
    public var room: UnsafeMutableRawBufferPointer { UnsafeMutableRawBufferPointer(start: base, count: capacity) }

    /// Makes room for at least so many bytes. What was there is lost if it has to grow.
    public func reserve(_ bytes: Int) throws(ConversionError) {
        if bytes <= capacity { return }
        let page = 4096
        let (padded, overflow) = bytes.addingReportingOverflow(page - 1)
        var memory: UnsafeMutableRawPointer?
        guard !overflow, posix_memalign(&memory, page, padded / page * page) == 0, let memory else {
            throw .failed("no memory for a picture of \(bytes) bytes")
        }
        free(base)
        base = memory
        capacity = padded / page * page
        count = 0
    }

    /// Says how many bytes of the room hold the picture; no more than there is room.
    public func setCount(_ bytes: Int) {
        count = min(max(0, bytes), capacity)
    }
}
