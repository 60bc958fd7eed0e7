import BusClient
import BusProtocol
import CameraBusTesting
import JSON
import Testing

extension ProcessTests {
    /// Sessions whose cameras share a USB bus.
    @Suite(.timeLimit(.minutes(2))) struct Bandwidth {
        private static let hub = """
            [devices]
            hardware = false
            virtual = 3
            [usb.hub]
            devices = ["cam0", "virtual-1"]
            """

        @Test func `settings that don't fit are refused before the start, with what would`() async throws {
            let bus = try await BusHarness(virtual: nil, configuration: Self.hub)
            let client = try RawClient(path: bus.directory.commandSocket)
            func create(_ device: String, _ preset: String, rate: Int64) throws -> String {
                let created = try client.call(
                    "session.create",
                    [
                        "preset": .string(preset),
                        "inputs": [["device": .string(device), "frameRate": .integer(rate)]],
                    ])
                return try #require(created["session"]?.string)
            }
            func call(_ method: String, _ session: String) throws -> JSONValue {
                try client.call(method, ["session": .string(session)])
            }

            let heavy = try create("cam0", "1280x720", rate: 30)
            let forecast = try call("session.get", heavy)
            #expect(try #require(forecast["hardwareCost"]?.double) > 1)
            #expect(forecast["state"]?["hardwareCost"] == .null, "it isn't started")
            #expect(
                forecast["explanation"]?.array?.last == "cam0 takes 136 % of what hub has for cameras.",
                "\(forecast["explanation"] ?? .null)")
            // The command line has the whole answer, and a word of it for people.
            let shown = try await bus.run("camerabus", ["session", "show", heavy, "--json"])
            #expect(try JSONValue(parsing: Array(shown.standardOutput.utf8)) == forecast, "\(shown)")
            let told = try await bus.run("camerabus", ["session", "show", heavy])
            let cost = forecast["hardwareCost"] ?? .null
            #expect(told.standardOutput.contains("hardwareCost: \(cost) (1 is the whole"), "\(told)")
            let library = try await bus.connect()
            #expect(try await library.session(heavy).hardwareCost == cost.double)
            await library.close()
            let refusal = try #require(try client.refusal("session.start", ["session": .string(heavy)]))
            #expect(refusal.reason == .limitExceeded && refusal.data["limit"] == "hardwareCost")
            #expect(refusal.data["plan"]?["runs"] == true)
            let change = refusal.data["plan"]?["changes"]?.array?.first
            #expect(change?["device"] == "cam0")
            #expect(change?["to"]?["activeFormat"]?["pixelFormat"] == "MJPG")
            #expect(refusal.message.contains("cam0 would stream MJPG instead of YUYV."))
            #expect(try call("session.get", heavy)["state"]?["state"] == "stopped")

            // Two that fit; the first learns of the second.
            let light = try create("cam0", "640x480", rate: 15)
            let started = try call("session.start", light)
            #expect(started["state"]?["state"] == "running")
            let alone = try #require(started["hardwareCost"]?.double)
            #expect(alone > 0.2 && alone < 0.3)
            let second = try create("cam1", "640x480", rate: 30)
            #expect(try #require(try call("session.start", second)["hardwareCost"]?.double) > 2 * alone)
            try await bus.wait(for: "state/session/\(light)/") { ($0?["hardwareCost"]?.double ?? 0) > 2 * alone }

            // The third has another bus, or none.
            let free = try create("cam2", "1280x720", rate: 30)
            #expect(try call("session.start", free)["hardwareCost"]?.double == 0)

            // Its own cameras are to take less; those that stream for others are not.
            let late = try create("cam1", "1920x1080", rate: 30)
            let other = try #require(try client.refusal("session.start", ["session": .string(late)]))
            #expect(other.data["plan"]?["changes"]?.array?.map { $0["device"] } == ["cam1"])
            try await bus.stop()
        }

