import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import Testing

extension ProcessTests {
    /// Stabilization, as sessions prefer it.
    @Suite(.timeLimit(.minutes(5))) struct Stabilization {
        private static func prefer(_ mode: String) -> JSONValue {
            [["connection": ["output": "videoData", "preferredVideoStabilizationMode": .string(mode)]]]
        }

        private static let create: JSONValue = ["inputs": ["cam0"], "outputs": ["videoData"], "preset": "640x480"]

        /// Whether it is on, after all that the bus had begun by now to do with the device: changes of one device go
        /// one after the other.
        private func mode(_ client: RawClient) throws -> JSONValue? {
            try set(client, "contrast", 20)
            try set(client, "contrast", 30)
            return try client.call("device.get", ["device": "cam0"])["device"]?["controls"]?["videoStabilizationMode"]
        }

        private func set(_ client: RawClient, _ control: String, _ value: JSONValue, lock: JSONValue? = nil) throws {
            try client.call(
                "device.set",
                .members(["device": "cam0", "controls": .object([control: value]), "lock": lock]), within: 30)
        }

        private func isActive(_ bus: BusHarness, _ topic: String, _ mode: String) async throws {
            try await bus.wait(for: topic) { $0?["resolved"]?[0]?["activeVideoStabilizationMode"]?.string == mode }
        }

        /// A session that prefers stabilization, running, and stabilized.
        private func start(_ bus: BusHarness, _ client: RawClient) async throws -> (JSONValue, topic: String) {
            let session = try client.call("session.create", Self.create)["session"] ?? .null
            try client.call("session.configure", ["session": session, "actions": Self.prefer("auto")])
            try client.call("session.start", ["session": session])
            let topic = "state/session/\(session.string ?? "")/"
            try await isActive(bus, topic, "standard")
            // All of it: what a bus that dies leaves half done is taken back.
            #expect(try mode(client) == "standard")
            return (session, topic)
        }

        @Test func `pictures are stabilized for a session that prefers it, and not for longer`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let session = try client.call("session.create", Self.create)["session"] ?? .null
            let refusal = try client.refusal(
                "session.configure", ["session": session, "actions": Self.prefer("cinematic")])
            #expect(refusal?.reason == .controlUnsupported)
            #expect(refusal?.data["supported"] == ["off", "standard", "auto"])
            try client.call("session.configure", ["session": session, "actions": Self.prefer("auto")])
            // It is not started yet.
            #expect(try mode(client) == "off")
            try client.call("session.start", ["session": session])
            let topic = "state/session/\(session.string ?? "")/"
            try await isActive(bus, topic, "standard")
            let state = try client.call("session.get", ["session": session])["state"]
            #expect(state?["state"] == "running")
            #expect(state?["connections"]?[0]?["preferredVideoStabilizationMode"] == "auto")
            // One that does not prefer it any more.
            try client.call("session.configure", ["session": session, "actions": Self.prefer("off")])
            try await isActive(bus, topic, "off")
            try client.call("session.configure", ["session": session, "actions": Self.prefer("standard")])
            try await isActive(bus, topic, "standard")
            try client.call("session.stop", ["session": session])
            try await bus.wait(for: "state/device/cam0/") { $0?["controls"]?["videoStabilizationMode"] == "off" }
            try await bus.stop()
        }

