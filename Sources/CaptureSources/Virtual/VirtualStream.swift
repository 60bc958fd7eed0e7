public import CaptureCore
import Glibc
import LinuxIO

/// The running queue of a virtual camera. Its memory lives as long as this or the sensor does.
public final class VirtualStream: FrameStream {
    public let layout: FrameLayout
    public let frameDuration: FrameDuration?
    public var timestampSource: TimestampSource { .startOfExposure }
    public var memory: FrameMemory { .virtual }
    public var slots: [FrameSlot] { queue.slots }
    public var descriptor: Int32 { queue.ready.rawValue }

    private let queue: VirtualQueue

    init(_ queue: VirtualQueue, _ layout: FrameLayout, _ duration: FrameDuration) {
        self.queue = queue
        self.layout = layout
        frameDuration = duration
    }

    public func dequeue() throws(SourceError) -> FrameSlot? { try queue.dequeue() }

    public func enqueue(_ slot: FrameSlot) throws(SourceError) {
        guard queue.enqueue(slot) else {
            throw SourceError(
                .failed, operation: "VIDIOC_QBUF", errno: EINVAL,
                message: "slot \(slot.index) is not one that was dequeued from this stream")
        }
    }
}
