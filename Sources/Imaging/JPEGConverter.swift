import BusProtocol
import CaptureCore
import FFmpeg
import TurboJPEG

/// Makes pictures out of JPEG ones: decoded no larger than needed, in the DCT domain.
final class JPEGConverter {
    private let dimensions: Dimensions
    private let request: PictureRequest
    private let decompressor: JPEGDecompressor
    private let scale: JPEGScale
    /// Pictures with the standard Huffman tables put in.
    private let completed = PictureBuffer()
    /// Decoded pictures on their way to be turned.
    private let unturned = PictureBuffer()
    private var stage: Stage?
    /// nil: pictures are turned after they are decoded, if at all.
    private let transform: (transformer: JPEGTransformer, wish: JPEGTransform)?

    /// What follows the decoder. It depends on the picture's own subsampling, which is known with the first frame.
    private struct Stage {
        var subsampling: ChromaSubsampling
        var memory: PlanarMemory
        var scaler: PlanarScaler
        var turner: PictureTurner?
        var packer: PicturePacker
    }

    init(_ dimensions: Dimensions, _ request: PictureRequest) throws(ConversionError) {
        self.dimensions = dimensions
        self.request = request
        decompressor = try failing { () throws(JPEGError) in try JPEGDecompressor() }
        let wanted = request.unturned
        if request.encoding == .jpeg, request.keepsQuality, wanted == dimensions, let wish = request.orientation.jpeg {
            transform = (try failing { () throws(JPEGError) in try JPEGTransformer() }, wish)
        } else {
            transform = nil
        }
        scale =
            JPEGScale.allCases.sorted().first {
                $0.scaled(dimensions.width) >= wanted.width && $0.scaled(dimensions.height) >= wanted.height
            } ?? .full
    }

    func convert(
        _ picture: UnsafeRawBufferPointer, _ layout: FrameLayout, into output: PictureBuffer
    ) throws(ConversionError) {
        let jpeg = try JPEGStream.insertHuffmanTables(picture, into: completed) ? completed.bytes : picture
        let header = try decoding { () throws(JPEGError) in try decompressor.header(jpeg) }
        guard header.width == dimensions.width, header.height == dimensions.height else {
            throw .damaged("the picture has \(header.width)x\(header.height) pixels instead of \(dimensions)")
        }
        if let (transformer, wish) = transform, wish.isPerfect(header) {
            try output.reserve(JPEGTransformer.maximumBytes(header))
            let (bytes, warning) = try decoding { () throws(JPEGError) in
                try transformer.transform(jpeg, header: header, wish, into: output.room)
            }
            try judge(warning, jpeg)
            return output.setCount(bytes)
        }
        let decoded = Dimensions(width: scale.scaled(header.width), height: scale.scaled(header.height))

        if decoded == request.unturned, let format = request.encoding.packedFormat {
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
        guard header.isYUV || isGray else {
            throw .failed("a JPEG picture of this colour space can't be scaled or encoded")
        }
        let stage = try stage(isGray ? .gray : header.subsampling, decoded)
        let warning = try decoding { () throws(JPEGError) in
            isGray
                ? try decompressor.decompress(
                    jpeg, header: header, scale: scale, format: .gray, stride: stage.memory.y.stride,
                    to: stage.memory.y.bytes)
                : try decompressor.decompress(jpeg, header: header, scale: scale, to: stage.memory.jpegPlanes)
        }
        try judge(warning, jpeg)
        let picture = try stage.scaler.scale(stage.memory.picture(.full))
        try stage.packer.pack(try stage.turner?.turn(picture) ?? picture, into: output)
    }

    private func stage(_ subsampling: ChromaSubsampling, _ decoded: Dimensions) throws(ConversionError) -> Stage {
        if let stage, stage.subsampling == subsampling { return stage }
        let chroma = ChromaLayout(subsampling)
        let orientation = request.orientation
        let isScaled = decoded != request.unturned || scale != .full
        let wanted = PictureTurner.chroma(
            PicturePacker.chroma(for: request, source: chroma.map { orientation.turned($0) }, isScaled: isScaled),
            request)
        let unturned = wanted.map { orientation.turned($0) }
        let made = Stage(
            subsampling: subsampling,
            memory: try PlanarMemory(width: decoded.width, height: decoded.height, chroma: chroma),
            scaler: try PlanarScaler(from: decoded, chroma: chroma, to: request.unturned, chroma: unturned),
            turner: try PictureTurner(orientation, request.unturned, chroma: unturned),
            packer: try PicturePacker(request, chroma: wanted, range: .full))
        stage = made
        return made
    }

    private func decoding<Result>(_ body: () throws(JPEGError) -> Result) throws(ConversionError) -> Result {
        do { return try body() } catch { throw .damaged(error.message) }
    }

    /// Some bytes too many before a marker are how many cameras end their pictures, and harm nothing; all else is damage.
    private func judge(_ warning: String?, _ jpeg: UnsafeRawBufferPointer) throws(ConversionError) {
        guard let warning else { return }
        if warning.contains("extraneous bytes before marker"), JPEGStream.hasEnd(jpeg) { return }
        throw .damaged(warning)
    }
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
        case .native, .jpeg, .yuyv, .nv12, .i420: nil
        }
    }
}
