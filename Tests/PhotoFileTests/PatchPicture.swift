import CaptureCore
import Testing
import TurboJPEG

/// Red, green, blue, 0–255.
struct Patch: Hashable, CustomStringConvertible {
    var r: Int
    var g: Int
    var b: Int

    var description: String { "(\(r) \(g) \(b))" }

    /// BT.601, full range.
    var luma: Double { 0.299 * Double(r) + 0.587 * Double(g) + 0.114 * Double(b) }

    func isNear(_ other: Patch, _ tolerance: Int = 24) -> Bool {
        abs(r - other.r) <= tolerance && abs(g - other.g) <= tolerance && abs(b - other.b) <= tolerance
    }
}

/// A picture of four patches: no two ways of turning it look alike. Written in plain arithmetic apart from the code
/// under test.
struct PatchPicture {
    /// Top left, top right, bottom left, bottom right.
    static let patches = [
        Patch(r: 200, g: 40, b: 40), Patch(r: 40, g: 180, b: 60), Patch(r: 50, g: 60, b: 200),
        Patch(r: 220, g: 220, b: 220),
    ]

    let size: Dimensions
    /// Only the middle half of the width and the height has patches; the rest is black.
    var isFramed = false

    /// The patches of the picture turned by quarters clockwise, then mirrored.
    static func patches(quarters: Int, isMirrored: Bool) -> [Patch] {
        var now = patches
        for _ in 0..<quarters { now = [now[2], now[0], now[3], now[1]] }
        return isMirrored ? [now[1], now[0], now[3], now[2]] : now
    }

    /// Where the four are looked at, in a picture of that size.
    static func centers(_ size: Dimensions) -> [(x: Int, y: Int)] {
        [(1, 1), (3, 1), (1, 3), (3, 3)].map { (size.width * $0.0 / 4, size.height * $0.1 / 4) }
    }

    private func pixel(_ x: Int, _ y: Int) -> Patch {
        let patch = Self.patches[(y * 2 / size.height) * 2 + x * 2 / size.width]
        guard isFramed else { return patch }
        let isInside =
            (size.width / 4..<size.width * 3 / 4).contains(x) && (size.height / 4..<size.height * 3 / 4).contains(y)
        return isInside ? patch : Patch(r: 0, g: 0, b: 0)
    }

    /// A frame of a camera, without padding. Of JPEG with all that libjpeg-turbo writes.
    func frame(_ format: PixelFormat, _ subsampling: ChromaSubsampling = .s422) throws -> (
        bytes: [UInt8], layout: FrameLayout
    ) {
        let layout = try #require(FrameLayout.packed(format, size))
        var bytes = [UInt8](repeating: 0, count: layout.isOfJPEG ? 0 : layout.totalBytes)
        func write(_ plane: Int, _ offset: Int, _ line: Int, _ value: Double) {
            bytes[layout.planes[plane].offset + line * layout.planes[plane].stride + offset] =
                UInt8(min(255, max(0, value.rounded())))
        }
        func limited(_ patch: Patch) -> (y: Double, u: Double, v: Double) {
            let y = patch.luma
            return (
                16 + y * 219 / 255, 128 + (Double(patch.b) - y) / 1.772 * 224 / 255,
                128 + (Double(patch.r) - y) / 1.402 * 224 / 255
            )
        }
        for y in 0..<size.height where !layout.isOfJPEG {
            for x in 0..<size.width {
                let patch = pixel(x, y)
                let (luma, u, v) = limited(patch)
                switch format {
                case .yuyv:
                    write(0, x * 2, y, luma)
                    write(0, x * 2 + 1, y, x % 2 == 0 ? u : v)
                case .nv12:
                    write(0, x, y, luma)
                    write(1, x / 2 * 2, y / 2, u)
                    write(1, x / 2 * 2 + 1, y / 2, v)
                case .i420:
                    write(0, x, y, luma)
                    write(1, x / 2, y / 2, u)
                    write(2, x / 2, y / 2, v)
                case .bgr24, .rgb24:
                    let isRGB = format == .rgb24
                    write(0, x * 3, y, Double(isRGB ? patch.r : patch.b))
                    write(0, x * 3 + 1, y, Double(patch.g))
                    write(0, x * 3 + 2, y, Double(isRGB ? patch.b : patch.r))
                case .bayerRGGB8:
                    let sample = y % 2 == 0 ? (x % 2 == 0 ? patch.r : patch.g) : (x % 2 == 0 ? patch.g : patch.b)
                    write(0, x, y, Double(sample))
                default: write(0, x, y, patch.luma)
                }
            }
        }
        return (layout.isOfJPEG ? try jpeg(subsampling) : bytes, layout)
    }

    private func jpeg(_ subsampling: ChromaSubsampling) throws -> [UInt8] {
        var pixels: [UInt8] = []
        for y in 0..<size.height {
            for x in 0..<size.width {
                let patch = pixel(x, y)
                pixels += [UInt8(patch.r), UInt8(patch.g), UInt8(patch.b)]
            }
        }
        return try Self.jpeg(pixels, size, subsampling)
    }

    /// Encodes red, green and blue, quality 90.
    static func jpeg(_ pixels: [UInt8], _ size: Dimensions, _ subsampling: ChromaSubsampling) throws -> [UInt8] {
        let room = JPEGCompressor.maximumBytes(width: size.width, height: size.height, subsampling: .s444)
        return try [UInt8](unsafeUninitializedCapacity: room) { buffer, count in
            count = try pixels.withUnsafeBytes { pixels in
                try JPEGCompressor().compress(
                    pixels, format: .rgb, width: size.width, height: size.height, stride: size.width * 3,
                    subsampling: subsampling, quality: 90, into: UnsafeMutableRawBufferPointer(buffer))
            }
        }
    }
}

extension FrameLayout {
    fileprivate var isOfJPEG: Bool { pixelFormat == .motionJPEG || pixelFormat == .jpeg }
}

/// A JPEG picture, decoded.
struct DecodedPicture {
    let size: Dimensions
    private let pixels: [UInt8]

    init(_ jpeg: [UInt8]) throws {
        let decompressor = try JPEGDecompressor()
        let header = try jpeg.withUnsafeBytes { try decompressor.header($0) }
        var pixels = [UInt8](repeating: 0, count: header.width * header.height * 3)
        let warning = try jpeg.withUnsafeBytes { jpeg in
            try pixels.withUnsafeMutableBytes {
                try decompressor.decompress(jpeg, header: header, format: .rgb, stride: header.width * 3, to: $0)
            }
        }
        #expect(warning == nil)
        size = Dimensions(width: header.width, height: header.height)
        self.pixels = pixels
    }

    func pixel(_ x: Int, _ y: Int) -> Patch {
        let start = (y * size.width + x) * 3
        return Patch(r: Int(pixels[start]), g: Int(pixels[start + 1]), b: Int(pixels[start + 2]))
    }

    /// What is seen where the four patches are.
    var patches: [Patch] { PatchPicture.centers(size).map { pixel($0.x, $0.y) } }

    func shows(_ patches: [Patch], _ tolerance: Int = 24) -> Bool {
        zip(self.patches, patches).allSatisfy { $0.isNear($1, tolerance) }
    }
}

/// Bytes without any order, the same each time.
struct Noise {
    private var state: UInt32 = 2_463_534_242

    mutating func next() -> UInt32 {
        state ^= state << 13
        state ^= state >> 17
        state ^= state << 5
        return state
    }

    mutating func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) } }
}
