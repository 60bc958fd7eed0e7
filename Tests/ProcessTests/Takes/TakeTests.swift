import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

extension ProcessTests {
    /// Takes, from the first segment to the movie that is made of them.
    @Suite(.timeLimit(.minutes(5))) struct Takes {
        let home: TemporaryDirectory
        init() throws { home = try TemporaryDirectory() }

        func bus(
            _ virtual: Int = 1, configuration: String? = nil, arguments: [String] = []
        ) async throws -> BusHarness {
            try await BusHarness(
                virtual: virtual, microphones: 1, configuration: configuration,
                arguments: ["--state-dir", home.path] + arguments)
        }

        func id(_ answer: JSONValue) throws -> JSONValue { try #require(answer["take"]?["id"]) }

        func exists(_ path: JSONValue?) throws -> Bool {
            access(try #require(path?.string), F_OK) == 0
        }

        /// Records a segment of at least so many milliseconds.
        func segment(
            _ bus: BusHarness, _ client: RawClient, _ take: JSONValue, _ milliseconds: Int64 = 200
        ) async throws -> JSONValue {
            _ = try client.call("take.record", ["take": take])
            try await bus.wait(for: "state/take/\(take.string ?? "")/") {
                ($0?["duration"]?.integer ?? 0) >= milliseconds
            }
            return try client.call("take.pause", ["take": take])
        }

        @Test func `segments are recorded, deleted and joined`() async throws {
            let bus = try await bus()
            let (client, ears) = (try RawClient(path: bus.directory.commandSocket), try Movies.Ears(bus, "take"))
            let take = try id(
                client.call(
                    "take.create",
                    ["device": "cam0", "microphone": "mic0", "name": "belt.mp4", "minDuration": 60_000]))
            #expect(try client.refusal("take.pause", ["take": take])?.reason == .notRecording)
            #expect(try client.refusal("take.finish", ["take": take])?.reason == .notRecording)

            let started = try client.call("take.record", ["take": take])
            let path = try #require(started["path"]?.string)
            #expect(path.hasSuffix("/belt-1.mp4") && started["take"] == take && started["part"] == 1)
            #expect(started["video"]?["codec"] == "h264" && started["audio"]?["codec"] == "aac")
            #expect(try client.refusal("take.record", ["take": take])?.reason == .recordingInProgress)
            let begun = try ears.next("didStartSegment")
            #expect(begun["segment"] == started["movie"] && begun["path"] == started["path"])
            let progress = try ears.next("recordProgress")
            #expect((progress["duration"]?.integer ?? 0) > 0 && progress["total"] == progress["duration"])
            let end = try client.call("take.pause", ["take": take])
            #expect(end["segment"] == started["movie"] && end["success"] == true && end["kept"] == true)
            let told = try ears.next("didEndSegment")
            for name in ["segment", "path", "reason", "duration", "total", "remaining"] {
                #expect(told[name] == end[name], "\(name)")
            }
            try ears.next("recordDurationLessMinRecordDuration")
            #expect(try client.call("take.pause", ["take": take]) == end, "it has ended already")

            // A segment is a movie, and ends as one, too.
            let second = try client.call("take.record", ["take": take])
            #expect(try client.call("movie.stop", ["movie": second["movie"] ?? .null])["success"] == true)
            let third = try await segment(bus, client, take)
            let state = try client.call("take.get", ["take": take])["take"]
            #expect(state?["state"] == "paused" && state?["segments"]?.array?.count == 3)
            #expect(state?["total"] == third["total"] && state?["video"]?["width"] == started["video"]?["width"])

            // It ends with the process that asked for it, and stays.
            let params = #"{"take":"\#(take.string ?? "")"}"#
            let orphan = try JSONValue(
                parsing: try await bus.run("camerabus", ["call", "take.record", params]).standardOutput)
            var left = try ears.next("didEndSegment")
            while left["segment"] != orphan["movie"] { left = try ears.next("didEndSegment") }
            #expect(left["reason"] == "ownerGone" && left["success"] == true && left["kept"] == true)
            _ = try client.call("take.delete", ["take": take, "segment": orphan["movie"] ?? .null])

            let deleted = try client.call("take.delete", ["take": take, "segment": second["movie"] ?? .null])
            #expect(deleted["deleted"]?.array?.count == 2 && deleted["take"]?["segments"]?.array?.count == 2)
            #expect(try !exists(second["path"]) && exists(started["path"]))
            try ears.next("didDeleteSegment")
            let unknown = try client.refusal("take.delete", ["take": take, "segment": "nobody"])
            #expect(unknown?.data["path"] == "segment")

            let movie = try client.call("take.finish", ["take": take], within: 30)
            #expect(movie["path"]?.string?.hasSuffix("/belt.mp4") == true && movie["encoded"] == false)
            let sum = (end["duration"]?.integer ?? 0) + (third["duration"]?.integer ?? 0)
            #expect(abs((movie["duration"]?.integer ?? 0) - sum) <= 150, "\(movie) of \(sum)")
            #expect(try exists(movie["path"]) && exists(movie["cover"]) && !exists(started["path"]))
            let finished = try ears.next("didFinishTake")
            #expect(finished["success"] == true && finished["path"] == movie["path"])
            let entry = try client.call("library.get", ["id": take])["entry"]
            #expect(entry?["kind"] == "take" && entry?["state"] == "finished" && entry?["path"] == movie["path"])
            #expect(try client.call("library.list")["entries"]?.array?.count == 1)
            #expect(try client.refusal("take.get", ["take": take])?.reason == .takeNotFound)
            #expect(try client.call("take.list")["takes"] == [])
            #expect(try client.call("bus.snapshot", ["prefix": "state/take/"])["state"] == [:])
            try await bus.stop()
        }

        @Test func `a full take ends by itself, and a take that can't be finished stays unchanged`() async throws {
            let bus = try await bus()
            let (client, ears) = (try RawClient(path: bus.directory.commandSocket), try Movies.Ears(bus, "take"))
            let take = try id(client.call("take.create", ["device": "cam0", "name": "full", "maxDuration": 4000]))
            let one = try await segment(bus, client, take, 1500)
            #expect(one["remaining"]?.integer == 4000 - (one["duration"]?.integer ?? 0))
            _ = try client.call("take.record", ["take": take])
            var end = try ears.next("didEndSegment")
            while end["segment"] == one["segment"] { end = try ears.next("didEndSegment") }
            #expect(end["reason"] == "maximumDurationReached" && end["success"] == true)
            #expect(end["remaining"] == 0 && (end["total"]?.integer ?? 10_000) < 4034, "\(one) \(end)")
            try ears.next("recordDurationLargerEqualMaxRecordDuration")
            #expect(try client.call("take.pause", ["take": take])["segment"] == end["segment"])
            let full = try client.refusal("take.record", ["take": take])
            #expect(full?.reason == .limitExceeded && full?.data["limit"] == "maxDuration")
            // There is room again.
            _ = try client.call("take.delete", ["take": take, "segment": one["segment"] ?? .null])
            let next = try await segment(bus, client, take, 50)
            let last = try #require(next["path"]?.string)
            #expect(last.hasSuffix("/full-3.mp4"))

            let other = "\(home.path)/there.mp4"
            try File.replace(other, with: Array("precious".utf8), mode: 0o600)
            let there = try client.refusal("take.finish", ["take": take, "path": .string(other)])
            #expect(there?.reason == .invalidParams && there?.data["path"] == "path")
            #expect(try ears.next("didFinishTake")["success"] == false)
            try File.replace(last, with: Array("no movie".utf8), mode: 0o600)
            #expect(try client.refusal("take.finish", ["take": take]) != nil)
            #expect(try File.read(other, limit: 100) == Array("precious".utf8))
            let state = try client.call("take.get", ["take": take])["take"]
            #expect(state?["state"] == "paused" && state?["segments"]?.array?.count == 2)
            #expect(try client.refusal("take.finish", ["take": take, "name": "a.mov"])?.data["path"] == "name")

            _ = try client.call("take.record", ["take": take])
            let thrown = try client.call("take.discard", ["take": take])
            #expect(thrown["take"] == take)
            try ears.next("didDiscardTake")
            #expect(try client.call("take.list")["takes"] == [] && !exists(end["path"]))
            #expect(try client.call("movie.list")["movies"] == [])
            try await bus.stop()
        }

        @Test func `what can't be written of a take is named, and written when it can be`() async throws {
            let bus = try await bus()
            let client = try RawClient(path: bus.directory.commandSocket)
            // No file can take its place.
            let path = "\(home.path)/takes.json"
            try #require(mkdir(path, 0o700) == 0)
            let made = try client.call("take.create", ["device": "cam0", "name": "t"])
            #expect(made["kept"] == false)
            let take = made["take"]?["id"] ?? .null
            let segment = try client.call("take.record", ["take": take], within: 60)
            #expect(segment["kept"] == false)
            #expect(try client.call("take.pause", ["take": take], within: 60)["kept"] == true)
            let told = try await bus.run("camerabus", ["take", "create", "cam0"])
            #expect(told.status == 0 && told.standardError.contains("could not be written"), "\(told)")
            let deleted = try client.call("take.delete", ["take": take, "segment": segment["movie"] ?? .null])
            #expect(deleted["kept"] == false)
            try #require(rmdir(path) == 0)
            try await eventually {
                let bytes = (try? File.read(path, limit: 1 << 20)) ?? []
                return (try? JSONValue(parsing: bytes))?["takes"]?[take.string ?? ""] != nil
            }
            #expect(try client.call("take.discard", ["take": take])["kept"] == nil)
            try await bus.killCoordinator()
            try await bus.startCoordinator()
            let next = try RawClient(path: bus.directory.commandSocket)
            let left = try next.call("take.list")["takes"]?.array ?? []
            #expect(left.count == 1 && left.first?["id"] != take)
            try await bus.stop()
        }

        @Test func `a take outlives the death of the bus`() async throws {
            let bus = try await bus(2)
            var client = try RawClient(path: bus.directory.commandSocket)
            // A segment that goes on, and one that dies with the bus.
            let one = try id(client.call("take.create", ["device": "cam0", "detached": true]))
            let two = try id(client.call("take.create", ["device": "cam1", "name": "two", "detached": true]))
            let first = try await segment(bus, client, one)
            let running = try client.call("take.record", ["take": one])
            let dying = try await segment(bus, client, two)
            let dead = try client.call("take.record", ["take": two])
            let movie = try #require(dead["movie"]?.string)
            let recorder = try bus.recorder(of: movie)
            try await bus.killCoordinator()
            recorder.send(SIGKILL)
            try await bus.startCoordinator()
            client = try RawClient(path: bus.directory.commandSocket)
            let state = try client.call("take.get", ["take": one])["take"]
            #expect(state?["segments"]?.array?.map { $0["id"] } == [first["segment"]])
            #expect(state?["segment"] == running["movie"] && state?["state"] == "recording")
            let end = try client.call("take.pause", ["take": one])
            #expect(end["segment"] == running["movie"] && end["success"] == true)
            #expect(try client.call("take.get", ["take": one])["take"]?["segments"]?.array?.count == 2)
            try await bus.wait(for: "state/take/\(two.string ?? "")/") { $0?["state"] == "paused" }
            let left = try client.call("take.get", ["take": two])["take"]?["segments"]?.array ?? []
            #expect(left.first?["id"] == dying["segment"])
            #expect(try client.call("take.finish", ["take": one], within: 30)["encoded"] == false)
            try await bus.stop()
            // In order, too.
            let again = try await self.bus(2)
            let takes = try RawClient(path: again.directory.commandSocket).call("take.list")["takes"]?.array ?? []
            #expect(takes.map { $0["id"] } == [two] && takes.first?["name"] == "two")
            try await again.stop()
        }

        @Test func `a session's take continues when the camera is switched`() async throws {
            let bus = try await bus(2)
            let (client, ears) = (try RawClient(path: bus.directory.commandSocket), try Movies.Ears(bus, "take"))
            let session = try #require(
                client.call(
                    "session.create", ["preset": "640x480", "inputs": ["cam0", "mic0"], "outputs": ["movie"]])[
                        "session"])
            let take = try id(client.call("take.create", ["session": session, "name": "both"]))
            #expect(try client.refusal("take.record", ["take": take])?.reason == .sessionNotRunning)
            try client.call("session.start", ["session": session])
            let started = try client.call("take.record", ["take": take])
            #expect(started["devices"] == ["cam0", "mic0"])
            try client.call("session.switchCamera", ["session": session, "device": "cam1"])
            let topic = "state/take/\(take.string ?? "")/"
            let switched = try await bus.wait(for: topic) { $0?["device"] == "cam1" }
            #expect(switched?["segment"] == started["movie"] && switched?["state"] == "recording")
            let duration = switched?["duration"]?.integer ?? 0
            try await bus.wait(for: topic) { ($0?["duration"]?.integer ?? 0) > duration + 300 }
            let end = try client.call("take.pause", ["take": take])
            #expect(end["segment"] == started["movie"] && end["success"] == true && end["reason"] == "stopped")
            // With its session ends the segment, not the take.
            let next = try client.call("take.record", ["take": take])
            #expect(next["devices"] == ["cam1", "mic0"])
            try client.call("session.delete", ["session": session])
            var last = try ears.next("didEndSegment")
            while last["segment"] != next["movie"] { last = try ears.next("didEndSegment") }
            #expect(last["reason"] == "stopped")
            #expect(try client.refusal("take.record", ["take": take])?.reason == .sessionNotFound)
            let movie = try client.call("take.finish", ["take": take], within: 30)
            #expect(movie["encoded"] == false, "all pictures have the size of the first")
            try await bus.stop()
        }

        @Test(.enabled(if: OtherUser.isPossible, "left out: \(OtherUser.obstacle ?? "")"))
        func `only its user has a take`() async throws {
            let (user, other) = (OtherUser.first, OtherUser.second)
            let bus = try await bus(
                configuration: OtherUser.configuration + "[permission.users]\n\(user.uid) = \"control\"\n"
                    + "\(other.uid) = \"control\"\n")
            func call(_ method: String, _ params: String, as user: OtherUser) async throws -> ProgramResult {
                try await bus.run("camerabus", ["call", method, params], as: user)
            }
            let created = try await call("take.create", #"{"device":"cam0","detached":true}"#, as: user)
            try #require(created.status == 0, "\(created)")
            let take = try id(try JSONValue(parsing: created.standardOutput)).string ?? ""
            let params = #"{"take":"\#(take)"}"#
            for method in ["take.record", "take.pause", "take.finish", "take.discard"] {
                let refused = try await call(method, params, as: other)
                #expect(refused.status == 1 && refused.standardError.contains("unauthorized"), "\(method) \(refused)")
            }
            #expect(try await call("take.get", params, as: other).status == 0)
            // From another process of its user, and by an administrator.
            #expect(try await call("take.record", params, as: user).status == 0)
            let client = try RawClient(path: bus.directory.commandSocket)
            #expect(try client.call("take.pause", ["take": .string(take)])["success"] == true)
            #expect(try await call("take.discard", params, as: user).status == 0)
            try await bus.stop()
        }
    }
}
