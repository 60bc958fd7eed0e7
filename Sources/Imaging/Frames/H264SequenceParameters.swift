public import BusProtocol
public import CaptureCore

/// What a sequence parameter set of H.264 says about the pictures (ITU-T H.264, 7.3.2.1.1 and E.1.1).
public struct H264SequenceParameters: Hashable, Sendable {
    /// Pixels that are to be shown.
    public var dimensions: Dimensions
    /// As ITU-T H.273 counts them; nil: it says nothing, or that it is not known.
    public var primaries: ColorPrimaries?
    public var transferFunction: TransferFunction?
    public var matrix: YCbCrMatrix?
    /// nil: it says nothing.
    public var range: VideoColorRange?

    /// Profiles whose sets have the form of their chroma, bit depths and scaling lists.
    private static let highProfiles: Set<Int> = [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135]
    private static let longestSide = 16384

    /// - Parameter unit: with its start code, or without one.
    /// - Returns: nil: it is none, is damaged, or no picture has that size.
    public init?(_ unit: UnsafeRawBufferPointer) {
        var start = 0
        while start < unit.count, unit[start] == 0 { start += 1 }
        if start >= 2, start < unit.count, unit[start] == 1 { start += 1 } else { start = 0 }
        guard start < unit.count, unit[start] & 0x1F == 7 else { return nil }
        var bits = BitReader(unit: UnsafeRawBufferPointer(rebasing: unit[(start + 1)...]))
        let profile = bits.number(8)
        _ = bits.number(16)
        _ = bits.golomb()
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
        guard bits.flag() else { return }
        // The shape of a pixel, and overscan.
        if bits.flag(), bits.number(8) == 255 { _ = bits.number(32) }
        if bits.flag() { _ = bits.flag() }
        guard bits.flag() else { return }
        _ = bits.number(3)
        let isFull = bits.flag()
        let isDescribed = bits.flag()
        let codes = isDescribed ? (bits.number(8), bits.number(8), bits.number(8)) : (2, 2, 2)
        guard !bits.isOver else { return }
        range = isFull ? .full : .video
        primaries = ColorPrimaries(code: UInt8(codes.0))
        transferFunction = TransferFunction(code: UInt8(codes.1))
        matrix = YCbCrMatrix(code: UInt8(codes.2))
    }

    /// What the pictures have, where the source itself says something else.
    public func completed(_ color: ColorDescription) -> ColorDescription {
        var color = color
        color.primaries = primaries ?? color.primaries
        color.transferFunction = transferFunction ?? color.transferFunction
        color.matrix = matrix ?? color.matrix
        color.range = range ?? color.range
        return color
    }
}

/// The bits of a unit, without the bytes that keep start codes out of it (ITU-T H.264, 7.3.1).
private struct BitReader {
    private let bytes: [UInt8]
    private var index = 0
    /// More was read than there is, or a number of more than 32 bits.
    private(set) var isOver = false

    /// All that is read of a set lies in so many bytes, with the longest lists.
    private static let mostBytes = 2048

    init(unit: UnsafeRawBufferPointer) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(min(unit.count, Self.mostBytes))
        var zeros = 0
        for byte in unit.prefix(Self.mostBytes) {
            if zeros >= 2, byte == 3 {
                zeros = 0
                continue
            }
            zeros = byte == 0 ? zeros + 1 : 0
            bytes.append(byte)
        }
        self.bytes = bytes
    }

    mutating func flag() -> Bool {
        guard index < bytes.count * 8 else {
            isOver = true
            return false
        }
        defer { index += 1 }
        return bytes[index / 8] >> UInt8(7 - index % 8) & 1 == 1
    }

    mutating func number(_ count: Int) -> Int {
        var number = 0
        for _ in 0..<count { number = number << 1 | (flag() ? 1 : 0) }
        return number
    }

    /// ue(v): Exp-Golomb. Of se(v) only the bits are taken.
    mutating func golomb() -> Int {
        var zeros = 0
        while !isOver, !flag() {
            zeros += 1
            if zeros > 31 { isOver = true }
        }
        guard !isOver else { return 0 }
        return (1 << zeros) - 1 + number(zeros)
    }

    mutating func skipScalingList(_ count: Int) {
        guard flag() else { return }
        var (last, next) = (8, 8)
        for _ in 0..<count {
            if next != 0 {
                let code = golomb()
                next = (last + (code % 2 == 0 ? -code / 2 : (code + 1) / 2) + 512) & 255
            }
            if next != 0 { last = next }
        }
    }
}
