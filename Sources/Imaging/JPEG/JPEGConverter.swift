import BusProtocol
import CaptureCore
import FFmpeg
import TurboJPEG

/// Makes pictures out of JPEG ones: decoded no larger than needed, in the DCT domain.
final class JPEGConverter {
    private let dimensions: Dimensions
    private let request: PictureRequest
    private let decompressor: JPEGDecompressor
    /// Of whole pictures.
    private let scale: JPEGScale
    /// Pictures with what they lack.
    private let completed = PictureBuffer()
    /// Decoded pictures on their way to be turned.
    private let unturned = PictureBuffer()
    private var stage: Stage?
    /// For pictures without luma: made with the first.
    private var colorStage: JPEGColorStage?
    /// nil: pictures are turned after they are decoded, if at all.
    private let transform: (transformer: JPEGTransformer, wish: JPEGTransform)?

    /// What follows the decoder. It depends on the picture's own subsampling, which is known with the first frame.
    private struct Stage {
        var subsampling: ChromaSubsampling
        /// nil: of the whole picture.
        var zoom: Int?
        var part: Part?
        var memory: PlanarMemory
        var cut: PictureCut?
        var scaler: PlanarScaler
        var finish: PictureFinish
    }

    /// What planes go through last, as of the last picture that was made of planes.
    var finish: PictureFinish? { stage?.finish }

    /// The middle of a picture that is zoomed.
    private struct Part: Hashable {
        /// No larger than needed, as of the whole.
        var scale: JPEGScale
        /// Of the decoded picture.
        var rectangle: CropRectangle

        init(scale: JPEGScale, rectangle: CropRectangle) {
            (self.scale, self.rectangle) = (scale, rectangle)
        }

        /// - Parameter crop: of the whole picture.
        init(_ crop: CropRectangle, for wanted: Dimensions) {
            let parts = JPEGScale.allCases.sorted().compactMap { scale in
                crop.divided(by: scale.rawValue).map { Part(scale: scale, rectangle: $0) }
            }
            self = parts.first { $0.rectangle.dimensions.holds(wanted) } ?? Part(scale: .full, rectangle: crop)
        }
    }

    init(_ dimensions: Dimensions, _ request: PictureRequest) throws(ConversionError) {
        self.dimensions = dimensions
        self.request = request
        decompressor = try failing { () throws(JPEGError) in try JPEGDecompressor() }
        let wanted = request.unturned
        if request.encoding == .jpeg, request.keepsQuality, request.crop == nil, wanted == dimensions,
            let wish = request.orientation.jpeg
        {
            transform = (try failing { () throws(JPEGError) in try JPEGTransformer() }, wish)
        } else {
            transform = nil
        }
        scale =
            request.crop.map { Part($0, for: wanted).scale }
            ?? JPEGScale.allCases.sorted().first { $0.scaled(dimensions).holds(wanted) } ?? .full
    }

