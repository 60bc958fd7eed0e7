public import BusProtocol

/// What a source states about its pictures (`CMVideoFormatDescription`). It goes with them to every reader, file and
/// photo.
public struct FormatDescription: Hashable, Sendable {
    public var pixelFormat: PixelFormat
    public var dimensions: Dimensions
    /// How a picture has to be turned to be upright.
    public var orientation: PictureOrientation
    /// Colours, shape of the pixels, rate.
    public var extensions: FormatExtensions

    /// - Parameter extensions: nil: those of a source that says nothing (``PixelFormat/defaultExtensions``).
    public init(
        pixelFormat: PixelFormat, dimensions: Dimensions, orientation: PictureOrientation = .upright,
        extensions: FormatExtensions? = nil
    ) {
        self.pixelFormat = pixelFormat
        self.dimensions = dimensions
        self.orientation = orientation
        self.extensions = extensions ?? pixelFormat.defaultExtensions
    }

    /// From one frame to the next, as the source says; nil: it doesn't.
    public var frameDuration: FrameDuration? {
        get { extensions.frameDuration.flatMap { FrameDuration($0.numerator, $0.denominator) } }
        set { extensions.frameDuration = newValue.flatMap { FormatExtensions.Ratio($0.numerator, $0.denominator) } }
    }

    /// As ``extensions`` has them.
    public var color: ColorDescription {
        get { extensions.color }
        set { extensions.color = newValue }
    }
}

extension PixelFormat {
    /// What is taken for granted of a source that says nothing: a webcam's (`V4L2_COLORSPACE_SRGB`), with luma and
    /// chroma of BT.601 in video range. JPEG pictures are in full range (JFIF), and so are red, green and blue, and
    /// grey.
    public var defaultExtensions: FormatExtensions {
        var extensions = FormatExtensions(color: defaultColor)
        if let samples = rawSamples {
            extensions.bitsPerComponent = samples.bits
            if samples.bits % 8 != 0, samples.packing == .words { extensions.alignment = .low }
        }
        return extensions
    }

    /// Its samples are red, green and blue, whether or not a pixel has all of them.
    public var isRGB: Bool { kind == .rgb || kind == .bayer }

    /// What a sensor measures, whose samples have no room below black: Bayer, depth, and grey of more than 8 bits.
    public var isFullRange: Bool { kind == .bayer || kind == .depth || rawSamples.map { $0.bits > 8 } ?? false }

    private var defaultColor: ColorDescription {
        var color = ColorDescription(primaries: .bt709, transferFunction: .sRGB, matrix: .smpte170m, range: .video)
        switch self {
        case .motionJPEG, .jpeg, .nv12FullRange: color.range = .full
        default:
            if isRGB {
                (color.matrix, color.range) = (.gbr, .full)
            } else if kind == .grey || rawSamples != nil {
                color.range = .full
            }
        }
        return color
    }
}
