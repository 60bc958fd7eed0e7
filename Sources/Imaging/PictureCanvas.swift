public import BusProtocol
public import CaptureCore
public import FFmpeg
public import TurboJPEG

/// A picture in memory (planar YUV, 4:2:0) with square pixels, in which others are drawn as large as they can be, with
/// their own shape. Used by one thread at a time.
public final class PictureCanvas {
    public let layout: FrameLayout
    private let room: UnsafeMutableRawBufferPointer
    /// Of pictures that have to be turned; made for the first one.
    private var unturned: PictureCanvas?

    public var dimensions: Dimensions { layout.dimensions }

    /// Black.
    public init(_ dimensions: Dimensions, _ color: ColorDescription) throws(MediaError) {
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
    public func clear() {
        let black: UInt8 = layout.description.color.range == .full ? 0 : 16
        for (index, plane) in layout.planes.enumerated() {
            UnsafeMutableRawBufferPointer(rebasing: room[plane.offset..<plane.offset + plane.bytes])
                .initializeMemory(as: UInt8.self, repeating: index == 0 ? black : 128)
        }
    }

    deinit { room.deallocate() }

    public var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(room) }

    /// What it is to FFmpeg.
    public var description: ImageDescription { description(dimensions) }

    private func description(_ size: Dimensions) -> ImageDescription {
        let color = layout.description.color
        return ImageDescription(
            .yuv420p, width: size.width, height: size.height, range: color.range == .full ? .full : .limited,
            matrix: ColorMatrix(code: color.matrix?.code))
    }

    public var planes: ImagePlanes { planes(x: 0, y: 0) }

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
    ///
    /// - Parameter orientation: how it is turned; nil: so that it is upright.
    public func draw(_ reader: MovieReader, turned orientation: PictureOrientation? = nil) throws(MediaError) {
        let orientation = orientation ?? reader.track.orientation
        let fitted = Self.fit(orientation.turned(reader.track.squareDimensions), into: dimensions)
        let place = planes(
            x: (dimensions.width - fitted.width) / 2 & ~1, y: (dimensions.height - fitted.height) / 2 & ~1)
        guard orientation != .upright else { return try reader.copyPicture(as: description(fitted), to: place) }
        let size = orientation.turned(fitted)
        if unturned?.dimensions != size { unturned = try PictureCanvas(size, layout.description.color) }
        guard let unturned else { return }
        try reader.copyPicture(as: unturned.description, to: unturned.planes)
        for (index, plane) in unturned.layout.planes.enumerated() {
            guard let (source, stride) = unturned.planes[index], let (target, targetStride) = place[index] else {
                continue
            }
            let part = Dimensions(
                width: index == 0 ? size.width : (size.width + 1) / 2, height: plane.bytes / plane.stride)
            PlaneTurner.turn(
                source, stride: stride, part, bytesPerPixel: 1, orientation, to: target, targetStride: targetStride)
        }
    }

    /// The picture as JPEG, which has its colours in full range (JFIF).
    public func jpeg(quality: Int) throws(JPEGError) -> [UInt8] {
        guard let y = planes[0], let u = planes[1], let v = planes[2] else { return [] }
        let planes = YUVPlanes(
            y: y.base, yStride: y.stride, u: u.base, uStride: u.stride, v: v.base, vStride: v.stride)
        var bytes = [UInt8](
            repeating: 0,
            count: JPEGCompressor.maximumBytes(
                width: dimensions.width, height: dimensions.height, subsampling: .s420))
        var result: Result<Int, JPEGError> = .success(0)
        bytes.withUnsafeMutableBytes { room in
            result = Result { () throws(JPEGError) in
                try JPEGCompressor().compress(
                    planes, width: dimensions.width, height: dimensions.height, subsampling: .s420, quality: quality,
                    into: room)
            }
        }
        bytes.removeLast(bytes.count - (try result.get()))
        return bytes
    }

    /// The largest size of that shape that has room there, even unless it is all of it.
    public static func fit(_ shape: Dimensions, into room: Dimensions) -> Dimensions {
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
    public var orientation: PictureOrientation { PictureOrientation(turn) }

    /// Pixels of its pictures when they are upright and have square pixels.
    public var uprightDimensions: Dimensions { orientation.turned(squareDimensions) }

    fileprivate var squareDimensions: Dimensions {
        let shape = picture.pixelShape
        let stretched = (width * shape.width + shape.height / 2) / max(1, shape.height)
        // What nobody could show is not believed.
        let isShown = (1...16384).contains(stretched)
        return Dimensions(width: isShown ? stretched : width, height: height)
    }

    /// The colours of its pictures in a ``PictureCanvas``, in video range: those that it states, as far as luma and
    /// chroma can have them.
    public var canvasColor: ColorDescription {
        var result = FormatDescription(pixelFormat: .i420, dimensions: Dimensions(width: width, height: height)).color
        let color = picture.color
        result.primaries = color.primaries.flatMap { ColorPrimaries(code: $0) } ?? result.primaries
        result.transferFunction =
            color.transferFunction.flatMap { TransferFunction(code: $0) } ?? result.transferFunction
        if let matrix = color.matrix.flatMap({ YCbCrMatrix(code: $0) }), matrix != .gbr { result.matrix = matrix }
        return result
    }
}
