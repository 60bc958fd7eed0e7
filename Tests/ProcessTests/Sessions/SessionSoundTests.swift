import BusClient
import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

extension ProcessTests {
    /// Sessions with microphones, on the real bus.
    @Suite(.timeLimit(.minutes(5))) struct SessionSound {
        private func bus(virtual: Int = 1) async throws -> BusHarness {
            try await BusHarness(virtual: virtual, microphones: 1)
        }

        private func wait(
            _ bus: BusHarness, _ session: ClientSession, for condition: @escaping @Sendable (JSONValue?) -> Bool
        ) async throws {
            try await bus.wait(for: "state/session/\(session.id)/", until: condition)
        }

        @Test func `a session has pictures and sound, and says where`() async throws {
            let bus = try await bus()
            let client = try await bus.connect()
            let made = try await client.createSession([
                "preset": "640x480", "outputs": ["videoData", "audioData", "movie"],
            ])
            // Nothing was named: the default camera, and the default microphone.
            #expect(made.state["inputs"]?.array?.map { $0["device"] } == ["cam0", "mic0"])
            #expect(made.sound()?.rendition == "s16:48000x2", "it says before it starts what it would get")
            let running = try await client.startSession(made.id)
            #expect(running.runState == "running")
            let outputs = running.resolved.map { "\($0["device"] ?? .null) \($0["output"] ?? .null)" }
            #expect(
                outputs == [#""cam0" "videoData""#, #""cam0" "movie""#, #""mic0" "audioData""#, #""mic0" "movie""#])
            let (device, rendition) = try #require(running.sound())
            let sounds = try await client.sound(device, rendition)
            let header = try await sounds.next().header
            #expect(header.rate == 48000 && header.channels == 2 && header.sampleFormat == "s16")
            #expect(running.frames()?.device == "cam0")
            sounds.close()
            // It listens for the session, whoever is subscribed.
            try await bus.wait(for: "state/device/mic0/") { $0?["isStreaming"] == true }
            _ = try await client.stopSession(made.id)
            try await bus.wait(for: "state/device/mic0/") { $0?["isStreaming"] == false }
            await client.close()
            try await bus.stop()
        }

        @Test func `of two sessions with different rates one sets the device, the other gets converted sound`()
            async throws
        {
            let bus = try await bus()
            let client = try await bus.connect()
            let first = try await client.createSession([
                "inputs": [["device": "mic0", "activeFormat": ["rate": 44100, "channels": 1]]],
                "outputs": ["audioData"], "name": "first",
            ])
            let second = try await client.createSession([
                "inputs": [["device": "mic0", "activeFormat": ["rate": 16000]]], "outputs": ["audioData"],
                "name": "second",
            ])
            let plain = try await client.createSession(["inputs": ["mic0"], "outputs": ["audioData"], "name": "plain"])
            #expect(try await client.startSession(plain.id).sound()?.rendition == "s16:48000x2")
            #expect(try await client.startSession(first.id).sound()?.rendition == "s16:44100x1")
            try await bus.wait(for: "state/device/mic0/") { $0?["activeFormat"]?["rate"] == 44100 }
            let other = try await client.startSession(second.id)
            #expect(other.runState == "running" && other.sound()?.rendition == "s16:16000x1")
            #expect(other.explanation.contains { $0.contains("second wants s16, 16000 Hz") }, "\(other.explanation)")
            let sounds = try await client.sound("mic0", "s16:16000x1")
            #expect(try await sounds.next().header.rate == 16000)
            // Alone, it has the device; its topic is what it was.
            _ = try await client.stopSession(first.id)
            try await bus.wait(for: "state/device/mic0/") { $0?["activeFormat"]?["rate"] == 16000 }
            #expect(try await client.session(second.id).sound()?.rendition == "s16:16000x1")
            // Who has named nothing has what there was when he began, whoever came after him.
            #expect(try await client.session(plain.id).sound()?.rendition == "s16:48000x2")
            #expect(try await client.session(plain.id).runState == "running")
            await client.close()
            try await bus.stop()
        }

        @Test func `a locked microphone is not set, and heard all the same`() async throws {
            let bus = try await bus()
            let (owner, other) = (try await bus.connect(), try await bus.connect(name: "other"))
            let lock = try await owner.lock(["mic0"])
            let made = try await other.createSession([
                "inputs": [["device": "mic0", "activeFormat": ["rate": 44100]]], "outputs": ["audioData"],
            ])
            let running = try await other.startSession(made.id)
            #expect(running.runState == "running" && running.sound()?.rendition == "s16:44100x2")
            #expect(try await other.device("mic0")["activeFormat"]?["rate"] == 48000)
            _ = try await owner.unlock(lock)
            try await bus.wait(for: "state/device/mic0/") { $0?["activeFormat"]?["rate"] == 44100 }
            // What another program sets then is not taken back, and the session has what it had.
            let set = try await bus.run("camerabus", ["format", "mic0", "--rate", "16000", "--channels", "1"])
            #expect(set.status == 0, "\(set)")
            _ = try await other.configureSession(made.id, [["priority": 3]])
            #expect(try await other.device("mic0")["activeFormat"]?["rate"] == 16000)
            let kept = try await other.session(made.id)
            #expect(kept.runState == "running" && kept.sound()?.rendition == "s16:44100x2")
            await owner.close()
            await other.close()
            try await bus.stop()
        }

        @Test func `the data source is that of the camera's side, and changes with it`() async throws {
            let bus = try await bus(virtual: 2)
            let client = try await bus.connect()
            let made = try await client.createSession([
                "inputs": ["cam1", "mic0"], "outputs": ["videoData", "audioData"], "preset": "640x480",
            ])
            #expect(try await client.startSession(made.id).runState == "running")
            // cam1 looks to the front, cam0 back.
            try await bus.wait(for: "state/device/mic0/") { $0?["controls"]?["data_source"] == 0 }
            let (switched, _) = try await client.switchCamera(ofSession: made.id)
            #expect(switched.state["inputs"]?.array?.map { $0["device"] } == ["cam0", "mic0"])
            #expect(switched.runState == "running")
            try await bus.wait(for: "state/device/mic0/") { $0?["controls"]?["data_source"] == 1 }
            // One that is named stays, whichever camera there is.
            _ = try await client.configureSession(
                made.id, [["setInput": ["device": "mic0", "preferredDataSource": "front"]]])
            try await bus.wait(for: "state/device/mic0/") { $0?["controls"]?["data_source"] == 0 }
            // What a client sets meanwhile is not taken back.
            _ = try await client.set("mic0", controls: ["data_source": "back"])
            _ = try await client.configureSession(made.id, [["priority": 3]])
            #expect(try await client.device("mic0")["controls"]?["data_source"] == 1)
            await client.close()
            try await bus.stop()
        }

        @Test func `an unplugged microphone interrupts, and the session resumes when it returns`() async throws {
            let bus = try await bus()
            let client = try await bus.connect()
            let made = try await client.createSession([
                "inputs": ["cam0", "mic0"], "outputs": ["videoData", "audioData"], "preset": "640x480",
            ])
            #expect(try await client.startSession(made.id).runState == "running")
            let events = try await client.watch(["event/session/\(made.id)/"])
            _ = try await client.call("fault.inject", ["device": "mic0", "fault": "unplug"])
            var event = try await events.next()
            while event.json["event"] != "wasInterrupted" { event = try await events.next() }
            #expect(event.json["reason"] == "deviceDisconnected" && event.json["device"] == "mic0")
            _ = try await client.call("fault.inject", ["device": "mic0", "fault": "replug"])
            while event.json["event"] != "interruptionEnded" { event = try await events.next() }
            try await wait(bus, made) { $0?["state"] == "running" }
            await client.close()
            try await bus.stop()
        }

        @Test func `a microphone that another program has is an interruption of its own`() async throws {
            let bus = try await bus()
            let client = try await bus.connect()
            let made = try await client.createSession(["inputs": ["mic0"], "outputs": ["audioData"]])
            _ = try await client.call("fault.inject", ["device": "mic0", "fault": "busy", "milliseconds": 5000])
            let started = try await client.startSession(made.id)
            let reason = started.state["interruption"]?["reason"]
            #expect(
                started.runState == "interrupted" && reason == "audioDeviceInUseByAnotherClient", "\(started.state)")
            try await wait(bus, made) { $0?["state"] == "running" }
            await client.close()
            try await bus.stop()
        }

        @Test func `a session outlives the death of the bus with its microphone`() async throws {
            let bus = try await bus()
            let client = try await bus.connect()
            let made = try await client.createSession([
                "inputs": [["device": "mic0", "activeFormat": ["rate": 44100], "preferredDataSource": "back"]],
                "outputs": [["type": "audioData", "format": "f32", "rate": 16000, "channels": 1]], "detached": true,
            ])
            let before = try await client.startSession(made.id)
            try await bus.killCoordinator()
            try await bus.startCoordinator()
            let again = try await bus.connect(name: "again")
            try await wait(bus, made) { $0?["state"] == "running" }
            let after = try await again.session(made.id)
            for member in ["inputs", "outputs", "connections"] { #expect(after.state[member] == before.state[member]) }
            #expect(after.sound()?.rendition == "f32:16000x1")
            await again.close()
            await client.close()
            try await bus.stop()
        }

        @Test func `the command line names a microphone beside cameras`() async throws {
            let bus = try await bus()
            let made = try await bus.run(
                "camerabus",
                [
                    "session", "create", "cam0", "--fps", "15", "--preset", "640x480", "--mic", "mic0", "--output",
                    "videoData", "--output", "f32:audioData", "--start",
                ])
            #expect(made.status == 0, "\(made)")
            #expect(made.standardError.contains("audioData: audio/mic0/f32:48000x2/ (f32, 48000 Hz x2)"), "\(made)")
            try await bus.stop()
        }

        @Test(.enabled(if: OtherUser.isPossible, "left out: \(OtherUser.obstacle ?? "")"))
        func `a session waits for the permission to hear, and not for that to see`() async throws {
            let user = OtherUser.first
            let bus = try await BusHarness(virtual: 1, microphones: 1, configuration: OtherUser.configuration)
            let denied = try await bus.run("camerabus", ["deny", "\(user.uid)", "video"])
            try #require(denied.status == 0, "\(denied)")
            let made = try await bus.run(
                "camerabus", ["session", "create", "--mic", "mic0", "--output", "audioData", "--start"], as: user)
            try #require(made.status == 0, "\(made)")
            let session = String(made.standardOutput.prefix { $0 != "\n" })
            let topic = "state/session/\(session)/"
            try await bus.wait(for: topic) { $0?["state"] == "waitingForAuthorization" }
            try await bus.wait(for: "state/authorization/\(user.uid)/") { $0?["asked"] == ["audio"] }
            let allowed = try await bus.run("camerabus", ["allow", "\(user.uid)", "audio"])
            try #require(allowed.status == 0, "\(allowed)")
            try await bus.wait(for: topic) { $0?["state"] == "running" }
            let camera = try await bus.run("camerabus", ["session", "create", "cam0"], as: user)
            #expect(camera.status == 1 && camera.standardError.contains("unauthorized"), "\(camera)")
            let taken = try await bus.run("camerabus", ["deny", "\(user.uid)", "audio"])
            try #require(taken.status == 0, "\(taken)")
            try await bus.wait(for: topic) { $0?["state"] == "stopped" && $0?["error"]?["reason"] == "unauthorized" }
            try await bus.stop()
        }
    }
}
