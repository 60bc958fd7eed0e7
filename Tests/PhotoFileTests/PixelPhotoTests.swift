import CameraBusTesting
import CaptureCore
import Glibc
import JSON
import LinuxIO
import Testing

@testable import PhotoFile

/// Photos as PNG and TIFF, as Pillow and exiftool read them.
@Suite struct PixelPhotoTests {
    private let scratch: TemporaryDirectory
    init() throws { scratch = try TemporaryDirectory() }

    private static let size = Dimensions(width: 33, height: 20)

    /// Prints {mode, size, samples}: of each file all samples, in the order of the pixels.
    private static let pillow = """
        import json, sys
        from PIL import Image
        for path in sys.argv[1:]:
            picture = Image.open(path)
            picture.load()
            data = [value for value in picture.getdata()]
            if data and isinstance(data[0], tuple): data = [sample for pixel in data for sample in pixel]
            print(json.dumps({"format": picture.format, "mode": picture.mode, "size": picture.size, "data": data}))
        """

    private func written(_ photo: EncodedPhoto, _ type: PhotoFileType) throws -> String {
        let path = "\(scratch.path)/photo.\(type.ending)"
        try File.replace(path, with: photo.bytes, mode: 0o600)
        return path
    }

    private func read(_ path: String) async throws -> JSONValue {
        let result = try await RunningProgram(
            Programs.python, ["-c", Self.pillow, path], environment: CurrentProcess.environment(), scratch: scratch
        ).end()
        try #require(result.status == 0, "\(result)")
        return try JSONValue(parsing: result.standardOutputBytes)
    }

    /// As ffmpeg decodes the file, since Pillow has no pictures of 16 bits in colour.
    private func decoded(_ path: String, _ format: String) async throws -> [UInt8] {
        let result = try await RunningProgram.result(
            "ffmpeg", ["-v", "error", "-i", path, "-f", "rawvideo", "-pix_fmt", format, "-"], in: scratch)
        try #require(result.status == 0, "\(result)")
        return result.standardOutputBytes
    }

    private func photo(
        _ name: String, _ bytes: [UInt8], _ type: PhotoFileType, orientation: CaptureOrientation = .landscapeRight
    ) throws -> EncodedPhoto {
        let layout = try #require(PixelFormat(name).flatMap { FrameLayout.packed($0, Self.size) })
        return try encode((bytes, layout), PhotoMaking(fileType: type, orientation: orientation), usualFacts)
    }

