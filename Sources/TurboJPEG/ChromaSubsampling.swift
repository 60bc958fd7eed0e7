import CTurboJPEG

/// How the chroma planes of a JPEG picture are subsampled (`TJSAMP_*`).
public enum ChromaSubsampling: Hashable, Sendable, CaseIterable {
    /// Chroma as large as luma.
    case s444
    /// Half the width.
    case s422
    /// Half the width and half the height.
    case s420
    /// Luma only.
    case gray
    /// Half the height.
    case s440
    /// A quarter of the width.
    case s411

    var code: Int32 {
        switch self {
        case .s444: Int32(TJSAMP_444.rawValue)
        case .s422: Int32(TJSAMP_422.rawValue)
        case .s420: Int32(TJSAMP_420.rawValue)
        case .gray: Int32(TJSAMP_GRAY.rawValue)
        case .s440: Int32(TJSAMP_440.rawValue)
        case .s411: Int32(TJSAMP_411.rawValue)
        }
    }

    init?(code: Int32) {
        guard let known = Self.allCases.first(where: { $0.code == code }) else { return nil }
        self = known
    }

    /// Luma pixels per chroma pixel across.
    public var horizontalFactor: Int {
        switch self {
        case .s444, .gray, .s440: 1
        case .s422, .s420: 2
        case .s411: 4
        }
    }

    /// Luma lines per chroma line.
    public var verticalFactor: Int {
        switch self {
        case .s444, .gray, .s422, .s411: 1
        case .s420, .s440: 2
        }
    }

    /// Planes of a picture: one for gray, else three.
    public var planes: Int { self == .gray ? 1 : 3 }

    /// Bytes that the library reads or writes of each line of a plane: its width, with luma rounded up to whole chroma
    /// pixels.
    public func planeWidth(_ plane: Int, pictureWidth: Int) -> Int {
        let chroma = (pictureWidth + horizontalFactor - 1) / horizontalFactor
        return plane == 0 ? chroma * horizontalFactor : chroma
    }

    /// Lines that the library reads or writes of a plane, with luma rounded up to whole chroma lines.
    public func planeHeight(_ plane: Int, pictureHeight: Int) -> Int {
        let chroma = (pictureHeight + verticalFactor - 1) / verticalFactor
        return plane == 0 ? chroma * verticalFactor : chroma
    }
}

/// The order of samples in a packed picture (`TJPF_*`).
public enum PackedFormat: Hashable, Sendable, CaseIterable {
    /// Three bytes a pixel, in this order in memory.
    case rgb, bgr
    /// Four bytes a pixel, in this order in memory; `x` is ignored when read and set to 255 when written.
    case rgbx, bgrx, xrgb, xbgr
    /// One byte a pixel.
    case gray
    /// Cyan, magenta, yellow and black as they are in the file: four bytes a pixel. To and from such pictures only.
    case cmyk

    var code: Int32 {
        switch self {
        case .rgb: Int32(TJPF_RGB.rawValue)
        case .bgr: Int32(TJPF_BGR.rawValue)
        case .rgbx: Int32(TJPF_RGBX.rawValue)
        case .bgrx: Int32(TJPF_BGRX.rawValue)
        case .xrgb: Int32(TJPF_XRGB.rawValue)
        case .xbgr: Int32(TJPF_XBGR.rawValue)
        case .gray: Int32(TJPF_GRAY.rawValue)
        case .cmyk: Int32(TJPF_CMYK.rawValue)
        }
    }

    public var bytesPerPixel: Int {
        switch self {
        case .gray: 1
        case .rgb, .bgr: 3
        case .rgbx, .bgrx, .xrgb, .xbgr, .cmyk: 4
        }
    }
}
