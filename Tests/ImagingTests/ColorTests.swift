import BusProtocol
import CameraBusTesting
import CaptureCore
import Imaging
import Testing

/// Pictures of every matrix and range, with ffmpeg as the judge.
@Suite struct ColorTests {
    private static let size = Dimensions(width: 64, height: 64)
    private static let patch = 16
    private static let matrices: [(matrix: YCbCrMatrix, ffmpeg: String, red: Double, blue: Double)] = [
        (.smpte170m, "bt601", 0.299, 0.114), (.bt709, "bt709", 0.2126, 0.0722), (.bt2020nc, "bt2020", 0.2627, 0.0593),
        (.smpte240m, "smpte240m", 0.212, 0.087),
    ]
    private static let formats = [("YUYV", "yuyv422"), ("NV12", "nv12"), ("YU12", "yuv420p"), ("YM24", "yuv444p")]

    private let scratch: TemporaryDirectory

    init() throws { scratch = try TemporaryDirectory() }

    /// Sixteen colours, with the strongest ones among them.
    private static let colors: [(Double, Double, Double)] = [
        (0, 255, 0), (255, 0, 0), (0, 0, 255), (255, 255, 0), (0, 255, 255), (255, 0, 255), (255, 255, 255), (0, 0, 0),
        (200, 60, 40), (40, 180, 70), (60, 70, 200), (128, 128, 128), (220, 200, 50), (30, 30, 30), (250, 128, 3),
        (90, 10, 130),
    ]

    /// A picture in luma and chroma, in plain arithmetic.
    private func payload(
        _ format: String, _ matrix: (matrix: YCbCrMatrix, ffmpeg: String, red: Double, blue: Double),
        _ range: VideoColorRange
    ) throws -> (bytes: [UInt8], layout: FrameLayout) {
        func sample(_ x: Int, _ y: Int) -> (y: UInt8, u: UInt8, v: UInt8) {
            let (r, g, b) = Self.colors[y / Self.patch * 4 + x / Self.patch]
            let luma = matrix.red * r + (1 - matrix.red - matrix.blue) * g + matrix.blue * b
            let (u, v) = ((b - luma) / (2 * (1 - matrix.blue)), (r - luma) / (2 * (1 - matrix.red)))
            func byte(_ value: Double) -> UInt8 { UInt8(max(0, min(255, value.rounded()))) }
            return range == .full
                ? (byte(luma), byte(u + 128), byte(v + 128))
                : (byte(luma * 219 / 255 + 16), byte(u * 224 / 255 + 128), byte(v * 224 / 255 + 128))
        }
        var bytes: [UInt8] = []
        let (width, height) = (Self.size.width, Self.size.height)
        func plane(_ down: Int, _ across: Int, _ part: (Int, Int) -> [UInt8]) {
            for y in stride(from: 0, to: height, by: down) {
                for x in stride(from: 0, to: width, by: across) { bytes += part(x, y) }
            }
        }
        var planes: [(stride: Int, lines: Int)]
        switch format {
        case "YUYV":
            plane(1, 2) { x, y in [sample(x, y).y, sample(x, y).u, sample(x + 1, y).y, sample(x, y).v] }
            planes = [(width * 2, height)]
        case "NV12":
            plane(1, 1) { x, y in [sample(x, y).y] }
            plane(2, 2) { x, y in [sample(x, y).u, sample(x, y).v] }
            planes = [(width, height), (width, height / 2)]
        default:
            let share = format == "YU12" ? 2 : 1
            plane(1, 1) { x, y in [sample(x, y).y] }
            plane(share, share) { x, y in [sample(x, y).u] }
            plane(share, share) { x, y in [sample(x, y).v] }
            planes = [(width, height), (width / share, height / share), (width / share, height / share)]
        }
        var description = FormatDescription(pixelFormat: try #require(PixelFormat(format)), dimensions: Self.size)
        (description.color.matrix, description.color.range) = (matrix.matrix, range)
        var offset = 0
        let layouts = planes.map { plane in
            defer { offset += plane.stride * plane.lines }
            return PlaneLayout(offset: offset, stride: plane.stride, bytes: plane.stride * plane.lines)
        }
        return (bytes, FrameLayout(description, planes: layouts))
    }

    private func made(_ bytes: [UInt8], _ converter: PictureConverter) throws -> [UInt8] {
        let output = PictureBuffer()
        _ = try bytes.withUnsafeBytes { try converter.convert([$0], bytesUsed: [bytes.count], into: output) }
        return Array(output.bytes)
    }

    /// What ffmpeg makes of raw pictures.
    private func judged(
        _ bytes: [UInt8], _ format: String, _ matrix: String, _ range: VideoColorRange, to target: String
    ) async throws -> [UInt8] {
        let scale =
            "scale=in_color_matrix=\(matrix):in_range=\(range == .full ? "full" : "limited"):out_range=full:"
            + "flags=accurate_rnd+full_chroma_int+bicubic,format=\(target)"
        let arguments = [
            "-v", "error", "-f", "rawvideo", "-pixel_format", format, "-video_size", "\(Self.size)", "-i", "-",
            "-vf", scale, "-f", "rawvideo", "-",
        ]
        let result = try await RunningProgram.result("ffmpeg", arguments, in: scratch, input: bytes)
        try #require(result.status == 0, "\(result)")
        return result.standardOutputBytes
    }

    /// Compares the middle of each patch.
    private func compare(
        _ made: [UInt8], _ judged: [UInt8], channels: Int, within tolerance: Int, _ what: String
    ) {
        #expect(made.count == judged.count)
        guard made.count == judged.count else { return }
        for index in 0..<16 {
            let x = index % 4 * Self.patch + Self.patch / 2
            let y = index / 4 * Self.patch + Self.patch / 2
            let start = (y * Self.size.width + x) * channels
            let (ours, theirs) = (made[start..<start + channels], judged[start..<start + channels])
            let difference = zip(ours, theirs).map { abs(Int($0) - Int($1)) }.max() ?? 0
            #expect(
                difference <= tolerance,
                "\(what): \(Self.colors[index]) became \(Array(ours)), ffmpeg says \(Array(theirs))")
        }
    }

