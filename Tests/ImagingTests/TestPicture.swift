import CaptureCore
import TurboJPEG

/// Red, green, blue, 0–255.
struct Color: Equatable, CustomStringConvertible {
    var r: Double
    var g: Double
    var b: Double

    var description: String { "(\(Int(r.rounded())) \(Int(g.rounded())) \(Int(b.rounded())))" }

    /// BT.601, full range.
    var y: Double { 0.299 * r + 0.587 * g + 0.114 * b }
    var u: Double { (b - y) / 1.772 + 128 }
    var v: Double { (r - y) / 1.402 + 128 }

    init(_ r: Double, _ g: Double, _ b: Double) { (self.r, self.g, self.b) = (r, g, b) }

    init(y: Double, u: Double, v: Double) {
        r = y + 1.402 * (v - 128)
        g = y - 0.344136 * (u - 128) - 0.714136 * (v - 128)
        b = y + 1.772 * (u - 128)
    }

    init(limitedY y: Double, u: Double, v: Double) {
        self.init(y: (y - 16) * 255 / 219, u: (u - 128) * 255 / 224 + 128, v: (v - 128) * 255 / 224 + 128)
    }

    func isNear(_ other: Color, _ tolerance: Double) -> Bool {
        abs(r - other.r) <= tolerance && abs(g - other.g) <= tolerance && abs(b - other.b) <= tolerance
    }
}

/// A picture of eight flat patches, four across and two down, written in plain arithmetic apart from the code under
/// test.
struct TestPicture {
    static let colors = [
        Color(255, 255, 255), Color(0, 0, 0), Color(200, 60, 40), Color(40, 180, 70),
        Color(60, 70, 200), Color(128, 128, 128), Color(220, 200, 50), Color(30, 30, 30),
    ]

    let size: Dimensions

    func color(_ x: Int, _ y: Int) -> Color {
        let column = min(max(x, 0), size.width - 1) * 4 / size.width
        let row = min(max(y, 0), size.height - 1) * 2 / size.height
        return Self.colors[row * 4 + column]
    }

    /// The centres of the patches in a picture of that size, with their colours.
    static func centers(_ size: Dimensions) -> [(x: Int, y: Int, color: Color)] {
        (0..<8).map { patch in
            (size.width * (2 * (patch % 4) + 1) / 8, size.height * (2 * (patch / 4) + 1) / 4, colors[patch])
        }
    }

    private static func byte(_ value: Double) -> UInt8 { UInt8(min(255, max(0, value.rounded()))) }
    private static func limited(_ color: Color) -> (y: UInt8, u: UInt8, v: UInt8) {
        (
            byte(16 + color.y * 219 / 255), byte(128 + (color.u - 128) * 224 / 255),
            byte(128 + (color.v - 128) * 224 / 255)
        )
    }

    /// The payload of this picture, without padding; nil for formats that this doesn't write.
    func payload(_ name: String) throws -> (bytes: [UInt8], layout: FrameLayout)? {
        guard let format = PixelFormat(name) else { return nil }
        var planes: [(stride: Int, bytes: [UInt8])]
        switch name {
        case "YUYV", "YVYU", "UYVY", "VYUY": planes = [packed422(name)]
        case "NV12", "NM12": planes = semiPlanar(2, 2, uFirst: true)
        case "NV21": planes = semiPlanar(2, 2, uFirst: false)
        case "NV16": planes = semiPlanar(2, 1, uFirst: true)
        case "NV61": planes = semiPlanar(2, 1, uFirst: false)
        case "NV24": planes = semiPlanar(1, 1, uFirst: true)
        case "NV42": planes = semiPlanar(1, 1, uFirst: false)
        case "YU12", "YM12": planes = planar(2, 2)
        case "YV12": planes = swapped(planar(2, 2))
        case "422P": planes = planar(2, 1)
        case "411P": planes = planar(4, 1)
        case "YUV9": planes = planar(4, 4)
        case "YM24": planes = planar(1, 1)
        case "MJPG": return try jpeg()
        default:
            guard let pixel = Self.pixels[name] else { return nil }
            var bytes: [UInt8] = []
            for y in 0..<size.height {
                for x in 0..<size.width { bytes += pixel(color(x, y), x, y) }
            }
            planes = [(bytes.count / size.height, bytes)]
        }
        var layouts: [PlaneLayout] = []
        var all: [UInt8] = []
        for plane in planes {
            layouts.append(PlaneLayout(offset: all.count, stride: plane.stride, bytes: plane.bytes.count))
            all += plane.bytes
        }
        return (all, FrameLayout(pixelFormat: format, dimensions: size, planes: layouts))
    }

    private typealias Pixel = @Sendable (Color, Int, Int) -> [UInt8]

