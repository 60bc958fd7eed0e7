import BusProtocol
import CameraBusTesting
import CaptureLibrary
import Glibc
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension ProcessTests {
    /// Photos, as the bus queues, tells and answers them.
    @Suite(.timeLimit(.minutes(5))) struct Photos {
        let home: TemporaryDirectory
        init() throws { home = try TemporaryDirectory() }

        /// One with a library.
        func bus(_ virtual: Int = 1, configuration: String? = nil) async throws -> BusHarness {
            try await BusHarness(
                virtual: virtual, configuration: configuration, arguments: ["--state-dir", home.path])
        }

        func client(_ bus: BusHarness) throws -> RawClient {
            try RawClient(path: bus.directory.commandSocket)
        }

        func settings(_ id: String, _ more: [String: JSONValue] = [:]) -> JSONValue {
            .object(more.merging(["uniqueID": .string(id)]) { $1 })
        }

        func worker(_ bus: BusHarness, _ device: String) throws -> Int32 {
            try #require(try bus.workerPID(device))
        }

        /// Nothing is under way.
        static func isReady(_ value: JSONValue?) -> Bool {
            let photo = value?["photo"]
            return (photo?["readiness"] == "ready" || photo?["readiness"] == "notRunning") && photo?["waiting"] == 0
        }

        @Test func `a photo is reported in its stages, and comes by reply and into the library`() async throws {
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

        @Test func `the flash and stabilization that a scene needs are in the session's state`() async throws {
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

        @Test func `a photo of a size of one's choice`() async throws {
            let bus = try await bus()
            let client = try client(bus)
            let session = try client.call(
                "session.create",
                ["inputs": ["cam0"], "preset": "640x480", "outputs": ["photo"]])
            let id = try #require(session["session"]?.string)
            try client.call("session.start", ["session": .string(id)])
            let state = try await bus.wait(for: "state/session/\(id)/") {
                $0?["outputs"]?[0]?["supportedMaxPhotoDimensions"]?.array?.isEmpty == false
            }
            let sizes = state?["outputs"]?[0]?["supportedMaxPhotoDimensions"]?.array ?? []
            #expect(sizes.first == ["width": 320, "height": 240] && sizes.last?["width"] == 3840, "\(sizes)")
            func capture(_ name: String, _ size: JSONValue, _ more: [String: JSONValue] = [:]) -> JSONValue {
                let settings = settings(name, more.merging(["maxPhotoDimensions": size]) { $1 })
                return ["session": .string(id), "deliver": ["reply"], "settings": settings]
            }
            let asked: JSONValue = ["width": 1300, "height": 1300]
            let result = try client.call("photo.capture", capture("a", asked), within: 30)
            #expect(result["photos"]?[0]?["width"] == 1280 && result["photos"]?[0]?["height"] == 720, "\(result)")
            // It continues with its session's format.
            try await bus.wait(for: "state/device/cam0/") { $0?["activeFormat"]?["width"] == 640 && Self.isReady($0) }
            let small = try client.refusal("photo.capture", capture("b", ["width": 100, "height": 100]))
            #expect(small?.reason == .formatUnsupported && small?.data["supportedMaxPhotoDimensions"] == .array(sizes))
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
                return output?["readiness"] == "ready"
                    && output?["availablePhotoCodecTypes"] == ["jpeg", "png", "tiff"]
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

        @Test func `a telephone's stills are as large as its table says, and its pictures can be stabilized`()
            async throws
        {
            let bus = try await BusHarness(virtual: 1, arguments: ["--virtual-profile", "iphone6"])
            let client = try RawClient(path: bus.directory.commandSocket)
            for row in try client.call("device.formats", ["device": "cam0"])["formats"]?.array ?? [] {
                let id = row["id"]?.string ?? ""
                #expect(try await bus.run("camerabus", ["format", "cam0", id]).status == 0)
                let modes = row["supportedVideoStabilizationModes"]?.array?.compactMap(\.string) ?? []
                #expect(modes == ["off", "standard", "auto"])
                for (mode, active) in [("standard", "standard"), ("auto", "standard"), ("off", "off")] {
                    let session = try client.call(
                        "session.create", ["inputs": [["device": "cam0", "activeFormat": .string(id)]]])["session"]
                    let connection: JSONValue = [
                        "connection": ["input": "cam0", "preferredVideoStabilizationMode": .string(mode)]
                    ]
                    let asked: JSONValue = ["session": session ?? .null]
                    try client.call(
                        "session.configure",
                        ["session": session ?? .null, "actions": [["addOutput": "videoData"], connection]])
                    try client.call("session.start", asked)
                    try await bus.wait(for: "state/session/\(session?.string ?? "")/") {
                        $0?["resolved"]?[0]?["activeVideoStabilizationMode"]?.string == active
                    }
                    try client.call("session.delete", asked)
                    try client.call("device.set", ["device": "cam0", "controls": ["videoStabilizationMode": "off"]])
                }
                let still = row["highResolutionStillImageDimensions"]
                guard still?["width"]?.integer ?? 0 > row["width"]?.integer ?? 0 else { continue }
                let path = "\(bus.scratchPath)/\(id).jpg"
                let taken = try await bus.run("camerabus", ["photo", "cam0", "--high-resolution", "-o", path])
                #expect(taken.status == 0, "\(taken)")
                let probed = try await bus.run(
                    "ffprobe", ["-v", "error", "-show_entries", "stream=width,height", "-of", "csv=p=0", path])
                #expect(probed.standardOutput == "3264,1836\n", "\(probed)")
                try await bus.wait(for: "state/device/cam0/") { $0?["activeFormat"]?["id"]?.string == id }
            }
            try await bus.stop()
        }
    }
}
