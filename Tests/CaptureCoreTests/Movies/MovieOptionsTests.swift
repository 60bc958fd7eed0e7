import BusProtocol
import CaptureCore
import JSON
import Testing

@Suite struct MovieOptionsTests {
    private static let video: JSONValue = [
        "codec": "h264", "width": 640, "height": 480, "bitRate": 900_000, "keyFrameInterval": 50, "preset": "fast",
    ]
    private static let audio: JSONValue = ["codec": "aac", "rate": 44100, "channels": 1, "bitRate": 64000]

    private func wish(
        _ params: JSONValue, _ fileType: MovieFileType = .mp4, hasSound: Bool = true
    ) throws -> MovieOptions {
        try MovieOptions(params, fileType: fileType, hasSound: hasSound, minFreeDiskSpace: 7)
    }

    @Test func `what is not said is as usual`() throws {
        let wish = try wish([:])
        #expect(wish.video == MovieRequest.Video(codec: .automatic))
        #expect(wish.audio == MovieRequest.Audio())
        #expect(wish.fragmentInterval == 10_000)
        #expect(wish.limits == MovieRequest.Limits(minFreeDiskSpace: 7))
        #expect(!wish.isDetached && !wish.continuesAfterCrash && wish.frameRate == nil && wish.take == nil)
    }

    @Test func `settings are taken whole`() throws {
        let wish = try wish(["settings": ["video": Self.video, "audio": Self.audio], "minFreeDiskSpace": 9])
        #expect(
            wish.video
                == MovieRequest.Video(
                    codec: .h264, width: 640, height: 480, bitRate: 900_000, keyFrameInterval: 50, preset: "fast"))
        #expect(wish.audio == MovieRequest.Audio(codec: .aac, rate: 44100, channels: 1, bitRate: 64000))
        #expect(wish.limits.minFreeDiskSpace == 9)
        // What the administrator says is the least.
        for less in [0, 6] {
            #expect(try self.wish(["minFreeDiskSpace": JSONValue(less)]).limits.minFreeDiskSpace == 7)
        }
    }

    @Test func `null is the samples as they come`() throws {
        #expect(try wish(["settings": .null], .mov).video.codec == .passThrough)
        #expect(try wish(["settings": .null], .mov).audio.codec == .pcm)
        #expect(try wish(["settings": ["audio": .null]], .mkv).video.codec == .automatic)
        #expect(try wish(["settings": .null, "codec": "raw"], .mkv).video.codec == .raw)
        // There is no sound that the file couldn't hold.
        #expect(try wish(["settings": .null], .mp4, hasSound: false).audio.codec == nil)
    }

    @Test(
        "what contradicts itself, or has no place in such a file, is refused",
        arguments: [
            (["settings": .null], .mp4, "settings"), (["settings": ["audio": .null]], .mp4, "settings.audio"),
            (["codec": "raw"], .mp4, "codec"), (["codec": "ffv1"], .mp4, "codec"),
            (["codec": "h264", "settings": .null], .mov, "codec"),
            (["codec": "raw", "settings": ["video": video]], .mkv, "settings.video"),
            (
                ["settings": ["audio": ["codec": "opus", "rate": 48000, "channels": 2, "bitRate": 96000]]], .mov,
                "settings.audio"
            ),
            (
                [
                    "settings": [
                        "video": ["codec": "h264", "width": 641, "height": 480, "bitRate": 9, "keyFrameInterval": 1]
                    ]
                ],
                .mp4, "settings.video"
            ),
            (["take": "a/b"], .mp4, "take"), (["frameRate": "1/30"], .mp4, "frameRate"),
            (["frameRate": 1001], .mp4, "frameRate"),
        ] as [(JSONValue, MovieFileType, String)])
    func refused(_ params: JSONValue, _ fileType: MovieFileType, _ path: String) throws {
        let error = try #require(throws: BusError.self) { try wish(params, fileType) }
        #expect(error.reason == .invalidParams)
        #expect(error.data["path"]?.string == path)
    }

    @Test(arguments: [25, 29.97, "30000/1001"] as [JSONValue])
    func `a rate is a number or a fraction`(_ rate: JSONValue) throws {
        #expect(try wish(["frameRate": rate], .mp4).frameRate == (rate == 25 ? 25 : 30000.0 / 1001))
    }

    @Test func `what is recommended is accepted`() throws {
        for fileType in MovieFileType.allCases {
            let video = RecommendedVideo(Dimensions(width: 1281, height: 720), frameRate: 30).json
            let audio = RecommendedAudio(fileType, rate: 44100, channels: 2).json
            let settings: JSONValue = ["video": video, "audio": audio]
            #expect(MethodTable["movie.start"]?.params.validate(["device": "cam0", "settings": settings]) == nil)
            let wish = try wish(["settings": settings], fileType)
            #expect(wish.video.width == 1280)
        }
    }
}
