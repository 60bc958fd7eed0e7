import BusProtocol

/// How wide a pixel is and how high, where JPEG pictures say that: as a ratio in the segment that they begin with
/// (`APP0`, JFIF 1.02). FFmpeg reads and writes it in this order.
struct JFIFDensity {
    private let width: UInt16
    private let height: UInt16

    /// nil: pixels are square, as pictures that say nothing have them.
    init?(_ ratio: FormatExtensions.Ratio) {
        guard ratio != .one else { return nil }
        let shift = max(0, Int.bitWidth - max(ratio.numerator, ratio.denominator).leadingZeroBitCount - 16)
        width = UInt16(max(1, ratio.numerator >> shift))
        height = UInt16(max(1, ratio.denominator >> shift))
    }

    /// Does nothing to pictures that begin with something else.
    func write(to jpeg: Slice<UnsafeMutableRawBufferPointer>) {
        let jpeg = UnsafeMutableRawBufferPointer(rebasing: jpeg)
        let beginning: [11 of UInt8] = [0xFF, 0xD8, 0xFF, 0xE0, 0, 16, 0x4A, 0x46, 0x49, 0x46, 0]
        guard jpeg.count >= 18 else { return }
        for index in beginning.indices where jpeg[index] != beginning[index] { return }
        // Behind the version: no unit, then both numbers.
        jpeg[13] = 0
        (jpeg[14], jpeg[15]) = (UInt8(width >> 8), UInt8(width & 0xFF))
        (jpeg[16], jpeg[17]) = (UInt8(height >> 8), UInt8(height & 0xFF))
    }
}
