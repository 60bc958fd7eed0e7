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
    private var stage: Stage?

    /// What follows the decoder. It depends on the picture's own subsampling, which is known with the first frame.
    private struct Stage {
        var subsampling: ChromaSubsampling
        var memory: PlanarMemory
        var scaler: PlanarScaler
        var packer: PicturePacker
    }

    init(_ dimensions: Dimensions, _ request: PictureRequest) throws(ConversionError) {
        self.dimensions = dimensions
        self.request = request
        decompressor = try failing { () throws(JPEGError) in try JPEGDecompressor() }
        let wanted = request.dimensions
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
        let decoded = Dimensions(width: scale.scaled(header.width), height: scale.scaled(header.height))

        if decoded == request.dimensions, let format = request.encoding.packedFormat {
            try output.reserve(layout.totalBytes)
            let warning = try decoding { () throws(JPEGError) in
                try decompressor.decompress(
                    jpeg, header: header, scale: scale, format: format, stride: layout.planes[0].stride, to: output.room
                )
            }
            try judge(warning, jpeg)
            output.setCount(layout.totalBytes)
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
        try stage.packer.pack(try stage.scaler.scale(stage.memory.picture(.full)), into: output)
    }

    private func stage(_ subsampling: ChromaSubsampling, _ decoded: Dimensions) throws(ConversionError) -> Stage {
        if let stage, stage.subsampling == subsampling { return stage }
        let chroma = ChromaLayout(subsampling)
        let isScaled = decoded != request.dimensions || scale != .full
        let wanted = PicturePacker.chroma(for: request, source: chroma, isScaled: isScaled)
        let made = Stage(
            subsampling: subsampling,
            memory: try PlanarMemory(width: decoded.width, height: decoded.height, chroma: chroma),
            scaler: try PlanarScaler(from: decoded, chroma: chroma, to: request.dimensions, chroma: wanted),
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