    func convert(
        _ picture: UnsafeRawBufferPointer, _ layout: FrameLayout, zoom: Int, into output: PictureBuffer
    ) throws(ConversionError) {
        let jpeg = try JPEGStream.complete(picture, into: completed) ? completed.bytes : picture
        let header = try decoding { () throws(JPEGError) in try decompressor.header(jpeg) }
        guard header.width == dimensions.width, header.height == dimensions.height else {
            throw .damaged("the picture has \(header.width)x\(header.height) pixels instead of \(dimensions)")
        }
        let isWhole = zoom <= DigitalZoom.whole
        if isWhole, let (transformer, wish) = transform, wish.isPerfect(header) {
            try output.reserve(JPEGTransformer.maximumBytes(header))
            let (bytes, warning) = try decoding { () throws(JPEGError) in
                try transformer.transform(jpeg, header: header, wish, into: output.room)
            }
            try judge(warning, jpeg)
            return output.setCount(bytes)
        }
        let decoded = scale.scaled(dimensions)
        guard header.colors != .inks else { return try convert(jpeg, header, zoom: zoom, into: output) }

        let crop = request.crop.map { Part($0, for: request.unturned) }
        if isWhole, let crop, crop.rectangle.dimensions == request.unturned, let format = request.encoding.packedFormat
        {
            let stride = decoded.width * format.bytesPerPixel
            try unturned.reserve(stride * decoded.height)
            let warning = try decoding { () throws(JPEGError) in
                try decompressor.decompress(
                    jpeg, header: header, scale: scale, format: format, stride: stride, to: unturned.room)
            }
            try judge(warning, jpeg)
            unturned.setCount(stride * decoded.height)
            let start = crop.rectangle.top * stride + crop.rectangle.left * format.bytesPerPixel
            return try output.setTurned(
                UnsafeRawBufferPointer(rebasing: unturned.bytes.dropFirst(start)), stride: stride,
                bytesPerPixel: format.bytesPerPixel, request, layout)
        }
        if isWhole, crop == nil, decoded == request.unturned, let format = request.encoding.packedFormat {
            let isTurned = request.orientation != .upright
            let stride = isTurned ? decoded.width * format.bytesPerPixel : layout.planes[0].stride
            let target = isTurned ? unturned : output
            try target.reserve(layout.totalBytes)
            let warning = try decoding { () throws(JPEGError) in
                try decompressor.decompress(
                    jpeg, header: header, scale: scale, format: format, stride: stride, to: target.room)
            }
            try judge(warning, jpeg)
            target.setCount(layout.totalBytes)
            if isTurned {
                try output.setTurned(
                    unturned.bytes, stride: stride, bytesPerPixel: format.bytesPerPixel, request, layout)
            }
            return
        }
        let isGray = request.encoding == .gray
        guard header.colors == .yuv || isGray else { return try convert(jpeg, header, zoom: zoom, into: output) }
        let subsampling = isGray ? .gray : header.subsampling
        let stage = try stage(subsampling, zoom: isWhole ? nil : zoom)
        let stageScale = stage.part?.scale ?? scale
        let warning = try decoding { () throws(JPEGError) in
            isGray
                ? try decompressor.decompress(
                    jpeg, header: header, scale: stageScale, format: .gray, stride: stage.memory.y.stride,
                    to: stage.memory.y.bytes)
                : try decompressor.decompress(jpeg, header: header, scale: stageScale, to: stage.memory.jpegPlanes)
        }
        try judge(warning, jpeg)
        let whole = stage.memory.picture(.full, .bt601)
        let picture = try stage.scaler.scale(try stage.cut?.cut(whole) ?? whole)
        try stage.finish.write(picture, into: output)
    }

    private func convert(
        _ jpeg: UnsafeRawBufferPointer, _ header: JPEGHeader, zoom: Int, into output: PictureBuffer
    ) throws(ConversionError) {
        // Of a part that is enlarged all pixels are needed.
        let scale = zoom <= DigitalZoom.whole ? scale : .full
        let stage: JPEGColorStage
        if let known = colorStage, known.colors == header.colors, known.scale == scale {
            stage = known
        } else {
            stage = try JPEGColorStage(header.colors, dimensions, scale, request)
            colorStage = stage
        }
        try stage.convert(jpeg, header, decompressor, zoom: zoom, into: output) { (warning) throws(ConversionError) in
            try judge(warning, jpeg)
        }
    }

    private func part(_ subsampling: ChromaSubsampling, _ zoom: Int) -> Part {
        if let crop = request.crop {
            let middle = CropRectangle(middleOf: dimensions, zoom: zoom, block: .s444)
            return Part(crop.zoomed(into: middle, of: dimensions), for: request.unturned)
        }
        let block = ChromaLayout(subsampling) ?? .s444
        func part(_ scale: JPEGScale) -> Part {
            Part(
                scale: scale, rectangle: CropRectangle(middleOf: scale.scaled(dimensions), zoom: zoom, block: block))
        }
        let parts = JPEGScale.allCases.sorted().map(part)
        return parts.first { $0.rectangle.dimensions.holds(request.unturned) } ?? part(.full)
    }

