import BusProtocol
import CameraBusTesting
import JSON
import Testing

extension ProcessTests {
    /// Stabilization, as sessions prefer it.
    @Suite(.timeLimit(.minutes(5))) struct Stabilization {
        private static func prefer(_ mode: String) -> JSONValue {
            [["connection": ["output": "videoData", "preferredVideoStabilizationMode": .string(mode)]]]
        }

        private func isOn(_ client: RawClient) throws -> JSONValue? {
            try client.call("device.get", ["device": "cam0"])["device"]?["controls"]?["videoStabilizationMode"]
        }

        @Test func `pictures are stabilized for a session that prefers it, and not for longer`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let session =
                try client.call(
                    "session.create", ["inputs": ["cam0"], "outputs": ["videoData"], "preset": "640x480"])["session"]
                ?? .null
            let refusal = try client.refusal(
                "session.configure", ["session": session, "actions": Self.prefer("cinematic")])
            #expect(refusal?.reason == .controlUnsupported)
            #expect(refusal?.data["supported"] == ["off", "standard", "auto"])
            try client.call("session.configure", ["session": session, "actions": Self.prefer("auto")])
            // It is not started yet.
            #expect(try isOn(client) == "off")
            try client.call("session.start", ["session": session])
            let topic = "state/session/\(session.string ?? "")/"
            let state = try await bus.wait(for: topic) {
                $0?["resolved"]?[0]?["activeVideoStabilizationMode"] == "standard"
            }
            #expect(state?["state"] == "running")
            #expect(state?["connections"]?[0]?["preferredVideoStabilizationMode"] == "auto")
            // A client that sets it otherwise has its way, and the session tells it.
            try client.call("device.set", ["device": "cam0", "controls": ["videoStabilizationMode": "off"]])
            try await bus.wait(for: topic) { $0?["resolved"]?[0]?["activeVideoStabilizationMode"] == "off" }
            try client.call("device.set", ["device": "cam0", "controls": ["videoStabilizationMode": "standard"]])
            try await bus.wait(for: topic) { $0?["resolved"]?[0]?["activeVideoStabilizationMode"] == "standard" }
            try client.call("session.stop", ["session": session])
            try await bus.wait(for: "state/device/cam0/") { $0?["controls"]?["videoStabilizationMode"] == "off" }
            // It was on before this session, and stays so.
            try client.call("device.set", ["device": "cam0", "controls": ["videoStabilizationMode": "standard"]])
            try client.call("session.start", ["session": session])
            try client.call("session.stop", ["session": session])
            #expect(try isOn(client) == "standard")
            try await bus.stop()
        }
    }
}
