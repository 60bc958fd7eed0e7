import BusProtocol
import CameraBusTesting
import JSON
import Testing

extension ProcessTests {
    /// Those who look at a camera without having a session, beside those who have one.
    @Suite(.timeLimit(.minutes(5))) struct SessionAudience {
        private static func create(_ client: RawClient, _ format: JSONValue, rate: Int64, name: String) throws -> String
        {
            let inputs: JSONValue = [["device": "cam0", "activeFormat": format, "frameRate": .integer(rate)]]
            let made = try client.call("session.create", ["inputs": inputs, "name": .string(name)])
            return try #require(made["session"]?.string)
        }

        @Test func `plain subscribers of native follow a session's format, and are told of`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let (first, second) = (try FrameReader(bus, "cam0", "native"), try FrameReader(bus, "cam0", "native"))
            let before = try first.next()
            _ = try second.next()
            #expect(before.header["width"] != 640)
            let session = try Self.create(
                client, ["pixelFormat": "YUYV", "width": 640, "height": 480], rate: 30, name: "one")
            let sentence = "2 plain subscribers of native follow, whatever cam0 is set to."
            // Their first frames may overtake what the bus is told of them.
            try await eventually {
                let forecast = try client.call("session.get", ["session": .string(session)])["explanation"]
                return forecast?.array?.contains(.string(sentence)) == true
            }
            let started = try client.call("session.start", ["session": .string(session)])
            #expect(started["state"]?["state"] == "running")
            let explanation = started["explanation"]
            #expect(explanation?.array?.contains(.string(sentence)) == true, "\(explanation ?? .null)")
            for reader in [first, second] {
                var frame = try reader.next()
                while frame.header["width"] != 640 { frame = try reader.next() }
                #expect(frame.header["format"] == "YUYV")
            }
            // The session's own topic makes nobody a plain subscriber.
            let topic = try #require(started["resolved"]?.array?.first?["rendition"]?.string)
            let own = try FrameReader(bus, "cam0", topic)
            _ = try own.next()
            let told = try client.call("session.get", ["session": .string(session)])["explanation"]
            #expect(told?.array?.contains { $0.string?.contains(topic) == true } == false, "\(told ?? .null)")
            try await bus.stop()
        }

        @Test func `a plain subscriber never keeps a session from its format, and is told why it waits`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let viewer = try FrameReader(bus, "cam0", "jpeg:1280x720")
            _ = try viewer.next()
            let session = try Self.create(
                client, ["pixelFormat": "GREY", "width": 64, "height": 48], rate: 15, name: "small")
            let started = try client.call("session.start", ["session": .string(session)])
            #expect(started["state"]?["state"] == "running")
            let state = try await bus.wait(for: "state/session/\(session)/") {
                $0?["explanation"]?.array?.count ?? 0 > 1
            }
            let told = state?["explanation"]?.array?.compactMap(\.string) ?? []
            let wanted =
                "a plain subscriber of jpeg:1280x720 waits: it wants jpeg:1280x720, and small, which has a session, "
                + "has the format 64x48 GREY at 15/s."
            #expect(told.contains(wanted), "\(told)")
            #expect(try viewer.error().reason == .formatUnsupported)
            // With the session goes what it wanted; the format stays until somebody sets another.
            try client.call("session.delete", ["session": .string(session)])
            try await bus.stop()
        }
    }
}
