import BusProtocol
import CameraBusTesting
import CaptureCore
import Imaging
import Testing

/// Renditions of 16 bits a sample, with ffmpeg and plain arithmetic as judges.
@Suite struct DeepPictureTests {
    private let scratch: TemporaryDirectory
    init() throws { scratch = try TemporaryDirectory() }

    private static let size = Dimensions(width: 48, height: 32)

    /// Little-endian.
    private static func words(_ bytes: [UInt8]) -> [Int] {
        stride(from: 0, to: bytes.count - 1, by: 2).map { Int(bytes[$0]) | Int(bytes[$0 + 1]) << 8 }
    }

    private static func bytes(_ words: [Int]) -> [UInt8] {
        words.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }
    }

    /// Samples that go through all that there are.
    private static func samples(_ bits: Int, _ size: Dimensions) -> [Int] {
        (0..<size.area).map { $0 * 40503 % 65536 >> (16 - bits) }
    }

    /// In words, the largest sample becoming 65535.
    private static func widened(_ sample: Int, _ bits: Int) -> Int {
        bits == 16 ? sample : sample << (16 - bits) | sample >> (2 * bits - 16)
    }

    private static func layout(_ name: String, _ size: Dimensions = size) throws -> FrameLayout {
        try #require(PixelFormat(name).flatMap { FrameLayout.packed($0, size) })
    }

    private func made(
        _ bytes: [UInt8], _ layout: FrameLayout, _ rendition: String, zoom: Int = DigitalZoom.whole
    ) throws -> (bytes: [UInt8], layout: FrameLayout) {
        let request = try resolve(try Rendition(parsing: rendition), for: layout)
        let converter = try PictureConverter(from: layout, to: request)
        let output = PictureBuffer()
        _ = try bytes.withUnsafeBytes {
            try converter.convert([$0], bytesUsed: [bytes.count], zoom: zoom, into: output)
        }
        return (Array(output.bytes), converter.outputLayout)
    }

    private func judged(_ bytes: [UInt8], _ format: String, _ filter: String, to target: String) async throws -> [UInt8]
    {
        let arguments = [
            "-v", "error", "-f", "rawvideo", "-pixel_format", format, "-video_size", "\(Self.size)", "-i", "-", "-vf",
            "\(filter),format=\(target)", "-f", "rawvideo", "-",
        ]
        let result = try await RunningProgram.result("ffmpeg", arguments, in: scratch, input: bytes)
        try #require(result.status == 0, "\(result)")
        return result.standardOutputBytes
    }

    @Test(
        "Samples of more than 8 bits keep them",
        arguments: [("Y10", 10), ("Y12", 12), ("Y14", 14), ("Y16", 16), ("Y16 -BE", 16), ("Z16", 16)])
    func kept(_ name: String, _ bits: Int) throws {
        for size in [Self.size, Dimensions(width: 33, height: 17)] {
            var layout = try Self.layout(name, size)
            layout.description.extensions.metersPerStep = name == "Z16" ? 0.001 : nil
            let samples = Self.samples(bits, size)
            var bytes = Self.bytes(samples)
            if name == "Y16 -BE" { for index in 0..<samples.count { bytes.swapAt(2 * index, 2 * index + 1) } }
            let wanted = samples.map { Self.widened($0, bits) }
            let grey = try made(bytes, layout, "gray16")
            #expect(Self.words(grey.bytes) == wanted)
            #expect(grey.layout.pixelFormat == .grey16)
            let description = grey.layout.description.extensions
            #expect(description.bitsPerComponent == bits && description.alignment == (bits < 16 ? .high : nil))
            #expect(description.metersPerStep == (name == "Z16" ? 0.001 : nil))
            let colour = try made(bytes, layout, "rgb48")
            #expect(Self.words(colour.bytes) == wanted.flatMap { [$0, $0, $0] })
            #expect(colour.layout.pixelFormat == .rgb48 && colour.layout.totalBytes == size.area * 6)
            #expect(colour.layout.description.extensions.metersPerStep == nil)
        }
    }

    @Test("A padded frame is read by its lines") func padded() throws {
        var layout = try Self.layout("Y10")
        let samples = Self.samples(10, Self.size)
        layout.planes[0].stride += 20
        layout.planes[0].bytes = layout.planes[0].stride * Self.size.height
        let lines = (0..<Self.size.height).map { line in
            Self.bytes(Array(samples[line * Self.size.width..<(line + 1) * Self.size.width]))
                + [UInt8](repeating: 7, count: 20)
        }
        let found = try made(Array(lines.joined()), layout, "gray16")
        #expect(Self.words(found.bytes) == samples.map { Self.widened($0, 10) })
    }

    @Test(
        "8 bits are made wider, whatever they come from",
        arguments: ["GREY", "BGR3", "RGB3", "YUYV", "NV12", "YU12", "RGGB", "MJPG", "XR24", "NV16"])
    func widened(_ name: String) throws {
        let size = Dimensions(width: 64, height: 48)
        let (bytes, layout) = try #require(try TestPicture(size: size).payload(name))
        for (deep, narrow) in [("gray16", "gray"), ("rgb48", "rgb")] {
            for options in ["", ":32x24", ";rotate=90", ":20x30;rotate=270;mirror"] {
                for zoom in [DigitalZoom.whole, 2 * DigitalZoom.whole] {
                    let found = try made(bytes, layout, deep + options, zoom: zoom)
                    let wanted = try made(bytes, layout, narrow + options, zoom: zoom)
                    #expect(Self.words(found.bytes) == wanted.bytes.map { Int($0) * 257 }, "\(deep)\(options)")
                    #expect(found.layout.dimensions == wanted.layout.dimensions)
                    #expect(found.layout.description.extensions.bitsPerComponent == 8)
                }
            }
        }
    }

    @Test("Scaled as ffmpeg does", arguments: ["24x16", "30x20", "13x9"]) func scaled(_ size: String) async throws {
        let layout = try Self.layout("Y16")
        // Smooth, so that what lies between pixels is no matter of taste.
        let samples = (0..<Self.size.area).map { ($0 % 48 * 700 + $0 / 48 * 900 + 3000) & 0xFFFF }
        let ours = Self.words(try made(Self.bytes(samples), layout, "gray16:\(size)").bytes)
        let filter = "scale=\(size.replacing("x", with: ":")):flags=area+accurate_rnd:in_range=full:out_range=full"
        let theirs = Self.words(try await judged(Self.bytes(samples), "gray16le", filter, to: "gray16le"))
        try #require(ours.count == theirs.count)
        let most = zip(ours, theirs).map { abs($0 - $1) }.max() ?? .max
        #expect(most <= 16, "off by \(most) of 65535")
    }

    @Test("Half the size is the mean of four") func mean() throws {
        let samples = Self.samples(16, Self.size)
        let found = Self.words(try made(Self.bytes(samples), try Self.layout("Y16"), "gray16:24x16").bytes)
        for y in 0..<16 {
            for x in 0..<24 {
                let first = y * 2 * 48 + x * 2
                let sum = samples[first] + samples[first + 1] + samples[first + 48] + samples[first + 49]
                #expect(abs(found[y * 24 + x] - sum / 4) <= 16)
            }
        }
    }

    @Test("Turned and zoomed like the 8 bits") func turned() throws {
        // Each sample is 257 times one of 8 bits, so that both kinds can be compared.
        let values = (0..<Self.size.area).map { $0 * 40503 >> 5 & 255 }
        let (deep, narrow) = (try Self.layout("Y16"), try Self.layout("GREY"))
        for options in [";rotate=90", ";rotate=180", ";rotate=270;mirror", ";mirror"] {
            let ours = try made(Self.bytes(values.map { $0 * 257 }), deep, "gray16\(options)")
            let theirs = try made(values.map { UInt8($0) }, narrow, "gray\(options)")
            #expect(Self.words(ours.bytes) == theirs.bytes.map { Int($0) * 257 }, "\(options)")
            #expect(ours.layout.dimensions == theirs.layout.dimensions)
        }
        // The middle, at its own size.
        let ours = try made(Self.bytes(values.map { $0 * 257 }), deep, "gray16:24x16", zoom: 2 * DigitalZoom.whole)
        let middle = (8..<24).flatMap { line in (12..<36).map { values[line * 48 + $0] * 257 } }
        #expect(Self.words(ours.bytes) == middle)
    }

    @Test("Bayer has its colours in 16 bits", arguments: [("RG10", 10), ("BG12", 12), ("GB14", 14), ("GR16", 16)])
    func bayer(_ name: String, _ bits: Int) throws {
        let order = ["RG10": "RGGB", "BG12": "BGGR", "GB14": "GBRG", "GR16": "GRBG"][name] ?? ""
        // One colour all over, which 8 bits could not hold.
        let colour: [Character: Int] = ["R": 0x9ABC, "G": 0x5678, "B": 0x1234].mapValues { $0 >> (16 - bits) }
        let pattern = Array(order)
        let samples = (0..<Self.size.area).map { index in
            colour[pattern[index / 48 % 2 * 2 + index % 2]] ?? 0
        }
        let wanted = "RGB".map { Self.widened(colour[$0] ?? 0, bits) }
        for options in ["", ":24x16", ";rotate=90"] {
            let found = Self.words(try made(Self.bytes(samples), try Self.layout(name), "rgb48\(options)").bytes)
            for pixel in 0..<found.count / 3 {
                for channel in 0..<3 { #expect(abs(found[3 * pixel + channel] - wanted[channel]) <= 16) }
            }
        }
        let luma = 0.299 * Double(wanted[0]) + 0.587 * Double(wanted[1]) + 0.114 * Double(wanted[2])
        let grey = Self.words(try made(Self.bytes(samples), try Self.layout(name), "gray16").bytes)
        #expect(grey.allSatisfy { abs(Double($0) - luma) <= 2 })
    }

    @Test("A frame that ends too early is refused") func short() throws {
        let bytes = [UInt8](repeating: 1, count: Self.size.area * 2 - 1)
        #expect(throws: ConversionError.self) { try made(bytes, try Self.layout("Y16"), "gray16") }
    }
}