    @Test("Red, green, blue and grey are what ffmpeg makes of them", arguments: matrices.indices, [false, true])
    func pixels(_ index: Int, _ isFull: Bool) async throws {
        let (matrix, range) = (Self.matrices[index], isFull ? VideoColorRange.full : .video)
        for (format, theirs) in Self.formats {
            let (bytes, layout) = try payload(format, matrix, range)
            for encoding in [Rendition.Encoding.rgb, .bgr, .gray] {
                let converter = try PictureConverter(
                    from: layout, to: PictureRequest(encoding: encoding, dimensions: Self.size))
                let color = converter.outputLayout.description.color
                #expect(color.range == .full && color.matrix == (encoding == .gray ? nil : .gbr))
                let target = encoding == .rgb ? "rgb24" : encoding == .bgr ? "bgr24" : "gray"
                let wanted = try await judged(bytes, theirs, matrix.ffmpeg, range, to: target)
                compare(
                    try made(bytes, converter), wanted, channels: encoding == .gray ? 1 : 3, within: 2,
                    "\(format) \(matrix.ffmpeg) \(range) to \(encoding)")
            }
        }
    }

    @Test(
        "JPEG pictures have BT.601 in full range, whatever they are made of", arguments: matrices.indices,
        [false, true])
    func jpeg(_ index: Int, _ isFull: Bool) async throws {
        let (matrix, range) = (Self.matrices[index], isFull ? VideoColorRange.full : .video)
        for (format, theirs) in Self.formats {
            let (bytes, layout) = try payload(format, matrix, range)
            let converter = try PictureConverter(
                from: layout, to: PictureRequest(encoding: .jpeg, dimensions: Self.size, quality: 95))
            #expect(converter.outputLayout.description.color.matrix == .smpte170m)
            #expect(converter.outputLayout.description.color.range == .full)
            let decoded = try await RunningProgram.result(
                "ffmpeg", ["-v", "error", "-f", "mjpeg", "-i", "-", "-pix_fmt", "rgb24", "-f", "rawvideo", "-"],
                in: scratch, input: try made(bytes, converter))
            let wanted = try await judged(bytes, theirs, matrix.ffmpeg, range, to: "rgb24")
            compare(
                decoded.standardOutputBytes, wanted, channels: 3, within: 6,
                "\(format) \(matrix.ffmpeg) \(range) to jpeg")
        }
    }

