public import BusProtocol
public import CaptureCore
import FFmpeg
import TurboJPEG

/// Makes pictures of one kind out of a device's frames of one layout. Owned by one thread.
///
/// What is needed on the way is made at the start or with the first frame; later frames allocate nothing.
public final class PictureConverter {
    /// How the result lies: pixel format, size, planes. For JPEG one plane with stride 0, whose `bytes` is the room
    /// that a picture can take; what one takes is told by ``convert(_:bytesUsed:zoom:into:)``.
    public let outputLayout: FrameLayout

    private let reader: FrameReader
    private let request: PictureRequest
    /// nil: of pictures that aren't JPEG, or have square pixels.
    private let density: JFIFDensity?
    /// Of whole frames.
    private let whole: Way
    /// Of their middle, while they are zoomed.
    private var middle: (part: CropRectangle, way: Way)?

    private enum Way {
        case planar(FrameUnpacker, PictureCut?, PlanarScaler, PictureFinish)
        /// RGB to RGB, in one go.
        case scaler(ScalerStage)
        /// The same, and then turned, or cut out.
        case turnedScaler(ScalerStage, CropRectangle?, PictureRequest)
        case jpeg(FrameReader, JPEGConverter)
        /// Samples of 16 bits, of frames that have more than 8.
        case deep(DeepPicture)
        /// The same of 8, made wider.
        case widened(PictureConverter, PictureBuffer)
    }

    /// - Throws: `formatUnsupported` if no such picture can be made of the device's pixel format.
    public init(from layout: FrameLayout, to request: PictureRequest) throws(BusError) {
        guard let format = SourceFormat(layout.pixelFormat) else { throw Self.unconvertible(layout.pixelFormat) }
        if let obstacle = Self.obstacle(to: layout.description.color, request.encoding) { throw obstacle }
        guard let reader = FrameReader(format, layout) else {
            throw BusError(.formatUnsupported, "the device reports an impossible layout for \(layout.pixelFormat.name)")
        }
        guard let made = layout.description.made(request), let outputLayout = FrameLayout.packed(made)
        else { throw BusError(.formatUnsupported, "native is not converted; the device delivers it") }
        self.outputLayout = outputLayout
        self.reader = reader
        self.request = request
        density = request.encoding == .jpeg ? JFIFDensity(made.extensions.pixelAspectRatio) : nil
        var narrow: PictureConverter?
        if let encoding = request.encoding.narrow, !format.isDeep {
            var request = request
            request.encoding = encoding
            narrow = try PictureConverter(from: layout, to: request)
        }
        do {
            whole = try Self.way(reader, request, outputLayout, part: request.crop, narrow: narrow)
        } catch {
            throw BusError(
                .formatUnsupported,
                "\(layout.pixelFormat.name) \(layout.dimensions) can't be converted to \(request.encoding.rawValue)"
                    + " \(request.dimensions): \(error)")
        }
    }

    /// Whether pictures can be made of frames of a pixel format at all.
    public static func converts(_ format: PixelFormat) -> Bool { SourceFormat(format) != nil }

    /// Why no pictures can be made of frames of a pixel format; nil: they can.
    public static func obstacle(to format: PixelFormat) -> BusError? {
        converts(format) ? nil : unconvertible(format)
    }

    /// Colours that are no weighted sum of red, green and blue, pixel by pixel. Luma, and luma with its chroma, are
    /// passed on with their matrix.
    private static func obstacle(to color: ColorDescription, _ encoding: Rendition.Encoding) -> BusError? {
        guard let matrix = color.matrix, !matrix.isConvertible else { return nil }
        switch encoding {
        case .bgr, .rgb, .rgb48, .jpeg: break
        case .native, .gray, .gray16, .yuyv, .nv12, .i420: return nil
        }
        return BusError(
            .formatUnsupported,
            "colours of the matrix \(matrix.rawValue) can't be converted to \(encoding.rawValue); native, nv12 and "
                + "gray have them unchanged")
    }

    private static func unconvertible(_ format: PixelFormat) -> BusError {
        BusError(
            .formatUnsupported,
            "frames of \(format.name) are available as native only; choose another format of the device")
    }

