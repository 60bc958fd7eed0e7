import BusClient
import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension ProcessTests {
    /// System pressure as clients meet it.
    @Suite(.timeLimit(.minutes(5))) struct Pressure {
        /// A machine's /proc/pressure and /sys/class/thermal, to be written by a test.
        private struct FakeMachine {
            let home: TemporaryDirectory
            var configuration: String { "[pressure]\nroot = \"\(home.path)\"\n" }

            init() throws {
                home = try TemporaryDirectory()
                for part in [
                    "proc", "proc/pressure", "sys", "sys/class", "sys/class/thermal", "sys/class/thermal/thermal_zone0",
                ] {
                    mkdir("\(home.path)/\(part)", 0o755)
                }
                for factor in ["cpu", "memory", "io"] { try press(factor, 0) }
                try write("99999", "trip_point_1_temp")
                try write("critical", "trip_point_1_type")
                try write("80000", "trip_point_0_temp")
                try write("passive", "trip_point_0_type")
                try heat(40_000)
            }

            func press(_ factor: String, _ share: Double) throws {
                let text = ["some", "full"].map { "\($0) avg10=\(share) avg60=0.00 avg300=0.00 total=0\n" }.joined()
                try File.replace("\(home.path)/proc/pressure/\(factor)", with: Array(text.utf8), mode: 0o644)
            }

            func heat(_ temperature: Int) throws { try write("\(temperature)", "temp") }

            private func write(_ text: String, _ name: String) throws {
                let path = "\(home.path)/sys/class/thermal/thermal_zone0/\(name)"
                try File.replace(path, with: Array("\(text)\n".utf8), mode: 0o644)
            }
        }

        private static func level(_ level: String, _ factors: [String] = []) -> JSONValue {
            ["level": .string(level), "factors": JSONValue(factors)]
        }

        private func start(_ client: RawClient, _ device: String = "cam0") throws -> String {
            let made = try client.call("session.create", ["inputs": [.string(device)], "preset": "640x480"])
            let session = try #require(made["session"]?.string)
            let started = try client.call("session.start", ["session": .string(session)])
            #expect(started["state"]?["state"] == "running", "\(started)")
            return session
        }

        /// Goes on when all that the bus had begun by now to do with the device is done: orders to its worker go one
        /// after the other.
        private func finish(_ client: RawClient, _ device: String = "cam0") throws {
            for value in [20, 30] as [JSONValue] {
                try client.call("device.set", ["device": .string(device), "controls": ["contrast": value]], within: 30)
            }
        }

        private func isStreaming(_ client: RawClient, _ device: String = "cam0") throws -> JSONValue? {
            try client.call("device.get", ["device": .string(device)])["device"]?["isStreaming"]
        }

        private func state(_ client: RawClient, _ session: String) throws -> JSONValue? {
            try client.call("session.get", ["session": .string(session)])["state"]
        }

        /// Subscribes to what happens, in force when it returns.
        private func events(_ bus: BusHarness, _ topics: [String]) throws -> RawClient {
            // Its own: everybody who has subscribed to a nonce is told of it again.
            let nonce = "ack/\(UInt32.random(in: 0 ... .max))/"
            let events = try RawClient(.subscribe, path: bus.directory.eventsSocket, topics: topics + [nonce])
            while try events.receive()[0].bytes.elementsEqual(nonce.utf8) == false {}
            return events
        }

        private func next(_ events: RawClient) throws -> JSONValue {
            while true {
                let event = try JSONValue(parsing: try events.receive(within: 20)[1].bytes)
                // What the camera does by itself is told there, too.
                if event["event"] != "controlsChanged" { return event }
            }
        }

        @Test func `a camera under too much pressure stops for all, and resumes by itself`() async throws {
            let bus = try await BusHarness(virtual: 2)
            let client = try RawClient(path: bus.directory.commandSocket)
            let (session, other) = (try start(client), try start(client, "cam1"))
            let events = try events(bus, ["event/session/\(session)/"])
            let device = try self.events(bus, ["event/device/cam0/"])
            // Somebody beside the session, who has none.
            let frames = try FrameReader(bus, "cam0", "gray:64x48")
            _ = try frames.next()

            for level in ["serious", "shutdown"] {
                try client.call("fault.inject", ["device": "cam0", "fault": "pressure", "level": .string(level)])
                let event = try next(device)
                #expect(event["event"] == "systemPressureChanged" && event["level"]?.string == level)
                #expect(event["factors"] == ["cameraTemperature"])
                let now = try client.call("device.get", ["device": "cam0"])["device"]?["systemPressureState"]
                #expect(now == Self.level(level, ["cameraTemperature"]))
            }
            let interrupted = try next(events)
            #expect(interrupted["event"] == "wasInterrupted")
            #expect(interrupted["reason"] == "videoDeviceNotAvailableDueToSystemPressure")
            #expect(interrupted["device"] == "cam0")
            #expect(interrupted["by"]?["systemPressureState"] == Self.level("shutdown", ["cameraTemperature"]))
            let error = try frames.error()
            #expect(error.reason == .interrupted)
            #expect(error.data["interruption"] == "videoDeviceNotAvailableDueToSystemPressure")
            try await bus.wait(for: "state/device/cam0/") {
                $0?["isStreaming"] == false && $0?["isOpen"] == false
                    && $0?["systemPressureState"] == Self.level("shutdown", ["cameraTemperature"])
            }
            // The other camera has nothing to do with it.
            try finish(client, "cam1")
            #expect(try state(client, other)?["state"] == "running")
            #expect(try isStreaming(client, "cam1") == true)
            _ = try FrameReader(bus, "cam1", "gray:64x48").next()

            // Not before it is well below.
            try client.call("fault.inject", ["device": "cam0", "fault": "pressure", "level": "critical"])
            #expect(try next(device)["level"] == "critical")
            try finish(client)
            #expect(try isStreaming(client) == false)
            #expect(try state(client, session)?["state"] == "interrupted")
            try client.call("fault.inject", ["device": "cam0", "fault": "none"])
            #expect(try next(events)["event"] == "interruptionEnded")
            try await bus.wait(for: "state/session/\(session)/") { $0?["state"] == "running" }
            _ = try frames.next()
            try await bus.stop()
        }

        @Test func `a session that is started under pressure waits, and a script's pressure passes`() async throws {
            let bus = try await BusHarness(virtual: 2)
            let client = try RawClient(path: bus.directory.commandSocket)
            let result = try await bus.run("camerabus", ["fault", "cam0", "pressure", "--level", "shutdown"])
            try #require(result.status == 0, "\(result)")
            try await bus.wait(for: "state/device/cam0/") { $0?["systemPressureState"]?["level"] == "shutdown" }
            let made = try client.call("session.create", ["inputs": ["cam0"], "preset": "640x480"])
            let session = made["session"] ?? .null
            let started = try client.call("session.start", ["session": session])
            #expect(started["state"]?["state"] == "interrupted")
            let list = try await bus.run("camerabus", ["sessions"]).standardOutput
            #expect(list.contains("videoDeviceNotAvailableDueToSystemPressure"), "\(list)")
            // Switching to it is refused, and the session goes on where it is.
            let other = try start(client, "cam1")
            let error = try client.refusal("session.switchCamera", ["session": .string(other), "device": "cam0"])
            #expect(error?.reason == .interrupted)
            let script: JSONValue = [["at": 0, "fault": "pressure", "level": "fair", "milliseconds": 50]]
            try client.call("fault.script", ["device": "cam0", "steps": script])
            try await bus.wait(for: "state/session/\(session.string ?? "")/") { $0?["state"] == "running" }
            try await bus.wait(for: "state/device/cam0/") { $0?["systemPressureState"] == Self.level("nominal") }
            try await bus.stop()
        }

        @Test func `a stop because of pressure outlives a crash of the bus`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let session = try start(client)
            try client.call("fault.inject", ["device": "cam0", "fault": "pressure", "level": "shutdown"])
            try await bus.wait(for: "state/session/\(session)/") { $0?["state"] == "interrupted" }
            // It would not have to stop for that, and is not to go on before it is less.
            try client.call("fault.inject", ["device": "cam0", "fault": "pressure", "level": "critical"])
            try await bus.wait(for: "state/device/cam0/") { $0?["systemPressureState"]?["level"] == "critical" }
            let worker = try bus.workerPID("cam0")
            try await bus.killCoordinator()
            try await bus.startCoordinator()
            // Asked, as what was told before it died may still be on its way.
            let again = try RawClient(path: bus.directory.commandSocket)
            try await eventually {
                try again.call("device.get", ["device": "cam0"])["device"]?["systemPressureState"]?["level"]
                    == "critical"
            }
            try await eventually { try state(again, session)?["state"] == "interrupted" }
            try finish(again)
            #expect(
                try state(again, session)?["interruption"]?["reason"] == "videoDeviceNotAvailableDueToSystemPressure")
            #expect(try isStreaming(again) == false)
            #expect(try bus.workerPID("cam0") == worker)
            // A worker that is started anew knows of no fault.
            kill(try #require(try bus.workerPID("cam0")), SIGKILL)
            try await bus.wait(for: "state/session/\(session)/") { $0?["state"] == "running" }
            try await bus.stop()
        }

        @Test func `the machine's memory and heat are published for every device, and stop all at their highest`()
            async throws
        {
            let machine = try FakeMachine()
            let bus = try await BusHarness(virtual: 2, configuration: machine.configuration)
            let client = try RawClient(path: bus.directory.commandSocket)
            let sessions = [try start(client), try start(client, "cam1")]
            try machine.press("cpu", 70)
            for topic in ["state/bus/", "state/device/cam0/", "state/device/cam1/"] {
                try await bus.wait(for: topic) { $0?["systemPressureState"] == Self.level("fair", ["cpu"]) }
            }
            try machine.press("memory", 75)
            for session in sessions {
                try await bus.wait(for: "state/session/\(session)/") {
                    $0?["interruption"]?["by"]?["systemPressureState"] == Self.level("shutdown", ["memory"])
                }
            }
            let doctor = try await bus.run("camerabus", ["--json", "doctor"]).standardOutput
            #expect(doctor.contains("pressure-shutdown"))
            try machine.press("memory", 20)
            for session in sessions {
                try await bus.wait(for: "state/session/\(session)/") { $0?["state"] == "running" }
            }
            let top = try await bus.run("camerabus", ["top", "-n", "1", "--interval", "1"]).standardOutput
            #expect(top.contains("under pressure: serious (memory)"), "\(top)")
            try machine.press("memory", 0)
            try machine.press("cpu", 0)
            try await bus.wait(for: "state/bus/") { $0?["systemPressureState"] == Self.level("nominal") }
            try machine.heat(85_000)
            try await bus.wait(for: "state/device/cam0/") {
                $0?["systemPressureState"] == Self.level("serious", ["systemTemperature"])
            }
            try machine.heat(98_000)
            for session in sessions {
                try await bus.wait(for: "state/session/\(session)/") { $0?["state"] == "interrupted" }
            }
            try machine.heat(50_000)
            for session in sessions {
                try await bus.wait(for: "state/session/\(session)/") { $0?["state"] == "running" }
            }
            try await bus.stop()
        }

        @Test(.enabled(if: access("/proc/pressure/memory", R_OK) == 0, "left out: the kernel tells no pressure"))
        func `the kernel's own triggers are set where they may be`() async throws {
            let bus = try await BusHarness(virtual: 1, configuration: "[pressure]\nwatch = true\n")
            let state = try RawClient(path: bus.directory.commandSocket).call("bus.snapshot", ["prefix": "state/bus/"])
            let sources = state["state"]?["state/bus/"]?["systemPressureSources"]
            let mayTrigger = CurrentProcess.uid == 0 && access("/proc/pressure/memory", W_OK) == 0
            for factor in ["cpu", "memory", "io"] {
                #expect(sources?[factor]?.string == "trigger" || (!mayTrigger && sources?[factor]?.string == "reading"))
            }
            try await bus.stop()
        }
    }
}
