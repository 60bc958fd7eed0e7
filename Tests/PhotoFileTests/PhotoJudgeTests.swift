import CameraBusTesting
import CaptureCore
import Glibc
import JSON
import LinuxIO
import Testing

@testable import PhotoFile

/// What others read in our photos.
@Suite struct PhotoJudgeTests {
    private let scratch: TemporaryDirectory

    init() throws { scratch = try TemporaryDirectory() }

    private func run(_ program: String, _ arguments: [String]) async throws -> ProgramResult {
        let environment = ["PATH": CurrentProcess.environment("PATH") ?? "/usr/bin:/bin"]
        return try await RunningProgram(program, arguments, environment: environment, scratch: scratch).end()
    }

    private func write(_ photo: EncodedPhoto, _ name: String) throws -> String {
        let path = "\(scratch.path)/\(name).jpg"
        try File.replace(path, with: photo.bytes, mode: 0o600)
        return path
    }

    private static var allFacts: PhotoFacts {
        PhotoFacts(
            uniqueID: "0123456789abcdef0123456789abcdef", realtime: 1_795_359_600_123_456_789, utcOffset: -12600,
            make: "Maker & Söhne", model: "HD Camera", serial: "SN-0815", software: "CameraBus 1.2.3",
            exposureDuration: 8_000_000, iso: 400, exposureBias: -0.6666667, fNumber: 2.8, focalLength: 3.67,
            focalLength35: 27.6, subjectDistance: 1.25, flashFired: true, hasFlash: true, redEyeReduction: true,
            isExposureManual: true, isWhiteBalanceManual: false, meteringMode: .spot, zoom: 1.5, comment: "A door")
    }

    private static func text(_ value: JSONValue?) -> String? {
        value?.string ?? value?.integer.map { "\($0)" } ?? value?.double.map { "\($0)" }
    }

