public import CaptureCore
import LinuxIO
package import Video4Linux

/// The running queue of a V4L2 device whose driver writes into memory of its own only: each frame is copied once, into
/// the slot that is the next to be filled, and its buffer goes back to the driver at once.
public final class V4L2CopyingStream: FrameStream {
    public var layout: FrameLayout { plan.layout }
    public let frameDuration: FrameDuration?
    public var timestampSource: TimestampSource { stamps.source }
    public var memory: FrameMemory { .mmap }
    public let slots: [FrameSlot]
    public let descriptor: Int32

    private let queue: V4L2BufferQueue
    private let plan: V4L2SlotPlan
    private let slotMemory: any SlotMemory
    private var stamps: V4L2FrameStamps
    /// Slots to be filled, in the order in which they came; never more than there are.
    private var waiting: [Int] = []
    /// Buffers that the driver still has or had last.
    private var buffers: Int

    /// A stream over a queue whose buffers are all the driver's. `descriptor` is the node's and must stay open as long
    /// as this lives.
    package init(
        _ queue: V4L2BufferQueue, _ plan: V4L2SlotPlan, _ memory: any SlotMemory, frameDuration: FrameDuration?,
        descriptor: Int32
    ) {
        self.queue = queue
        self.plan = plan
        self.frameDuration = frameDuration
        self.descriptor = descriptor
        slotMemory = memory
        slots = memory.frameSlots()
        stamps = V4L2FrameStamps(flags: queue.initialFlags)
        buffers = queue.buffers.count
        waiting.reserveCapacity(slots.count)
        while let slot = memory.take() { waiting.append(slot) }
    }

    public func dequeue() throws(SourceError) -> FrameSlot? {
        for _ in 0..<queue.buffers.count {
            let filled: V4L2BufferQueue.Filled
            do throws(V4L2Error) {
                guard let next = try queue.dequeue() else { return nil }
                filled = next
            } catch { throw SourceError(error, .dequeuing) }
            // Without a slot the frame is lost, and shows as a hole in the count, as with a driver that has no buffer.
            let slot = waiting.isEmpty ? nil : slots[waiting.removeFirst()]
            if let slot {
                plan.copy(filled.index, of: queue, into: slot)
                stamps.describe(filled, slot)
            }
            do throws(V4L2Error) {
                try queue.enqueue(filled.index)
            } catch {
                // It goes on with the others as long as one can be filled while another is copied.
                buffers -= 1
                if buffers < 2 { throw SourceError(error, .streaming) }
            }
            if let slot { return slot }
        }
        return nil
    }

    public func enqueue(_ slot: FrameSlot) throws(SourceError) {
        guard slots.indices.contains(slot.index), waiting.count < slots.count else {
            throw SourceError(
                .failed, operation: "VIDIOC_QBUF", message: "slot \(slot.index) is not one of this stream")
        }
        waiting.append(slot.index)
    }
}
