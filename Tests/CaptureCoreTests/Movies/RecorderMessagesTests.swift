import BusProtocol
import CaptureCore
import JSON
import Testing

@Suite("Movies between coordinator and recorder")
struct RecorderMessagesTests {
    private static let owner = LockHolder(uid: 1000, gid: 1000, pid: 77, startTime: 5, name: "cam")
    private static let camera = MovieRequest.Device(id: "front", uniqueID: "u-1", name: "Front")

    private static var small: MovieRequest {
        MovieRequest(movie: "m1", path: "/v/a.mp4", camera: camera, fileType: .mp4, owner: owner)
    }

    private static var blank: MovieRequest {
        var request = large
        request.blank = BlankMedia(
            picture: Dimensions(width: 640, height: 480), sound: BlankMedia.Sound(rate: 44100, channels: 1))
        return request
    }

    private static var live: MovieRequest {
        var request = large
        (request.path, request.library, request.fileType) = ("", nil, .mov)
        request.live = MovieRequest.Live(isSuspended: true, isAutoTrimming: false)
        return request
    }

    private static var large: MovieRequest {
        MovieRequest(
            movie: "m2", path: "/v/b.mkv", library: "/v",
            camera: MovieRequest.Device(id: "front", uniqueID: "u-1", name: "Front"),
            microphone: MovieRequest.Device(id: "desk", uniqueID: "u-2", name: "Desk"), fileType: .mkv,
            video: MovieRequest.Video(
                codec: .h264, width: 640, height: 480, bitRate: 1_000_000, keyFrameInterval: 30, preset: "fast",
                isFitted: true),
            audio: MovieRequest.Audio(codec: .opus, rate: 48000, channels: 2, bitRate: 96000), fragmentInterval: 1000,
            frameRate: 29.97,
            limits: MovieRequest.Limits(maxDuration: 1000, maxFileSize: 2000, minFreeDiskSpace: 3000),
            beginsOnOrder: true, startsWithSound: true, orientation: 90, mirrored: true, take: "t",
            part: 2, session: "s",
            rig: "r", owner: owner, note: ["detached": true])
    }

    private static var progress: MovieProgress {
        var progress = MovieProgress(.recording)
        progress.video = ["codec": "mjpeg", "width": 640, "height": 480]
        (progress.recordedDuration, progress.syncedDuration) = (1234, 1000)
        (progress.recordedFileSize, progress.syncedFileSize) = (5678, 5000)
        (progress.frames, progress.dropped, progress.fragments) = (30, 2, 1)
        progress.encoderLoad = 0.25
        (progress.startOffset, progress.isReady) = (3.5, true)
        progress.source = Dimensions(width: 320, height: 200)
        progress.blank = [.audio]
        progress.sideCarProblem = "There is none."
        progress.waitingFor = ["front"]
        progress.refusal = .limitExceeded(.renditions, "Others want them.", maximum: 8)
        return progress
    }

    private static func overTheWire(_ json: JSONValue) throws -> JSONValue { try JSONValue(parsing: json.description) }

    @Test("a request is read as it was written", arguments: [small, large, blank, live])
    func request(_ request: MovieRequest) throws {
        #expect(try MovieRequest(json: Self.overTheWire(request.json)) == request)
    }

    @Test("what a request doesn't say is as usual, what it doesn't know is left out")
    func usual() throws {
        var members = try #require(Self.small.json.object)
        for name in ["video", "audio", "fragmentInterval", "limits", "part"] { members[name] = nil }
        members["later"] = 1
        #expect(try MovieRequest(json: .object(members)) == Self.small)
        #expect(Self.small.video.codec == .automatic)
        #expect(Self.small.fragmentInterval == 10_000)
    }

    @Test(
        "what is wrong with a request is told",
        arguments: [
            ("path", "a.mp4"), ("path", .null), ("camera", .null), ("camera", ["device": "A B"]),
            ("fileType", "avi"), ("fragmentInterval", 0), ("frameRate", 0), ("orientation", 45), ("owner", [:]),
            ("limits", ["maxDuration": 0]), ("video", ["codec": "vp9"]), ("video", ["width": 0]),
            ("audio", ["channels": 9]), ("part", 0),
        ] as [(String, JSONValue)])
    func refused(_ name: String, _ value: JSONValue) throws {
        var members = try #require(Self.small.json.object)
        members[name] = value
        let json = JSONValue.object(members)
        let error = try #require(throws: BusError.self) { try MovieRequest(json: json) }
        #expect(error.data["path"]?.string?.hasPrefix(name) == true)
    }

