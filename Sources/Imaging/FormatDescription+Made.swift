import BusProtocol
import CaptureCore
import FFmpeg

extension FormatDescription {
    /// What is to be said of pictures that are made of such ones.
    func made(_ request: PictureRequest) -> FormatDescription? {
        guard let format = request.encoding.pixelFormat else { return nil }
        var extensions = extensions
        extensions.color = color.made(request.encoding, fromRGB: pixelFormat.isRGB)
        // Of 16 bits those are stated that the source has.
        let bits = request.encoding.isDeep ? extensions.bitsPerComponent ?? 8 : 8
        extensions.bitsPerComponent = bits
        extensions.alignment = request.encoding.isDeep && bits < 16 ? .high : nil
        extensions.cleanAperture = nil
        if request.encoding != .gray16 { extensions.metersPerStep = nil }
        extensions.pixelAspectRatio = aspect(of: request)
        return FormatDescription(
            pixelFormat: format, dimensions: request.dimensions,
            orientation: request.orientation.inverse.followed(by: orientation), extensions: extensions)
    }

    /// Pixels become wider or higher where the picture is stretched, and are turned with it.
    private func aspect(of request: PictureRequest) -> FormatExtensions.Ratio {
        let (from, to) = (request.crop?.dimensions ?? dimensions, request.unturned)
        let made = extensions.pixelAspectRatio.stretched(
            from: (from.width, from.height), to: (to.width, to.height))
        return request.orientation.swapsSides ? made.inverse : made
    }
}

extension ColorDescription {
    /// Red, green and blue become luma and chroma as JPEG has them. Luma and chroma keep their matrix, but in JPEG
    /// pictures.
    fileprivate func made(_ encoding: Rendition.Encoding, fromRGB: Bool) -> ColorDescription {
        var made = self
        // Chroma may be resampled on the way.
        made.chromaLocation = nil
        switch encoding {
        case .native: return self
        case .jpeg: (made.matrix, made.range) = (.smpte170m, .full)
        case .bgr, .rgb, .rgb48: (made.matrix, made.range) = (.gbr, .full)
        case .gray, .gray16: (made.matrix, made.range) = (nil, .full)
        case .yuyv, .nv12, .i420:
            made.range = .video
            if fromRGB || matrix == nil || matrix == .gbr { made.matrix = .smpte170m }
        }
        return made
    }
}

extension ColorRange {
    init(_ range: VideoColorRange) { self = range == .full ? .full : .limited }
}

extension ColorMatrix {
    /// That of luma and chroma; BT.601's for what is not known.
    init(_ matrix: YCbCrMatrix?) { self.init(code: matrix?.code) }
}
