public import CaptureCore

/// The running queue of a device. Used on the loop's thread only; no call blocks.
public protocol FrameStream: AnyObject {
    /// How each frame lies in its slot.
    var layout: FrameLayout { get }
    /// The actual frame duration of the device; nil where it does not report one.
    var frameDuration: FrameDuration? { get }
    var timestampSource: TimestampSource { get }
    /// How frames come into the slots.
    var memory: FrameMemory { get }
    /// All slots of the stream's memory, by their number there.
    var slots: [FrameSlot] { get }
    /// To be polled for input: when it is readable or in error, ``dequeue()`` returns a frame or throws.
    var descriptor: Int32 { get }
    /// The next filled slot, or nil when none is filled yet (`VIDIOC_DQBUF`). An error means that this stream has
    /// ended.
    func dequeue() throws(SourceError) -> FrameSlot?
    /// Gives the device a slot of its memory to fill (`VIDIOC_QBUF`). An error means that the stream continues without
    /// that slot.
    func enqueue(_ slot: FrameSlot) throws(SourceError)
}
