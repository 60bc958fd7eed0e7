import CaptureCore
import FFmpeg
import TurboJPEG

/// How many luma pixels share a chroma pixel across and down; none has luma alone.
struct ChromaLayout: Hashable {
    var across: Int
    var down: Int

    static let s444 = ChromaLayout(across: 1, down: 1)
    static let s422 = ChromaLayout(across: 2, down: 1)
    static let s420 = ChromaLayout(across: 2, down: 2)

    func width(_ width: Int) -> Int { (width + across - 1) / across }
    func height(_ height: Int) -> Int { (height + down - 1) / down }

    /// JPEG's word for it; nil where JPEG has none (4:1:0).
    var jpeg: ChromaSubsampling? {
        ChromaSubsampling.allCases.first {
            $0 != .gray && $0.horizontalFactor == across && $0.verticalFactor == down
        }
    }

    /// The planar picture of 8 bits a sample; nil where FFmpeg has none.
    var planarFormat: ImageFormat? {
        switch (across, down) {
        case (1, 1): .yuv444p
        case (2, 1): .yuv422p
        case (2, 2): .yuv420p
        case (1, 2): .yuv440p
        case (4, 1): .yuv411p
        case (4, 4): .yuv410p
        default: nil
        }
    }

    init(across: Int, down: Int) {
        self.across = across
        self.down = down
    }

    /// nil for gray.
    init?(_ subsampling: ChromaSubsampling) {
        guard subsampling != .gray else { return nil }
        self.init(across: subsampling.horizontalFactor, down: subsampling.verticalFactor)
    }
}

/// How the pixels of a V4L2 format lie, as far as pictures can be made of it.
enum SourceFormat: Hashable {
    /// Compressed pictures, one a frame.
    case jpeg
    /// Luma alone, 8 bits.
    case gray
    /// Two pixels in four bytes.
    case packed422(lumaFirst: Bool, uFirst: Bool)
    /// One pixel in three or four bytes, samples at these bytes.
    case packed444(bytes: Int, y: Int, u: Int, v: Int)
    /// A plane of luma, a plane of chroma pairs.
    case semiPlanar(ChromaLayout, uFirst: Bool)
    case planar(ChromaLayout, uFirst: Bool)
    /// Red, green and blue that libjpeg-turbo reads itself.
    case packedRGB(PackedFormat, ImageFormat)
    /// Grey of more than 8 bits, through the scaler.
    case deepGray(ImageFormat)
    /// Colours of another kind, through the scaler to BGR.
    case converted(ImageFormat)
    /// Bayer samples of so many bits in 16, which the scaler wants shifted up.
    case deepBayer(ImageFormat, bits: Int)

    /// nil for formats of which no picture can be made here (H.264, tiles, MIPI-packed samples …).
    init?(_ pixelFormat: PixelFormat) {
        guard let known = Self.table[pixelFormat.name] else { return nil }
        self = known
    }

    var planes: Int {
        switch self {
        case .planar: 3
        case .semiPlanar: 2
        default: 1
        }
    }

    /// Pixels that belong together: parts of a frame begin and end between them. At least two by two, as other
    /// encodings want it.
    var block: ChromaLayout {
        switch self {
        case .semiPlanar(let chroma, _), .planar(let chroma, _):
            ChromaLayout(across: max(2, chroma.across), down: max(2, chroma.down))
        default: .s420
        }
    }

    /// Bytes of a line of a plane without padding; 0 for compressed pictures.
    func lineBytes(plane: Int, width: Int) -> Int {
        switch self {
        case .jpeg: 0
        case .gray: width
        case .packed422: (width + 1) / 2 * 4
        case .packed444(let bytes, _, _, _): width * bytes
        case .semiPlanar(let chroma, _): plane == 0 ? width : chroma.width(width) * 2
        case .planar(let chroma, _): plane == 0 ? width : chroma.width(width)
        case .packedRGB(let format, _): width * format.bytesPerPixel
        case .deepGray(let format), .converted(let format), .deepBayer(let format, _):
            format.lineBytes(plane: plane, width: width)
        }
    }

    /// Lines of a plane.
    func lines(plane: Int, height: Int) -> Int {
        switch self {
        case .semiPlanar(let chroma, _), .planar(let chroma, _): plane == 0 ? height : chroma.height(height)
        default: height
        }
    }

    /// Bytes from one line of a plane to the next, given those of the first plane: V4L2 tells only the first
    /// (`bytesperline`) where planes share a buffer.
    func stride(plane: Int, first: Int) -> Int {
        guard plane > 0 else { return first }
        return switch self {
        case .semiPlanar(let chroma, _): chroma.width(first) * 2
        case .planar(let chroma, _): chroma.width(first)
        default: first
        }
    }
}