    private func stage(_ subsampling: ChromaSubsampling, zoom: Int?) throws(ConversionError) -> Stage {
        if let stage, stage.subsampling == subsampling, stage.zoom == zoom { return stage }
        let part = zoom.map { self.part(subsampling, $0) } ?? request.crop.map { Part($0, for: request.unturned) }
        if stage?.subsampling == subsampling, stage?.part == part {
            stage?.zoom = zoom
            if let stage { return stage }
        }
        let scale = part?.scale ?? scale
        let decoded = scale.scaled(dimensions)
        let taken = part?.rectangle.dimensions ?? decoded
        let cut = try part.map { (part) throws(ConversionError) in
            try PictureCut(part.rectangle, chroma: ChromaLayout(subsampling))
        }
        let chroma = cut == nil ? ChromaLayout(subsampling) : cut?.chroma
        let orientation = request.orientation
        let isScaled = taken != request.unturned || scale != .full
        let wanted = PictureTurner.chroma(
            PicturePacker.chroma(for: request, source: chroma.map { orientation.turned($0) }, isScaled: isScaled),
            request)
        let unturned = wanted.map { orientation.turned($0) }
        let known = finish
        let memory: PlanarMemory
        if let known = stage?.memory, stage?.subsampling == subsampling, known.y.width == decoded.width,
            known.y.height == decoded.height
        {
            memory = known
        } else {
            // What was needed before is not needed at the same time.
            stage = nil
            memory = try PlanarMemory(
                width: decoded.width, height: decoded.height, chroma: ChromaLayout(subsampling))
        }
        let made = Stage(
            subsampling: subsampling, zoom: zoom, part: part, memory: memory, cut: cut,
            scaler: try PlanarScaler(from: taken, chroma: chroma, to: request.unturned, chroma: unturned),
            finish: try .make(request, chroma: wanted, range: .full, matrix: .bt601, known: [known]))
        stage = made
        return made
    }

    private func decoding<Result>(_ body: () throws(JPEGError) -> Result) throws(ConversionError) -> Result {
        do { return try body() } catch { throw .damaged(error.message) }
    }

    /// Some bytes too many before a marker are how many cameras end their pictures, and harm nothing, nor do versions
    /// that the decoder doesn't know; all else is damage.
    private func judge(_ warning: String?, _ jpeg: UnsafeRawBufferPointer) throws(ConversionError) {
        guard let warning else { return }
        if warning.contains("extraneous bytes before marker"), JPEGStream.hasEnd(jpeg) { return }
        if Self.harmless.contains(where: { warning.contains($0) }) { return }
        throw .damaged(warning)
    }

    private static let harmless = ["unknown JFIF revision number", "Unknown Adobe color transform code"]
}

extension JPEGScale {
    fileprivate func scaled(_ size: Dimensions) -> Dimensions {
        Dimensions(width: scaled(size.width), height: scaled(size.height))
    }
}

extension Dimensions {
    fileprivate func holds(_ other: Dimensions) -> Bool { width >= other.width && height >= other.height }
}

extension PictureOrientation {
    /// The same without decoding; nil where nothing is to be done.
    fileprivate var jpeg: JPEGTransform? {
        switch (quarters, isMirrored) {
        case (1, false): .rotate90
        case (2, false): .rotate180
        case (3, false): .rotate270
        case (0, true): .mirror
        case (1, true): .transpose
        case (2, true): .flip
        case (3, true): .transverse
        default: nil
        }
    }
}

extension Rendition.Encoding {
    /// What the decoder writes by itself.
    fileprivate var packedFormat: PackedFormat? {
        switch self {
        case .bgr: .bgr
        case .rgb: .rgb
        case .gray: .gray
        case .native, .jpeg, .yuyv, .nv12, .i420, .gray16, .rgb48: nil
        }
    }
}
