import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import Testing

extension ProcessTests {
    /// Whose movies are, and where they may be.
    @Suite(
        .timeLimit(.minutes(5)),
        .enabled(if: OtherUser.isPossible, "left out: \(OtherUser.obstacle ?? "")")) struct MoviePermission
    {
        private func start(_ bus: BusHarness, _ user: OtherUser, _ params: String) async throws -> JSONValue {
            let result = try await bus.run("camerabus", ["call", "movie.start", params], as: user)
            guard result.status == 0 else { return .string(result.standardError) }
            return try JSONValue(parsing: result.standardOutput)
        }

        private func call(_ bus: BusHarness, _ method: String, _ params: JSONValue = [:]) throws -> JSONValue {
            try RawClient(path: bus.directory.commandSocket).call(method, params)
        }

        @Test func `who may not record is asked about, may write where all may, and only so long`() async throws {
            let user = OtherUser.first
            let bus = try await BusHarness(
                virtual: 1, configuration: OtherUser.configuration + "[library]\nroots = [\"/tmp/camerabus-nobody\"]\n")
            let movie = #"{"device":"cam0","name":"a.mp4","detached":true}"#
            let refused = try await start(bus, user, movie)
            #expect(refused.string?.contains("unauthorized") == true, "\(refused)")
            // The camera and the library, at once.
            try await bus.wait(for: "state/authorization/\(user.uid)/") { $0?["asked"] == ["video", "libraryAdd"] }
            let media: JSONValue = ["video", "libraryAdd"]
            _ = try call(bus, "authorization.grant", ["uid": JSONValue(user.uid), "media": media])

            for path in ["/etc/a.mp4", "/tmp/camerabus-nobodyX/a.mp4"] {
                let elsewhere = try await start(bus, user, #"{"device":"cam0","path":"\#(path)"}"#)
                #expect(elsewhere.string?.contains("pathNotAllowed") == true, "\(elsewhere)")
            }
            let started = try await start(bus, user, movie)
            let id = try #require(started["movie"]?.string, "\(started)")
            let ears = try Movies.Ears(bus)
            // Nobody else's, and seen by all.
            let other = OtherUser.second
            let stopped = try await bus.run("camerabus", ["call", "movie.stop", #"{"movie":"\#(id)"}"#], as: other)
            #expect(stopped.status == 1 && stopped.standardError.contains("unauthorized"), "\(stopped)")
            let seen = try await bus.run("camerabus", ["call", "movie.status", #"{"movie":"\#(id)"}"#], as: other)
            #expect(seen.status == 0, "\(seen)")

            _ = try call(bus, "authorization.deny", ["uid": JSONValue(user.uid), "media": "libraryAdd"])
            let end = try ears.next("didFinishRecording", of: id)
            #expect(end["reason"] == "unauthorized" && end["success"] == false && end["kept"] == true)
            let again = try await start(bus, user, movie)
            #expect(again.string?.contains("unauthorized") == true)
            try await bus.stop()
        }

        @Test func `a link leads nobody out of the folder`() async throws {
            let user = OtherUser.first
            let root = "/tmp/camerabus-test-\(getpid())"
            mkdir(root, 0o755)
            symlink("/etc", "\(root)/out")
            symlink("/tmp", "\(root)/up")
            // By which it is allowed, too.
            let link = "\(root)-link"
            symlink(root, link)
            defer {
                for link in ["out", "up"] { unlink("\(root)/\(link)") }
                unlink(link)
                rmdir(root)
            }
            let bus = try await BusHarness(
                virtual: 1,
                configuration: OtherUser.configuration + "[library]\nroots = [\"\(root)\", \"\(link)\"]\n"
                    + "[permission.users]\n\(user.uid) = \"control\"\n")
            let started = try await start(
                bus, user, #"{"device":"cam0","path":"\#(link)/a.mp4","detached":true}"#)
            let movie = started["movie"] ?? .null
            #expect(started["path"]?.string == "\(link)/a.mp4", "\(started)")
            let client = try RawClient(path: bus.directory.commandSocket)
            try client.call("movie.stop", ["movie": movie], within: 30)
            // Whoever follows no link finds it all the same.
            let deleted = try client.call("library.delete", ["id": movie], within: 30)["deleted"]?.array ?? []
            #expect(deleted.first?.string == "\(root)/a.mp4" && access("\(root)/a.mp4", F_OK) != 0, "\(deleted)")
            for link in ["out", "up"] {
                let path = "\(root)/\(link)/camerabus-test.mp4"
                let refused = try await start(bus, user, #"{"device":"cam0","path":"\#(path)"}"#)
                #expect(refused.string?.contains("pathNotAllowed") == true, "\(refused)")
            }
            try await bus.stop()
        }
    }
}
