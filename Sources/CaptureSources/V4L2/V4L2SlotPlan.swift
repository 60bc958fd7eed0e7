package import CaptureCore
import Glibc
package import Video4Linux

/// How the regions of a driver's buffer come together in one slot: each region's picture, one after the other.
package struct V4L2SlotPlan {
    /// How a frame lies in its slot.
    package var layout: FrameLayout
    /// Bytes that a slot needs.
    package let bytes: Int
    private let parts: [Part]

    /// What of a region goes into the slot.
    private struct Part {
        /// Where in the slot.
        var offset: Int
        var room: Int
        /// Bytes that may be missing at the end: what pads the last line.
        var padding: Int
    }

    /// - Parameter regions: bytes of each region of a buffer.
    package init(_ format: V4L2Format, regions: [Int]) {
        let spread = FrameLayout(format, regions: regions)
        guard !spread.pixelFormat.isCompressed, let first = regions.first else {
            let room = regions.first ?? 0
            parts = [Part(offset: 0, room: room, padding: 0)]
            layout = FrameLayout(
                spread.description,
                planes: [PlaneLayout(offset: 0, stride: 0, bytes: room)])
            bytes = room
            return
        }
        var parts: [Part] = []
        var planes: [PlaneLayout] = []
        var (start, end) = (0, first)
        var offset = 0
        for region in regions.indices {
            if region > 0 { (start, end) = (end, end + regions[region]) }
            let own = spread.planes.filter { $0.offset >= start && $0.offset < end }
            let last = own.max { $0.offset + $0.bytes < $1.offset + $1.bytes }
            let room = last.map { min($0.offset + $0.bytes, end) - start } ?? 0
            for plane in own {
                planes.append(
                    PlaneLayout(offset: offset + plane.offset - start, stride: plane.stride, bytes: plane.bytes))
            }
            parts.append(
                Part(offset: offset, room: room, padding: last.map { max(0, min($0.stride, $0.bytes) - 1) } ?? 0))
            offset += room
        }
        self.parts = parts
        layout = FrameLayout(spread.description, planes: planes)
        bytes = offset
    }

    /// Copies the buffer that was dequeued last. What a driver leaves out of the last line of a region that others
    /// follow becomes 0; a frame of which more is missing ends there.
    func copy(_ index: Int, of queue: V4L2BufferQueue, into slot: FrameSlot) {
        slot.bytesUsed[0] = 0
        guard let target = slot.regions[0].baseAddress else { return }
        let buffer = queue.buffers[index]
        for region in 0..<min(parts.count, buffer.count) where parts[region].room > 0 {
            let part = parts[region]
            // Behind a header of the device's, where there is one.
            let picture = queue.filled(plane: region, of: index)
            let count = min(picture.count, part.room, max(0, slot.regions[0].count - part.offset))
            if count > 0, let source = buffer[region].baseAddress {
                memcpy(target + part.offset, source + picture.lowerBound, count)
            }
            slot.bytesUsed[0] = part.offset + count
            guard count < part.room, region + 1 < parts.count else { continue }
            guard count >= part.room - part.padding, part.offset + part.room <= slot.regions[0].count else { return }
            memset(target + part.offset + count, 0, part.room - count)
        }
    }
}