    @Test(
        "an order is read as it was written",
        arguments: [
            RecorderOrder(number: 1, action: .pause(at: 4)), RecorderOrder(number: 2, action: .resume(at: 6), link: 7),
            RecorderOrder(number: 3, action: .stop(.ownerGone)),
            RecorderOrder(number: 3, action: .stop(.stopped, at: 1 << 60)),
            RecorderOrder(number: 3, action: .pause(at: 7)),
            RecorderOrder(number: 3, action: .resume(at: 5)),
            RecorderOrder(number: 3, action: .begin(at: 123_456_789_012_345_678)),
            RecorderOrder(number: .init(Int64.max), action: .cancel),
            RecorderOrder(number: 4, action: .input(RecorderOrder.Input(camera))),
            RecorderOrder(
                number: 5, action: .input(RecorderOrder.Input(camera, orientation: 270, mirrored: true)), link: 1),
            RecorderOrder(number: 7, action: .dropLive("p1")), RecorderOrder(number: 8, action: .suspend(true)),
            RecorderOrder(number: 9, action: .suspend(false)),
        ])
    func order(_ order: RecorderOrder) throws {
        #expect(RecorderOrder(json: try Self.overTheWire(order.json)) == order)
    }

    @Test(
        "what is no order is none",
        arguments: [
            ["do": "stop"], ["order": 1], ["order": 1, "do": "x"], .null, ["order": 1, "do": "input"],
            ["order": 1, "do": "input", "camera": ["device": "A B"]],
            ["order": 1, "do": "input", "camera": camera.json, "orientation": 45],
            ["order": 1, "do": "live", "job": "p1", "moment": 5], ["order": 1, "do": "dropLive"],
            ["order": 1, "do": "suspend"],
        ] as [JSONValue])
    func noOrder(_ json: JSONValue) { #expect(RecorderOrder(json: json) == nil) }

    @Test("a live photo is ordered, and its movie told, whole")
    func livePhoto() throws {
        let identifier = try #require(LivePhotoIdentifier(digits: String(repeating: "0a", count: 16)))
        let photo = LivePhotoOrder(job: "p1", moment: .max, identifier: identifier, attaches: true)
        try order(RecorderOrder(number: 6, action: .live(photo)))
        let movie = LivePhotoMovie(
            identifier: identifier, dimensions: Dimensions(width: 640, height: 480), bytes: 1000,
            duration: 3_000_000_001, photoDisplayTime: 1_499_999_999)
        let answer = LivePhotoAnswer(movie, file: "/run/live/a.mov")
        #expect(LivePhotoAnswer(json: try Self.overTheWire(answer.json)) == answer)
        #expect(LivePhotoAnswer(json: ["movie": movie.json, "file": "a.mov"]) == nil)
        #expect(LivePhotoAnswer(json: ["file": "/a.mov"]) == nil)
    }

    @Test(
        "live photos are of a camera, and made into MOV",
        arguments: [
            ("path", "/a.mov"), ("camera", .null), ("live", ["suspended": 1]), ("live", 1), ("fileType", "mp4"),
        ] as [(String, JSONValue)])
    func refusedLive(_ name: String, _ value: JSONValue) throws {
        var members = try #require(Self.live.json.object)
        members[name] = value
        let json = JSONValue.object(members)
        #expect(throws: BusError.self) { try MovieRequest(json: json) }
    }

    @Test("a stop for a reason that isn't known stops")
    func unknownReason() {
        #expect(
            RecorderOrder(json: ["order": 1, "do": "stop", "reason": "boredom"])?.action == .stop(.stopped))
    }

    @Test("a report is read as it was written")
    func reports() throws {
        let failed = MovieResult(
            .diskFull, error: BusError(.diskFull, "The disk is full.", ["free": 0]), path: "/v/a.mp4", duration: 1,
            size: 2, frames: 3, dropped: 4, isKept: true)
        let reports: [RecorderReport] = [
            .hello(movie: "m2", pid: 5, link: 3, request: Self.large, progress: Self.progress),
            .state(MovieProgress(.starting)), .state(Self.progress), .event(.didStartRecording),
            .event(.didPauseRecording), .event(.didResumeRecording), .event(.didDropFrames(9)),
            .event(.didFinishRecording(failed)),
            .event(.didFinishRecording(MovieResult(.stopped, path: "/v/a.mp4", isKept: true))),
            .reply(order: 4, .success([:])), .reply(order: 5, .failure(BusError(.notRecording, "It has ended."))),
            .alive,
        ]
        for report in reports { #expect(RecorderReport(json: try Self.overTheWire(report.json)) == report) }
    }

    @Test("what was asked for is a success, and nothing else")
    func success() {
        let good: Set<MovieEndReason> = [
            .stopped, .maximumDurationReached, .maximumFileSizeReached, .minimumFreeDiskSpaceReached,
            .libraryQuotaReached, .ownerGone, .shuttingDown, .formatChanged,
        ]
        for reason in MovieEndReason.allCases {
            #expect(MovieResult(reason, path: "/v", isKept: true).isSuccess == good.contains(reason))
        }
        #expect(!MovieResult(.stopped, error: BusError(.internalError, ""), path: "/v", isKept: true).isSuccess)
    }
}
