import CaptureCore
import TurboJPEG
import X264

/// What makes compressed pictures of those that a virtual camera draws, and raw ones of more than 8 bits.
final class VirtualEncoder {
    private enum Library {
        case jpeg(JPEGCompressor)
        case h264(H264Encoder)
        case raw(VirtualDeepener)
    }

    private let library: Library
    private var answeredRequests: UInt64?

    /// What has to be drawn for such a format; nil for those that are drawn as they are. For Motion JPEG it is the
    /// format itself: planes of 4:2:2 and full range.
    static func source(of pixelFormat: PixelFormat) -> PixelFormat? {
        switch pixelFormat {
        case .motionJPEG: .motionJPEG
        case .h264: .nv12
        default: VirtualDeepener.source(of: pixelFormat)
        }
    }

    /// nil for a format that isn't made here, or without memory.
    init?(_ selection: FormatSelection, _ duration: FrameDuration) {
        switch selection.pixelFormat {
        case .motionJPEG:
            guard let compressor = try? JPEGCompressor() else { return nil }
            library = .jpeg(compressor)
        case .h264:
            // A key frame every second.
            let settings = H264Settings(
                width: selection.dimensions.width, height: selection.dimensions.height,
                rateNumerator: Int(duration.denominator), rateDenominator: Int(duration.numerator),
                keyframeInterval: max(1, Int((1 / duration.seconds).rounded())))
            guard let encoder = try? H264Encoder(settings) else { return nil }
            library = .h264(encoder)
        default:
            guard let deepener = VirtualDeepener(selection.pixelFormat) else { return nil }
            library = .raw(deepener)
        }
    }

    /// - Parameter keyframeRequests: how often a key frame was asked for so far.
    /// - Returns: the picture's bytes; nil if it could not be made.
    func encode(
        _ picture: VirtualBackground, keyframeRequests: UInt64, into room: UnsafeMutableRawBufferPointer
    ) -> Int? {
        let (planes, size, base) = (picture.layout.planes, picture.layout.dimensions, picture.base)
        switch library {
        case .jpeg(let compressor):
            let picture = YUVPlanes(
                y: base, yStride: planes[0].stride, u: base + planes[1].offset, uStride: planes[1].stride,
                v: base + planes[2].offset, vStride: planes[2].stride)
            return try? compressor.compress(
                picture, width: size.width, height: size.height, subsampling: .s422, quality: 85, into: room)
        case .h264(let encoder):
            let isAsked = answeredRequests != keyframeRequests
            answeredRequests = keyframeRequests
            let picture = NV12Planes(
                luma: base, lumaStride: planes[0].stride, chroma: base + planes[1].offset,
                chromaStride: planes[1].stride)
            return try? encoder.encode(picture, asKeyframe: isAsked, into: room)
        case .raw(let deepener): return deepener.encode(picture, into: room)
        }
    }
}
