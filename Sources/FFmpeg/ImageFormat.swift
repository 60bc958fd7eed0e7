import CFFmpeg

/// A way in which pixels lie in memory, by FFmpeg's name (`AVPixelFormat`).
public struct ImageFormat: Hashable, Sendable, CustomStringConvertible {
    let code: AVPixelFormat

    public static func == (left: Self, right: Self) -> Bool { left.code == right.code }
    public func hash(into hasher: inout Hasher) { hasher.combine(code.rawValue) }

    init(_ code: AVPixelFormat) { self.code = code }

    /// By FFmpeg's name: `yuyv422`, `bayer_rggb8`, `gray10le`. nil if the library has none of that name that can be
    /// read.
    public init?(named name: String) {
        let code = av_get_pix_fmt(name)
        guard code != AV_PIX_FMT_NONE, sws_isSupportedInput(code) > 0 else { return nil }
        self.code = code
    }

    /// FFmpeg's name.
    public var description: String { av_get_pix_fmt_name(code).map { String(cString: $0) } ?? "none" }

    /// One colour a pixel, in a pattern of two by two.
    public var isBayer: Bool {
        guard let descriptor = av_pix_fmt_desc_get(code) else { return false }
        return descriptor.pointee.flags & UInt64(AV_PIX_FMT_FLAG_BAYER) != 0
    }

    /// Red, green and blue, in whatever order and depth, or by a palette.
    public var isRGB: Bool {
        guard let descriptor = av_pix_fmt_desc_get(code) else { return false }
        let flags = UInt64(AV_PIX_FMT_FLAG_RGB) | UInt64(AV_PIX_FMT_FLAG_PAL)
        return descriptor.pointee.flags & flags != 0 && !isBayer
    }

    /// Luma alone, of whatever depth.
    public var isGray: Bool {
        guard let descriptor = av_pix_fmt_desc_get(code) else { return false }
        return descriptor.pointee.nb_components <= 2 && !isRGB && !isBayer
    }

    /// Of a sample, of the first kind that a pixel has.
    public var bits: Int { av_pix_fmt_desc_get(code).map { Int($0.pointee.comp.0.depth) } ?? 0 }

    /// Samples of several bytes have the upper one first.
    public var isSwapped: Bool {
        guard let descriptor = av_pix_fmt_desc_get(code) else { return false }
        return descriptor.pointee.flags & UInt64(AV_PIX_FMT_FLAG_BE) != 0
    }

    /// How many planes a picture has.
    public var planes: Int { max(0, min(4, Int(av_pix_fmt_count_planes(code)))) }

    /// Bytes of one line of a plane without padding; 0 where there is no such plane.
    public func lineBytes(plane: Int, width: Int) -> Int {
        guard (0..<planes).contains(plane), (1...65536).contains(width) else { return 0 }
        return max(0, Int(av_image_get_linesize(code, Int32(width), Int32(plane))))
    }

    /// Lines of a plane; 0 where there is no such plane.
    public func lines(plane: Int, height: Int) -> Int {
        guard (0..<planes).contains(plane), let descriptor = av_pix_fmt_desc_get(code) else { return 0 }
        let shift = Int(descriptor.pointee.log2_chroma_h)
        return plane == 1 || plane == 2 ? (height + (1 << shift) - 1) >> shift : height
    }

    public static let bgr24 = ImageFormat(AV_PIX_FMT_BGR24)
    public static let rgb24 = ImageFormat(AV_PIX_FMT_RGB24)
    public static let gray8 = ImageFormat(AV_PIX_FMT_GRAY8)
    /// Samples of 16 bits, the lower byte first.
    public static let gray16 = ImageFormat(AV_PIX_FMT_GRAY16LE)
    public static let rgb48 = ImageFormat(AV_PIX_FMT_RGB48LE)
    public static let yuv420p = ImageFormat(AV_PIX_FMT_YUV420P)
    public static let yuv422p = ImageFormat(AV_PIX_FMT_YUV422P)
    public static let yuv444p = ImageFormat(AV_PIX_FMT_YUV444P)
    public static let yuv440p = ImageFormat(AV_PIX_FMT_YUV440P)
    public static let yuv411p = ImageFormat(AV_PIX_FMT_YUV411P)
    public static let yuv410p = ImageFormat(AV_PIX_FMT_YUV410P)
    public static let yuyv422 = ImageFormat(AV_PIX_FMT_YUYV422)
    public static let uyvy422 = ImageFormat(AV_PIX_FMT_UYVY422)
    public static let nv12 = ImageFormat(AV_PIX_FMT_NV12)
}
