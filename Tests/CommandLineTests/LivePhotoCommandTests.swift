import BusProtocol
import CameraBusTesting
import JSON
import LinuxIO
import Testing

@testable import camerabus

/// `camerabus photo --live`, against a bus that says what the test wants.
@Suite(.timeLimit(.minutes(5))) struct LivePhotoCommandTests {
    private let scratch: TemporaryDirectory

    init() throws { scratch = try TemporaryDirectory() }

    private func run(_ bus: FakeBus, _ arguments: String...) async throws -> ProgramResult {
        try await RunningProgram(
            "camerabus", ["photo"] + arguments,
            environment: ["PATH": "/usr/bin:/bin", "CAMERABUS_RUNTIME_DIR": bus.path, "TZ": "UTC"], scratch: scratch
        ).end()
    }

    private func place(_ name: String) -> String { "\(scratch.path)/\(name)" }

    private func read(_ name: String) throws -> String {
        String(decoding: try File.read(place(name), limit: 100), as: UTF8.self)
    }

    private func params(_ bus: FakeBus, _ method: String) -> [JSONValue] {
        bus.requests.filter { $0.method == method }.map(\.params)
    }

    private static func session(_ state: String = "running", past: Int64 = 1500) -> JSONValue {
        let output: JSONValue = [
            "id": "photo", "type": "photo", "livePhotoCaptureEnabled": true, "livePhotoPast": .integer(past),
        ]
        return ["id": "s1", "state": .string(state), "wanted": true, "outputs": [output]]
    }

    /// A bus with one session, which takes live photos of a few letters.
    ///
    /// - Parameters:
    ///   - state: of the session when it has been started.
    ///   - movie: what is told of the movie otherwise than usual.
    ///   - capture: gets the turn, before it is answered.
    private func bus(
        features: [JSONValue] = ["keys", "livePhotos"], state: JSONValue = Self.session(),
        movie: [String: JSONValue] = [:], capture: @escaping @Sendable () -> Void = {}
    ) throws -> FakeBus {
        let bus = try FakeBus { request, respond in
            switch request.method {
            case "bus.hello":
                respond(
                    .result([
                        "server": "CameraBus", "version": "0", "protocol": 1, "features": .array(features),
                        "you": ["uid": 0, "gid": 0, "pid": 1], "authorization": ["video": "authorized"],
                        "endpoints": ["command": "", "events": "", "media": [:]], "epoch": "e1", "sequence": 0,
                        "limits": ["requestBytes": 1_048_576],
                    ]))
            case "session.create", "session.configure", "session.start", "session.get":
                respond(
                    .result(["session": "s1", "state": state, "resolved": [], "explanation": ["Ann may not see."]]))
            case "session.delete": respond(.result([:]))
            case "photo.capture":
                capture()
                respond(Self.answer(request.params, movie))
            default: return false
            }
            return true
        }
        bus.setState("state/session/s1/", state)
        return bus
    }

    private static func answer(_ params: JSONValue, _ told: [String: JSONValue]) -> FakeBus.Reply {
        let deliver = params["deliver"]?.array?.compactMap(\.string) ?? []
        let files: [[UInt8]] = deliver.contains("reply") ? [Array("picture".utf8), Array("movie".utf8)] : []
        var photo: [String: JSONValue] = [
            "device": "cam0", "index": 0, "fileType": "jpeg", "width": 640, "height": 480, "bytes": 7, "sequence": 1,
            "stream": "s", "settled": true,
            "timestamp": ["monotonic": 1, "source": "dequeue", "realtime": 1_800_000_000_123_000_000],
        ]
        var movie: [String: JSONValue] = [
            "contentIdentifier": "7E0A3B52-9C41-4D68-A1F0-2B9C5D7E6F81", "width": 640, "height": 480, "bytes": 5,
            "duration": 2.9, "photoDisplayTime": 1.4,
        ].merging(told) { $1 }
        if !files.isEmpty { (photo["attachment"], movie["attachment"]) = (0, 1) }
        if deliver.contains("library") {
            (photo["path"], movie["path"]) = (.string("/v/a.jpg"), .string("/v/a.mov"))
        }
        return .result(
            [
                "uniqueID": "u", "resolved": ["devices": []], "expectedPhotoCount": 1, "photos": [.object(photo)],
                "livePhotoMovie": .object(movie),
                "attachments": .array(
                    files.map { ["name": "a", "contentType": "image/jpeg", "bytes": JSONValue($0.count)] }),
            ], attachments: files)
    }

    @Test func `a live photo is two files, of a session of its own`() async throws {
        let bus = try bus()
        let result = try await run(bus, "cam0", "--live", "--mic", "mic0", "-o", place("a.jpg"))
        #expect(result.status == 0, "\(result)")
        #expect(result.standardOutput == "\(place("a.jpg"))\n\(place("a.mov"))\n")
        #expect(try read("a.jpg") == "picture" && read("a.mov") == "movie")
        #expect(
            result.standardError == """
                640x480, 7 B, 2027-01-15 08:00:00.123
                with a movie of 2.9 s, 5 B, 640x480; the photo is at 1.4 s

                """)
        let made = params(bus, "session.create").first
        #expect(made?["inputs"] == [["device": "cam0"], ["device": "mic0"]])
        #expect(made?["outputs"] == [["type": "photo", "livePhotoCaptureEnabled": true]])
        let asked: JSONValue = [
            "session": "s1", "device": "cam0", "settings": ["livePhoto": true, "format": "jpeg"], "deliver": ["reply"],
        ]
        #expect(params(bus, "photo.capture") == [asked])
        #expect(bus.requests.last?.method == "session.delete")
    }

    @Test func `how the camera is held is said of both files, by the session`() async throws {
        let bus = try bus()
        let result = try await run(
            bus, "cam0", "--live", "--orientation", "portrait", "--mirrored", "--turned", "-o", place("a.jpg"))
        #expect(result.status == 0, "\(result)")
        let connection: JSONValue = ["output": "photo", "videoOrientation": "portrait", "videoMirrored": true]
        #expect(params(bus, "session.configure") == [["session": "s1", "actions": [["connection": connection]]]])
        #expect(
            params(bus, "photo.capture").first?["settings"] == ["livePhoto": true, "turned": true, "format": "jpeg"])
        let methods = bus.requests.map(\.method).filter { $0.hasPrefix("session.") }
        #expect(methods == ["session.create", "session.configure", "session.start", "session.delete"])
    }

    @Test func `what a movie lacks is told`() async throws {
        let bus = try bus(movie: ["duration": 0.75, "photoDisplayTime": 0.5, "dropped": 7])
        let result = try await run(bus, "cam0", "--live", "-o", place("a.jpg"))
        #expect(result.status == 0, "\(result)")
        #expect(
            result.standardError.hasSuffix(
                """
                with a movie of 0.75 s, 5 B, 640x480, 7 dropped; the photo is at 0.5 s
                The movie is short: only 0.5 s before the photo were held, or the camera was moved before it; it ended 0.25 s \
                after the photo, because the camera was moved or its frames ended.

                """), "\(result)")
    }

    @Test func `what is no camera, and a format of which there are none, are told`() async throws {
        let bus = try bus()
        let deaf = try await run(bus, "cam0", "--live", "--mic", "cam1")
        #expect(deaf.status == 1 && deaf.standardError == "invalidParams: cam1 is not a microphone.\n", "\(deaf)")
        #expect(params(bus, "session.create") == [])
        let output: JSONValue = [
            "id": "photo", "type": "photo", "livePhotoCaptureEnabled": false,
            "livePhotoCaptureSupported": ["supported": false, "why": "cam0 gives H264 now"],
        ]
        let compressed = try self.bus(
            state: ["id": "s1", "state": "running", "wanted": true, "outputs": [output]])
        let none = try await run(compressed, "cam0", "--live")
        #expect(none.status == 1, "\(none)")
        #expect(
            none.standardError.hasPrefix(
                "photoFormatUnavailable: --live is not possible: cam0 gives H264 now; 'camerabus format cam0 --pixel "
                    + "YUYV'"
            ),
            "\(none)")
        #expect(params(compressed, "photo.capture") == [])
    }

    @Test func `a session that is named takes it, and those of the library are told by their paths`() async throws {
        let bus = try bus()
        let result = try await run(bus, "--session", "s1000000", "--live", "--library")
        #expect(result.status == 0 && result.standardOutput == "/v/a.jpg\n/v/a.mov\n", "\(result)")
        #expect(params(bus, "photo.capture").first?["session"] == "s1000000")
        #expect(params(bus, "session.create") == [] && params(bus, "session.delete") == [])
    }

    @Test func `programs get both files`() async throws {
        let result = try await run(try bus(), "cam0", "--live", "-o", place("b"), "--json")
        let json = try JSONValue(parsing: result.standardOutput)
        #expect(json["photos"]?[0]?["file"]?.string == place("b.jpg"), "\(result)")
        #expect(json["livePhotoMovie"]?["file"]?.string == place("b.mov"))
    }

    @Test func `both files are written, or neither`() async throws {
        let bus = try bus()
        try File.replace(place("a.mov"), with: [1], mode: 0o600)
        let there = try await run(bus, "cam0", "--live", "-o", place("a.jpg"))
        #expect(there.status == 1 && there.standardError.contains("a.mov exists already; --force"), "\(there)")
        #expect(params(bus, "photo.capture") == [])
        // One that comes meanwhile.
        let path = place("c.mov")
        let late = try self.bus { try? File.replace(path, with: [1], mode: 0o600) }
        let result = try await run(late, "cam0", "--live", "-o", place("c.jpg"))
        #expect(result.status == 1 && result.standardOutput == "", "\(result)")
        #expect(result.standardError.contains("c.mov exists already"))
        #expect(!scratch.contents().contains("c.jpg"))
        #expect(try await run(bus, "cam0", "--live", "-o", place("a.jpg"), "--force").status == 0)
        #expect(try read("a.mov") == "movie")
    }

    @Test func `what keeps a session from running is told, and no photo is taken`() async throws {
        let denied = try bus(state: Self.session("waitingForAuthorization"))
        let result = try await run(denied, "cam0", "--live", "-o", place("a.jpg"))
        #expect(result.status == 1 && result.standardError == "unauthorized: Ann may not see.\n", "\(result)")
        #expect(params(denied, "photo.capture") == [] && denied.requests.last?.method == "session.delete")
        let cause: JSONValue = ["reason": "videoDeviceInUseByAnotherClient", "message": "Another has cam0."]
        let held = try bus(state: ["id": "s1", "state": "interrupted", "outputs": [], "interruption": cause])
        let taken = try await run(held, "cam0", "--live")
        #expect(taken.standardError == "videoDeviceInUseByAnotherClient: Another has cam0.\n", "\(taken)")
        let old = try bus(features: ["keys"])
        let refused = try await run(old, "cam0", "--live")
        #expect(refused.status == 1 && refused.standardError.contains("does not support live photos"), "\(refused)")
    }

    @Test func `a place that takes no two files is refused`() async throws {
        let bus = try bus()
        let result = try await run(bus, "cam0", "--live", "-o", "/dev/null")
        #expect(result.status == 1 && result.standardError.contains("/dev/null can't hold the two"), "\(result)")
        #expect(params(bus, "session.create") == [])
    }

    @Test func `a movie lies beside its picture`() {
        #expect(PhotoFileNames.movie(beside: "v.d/a.JPG") == "v.d/a.mov")
        #expect(PhotoFileNames.movie(beside: "b.c.jpeg") == "b.c.mov" && PhotoFileNames.movie(beside: "a") == "a.mov")
        #expect(
            PhotoText.short(.milliseconds(700)) == "Only 0.7 s before the photo are held. The movie begins later.")
    }
}
