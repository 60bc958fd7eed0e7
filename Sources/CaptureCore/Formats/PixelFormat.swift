/// A pixel format by its four-character code, as V4L2 spells it (`V4L2_PIX_FMT_*`).
public struct PixelFormat: Hashable, Sendable, CustomStringConvertible {
    /// The code as the kernel has it: the first character is the lowest byte.
    public var code: UInt32

    public init(code: UInt32) { self.code = code }

    /// Reads `YUYV`, `MJPG`, or a code with bit 31 set as v4l2-ctl writes it (`Y16 -BE`). Shorter codes are filled with
    /// blanks.
    public init?(_ text: String) {
        var name = Substring(text)
        var flag: UInt32 = 0
        if name.hasSuffix("-BE"), name.utf8.count > 3 {
            name = name.dropLast(3)
            flag = 1 << 31
        }
        let bytes = Array(name.utf8)
        guard (1...4).contains(bytes.count), bytes.allSatisfy({ (0x20...0x7E).contains($0) }) else { return nil }
        var code = flag
        for index in 0..<4 { code |= UInt32(index < bytes.count ? bytes[index] : 0x20) << (8 * UInt32(index)) }
        self.code = code
    }

    /// The code as text, as v4l2-ctl prints it: `YUYV`, `Y16 `, `Y16 -BE`.
    public var description: String {
        let bytes = (0..<4).map { UInt8(truncatingIfNeeded: (code & 0x7FFF_FFFF) >> (8 * UInt32($0))) }
        return String(decoding: bytes, as: UTF8.self) + (code >> 31 == 1 ? "-BE" : "")
    }

    /// The same without blanks at the end: what the bus protocol calls it.
    public var name: String {
        var text = description
        while text.hasSuffix(" ") { text.removeLast() }
        return text
    }

    /// Frames are compressed pictures of changing size.
    public var isCompressed: Bool { [.motionJPEG, .jpeg, .h264].contains(self) }

    public static let yuyv = PixelFormat(fourCC: "YUYV")
    public static let uyvy = PixelFormat(fourCC: "UYVY")
    public static let nv12 = PixelFormat(fourCC: "NV12")
    /// NV12 in full range: AVFoundation's `kCVPixelFormatType_420YpCbCr8BiPlanarFullRange`, for which V4L2 has no code
    /// of its own.
    public static let nv12FullRange = PixelFormat(fourCC: "420f")
    public static let i420 = PixelFormat(fourCC: "YU12")
    /// 8 bits each of blue, green, red, in that order in memory (`V4L2_PIX_FMT_BGR24`).
    public static let bgr24 = PixelFormat(fourCC: "BGR3")
    /// 8 bits each of red, green, blue, in that order in memory (`V4L2_PIX_FMT_RGB24`).
    public static let rgb24 = PixelFormat(fourCC: "RGB3")
    public static let grey = PixelFormat(fourCC: "GREY")
    public static let motionJPEG = PixelFormat(fourCC: "MJPG")
    public static let jpeg = PixelFormat(fourCC: "JPEG")
    public static let h264 = PixelFormat(fourCC: "H264")
    /// 8-bit Bayer, first line blue green (`V4L2_PIX_FMT_SBGGR8`).
    public static let bayerBGGR8 = PixelFormat(fourCC: "BA81")
    /// 8-bit Bayer, first line green blue (`V4L2_PIX_FMT_SGBRG8`).
    public static let bayerGBRG8 = PixelFormat(fourCC: "GBRG")
    /// 8-bit Bayer, first line green red (`V4L2_PIX_FMT_SGRBG8`).
    public static let bayerGRBG8 = PixelFormat(fourCC: "GRBG")
    /// 8-bit Bayer, first line red green (`V4L2_PIX_FMT_SRGGB8`).
    public static let bayerRGGB8 = PixelFormat(fourCC: "RGGB")

    /// 12 bits of Bayer in two bytes each, first line red green (`V4L2_PIX_FMT_SRGGB12`).
    public static let bayerRGGB12 = PixelFormat(fourCC: "RG12")
    /// Four pixels of 10 bits of Bayer in five bytes, first line red green (`V4L2_PIX_FMT_SRGGB10P`).
    public static let bayerRGGB10Packed = PixelFormat(fourCC: "pRAA")
    /// 16 bits of grey (`V4L2_PIX_FMT_Y16`).
    public static let grey16 = PixelFormat(fourCC: "Y16 ")
    /// 16 bits each of red, green, blue, in that order in memory, the lower byte first (`V4L2_PIX_FMT_RGB48`).
    public static let rgb48 = PixelFormat(fourCC: "RGB6")
    /// 16 bits of depth (`V4L2_PIX_FMT_Z16`).
    public static let depth16 = PixelFormat(fourCC: "Z16 ")

    private init(fourCC: StaticString) {
        precondition(fourCC.utf8CodeUnitCount == 4)
        var code: UInt32 = 0
        for index in 0..<4 { code |= UInt32(fourCC.utf8Start[index]) << (8 * UInt32(index)) }
        self.code = code
    }
}
