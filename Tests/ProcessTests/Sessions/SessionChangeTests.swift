import BusProtocol
import CameraBusTesting
import JSON
import Testing

extension ProcessTests {
    /// Changes of sessions that are kept, and what becomes of their cameras.
    @Suite(.timeLimit(.minutes(5))) struct SessionChanges {
        @Test func `a change that is kept is answered so, also where a camera does not follow`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let made = try client.call("session.create", ["inputs": ["cam0"], "preset": "640x480"])
            let session = made["session"] ?? .null
            #expect(try client.call("session.start", ["session": session])["state"]?["state"] == "running")
            try client.call("fault.inject", ["device": "cam0", "fault": "refuse"])
            let answer = try client.call(
                "session.configure", ["session": session, "actions": [["preset": "1280x720"]]], within: 30)
            #expect(answer["state"]?["preset"] == "1280x720", "\(answer)")
            #expect(answer["state"]?["state"] == "stopped" && answer["state"]?["error"]?["reason"] != .null)
            let kept = try client.call("session.get", ["session": session])["state"]
            #expect(kept == answer["state"])
            // It was refused once.
            let started = try client.call("session.start", ["session": session], within: 30)
            #expect(started["state"]?["state"] == "running" && started["state"]?["error"] == .null)
            #expect(started["resolved"]?[0]?["width"] == 1280)
            // A start that comes to nothing has nothing to keep.
            try client.call("session.stop", ["session": session])
            try client.call("session.configure", ["session": session, "actions": [["preset": "640x480"]]])
            try client.call("fault.inject", ["device": "cam0", "fault": "refuse"])
            #expect(try client.refusal("session.start", ["session": session]) != nil)
            #expect(try client.call("session.get", ["session": session])["state"]?["state"] == "stopped")
            try await bus.stop()
        }
    }
}
