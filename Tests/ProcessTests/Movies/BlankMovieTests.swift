import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import Testing

extension ProcessTests {
    /// Movies of users who may have only one of camera and microphone.
    @Suite(
        .timeLimit(.minutes(5)),
        .enabled(if: OtherUser.isPossible, "left out: \(OtherUser.obstacle ?? "")")) struct BlankMovies
    {
        private static let user = OtherUser.first

        private func start(_ bus: BusHarness, _ params: String) async throws -> JSONValue {
            try await call(bus, "movie.start", params)
        }

        private func decide(_ client: RawClient, _ method: String, _ media: JSONValue) throws {
            try client.call("authorization.\(method)", ["uid": JSONValue(Self.user.uid), "media": media])
        }

        @Test func `what may not be had is blank, from the start or from when it is taken back`() async throws {
            let bus = try await BusHarness(virtual: 1, microphones: 1, configuration: OtherUser.configuration)
            let client = try RawClient(path: bus.directory.commandSocket)
            try decide(client, "grant", ["video", "libraryAdd"])
            let movie = #"{"device":"cam0","microphone":"mic0","fileType":"mov","detached":true"#
            let refused = try await start(bus, movie + "}")
            #expect(refused.string?.contains("unauthorized") == true)
            let silent = try await start(bus, movie + #","whenDenied":"blank"}"#)
            #expect(silent["blank"] == ["audio"] && silent["audio"]?["rate"] == 48000, "\(silent)")
            // It is asked about all the same.
            try await bus.wait(for: "state/authorization/\(Self.user.uid)/") { $0?["asked"] == ["audio"] }
            // Nobody listens.
            let ears = try client.call("device.who", ["device": "mic0"])["subscribers"]?.array
            #expect(ears == [])
            let id = try #require(silent["movie"]?.string)
            let seen = try client.call("movie.status", ["movie": .string(id)])["movie"]
            #expect(seen?["blank"] == ["audio"] && seen?["microphone"] == "mic0")
            // The last that it was made of.
            let events = try Movies.Ears(bus)
            try decide(client, "deny", "video")
            #expect(try events.next("didFinishRecording", of: id)["reason"] == "unauthorized")

            // Neither of them; and black for the camera.
            let nothing = try await start(bus, movie + #","whenDenied":"blank"}"#)
            #expect(nothing.string?.contains("unauthorized") == true)
            try decide(client, "grant", "audio")
            let black = try await start(bus, movie + #","whenDenied":"blank"}"#)
            #expect(black["blank"] == ["video"] && black["video"]?["codec"] == "h264", "\(black)")
            // The recorder of the movie before has left a moment after its end.
            try await eventually { try client.call("device.who", ["device": "cam0"])["subscribers"] == [] }
            try client.call("movie.stop", ["movie": black["movie"] ?? .null], within: 30)

            // Taken back, with a death of the bus in between.
            try decide(client, "grant", "video")
            let real = try await start(bus, movie + #","whenDenied":"blank"}"#)
            #expect(real["blank"] == nil && real["movie"] != nil, "\(real)")
            let topic = "state/movie/\(real["movie"]?.string ?? "")/"
            try decide(client, "deny", "audio")
            try await bus.wait(for: topic) { $0?["blank"] == ["audio"] }
            try await bus.killCoordinator()
            try await bus.startCoordinator()
            let again = try RawClient(path: bus.directory.commandSocket)
            try await bus.wait(for: topic) { $0?["blank"] == ["audio"] && $0?["state"] == "recording" }
            let end = try again.call("movie.stop", ["movie": real["movie"] ?? .null], within: 30)
            #expect(end["success"] == true && end["kept"] == true)
            try await bus.stop()
        }

        @Test func `a session runs without inputs that are optional for its movie`() async throws {
            let bus = try await BusHarness(virtual: 1, microphones: 1, configuration: OtherUser.configuration)
            let client = try RawClient(path: bus.directory.commandSocket)
            try decide(client, "grant", ["video", "libraryAdd"])
            let output = #"{"type":"movie","whenDenied":"blank"}"#
            let create = #"{"inputs":["cam0","mic0"],"outputs":[\#(output)],"preset":"640x480","detached":true}"#
            let made = try await call(bus, "session.create", create)
            let session = try #require(made["session"]?.string, "\(made)")
            #expect(made["state"]?["outputs"]?[0]?["whenDenied"] == "blank")
            let topic = "state/session/\(session)/"
            _ = try await call(bus, "session.start", #"{"session":"\#(session)"}"#)
            try await bus.wait(for: topic) { $0?["state"] == "running" }
            let movie = try await start(bus, #"{"session":"\#(session)"}"#)
            #expect(movie["blank"] == ["audio"] && movie["microphone"] == "mic0", "\(movie)")
            // Allowed, it is in the next one; taken back, the session goes on without it.
            try decide(client, "grant", "audio")
            try client.call("movie.stop", ["movie": movie["movie"] ?? .null], within: 30)
            let whole = try await start(bus, #"{"session":"\#(session)"}"#)
            #expect(whole["movie"] != nil && whole["blank"] == nil, "\(whole)")
            try decide(client, "deny", "audio")
            try await bus.wait(for: "state/movie/\(whole["movie"]?.string ?? "")/") { $0?["blank"] == ["audio"] }
            try await bus.wait(for: topic) { $0?["state"] == "running" }
            // Without the camera there is nothing.
            try decide(client, "deny", "video")
            try await bus.wait(for: topic) { $0?["state"] == "stopped" }
            try await bus.stop()
        }

        private func call(_ bus: BusHarness, _ method: String, _ params: String) async throws -> JSONValue {
            let result = try await bus.run("camerabus", ["call", method, params], as: Self.user)
            guard result.status == 0 else { return .string(result.standardError) }
            return try JSONValue(parsing: result.standardOutput)
        }
    }
}
