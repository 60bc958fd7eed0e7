import BusClient
import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension ProcessTests {
    /// Sessions on the real bus.
    @Suite(.timeLimit(.minutes(5))) struct Sessions {
        /// A connection that makes sessions and looks at them.
        private struct User {
            let client: RawClient
            let bus: BusHarness

            init(_ bus: BusHarness) throws {
                self.bus = bus
                client = try RawClient(path: bus.directory.commandSocket)
            }

            func create(_ params: JSONValue) throws -> String {
                try client.call("session.create", params)["session"]?.string ?? ""
            }

            @discardableResult
            func start(_ session: String) throws -> JSONValue {
                try client.call("session.start", ["session": .string(session)])
            }

            func state(_ session: String) throws -> String? {
                try client.call("session.get", ["session": .string(session)])["state"]?["state"]?.string
            }

            func wait(_ session: String, for state: String) async throws {
                try await bus.wait(for: "state/session/\(session)/") { $0?["state"]?.string == state }
            }

            /// Subscribes to the events of a session, in force when it returns.
            func events(_ session: String) throws -> RawClient {
                let nonce = "ack/\(session)/"
                let topics = ["event/session/\(session)/", nonce]
                let events = try RawClient(.subscribe, path: bus.directory.eventsSocket, topics: topics)
                while try events.receive()[0].bytes.elementsEqual(nonce.utf8) == false {}
                return events
            }
        }

        private static func next(_ events: RawClient) throws -> JSONValue {
            try JSONValue(parsing: try events.receive(within: 20)[1].bytes)
        }

        private static let large: JSONValue = [
            "inputs": [["device": "cam0", "frameRate": 30]], "preset": "1920x1080", "name": "large",
        ]
        private static let small: JSONValue = [
            "inputs": [["device": "cam0", "frameRate": 15]], "preset": "640x480", "name": "small",
        ]

        @Test func `two sizes of one stream, a third with higher priority interrupts, and they resume`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let user = try User(bus)
            let (large, small) = (try user.create(Self.large), try user.create(Self.small))
            let first = try user.start(large)
            #expect(first["state"]?["state"] == "running")
            let topic = first["resolved"]?.array?.first?["topic"]?.string
            #expect(topic == "frame/cam0/bgr:1920x1080@30/")
            let second = try user.start(small)
            #expect(second["state"]?["state"] == "running")
            #expect(second["resolved"]?.array?.first?["width"]?.integer == 640)
            let served = second["explanation"]?.array?.first?.string ?? ""
            #expect(
                served.hasPrefix("cam0 streams 1920x1080")
                    && served.hasSuffix(
                        "which serves both: large gets it as it is, small scaled to 640x480 at 15/s."),
                "\(served)")
            // The first one's topic is what it was.
            let again = try user.client.call("session.get", ["session": .string(large)])
            #expect(again["resolved"]?.array?.first?["topic"]?.string == topic)
            for (session, width, height) in [(large, 1920, 1080), (small, 640, 480)] {
                let got = try user.client.call("session.get", ["session": .string(session)])["resolved"]?.array?.first
                let frame = try FrameReader(bus, "cam0", try #require(got?["rendition"]?.string)).next()
                #expect(frame.header["width"]?.integer == Int64(width))
                #expect(frame.header["height"]?.integer == Int64(height))
            }
            let events = (try user.events(large), try user.events(small))
            let third = try user.create([
                "inputs": [
                    [
                        "device": "cam0", "activeFormat": ["pixelFormat": "RGGB", "width": 320, "height": 240],
                        "frameRate": 5,
                    ]
                ],
                "priority": 10, "name": "third",
            ])
            let taken = try user.start(third)
            #expect(taken["state"]?["state"] == "running")
            for (events, session) in [(events.0, large), (events.1, small)] {
                let event = try Self.next(events)
                #expect(event["event"] == "wasInterrupted")
                #expect(event["reason"] == "videoDeviceInUseByAnotherClient")
                #expect(event["by"]?["session"]?.string == third)
                let now = try user.client.call("session.get", ["session": .string(session)])
                #expect(now["state"]?["state"] == "interrupted")
                let why = now["explanation"]?.array?.compactMap(\.string).joined(separator: " ") ?? ""
                let name = session == large ? "large" : "small"
                #expect(
                    why.contains("\(name) waits: it wants")
                        && why.contains("third, which has the higher priority (10 against 0), has the format 320x240"),
                    "\(why)")
            }
            try user.client.call("session.delete", ["session": .string(third)])
            for events in [events.0, events.1] { #expect(try Self.next(events)["event"] == "interruptionEnded") }
            try await user.wait(large, for: "running")
            try await user.wait(small, for: "running")
            try await bus.stop()
        }

        @Test func `a lock keeps the format, its holder's sessions may change it, and others wait`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let user = try User(bus)
            let lock = try user.client.call("device.lock", ["devices": "cam0"])["lock"] ?? .null
            let large = try user.create(Self.large)
            let start = try user.start(large)
            #expect(start["state"]?["state"] == "interrupted")
            #expect(start["state"]?["interruption"]?["by"]?["lock"]?.string != nil)
            #expect(start["state"]?["wanted"] == true)
            // With the lock itself.
            let mine = try user.client.call("session.start", ["session": .string(large), "lock": lock])
            #expect(mine["state"]?["state"] == "running")
            let change: JSONValue = ["device": "cam0", "activeFormat": ["width": 640, "height": 480]]
            try user.client.call("device.configure", ["lock": lock, "changes": [change]])
            let follows = try user.client.call("session.get", ["session": .string(large)])["state"]
            #expect(follows?["preset"] == "inputPriority")
            try user.client.call(
                "session.configure", ["session": .string(large), "actions": [["preset": "1920x1080"]], "lock": lock])
            let other = try user.create([
                "inputs": [["device": "cam0", "activeFormat": ["pixelFormat": "RGGB", "width": 320, "height": 240]]],
                "priority": 5,
            ])
            #expect(try user.start(other)["state"]?["interruption"]?["by"]?["lock"]?.string != nil)
            try user.client.call("session.delete", ["session": .string(large)])
            #expect(try user.state(other) == "interrupted")
            try user.client.call("device.unlock", ["lock": lock])
            try await user.wait(other, for: "running")
            try await bus.stop()
        }

        @Test func `a client that waited for a lock first is waited for, and the session says so`() async throws {
            let bus = try await BusHarness(virtual: 2)
            let user = try User(bus)
            // What is held for long is not what the session wants, but somebody waits for both.
            let held = try user.client.call("device.lock", ["devices": "cam1", "lease": 3_600_000])["lock"] ?? .null
            let first = try RawClient(path: bus.directory.commandSocket)
            try first.start(
                "device.lock", ["devices": ["cam0", "cam1"], "wait": 3_600_000, "lease": 3_600_000, "note": "first"])
            try await eventually { try user.client.call("device.locks")["waiting"]?.array?.count == 1 }
            let id = try user.create(Self.large)
            try user.client.start("session.start", ["session": .string(id)])
            let waiting = try await bus.wait(for: "state/session/\(id)/") { $0?["state"] == "interrupted" }
            #expect(waiting?["interruption"]?["reason"] == "videoDeviceInUseByAnotherClient")
            #expect(waiting?["interruption"]?["by"]?["holder"]?["pid"]?.integer != nil)
            #expect(waiting?["interruption"]?["by"]?["lock"] == nil)
            #expect(try user.client.reply(within: 20).result.get()["state"]?["state"] == "interrupted")
            // Its lock is not waited for any longer than it takes to see it.
            try user.client.call("device.unlock", ["lock": held])
            let lock = try first.reply(within: 20).result.get()["lock"] ?? .null
            try await bus.wait(for: "state/session/\(id)/") {
                $0?["state"] == "interrupted" && $0?["interruption"]?["by"]?["lock"]?.string != nil
            }
            try first.call("device.unlock", ["lock": lock])
            try await user.wait(id, for: "running")
            try await bus.stop()
        }

        @Test func `a camera that is being switched to may get another name meanwhile`() async throws {
            let bus = try await BusHarness(virtual: 2)
            let user = try User(bus)
            let lock = try user.client.call("device.lock", ["devices": "cam1"])["lock"] ?? .null
            let change: JSONValue = ["device": "cam1", "activeFormat": ["width": 640, "height": 480], "frameRate": 30]
            try user.client.call("device.configure", ["lock": lock, "changes": [change]])
            try user.client.call("device.unlock", ["lock": lock])
            let session = JSONValue.string(try user.create(["inputs": ["cam0"], "preset": "640x480"]))
            #expect(try user.client.call("session.start", ["session": session])["state"]?["state"] == "running")
            // It is set as it is to be, and does not stream before its process goes on.
            let worker = try #require(try bus.workerPID("cam1"))
            kill(worker, SIGSTOP)
            try user.client.start("session.switchCamera", ["session": session, "device": "cam1"])
            // Requests of one client are read in their order; those of two are not.
            try user.client.call("bus.ping")
            let other = try RawClient(path: bus.directory.commandSocket)
            try other.start("device.rename", ["device": "cam1", "name": "right"])
            try await bus.wait(for: "state/device/cam1/") { $0 == nil }
            kill(worker, SIGKILL)
            let answer = try user.client.reply(within: 30).result.get()
            #expect(answer["active"] == "right" && answer["switched"] == true)
            #expect(answer["state"]?["inputs"]?[0]?["device"] == "right" && answer["state"]?["state"] == "running")
            _ = try other.reply(within: 20).result.get()
            try await bus.stop()
        }

        @Test func `a failed switch leaves a session its lock`() async throws {
            let bus = try await BusHarness(virtual: 3)
            let user = try User(bus)
            func lock(_ device: JSONValue) throws -> JSONValue {
                try user.client.call("device.lock", ["devices": device])["lock"] ?? .null
            }
            let (own, obstacle, other) = (try lock("cam0"), try lock("cam1"), try lock("cam2"))
            for (device, lock) in [("cam0", own), ("cam1", obstacle)] {
                let change: JSONValue = ["device": .string(device), "activeFormat": ["width": 640, "height": 480]]
                try user.client.call("device.configure", ["lock": lock, "changes": [change]])
            }
            let id = try user.create(["inputs": ["cam0"], "preset": "1280x720"])
            let session = JSONValue.string(id)
            let start = try user.client.call("session.start", ["session": session, "lock": own])
            #expect(start["state"]?["state"] == "running")
            let refusal = try user.client.refusal(
                "session.switchCamera", ["session": session, "device": "cam1", "lock": other])
            #expect(refusal?.reason == .deviceBusy)
            // Under the lock of before it has its device set otherwise.
            let after = try user.client.call(
                "session.configure", ["session": session, "actions": [["preset": "1920x1080"]]])
            #expect(after["state"]?["state"] == "running")
            try await bus.wait(for: "state/session/\(id)/") {
                $0?["state"] == "running" && $0?["resolved"]?[0]?["width"] == 1920
            }
            try await bus.stop()
        }

        @Test func `a session ends with its process, and a detached one stays`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let user = try User(bus)
            let program = try bus.start("camerabus", ["session", "run", "cam0", "--preset", "640x480"])
            try await eventually { try user.client.call("session.list")["sessions"]?.array?.count == 1 }
            let id = try user.client.call("session.list")["sessions"]?.array?.first?["id"]?.string ?? ""
            try await user.wait(id, for: "running")
            let created = try await bus.run("camerabus", ["session", "create", "cam0", "--preset", "low", "--start"])
            #expect(created.ending == .exited(0))
            program.process.send(SIGKILL)
            try await bus.wait(for: "state/session/\(id)/") { $0 == nil }
            let left = try user.client.call("session.list")["sessions"]?.array ?? []
            #expect(left.count == 1 && left[0]["detached"] == true)
            let error = try #require(try user.client.refusal("session.start", ["session": .string(id)]))
            #expect(error.reason == .sessionNotFound)
            try await bus.stop()
        }

        @Test func `events come after the state, and a start and a stop are published once`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let user = try User(bus)
            let session = try user.create(Self.small)
            let events = try user.events(session)
            try user.start(session)
            try user.start(session)
            #expect(try Self.next(events)["event"] == "didStartRunning")
            #expect(try user.client.call("device.get", ["device": "cam0"])["device"]?["isStreaming"] == true)
            for _ in 0..<2 { try user.client.call("session.stop", ["session": .string(session)]) }
            let stopped = try Self.next(events)
            #expect(stopped["event"] == "didStopRunning")
            try await bus.wait(for: "state/device/cam0/") { $0?["isStreaming"] == false }
            try user.start(session)
            #expect(try Self.next(events)["event"] == "didStartRunning")
            try await bus.stop()
        }

        @Test func `the death of the bus leaves a running session as it is`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let user = try User(bus)
            let (large, idle) = (try user.create(Self.large), try user.create(Self.small))
            let resolved = try user.start(large)["resolved"]?.array?.first
            let frames = try FrameReader(bus, "cam0", try #require(resolved?["rendition"]?.string))
            let stream = try frames.next().stream
            try await bus.killCoordinator()
            try await bus.startCoordinator()
            try await user.wait(large, for: "running")
            let after = try user.client.call("session.get", ["session": .string(large)])
            #expect(after["resolved"]?.array?.first == resolved)
            #expect(try user.state(idle) == "stopped")
            // The same stream, from before to after.
            for _ in 0..<10 { #expect(try frames.next().stream == stream) }
            try user.client.call("session.delete", ["session": .string(large)])
            try await bus.wait(for: "state/session/\(large)/") { $0 == nil }
            try await bus.stop()
        }

        @Test
        func `what interrupts is found out anew after the death of the bus, and whose process died meanwhile is gone`()
            async throws
        {
            let bus = try await BusHarness(virtual: 2)
            let user = try User(bus)
            let program = try bus.start("camerabus", ["session", "run", "cam1"])
            try await eventually { try user.client.call("session.list")["sessions"]?.array?.count == 1 }
            let its = try user.client.call("session.list")["sessions"]?.array?.first?["id"]?.string ?? ""
            try await user.wait(its, for: "running")
            let lock = try user.client.call("device.lock", ["devices": "cam0"])["lock"] ?? .null
            let large = try user.create(Self.large)
            #expect(try user.start(large)["state"]?["state"] == "interrupted")
            try await bus.killCoordinator()
            program.process.send(SIGKILL)
            _ = try await program.end()
            try await bus.startCoordinator()
            try await user.wait(large, for: "interrupted")
            #expect(try user.client.refusal("session.get", ["session": .string(its)])?.reason == .sessionNotFound)
            try user.client.call("device.unlock", ["lock": lock])
            try await user.wait(large, for: "running")
            try await bus.wait(for: "state/device/cam1/") { $0?["isStreaming"] == false }
            try await bus.stop()
        }

        @Test func `a session of two cameras runs when both do`() async throws {
            let bus = try await BusHarness(virtual: 2)
            let user = try User(bus)
            let lock = try user.client.call("device.lock", ["devices": "cam1"])["lock"] ?? .null
            let change: JSONValue = [
                "device": "cam1", "activeFormat": ["pixelFormat": "GREY", "width": 64, "height": 48],
            ]
            try user.client.call("device.configure", ["lock": lock, "changes": [change]])
            let both = try user.create(["inputs": ["cam0", "cam1"], "preset": "640x480"])
            let start = try user.start(both)
            #expect(start["state"]?["interruption"]?["device"] == "cam1")
            try user.client.call("device.unlock", ["lock": lock])
            try await user.wait(both, for: "running")
            let resolved = try user.client.call("session.get", ["session": .string(both)])["resolved"]?.array ?? []
            #expect(resolved.compactMap { $0["device"]?.string } == ["cam0", "cam1"])
            for got in resolved {
                let device = try #require(got["device"]?.string)
                let frame = try FrameReader(bus, device, try #require(got["rendition"]?.string)).next()
                #expect(frame.header["width"] == 640 && frame.header["height"] == 480)
            }
            // A camera with another name is the same input.
            try user.client.call("device.rename", ["device": "cam1", "name": "side"])
            try await bus.wait(for: "state/session/\(both)/") {
                $0?["state"] == "running" && $0?["inputs"]?.array?.last?["device"] == "side"
                    && $0?["resolved"]?.array?.last?["device"] == "side"
            }
            try user.client.call("device.rename", ["device": "side", "name": JSONValue.null])
            try await bus.stop()
        }

        @Test func `a worker that is killed is back with its session`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let user = try User(bus)
            let session = try user.create(Self.small)
            try user.start(session)
            let events = try user.events(session)
            let pid = try #require(try bus.workerPID("cam0"))
            kill(pid, SIGKILL)
            let event = try Self.next(events)
            #expect(event["event"] == "runtimeError" && event["error"]?["reason"] == "workerCrashed")
            try await user.wait(session, for: "running")
            try await bus.wait(for: "state/device/cam0/") {
                $0?["isStreaming"] == true && $0?["activeFormat"]?["width"]?.integer == 640
            }
            try await bus.stop()
        }

        @Test func `another program interrupts, and the session goes on when it lets go`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let user = try User(bus)
            let session = try user.create(Self.small)
            let events = try user.events(session)
            try user.client.call("fault.inject", ["device": "cam0", "fault": "busy"])
            try user.client.start("session.start", ["session": .string(session)])
            let interrupted = try Self.next(events)
            #expect(interrupted["event"] == "wasInterrupted")
            #expect(interrupted["reason"] == "deviceInUseByForeignProcess")
            #expect(try Self.next(events)["event"] == "interruptionEnded")
            #expect(try Self.next(events)["event"] == "didStartRunning")
            _ = try user.client.reply()
            try await bus.stop()
        }

        @Test func `switching cameras selects the other one, or leaves the session unchanged`() async throws {
            let bus = try await BusHarness(virtual: 2)
            let user = try User(bus)
            let session = try user.create(Self.small)
            let params: JSONValue = ["session": .string(session)]
            try user.client.call(
                "session.configure",
                ["session": .string(session), "actions": [["addOutput": "preview"]]])
            try user.start(session)
            let there = try user.client.call("session.switchCamera", params)
            #expect(there["active"] == "cam1" && there["switched"] == true && there["dropped"] == [])
            #expect(there["state"]?["state"] == "running")
            let preview = there["resolved"]?.array?.first { $0["output"] == "preview" }
            #expect(preview?["device"] == "cam1" && preview?["mirrored"] == true)
            try await bus.wait(for: "state/device/cam0/") { $0?["isStreaming"] == false }
            // The other one has what it can't share.
            let lock = try user.client.call("device.lock", ["devices": "cam0"])["lock"] ?? .null
            let change: JSONValue = [
                "device": "cam0", "activeFormat": ["pixelFormat": "GREY", "width": 64, "height": 48],
            ]
            try user.client.call("device.configure", ["lock": lock, "changes": [change]])
            let error = try #require(try user.client.refusal("session.switchCamera", params))
            #expect(error.reason == .deviceBusy && error.data["active"] == "cam1")
            #expect(error.message.hasPrefix("cam0 is kept by the lock of "), "\(error.message)")
            #expect(error.message.hasSuffix(". The session keeps cam1."), "\(error.message)")
            let state = try user.client.call("session.get", params)["state"]
            #expect(state?["inputs"]?.array?.first?["device"] == "cam1" && state?["state"] == "running")
            try user.client.call("device.unlock", ["lock": lock])
            #expect(try user.client.call("session.switchCamera", params)["active"] == "cam0")
            try await bus.stop()
        }

        @Test func `what the command line prints of sessions`() async throws {
            let bus = try await BusHarness(virtual: 2)
            let created = try await bus.run(
                "camerabus",
                ["session", "create", "cam0", "--preset", "640x480", "--fps", "15", "--name", "door", "--start"])
            #expect(created.ending == .exited(0), "\(created.standardError)")
            let id = String(created.standardOutput.split(separator: "\n").first ?? "")
            let table = try await bus.run("camerabus", ["sessions"]).standardOutput
            #expect(table.contains(id) && table.contains("running") && table.contains("door"))
            #expect(table.contains("frame/cam0/bgr:640x480@15/"))
            #expect(try await bus.run("camerabus", ["sessions", "--ids"]).standardOutput == id + "\n")
            let no = try await bus.run("camerabus", ["session", "can-add", id, #"{"addOutput": "metadata"}"#])
            #expect(no.ending == .exited(1) && no.standardOutput.hasPrefix("no: "))
            #expect(try await bus.run("camerabus", ["session", "switch", id]).standardOutput == "cam1\n")
            #expect(try await bus.run("camerabus", ["session", "stop", id]).ending == .exited(0))
            let json = try await bus.run("camerabus", ["--json", "session", "show", id]).standardOutput
            #expect(try JSONValue(parsing: json)["state"]?["state"] == "stopped")
            #expect(try await bus.run("camerabus", ["session", "delete", id]).ending == .exited(0))
            #expect(try await bus.run("camerabus", ["session", "show", id]).ending == .exited(1))
            try await bus.stop()
        }
    }
}
