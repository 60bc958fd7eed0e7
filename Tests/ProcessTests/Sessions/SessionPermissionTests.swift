import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension ProcessTests {
    /// What becomes of sessions, of what was set going, and of sets, as permission is waited for, given and taken.
    @Suite(
        .timeLimit(.minutes(5)),
        .enabled(if: OtherUser.isPossible, "left out: \(OtherUser.obstacle ?? "")")) struct SessionPermission
    {
        private static let user = OtherUser.first

        private func bus() async throws -> BusHarness {
            try await BusHarness(virtual: 2, configuration: OtherUser.configuration)
        }

        private func call(_ bus: BusHarness, _ method: String, _ params: JSONValue = [:]) throws -> JSONValue {
            try RawClient(path: bus.directory.commandSocket).call(method, params)
        }

        private func decide(_ bus: BusHarness, _ word: String) async throws {
            let result = try await bus.run("camerabus", [word, "\(Self.user.uid)", "video"])
            try #require(result.status == 0, "\(result)")
        }

        private func isAsked(_ bus: BusHarness) async throws {
            try await bus.wait(for: "state/authorization/\(Self.user.uid)/") { $0?["asked"] == ["video"] }
        }

        /// A session of the other user on cam0, started.
        private func start(_ bus: BusHarness) async throws -> String {
            let made = try await bus.run(
                "camerabus", ["session", "create", "cam0", "--preset", "640x480", "--start"], as: Self.user)
            try #require(made.status == 0, "\(made)")
            return String(made.standardOutput.prefix { $0 != "\n" })
        }

        private func state(_ bus: BusHarness, _ session: String) throws -> JSONValue? {
            try call(bus, "session.get", ["session": .string(session)])["state"]
        }

        @Test func `a session waits for permission, asks by itself, and runs when it is given`() async throws {
            let bus = try await bus()
            let session = try await start(bus)
            let topic = "state/session/\(session)/"
            let waiting = try #require(try state(bus, session))
            #expect(waiting["state"] == "waitingForAuthorization" && waiting["wanted"] == true)
            #expect(waiting["error"] == .null && waiting["resolved"] == [])
            let why = waiting["explanation"]?.array?.first?.string ?? ""
            #expect(why.contains("camerabus allow \(Self.user.uid) video"), "\(why)")
            try await isAsked(bus)
            // Nothing is opened for it, and others are served.
            let other = try call(bus, "session.create", ["inputs": ["cam1"], "preset": "640x480"])["session"] ?? .null
            #expect(try call(bus, "session.start", ["session": other])["state"]?["state"] == "running")
            #expect(try call(bus, "device.get", ["device": "cam0"])["device"]?["isStreaming"] == false)

            try await decide(bus, "allow")
            try await bus.wait(for: topic) { $0?["state"] == "running" && $0?["resolved"]?.array?.count == 1 }
            try await bus.wait(for: "state/device/cam0/") { $0?["isStreaming"] == true }
            try await bus.stop()
        }

        @Test func `a refused session stays unchanged and says so, until it is permitted`() async throws {
            let bus = try await bus()
            let session = try await start(bus)
            let topic = "state/session/\(session)/"
            try await decide(bus, "deny")
            try await bus.wait(for: topic) {
                $0?["state"] == "waitingForAuthorization" && $0?["error"]?["reason"] == "unauthorized"
            }
            // Whom somebody has refused can't begin anew.
            for arguments in [["session", "start", session], ["session", "create", "cam0"]] {
                let result = try await bus.run("camerabus", arguments, as: Self.user)
                #expect(result.status == 1 && result.standardError.contains("unauthorized"), "\(result)")
            }
            // The next coordinator has it wait, too.
            try await bus.killCoordinator()
            try await bus.startCoordinator()
            try await bus.wait(for: topic) {
                $0?["state"] == "waitingForAuthorization" && $0?["error"]?["reason"] == "unauthorized"
            }
            try await decide(bus, "allow")
            try await bus.wait(for: topic) { $0?["state"] == "running" && $0?["error"] == .null }
            // Taken back, one that has run ends.
            try await decide(bus, "deny")
            try await bus.wait(for: topic) { $0?["state"] == "stopped" && $0?["error"]?["reason"] == "unauthorized" }
            try await bus.stop()
        }

        @Test func `a session that waits can be changed, switched, stopped and deleted`() async throws {
            let bus = try await bus()
            let session = try await start(bus)
            func run(_ arguments: String...) async throws -> ProgramResult {
                try await bus.run("camerabus", ["session"] + arguments, as: Self.user)
            }
            let switched = try await run("switch", session)
            #expect(switched.status == 0 && switched.standardOutput == "cam1\n", "\(switched)")
            let preview = try await run("configure", session, #"{"addOutput": "preview"}"#)
            #expect(preview.status == 0, "\(preview)")
            let now = try #require(try state(bus, session))
            #expect(now["state"] == "waitingForAuthorization" && now["outputs"]?.array?.count == 2)
            let removed = try await run("configure", session, #"{"removeInput": "cam1"}"#)
            #expect(removed.status == 0, "\(removed)")
            #expect(try state(bus, session)?["state"] == "running")
            // Nor does one that runs without any get a camera by being changed.
            let wish = #"{"device": "cam0", "activeFormat": {"width": 640, "height": 480}}"#
            let added = try await run("configure", session, #"{"addInput": \#(wish)}"#)
            #expect(added.status == 0, "\(added)")
            #expect(try state(bus, session)?["state"] == "waitingForAuthorization")
            let before = try call(bus, "device.get", ["device": "cam0"])["device"]
            let other = try call(bus, "session.create", ["inputs": ["cam1"]])["session"] ?? .null
            #expect(try call(bus, "session.start", ["session": other])["state"]?["state"] == "running")
            let after = try call(bus, "device.get", ["device": "cam0"])["device"]
            #expect(after?["isStreaming"] == false && after?["activeFormat"] == before?["activeFormat"])
            #expect(try await run("stop", session).status == 0)
            #expect(try await run("delete", session).status == 0)
            try await bus.stop()
        }

        @Test func `a zoom ramp and a lock of the exposure end with their user's permission`() async throws {
            let bus = try await bus()
            try await decide(bus, "allow")
            let ramp = try await bus.run(
                "camerabus", ["call", "device.zoomRamp", #"{"device":"cam0","factor":4,"rate":0.01}"#], as: Self.user)
            try #require(ramp.status == 0, "\(ramp)")
            // So slow that it has not settled when the permission goes.
            let session =
                try call(bus, "session.create", ["inputs": ["cam1"], "preset": "640x480", "detached": true])["session"]
                ?? .null
            #expect(try call(bus, "session.start", ["session": session])["state"]?["state"] == "running")
            _ = try call(bus, "fault.inject", ["device": "cam1", "fault": "rate", "percent": 5])
            let expose = try await bus.run(
                "camerabus",
                ["call", "device.expose", #"{"device":"cam1","point":{"x":0.1,"y":0.1},"thenLock":true}"#],
                as: Self.user)
            try #require(expose.status == 0, "\(expose)")
            try await bus.wait(for: "state/device/cam0/") { $0?["controls"]?["rampingVideoZoom"] == true }
            try await bus.wait(for: "state/device/cam1/") { $0?["controls"]?["adjustingExposure"] == true }
            try await decide(bus, "deny")
            let zoom = try await bus.wait(for: "state/device/cam0/") { $0?["controls"]?["rampingVideoZoom"] == false }
            #expect((zoom?["controls"]?["videoZoomFactor"]?.double ?? 4) < 3)
            _ = try call(bus, "fault.inject", ["device": "cam1", "fault": "none"])
            try await bus.wait(for: "state/device/cam1/") { $0?["controls"]?["adjustingExposure"] == false }
            #expect(
                try call(bus, "device.get", ["device": "cam1"])["device"]?["controls"]?["exposureMode"]
                    == "continuousAutoExposure")
            try await bus.stop()
        }

        @Test func `a zoom ramp that outlives the bus ends with its user's permission all the same`() async throws {
            let bus = try await bus()
            try await decide(bus, "allow")
            let ramp = try await bus.run(
                "camerabus", ["call", "device.zoomRamp", #"{"device":"cam0","factor":4,"rate":0.01}"#], as: Self.user)
            try #require(ramp.status == 0, "\(ramp)")
            try await bus.killCoordinator()
            try await bus.startCoordinator()
            try await bus.wait(for: "state/device/cam0/") { $0?["controls"]?["rampingVideoZoom"] == true }
            try await decide(bus, "deny")
            let zoom = try await bus.wait(for: "state/device/cam0/") { $0?["controls"]?["rampingVideoZoom"] == false }
            #expect((zoom?["controls"]?["videoZoomFactor"]?.double ?? 4) < 3)
            try await bus.stop()
        }

        @Test func `the controls of a camera are told without opening it to who may not see it`() async throws {
            let bus = try await bus()
            try await bus.wait(for: "state/device/cam0/") {
                $0?["controls"]?["brightness"] != nil && $0?["isOpen"] == false
            }
            let before = try call(bus, "device.get", ["device": "cam0"])["device"]?["asOf"]
            let told = try await bus.run(
                "camerabus", ["call", "device.controls", #"{"device":"cam0"}"#], as: Self.user)
            #expect(told.status == 0 && told.standardOutput.contains("\"brightness\""), "\(told)")
            #expect(told.standardOutput.contains("\"focusMode\""))
            #expect(try call(bus, "device.get", ["device": "cam0"])["device"]?["asOf"] == before)
            // Who may see it has it read.
            _ = try call(bus, "device.controls", ["device": "cam0"])
            #expect(try call(bus, "device.get", ["device": "cam0"])["device"]?["asOf"] != before)
            try await bus.stop()
        }

        @Test func `who wants a rig's sets is asked for, told why none come, and gets them when it is allowed`()
            async throws
        {
            let bus = try await bus()
            _ = try call(bus, "rig.set", ["name": "desk", "devices": ["cam0", "cam1"]])
            try await eventually { access(bus.directory.mediaSocket("desk"), F_OK) == 0 }
            let sets = try bus.start(
                "camerabus", ["frames", "desk", "gray:64x0", "--set", "-n", "2", "--timeout", "60"], as: Self.user)
            try await isAsked(bus)
            try await decide(bus, "allow")
            let result = try await sets.end()
            #expect(result.status == 0, "\(result)")
            try await decide(bus, "deny")
            let refused = try await bus.run("camerabus", ["frames", "desk", "--set"], as: Self.user)
            #expect(refused.status == 1 && refused.standardError.contains("unauthorized"), "\(refused)")
            let script = """
                import camerabus
                with camerabus.Client() as client:
                    try:
                        next(iter(client.frame_sets("desk")))
                    except camerabus.CaptureError as error:
                        print(error.reason)
                """
            let python = try await bus.run(
                OtherUser.python, ["-c", script], as: Self.user, environment: ["PYTHONPATH": Programs.pythonPath])
            #expect(python.standardOutput == "unauthorized\n", "\(python)")
            // Nobody has decided again: who waits in vain is told why.
            let reset = try await bus.run("camerabus", ["permissions", "--reset", "\(Self.user.uid)"])
            try #require(reset.status == 0, "\(reset)")
            let silent = try await bus.run("camerabus", ["frames", "desk", "--set", "--timeout", "1"], as: Self.user)
            #expect(silent.status != 0 && silent.standardError.contains("unauthorized"), "\(silent)")
            try await bus.stop()
        }
    }
}
