import CFFmpeg

/// What black and white are in luma: 16 and 235, or 0 and 255.
public enum ColorRange: Hashable, Sendable {
    /// Video's (`AVCOL_RANGE_MPEG`).
    case limited
    /// JPEG's (`AVCOL_RANGE_JPEG`).
    case full
}

/// How luma and chroma are made of red, green and blue, as far as it can be undone pixel by pixel.
public enum ColorMatrix: Hashable, Sendable, CaseIterable {
    /// ITU-R BT.601: JPEG, and cameras that don't say otherwise.
    case bt601
    /// ITU-R BT.709.
    case bt709
    /// ITU-R BT.2020 with non-constant luminance.
    case bt2020
    /// SMPTE 240M.
    case smpte240m
    /// The FCC's of 1953.
    case fcc

    /// How much of luma is red, and how much blue.
    public var weights: (red: Double, blue: Double) {
        switch self {
        case .bt601: (0.299, 0.114)
        case .bt709: (0.2126, 0.0722)
        case .bt2020: (0.2627, 0.0593)
        case .smpte240m: (0.212, 0.087)
        case .fcc: (0.30, 0.11)
        }
    }

    /// By the number in ITU-T H.273. FFmpeg's default for unknown numbers is BT.601, and so it is here.
    public init(code: UInt8?) {
        switch code {
        case 1: self = .bt709
        case 4: self = .fcc
        case 7: self = .smpte240m
        case 9, 10: self = .bt2020
        default: self = .bt601
        }
    }

    var coefficients: UnsafePointer<Int32>? {
        let space =
            switch self {
            case .bt601: SWS_CS_ITU601
            case .bt709: SWS_CS_ITU709
            case .bt2020: SWS_CS_BT2020
            case .smpte240m: SWS_CS_SMPTE240M
            case .fcc: SWS_CS_FCC
            }
        return sws_getCoefficients(space)
    }
}

/// What a file, a stream or a picture states about its colours: numbers of ITU-T H.273.
public struct ColorTags: Hashable, Sendable {
    /// nil: not stated.
    public var primaries: UInt8?
    public var transferFunction: UInt8?
    public var matrix: UInt8?
    public var range: ColorRange
    /// FFmpeg's number (`AVCHROMA_LOC_…`), one more than H.273's.
    public var chromaLocation: UInt8?

    public init(
        primaries: UInt8? = nil, transferFunction: UInt8? = nil, matrix: UInt8? = nil, range: ColorRange,
        chromaLocation: UInt8? = nil
    ) {
        self.primaries = primaries
        self.transferFunction = transferFunction
        self.matrix = matrix
        self.range = range
        self.chromaLocation = chromaLocation
    }

    init(_ parameters: AVCodecParameters) {
        self.init(
            parameters.color_primaries, parameters.color_trc, parameters.color_space,
            PictureCopier.range(AVPixelFormat(parameters.format), parameters.color_range), parameters.chroma_location)
    }

    init(_ frame: UnsafeMutablePointer<AVFrame>) {
        self.init(
            frame.pointee.color_primaries, frame.pointee.color_trc, frame.pointee.colorspace,
            PictureCopier.range(AVPixelFormat(frame.pointee.format), frame.pointee.color_range),
            frame.pointee.chroma_location)
    }

    private init(
        _ primaries: AVColorPrimaries, _ transfer: AVColorTransferCharacteristic, _ space: AVColorSpace,
        _ range: ColorRange, _ chroma: AVChromaLocation
    ) {
        self.init(
            primaries: Self.stated(primaries.rawValue, AVCOL_PRI_UNSPECIFIED.rawValue),
            transferFunction: Self.stated(transfer.rawValue, AVCOL_TRC_UNSPECIFIED.rawValue),
            matrix: Self.stated(space.rawValue, AVCOL_SPC_UNSPECIFIED.rawValue), range: range,
            chromaLocation: Self.stated(chroma.rawValue, AVCHROMA_LOC_UNSPECIFIED.rawValue))
    }

    func write(to codec: UnsafeMutablePointer<AVCodecContext>) {
        codec.pointee.color_primaries = AVColorPrimaries(UInt32(primaries ?? 2))
        codec.pointee.color_trc = AVColorTransferCharacteristic(UInt32(transferFunction ?? 2))
        codec.pointee.colorspace = AVColorSpace(UInt32(matrix ?? 2))
        codec.pointee.chroma_sample_location = AVChromaLocation(UInt32(chromaLocation ?? 0))
    }

    func write(to parameters: UnsafeMutablePointer<AVCodecParameters>) {
        parameters.pointee.color_primaries = AVColorPrimaries(UInt32(primaries ?? 2))
        parameters.pointee.color_trc = AVColorTransferCharacteristic(UInt32(transferFunction ?? 2))
        parameters.pointee.color_space = AVColorSpace(UInt32(matrix ?? 2))
        parameters.pointee.color_range = range == .full ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG
        parameters.pointee.chroma_location = AVChromaLocation(UInt32(chromaLocation ?? 0))
    }

    private static func stated(_ code: UInt32, _ unspecified: UInt32) -> UInt8? {
        code == unspecified ? nil : UInt8(exactly: code)
    }
}
