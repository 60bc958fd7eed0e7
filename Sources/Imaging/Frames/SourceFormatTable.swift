import FFmpeg
import TurboJPEG

extension SourceFormat {
    /// By V4L2's four-character code, without blanks at the end. Sources: the kernel's pixel format documentation and
    /// FFmpeg's `pixfmt.h`; both name bytes in memory order or little-endian words, and not always the same one.
    static let table: [String: SourceFormat] = {
        var table: [String: SourceFormat] = [
            "MJPG": .jpeg, "JPEG": .jpeg, "GREY": .gray,
            "YUYV": .packed422(lumaFirst: true, uFirst: true), "YVYU": .packed422(lumaFirst: true, uFirst: false),
            "UYVY": .packed422(lumaFirst: false, uFirst: true), "VYUY": .packed422(lumaFirst: false, uFirst: false),
            "YUV3": .packed444(bytes: 3, y: 0, u: 1, v: 2),
            "AYUV": .packed444(bytes: 4, y: 1, u: 2, v: 3), "XYUV": .packed444(bytes: 4, y: 1, u: 2, v: 3),
            "YUV4": .packed444(bytes: 4, y: 1, u: 2, v: 3),
            "VUYA": .packed444(bytes: 4, y: 2, u: 1, v: 0), "VUYX": .packed444(bytes: 4, y: 2, u: 1, v: 0),
            "YUVA": .packed444(bytes: 4, y: 0, u: 1, v: 2), "YUVX": .packed444(bytes: 4, y: 0, u: 1, v: 2),
            "NV12": .semiPlanar(.s420, uFirst: true), "NV21": .semiPlanar(.s420, uFirst: false),
            "420f": .semiPlanar(.s420, uFirst: true),
            "NV16": .semiPlanar(.s422, uFirst: true), "NV61": .semiPlanar(.s422, uFirst: false),
            "NV24": .semiPlanar(.s444, uFirst: true), "NV42": .semiPlanar(.s444, uFirst: false),
            "YU12": .planar(.s420, uFirst: true), "YV12": .planar(.s420, uFirst: false),
            "422P": .planar(.s422, uFirst: true), "411P": .planar(ChromaLayout(across: 4, down: 1), uFirst: true),
            "YUV9": .planar(ChromaLayout(across: 4, down: 4), uFirst: true),
            "YVU9": .planar(ChromaLayout(across: 4, down: 4), uFirst: false),
            "YM24": .planar(.s444, uFirst: true), "YM42": .planar(.s444, uFirst: false),
            "YM16": .planar(.s422, uFirst: true), "YM61": .planar(.s422, uFirst: false),
        ]
        // Each plane in a buffer of its own.
        for (name, same) in [
            "NM12": "NV12", "NM21": "NV21", "NM16": "NV16", "NM61": "NV61", "YM12": "YU12", "YM21": "YV12",
        ] {
            table[name] = table[same]
        }
        let rgb: [(PackedFormat, String, [String])] = [
            (.bgr, "bgr24", ["BGR3"]), (.rgb, "rgb24", ["RGB3"]),
            (.bgrx, "bgr0", ["XR24", "AR24", "BGR4"]), (.xrgb, "0rgb", ["BX24", "BA24", "RGB4"]),
            (.rgbx, "rgb0", ["XB24", "AB24"]), (.xbgr, "0bgr", ["RX24", "RA24"]),
        ]
        for (packed, name, codes) in rgb {
            guard let format = ImageFormat(named: name) else { continue }
            for code in codes { table[code] = .packedRGB(packed, format) }
        }
        let gray = [
            "Y10": "gray10le", "Y12": "gray12le", "Y14": "gray14le", "Y16": "gray16le", "Y16 -BE": "gray16be",
            "Z16": "gray16le",
        ]
        for (code, name) in gray {
            table[code] = ImageFormat(named: name).map { .deepGray($0) }
        }
        let converted = [
            "RGBP": "rgb565le", "RGBR": "rgb565be", "RGB1": "rgb8",
            "RGBO": "rgb555le", "AR15": "rgb555le", "XR15": "rgb555le", "AB15": "bgr555le", "XB15": "bgr555le",
            "RGBQ": "rgb555be", "AR15-BE": "rgb555be", "XR15-BE": "rgb555be",
            "R444": "rgb444le", "AR12": "rgb444le", "XR12": "rgb444le", "AB12": "bgr444le", "XB12": "bgr444le",
            "BA81": "bayer_bggr8", "GBRG": "bayer_gbrg8", "GRBG": "bayer_grbg8", "RGGB": "bayer_rggb8",
        ]
        for (code, name) in converted {
            table[code] = ImageFormat(named: name).map { .converted($0) }
        }
        let bayer: [(String, [(code: String, bits: Int)])] = [
            ("bayer_bggr16le", [("BG10", 10), ("BG12", 12), ("BG14", 14), ("BYR2", 16)]),
            ("bayer_gbrg16le", [("GB10", 10), ("GB12", 12), ("GB14", 14), ("GB16", 16)]),
            ("bayer_grbg16le", [("BA10", 10), ("BA12", 12), ("GR14", 14), ("GR16", 16)]),
            ("bayer_rggb16le", [("RG10", 10), ("RG12", 12), ("RG14", 14), ("RG16", 16)]),
        ]
        for (name, codes) in bayer {
            guard let format = ImageFormat(named: name) else { continue }
            for (code, bits) in codes { table[code] = .deepBayer(format, bits: bits) }
        }
        return table
    }()
}
