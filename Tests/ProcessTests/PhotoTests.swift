import BusProtocol
import CameraBusTesting
import CaptureLibrary
import Glibc
import JSON
import LinuxIO
import Testing
import ZeroMQ

/// Hears of all photos, from its making on.
struct PhotoEars {
    static let stages = [
        "willBeginCapture", "willCapturePhoto", "didCapturePhoto", "didFinishProcessingPhoto", "didFinishCapture",
    ]

    private let events: RawClient

    init(_ bus: BusHarness) throws {
        events = try RawClient(.subscribe, path: bus.directory.eventsSocket, topics: ["welcome/"])
        _ = try events.receive()
        for topic in ["event/photo/", "ack/photos/"] { try events.socket.subscribe(topic) }
        while try Self.read(events.receive()).topic != "ack/photos/" {}
    }

    private static func read(_ message: [Message]) throws -> (topic: String, body: JSONValue) {
        let topic = String(decoding: try #require(message.first).bytes, as: UTF8.self)
        return (topic, try JSONValue(parsing: try #require(message.last).bytes))
    }

    /// The next event of any photo: its uniqueID and the event.
    func next() throws -> (id: String, body: JSONValue) {
        let (topic, body) = try Self.read(events.receive(within: 20))
        let parts = topic.split(separator: "/")
        return (parts.count == 3 ? String(parts[2]) : "", body)
    }

    /// Goes on with the next event of that name of that photo.
    @discardableResult
    func next(_ event: String, of id: String) throws -> JSONValue {
        while true {
            let (photo, body) = try next()
            if photo == id, body["event"]?.string == event { return body }
        }
    }

    /// All events of these photos, by photo, until each has had its last.
    func all(of ids: some Collection<String>) throws -> [String: [JSONValue]] {
        var (left, heard) = (Set(ids), [String: [JSONValue]]())
        while !left.isEmpty {
            let (id, body) = try next()
            heard[id, default: []].append(body)
            if body["event"] == "didFinishCapture" { left.remove(id) }
        }
        return heard
    }

    static func names(_ events: [JSONValue]?) -> [String] { (events ?? []).compactMap { $0["event"]?.string } }
}

extension ProcessTests {
    /// Photos, as the bus queues, tells and answers them.
    @Suite(.timeLimit(.minutes(5))) struct Photos {
        private let home: TemporaryDirectory
        init() throws { home = try TemporaryDirectory() }

        /// One with a library.
        private func bus(_ virtual: Int = 1, configuration: String? = nil) async throws -> BusHarness {
            try await BusHarness(
                virtual: virtual, configuration: configuration, arguments: ["--state-dir", home.path])
        }

        private func client(_ bus: BusHarness) throws -> RawClient {
            try RawClient(path: bus.directory.commandSocket)
        }

        private func settings(_ id: String, _ more: [String: JSONValue] = [:]) -> JSONValue {
            .object(more.merging(["uniqueID": .string(id)]) { $1 })
        }

        private func names(in folder: String) throws -> Set<String> {
            guard let folder = opendir(folder) else { throw TestingError("\(folder) is not there") }
            defer { closedir(folder) }
            var names: Set<String> = []
            while let entry = readdir(folder) {
                let name = withUnsafePointer(to: &entry.pointee.d_name) {
                    $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                }
                if !name.hasPrefix(".") { names.insert(name) }
            }
            return names
        }

        private func worker(_ bus: BusHarness, _ device: String) throws -> Int32 {
            try #require(try bus.workerPID(device))
        }

        /// How a process was started.
        private func words(of pid: Int32) -> [Substring] {
            let line = (try? File.read("/proc/\(pid)/cmdline", limit: 1 << 20)) ?? []
            return String(decoding: line, as: UTF8.self).split(separator: "\0")
        }

        /// Nothing is under way.
        private static func isReady(_ value: JSONValue?) -> Bool {
            let photo = value?["photo"]
            return (photo?["readiness"] == "ready" || photo?["readiness"] == "notRunning") && photo?["waiting"] == 0
        }

        @Test func `a photo is told in its stages, and comes by reply and into the library`() async throws {
            let bus = try await bus()
            let (client, ears) = (try client(bus), try PhotoEars(bus))
            try client.start(
                "photo.capture",
                ["device": "cam0", "deliver": ["reply", "library"], "settings": settings("First-1")], key: "k")
            let (reply, frames) = try client.replyWithFrames(within: 20)
            let result = try reply.result.get()
            #expect(result["uniqueID"] == "First-1" && result["expectedPhotoCount"] == 1 && result["spread"] == nil)
            let photo = try #require(result["photos"]?.array?.first)
            #expect(result["photos"]?.array?.count == 1 && photo["attachment"] == 0 && photo["device"] == "cam0")
            let file = try #require(frames.first).bytes
            #expect(frames.count == 1 && Array(file.prefix(2)) == [0xFF, 0xD8])
            #expect(
                result["attachments"]?[0]?["bytes"] == JSONValue(file.count) && photo["bytes"] == JSONValue(file.count))
            let path = try #require(photo["path"]?.string)
            #expect(try File.read(path, limit: 64 << 20) == Array(file))
            let entry = try CaptureLibrary("\(home.path)/library").entry(try #require(photo["id"]?.string))
            #expect(entry?.kind == .photo && entry?.state == .finished && entry?.path == path)

            let told = try ears.all(of: ["First-1"])["First-1"]
            #expect(PhotoEars.names(told) == PhotoEars.stages)
            #expect(told?[0]["resolved"] == result["resolved"] && told?[0]["devices"] == ["cam0"])
            #expect(told?[0]["owner"]?["pid"] == JSONValue(getpid()))
            #expect(
                told?[3]["photo"]?["path"] == photo["path"] && told?[4]["error"] == .null && told?[4]["photos"] == 1)

            // The same request again is answered with the same photo; its id is used, for whatever else.
            try client.start(
                "photo.capture",
                ["device": "cam0", "deliver": ["reply", "library"], "settings": settings("First-1")], key: "k")
            let again = try client.replyWithFrames()
            #expect(try again.reply.result.get() == result && again.frames.map { Array($0.bytes) } == [Array(file)])
            let reused = try client.refusal("photo.capture", ["device": "cam0", "settings": settings("First-1")])
            #expect(reused?.reason == .photoSettingsReused && reused?.data["uniqueID"] == "First-1")
            // By itself it goes into the library alone.
            let next = try client.call("photo.capture", ["device": "cam0"])
            #expect(next["attachments"] == [] && next["photos"]?[0]?["path"] != nil)
            try await bus.wait(for: "state/device/cam0/", until: Self.isReady)
            try await bus.stop()
        }

        @Test func `a photo of a moment ago is older than its request`() async throws {
            let bus = try await bus()
            let (client, ears) = (try client(bus), try PhotoEars(bus))
            // Of large pictures a busy machine holds few.
            let made = try client.call(
                "session.create",
                [
                    "inputs": ["cam0"], "preset": "640x480", "outputs": [["type": "photo", "preRoll": 2000]],
                ])
            let session = try #require(made["session"]?.string)
            try client.call("session.start", ["session": .string(session)])
            #expect(made["state"]?["outputs"]?[0]?["preRoll"] == 2000)
            let first = try #require(
                try client.call("photo.capture", ["session": .string(session)])["photos"]?[0]?["timestamp"]?[
                    "monotonic"]?
                    .integer)
            try await bus.wait(for: "state/device/cam0/", until: Self.isReady)
            while MonotonicClock.now() < first + 600_000_000 {
                // Each is later than the one before; that is time enough.
                try client.call("photo.capture", ["device": "cam0"])
            }
            let asked = MonotonicClock.now()
            let past = try client.call("photo.capture", ["device": "cam0", "settings": settings("past", ["ago": 500])])
            let moment = try #require(past["photos"]?[0]?["timestamp"]?["monotonic"]?.integer)
            #expect(moment < asked && past["photos"]?[0]?["exposure"] == nil)
            #expect(PhotoEars.names(try ears.all(of: ["past"])["past"]) == PhotoEars.stages)
            // It is held for the session only.
            try client.call("session.stop", ["session": .string(session)])
            let refusal = try client.refusal("photo.capture", ["device": "cam0", "settings": ["ago": 500]])
            #expect(refusal?.reason == .momentNotHeld && refusal?.data["preRoll"] == 0)
            try await bus.stop()
        }

        @Test func `what a scene wants is in the session's state`() async throws {
            let bus = try await bus()
            let client = try client(bus)
            let photo: JSONValue = ["type": "photo", "photoSettingsForSceneMonitoring": ["flash": "on"]]
            let made = try client.call("session.create", ["inputs": ["cam0"], "outputs": [photo]])
            let session = try #require(made["session"]?.string)
            #expect(made["state"]?["outputs"]?[0]?["isFlashScene"] == true)
            #expect(made["state"]?["outputs"]?[0]?["isStillImageStabilizationScene"] == false)
            try client.call("session.start", ["session": .string(session)])
            // With a flash that is there when it is needed it is as the scene is.
            let auto: JSONValue = ["output": "photo", "photoSettingsForSceneMonitoring": ["flash": "auto"]]
            try client.call("session.configure", ["session": .string(session), "actions": [["setOutput": auto]]])
            try await bus.wait(for: "state/device/cam0/") { $0?["isStreaming"] == true }
            try client.call("device.set", ["device": "cam0", "controls": ["exposureDuration": 0.0001]])
            try await bus.wait(for: "state/session/\(session)/") { $0?["outputs"]?[0]?["isFlashScene"] == true }
            let none: JSONValue = ["output": "photo", "photoSettingsForSceneMonitoring": .null]
            try client.call("session.configure", ["session": .string(session), "actions": [["setOutput": none]]])
            try await bus.wait(for: "state/session/\(session)/") { $0?["outputs"]?[0]?["isFlashScene"] == false }
            try await bus.stop()
        }

        @Test func `too large a reply leaves what goes into the library`() async throws {
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

        @Test func `what can't be is refused`() async throws {
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

        @Test func `a hundred photos of four clients, and not one more`() async throws {
            let bus = try await bus(2)
            let clients = try (0..<4).map { _ in try client(bus) }
            let ears = try PhotoEars(bus)
            let pids = try ["cam0", "cam1"].map { try worker(bus, $0) }
            // Small and quick ones: it is the order that counts.
            let small: JSONValue = ["pixelFormat": "YUYV", "width": 320, "height": 240]
            let lock = try clients[0].call("device.lock", ["devices": ["cam0", "cam1"]])["lock"] ?? .null
            let changes = ["cam0", "cam1"].map { device -> JSONValue in
                ["device": .string(device), "activeFormat": small, "frameRate": 60]
            }
            try clients[0].call("device.configure", ["lock": lock, "changes": .array(changes)])
            try clients[0].call("device.unlock", ["lock": lock])
            // Nothing begins before all are there.
            for pid in pids { kill(pid, SIGSTOP) }
            let ids = (0..<100).map { "photo-\($0)" }
            for (index, id) in ids.enumerated() {
                try clients[index / 25].start(
                    "photo.capture", ["device": .string("cam\(index % 2)"), "settings": settings(id)])
            }
            let probe = try client(bus)
            try await bus.wait(for: "state/device/cam1/") { ($0?["photo"]?["waiting"]?.integer ?? 0) == 49 }
            let more = try probe.refusal("photo.capture", ["device": "cam0"])
            #expect(more?.reason == .limitExceeded && more?.data["limit"] == "photos" && more?.data["maximum"] == 100)
            for pid in pids { kill(pid, SIGCONT) }
            var answered: [String] = []
            for _ in 0..<25 {
                for client in clients {
                    let result = try client.reply(within: 60).result.get()
                    answered.append(try #require(result["uniqueID"]?.string))
                    #expect(result["photos"]?.array?.count == 1)
                }
            }
            #expect(answered.count == 100 && Set(answered) == Set(ids))
            let heard = try ears.all(of: ids)
            #expect(Set(heard.keys) == Set(ids))
            for (id, events) in heard {
                #expect(PhotoEars.names(events) == PhotoEars.stages, "\(id)")
                #expect(events.last?["error"] == .null, "\(id)")
            }
            for device in ["cam0", "cam1"] { try await bus.wait(for: "state/device/\(device)/", until: Self.isReady) }
            try await bus.stop()
        }

        @Test func `a worker that dies between the stages ends the photo, and not the next one`() async throws {
            let bus = try await bus()
            let (client, ears) = (try client(bus), try PhotoEars(bus))
            let burst: [String: JSONValue] = ["burst": 100, "interval": 100]
            try client.start("photo.capture", ["device": "cam0", "settings": settings("burst", burst)])
            try ears.next("willCapturePhoto", of: "burst")
            kill(try worker(bus, "cam0"), SIGKILL)
            guard case .failure(let error) = try client.reply().result else { throw TestingError("it was answered") }
            #expect(error.reason == .workerCrashed)
            let end = try ears.next("didFinishCapture", of: "burst")
            #expect(end["error"]?["data"]?["reason"] == "workerCrashed")
            let next = try client.call("photo.capture", ["device": "cam0"], within: 30)
            let path = try #require(next["photos"]?[0]?["path"]?.string)
            #expect(access(path, F_OK) == 0)
            // What it was storing is whole, or gone.
            let library = try CaptureLibrary("\(home.path)/library")
            let day = try #require(path.split(separator: "/").dropLast().last)
            try await eventually {
                var entries: [LibraryEntry?] = []
                try library.forEachStamp { id, _ in entries.append(try? library.entry(id)) }
                let entered = Set(entries.compactMap { $0?.path.split(separator: "/").last.map(String.init) })
                return try entries.allSatisfy { $0?.state == .finished }
                    && names(in: "\(home.path)/library/\(day)") == entered
            }
            try await bus.stop()
        }

        /// Of cam0, which has been set for a bracket that takes a while.
        private func workerWithinBracket(_ bus: BusHarness, _ client: RawClient) throws -> Int32 {
            let ears = try PhotoEars(bus)
            let steps: [String: JSONValue] = ["bracket": ["exposureBias": .array((0..<16).map { .integer($0 % 2) })]]
            try client.start("photo.capture", ["device": "cam0", "settings": settings("bracket", steps)])
            try ears.next("willCapturePhoto", of: "bracket")
            return try worker(bus, "cam0")
        }

        @Test func `a worker that dies within a bracket leaves the next one what is to be put back`() async throws {
            let bus = try await bus()
            let client = try client(bus)
            let former = try workerWithinBracket(bus, client)
            kill(former, SIGKILL)
            #expect(throws: BusError.self) { try client.reply().result.get() }
            try await eventually {
                guard let pid = try bus.workerPID("cam0"), pid != former else { return false }
                return words(of: pid).contains("--stand-in")
            }
            _ = try client.call("photo.capture", ["device": "cam0"], within: 30)
            // What was put back is not handed on any more.
            let second = try worker(bus, "cam0")
            kill(second, SIGKILL)
            try await eventually {
                guard let pid = try bus.workerPID("cam0"), pid != second else { return false }
                return words(of: pid).contains("--device") && !words(of: pid).contains("--stand-in")
            }
            try await bus.stop()
        }

        @Test func `what a bus and its worker had set for a photo when both died is put back`() async throws {
            let bus = try await bus()
            let client = try client(bus)
            let former = try workerWithinBracket(bus, client)
            // It is not to see that the bus is gone.
            kill(former, SIGSTOP)
            try await bus.killCoordinator()
            kill(former, SIGKILL)
            try await bus.startCoordinator()
            try await eventually {
                guard let pid = try bus.workerPID("cam0"), pid != former else { return false }
                return words(of: pid).contains("--stand-in")
            }
            _ = try self.client(bus).call("photo.capture", ["device": "cam0"], within: 30)
            try await bus.wait(for: "state/device/cam0/", until: Self.isReady)
            // What was put back is known as that.
            try await eventually {
                try JSONValue(parsing: File.read(bus.directory.stateFile, limit: 1 << 20))["standIns"] == nil
            }
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

        @Test func `what a camera can't expose is taken with the nearest, and told`() async throws {
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

        @Test func `a photo that waits is given up, also with who asked for it`() async throws {
            let bus = try await bus()
            let (client, ears) = (try client(bus), try PhotoEars(bus))
            let pid = try worker(bus, "cam0")
            kill(pid, SIGSTOP)
            defer { kill(pid, SIGCONT) }
            try client.start("photo.capture", ["device": "cam0", "settings": settings("one")], key: "one")
            try client.start("photo.capture", ["device": "cam0", "settings": settings("two")], key: "two")
            let program = try bus.start(
                "camerabus", ["call", "photo.capture", #"{"device":"cam0","settings":{"uniqueID":"three"}}"#])
            try await bus.wait(for: "state/device/cam0/") { $0?["photo"]?["waiting"] == 2 }
            #expect(try self.client(bus).call("bus.cancel", ["key": "two"])["cancelled"] == true)
            guard case .failure(let error) = try client.reply().result else { throw TestingError("it was answered") }
            #expect(error.reason == .cancelled)
            #expect(PhotoEars.names(try ears.all(of: ["two"])["two"]) == ["didFinishCapture"])
            program.process.send(SIGKILL)
            let end = try ears.next("didFinishCapture", of: "three")
            #expect(end["error"]?["data"]?["reason"] == "cancelled" && end["photos"] == 0)
            kill(pid, SIGCONT)
            #expect(try client.reply(within: 20).result.get()["uniqueID"] == "one")
            try await bus.stop()
        }

        @Test func `photos of a rig are of one moment`() async throws {
            let bus = try await bus(2)
            let (client, ears) = (try client(bus), try PhotoEars(bus))
            try client.call("rig.set", ["name": "both", "devices": ["cam1", "cam0"]])
            let result = try client.call("photo.capture", ["rig": "both", "settings": settings("rig")], within: 30)
            let photos = result["photos"]?.array ?? []
            #expect(photos.map { $0["device"] } == ["cam1", "cam0"] && photos.map { $0["index"] } == [0, 0])
            let times = photos.compactMap { $0["timestamp"]?["monotonic"]?.integer }
            let spread = try #require(result["spread"]?.integer)
            #expect(times.count == 2 && spread == abs(times[0] - times[1]))
            #expect(Set(photos.compactMap { $0["path"]?.string }).count == 2)
            let told = PhotoEars.names(try ears.all(of: ["rig"])["rig"])
            #expect(
                told == Array(PhotoEars.stages[..<3]) + [PhotoEars.stages[3], PhotoEars.stages[3], PhotoEars.stages[4]])
            try await bus.stop()
        }

        @Test func `who asks for a bracket and dies leaves the exposure as it was`() async throws {
            let bus = try await bus()
            let (client, ears) = (try client(bus), try PhotoEars(bus))
            func exposure() throws -> [JSONValue?] {
                let controls = try client.call("device.get", ["device": "cam0"])["device"]?["controls"]
                return ["exposureMode", "exposureTargetBias"].map { controls?[$0] }
            }
            let before = try exposure()
            let program = try bus.start(
                "camerabus",
                [
                    "call", "photo.capture",
                    #"{"device":"cam0","settings":{"uniqueID":"bracket","bracket":{"exposureBias":[-2,0,2]}}}"#,
                ])
            try ears.next("willBeginCapture", of: "bracket")
            program.process.send(SIGKILL)
            try ears.next("didFinishCapture", of: "bracket")
            try await bus.wait(for: "state/device/cam0/", until: Self.isReady)
            #expect(try exposure() == before)
            // And is free for whoever comes.
            try client.call("device.set", ["device": "cam0", "controls": ["exposureTargetBias": 0]])
            try await bus.stop()
        }

        @Test func `a movie and photos that would be seen in it exclude each other`() async throws {
            let bus = try await bus()
            let client = try client(bus)
            let movie = try #require(try client.call("movie.start", ["device": "cam0", "name": "belt"])["movie"])
            let bracket: JSONValue = ["bracket": ["exposureBias": [-1, 1]]]
            for wish in [bracket, ["highResolution": true]] {
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

        @Test func `a session's camera takes photos while it runs`() async throws {
            let bus = try await bus()
            let client = try client(bus)
            let made = try client.call(
                "session.create", ["inputs": ["cam0"], "outputs": ["photo"], "preset": "640x480"])
            let session = try #require(made["session"])
            try client.call("session.start", ["session": session])
            let topic = "state/session/\(session.string ?? "")/"
            try await bus.wait(for: topic) { value in
                let output = value?["outputs"]?[0]
                return output?["readiness"] == "ready" && output?["availablePhotoCodecTypes"] == ["jpeg"]
            }
            #expect(try client.call("photo.capture", ["session": session])["photos"]?[0]?["device"] == "cam0")
            // For the largest size the session lends its camera, and has it back as it was.
            let format = try client.call("device.get", ["device": "cam0"])["device"]?["activeFormat"]
            let largest = try client.call("photo.capture", ["session": session, "settings": ["highResolution": true]])
            let width = try #require(largest["photos"]?[0]?["width"]?.integer)
            #expect(width > format?["width"]?.integer ?? .max)
            try await bus.wait(for: "state/device/cam0/") { $0?["activeFormat"] == format }
            let still = try client.call("session.get", ["session": session])
            #expect(
                still["state"]?["state"] == "running" && still["state"]?["interruption"] ?? .null == .null, "\(still)")
            // One that waits goes with the session.
            let pid = try worker(bus, "cam0")
            kill(pid, SIGSTOP)
            defer { kill(pid, SIGCONT) }
            let other = try self.client(bus)
            try other.start("photo.capture", ["session": session])
            try await bus.wait(for: topic) { $0?["outputs"]?[0]?["readiness"] == "waitingForCapture" }
            try client.call("session.stop", ["session": session])
            kill(pid, SIGCONT)
            guard case .failure(let error) = try other.reply().result else { throw TestingError("it was answered") }
            #expect(error.reason == .sessionNotRunning)
            try await bus.stop()
        }

        @Test func `what is not taken when the bus ends is given up`() async throws {
            let bus = try await bus()
            let client = try client(bus)
            let pid = try worker(bus, "cam0")
            kill(pid, SIGSTOP)
            for id in ["one", "two"] {
                try client.start("photo.capture", ["device": "cam0", "settings": settings(id)])
            }
            try await bus.wait(for: "state/device/cam0/") { $0?["photo"]?["waiting"] == 1 }
            try self.client(bus).call("bus.shutdown")
            guard case .failure(let error) = try client.reply().result else { throw TestingError("it was answered") }
            #expect(error.reason == .shuttingDown)
            kill(pid, SIGCONT)
            try await bus.waitForEnd()
            try await bus.stop()
        }
    }
}
