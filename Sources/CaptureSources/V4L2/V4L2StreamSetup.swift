import BusProtocol
import CaptureCore
import Glibc
import Video4Linux

/// How the stream of a V4L2 device is set up and started: with buffers that are the slots themselves where the driver
/// takes them, else with the driver's own and a copy of each frame.
struct V4L2StreamSetup {
    let node: any V4L2Device
    let type: V4L2BufferType
    /// nil: all of the sensor's picture is taken.
    let crop: V4L2CropRectangle?
    /// How many buffers of the driver's own are asked for.
    let buffers: Int
    /// Told of the memory that the kernel has pointers to, before it has; and (nil) when it has none any more.
    let hold: ((any SlotMemory)?) -> Void

    func start(_ allocate: SlotAllocator) throws(SourceError) -> any FrameStream {
        // The planes of a multi-planar buffer are regions of their own, which have no common slot.
        if type == .capture {
            do throws(SourceError) {
                if let stream = try writeIntoSlots(allocate) { return stream }
            } catch {
                if isFinal(error) { throw error }
            }
        }
        return try copyIntoSlots(allocate)
    }

    /// Another way of giving it memory would change nothing.
    private func isFinal(_ error: SourceError) -> Bool {
        error.kind == .disconnected || error.kind == .inUse || error.errno == ENOSPC
    }

    /// nil if there is no saying how large a slot has to be, or if the driver has fewer buffers than there are slots.
    private func writeIntoSlots(_ allocate: SlotAllocator) throws(SourceError) -> (any FrameStream)? {
        var format = try translating(.streaming) { () throws(V4L2Error) in try node.format(type) }
        var duration = try frameDuration()
        guard var (memory, layout) = try slots(for: format, duration, allocate) else { return nil }
        let given = try translating(.streaming) { () throws(V4L2Error) in
            try node.requestUserBuffers(type, count: memory.slots.count)
        }
        do throws(SourceError) {
            // From here on nobody else can change it.
            let settled = try translating(.streaming) { () throws(V4L2Error) in try node.format(type) }
            let settledDuration = try frameDuration()
            if settled != format || settledDuration != duration {
                (format, duration) = (settled, settledDuration)
                guard let again = try slots(for: format, duration, allocate) else { throw refused }
                (memory, layout) = again
            }
            // A buffer that always has the same memory is made known to the kernel once, not for each frame.
            guard given >= memory.slots.count else { throw refused }
            hold(memory)
            try populate(memory)
            let queue = V4L2BufferQueue(node, userMemory: memory.slots)
            try translating(.streaming) { () throws(V4L2Error) in
                while let slot = memory.take() { try queue.enqueue(slot) }
                try node.startStreaming(type)
            }
            return V4L2Stream(queue, layout, memory, frameDuration: duration, descriptor: node.descriptor)
        } catch {
            free(.userptr)
            throw error
        }
    }

    private func copyIntoSlots(_ allocate: SlotAllocator) throws(SourceError) -> any FrameStream {
        let queue = try translating(.streaming) { () throws(V4L2Error) in
            try V4L2BufferQueue(node, type, count: buffers)
        }
        // It has let go of what it may have had of a former stream.
        hold(nil)
        do throws(SourceError) {
            let format = try translating(.streaming) { () throws(V4L2Error) in try node.format(type) }
            let duration = try frameDuration()
            var plan = V4L2SlotPlan(format, regions: queue.buffers[0].map(\.count))
            plan.layout.description.frameDuration = duration
            try describeCrop(&plan.layout)
            let memory = try allocate(plan.layout, plan.bytes)
            guard memory.slots.allSatisfy({ $0.count >= plan.bytes }) else { throw refused }
            try translating(.streaming) { () throws(V4L2Error) in
                for index in queue.buffers.indices { try queue.enqueue(index) }
                try node.startStreaming(type)
            }
            return V4L2CopyingStream(queue, plan, memory, frameDuration: duration, descriptor: node.descriptor)
        } catch {
            free(.mmap)
            throw error
        }
    }

    private func describeCrop(_ layout: inout FrameLayout) throws(SourceError) {
        guard let crop else { return }
        let description = layout.description
        layout.description = try translating(.streaming) { () throws(V4L2Error) in
            try crop.completed(description, node, type)
        }
    }

    private func frameDuration() throws(SourceError) -> FrameDuration? {
        try translating(.streaming) { () throws(V4L2Error) in
            try node.frameInterval(type).flatMap(FrameDuration.init)
        }
    }

    /// Slots as large as the driver wants its buffers.
    private func slots(
        for format: V4L2Format, _ duration: FrameDuration?, _ allocate: SlotAllocator
    ) throws(SourceError) -> (any SlotMemory, FrameLayout)? {
        let bytes = format.planes.first.map { Int($0.sizeImage) } ?? 0
        guard bytes > 0 else { return nil }
        var layout = FrameLayout(format, regions: [bytes])
        layout.description.frameDuration = duration
        try describeCrop(&layout)
        let memory = try allocate(layout, bytes)
        guard !memory.slots.isEmpty, memory.slots.allSatisfy({ $0.count >= bytes }) else { return nil }
        return (memory, layout)
    }

    // Here and now, where a lack of memory is an error, and not frame by frame on the loop.
    private func populate(_ memory: any SlotMemory) throws(SourceError) {
        for slot in memory.slots where madvise(slot.baseAddress, slot.count, MADV_POPULATE_WRITE) != 0 {
            // Kernels before 5.14 don't know it.
            guard errno != EINVAL else { return }
            throw SourceError(
                .noResources, operation: "madvise", errno: errno,
                message: "\(node.path): no memory for \(memory.slots.count) slots of \(slot.count) bytes")
        }
    }

    private func free(_ memory: V4L2Memory) {
        // What a driver doesn't let go of stays where it is until the node is closed.
        if (try? node.freeBuffers(type, memory)) != nil { hold(nil) }
    }

    private var refused: SourceError {
        SourceError(
            .refused, operation: "VIDIOC_REQBUFS", errno: EINVAL,
            message: "\(node.path): the driver's buffers don't match the slots")
    }
}
