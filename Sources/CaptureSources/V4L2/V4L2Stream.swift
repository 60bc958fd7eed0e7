public import CaptureCore
import LinuxIO
package import Video4Linux

/// The running queue of a V4L2 device whose driver writes right into the slots: buffer and slot have the same number.
public final class V4L2Stream: FrameStream {
    public let layout: FrameLayout
    public let frameDuration: FrameDuration?
    public var timestampSource: TimestampSource { stamps.source }
    public var memory: FrameMemory { .userptr }
    public let slots: [FrameSlot]
    public let descriptor: Int32

    private let queue: V4L2BufferQueue
    private let slotMemory: any SlotMemory
    private var stamps: V4L2FrameStamps

    /// A stream over a queue of the memory's slots. `descriptor` is the node's and must stay open as long as this
    /// lives.
    package init(
        _ queue: V4L2BufferQueue, _ layout: FrameLayout, _ memory: any SlotMemory, frameDuration: FrameDuration?,
        descriptor: Int32
    ) {
        self.queue = queue
        self.layout = layout
        self.frameDuration = frameDuration
        self.descriptor = descriptor
        slotMemory = memory
        slots = memory.frameSlots()
        stamps = V4L2FrameStamps(flags: queue.initialFlags)
    }

    public func dequeue() throws(SourceError) -> FrameSlot? {
        let filled: V4L2BufferQueue.Filled
        do throws(V4L2Error) {
            guard let next = try queue.dequeue() else { return nil }
            filled = next
        } catch { throw SourceError(error, .dequeuing) }
        let slot = slots[filled.index]
        slot.bytesUsed[0] = queue.filled(plane: 0, of: filled.index).count
        stamps.describe(filled, slot)
        return slot
    }

    public func enqueue(_ slot: FrameSlot) throws(SourceError) {
        do throws(V4L2Error) { try queue.enqueue(slot.index) } catch { throw SourceError(error, .streaming) }
    }
}

/// What a driver tells of its frames beside their pixels, in this project's words.
struct V4L2FrameStamps {
    private(set) var source: TimestampSource
    private var sequence = V4L2SequenceCounter()

    /// - Parameter flags: of the buffers before the first frame.
    init(flags: UInt32) { source = Self.source(flags) }

    mutating func describe(_ filled: V4L2BufferQueue.Filled, _ slot: FrameSlot) {
        slot.captureSequence = sequence.extended(filled.sequence)
        slot.isCorrupt = filled.isDamaged
        source = Self.source(filled.flags)
        if source == .dequeue || filled.timestamp <= 0 {
            source = .dequeue
            slot.monotonicTime = MonotonicClock.now()
        } else {
            slot.monotonicTime = filled.timestamp
        }
    }

    private static func source(_ flags: UInt32) -> TimestampSource {
        guard V4L2BufferQueue.isMonotonic(flags: flags) else { return .dequeue }
        return V4L2BufferQueue.isStartOfExposure(flags: flags) ? .startOfExposure : .endOfFrame
    }
}