    @Test(.enabled(if: access("/usr/bin/exiftool", X_OK) == 0, "exiftool is not there"))
    func `exiftool reads every field with its true value, and finds nothing wrong`() async throws {
        let size = Dimensions(width: 320, height: 240)
        let thumbnail = PhotoThumbnail(maximumSide: 160)
        var files: [String] = []
        for format in [PixelFormat.motionJPEG, .yuyv] {
            let frame = try PatchPicture(size: size).frame(format)
            let making = PhotoMaking(fileType: .jpeg, orientation: .portrait, thumbnail: thumbnail)
            files.append(try write(try encode(frame, making, Self.allFacts), "all-\(format.name)"))
        }
        let bare = try PatchPicture(size: size).frame(.motionJPEG)
        files.append(try write(try encode(bare, PhotoMaking(fileType: .jpeg), usualFacts), "bare"))
        let result = try await run("exiftool", ["-q", "-json", "-n", "-a", "-validate", "-warning", "-all"] + files)
        #expect(result.status == 0 && result.standardError.isEmpty, "\(result)")
        let told = try JSONValue(parsing: result.standardOutputBytes)
        let wanted: [String: String] = [
            "Make": "Maker & Söhne", "Model": "HD Camera", "SerialNumber": "SN-0815", "Software": "CameraBus 1.2.3",
            "ImageDescription": "A door", "Orientation": "6", "ModifyDate": "2026:11:22 11:30:00",
            "DateTimeOriginal": "2026:11:22 11:30:00", "CreateDate": "2026:11:22 11:30:00",
            "SubSecTime": "123456", "SubSecTimeOriginal": "123456", "SubSecTimeDigitized": "123456",
            "OffsetTime": "-03:30", "OffsetTimeOriginal": "-03:30", "OffsetTimeDigitized": "-03:30",
            "ExposureTime": "0.008", "ISO": "400", "ExposureCompensation": "-0.6666666667", "FNumber": "2.8",
            "FocalLength": "3.67", "FocalLengthIn35mmFormat": "28", "SubjectDistance": "1.25", "Flash": "65",
            "ExposureProgram": "1", "ExposureMode": "1", "WhiteBalance": "0", "MeteringMode": "3",
            "DigitalZoomRatio": "1.5", "ImageUniqueID": "0123456789abcdef0123456789abcdef",
            "ExifImageWidth": "320", "ExifImageHeight": "240", "ColorSpace": "1", "ExifVersion": "0232",
            "ImageWidth": "320", "ImageHeight": "240", "FileType": "JPEG",
        ]
        for index in 0..<2 {
            let photo = try #require(told[index])
            for (name, value) in wanted { #expect(Self.text(photo[name]) == value, "\(name): \(photo)") }
            #expect(photo["ThumbnailLength"]?.integer ?? 0 > 500)
        }
        for index in 0..<3 {
            #expect(told[index]?["Validate"]?.string == "0 0 0", "\(String(describing: told[index]))")
            #expect(told[index]?["Warning"] == nil)
        }
        // Of what nobody knows nothing is said.
        for name in ["Make", "ExposureTime", "ISO", "FNumber", "SubjectDistance", "WhiteBalance", "ThumbnailOffset"] {
            #expect(told[2]?[name] == nil)
        }
        #expect(Self.text(told[2]?["Flash"]) == "32" && Self.text(told[2]?["Orientation"]) == "1")
    }

    /// Prints for each file what the four patches look like as the tag has it turned, in the picture and in its
    /// thumbnail.
    private static let pillow = """
        import io, json, struct, sys
        from PIL import Image, ImageOps
        def thumbnail(exif):
            tiff = exif[6:]
            ifd, = struct.unpack_from("<I", tiff, 4)
            count, = struct.unpack_from("<H", tiff, ifd)
            ifd, = struct.unpack_from("<I", tiff, ifd + 2 + 12 * count)
            count, = struct.unpack_from("<H", tiff, ifd)
            tags = {}
            for index in range(count):
                tag, kind, values, value = struct.unpack_from("<HHII", tiff, ifd + 2 + 12 * index)
                tags[tag] = value if kind == 4 else value & 0xFFFF
            jpeg = tiff[tags[0x201]:tags[0x201] + tags[0x202]]
            picture = Image.open(io.BytesIO(jpeg))
            picture.load()
            assert picture.format == "JPEG", picture.format
            picture.getexif()[0x112] = tags[0x112]
            return picture
        def patches(picture):
            turned = ImageOps.exif_transpose(picture).convert("RGB")
            width, height = turned.size
            points = [(width * x // 4, height * y // 4) for x, y in ((1, 1), (3, 1), (1, 3), (3, 3))]
            return {"size": turned.size, "patches": [turned.getpixel(point) for point in points]}
        for path in sys.argv[1:]:
            with Image.open(path) as picture:
                picture.load()
                assert picture.format == "JPEG", picture.format
                small = thumbnail(picture.info["exif"])
                print(json.dumps([patches(picture), patches(small)]))
        """

    @Test func `Pillow shows picture and thumbnail the right way round`() async throws {
        let frame = try PatchPicture(size: Dimensions(width: 128, height: 96)).frame(.motionJPEG)
        var files: [String] = []
        var wanted: [(quarters: Int, isMirrored: Bool)] = []
        for isTurned in [false, true] {
            for (orientation, isMirrored) in CaptureOrientation.allCases.flatMap({ [($0, false), ($0, true)] }) {
                let making = PhotoMaking(
                    fileType: .jpeg, orientation: orientation, isMirrored: isMirrored, isTurned: isTurned,
                    thumbnail: PhotoThumbnail(maximumSide: 64))
                files.append(try write(try encode(frame, making), "\(orientation)-\(isMirrored)-\(isTurned)"))
                wanted.append((orientation.rotationAngle / 90, isMirrored))
            }
        }
        let result = try await run(Programs.python, ["-c", Self.pillow] + files)
        #expect(result.status == 0, "\(result)")
        let lines = result.standardOutput.split(separator: "\n")
        #expect(lines.count == files.count)
        for (line, wanted) in zip(lines, wanted) {
            let told = try JSONValue(parsing: String(line))
            for (index, width) in [128, 64].enumerated() {
                let picture = try #require(told[index])
                let size = [width, width * 3 / 4]
                let turned: [Int] = wanted.quarters % 2 == 1 ? size.reversed() : size
                #expect(picture["size"] == .array(turned.map { JSONValue($0) }))
                let patches = PatchPicture.patches(quarters: wanted.quarters, isMirrored: wanted.isMirrored)
                for (number, patch) in patches.enumerated() {
                    let seen = try #require(picture["patches"]?[number])
                    let color = Patch(
                        r: Int(seen[0]?.integer ?? -1), g: Int(seen[1]?.integer ?? -1), b: Int(seen[2]?.integer ?? -1))
                    #expect(color.isNear(patch), "\(wanted): \(color) for \(patch)")
                }
            }
        }
    }
}
