/// A number for a property of colours in ITU-T H.273, and the word for it: FFmpeg's, as ffprobe prints it. Films, H.264
/// streams and pictures name these properties by the same numbers.
public protocol ColorCode: RawRepresentable<String>, Hashable, Sendable, CaseIterable {
    /// The number in ITU-T H.273.
    var code: UInt8 { get }
}

extension ColorCode {
    /// nil for numbers that have no meaning here, which count as unknown.
    public init?(code: UInt8) {
        guard let known = Self.allCases.first(where: { $0.code == code }) else { return nil }
        self = known
    }
}

/// Which red, green and blue the pixels are mixed from (`kCMFormatDescriptionExtension_ColorPrimaries`).
public enum ColorPrimaries: String, ColorCode {
    case bt709, bt470m, bt470bg, smpte170m, smpte240m, film, bt2020, smpte428, smpte431, smpte432, ebu3213

    public var code: UInt8 {
        switch self {
        case .bt709: 1
        case .bt470m: 4
        case .bt470bg: 5
        case .smpte170m: 6
        case .smpte240m: 7
        case .film: 8
        case .bt2020: 9
        case .smpte428: 10
        case .smpte431: 11
        case .smpte432: 12
        case .ebu3213: 22
        }
    }
}

/// How light became the numbers of a picture (`kCMFormatDescriptionExtension_TransferFunction`).
public enum TransferFunction: String, ColorCode {
    case bt709, bt470m, bt470bg, smpte170m, smpte240m, linear, log100, log316
    case xvYCC = "iec61966-2-4"
    case bt1361e
    case sRGB = "iec61966-2-1"
    case bt2020Of10Bits = "bt2020-10"
    case bt2020Of12Bits = "bt2020-12"
    case smpte2084, smpte428
    case hlg = "arib-std-b67"

    public var code: UInt8 {
        switch self {
        case .bt709: 1
        case .bt470m: 4
        case .bt470bg: 5
        case .smpte170m: 6
        case .smpte240m: 7
        case .linear: 8
        case .log100: 9
        case .log316: 10
        case .xvYCC: 11
        case .bt1361e: 12
        case .sRGB: 13
        case .bt2020Of10Bits: 14
        case .bt2020Of12Bits: 15
        case .smpte2084: 16
        case .smpte428: 17
        case .hlg: 18
        }
    }
}

/// How luma and chroma are made of red, green and blue (`kCMFormatDescriptionExtension_YCbCrMatrix`).
public enum YCbCrMatrix: String, ColorCode {
    /// They are not: the pixels are red, green and blue.
    case gbr
    case bt709, fcc, bt470bg, smpte170m, smpte240m, ycgco
    /// BT.2020 with the usual, non-constant luminance.
    case bt2020nc
    case bt2020c, ictcp

    /// Red, green and blue can be made of luma and chroma here.
    public var isConvertible: Bool {
        switch self {
        case .ycgco, .bt2020c, .ictcp: false
        case .gbr, .bt709, .fcc, .bt470bg, .smpte170m, .smpte240m, .bt2020nc: true
        }
    }

    public var code: UInt8 {
        switch self {
        case .gbr: 0
        case .bt709: 1
        case .fcc: 4
        case .bt470bg: 5
        case .smpte170m: 6
        case .smpte240m: 7
        case .ycgco: 8
        case .bt2020nc: 9
        case .bt2020c: 10
        case .ictcp: 14
        }
    }
}

/// Which numbers black and white are: 16 and 235 (`420v` of AVFoundation), or 0 and 255 (`420f`).
public enum VideoColorRange: String, Hashable, Sendable, CaseIterable {
    case video, full
}

/// Where the chroma of pixels that share it was measured (`kCMFormatDescriptionExtension_ChromaLocationTopField`).
public enum ChromaLocation: String, ColorCode {
    case left, center
    case topLeft = "topleft"
    case top
    case bottomLeft = "bottomleft"
    case bottom

    /// One more than H.273 has: FFmpeg's, which keeps 0 for unknown.
    public var code: UInt8 {
        switch self {
        case .left: 1
        case .center: 2
        case .topLeft: 3
        case .top: 4
        case .bottomLeft: 5
        case .bottom: 6
        }
    }
}

/// How the colours of a picture are to be understood. What is nil is not known.
public struct ColorDescription: Hashable, Sendable {
    public var primaries: ColorPrimaries?
    public var transferFunction: TransferFunction?
    public var matrix: YCbCrMatrix?
    public var range: VideoColorRange
    public var chromaLocation: ChromaLocation?

    public init(
        primaries: ColorPrimaries? = nil, transferFunction: TransferFunction? = nil, matrix: YCbCrMatrix? = nil,
        range: VideoColorRange, chromaLocation: ChromaLocation? = nil
    ) {
        self.primaries = primaries
        self.transferFunction = transferFunction
        self.matrix = matrix
        self.range = range
        self.chromaLocation = chromaLocation
    }
}
