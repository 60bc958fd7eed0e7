public import CaptureCore

/// The running queue of a device, used on the loop thread only. No call blocks.
public protocol FrameStream: AnyObject {
    /// How each frame lies in its slot.
    var layout: FrameLayout { get }
    /// What the device really runs at; nil where it doesn't say.
    var frameDuration: FrameDuration? { get }
    var timestampSource: TimestampSource { get }
    /// How frames come into the slots.
    var memory: FrameMemory { get }
    /// All slots of the stream's memory, by their number there.
    var slots: [FrameSlot] { get }
    /// To be polled for input; readable (or in error) means that ``dequeue()`` has something to say.
    var descriptor: Int32 { get }
    /// The next filled slot, or nil when there is none yet (`VIDIOC_DQBUF`). An error means that this stream is over.
    func dequeue() throws(SourceError) -> FrameSlot?
    /// Gives the device a slot to fill that its memory gave out (`VIDIOC_QBUF`). An error means that the stream goes on
    /// without it.
    func enqueue(_ slot: FrameSlot) throws(SourceError)
}
