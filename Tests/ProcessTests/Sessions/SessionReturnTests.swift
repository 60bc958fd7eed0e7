import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension ProcessTests {
    /// Sessions that come back: from an unplugged camera, from the bus's death, from a lost reply.
    @Suite(.timeLimit(.minutes(5))) struct SessionReturns {
        private static let small: JSONValue = [
            "inputs": [["device": "cam0", "frameRate": 15]], "preset": "640x480", "name": "small",
        ]

        private static func events(_ bus: BusHarness, _ session: String) throws -> RawClient {
            let nonce = "ack/\(session)/"
            let events = try RawClient(
                .subscribe, path: bus.directory.eventsSocket, topics: ["event/session/\(session)/", nonce])
            while try events.receive()[0].bytes.elementsEqual(nonce.utf8) == false {}
            return events
        }

        private static func next(_ events: RawClient) throws -> JSONValue {
            try JSONValue(parsing: try events.receive(within: 20)[1].bytes)
        }

        @Test func `a camera is unplugged and comes back under a session, and nobody does anything`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let session = try #require(try client.call("session.create", Self.small)["session"]?.string)
            let started = try client.call("session.start", ["session": .string(session)])
            let topic = try #require(started["resolved"]?.array?.first?["rendition"]?.string)
            let reader = try FrameReader(bus, "cam0", topic)
            let before = try reader.next()
            let events = try Self.events(bus, session)

            try client.call("fault.inject", ["device": "cam0", "fault": "unplug", "milliseconds": 1500])
            let interrupted = try Self.next(events)
            #expect(interrupted["event"] == "wasInterrupted" && interrupted["reason"] == "deviceDisconnected")
            #expect(interrupted["device"] == "cam0")
            #expect(try Self.next(events)["event"] == "interruptionEnded")
            var frame = try reader.next()
            while frame.stream == before.stream { frame = try reader.next() }
            #expect(frame.header["width"] == 640 && frame.header["height"] == 480)
            let after = try client.call("session.get", ["session": .string(session)])
            #expect(after["resolved"] == started["resolved"] && after["state"]?["state"] == "running")
            try await bus.stop()
        }

        @Test func `workers that are killed keep the format that their sessions leave alone`() async throws {
            let bus = try await BusHarness(virtual: 6)
            let client = try RawClient(path: bus.directory.commandSocket)
            let devices = try bus.devices()
            let size: JSONValue = ["pixelFormat": "YUYV", "width": 320, "height": 240]
            let lock = try client.call("device.lock", ["devices": JSONValue(devices)])["lock"] ?? .null
            let changes = devices.map { ["device": .string($0), "activeFormat": size, "frameRate": 10] as JSONValue }
            try client.call("device.configure", ["lock": lock, "changes": .array(changes)])
            try client.call("device.unlock", ["lock": lock])
            for device in devices {
                let session = try client.call(
                    "session.create",
                    ["preset": "inputPriority", "inputs": [.string(device)], "outputs": [["type": "photo"]]])["session"]
                #expect(try client.call("session.start", ["session": session ?? .null])["state"]?["state"] == "running")
            }
            // How soon a worker connects and how soon it has opened its camera differs each time.
            for _ in 1...3 {
                let pids = try bus.workerPIDs()
                for pid in pids { kill(pid, SIGKILL) }
                for device in devices {
                    let state = try await bus.wait(for: "state/device/\(device)/") {
                        $0?["isStreaming"] == true
                            && !pids.contains(Int32(clamping: $0?["worker"]?["pid"]?.integer ?? 0))
                    }
                    #expect(state?["activeFormat"]?["width"] == 320 && state?["frameRate"] == 10, "\(device)")
                }
            }
            try await bus.stop()
        }

        @Test func `a repeated request with the same key returns the existing session`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let first = try client.call("session.create", Self.small, key: "mine")["session"]
            let plain = try client.call("session.create", Self.small)["session"]
            #expect(try client.call("session.create", Self.small, key: "mine")["session"] == first)
            try client.call("session.start", ["session": first ?? .null])
            try await bus.killCoordinator()
            try await bus.startCoordinator()
            let again = try client.call("session.create", Self.small, key: "mine")
            #expect(again["session"] == first && again["state"]?["wanted"] == true)
            let list = try client.call("session.list")["sessions"]?.array?.compactMap { $0["id"] }
            #expect(list == [first, plain].compactMap { $0 })
            // Another request under that key is another session, as is one of another process.
            try await bus.killCoordinator()
            try await bus.startCoordinator()
            let program = """
                import camerabus, json, sys
                with camerabus.Client() as client:
                    print(client.call("session.create", json.loads(sys.argv[1]), key="mine")["session"])
                """
            let other = try await bus.run(
                Programs.python, ["-c", program, Self.small.description],
                environment: ["PYTHONPATH": Programs.pythonPath])
            #expect(other.ending == .exited(0) && !other.standardOutput.contains(first?.string ?? ""))
            try await bus.stop()
        }

        @Test func `a session keeps the lock that it was given over the death of the bus`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let lock = try client.call("device.lock", ["devices": "cam0", "lease": 3_600_000])["lock"] ?? .null
            let small: JSONValue = ["device": "cam0", "activeFormat": ["width": 640, "height": 480]]
            try client.call("device.configure", ["lock": lock, "changes": [small]])
            let session = try client.call("session.create", Self.small)["session"] ?? .null
            let started = try client.call("session.start", ["session": session, "lock": lock])
            #expect(started["state"]?["state"] == "running")
            try await bus.killCoordinator()
            try await bus.startCoordinator()
            let topic = "state/session/\(session.string ?? "")/"
            try await bus.wait(for: topic) { $0?["state"] == "running" }
            // Under that lock it has the device set otherwise, as nobody else can.
            let again = try RawClient(path: bus.directory.commandSocket)
            try again.call("session.configure", ["session": session, "actions": [["preset": "1280x720"]]])
            try await bus.wait(for: topic) {
                $0?["state"] == "running" && $0?["resolved"]?[0]?["width"] == 1280
            }
            try await bus.stop()
        }

        @Test func `a session is stopped also where that can't be written, which is done when it can be`() async throws
        {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let session = try client.call("session.create", Self.small)["session"] ?? .null
            let second = try client.call("session.create", Self.small)["session"] ?? .null
            try client.call("session.start", ["session": session])
            let path = bus.directory.stateFile
            // No file can take its place.
            try #require(unlink(path) == 0 && mkdir(path, 0o700) == 0)
            #expect(try client.refusal("session.create", Self.small)?.reason == .internalError)
            let stopped = try client.call("session.stop", ["session": session])
            #expect(stopped["state"]?["state"] == "stopped" && stopped["state"]?["wanted"] == false)
            #expect(stopped["kept"] == false)
            let told = try await bus.run("camerabus", ["session", "stop", session.string ?? ""])
            #expect(told.status == 0 && told.standardError.contains("could not be written"), "\(told)")
            #expect(try client.call("session.delete", ["session": second])["kept"] == false)
            try await bus.wait(for: "state/device/cam0/") { $0?["isStreaming"] == false }
            try #require(rmdir(path) == 0)
            try await eventually {
                let bytes = (try? File.read(path, limit: 1 << 20)) ?? []
                let kept = (try? JSONValue(parsing: bytes))?["sessions"]?.array?.first
                return kept?["id"] == session && kept?["wanted"] == false
            }
            try await bus.killCoordinator()
            try await bus.startCoordinator()
            let again = try RawClient(path: bus.directory.commandSocket)
            #expect(try again.call("session.get", ["session": session])["state"]?["wanted"] == false)
            try await bus.stop()
        }

        @Test func `a session follows its camera also where that can't be written, which is done when it can be`()
            async throws
        {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let session = try client.call("session.create", Self.small)["session"] ?? .null
            let lock = try client.call("device.lock", ["devices": "cam0"])["lock"] ?? .null
            let path = bus.directory.stateFile
            // The place where a new file is written is taken.
            try #require(mkdir(path + ".new", 0o700) == 0)
            let change: JSONValue = ["device": "cam0", "activeFormat": ["width": 1280, "height": 720]]
            let answer = try client.call("device.configure", ["lock": lock, "changes": [change]])
            #expect(answer["kept"] == false)
            let state = try client.call("session.get", ["session": session])["state"]
            #expect(state?["preset"] == "inputPriority" && state?["inputs"]?[0]?["activeFormat"]?["width"] == 1280)
            try #require(rmdir(path + ".new") == 0)
            try await eventually {
                let kept = try? JSONValue(parsing: try File.read(path, limit: 1 << 20))
                return kept?["sessions"]?[0]?["preset"] == "inputPriority"
            }
            try await bus.stop()
        }

        @Test func `a session that can't be read costs the others nothing`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let good = try client.call("session.create", Self.small)["session"]
            let bad = try client.call("session.create", Self.small)["session"]
            let lock = try client.call("device.lock", ["devices": "cam0"])["lock"] ?? .null
            try await bus.killCoordinator()
            let path = "\(bus.directory.path)/internal/state.json"
            let kept = try JSONValue(parsing: try File.read(path, limit: 1 << 20))
            var state = kept.object ?? [:]
            state["sessions"] = .array(
                (kept["sessions"]?.array ?? []).map { $0["id"] == bad ? ["id": bad ?? .null] : $0 })
            try File.replace(path, with: JSONValue.object(state).serialized, mode: 0o600)
            try await bus.startCoordinator()
            let list = try client.call("session.list")["sessions"]?.array?.compactMap { $0["id"] }
            #expect(list == [good].compactMap { $0 })
            #expect(access(path + ".damaged", F_OK) != 0)
            try client.call("device.unlock", ["lock": lock])
            try await bus.stop()
        }

        @Test func `a session gets the row of the format table that it named, and a profile puts it back`() async throws
        {
            let bus = try await BusHarness(virtual: 1, arguments: ["--virtual-profile", "iphone6"])
            let client = try RawClient(path: bus.directory.commandSocket)
            let rows = try client.call("device.formats", ["device": "cam0"])["formats"]?.array ?? []
            let large = rows.filter { $0["width"] == 1920 && $0["pixelFormat"] == rows.last?["pixelFormat"] }
            try #require(large.count == 2)
            func active() throws -> JSONValue? {
                try client.call("device.get", ["device": "cam0"])["device"]?["activeFormat"]?["id"]
            }
            let session = try client.call("session.create", ["inputs": [["device": "cam0"]]])["session"] ?? .null
            try client.call("session.start", ["session": session])
            for row in large + large.reversed() {
                let id = row["id"] ?? .null
                let action: JSONValue = ["setInput": ["device": "cam0", "activeFormat": id, "frameRate": 30]]
                let answer = try client.call("session.configure", ["session": session, "actions": [action]])
                #expect(answer["state"]?["state"] == "running")
                #expect(try active() == id)
                try client.call("profile.save", ["name": .string("p-\(id.string ?? "")"), "devices": "cam0"])
            }
            try client.call("session.delete", ["session": session])
            for row in large {
                let id = row["id"] ?? .null
                try client.call("profile.apply", ["name": .string("p-\(id.string ?? "")")])
                #expect(try active() == id)
            }
            try await bus.stop()
        }
    }
}
