public import BusProtocol

// What can be made of a pixel format, beyond passing it on.

extension PixelFormat {
    /// What the pictures of a format can be made into.
    enum Kind: Hashable {
        /// Colour, as the device has processed it: luma and chroma.
        case colour
        /// The same as red, green and blue.
        case rgb
        /// Colour that the sensor's pattern still has to be taken out of.
        case bayer
        /// Light and dark only.
        case grey
        /// How far away things are, which can be shown as grey.
        case depth
        /// Nothing: depends on the pictures before it, or isn't known here.
        case opaque
    }

    var kind: Kind { Self.known[name]?.kind ?? .opaque }

    /// The encoding of renditions that is nearest to this format; nil: none can be made of it.
    public var nearestEncoding: Rendition.Encoding? { Self.known[name]?.encoding }

    /// The encoding whose pictures have just this pixel format; nil: renditions have no such.
    var renditionEncoding: Rendition.Encoding? {
        switch self {
        case .motionJPEG, .jpeg: .jpeg
        case .yuyv: .yuyv
        case .nv12: .nv12
        case .i420: .i420
        case .bgr24: .bgr
        case .rgb24: .rgb
        case .grey: .gray
        case .grey16: .gray16
        case .rgb48: .rgb48
        default: nil
        }
    }

    /// Lower is better for who wants pictures and names no pixel format: colour, however it is packed, before what
    /// lacks it, and light before depth.
    var rank: Int {
        switch kind {
        case .colour, .rgb: 0
        case .bayer: 1
        case .grey: 2
        case .depth: 3
        case .opaque: 4
        }
    }

    /// Every picture is whole in itself, so that some can be left out.
    var isDecimatable: Bool { self != .h264 }

    /// The names of all formats that renditions are made of, as the kernel's pixel format documentation spells them.
    static var convertibleNames: [String] { known.keys.sorted() }

    private static let known: [String: (kind: Kind, encoding: Rendition.Encoding)] = {
        var known: [String: (kind: Kind, encoding: Rendition.Encoding)] = [:]
        func add(_ kind: Kind, _ encoding: Rendition.Encoding, _ names: String) {
            for name in names.split(separator: ",") { known[String(name)] = (kind, encoding) }
        }
        add(.colour, .jpeg, "MJPG,JPEG")
        add(.colour, .yuyv, "YUYV,YVYU,UYVY,VYUY,NV16,NV61,NM16,NM61,422P,YM16,YM61")
        add(.colour, .nv12, "NV12,NV21,NM12,NM21,420f")
        add(.colour, .i420, "YU12,YV12,YM12,YM21,411P,YUV9,YVU9")
        add(.colour, .bgr, "NV24,NV42,YM24,YM42,YUV3,AYUV,XYUV,YUV4,VUYA,VUYX,YUVA,YUVX")
        add(.rgb, .rgb, "RGB3")
        add(.rgb, .bgr, "BGR3,XR24,AR24,BGR4,BX24,BA24,RGB4,XB24,AB24,RX24,RA24,RGBP,RGBR,RGB1,RGBO,AR15,XR15")
        add(.rgb, .bgr, "AB15,XB15,RGBQ,AR15-BE,XR15-BE,R444,AR12,XR12,AB12,XB12")
        add(.bayer, .bgr, "BA81,GBRG,GRBG,RGGB,BYR2,GB16,GR16,RG16,BG10,BG12,BG14,GB10,GB12,GB14,BA10,BA12,GR14")
        add(.bayer, .bgr, "RG10,RG12,RG14")
        add(.grey, .gray, "GREY,Y10,Y12,Y14,Y16,Y16 -BE")
        add(.depth, .gray, "Z16")
        return known
    }()
}