    private static func words(_ bits: Int) -> (samples: [Int], bytes: [UInt8]) {
        let samples = (0..<size.area).map { $0 * 40503 % 65536 >> (16 - bits) }
        return (samples, samples.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] })
    }

    @Test("Grey and depth keep 16 bits", arguments: ["Y16", "Z16", "Y12"], [PhotoFileType.png, .tiff])
    func deep(_ name: String, _ type: PhotoFileType) async throws {
        let bits = name == "Y12" ? 12 : 16
        let (samples, bytes) = Self.words(bits)
        let wanted = samples.map { bits == 16 ? $0 : $0 << 4 | $0 >> 8 }
        let made = try photo(name, bytes, type)
        let told = try await read(try written(made, type))
        #expect(told["format"]?.string == (type == .png ? "PNG" : "TIFF"))
        #expect(told["mode"]?.string?.hasPrefix("I") == true)
        #expect(told["data"]?.array?.compactMap(\.integer) == wanted.map(Int64.init))
        #expect(made.dimensions == Self.size && made.thumbnail == nil)
    }

    @Test("They are upright as they lie", arguments: [PhotoFileType.png, .tiff])
    func turned(_ type: PhotoFileType) async throws {
        let (samples, bytes) = Self.words(16)
        let made = try photo("Y16", bytes, type, orientation: .portrait)
        #expect(made.dimensions == Dimensions(width: Self.size.height, height: Self.size.width))
        let told = try await read(try written(made, type))
        #expect(told["size"] == [JSONValue(Self.size.height), JSONValue(Self.size.width)])
        // Clockwise: the first line is the last column.
        let wanted = (0..<Self.size.width).flatMap { x in
            (0..<Self.size.height).map { y in Int64(samples[(Self.size.height - 1 - y) * Self.size.width + x]) }
        }
        #expect(told["data"]?.array?.compactMap(\.integer) == wanted)
    }

    @Test("Bayer has colours of 16 bits", arguments: [PhotoFileType.png, .tiff])
    func bayer(_ type: PhotoFileType) async throws {
        let material = try RawMaterial(try #require(PixelFormat("RG12")))
        let made = try encode((material.bytes, material.layout), PhotoMaking(fileType: type), usualFacts)
        let found = try await decoded(try written(made, type), "rgb48le")
        let size = material.layout.dimensions
        try #require(found.count == size.area * 6)
        // In the middle of each field.
        for y in [20, 60] {
            for x in [20, 60, 100, 140] {
                let wanted = RawMaterial.color(x, y)
                for channel in 0..<3 {
                    let at = ((y * size.width + x) * 3 + channel) * 2
                    let value = Double(Int(found[at]) | Int(found[at + 1]) << 8) / 65535
                    #expect(abs(value - wanted[channel]) < 0.0005)
                }
            }
        }
    }

    @Test("8 bits are what they are", arguments: [PhotoFileType.png, .tiff])
    func narrow(_ type: PhotoFileType) async throws {
        let bytes = (0..<Self.size.area * 3).map { UInt8(truncatingIfNeeded: $0 * 7) }
        let colour = try await read(try written(try photo("RGB3", bytes, type), type))
        #expect(colour["mode"] == "RGB" && colour["data"]?.array?.compactMap(\.integer) == bytes.map(Int64.init))
        let grey = try await read(try written(try photo("GREY", Array(bytes[..<Self.size.area]), type), type))
        #expect(grey["mode"] == "L")
        #expect(grey["data"]?.array?.compactMap(\.integer) == bytes[..<Self.size.area].map(Int64.init))
    }

    @Test(
        "exiftool reads what is known, and finds nothing wrong",
        .enabled(if: access("/usr/bin/exiftool", X_OK) == 0, "exiftool is not there"),
        arguments: [PhotoFileType.png, .tiff])
    func facts(_ type: PhotoFileType) async throws {
        var facts = PhotoFacts(
            uniqueID: "0123456789abcdef0123456789abcdef", realtime: 1_795_359_600_123_456_789, utcOffset: -12600,
            make: "Maker", model: "HD Camera", serial: "SN-0815", software: "CameraBus 1.2.3",
            exposureDuration: 8_000_000, iso: 400, fNumber: 2.8)
        facts.comment = "A door"
        let layout = try #require(FrameLayout.packed(.grey16, Self.size))
        let made = try encode(
            (Self.words(16).bytes, layout), PhotoMaking(fileType: type, orientation: .portrait), facts)
        let path = try written(made, type)
        let result = try await RunningProgram.result(
            "exiftool", ["-q", "-json", "-n", "-a", "-validate", "-warning", "-all", path], in: scratch)
        #expect(result.status == 0, "\(result)")
        let told = try #require(try JSONValue(parsing: result.standardOutputBytes)[0])
        for (name, value) in [
            ("Make", "Maker"), ("Model", "HD Camera"), ("Software", "CameraBus 1.2.3"), ("ImageDescription", "A door"),
            ("DateTimeOriginal", "2026:11:22 11:30:00"), ("OffsetTimeOriginal", "-03:30"), ("SerialNumber", "SN-0815"),
            ("FileType", type == .png ? "PNG" : "TIFF"), ("Validate", "0 0 0"),
        ] {
            #expect(told[name]?.string == value, "\(name): \(told)")
        }
        #expect(told["ExposureTime"]?.double == 0.008 && told["ISO"]?.integer == 400)
        // The pixels are turned already.
        #expect(told["Orientation"]?.integer == 1)
        #expect(told["ImageWidth"]?.integer == Int64(Self.size.height))
        #expect(told[type == .png ? "BitDepth" : "BitsPerSample"]?.integer == 16)
    }
}
