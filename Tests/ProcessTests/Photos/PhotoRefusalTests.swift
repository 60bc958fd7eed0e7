import BusProtocol
import CameraBusTesting
import CaptureLibrary
import Glibc
import JSON
import LinuxIO
import Testing

/// Photos that can't be taken, or not as they were asked for.
extension ProcessTests.Photos {
    @Test func `a reply that is too large leaves the library's photos intact`() async throws {
        let bus = try await bus(configuration: "[limits]\nphoto_reply = 65536\n")
        let (client, ears) = (try client(bus), try PhotoEars(bus))
        func capture(_ id: String, _ deliver: JSONValue) throws -> BusError {
            try client.start(
                "photo.capture",
                [
                    "device": "cam0", "deliver": deliver,
                    "settings": settings(id, ["burst": 5, "quality": 95]),
                ])
            guard case .failure(let error) = try client.reply(within: 20).result else {
                throw TestingError("\(id) was answered")
            }
            #expect(error.reason == .limitExceeded && error.data["limit"] == "photoReply")
            #expect(error.data["maximum"] == 65536)
            return error
        }
        let photos = try capture("both", ["reply", "library"]).data["photos"]?.array ?? []
        #expect(photos.map { $0["index"] } == [0, 1, 2, 3, 4])
        for photo in photos {
            let path = try #require(photo["path"]?.string)
            #expect(try File.read(path, limit: 64 << 20).count == photo["bytes"]?.integer.map { Int($0) })
        }
        let told = try ears.all(of: ["both"])["both"] ?? []
        #expect(told.count == 9 && told.last?["error"]?["data"]?["reason"] == "limitExceeded")
        #expect(told.last?["photos"] == 5)
        // Without the library there is nothing to go on for.
        let end = try capture("reply", ["reply"]).data["photos"]?.array?.count ?? 0
        #expect(end < 5)
        try await bus.wait(for: "state/device/cam0/", until: Self.isReady)
        try await bus.stop()
    }

