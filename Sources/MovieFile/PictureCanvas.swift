import CaptureCore
import FFmpeg

/// A picture in memory (planar YUV, 4:2:0), in which others are drawn as large as they can be, with their own shape.
final class PictureCanvas {
    let dimensions: Dimensions
    let layout: FrameLayout
    private let room: UnsafeMutableRawBufferPointer

    /// Black of a limited range.
    init(_ dimensions: Dimensions) throws(MediaError) {
        guard let layout = FrameLayout.packed(.i420, dimensions), layout.totalBytes > 0 else {
            throw MediaError("copyPicture", message: "no size")
        }
        self.dimensions = dimensions
        self.layout = layout
        room = .allocate(byteCount: layout.totalBytes, alignment: 64)
        clear()
    }

    /// Black.
    func clear() {
        for (index, plane) in layout.planes.enumerated() {
            UnsafeMutableRawBufferPointer(rebasing: room[plane.offset..<plane.offset + plane.bytes])
                .initializeMemory(as: UInt8.self, repeating: index == 0 ? 16 : 128)
        }
    }

    deinit { room.deallocate() }

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(room) }

    var planes: ImagePlanes { planes(x: 0, y: 0) }

    // From a place on, both even.
    private func planes(x: Int, y: Int) -> ImagePlanes {
        var planes = ImagePlanes()
        guard let base = room.baseAddress else { return planes }
        for (index, plane) in layout.planes.enumerated() {
            let (column, line) = index == 0 ? (x, y) : (x / 2, y / 2)
            planes[index] = (base + plane.offset + line * plane.stride + column, plane.stride)
        }
        return planes
    }

    /// Draws the last picture of a reader. Pictures of one shape cover each other.
    func draw(_ reader: MovieReader, range: ColorRange) throws(MediaError) {
        let shape = Dimensions(width: reader.track.width, height: reader.track.height)
        let fitted = Self.fit(shape, into: dimensions)
        let planes = planes(
            x: (dimensions.width - fitted.width) / 2 & ~1, y: (dimensions.height - fitted.height) / 2 & ~1)
        try reader.copyPicture(
            as: ImageDescription(.yuv420p, width: fitted.width, height: fitted.height, range: range), to: planes)
    }

    /// The largest size of that shape that has room there, even unless it is all of it.
    static func fit(_ shape: Dimensions, into room: Dimensions) -> Dimensions {
        guard shape != room else { return room }
        let scale = min(Double(room.width) / Double(shape.width), Double(room.height) / Double(shape.height))
        func side(_ length: Int, _ most: Int) -> Int {
            min(most & ~1, max(2, Int((Double(length) * scale / 2).rounded()) * 2))
        }
        return Dimensions(width: side(shape.width, room.width), height: side(shape.height, room.height))
    }
}