    @Test("Luma and chroma keep their matrix, and say so", arguments: matrices.indices, [false, true])
    func lumaAndChroma(_ index: Int, _ isFull: Bool) async throws {
        let (matrix, range) = (Self.matrices[index], isFull ? VideoColorRange.full : .video)
        for (format, theirs) in Self.formats {
            let (bytes, layout) = try payload(format, matrix, range)
            let wanted = try await judged(bytes, theirs, matrix.ffmpeg, range, to: "rgb24")
            for (encoding, target) in [(Rendition.Encoding.yuyv, "yuyv422"), (.nv12, "nv12"), (.i420, "yuv420p")] {
                let converter = try PictureConverter(
                    from: layout, to: PictureRequest(encoding: encoding, dimensions: Self.size))
                #expect(converter.outputLayout.description.color.matrix == matrix.matrix)
                #expect(converter.outputLayout.description.color.range == .video)
                let seen = try await judged(
                    try made(bytes, converter), target, matrix.ffmpeg, .video, to: "rgb24")
                compare(seen, wanted, channels: 3, within: 4, "\(format) \(matrix.ffmpeg) \(range) to \(encoding)")
            }
        }
    }

    @Test("Red, green and blue in video range become full", arguments: ["RGB3", "BGR3", "XR24"])
    func videoRangeOfPixels(_ format: String) throws {
        let pixelFormat = try #require(PixelFormat(format))
        var description = FormatDescription(pixelFormat: pixelFormat, dimensions: Dimensions(width: 16, height: 8))
        description.color.range = .video
        let count = format == "XR24" ? 4 : 3
        for (level, wanted) in [(UInt8(16), 0), (126, 128), (235, 255)] {
            let bytes = [UInt8](repeating: level, count: 16 * 8 * count)
            let layout = FrameLayout(
                description, planes: [PlaneLayout(offset: 0, stride: 16 * count, bytes: bytes.count)])
            for encoding in [Rendition.Encoding.rgb, .gray, .jpeg] {
                let converter = try PictureConverter(
                    from: layout, to: PictureRequest(encoding: encoding, dimensions: layout.dimensions))
                let output = try made(bytes, converter)
                let reader = try output.withUnsafeBytes { try PayloadReader($0, converter.outputLayout) }
                #expect(abs(reader.color(8, 4).g - Double(wanted)) <= 2, "\(format) \(level) to \(encoding)")
            }
        }
    }

    @Test("Pixels change their shape where a picture is stretched, and turn with it")
    func pixelShapes() throws {
        var description = FormatDescription(pixelFormat: .i420, dimensions: Dimensions(width: 360, height: 288))
        description.extensions.pixelAspectRatio = try #require(FormatExtensions.Ratio(64, 45))
        let layout = try #require(FrameLayout.packed(description))
        func shape(_ text: String) throws -> String {
            let rendition = try Rendition(parsing: text)
            let converter = try PictureConverter(from: layout, to: resolve(rendition, for: layout))
            return converter.outputLayout.description.extensions.pixelAspectRatio.text(":")
        }
        #expect(try shape("rgb") == "64:45")
        #expect(try shape("rgb:180x0") == "64:45")
        #expect(try shape("rgb:360x144") == "32:45")
        #expect(try shape("rgb;rotate=90") == "45:64")
    }
}
