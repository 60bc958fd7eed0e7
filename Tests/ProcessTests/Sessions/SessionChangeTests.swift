import BusProtocol
import CameraBusTesting
import JSON
import Testing

extension ProcessTests {
    /// Changes of sessions that are kept, and what becomes of their cameras.
    @Suite(.timeLimit(.minutes(5))) struct SessionChanges {
        @Test func `a camera is set lower for the only session that asks for less, and for no other`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            func make(_ preset: JSONValue, rate: JSONValue) throws -> JSONValue {
                let inputs: JSONValue = [["device": "cam0", "frameRate": rate]]
                let made = try client.call("session.create", ["inputs": inputs, "preset": preset])
                return made["session"] ?? .null
            }
            func lower(_ session: JSONValue, to preset: JSONValue, rate: JSONValue) throws -> JSONValue {
                try client.call(
                    "session.configure",
                    [
                        "session": session,
                        "actions": [["preset": preset], ["setInput": ["device": "cam0", "frameRate": rate]]],
                    ], within: 30)
            }
            func setting() throws -> [JSONValue] {
                let device = try client.call("bus.snapshot", ["prefix": "state/device/cam0/"])["state"]?[
                    "state/device/cam0/"]
                return [
                    device?["activeFormat"]?["width"] ?? .null, device?["activeFormat"]?["height"] ?? .null,
                    device?["frameDuration"] ?? .null,
                ]
            }
            let one = try make("1920x1080", rate: 30)
            try client.call("session.start", ["session": one])
            #expect(try setting() == [1920, 1080, "1/30"])
            let lowered = try lower(one, to: "640x480", rate: 15)
            #expect(lowered["state"]?["state"] == "running")
            #expect(lowered["resolved"]?[0]?["topic"] == "frame/cam0/bgr:640x480@15/")
            try await eventually { try setting() == [640, 480, "1/15"] }
            let frame = try FrameReader(bus, "cam0", "native").next()
            #expect(frame.header["width"] == 640 && frame.header["height"] == 480)
            // Where another session needs what streams, it stays; when that one goes, nobody has asked for a gap.
            _ = try lower(one, to: "1280x720", rate: 30)
            let other = try make("640x480", rate: 15)
            try client.call("session.start", ["session": other])
            _ = try lower(other, to: "640x480", rate: 10)
            #expect(try setting() == [1280, 720, "1/30"])
            try client.call("session.delete", ["session": one])
            let left = try client.call("session.get", ["session": other])
            #expect(left["resolved"]?[0]?["topic"] == "frame/cam0/bgr:640x480@10/")
            #expect(try setting() == [1280, 720, "1/30"])
            // A lock keeps it too, for as long as it is held.
            let lock = try client.call("device.lock", ["devices": ["cam0"]])
            _ = try lower(other, to: "640x480", rate: 5)
            #expect(try setting() == [1280, 720, "1/30"])
            try client.call("device.unlock", ["lock": lock["lock"] ?? .null])
            try await eventually { try setting() == [640, 480, "1/5"] }
            try await bus.stop()
        }

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
