public import BusProtocol
public import CaptureCore

/// What a sequence parameter set of H.264 says about the pictures (ITU-T H.264, 7.3.2.1.1 and E.1.1).
public struct H264SequenceParameters: Hashable, Sendable {
    /// By which the parameter sets of pictures name it, 0–31.
    public var identifier: Int
    /// Pixels that are to be shown.
    public var dimensions: Dimensions
    /// As ITU-T H.273 counts them; nil: it says nothing, or that it is not known.
    public var primaries: ColorPrimaries?
    public var transferFunction: TransferFunction?
    public var matrix: YCbCrMatrix?
    /// nil: it says nothing.
    public var range: VideoColorRange?
    public var chromaLocation: ChromaLocation?
    public var pixelAspectRatio: FormatExtensions.Ratio?

    /// Profiles whose sets have the form of their chroma, bit depths and scaling lists.
    private static let highProfiles: Set<Int> = [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135]
    private static let longestSide = 16384
    /// ITU-T H.264, table E-1, from 1 on.
    private static let shapes = [
        (1, 1), (12, 11), (10, 11), (16, 11), (40, 33), (24, 11), (20, 11), (32, 11), (80, 33), (18, 11), (15, 11),
        (64, 33), (160, 99), (4, 3), (3, 2), (2, 1),
    ]
    private static let ownShape = 255

    /// - Parameter unit: without its start code.
    /// - Returns: nil: it is none, is damaged, or no picture has that size.
    public init?(_ unit: UnsafeRawBufferPointer) {
        guard let first = unit.first, first & 0x1F == 7 else { return nil }
        var bits = H264BitReader(unit)
        let profile = bits.number(8)
        _ = bits.number(16)
        identifier = bits.golomb()
        var (chroma, arrays) = (1, 1)
        if Self.highProfiles.contains(profile) {
            chroma = bits.golomb()
            arrays = chroma == 3 && bits.flag() ? 0 : chroma
            _ = (bits.golomb(), bits.golomb(), bits.flag())
            if bits.flag() { for list in 0..<(chroma == 3 ? 12 : 8) { bits.skipScalingList(list < 6 ? 16 : 64) } }
        }
        _ = bits.golomb()
        switch bits.golomb() {
        case 0: _ = bits.golomb()
        case 1:
            _ = (bits.flag(), bits.golomb(), bits.golomb())
            let count = bits.golomb()
            guard count <= 255 else { return nil }
            for _ in 0..<count { _ = bits.golomb() }
        default: break
        }
        _ = (bits.golomb(), bits.flag())
        let (columns, lines) = (bits.golomb() + 1, bits.golomb() + 1)
        let isProgressive = bits.flag()
        if !isProgressive { _ = bits.flag() }
        _ = bits.flag()
        let fields = isProgressive ? 1 : 2
        guard columns <= Self.longestSide / 16, lines <= Self.longestSide / 16 else { return nil }
        var (width, height) = (columns * 16, lines * 16 * fields)
        if bits.flag() {
            let (across, down) = (arrays == 1 || arrays == 2 ? 2 : 1, (arrays == 1 ? 2 : 1) * fields)
            let (left, right, top, bottom) = (bits.golomb(), bits.golomb(), bits.golomb(), bits.golomb())
            guard max(left, right, top, bottom) <= Self.longestSide else { return nil }
            width -= across * (left + right)
            height -= down * (top + bottom)
        }
        guard !bits.isOver, (1...Self.longestSide).contains(width), (1...Self.longestSide).contains(height) else {
            return nil
        }
        dimensions = Dimensions(width: width, height: height)
        if bits.flag() { readUsability(&bits) }
    }

    private mutating func readUsability(_ bits: inout H264BitReader) {
        var stated = self
        if bits.flag() {
            let shape = bits.number(8)
            if shape == Self.ownShape {
                stated.pixelAspectRatio = FormatExtensions.Ratio(bits.number(16), bits.number(16))
            } else if (1...Self.shapes.count).contains(shape) {
                let (width, height) = Self.shapes[shape - 1]
                stated.pixelAspectRatio = FormatExtensions.Ratio(width, height)
            }
        }
        // Overscan.
        if bits.flag() { _ = bits.flag() }
        if bits.flag() {
            _ = bits.number(3)
            stated.range = bits.flag() ? .full : .video
            if bits.flag() {
                stated.primaries = ColorPrimaries(code: UInt8(bits.number(8)))
                stated.transferFunction = TransferFunction(code: UInt8(bits.number(8)))
                stated.matrix = YCbCrMatrix(code: UInt8(bits.number(8)))
            }
        }
        if bits.flag() {
            stated.chromaLocation = UInt8(exactly: bits.golomb() + 1).flatMap { ChromaLocation(code: $0) }
            _ = bits.golomb()
        }
        if !bits.isOver { self = stated }
    }

    /// What the pictures have, where the source itself says something else.
    public func completed(_ color: ColorDescription) -> ColorDescription {
        var color = color
        color.primaries = primaries ?? color.primaries
        color.transferFunction = transferFunction ?? color.transferFunction
        color.matrix = matrix ?? color.matrix
        color.range = range ?? color.range
        color.chromaLocation = chromaLocation ?? color.chromaLocation
        return color
    }
}
