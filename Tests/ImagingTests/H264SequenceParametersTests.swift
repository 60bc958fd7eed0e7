import BusProtocol
import CameraBusTesting
import CaptureCore
import Imaging
import JSON
import LinuxIO
import Testing

/// What sequence parameter sets say, with ffprobe as the judge.
@Suite struct H264SequenceParametersTests {
    private let scratch: TemporaryDirectory

    init() throws { scratch = try TemporaryDirectory() }

    private func encoded(_ size: String, _ pixels: String, _ options: [String]) async throws -> String {
        let path = "\(scratch.path)/a.h264"
        let arguments =
            ["-v", "error", "-f", "lavfi", "-i", "testsrc=size=\(size):rate=5", "-frames:v", "2", "-pix_fmt", pixels]
            + options + ["-c:v", "libx264", "-f", "h264", "-y", path]
        let result = try await RunningProgram.result("ffmpeg", arguments, in: scratch)
        try #require(result.status == 0, "\(result)")
        return path
    }

    private func sequence(_ path: String) throws -> [UInt8] {
        try File.read(path, limit: 1 << 24).withUnsafeBytes { stream in
            let sets = H264Stream.beginning(of: stream).parameterSets
            // Behind their start codes.
            let units = sets.map { Array(stream[$0].drop { $0 == 0 }.dropFirst()) }
            return try #require(units.first { $0.first == 0x67 })
        }
    }

    @Test(
        arguments: [
            ("1920x1080", "yuv420p", []), ("322x242", "yuv420p", ["-profile:v", "baseline"]),
            ("640x360", "yuv422p", ["-preset", "ultrafast"]), ("98x66", "yuv444p", ["-x264-params", "cqm=jvt"]),
            ("720x576", "yuv420p", ["-flags", "+ilme+ildct", "-vf", "setsar=16/11,setfield=tff"]),
            ("720x564", "yuv420p", ["-flags", "+ilme+ildct", "-vf", "setsar=64/45"]),
            (
                "640x480", "yuv420p10le",
                ["-color_primaries", "bt2020", "-color_trc", "smpte2084", "-colorspace", "bt2020nc"]
            ),
            ("320x240", "yuv420p", ["-color_range", "pc", "-colorspace", "bt709"]),
            ("320x240", "yuv420p", ["-color_range", "tv", "-color_primaries", "smpte170m", "-color_trc", "bt709"]),
            ("320x240", "yuv420p", ["-x264-params", "overscan=show:fullrange=on:colormatrix=smpte170m"]),
            ("320x240", "yuv420p", ["-vf", "setsar=40/33", "-chroma_sample_location", "center"]),
            ("320x240", "yuv420p", ["-vf", "setsar=1001/1000", "-x264-params", "chromaloc=2:colormatrix=bt709"]),
        ] as [(String, String, [String])])
    func theSetSaysWhatFFprobeSays(_ size: String, _ pixels: String, _ options: [String]) async throws {
        let path = try await encoded(size, pixels, options)
        let unit = try sequence(path)
        let set = try #require(unit.withUnsafeBytes { H264SequenceParameters($0) })
        let probed = try await RunningProgram.result(
            "ffprobe", ["-v", "error", "-show_streams", "-of", "json", path], in: scratch)
        let stream = try #require(try JSONValue(parsing: probed.standardOutputBytes)["streams"]?[0])
        func word(_ name: String) -> String? { stream[name]?.string.flatMap { $0 == "unknown" ? nil : $0 } }
        #expect(set.dimensions.json == ["width": stream["width"] ?? 0, "height": stream["height"] ?? 0])
        #expect(set.matrix?.rawValue == word("color_space"))
        #expect(set.primaries?.rawValue == word("color_primaries"))
        #expect(set.transferFunction?.rawValue == word("color_transfer"))
        if let range = set.range { #expect((range == .full ? "pc" : "tv") == word("color_range")) }
        if word("color_range") == "pc" { #expect(set.range == .full) }
        #expect(set.pixelAspectRatio?.text(":") == word("sample_aspect_ratio"))
        if let place = set.chromaLocation { #expect(place.rawValue == word("chroma_location")) }
        if options.contains("center") { #expect(set.chromaLocation == .center) }
    }

    @Test func whatIsDamagedSaysNothing() async throws {
        let unit = try sequence(try await encoded("320x240", "yuv420p", []))
        for count in 0..<unit.count {
            let set = unit[..<count].withUnsafeBytes { H264SequenceParameters($0) }
            #expect(set == nil || set?.dimensions == Dimensions(width: 320, height: 240), "\(count)")
        }
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<20_000 {
            var damaged = unit
            for _ in 0..<3 { damaged[Int.random(in: 1..<unit.count, using: &generator)] = UInt8.random(in: 0...255) }
            let set = damaged.withUnsafeBytes { H264SequenceParameters($0) }
            if let size = set?.dimensions { #expect(size.width <= 16384 && size.height <= 16384 && size.area > 0) }
        }
        #expect([0x68, 1, 2].withUnsafeBytes { H264SequenceParameters($0) } == nil)
    }
}