    /// - Parameters:
    ///   - part: of the frame; nil: all of it.
    ///   - narrow: makes the same of 8 bits, where 16 are asked for.
    ///   - known: what planes went through last until now.
    private static func way(
        _ frame: FrameReader, _ request: PictureRequest, _ layout: FrameLayout, part: CropRectangle?,
        narrow: PictureConverter? = nil, known: [PictureFinish?] = []
    ) throws(ConversionError) -> Way {
        if let narrow { return .widened(narrow, PictureBuffer()) }
        let isRGB = request.encoding == .bgr || request.encoding == .rgb
        var reader = frame
        var inner: CropRectangle?
        if let part, frame.format != .jpeg {
            let outer = part.widened(by: frame.format.margin, within: frame.dimensions).grown(to: frame.format.grain)
            reader = frame.part(outer)
            if outer != part { inner = part.within(outer) }
        }
        if request.encoding.isDeep, let picture = try DeepPicture(reader, request, layout, part: inner) {
            return .deep(picture)
        }
        let size = inner?.dimensions ?? reader.dimensions
        // Chroma of half the width and height is still as fine as a picture of at most that size needs, and scaling it
        // takes a quarter of the time that libswscale takes from RGB to RGB.
        let wanted = request.unturned
        let isSmall = wanted.width <= size.width / 2 && wanted.height <= size.height / 2
        var isFromRGB = false
        switch reader.format {
        case .jpeg: return .jpeg(reader, try JPEGConverter(size, request))
        case .packedRGB, .converted, .deepBayer: isFromRGB = true
        default: break
        }
        if isFromRGB, isRGB, let inner, size == wanted {
            let stage = try ScalerStage(reader, to: request.encoding == .bgr ? .bgr24 : .rgb24)
            return .turnedScaler(stage, inner, request)
        }
        if isFromRGB, isRGB, !isSmall, inner == nil {
            let target: ImageFormat = request.encoding == .bgr ? .bgr24 : .rgb24
            let stage = try ScalerStage(reader, to: target, dimensions: wanted)
            return request.orientation == .upright ? .scaler(stage) : .turnedScaler(stage, nil, request)
        }
        // What a part that begins within a block of chroma has is no more than the block had.
        let isScaled = size != wanted || inner != nil
        // A change of matrix changes the range, too.
        let keepsRange = isScaled || (request.encoding == .jpeg && reader.matrix != .bt601)
        let unpacker = try FrameUnpacker(
            reader, lumaOnly: request.encoding == .gray, range: keepsRange ? nil : request.encoding.range)
        let cut = try inner.map { (inner) throws(ConversionError) in try PictureCut(inner, chroma: unpacker.chroma) }
        let source = cut == nil ? unpacker.chroma : cut?.chroma
        let chroma =
            isFromRGB && isRGB
            ? .s444
            : PictureTurner.chroma(
                PicturePacker.chroma(
                    for: request, source: source.map { request.orientation.turned($0) }, isScaled: isScaled),
                request)
        let unturned = chroma.map { request.orientation.turned($0) }
        let scaler = try PlanarScaler(from: size, chroma: source, to: wanted, chroma: unturned)
        return .planar(
            unpacker, cut, scaler,
            try .make(request, chroma: chroma, range: unpacker.range, matrix: unpacker.matrix, known: known))
    }

    /// Makes the picture of one frame.
    ///
    /// - Parameters:
    ///   - regions: the frame's memory, as its slot has it.
    ///   - bytesUsed: how much of each region the device filled.
    ///   - zoom: how many times its middle is enlarged, in thousandths. Another one than before costs some allocations.
    ///   - output: gets the picture; it grows if it has to.
    /// - Returns: the picture's bytes.
    public func convert(
        _ regions: [UnsafeRawBufferPointer], bytesUsed: [Int], zoom: Int = DigitalZoom.whole, into output: PictureBuffer
    ) throws(ConversionError) -> Int {
        output.setCount(0)
        switch try way(zoom) {
        case .planar(let unpacker, let cut, let scaler, let finish):
            let picture = try unpacker.unpack(regions, bytesUsed)
            try finish.write(try scaler.scale(try cut?.cut(picture) ?? picture), into: output)
        case .scaler(let stage):
            try output.reserve(outputLayout.totalBytes + 128)
            guard let base = output.room.baseAddress else { throw .failed("there is no room for the picture") }
            try stage.convert(regions, bytesUsed, to: ImagePlanes(base, stride: outputLayout.planes[0].stride))
            output.setCount(outputLayout.totalBytes)
        case .turnedScaler(let stage, let part, let request):
            let picture = try stage.convert(regions, bytesUsed)
            let start = part.map { $0.top * picture.stride + $0.left * 3 } ?? 0
            try output.setTurned(
                UnsafeRawBufferPointer(rebasing: picture.bytes.dropFirst(start)), stride: picture.stride,
                bytesPerPixel: 3, request, outputLayout)
        case .jpeg(let reader, let converter):
            try converter.convert(try reader.picture(regions, bytesUsed), outputLayout, zoom: zoom, into: output)
        case .deep(let picture): try picture.convert(regions, bytesUsed, into: output)
        case .widened(let converter, let narrow):
            _ = try converter.convert(regions, bytesUsed: bytesUsed, zoom: zoom, into: narrow)
            try output.setWidened(narrow, outputLayout)
        }
        if let density { density.write(to: output.room[..<output.count]) }
        return output.count
    }

    private func way(_ zoom: Int) throws(ConversionError) -> Way {
        if zoom <= DigitalZoom.whole {
            middle = nil
            return whole
        }
        // A part of a compressed picture is found when it is decoded.
        switch whole {
        case .jpeg, .widened: return whole
        case .planar, .scaler, .turnedScaler, .deep: break
        }
        let zoomed = CropRectangle(middleOf: reader.dimensions, zoom: zoom, block: reader.format.block)
        let part = request.crop?.zoomed(into: zoomed, of: reader.dimensions) ?? zoomed
        if let middle, middle.part == part { return middle.way }
        let known = [finish, Self.finish(whole)]
        // Their memory is not needed at the same time.
        middle = nil
        let way = try Self.way(reader, request, outputLayout, part: part, known: known)
        middle = (part, way)
        return way
    }

    /// What planes go through last, as of the last frame; nil: nothing is made of planes.
    var finish: PictureFinish? { Self.finish(middle?.way ?? whole) }

    private static func finish(_ way: Way) -> PictureFinish? {
        switch way {
        case .planar(_, _, _, let finish): finish
        case .jpeg(_, let converter): converter.finish
        case .scaler, .turnedScaler, .deep, .widened: nil
        }
    }
}
