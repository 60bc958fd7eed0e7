public import CaptureCore

/// Memory that a stream's frames are written to, by the driver itself where it can do that: given by whoever starts the
/// stream, who also says which of its slots is filled next.
///
/// It is used by the thread that starts the stream until that is done, then by the loop, but for ``filled(_:_:)``; the
/// pixels of a slot belong to the device from ``take()`` until the slot comes out of ``FrameStream/dequeue()``.
public protocol SlotMemory: AnyObject {
    /// All slots: of the same size, each on pages of its own, and in the same place as long as this lives.
    var slots: [UnsafeMutableRawBufferPointer] { get }

    /// A slot that the device is to fill; nil while it has as many as it may have.
    func take() -> Int?

    /// Told of a filled slot where a device has a thread of its own that fills them: on that thread, before the slot
    /// comes out of ``FrameStream/dequeue()``. Who reads the memory itself has it then, and needn't wait until the loop
    /// has woken. A driver in the kernel has no such thread here, and the loop is the first to know.
    func filled(_ slot: FrameSlot, _ source: TimestampSource)
}

/// Makes the memory of a stream once it is known what the frames are like; asked again when the device turns out to
/// have others. What it gave before is of no use then.
///
/// - Parameters:
///   - layout: how a frame lies in its slot.
///   - bytes: of a slot at least; more than the layout's where a driver wants room behind the picture.
public typealias SlotAllocator =
    (_ layout: FrameLayout, _ bytes: Int) throws(SourceError) -> any SlotMemory

/// How frames come into the slots of a stream.
public enum FrameMemory: String, Hashable, Sendable {
    /// The driver writes right into them (`V4L2_MEMORY_USERPTR`).
    case userptr
    /// The driver writes into memory of its own (`V4L2_MEMORY_MMAP`), and each frame is copied once.
    case mmap
    /// They are drawn there.
    case virtual
}

extension SlotMemory {
    public func filled(_ slot: FrameSlot, _ source: TimestampSource) {}

    /// The slots as those of a stream.
    func frameSlots() -> [FrameSlot] {
        slots.enumerated().map { FrameSlot(index: $0.offset, regions: [$0.element]) }
    }
}
