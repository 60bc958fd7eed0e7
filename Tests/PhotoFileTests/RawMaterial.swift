import CameraBusTesting
import CaptureCore
import LinuxIO
import PhotoFile

/// A raw frame of known light: fields of one colour each, four in a row and two rows, as a sensor without any fault of
/// its own gives them.
struct RawMaterial {
    /// Light from 0 to 1: red, green, blue. White is none of them: where all is clipped nothing is seen.
    static let colors: [[Double]] = [
        [0.8, 0.1, 0.1], [0.1, 0.7, 0.1], [0.05, 0.1, 0.9], [0.5, 0.5, 0.5],
        [0.6, 0.5, 0.05], [0.02, 0.03, 0.02], [0.3, 0.6, 0.8], [0.9, 0.9, 0.9],
    ]
    static let field = Dimensions(width: 40, height: 40)

    let layout: FrameLayout
    let bytes: [UInt8]

    /// - Parameters:
    ///   - padding: bytes behind each line.
    ///   - offset: bytes before the first line.
    init(_ pixelFormat: PixelFormat, padding: Int = 0, offset: Int = 0) throws {
        let size = Dimensions(width: Self.field.width * 4, height: Self.field.height * 2)
        guard let samples = pixelFormat.rawSamples, let packed = FrameLayout.packed(pixelFormat, size) else {
            throw TestingError("\(pixelFormat.name) is no raw format")
        }
        let lineBytes = packed.planes[0].stride
        let stride = lineBytes + padding
        layout = FrameLayout(
            pixelFormat: pixelFormat, dimensions: size,
            planes: [PlaneLayout(offset: offset, stride: stride, bytes: stride * size.height)])
        // What isn't the picture's would be seen in it.
        var bytes = [UInt8](repeating: 0xFF, count: offset + stride * size.height)
        for y in 0..<size.height {
            let line = Self.line((0..<size.width).map { Self.sample($0, y, samples) }, samples)
            bytes.replaceSubrange(offset + y * stride..<offset + y * stride + lineBytes, with: line)
        }
        self.bytes = bytes
    }

    static func color(_ x: Int, _ y: Int) -> [Double] { colors[y / field.height * 4 + x / field.width] }

    /// What a pixel has of the light that falls on it: one colour's, or of grey the mean's.
    static func sample(_ x: Int, _ y: Int, _ samples: RawSamples) -> Int {
        let color = color(x, y)
        let order: [Int]
        switch samples.pattern {
        case .grey: return Int((color.reduce(0, +) / 3 * Double(samples.largest)).rounded())
        case .rggb: order = [0, 1, 1, 2]
        case .bggr: order = [2, 1, 1, 0]
        case .grbg: order = [1, 0, 2, 1]
        case .gbrg: order = [1, 2, 0, 1]
        }
        return Int((color[order[y % 2 * 2 + x % 2]] * Double(samples.largest)).rounded())
    }

    /// A line as the kernel's documentation of the format draws it.
    private static func line(_ line: [Int], _ samples: RawSamples) -> [UInt8] {
        let size = samples.groupPixels
        var bytes: [UInt8] = []
        for start in stride(from: 0, to: line.count, by: size) {
            let group: [Int] = Array(line[start..<start + size])
            let made: [Int] =
                switch (samples.packing, samples.bits) {
                case (.bytes, _): group
                case (.words, _): [group[0] & 255, group[0] >> 8]
                case (.swappedWords, _): [group[0] >> 8, group[0] & 255]
                case (.mipi, 10): ten(group)
                case (.mipi, 12): twelve(group)
                default: fourteen(group)
                }
            bytes += made.map { UInt8($0) }
        }
        return bytes
    }

    private static func ten(_ group: [Int]) -> [Int] {
        var last = group[0] & 3
        last += (group[1] & 3) * 4
        last += (group[2] & 3) * 16
        last += (group[3] & 3) * 64
        return group.map { $0 >> 2 } + [last]
    }

    private static func twelve(_ group: [Int]) -> [Int] {
        [group[0] >> 4, group[1] >> 4, (group[1] & 15) * 16 + (group[0] & 15)]
    }

    private static func fourteen(_ group: [Int]) -> [Int] {
        let lower: [Int] = group.map { $0 & 63 }
        let first: Int = (lower[1] & 3) * 64 + lower[0]
        let second: Int = (lower[2] & 15) * 16 + (lower[1] >> 2)
        let third: Int = lower[3] * 4 + (lower[2] >> 4)
        return group.map { $0 >> 6 } + [first, second, third]
    }

    /// All formats that can be kept raw.
    static let formats: [PixelFormat] =
        ("BA81,GBRG,GRBG,RGGB,BG10,GB10,BA10,RG10,BG12,GB12,BA12,RG12,BG14,GB14,GR14,RG14,BYR2,GB16,GR16,RG16,"
        + "pBAA,pGAA,pgAA,pRAA,pBCC,pGCC,pgCC,pRCC,pBEE,pGEE,pgEE,pREE,"
        + "GREY,Y10,Y12,Y14,Y16,Y16 -BE,Y10P,Y12P,Y14P").split(separator: ",").compactMap { PixelFormat(String($0)) }

    /// Makes the digital negative.
    func photo(
        _ facts: PhotoFacts = RawMaterial.facts, orientation: CaptureOrientation = .landscapeRight,
        isMirrored: Bool = false, thumbnail: PhotoThumbnail? = nil, zoom: Int = DigitalZoom.whole
    ) throws -> EncodedPhoto {
        let encoder = try PhotoEncoder(
            layout,
            PhotoMaking(fileType: .dng, orientation: orientation, isMirrored: isMirrored, thumbnail: thumbnail))
        return try bytes.withUnsafeBytes { try encoder.encode(PhotoPicture(layout, $0, zoom: zoom), facts) }
    }

    /// 2026-11-22 15:04:05.123456789 UTC, an hour ahead.
    static let facts = PhotoFacts(
        uniqueID: "00112233445566778899aabbccddeeff", realtime: 1_795_359_845_123_456_789, utcOffset: 3600)
}

/// Runs a program to its end; what it wrote.
func output(_ program: String, _ arguments: [String], _ scratch: TemporaryDirectory) async throws -> [UInt8] {
    let environment = ["PATH": CurrentProcess.environment("PATH") ?? "/usr/bin:/bin"]
    let result = try await RunningProgram(program, arguments, environment: environment, scratch: scratch)
        .end(by: .after(seconds: 60))
    guard result.status == 0 else { throw TestingError("\(program): \(result.ending) \(result.standardError)") }
    return result.standardOutputBytes
}