        @Test func `a running session is not changed to a format that does not fit`() async throws {
            let bus = try await BusHarness(virtual: nil, configuration: Self.hub)
            let client = try RawClient(path: bus.directory.commandSocket)
            func run(_ device: String, _ preset: String, rate: Int64) throws -> JSONValue {
                let inputs: JSONValue = [["device": .string(device), "frameRate": .integer(rate)]]
                let made = try client.call("session.create", ["preset": .string(preset), "inputs": inputs])["session"]
                try client.call("session.start", ["session": made ?? .null])
                return made ?? .null
            }
            /// What is refused, and that nothing came of it.
            func refusal(_ method: String, _ params: JSONValue, _ session: JSONValue) throws -> BusError? {
                let before = try client.call("session.get", ["session": session])
                var members = params.object ?? [:]
                members["session"] = session
                let error = try client.refusal(method, .object(members))
                #expect(try client.call("session.get", ["session": session]) == before)
                return error
            }

            let session = try run("cam0", "640x480", rate: 15)
            let heavy: JSONValue = ["setInput": ["device": "cam0", "activeFormat": Self.heavy, "frameRate": 30]]
            let error = try #require(
                try refusal("session.configure", ["actions": [["priority": 3], heavy]], session))
            #expect(error.reason == .limitExceeded && error.data["limit"] == "hardwareCost")
            #expect(try #require(error.data["hardwareCost"]?.double) > 1)
            #expect(error.data["plan"]?["changes"]?.array?.isEmpty == true, "the format is just what was asked")
            let asked = try client.call("session.canAdd", ["session": session, "action": heavy])
            #expect(asked["can"] == false && asked["reason"] == "limitExceeded")
            #expect(asked["why"]?.string == error.message)
            let second: JSONValue = ["addInput": ["device": "cam1", "activeFormat": Self.heavy, "frameRate": 30]]
            #expect(try refusal("session.configure", ["actions": [second]], session)?.reason == .limitExceeded)
            #expect(try client.call("session.canAdd", ["session": session, "action": second])["can"] == false)
            let light: JSONValue = ["addInput": ["device": "cam1", "frameRate": 15]]
            #expect(try client.call("session.canAdd", ["session": session, "action": light])["can"] == true)

            // From a camera that hangs elsewhere.
            let free = try run("cam2", "1280x720", rate: 30)
            let no = try #require(try refusal("session.switchCamera", ["device": "cam1"], free))
            #expect(no.reason == .limitExceeded && no.data["plan"]?["runs"] == true)
            #expect(no.data["plan"]?["changes"]?.array?.first?["device"] == "cam1")
            let reader = try FrameReader(bus, "cam2", "native")
            #expect(try reader.next().header["width"] == 1280)

