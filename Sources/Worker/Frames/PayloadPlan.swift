import BusProtocol
import CaptureCore

/// How the bytes of a frame become the payload of a message: worked out once for a stream.
///
/// What lies in one region of a slot stays together as the device laid it; the regions follow one another.
struct PayloadPlan {
    /// Where the planes lie in the payload; nil for a compressed picture.
    let planes: [FrameHeader.Plane]?
    /// Bytes that each region gives to the payload; for a compressed picture at most so many.
    private let room: [Int]
    /// Bytes that may be missing at the end of each region: what pads the last line.
    private let padding: [Int]
    private let isCompressed: Bool

    /// nil for a layout that doesn't lie within the regions.
    ///
    /// - Parameter regions: bytes of each region of a slot.
    init?(_ layout: FrameLayout, regions: [Int]) {
        guard !layout.planes.isEmpty, !regions.isEmpty else { return nil }
        isCompressed = layout.pixelFormat.isCompressed
        if isCompressed {
            planes = nil
            room = [regions[0]]
            padding = [0]
            return
        }
        var room = Array(repeating: 0, count: regions.count)
        var padding = room
        var places: [(region: Int, start: Int, plane: PlaneLayout)] = []
        for plane in layout.planes {
            guard let (region, start) = Self.locate(plane.offset, in: regions), plane.bytes >= 0, plane.stride >= 0,
                plane.bytes <= regions[region] - start
            else { return nil }
            if start + plane.bytes > room[region] {
                room[region] = start + plane.bytes
                padding[region] = max(0, min(plane.stride, plane.bytes) - 1)
            }
            places.append((region, start, plane))
        }
        planes = places.map { place in
            FrameHeader.Plane(
                offset: room[..<place.region].reduce(place.start, +), stride: place.plane.stride,
                bytes: place.plane.bytes)
        }
        self.room = room
        self.padding = padding
    }

    /// Bytes that a payload has at most.
    var maximumBytes: Int { room.reduce(0, +) }

    /// Bytes of the payload of a frame that was filled so far; nil when too much of it is missing.
    func count(bytesUsed: [Int]) -> Int? {
        guard bytesUsed.count >= room.count else { return nil }
        if isCompressed { return bytesUsed[0] > 0 && bytesUsed[0] <= room[0] ? bytesUsed[0] : nil }
        var total = 0
        for region in room.indices {
            guard bytesUsed[region] >= room[region] - padding[region] else { return nil }
            total += room[region]
        }
        return total
    }

    /// Makes 0 what the device left out at the end of a frame that is its own payload: the slot of a layout with one
    /// region.
    func fillUp(_ slot: UnsafeMutableRawBufferPointer, bytesUsed: [Int]) {
        guard !isCompressed, let used = bytesUsed.first, used >= 0, used < room[0], room[0] <= slot.count else {
            return
        }
        _ = UnsafeMutableRawBufferPointer(rebasing: slot[used..<room[0]]).initializeMemory(as: UInt8.self, repeating: 0)
    }

    /// Copies a frame into a payload of ``count(bytesUsed:)`` bytes. What the device left out at the end becomes 0.
    func copy(
        _ regions: [UnsafeRawBufferPointer], bytesUsed: [Int], into payload: UnsafeMutableRawBufferPointer
    ) {
        guard !isCompressed else {
            return payload.copyMemory(from: UnsafeRawBufferPointer(rebasing: regions[0][..<payload.count]))
        }
        var offset = 0
        for region in room.indices where room[region] > 0 {
            let target = UnsafeMutableRawBufferPointer(rebasing: payload[offset..<offset + room[region]])
            let filled = min(bytesUsed[region], room[region])
            target.copyMemory(from: UnsafeRawBufferPointer(rebasing: regions[region][..<filled]))
            if filled < room[region] {
                _ = UnsafeMutableRawBufferPointer(rebasing: target[filled...]).initializeMemory(
                    as: UInt8.self, repeating: 0)
            }
            offset += room[region]
        }
    }

    private static func locate(_ offset: Int, in regions: [Int]) -> (region: Int, start: Int)? {
        guard offset >= 0 else { return nil }
        var start = offset
        for (region, bytes) in regions.enumerated() {
            if start < bytes { return (region, start) }
            start -= bytes
        }
        return nil
    }
}
