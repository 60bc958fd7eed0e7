import BusProtocol
import CaptureCore
import FFmpeg
import Imaging

/// A picture in memory (planar YUV, 4:2:0) with square pixels, in which others are drawn upright and as large as they
/// can be, with their own shape.
final class PictureCanvas {
    let layout: FrameLayout
    private let room: UnsafeMutableRawBufferPointer
    /// Of pictures that have to be turned; made for the first one.
    private var unturned: PictureCanvas?

    var dimensions: Dimensions { layout.dimensions }

    /// Black.
    init(_ dimensions: Dimensions, _ color: ColorDescription) throws(MediaError) {
        var description = FormatDescription(pixelFormat: .i420, dimensions: dimensions)
        description.color = color
        guard let layout = FrameLayout.packed(description), layout.totalBytes > 0 else {
            throw MediaError("copyPicture", message: "no size")
        }
        self.layout = layout
        room = .allocate(byteCount: layout.totalBytes, alignment: 64)
        clear()
    }

    /// Black.
    func clear() {
        let black: UInt8 = layout.description.color.range == .full ? 0 : 16
        for (index, plane) in layout.planes.enumerated() {
            UnsafeMutableRawBufferPointer(rebasing: room[plane.offset..<plane.offset + plane.bytes])
                .initializeMemory(as: UInt8.self, repeating: index == 0 ? black : 128)
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
    func draw(_ reader: MovieReader) throws(MediaError) {
        let fitted = Self.fit(reader.track.uprightDimensions, into: dimensions)
        let place = planes(
            x: (dimensions.width - fitted.width) / 2 & ~1, y: (dimensions.height - fitted.height) / 2 & ~1)
        let orientation = reader.track.orientation
        guard orientation != .upright else { return try copy(reader, fitted, to: place) }
        let size = orientation.turned(fitted)
        if unturned?.dimensions != size { unturned = try PictureCanvas(size, layout.description.color) }
        guard let unturned else { return }
        try copy(reader, size, to: unturned.planes)
        for (index, plane) in unturned.layout.planes.enumerated() {
            guard let (source, stride) = unturned.planes[index], let (target, targetStride) = place[index] else {
                continue
            }
            let isChroma = index > 0
            PlaneTurner.turn(
                source, stride: stride,
                Dimensions(width: isChroma ? (size.width + 1) / 2 : size.width, height: plane.bytes / plane.stride),
                bytesPerPixel: 1, orientation, to: target, targetStride: targetStride)
        }
    }

    private func copy(_ reader: MovieReader, _ size: Dimensions, to planes: ImagePlanes) throws(MediaError) {
        guard var description = PictureTrack.description(layout) else { return }
        (description.width, description.height) = (size.width, size.height)
        try reader.copyPicture(as: description, to: planes)
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

extension VideoTrack {
    /// How its pictures are turned to be upright.
    var orientation: PictureOrientation {
        PictureOrientation(quarters: turn.quarters, isMirrored: turn.isMirrored)
    }

    /// Pixels of its pictures when they are upright and have square pixels.
    var uprightDimensions: Dimensions {
        // What nobody could show is not believed.
        let stretched = (width * pixelShape.width + pixelShape.height / 2) / max(1, pixelShape.height)
        let isShown = (1...16384).contains(stretched)
        return orientation.turned(Dimensions(width: isShown ? stretched : width, height: height))
    }

    /// The colours of its pictures in ``PictureCanvas``, in video range: those that it states, as far as luma and
    /// chroma can have them.
    var canvasColor: ColorDescription {
        var result = FormatDescription(pixelFormat: .i420, dimensions: Dimensions(width: width, height: height)).color
        result.primaries = color.primaries.flatMap { ColorPrimaries(code: $0) } ?? result.primaries
        result.transferFunction =
            color.transferFunction.flatMap { TransferFunction(code: $0) } ?? result.transferFunction
        if let matrix = color.matrix.flatMap({ YCbCrMatrix(code: $0) }), matrix != .gbr { result.matrix = matrix }
        return result
    }
}