            // What somebody else has made too much is no reason against a change that doesn't make it more.
            let lock = try client.call("device.lock", ["devices": "cam1"])["lock"] ?? .null
            let change: JSONValue = ["device": "cam1", "activeFormat": Self.heavy, "frameRate": 30]
            try client.call("device.configure", ["lock": lock, "changes": [change]])
            let viewer = try FrameReader(bus, "cam1", "native")
            _ = try viewer.next()
            try await bus.wait(for: "state/session/\(session.string ?? "")/") { ($0?["hardwareCost"]?.double ?? 0) > 1 }
            let actions: JSONValue = [["addOutput": "preview"], ["priority": 2]]
            let more = try client.call("session.configure", ["session": session, "actions": actions])
            #expect(more["state"]?["priority"] == 2 && more["state"]?["state"] == "running")
            try await bus.stop()
        }

        private static let heavy: JSONValue = ["pixelFormat": "YUYV", "width": 1280, "height": 720]

        @Test func `a camera that finds no room takes less, and says so`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            try client.call("fault.inject", ["device": "cam0", "fault": "noSpace"])
            let created = try client.call("session.create", ["preset": "high", "inputs": ["cam0"]])
            let session = try #require(created["session"]?.string)
            let wanted = try #require(created["resolved"]?.array?.first)
            try client.call("session.start", ["session": .string(session)], within: 30)
            try await bus.wait(for: "state/session/\(session)/") { state in
                Self.isShort(state) && state?["error"]?["reason"] == "limitExceeded"
            }
            try client.call("fault.inject", ["device": "cam0", "fault": "none"])
            let state = try await bus.wait(for: "state/session/\(session)/", by: .after(seconds: 40)) {
                $0?["state"] == "running"
            }
            let told = state?["explanation"]?.array?.compactMap(\.string) ?? []
            #expect(told.contains { $0.contains("had no bandwidth on its bus or no memory") }, "\(told)")
            #expect(state?["resolved"]?.array?.first != wanted)
            try await bus.stop()
        }

        private static func isShort(_ state: JSONValue?) -> Bool {
            state?["explanation"]?.array?.contains {
                $0.string?.contains(
                    "had no bandwidth on its bus or no "
                        + "memory") ?? false
            } ?? false
        }

        private static func create(_ device: String, rate: Int64, _ client: RawClient) throws -> JSONValue {
            let inputs: JSONValue = [["device": .string(device), "frameRate": .integer(rate)]]
            return try client.call("session.create", ["preset": "640x480", "inputs": inputs])["session"] ?? .null
        }

        /// Starts a session while its camera finds no room, and waits until it runs with less.
        private static func startShort(
            _ session: JSONValue, _ device: JSONValue, _ bus: BusHarness, _ client: RawClient
        ) async throws {
            try client.call("fault.inject", ["device": device, "fault": "noSpace"])
            try client.call("session.start", ["session": session], within: 30)
            let topic = "state/session/\(session.string ?? "")/"
            try await bus.wait(for: topic) { isShort($0) && $0?["error"]?["reason"] == "limitExceeded" }
            try client.call("fault.inject", ["device": device, "fault": "none"])
            try await bus.wait(for: topic, by: .after(seconds: 40)) { isShort($0) && $0?["state"] == "running" }
        }

        @Test func `a reduced format is not stored, and ends when there is room again`() async throws {
            let bus = try await BusHarness(virtual: nil, configuration: Self.hub)
            let client = try RawClient(path: bus.directory.commandSocket)
            func setting() throws -> [JSONValue?] {
                let device = try client.call("device.get", ["device": "cam0"])["device"]
                return [device?["activeFormat"], device?["frameDuration"]]
            }

            let session = try Self.create("cam0", rate: 30, client)
            let other = try Self.create("cam1", rate: 15, client)
            try client.call("session.start", ["session": other])
            #expect(try client.call("session.start", ["session": session])["state"]?["state"] == "running")
            let wanted = try setting()
            try client.call("session.stop", ["session": session])

            try await Self.startShort(session, "cam0", bus, client)
            #expect(try setting() != wanted)
            try client.call("session.stop", ["session": session])
            try await bus.wait(for: "state/device/cam0/") { $0?["isOpen"] == false }
            do {
                let frames = try FrameReader(bus, "cam0", "native")
                let header = try frames.next().header
                #expect(header["format"] == wanted[0]?["pixelFormat"] && header["width"] == wanted[0]?["width"])
                try await eventually { try setting() == wanted }
            }
            try await bus.wait(for: "state/device/cam0/") { $0?["isOpen"] == false }

            try await Self.startShort(session, "cam0", bus, client)
            #expect(try setting() != wanted)
            try client.call("session.stop", ["session": other])
            let topic = "state/session/\(session.string ?? "")/"
            try await bus.wait(for: topic) { !Self.isShort($0) && $0?["state"] == "running" }
            try await eventually { try setting() == wanted }
            try await bus.stop()
        }

        @Test func `room that comes while a camera is locked is used when it is unlocked`() async throws {
            let hub = Self.hub.replacing("\"virtual-1\"]", with: "\"virtual-1\", \"virtual-2\"]")
            let bus = try await BusHarness(virtual: nil, configuration: hub)
            let client = try RawClient(path: bus.directory.commandSocket)
            let session = try Self.create("cam0", rate: 15, client)
            let other = try Self.create("cam1", rate: 15, client)
            let free = try Self.create("cam2", rate: 15, client)
            try client.call("session.start", ["session": other])
            try await Self.startShort(session, "cam0", bus, client)
            try await Self.startShort(free, "cam2", bus, client)
            let lock = try client.call("device.lock", ["devices": "cam0"])["lock"] ?? .null
            try client.call("session.stop", ["session": other])
            try await bus.wait(for: "state/session/\(free.string ?? "")/") {
                !Self.isShort($0) && $0?["state"] == "running"
            }
            #expect(Self.isShort(try client.call("session.get", ["session": session])["state"]))
            try client.call("device.unlock", ["lock": lock])
            try await bus.wait(for: "state/session/\(session.string ?? "")/") {
                !Self.isShort($0) && $0?["state"] == "running"
            }
            try await bus.stop()
        }

        @Test func `a camera whose process is started again has not made room`() async throws {
            let bus = try await BusHarness(virtual: nil, configuration: Self.hub)
            let client = try RawClient(path: bus.directory.commandSocket)
            let session = try Self.create("cam0", rate: 30, client)
            let lock = try client.call("device.lock", ["devices": "cam1"])["lock"] ?? .null
            let light: JSONValue = [
                "device": "cam1", "activeFormat": ["pixelFormat": "YUYV", "width": 640, "height": 480], "frameRate": 15,
            ]
            try client.call("device.configure", ["lock": lock, "changes": [light]])
            try client.call("device.unlock", ["lock": lock])
            // It reads on, or it would not subscribe again.
            let reader = try FrameRecorder(bus, "cam1", "gray:64x0")
            _ = try await reader.first { $0.isFrame }
            /// - Parameter count: from the fourth on it takes two seconds at least until the next process.
            func crash(_ count: Int64) async throws {
                try client.call("fault.inject", ["device": "cam1", "fault": "crash"])
                try await bus.wait(for: "state/device/cam1/") {
                    $0?["worker"]?["state"] == "running" && $0?["worker"]?["restarts"]?.integer == count
                }
            }
            for count in 1...3 {
                try await crash(Int64(count))
                try await bus.wait(for: "state/device/cam1/") { $0?["isStreaming"] == true }
            }
            try await Self.startShort(session, "cam0", bus, client)
            try await crash(4)
            #expect(Self.isShort(try client.call("session.get", ["session": session])["state"]))
            reader.stop()
            try await bus.stop()
        }
    }
}