    private static func word(_ value: Int) -> [UInt8] { [UInt8(value & 255), UInt8(value >> 8 & 255)] }
    /// So many of the highest bits of red, green and blue, red first.
    private static func bits(_ color: Color, _ r: Int, _ g: Int, _ b: Int) -> Int {
        let parts = (Int(color.r) >> (8 - r), Int(color.g) >> (8 - g), Int(color.b) >> (8 - b))
        return (parts.0 << (g + b)) | (parts.1 << b) | parts.2
    }
    private static func deepGray(_ bits: Int) -> Pixel {
        { color, _, _ in word(Int((color.y / 255 * Double((1 << bits) - 1)).rounded())) }
    }
    /// `order` names the samples of two by two pixels.
    private static func bayer(_ order: String, bits: Int = 8) -> Pixel {
        let order = Array(order)
        return { color, x, y in
            let sample: Double =
                switch order[y % 2 * 2 + x % 2] {
                case "R": color.r
                case "G": color.g
                default: color.b
                }
            return bits == 8 ? [byte(sample)] : word(Int((sample / 255 * Double((1 << bits) - 1)).rounded()))
        }
    }
    private static let pixels: [String: Pixel] = [
        "BGR3": { color, _, _ in [byte(color.b), byte(color.g), byte(color.r)] },
        "RGB3": { color, _, _ in [byte(color.r), byte(color.g), byte(color.b)] },
        "XR24": { color, _, _ in [byte(color.b), byte(color.g), byte(color.r), 9] },
        "AR24": { color, _, _ in [byte(color.b), byte(color.g), byte(color.r), 0] },
        "BX24": { color, _, _ in [9, byte(color.r), byte(color.g), byte(color.b)] },
        "XB24": { color, _, _ in [byte(color.r), byte(color.g), byte(color.b), 9] },
        "RX24": { color, _, _ in [9, byte(color.b), byte(color.g), byte(color.r)] },
        "RGBP": { color, _, _ in word(bits(color, 5, 6, 5)) },
        "RGBR": { color, _, _ in word(bits(color, 5, 6, 5)).reversed()
        },
        "XR15": { color, _, _ in word(bits(color, 5, 5, 5)) },
        "VUYX": { color, _, _ in
            let (y, u, v) = limited(color)
            return [v, u, y, 7]
        },
        "AYUV": { color, _, _ in
            let (y, u, v) = limited(color)
            return [7, y, u, v]
        },
        "GREY": { color, _, _ in [byte(color.y)] },
        "Y10": deepGray(10), "Y12": deepGray(12), "Y16": deepGray(16),
        "Y16 -BE": { color, _, _ in word(Int((color.y / 255 * 65535).rounded())).reversed() },
        "BA81": bayer("BGGR"), "GBRG": bayer("GBRG"), "GRBG": bayer("GRBG"), "RGGB": bayer("RGGB"),
        "RG10": bayer("RGGB", bits: 10), "BG12": bayer("BGGR", bits: 12), "RG16": bayer("RGGB", bits: 16),
    ]

    private func packed422(_ order: String) -> (Int, [UInt8]) {
        var bytes: [UInt8] = []
        for y in 0..<size.height {
            for x in stride(from: 0, to: size.width, by: 2) {
                let (first, second) = (Self.limited(color(x, y)), Self.limited(color(x + 1, y)))
                let group: [UInt8] =
                    switch order {
                    case "YUYV": [first.y, first.u, second.y, first.v]
                    case "YVYU": [first.y, first.v, second.y, first.u]
                    case "UYVY": [first.u, first.y, first.v, second.y]
                    default: [first.v, first.y, first.u, second.y]
                    }
                bytes += group
            }
        }
        return ((size.width + 1) / 2 * 4, bytes)
    }

    private func luma() -> (Int, [UInt8]) {
        var bytes: [UInt8] = []
        for y in 0..<size.height {
            for x in 0..<size.width { bytes.append(Self.limited(color(x, y)).y) }
        }
        return (size.width, bytes)
    }

    private func semiPlanar(_ across: Int, _ down: Int, uFirst: Bool) -> [(stride: Int, bytes: [UInt8])] {
        var bytes: [UInt8] = []
        for y in stride(from: 0, to: size.height, by: down) {
            for x in stride(from: 0, to: size.width, by: across) {
                let (_, u, v) = Self.limited(color(x, y))
                bytes += uFirst ? [u, v] : [v, u]
            }
        }
        return [luma(), ((size.width + across - 1) / across * 2, bytes)]
    }

    private func planar(_ across: Int, _ down: Int) -> [(stride: Int, bytes: [UInt8])] {
        var (u, v): ([UInt8], [UInt8]) = ([], [])
        for y in stride(from: 0, to: size.height, by: down) {
            for x in stride(from: 0, to: size.width, by: across) {
                let sample = Self.limited(color(x, y))
                u.append(sample.u)
                v.append(sample.v)
            }
        }
        let width = (size.width + across - 1) / across
        return [luma(), (width, u), (width, v)]
    }

    private func swapped(_ planes: [(stride: Int, bytes: [UInt8])]) -> [(stride: Int, bytes: [UInt8])] {
        [planes[0], planes[2], planes[1]]
    }

    /// As JPEG, quality 95.
    func jpeg(
        _ subsampling: ChromaSubsampling = .s422
    ) throws -> (bytes: [UInt8], layout: FrameLayout) {
        var pixels: [UInt8] = []
        for y in 0..<size.height {
            for x in 0..<size.width {
                let color = color(x, y)
                pixels += [Self.byte(color.r), Self.byte(color.g), Self.byte(color.b)]
            }
        }
        let room = JPEGCompressor.maximumBytes(width: size.width, height: size.height, subsampling: .s444)
        let bytes = try [UInt8](unsafeUninitializedCapacity: room) { buffer, count in
            count = try pixels.withUnsafeBytes { pixels in
                try JPEGCompressor().compress(
                    pixels, format: .rgb, width: size.width, height: size.height, stride: size.width * 3,
                    subsampling: subsampling, quality: 95, into: UnsafeMutableRawBufferPointer(buffer))
            }
        }
        let plane = PlaneLayout(offset: 0, stride: 0, bytes: room)
        return (bytes, FrameLayout(pixelFormat: .motionJPEG, dimensions: size, planes: [plane]))
    }
}