    @Test func `invalid requests are refused`() async throws {
        let bus = try await BusHarness(virtual: 1, microphones: 1)
        let client = try client(bus)
        let other = try self.client(bus)
        let session = try client.call("session.create", ["inputs": ["cam0"], "outputs": ["videoData"]])["session"]
        let stopped = try client.call("session.create", ["inputs": ["cam0"], "outputs": ["photo"]])
        let refusals: [(JSONValue, BusError.Reason, JSONValue?)] = [
            ([:], .invalidParams, "device"), (["device": "cam9"], .deviceNotFound, nil),
            (["device": "mic0"], .invalidParams, "device"), (["rig": "nobody"], .rigNotFound, nil),
            (["device": "cam0", "rig": "x"], .invalidParams, "rig"),
            (["devices": ["cam0", "cam0"]], .invalidParams, "devices[1]"),
            (["session": "nobody"], .sessionNotFound, nil),
            (["session": session ?? .null], .invalidParams, "session"),
            (["session": stopped["session"] ?? .null], .sessionNotRunning, nil),
            (["device": "cam0", "settings": ["uniqueID": "a/b"]], .invalidParams, "settings.uniqueID"),
            (["device": "cam0", "settings": ["ago": 0]], .invalidParams, "settings.ago"),
            (["device": "cam0", "settings": ["ago": 1]], .momentNotHeld, nil),
            (["device": "cam0", "lock": .string(String(repeating: "0", count: 32))], .lockLost, nil),
            (["device": "cam0", "name": "a/b"], .invalidParams, "name"),
            (
                ["device": "cam0", "settings": ["burst": 7, "interval": 10_001]], .invalidParams,
                "settings.interval"
            ),
            // From the first to the last they are just not too long.
            (
                [
                    "device": "cam0", "settings": ["burst": 7, "interval": 10_000],
                    "lock": .string(String(repeating: "0", count: 32)),
                ], .lockLost, nil
            ),
        ]
        for (params, reason, place) in refusals {
            let error = try other.refusal("photo.capture", params)
            #expect(error?.reason == reason, "\(params): \(error.map { "\($0)" } ?? "taken")")
            if let place { #expect(error?.data["path"] == place, "\(params)") }
        }
        let output = stopped["state"]?["outputs"]?[0]
        #expect(output?["readiness"] == "notRunning" && output?["availablePhotoCodecTypes"] != nil)
        #expect(output?["availableRawPhotoPixelFormatTypes"] != nil)
        // What has to be set for it is another's, as long as that one has the lock.
        try client.call("device.lock", ["devices": "cam0"])
        let program = try await bus.run(
            "camerabus",
            ["call", "photo.capture", #"{"device":"cam0","settings":{"bracket":{"exposureBias":[-1,1]}}}"#])
        #expect(program.status == 1 && program.standardError.contains("deviceBusy"), "\(program)")
        try await bus.stop()
    }

    @Test func `raw photos that no reply can hold are refused before the first is taken`() async throws {
        let bus = try await bus(configuration: "[limits]\nphoto_reply = 65536\n")
        let (client, ears) = (try client(bus), try PhotoEars(bus))
        let formats = try client.call("device.formats", ["device": "cam0"])["formats"]?.array ?? []
        let raw = try #require(formats.first { $0["pixelFormat"] == "RGGB" })
        let lock = try client.call("device.lock", ["devices": ["cam0"]])["lock"] ?? .null
        let change: JSONValue = ["device": "cam0", "activeFormat": raw["id"] ?? .null]
        try client.call("device.configure", ["lock": lock, "changes": [change]])
        try client.start(
            "photo.capture",
            ["device": "cam0", "deliver": ["reply"], "settings": settings("raw", ["format": "dng"])])
        guard case .failure(let error) = try client.reply(within: 20).result else {
            throw TestingError("it was answered")
        }
        #expect(error.reason == .limitExceeded && error.data["limit"] == "photoReply", "\(error)")
        #expect(error.data["photos"] == nil)
        let told = try ears.all(of: ["raw"])["raw"] ?? []
        #expect(told.map { $0["event"] } == ["didFinishCapture"], "\(told)")
        try await bus.wait(for: "state/device/cam0/", until: Self.isReady)
        try await bus.stop()
    }

    @Test func `an unsupported exposure falls back to the nearest one, and is reported`() async throws {
        let bus = try await bus()
        let client = try client(bus)
        let steps: [String: JSONValue] = ["bracket": ["exposureBias": [-9, 0]]]
        let answer = try client.call(
            "photo.capture", ["device": "cam0", "settings": settings("clamped", steps)], within: 30)
        let adjusted = answer["adjusted"]?[0]
        #expect(answer["adjusted"]?.array?.count == 1, "\(answer)")
        #expect(adjusted?["device"] == "cam0" && adjusted?["path"] == "settings.bracket.exposureBias[0]")
        #expect(adjusted?["asked"]?.double == -9 && adjusted?["given"]?.double == -2)
        try await bus.stop()
    }

    @Test func `a movie and photos that would be seen in it exclude each other`() async throws {
        let bus = try await bus()
        let client = try client(bus)
        let movie = try #require(try client.call("movie.start", ["device": "cam0", "name": "belt"])["movie"])
        let bracket: JSONValue = ["bracket": ["exposureBias": [-1, 1]]]
        let size: JSONValue = ["maxPhotoDimensions": ["width": 640, "height": 480]]
        for wish in [bracket, size, ["highResolution": true]] {
            let error = try client.refusal("photo.capture", ["device": "cam0", "settings": wish])
            #expect(error?.reason == .recordingInProgress && error?.data["movie"] == movie, "\(wish)")
        }
        // Others are taken of what is recorded.
        #expect(try client.call("photo.capture", ["device": "cam0"])["photos"]?.array?.count == 1)
        try client.call("movie.stop", ["movie": movie])
        let pid = try worker(bus, "cam0")
        kill(pid, SIGSTOP)
        defer { kill(pid, SIGCONT) }
        try client.start("photo.capture", ["device": "cam0", "settings": bracket])
        try await bus.wait(for: "state/device/cam0/") { $0?["photo"]?["readiness"] == "waitingForCapture" }
        let late = try self.client(bus).refusal("movie.start", ["device": "cam0", "name": "late"])
        #expect(late?.reason == .cancelled, "\(late.map { "\($0)" } ?? "it began")")
        kill(pid, SIGCONT)
        #expect(try client.reply(within: 20).result.get()["photos"]?.array?.count == 2)
        try await bus.stop()
    }
}
