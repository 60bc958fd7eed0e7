import BusProtocol
import CameraBusTesting
import JSON
import LinuxIO
import Testing

extension ProcessTests.Films {
    /// A film in a bus that may send it to a server at this URL.
    private func play(_ film: String, to url: String) async throws -> BusHarness {
        try await BusHarness(
            virtual: 0, configuration: "[library]\ndestinations = [\"\(url)\"]\n", arguments: ["--replay", film])
    }

    /// ffprobe as the server.
    private func seen(_ url: String, _ port: Int, _ bus: BusHarness) async throws -> RunningProgram {
        let entries = "stream=width,height,sample_aspect_ratio,color_range,color_space,color_transfer,color_primaries"
        let probe = try bus.start(
            "ffprobe",
            [
                "-v", "error", "-rtsp_flags", "listen", "-i", url, "-select_streams", "v", "-show_entries",
                "\(entries):stream_side_data=rotation", "-of", "default=nw=1",
            ])
        try await eventually(by: .after(seconds: 20)) { LocalPort.isListening(port) }
        return probe
    }

    /// Sends the film twice: first to ffprobe, then to ffmpeg, which stores the bare H.264.
    ///
    /// - Returns: what ffprobe says of what came, and where the stored stream is.
    private func send(
        _ bus: BusHarness, _ port: Int, _ url: String, device: String = "film", codec: String
    ) async throws -> (words: Set<String>, file: String) {
        let client = try RawClient(path: bus.directory.commandSocket)
        let file = "\(bus.scratchPath)/sent.h264"
        let request: JSONValue = ["device": .string(device), "url": .string(url), "codec": .string(codec)]
        func start() throws -> String {
            let started = try client.call("movie.start", request, within: 30)
            return try #require(started["movie"]?.string)
        }
        let probe = try await seen(url, port, bus)
        let first = try start()
        let result = try await probe.end(by: .after(seconds: 60))
        #expect(result.status == 0, "\(result)")
        try client.call("movie.stop", ["movie": .string(first)], within: 30)
        let server = try bus.start(
            "ffmpeg",
            [
                "-v", "error", "-nostdin", "-rtsp_flags", "listen", "-i", url, "-c", "copy", "-bsf:v",
                "dump_extra", "-f", "h264", "-y", file,
            ])
        try await eventually(by: .after(seconds: 20)) { LocalPort.isListening(port) }
        let second = try start()
        try await bus.wait(for: "state/movie/\(second)/") { ($0?["frames"]?.integer ?? 0) > 15 }
        try client.call("movie.stop", ["movie": .string(second)], within: 30)
        let stored = try await server.end(by: .after(seconds: 30))
        #expect(stored.status == 0, "\(stored)")
        return (Set(result.standardOutput.split(separator: "\n").map(String.init)), file)
    }

    @Test(arguments: [
        ("bt709", "tv", "h264"), ("smpte170m", "pc", "h264"), ("bt2020nc", "tv", "h264"),
        ("bt2020nc", "pc", "passThrough"),
    ])
    func `a film's colours and the shape of its pixels reach a server by RTSP`(
        _ matrix: String, _ range: String, _ codec: String
    ) async throws {
        let folder = try TemporaryDirectory()
        let film = "\(folder.path)/film.mp4"
        let port = try LocalPort.free()
        let url = "rtsp://127.0.0.1:\(port)/film"
        let bus = try await play(film, to: url)
        try await make(film, matrix, range, shape: "64/45", bus)
        try await bus.wait(for: "state/device/film/") { $0?["connected"] == true }
        if codec == "passThrough" {
            let chosen = try await bus.run("camerabus", ["format", "film", "320x240", "--pixel", "H264"])
            #expect(chosen.status == 0, "\(chosen)")
        }
        let wanted = try await pixels(film, bus)
        let (words, file) = try await send(bus, port, url, codec: codec)
        let primaries = matrix == "bt2020nc" ? "bt2020" : matrix
        for word in [
            "width=320", "height=240", "color_range=\(codec == "h264" ? "tv" : range)", "color_space=\(matrix)",
            "color_primaries=\(primaries)",
            "color_transfer=bt709", "sample_aspect_ratio=64:45",
        ] { #expect(words.contains(word), "\(word) in \(words)") }
        let sent = try await pixels(file, bus)
        #expect(difference(sent, (Self.width, Self.height), from: wanted) <= 6)
        try await bus.stop()
    }

    @Test func `a turned film is upright at a server, or refused`() async throws {
        let folder = try TemporaryDirectory()
        let film = "\(folder.path)/film.mov"
        let port = try LocalPort.free()
        let url = "rtsp://127.0.0.1:\(port)/film"
        let bus = try await play(film, to: url)
        let shown = try await makeTurned(film, 5, "libx264", isFolder: false, bus)
        try await bus.wait(for: "state/device/film/") { $0?["connected"] == true }
        let wanted = try await pixels(shown, bus)
        let (words, file) = try await send(bus, port, url, codec: "h264")
        #expect(words.isSuperset(of: ["width=240", "height=320"]), "\(words)")
        #expect(!words.contains { $0.hasPrefix("rotation=") }, "\(words)")
        let sent = try await pixels(file, bus)
        #expect(difference(sent, (Self.height, Self.width), from: wanted, film: true) <= 8)

        let chosen = try await bus.run("camerabus", ["format", "film", "320x240", "--pixel", "H264"])
        #expect(chosen.status == 0, "\(chosen)")
        let client = try RawClient(path: bus.directory.commandSocket)
        let refusal = try client.refusal(
            "movie.start", ["device": "film", "url": .string(url), "codec": "passThrough"])
        #expect(refusal?.reason == .invalidParams && refusal?.data["path"] == "orientation", "\(refusal as Any)")
        #expect(refusal?.message.contains("rtsp can't say that stored pictures have to be turned") == true)
        try await bus.stop()
    }

    @Test func `a camera's H.264 states at a server what its header does`() async throws {
        let port = try LocalPort.free()
        let url = "rtsp://127.0.0.1:\(port)/cam0"
        let bus = try await BusHarness(virtual: 1, configuration: "[library]\ndestinations = [\"\(url)\"]\n")
        let chosen = try await bus.run("camerabus", ["format", "cam0", "640x480", "--pixel", "H264"])
        #expect(chosen.status == 0, "\(chosen)")
        let header = try FrameReader(bus, "cam0", "native").next().header
        let (words, _) = try await send(bus, port, url, device: "cam0", codec: "passThrough")
        let entries = [
            ("color_primaries", "colorPrimaries"), ("color_transfer", "transferFunction"),
            ("color_space", "yCbCrMatrix"),
        ]
        for (theirs, ours) in entries {
            let word = header[ours]?.string ?? ""
            #expect(words.contains("\(theirs)=\(word)"), "\(words)")
        }
        #expect(words.contains("color_range=tv") && header["colorRange"] == "video", "\(words)")
        try await bus.stop()
    }
}
