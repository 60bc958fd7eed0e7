import BusProtocol
import CameraBusTesting
import CaptureCore
import JSON
import LinuxIO
import PhotoFile
import Testing

/// What stands in digital negatives, as exiftool reads it.
@Suite struct DNGFieldTests {
    @Test func allThatIsKnownStandsThere() async throws {
        let facts = PhotoFacts(
            uniqueID: "00112233445566778899aabbccddeeff", realtime: 1_795_359_845_123_456_789, utcOffset: -12_600,
            make: "Acme", model: "Widecam 3", serial: "SN 4711", software: "CameraBus 1.0",
            exposureDuration: 8_000_000, iso: 800, exposureBias: -0.5, fNumber: 2.8, focalLength: 4.15,
            focalLength35: 29, subjectDistance: 1.25, flashFired: true, hasFlash: true, redEyeReduction: true,
            isExposureManual: true, isWhiteBalanceManual: true, meteringMode: .spot, zoom: 1.5, comment: "Grüße")
        let format = try #require(PixelFormat("BG10"))
        let tags = try await read(
            try RawMaterial(format).photo(facts, orientation: .portrait, zoom: 2000))
        let wanted: [String: JSONValue] = [
            "IFD0:Make": "Acme", "IFD0:Model": "Widecam 3", "IFD0:Software": "CameraBus 1.0",
            "IFD0:ImageDescription": "Grüße", "IFD0:Orientation": 6, "IFD0:ModifyDate": "2026:11:22 11:34:05",
            "IFD0:SubfileType": 1, "IFD0:ImageWidth": 80, "IFD0:ImageHeight": 40, "IFD0:Compression": 7,
            "IFD0:PhotometricInterpretation": 6, "IFD0:BitsPerSample": "8 8 8", "IFD0:SamplesPerPixel": 3,
            "IFD0:DNGVersion": "1 4 0 0", "IFD0:DNGBackwardVersion": "1 1 0 0",
            "IFD0:UniqueCameraModel": "Acme Widecam 3", "IFD0:CameraSerialNumber": "SN 4711",
            "IFD0:RawDataUniqueID": "00112233445566778899AABBCCDDEEFF", "IFD0:CalibrationIlluminant1": 21,
            "IFD0:AsShotNeutral": "1 1 1", "IFD0:BaselineExposure": 0,
            "SubIFD:SubfileType": 0, "SubIFD:ImageWidth": 160, "SubIFD:ImageHeight": 80, "SubIFD:BitsPerSample": 16,
            "SubIFD:Compression": 1, "SubIFD:PhotometricInterpretation": 32803, "SubIFD:SamplesPerPixel": 1,
            "SubIFD:CFARepeatPatternDim": "2 2", "SubIFD:CFAPattern2": "2 1 1 0", "SubIFD:CFAPlaneColor": "0 1 2",
            "SubIFD:CFALayout": 1, "SubIFD:BlackLevel": 0, "SubIFD:WhiteLevel": 1023,
            "SubIFD:DefaultCropOrigin": "40 20", "SubIFD:DefaultCropSize": "80 40",
            "ExifIFD:ExifVersion": "0232", "ExifIFD:DateTimeOriginal": "2026:11:22 11:34:05",
            "ExifIFD:CreateDate": "2026:11:22 11:34:05", "ExifIFD:SubSecTime": 123_456,
            "ExifIFD:SubSecTimeOriginal": 123_456, "ExifIFD:SubSecTimeDigitized": 123_456,
            "ExifIFD:OffsetTime": "-03:30", "ExifIFD:OffsetTimeOriginal": "-03:30",
            "ExifIFD:OffsetTimeDigitized": "-03:30", "ExifIFD:ExposureTime": 0.008, "ExifIFD:ISO": 800,
            "ExifIFD:ExposureCompensation": -0.5, "ExifIFD:FNumber": 2.8, "ExifIFD:FocalLength": 4.15,
            "ExifIFD:FocalLengthIn35mmFormat": 29, "ExifIFD:SubjectDistance": 1.25, "ExifIFD:Flash": 0x41,
            "ExifIFD:ExposureProgram": 1, "ExifIFD:ExposureMode": 1, "ExifIFD:WhiteBalance": 1,
            "ExifIFD:MeteringMode": 3, "ExifIFD:DigitalZoomRatio": 1.5, "ExifIFD:SerialNumber": "SN 4711",
            "ExifIFD:ImageUniqueID": "00112233445566778899aabbccddeeff",
        ]
        for (name, value) in wanted.sorted(by: { $0.key < $1.key }) {
            #expect(tags[name].map(Self.text) == Self.text(value), "\(name)")
        }
        let matrix = try #require(tags["IFD0:ColorMatrix1"]?.string).split(separator: " ").compactMap { Double($0) }
        // Daylight's white, CIE XYZ, is 1 of each colour.
        let white = [0.95047, 1, 1.08883]
        for row in 0..<3 { #expect(abs((0..<3).reduce(0) { $0 + matrix[row * 3 + $1] * white[$1] } - 1) < 1e-4) }
    }

    /// What nobody knows is not said; what developers need is.
    @Test func whatIsNotKnownIsNotSaid() async throws {
        let tags = try await read(try RawMaterial(.grey16).photo())
        #expect(tags["IFD0:UniqueCameraModel"] == "Camera")
        #expect(tags["SubIFD:PhotometricInterpretation"] == 34892)
        #expect(tags["SubIFD:WhiteLevel"] == 65535)
        #expect(tags["IFD0:PhotometricInterpretation"] == 1)
        #expect(tags["ExifIFD:Flash"] == 0x20)
        #expect(tags["ExifIFD:OffsetTime"] == "+01:00")
        for name in [
            "IFD0:Make", "IFD0:Model", "IFD0:Software", "IFD0:ImageDescription", "IFD0:CameraSerialNumber",
            "IFD0:ColorMatrix1", "IFD0:AsShotNeutral", "SubIFD:CFAPattern2", "ExifIFD:ExposureTime", "ExifIFD:ISO",
            "ExifIFD:FNumber", "ExifIFD:MeteringMode", "ExifIFD:WhiteBalance", "ExifIFD:ExposureProgram",
        ] {
            #expect(tags[name] == nil, "\(name)")
        }
    }

    /// No fault that exiftool knows of.
    @Test(arguments: ["RGGB", "pgCC", "GREY", "Y14P"])
    func isValid(_ name: String) async throws {
        let scratch = try TemporaryDirectory()
        let path = "\(scratch.path)/photo.dng"
        let format = try #require(PixelFormat(name))
        try File.replace(path, with: try RawMaterial(format).photo().bytes, mode: 0o600)
        let text = String(
            decoding: try await output("exiftool", ["-validate", "-warning", "-a", path], scratch), as: UTF8.self)
        // libtiff writes where the raw picture's directory is as TIFF's supplement wants it, of which exiftool thinks
        // otherwise.
        let faults = text.split(separator: "\n").filter { !$0.hasPrefix("Validate") && !$0.contains("0x014a") }
        #expect(text.hasPrefix("Validate") && faults == [], "\(text)")
    }

    /// Texts and numbers as devices and their clocks may have them.
    @Test func nothingThatACameraSaysTrapsOrFails() throws {
        var facts = RawMaterial.facts
        facts.make = "A\0B"
        facts.model = ""
        facts.uniqueID = "not hexadecimal, and of another length"
        facts.serial = String(repeating: "x", count: 100_000)
        facts.exposureDuration = .max
        facts.iso = .max
        facts.exposureBias = .infinity
        facts.fNumber = .nan
        facts.focalLength = 1e300
        facts.focalLength35 = 1e300
        facts.subjectDistance = .infinity
        facts.zoom = -1
        facts.realtime = .min
        facts.utcOffset = 100_000_000
        #expect(try RawMaterial(.bayerRGGB8).photo(facts).bytes.count > 160 * 80)
        facts.realtime = .max
        facts.exposureDuration = -1
        facts.exposureBias = -1e300
        #expect(try RawMaterial(.bayerRGGB8).photo(facts).bytes.count > 160 * 80)
    }

    private func read(_ photo: EncodedPhoto) async throws -> [String: JSONValue] {
        let scratch = try TemporaryDirectory()
        let path = "\(scratch.path)/photo.dng"
        try File.replace(path, with: photo.bytes, mode: 0o600)
        let text = try await output("exiftool", ["-j", "-G1", "-n", "-a", path], scratch)
        return try #require(JSONValue(parsing: text).array?.first?.object)
    }

    /// Numbers and texts alike, since exiftool writes as a number what looks like one.
    private static func text(_ value: JSONValue) -> String {
        if let text = value.string { return text }
        return value.double.map { Int64(exactly: $0).map(String.init) ?? "\($0)" } ?? "\(value)"
    }
}
