public import CaptureCore
import Glibc
import LinuxIO
package import Video4Linux

/// The running queue of a V4L2 device.
public final class V4L2Stream: FrameStream {
    public let layout: FrameLayout
    public let frameDuration: FrameDuration?
    public private(set) var timestampSource: TimestampSource
    public let slots: [FrameSlot]
    public let descriptor: Int32

    // The mapped memory lives as long as this stream does, whatever becomes of the device.
    private let queue: V4L2BufferQueue
    private var sequence = V4L2SequenceCounter()

    /// A stream over a queue whose buffers are all the driver's. `descriptor` is the node's and must stay open as long as this lives.
    package init(
        _ queue: V4L2BufferQueue, format: V4L2Format, frameDuration: FrameDuration?, descriptor: Int32
    ) {
        self.queue = queue
        self.frameDuration = frameDuration
        self.descriptor = descriptor
        layout = FrameLayout(format, regions: queue.buffers[0].map(\.count))
        slots = queue.buffers.enumerated().map { FrameSlot(index: $0.offset, regions: $0.element) }
        timestampSource = V4L2Stream.source(flags: queue.initialFlags)
    }

    public func dequeue() throws(SourceError) -> FrameSlot? {
        let filled: V4L2BufferQueue.Filled
        do throws(V4L2Error) {
            guard let next = try queue.dequeue() else { return nil }
            filled = next
        } catch { throw SourceError(error, .dequeuing) }
        let slot = slots[filled.index]
        for index in slot.regions.indices {
            let picture = queue.filled(plane: index, of: filled.index)
            if picture.lowerBound > 0, let start = slot.regions[index].baseAddress {
                // The layout has no room for a header before the picture that may differ from frame to frame. Devices with one are rare.
                memmove(start, start + picture.lowerBound, picture.count)
            }
            slot.bytesUsed[index] = picture.count
        }
        slot.captureSequence = sequence.extended(filled.sequence)
        slot.isCorrupt = filled.isDamaged
        timestampSource = V4L2Stream.source(flags: filled.flags)
        if timestampSource == .dequeue || filled.timestamp <= 0 {
            timestampSource = .dequeue
            slot.monotonicTime = MonotonicClock.now()
        } else {
            slot.monotonicTime = filled.timestamp
        }
        return slot
    }

    public func enqueue(_ slot: FrameSlot) throws(SourceError) {
        do throws(V4L2Error) { try queue.enqueue(slot.index) } catch { throw SourceError(error, .streaming) }
    }

    private static func source(flags: UInt32) -> TimestampSource {
        guard V4L2BufferQueue.isMonotonic(flags: flags) else { return .dequeue }
        return V4L2BufferQueue.isStartOfExposure(flags: flags) ? .startOfExposure : .endOfFrame
    }
}