        @Test func `a client that sets it overrides the bus, and the session reports it`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let (session, topic) = try await start(bus, client)
            try set(client, "videoStabilizationMode", "off")
            try await isActive(bus, topic, "off")
            #expect(try mode(client) == "off")
            try set(client, "videoStabilizationMode", "standard")
            try await isActive(bus, topic, "standard")
            // It was off before the session.
            try client.call("session.stop", ["session": session])
            try await bus.wait(for: "state/device/cam0/") { $0?["controls"]?["videoStabilizationMode"] == "off" }
            #expect(try mode(client) == "off")
            // It was on before this one, and stays so.
            try set(client, "videoStabilizationMode", "standard")
            try client.call("session.start", ["session": session])
            #expect(try mode(client) == "standard")
            try client.call("session.stop", ["session": session])
            #expect(try mode(client) == "standard")
            // Nor is it turned on again for a session that found it on.
            try client.call("session.start", ["session": session])
            #expect(try mode(client) == "standard")
            try set(client, "videoStabilizationMode", "off")
            try await isActive(bus, topic, "off")
            #expect(try mode(client) == "off")
            try await bus.stop()
        }

        @Test func `it is turned off when the lock ends that was in the way at the session's end`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let (client, other) = (
                try RawClient(path: bus.directory.commandSocket), try RawClient(path: bus.directory.commandSocket)
            )
            let (session, _) = try await start(bus, client)
            var lock = try other.call("device.lock", ["devices": "cam0", "lease": 3_600_000])["lock"]
            try client.call("session.stop", ["session": session])
            // Not against who has the lock.
            try set(other, "contrast", 5, lock: lock)
            let locked = try client.call("device.get", ["device": "cam0"])["device"]
            #expect(locked?["controls"]?["videoStabilizationMode"] == "standard")
            try other.call("device.unlock", ["lock": lock ?? .null])
            try await bus.wait(for: "state/device/cam0/") { $0?["controls"]?["videoStabilizationMode"] == "off" }

            // Who sets it then has it so.
            try client.call("session.start", ["session": session])
            try await bus.wait(for: "state/device/cam0/") { $0?["controls"]?["videoStabilizationMode"] == "standard" }
            lock = try other.call("device.lock", ["devices": "cam0", "lease": 3_600_000, "wait": 20_000])["lock"]
            try client.call("session.stop", ["session": session])
            try set(other, "videoStabilizationMode", "standard", lock: lock)
            try other.call("device.unlock", ["lock": lock ?? .null])
            #expect(try mode(client) == "standard")
            try await bus.stop()
        }

        @Test func `it is not turned on before it can be written for whom, whatever the camera is called by then`()
            async throws
        {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            // The place where a new book is written is taken.
            let place = "\(bus.directory.path)/state/devices.json.new"
            try #require(mkdir(place, 0o700) == 0)
            let session = try client.call("session.create", Self.create)["session"] ?? .null
            try client.call("session.configure", ["session": session, "actions": Self.prefer("auto")])
            try client.call("session.start", ["session": session])
            try await eventually { bus.log.contains("stabilization can't be set for sessions") }
            #expect(try mode(client) == "off")
            #expect(try client.call("device.rename", ["device": "cam0", "name": "other"])["kept"] == false)
            try #require(rmdir(place) == 0)
            try await isActive(bus, "state/session/\(session.string ?? "")/", "standard")
            // The next bus knows.
            try await bus.killCoordinator()
            try await bus.startCoordinator()
            let again = try RawClient(path: bus.directory.commandSocket)
            try again.call("session.stop", ["session": session])
            try await bus.wait(for: "state/device/other/") { $0?["controls"]?["videoStabilizationMode"] == "off" }
            try await bus.stop()
        }

        @Test func `it is turned off by the next bus, where the one that turned it on has died`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let (session, topic) = try await start(bus, client)
            try await bus.killCoordinator()
            try await bus.startCoordinator()
            // Over the end of its session, too, and with a lock in the way.
            let again = try RawClient(path: bus.directory.commandSocket)
            try await bus.wait(for: topic) { $0?["state"] == "running" }
            #expect(try mode(again) == "standard")
            let lock = try again.call("device.lock", ["devices": "cam0", "lease": 3_600_000])["lock"] ?? .null
            try again.call("session.stop", ["session": session])
            try await bus.killCoordinator()
            try await bus.startCoordinator()
            let last = try RawClient(path: bus.directory.commandSocket)
            // It is ready before the device's process has told how the device is set.
            try await eventually {
                let locked = try last.call("device.get", ["device": "cam0"])["device"]
                return locked?["controls"]?["videoStabilizationMode"] == "standard"
            }
            try last.call("device.unlock", ["lock": lock])
            try await bus.wait(for: "state/device/cam0/") { $0?["controls"]?["videoStabilizationMode"] == "off" }
            try await bus.stop()
        }
    }
}
