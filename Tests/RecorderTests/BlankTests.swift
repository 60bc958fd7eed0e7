import BusProtocol
import CameraBusTesting
import CaptureCore
import FFmpeg
import JSON
import MovieFile
import Testing

@Suite("Movies with black or silence in the place of what may not be had", .serialized)
struct BlankTests {
    private static func duration(_ track: JSONValue) -> Double { track["duration"]?.string.flatMap(Double.init) ?? 0 }

    /// From 0 to 1, of the loudest moment from a time on, seconds.
    private static func loudest(_ path: String, from start: Double) throws -> Float {
        let reader = try SoundReader(path, as: AudioFormat(.float32, rate: 48000, channels: 1))
        var most: Float = 0
        while let piece = try reader.next() {
            guard Double(piece.time) / 1e9 >= start else { continue }
            piece.samples.withMemoryRebound(to: Float.self) { for sample in $0 { most = max(most, abs(sample)) } }
        }
        return most
    }

    /// How bright the last picture is.
    private static func brightness(_ fixture: RecorderFixture, _ path: String) async throws -> Int {
        let result = try await fixture.run(
            "ffmpeg",
            [
                "-v", "error", "-sseof", "-1", "-i", path, "-an", "-update", "1", "-f", "rawvideo", "-pix_fmt", "gray",
                "-vf", "scale=16:16", "-",
            ])
        let bytes = result.standardOutputBytes
        try #require(bytes.count >= 256, "\(result)")
        return bytes.suffix(256).reduce(0) { $0 + Int($1) } / 256
    }

    @Test("there is silence for a microphone, which is not even asked for")
    func silence() async throws {
        let fixture = try RecorderFixture()
        try fixture.startCamera("cam0", .motionJPEG)
        // There is no such process.
        var request = fixture.request(.mov, microphone: true)
        request.blank.sound = BlankMedia.Sound(rate: 44100, channels: 1)
        _ = try fixture.record(request)
        try fixture.wait(for: .didStartRecording)
        try fixture.waitForState("frames") { $0.frames >= 45 }
        #expect(fixture.progress.blank == [.audio])
        let result = try fixture.stop()
        #expect(result.isSuccess && result.dropped == 0)
        let tracks = try await fixture.tracks(request.path)
        try #require(tracks.count == 2)
        let sound = try #require(tracks.first { $0["codec_type"] == "audio" })
        #expect(sound["sample_rate"] == "44100" && sound["channels"] == 1)
        #expect(abs(Self.duration(tracks[0]) - Self.duration(tracks[1])) < 0.2)
        #expect(try Self.loudest(request.path, from: 0) == 0)
        let complaints = try await fixture.complaints(request.path)
        #expect(complaints == "")
    }

    @Test("there is black for a camera, at its rate", arguments: [.automatic, .raw] as [MovieRequest.Video.Codec])
    func darkness(_ codec: MovieRequest.Video.Codec) async throws {
        let fixture = try RecorderFixture()
        try fixture.startMicrophone()
        var request = fixture.request(.mkv, microphone: true)
        request.video.codec = codec
        request.blank.frameDuration = FrameDuration(framesPerSecond: 25)
        request.blank.picture = Dimensions(width: 320, height: 240)
        _ = try fixture.record(request)
        try fixture.wait(for: .didStartRecording)
        try fixture.waitForState("pictures") { $0.frames >= 40 }
        #expect(fixture.progress.blank == [.video])
        let result = try fixture.stop()
        #expect(result.isSuccess && result.isKept)
        #expect(abs(Double(result.frames) - Double(result.duration) / 40) <= 2)
        let tracks = try await fixture.tracks(request.path)
        let picture = try #require(tracks.first { $0["codec_type"] == "video" })
        #expect(picture["width"] == 320 && picture["height"] == 240)
        #expect(try Self.loudest(request.path, from: 0) > 0.01)
        #expect(try await Self.brightness(fixture, request.path) < 20)
        let complaints = try await fixture.complaints(request.path)
        #expect(complaints == "")
    }

    @Test("nothing can stand for what is stored as it comes")
    func refused() throws {
        let fixture = try RecorderFixture()
        try fixture.startMicrophone()
        var request = fixture.request(.mov, microphone: true)
        request.blank.picture = Dimensions(width: 320, height: 240)
        request.video.codec = .passThrough
        _ = try fixture.record(request)
        let result = try fixture.waitForEnd()
        #expect(!result.isKept && result.error?.reason == .invalidParams && result.error?.data["path"] == "codec")
    }

    @Test(
        "what may not be had any more is blank from then on, and the movie goes on",
        arguments: [
            (.audio, .motionJPEG), (.video, .motionJPEG), (.video, .yuyv),
        ] as [(AuthorizationMedia, PixelFormat)])
    func withdrawn(_ media: AuthorizationMedia, _ format: PixelFormat) async throws {
        let fixture = try RecorderFixture()
        try fixture.startCamera("cam0", format)
        try fixture.startMicrophone()
        let request = fixture.request(.mov, microphone: true)
        _ = try fixture.record(request)
        try fixture.wait(for: .didStartRecording)
        try fixture.waitForState("frames") { $0.frames >= 15 }
        #expect(try fixture.order(.blank(media)).get() == [:])
        #expect(try fixture.order(.blank(media)).get() == [:], "once is enough")
        let (frames, length) = (fixture.progress.frames, fixture.progress.recordedDuration)
        try fixture.waitForState("what follows") {
            $0.frames >= frames + 60 && $0.recordedDuration >= length + 1500 && $0.blank == [media]
        }
        let other: AuthorizationMedia = media == .audio ? .video : .audio
        guard case .failure = try fixture.order(.blank(other)) else {
            Issue.record("a movie of nothing")
            return
        }
        let result = try fixture.stop()
        #expect(result.isSuccess)
        let start = Double(length) / 1000 + 1
        if media == .audio {
            #expect(try Self.loudest(request.path, from: 0) > 0.01)
            #expect(try Self.loudest(request.path, from: start) < 0.001)
        } else {
            #expect(try await Self.brightness(fixture, request.path) < 20)
            #expect(try Self.loudest(request.path, from: start) > 0.01)
        }
        let tracks = try await fixture.tracks(request.path)
        try #require(tracks.count == 2)
        #expect(abs(Self.duration(tracks[0]) - Self.duration(tracks[1])) < 0.2)
        let complaints = try await fixture.complaints(request.path)
        #expect(complaints == "")
    }

    @Test("H.264 that is stored as it comes can't be replaced")
    func h264() throws {
        let fixture = try RecorderFixture()
        try fixture.startCamera("cam0", .h264)
        try fixture.startMicrophone()
        _ = try fixture.record(fixture.request(.mp4, microphone: true))
        try fixture.wait(for: .didStartRecording)
        guard case .failure = try fixture.order(.blank(.video)) else {
            Issue.record("black in the place of H.264")
            return
        }
        #expect(try fixture.stop().isSuccess)
    }
}
