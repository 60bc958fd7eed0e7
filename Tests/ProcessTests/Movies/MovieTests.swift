import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing
import ZeroMQ

extension ProcessTests {
    /// Movies, as the bus begins, tells and ends them.
    @Suite(.timeLimit(.minutes(5))) struct Movies {
        /// Hears of all movies, or takes, from its making on.
        struct Ears {
            private let events: RawClient
            private let kind: String

            init(_ bus: BusHarness, _ kind: String = "movie") throws {
                self.kind = kind
                events = try RawClient(.subscribe, path: bus.directory.eventsSocket, topics: ["welcome/"])
                _ = try events.receive()
                for topic in ["event/\(kind)/", "event/bus/", "ack/movies/"] { try events.socket.subscribe(topic) }
                while try Self.read(events.receive()).topic != "ack/movies/" {}
            }

            private static func read(_ message: [Message]) throws -> (topic: String, body: JSONValue) {
                let topic = String(decoding: try #require(message.first).bytes, as: UTF8.self)
                return (topic, try JSONValue(parsing: try #require(message.last).bytes))
            }

            /// The next event of that name; those before it are passed over.
            @discardableResult
            func next(_ event: String, of movie: String? = nil) throws -> JSONValue {
                while true {
                    let (topic, body) = try Self.read(events.receive(within: 20))
                    guard body["event"]?.string == event, movie.map({ topic == "event/\(kind)/\($0)/" }) ?? true else {
                        continue
                    }
                    return body
                }
            }

            /// The names of all events until one, the bus's last word unless another is named.
            func all(until last: String = "ended") throws -> [String] {
                var names: [String] = []
                while names.last != last {
                    names.append(try Self.read(events.receive(within: 20)).body["event"]?.string ?? "")
                }
                return names
            }
        }

        func path(_ bus: BusHarness, _ name: String) -> JSONValue { .string("\(bus.scratchPath)/\(name)") }

        /// When the frames of a movie were taken, by its side-car: monotonic nanoseconds.
        func frameTimes(_ bus: BusHarness, _ name: String) throws -> [Int64] {
            let bytes = try File.read("\(bus.scratchPath)/\(name).frames.jsonl", limit: 1 << 20)
            return try String(decoding: bytes, as: UTF8.self).split(separator: "\n").compactMap {
                try JSONValue(parsing: String($0))["timestamp"]?.integer
            }
        }

        func exists(_ bus: BusHarness, _ name: String) -> Bool {
            access("\(bus.scratchPath)/\(name)", F_OK) == 0
        }

        func movie(_ started: JSONValue) throws -> String { try #require(started["movie"]?.string) }

        func recorder(_ client: RawClient, _ device: JSONValue) throws -> Int32 {
            let users = try client.call("device.who", ["device": device])["subscribers"]?.array ?? []
            let recorder = try #require(users.first { $0["name"] == "camerabus-recorder" })
            return try #require(recorder["pid"]?.integer.flatMap { Int32(exactly: $0) })
        }

        @Test func `a movie of a camera is started, published and stopped`() async throws {
            let bus = try await BusHarness(virtual: 1, microphones: 1)
            let (client, ears) = (try RawClient(path: bus.directory.commandSocket), try Ears(bus))
            let started = try client.call(
                "movie.start", ["device": "cam0", "microphone": "mic0", "path": path(bus, "a.mp4")])
            let id = try movie(started)
            #expect(exists(bus, "a.mp4"))
            #expect(started["devices"] == ["cam0", "mic0"] && started["fileType"] == "mp4" && started["part"] == 1)
            #expect(started["video"]?["codec"] == "h264" && started["audio"]?["codec"] == "aac")
            try ears.next("didStartRecording", of: id)
            try await bus.wait(for: "state/movie/\(id)/") {
                $0?["state"] == "recording" && ($0?["frames"]?.integer ?? 0) > 5
            }
            #expect(try client.call("movie.list")["movies"]?.array?.map { $0["id"] } == [.string(id)])

            let paused = try client.call("movie.pause", ["movie": .string(id)])["movie"]
            #expect(paused?["state"] == "paused")
            #expect(try client.call("movie.pause", ["movie": .string(id)])["movie"]?["state"] == "paused")
            try ears.next("didPauseRecording", of: id)
            #expect(try client.call("movie.resume", ["movie": .string(id)])["movie"]?["state"] == "recording")
            try ears.next("didResumeRecording", of: id)

            let end = try client.call("movie.stop", ["movie": .string(id)])
            #expect(
                end["reason"] == "stopped" && end["success"] == true && end["kept"] == true && end["error"] == .null)
            #expect((end["frames"]?.integer ?? 0) > 5 && (end["size"]?.integer ?? 0) > 0)
            let told = try ears.next("didFinishRecording", of: id)
            for name in ["movie", "path", "reason", "duration", "size", "frames", "dropped", "next"] {
                #expect(told[name] == end[name], "\(name)")
            }
            // What has ended is known for a while, and ends no second time.
            #expect(try client.call("movie.stop", ["movie": .string(id)]) == end)
            let status = try client.call("movie.status", ["movie": .string(id)])["movie"]
            #expect(status?["state"] == "finished" && status?["end"] == end)
            #expect(try client.refusal("movie.pause", ["movie": .string(id)])?.reason == .notRecording)
            #expect(try client.refusal("movie.status", ["movie": "nobody"])?.reason == .notRecording)
            #expect(try client.call("movie.list")["movies"] == [])
            let state = try client.call("bus.snapshot", ["prefix": "state/movie/"])["state"]
            #expect(state == [:])
            try await bus.stop()
        }

        @Test func `invalid requests are refused at the start`() async throws {
            let bus = try await BusHarness(virtual: 1, microphones: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            try bus.write("precious", to: "there.mp4")
            let there = try client.refusal("movie.start", ["device": "cam0", "path": path(bus, "there.mp4")])
            #expect(there?.reason == .invalidParams && there?.data["path"] == "path")
            #expect(try File.read("\(bus.scratchPath)/there.mp4", limit: 100) == Array("precious".utf8))
            let refusals: [(JSONValue, BusError.Reason, JSONValue?)] = [
                ([:], .invalidParams, "device"), (["device": "cam9"], .deviceNotFound, nil),
                (["rig": "nobody"], .rigNotFound, nil), (["session": "nobody"], .sessionNotFound, nil),
                (["device": "cam0", "rig": "x"], .invalidParams, "rig"),
                (["device": "cam0", "microphone": "cam0"], .invalidParams, "microphone"),
                (["device": "cam0", "microphone": "mic0", "settings": .null], .invalidParams, "settings"),
                (["device": "cam0", "name": "../a.mp4"], .invalidParams, "name"),
                (["device": "cam0", "path": "/tmp/../etc/a.mp4"], .invalidParams, "path"),
                (["device": "cam0", "name": "a.mp4", "path": "/tmp/a.mp4"], .invalidParams, "name"),
            ]
            for (params, reason, place) in refusals {
                let error = try client.refusal("movie.start", params)
                #expect(error?.reason == reason, "\(params)")
                if let place { #expect(error?.data["path"] == place, "\(params)") }
            }
            #expect(try client.call("movie.list")["movies"] == [])
            try await bus.stop()
        }

        @Test func `one movie of a device at a time`() async throws {
            let bus = try await BusHarness(virtual: 1, microphones: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let first = try movie(client.call("movie.start", ["device": "cam0", "path": path(bus, "a.mp4")]))
            let second = try client.refusal("movie.start", ["device": "cam0", "path": path(bus, "b.mp4")])
            #expect(second?.reason == .recordingInProgress && second?.data["movie"]?.string == first)
            #expect(!exists(bus, "b.mp4"))
            // Of another device, and when the first has ended, it may.
            let sound = try movie(client.call("movie.start", ["device": "mic0", "path": path(bus, "s.mkv")]))
            try client.call("movie.stop", ["movie": .string(first)])
            let third = try movie(client.call("movie.start", ["device": "cam0", "path": path(bus, "b.mp4")]))
            for id in [sound, third] {
                #expect(try client.call("movie.stop", ["movie": .string(id)])["success"] == true)
            }
            try await bus.stop()
        }

        @Test func `a movie ends with its process, unless it is detached`() async throws {
            let bus = try await BusHarness(virtual: 2)
            let (client, ears) = (try RawClient(path: bus.directory.commandSocket), try Ears(bus))
            for (device, detached) in [("cam0", "false"), ("cam1", "true")] {
                let params =
                    #"{"device":"\#(device)","path":"\#(bus.scratchPath)/\#(device).mp4","detached":\#(detached)}"#
                let result = try await bus.run("camerabus", ["call", "movie.start", params])
                try #require(result.status == 0, "\(result)")
            }
            let end = try ears.next("didFinishRecording")
            #expect(end["reason"] == "ownerGone" && end["success"] == true && end["kept"] == true)
            #expect(end["path"] == path(bus, "cam0.mp4"))
            let left = try client.call("movie.list")["movies"]?.array ?? []
            #expect(left.map { $0["device"] } == ["cam1"] && left.first?["detached"] == true)
            let id = try #require(left.first?["id"])
            #expect(try client.call("movie.stop", ["movie": id])["reason"] == "stopped")
            try await bus.stop()
        }

        @Test func `a movie ends by itself`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let (client, ears) = (try RawClient(path: bus.directory.commandSocket), try Ears(bus))
            let id = try movie(
                client.call("movie.start", ["device": "cam0", "path": path(bus, "a.mov"), "maxDuration": 400]))
            let end = try ears.next("didFinishRecording", of: id)
            #expect(end["reason"] == "maximumDurationReached" && end["success"] == true)
            #expect((end["duration"]?.double ?? 1000) <= 400)
            #expect(try client.call("movie.stop", ["movie": .string(id)])["reason"] == "maximumDurationReached")
            try await bus.stop()
        }

        @Test func `a movie outlives the death of the bus`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let id = try movie(client.call("movie.start", ["device": "cam0", "path": path(bus, "a.mp4")]))
            let pid = try recorder(client, "cam0")
            try await bus.killCoordinator()
            try await bus.startCoordinator()
            let again = try RawClient(path: bus.directory.commandSocket)
            try await eventually { try again.call("movie.list")["movies"] != [] }
            let movie = try again.call("movie.list")["movies"]?[0]
            #expect(
                movie?["id"]?.string == id && movie?["state"] == "recording" && movie?["path"] == path(bus, "a.mp4"))
            #expect(try recorder(again, "cam0") == pid)
            let end = try again.call("movie.stop", ["movie": .string(id)])
            #expect(end["success"] == true && end["kept"] == true)
            try await bus.stop()
        }

        @Test func `who records is told when the bus has gone away, and how the movie ends when it is back`()
            async throws
        {
            let bus = try await BusHarness(virtual: 1)
            let path = path(bus, "a.mp4")
            let program = try bus.start(
                "camerabus", ["record", "cam0", "-o", "\(bus.scratchPath)/a.mp4", "--timeout", "2", "--json"])
            // Behind the answer to its request: then it has no more to ask the bus.
            try await eventually { program.standardOutput.split(separator: "\n").count > 1 }
            try await bus.killCoordinator()
            try await eventually { program.standardError.contains("The bus has ended. The movie may continue") }
            try await bus.startCoordinator()
            let again = try RawClient(path: bus.directory.commandSocket)
            try await eventually { try again.call("movie.list")["movies"]?[0]?["state"] == "recording" }
            program.process.send(SIGINT)
            let result = try await program.end()
            #expect(result.status == 0, "\(result)")
            let last = try #require(result.standardOutput.split(separator: "\n").last)
            let end = try JSONValue(parsing: String(last))
            #expect(end["event"] == "didFinishRecording" && end["kept"] == true && end["path"] == path, "\(last)")
            #expect(
                result.standardError.split(separator: "\n").count { $0.contains("The bus has ended") } == 1,
                "\(result.standardError)")
            try await bus.stop()
        }

        @Test func `a movie whose process ended while there was no bus is ended by the next one, and told`()
            async throws
        {
            let bus = try await BusHarness(virtual: 1)
            let owner = try bus.start("camerabus", ["record", "cam0", "-o", "\(bus.scratchPath)/a.mp4"])
            let client = try RawClient(path: bus.directory.commandSocket)
            try await eventually { try client.call("movie.list")["movies"]?[0]?["state"] == "recording" }
            let id = try #require(client.call("movie.list")["movies"]?[0]?["id"])
            try await bus.killCoordinator()
            owner.process.send(SIGKILL)
            _ = try await owner.end()
            try await bus.startCoordinator()
            let again = try RawClient(path: bus.directory.commandSocket)
            try await eventually {
                let movie = try? again.call("movie.status", ["movie": id])["movie"]
                return movie?["end"]?["reason"] == "ownerGone" && movie?["end"]?["kept"] == true
            }
            try await bus.stop()
        }

        @Test func `a recorder that dies is reported and replaced if that is wished`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let (client, ears) = (try RawClient(path: bus.directory.commandSocket), try Ears(bus))
            let first = try client.call(
                "movie.start",
                ["device": "cam0", "path": path(bus, "a.mp4"), "fragmentInterval": 100, "continueAfterCrash": true])
            let id = try movie(first)
            try await bus.wait(for: "state/movie/\(id)/") { ($0?["fragments"]?.integer ?? 0) > 1 }
            try bus.recorder(of: id).send(SIGKILL)
            let end = try ears.next("didFinishRecording", of: id)
            #expect(end["reason"] == "recorderCrashed" && end["success"] == false && end["kept"] == true)
            #expect(end["error"]?["reason"] == "workerCrashed")
            let next = try #require(end["next"]?.string)
            try ears.next("didStartRecording", of: next)
            let part = try client.call("movie.status", ["movie": .string(next)])["movie"]
            #expect(part?["part"] == 2 && part?["take"] == first["take"] && part?["path"] == path(bus, "a-2.mp4"))
            #expect(try client.call("movie.stop", ["movie": .string(next)])["success"] == true)

            let alone = try movie(client.call("movie.start", ["device": "cam0", "path": path(bus, "b.mp4")]))
            try bus.recorder(of: alone).send(SIGKILL)
            #expect(try ears.next("didFinishRecording", of: alone)["next"] == .null)
            #expect(try client.call("movie.list")["movies"] == [])
            try await bus.stop()
        }

        @Test func `the movies of a rig begin together, or none does`() async throws {
            let bus = try await BusHarness(virtual: 2, microphones: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            try client.call("rig.set", ["name": "stereo", "devices": ["cam0", "cam1"]])
            try bus.write("precious", to: "one-cam1.mp4")
            let refusal = try client.refusal("movie.start", ["rig": "stereo", "path": path(bus, "one.mp4")])
            #expect(refusal?.reason == .invalidParams)
            try await eventually { try client.call("movie.list")["movies"] == [] && !exists(bus, "one-cam0.mp4") }

            let started = try client.call(
                "movie.start", ["rig": "stereo", "microphone": "mic0", "path": path(bus, "two.mp4")])
            let movies = started["movies"]?.array ?? []
            #expect(movies.map { $0["path"] } == [path(bus, "two-cam0.mp4"), path(bus, "two-cam1.mp4")])
            #expect(Set(movies.map { $0["take"] }) == [started["take"]] && started["rig"] == "stereo")
            var offsets: [Double] = []
            for movie in movies {
                let state = try await bus.wait(for: "state/movie/\(movie["movie"]?.string ?? "")/") {
                    $0?["startOffset"]?.double != nil
                }
                offsets.append(state?["startOffset"]?.double ?? 0)
            }
            // The virtual cameras give 30 frames a second at the same times.
            #expect(offsets.count == 2 && abs((offsets.first ?? 0) - (offsets.last ?? 100)) < 34, "\(offsets)")
            for movie in movies {
                let end = try client.call("movie.stop", ["movie": movie["movie"] ?? .null])
                #expect(end["success"] == true)
            }
            try await bus.stop()
        }

        @Test func `the movies of a rig are paused and ended at one moment`() async throws {
            let bus = try await BusHarness(virtual: 4)
            let client = try RawClient(path: bus.directory.commandSocket)
            try client.call("rig.set", ["name": "three", "devices": ["cam0", "cam1", "cam2"]])
            let started = try client.call("movie.start", ["rig": "three", "path": path(bus, "a.mkv")])
            let ids = started["movies"]?.array?.compactMap { $0["movie"]?.string } ?? []
            try #require(ids.count == 3)
            let alone = try client.call("movie.start", ["device": "cam3", "path": path(bus, "b.mkv")])

            for method in ["pause", "resume", "stop"] {
                for params: JSONValue in [[:], ["rig": "three", "movie": .string(ids[0])]] {
                    #expect(try client.refusal("movie.\(method)", params)?.reason == .invalidParams)
                }
                #expect(try client.refusal("movie.\(method)", ["rig": "none"])?.reason == .notRecording)
                #expect(try client.refusal("movie.\(method)", ["take": "none"])?.data["take"] == "none")
            }
            for id in ids {
                _ = try await bus.wait(for: "state/movie/\(id)/") { ($0?["frames"]?.integer ?? 0) > 10 }
            }
            let paused = try client.call("movie.pause", ["rig": "three"])["movies"]?.array ?? []
            #expect(paused.map { $0["id"]?.string } == ids && paused.allSatisfy { $0["state"] == "paused" })
            let take = try #require(started["take"])
            let resumed = try client.call("movie.resume", ["take": take])["movies"]?.array ?? []
            #expect(resumed.map { $0["id"]?.string } == ids)
            for (id, before) in zip(ids, resumed.map { $0["frames"]?.integer ?? 0 }) {
                _ = try await bus.wait(for: "state/movie/\(id)/") { ($0?["frames"]?.integer ?? 0) > before + 10 }
            }
            let endings = try client.call("movie.stop", ["rig": "three"])["movies"]?.array ?? []
            #expect(endings.map { $0["movie"]?.string } == ids)
            #expect(endings.allSatisfy { $0["success"] == true && $0["reason"] == "stopped" })
            // Each has the last frame that its camera took before; the cameras give 30 frames a second.
            let times = try ["a-cam0", "a-cam1", "a-cam2"].map { try frameTimes(bus, "\($0).mkv") }
            let lasts = times.compactMap(\.last)
            let pauses = times.map { times in zip(times, times.dropFirst()).map { $1 - $0 }.max() ?? 0 }
            #expect((lasts.max() ?? .max) - (lasts.min() ?? 0) < 34_000_000, "\(lasts)")
            #expect((pauses.max() ?? .max) - (pauses.min() ?? 0) < 68_000_000, "\(pauses)")
            // Once more it says the same, and the other movie was none of the rig's.
            for params: JSONValue in [["take": take], ["rig": "three"]] {
                #expect(Set(try client.call("movie.stop", params)["movies"]?.array ?? []) == Set(endings))
            }
            #expect(try client.refusal("movie.pause", ["rig": "three"])?.reason == .notRecording)
            #expect(try client.call("movie.list")["movies"]?.array?.map { $0["id"] } == [alone["movie"]])
            _ = try client.call("movie.stop", ["movie": alone["movie"] ?? .null])
            try await bus.stop()
        }

        @Test func `Ctrl-C and the command movies end the movies of a rig at one moment`() async throws {
            let bus = try await BusHarness(virtual: 2)
            let client = try RawClient(path: bus.directory.commandSocket)
            try client.call("rig.set", ["name": "stereo", "devices": ["cam0", "cam1"]])
            func distance(_ name: String) throws -> Int64 {
                let lasts = try ["cam0", "cam1"].compactMap { try frameTimes(bus, "\(name)-\($0).mkv").last }
                try #require(lasts.count == 2)
                return abs(lasts[0] - lasts[1])
            }
            let program = try bus.start(
                "camerabus", ["record", "stereo", "-o", "\(bus.scratchPath)/a.mkv", "--json"])
            try await eventually { program.standardOutput.split(separator: "\n").count > 8 }
            program.process.send(SIGINT)
            let result = try await program.end()
            #expect(result.status == 0, "\(result)")
            #expect(try distance("a") < 34_000_000)

            let detached = try await bus.run(
                "camerabus", ["record", "stereo", "-o", "\(bus.scratchPath)/b.mkv", "--detach"])
            #expect(detached.status == 0, "\(detached)")
            for (verb, state) in [("pause", "paused"), ("resume", "recording")] {
                let result = try await bus.run("camerabus", ["movies", verb, "stereo", "--json"])
                let states = try result.standardOutput.split(separator: "\n").map {
                    try JSONValue(parsing: String($0))["movie"]?["state"]
                }
                #expect(result.status == 0 && states == [.string(state), .string(state)], "\(result)")
            }
            func frames() throws -> [Int64] {
                try client.call("movie.list")["movies"]?.array?.compactMap { $0["frames"]?.integer } ?? []
            }
            let before = try frames()
            try await eventually { try zip(frames(), before).allSatisfy { $0 > $1 + 5 } }
            let stopped = try await bus.run("camerabus", ["movies", "stop", "stereo"])
            let files = ["cam0", "cam1"].map { "\(bus.scratchPath)/b-\($0).mkv" }
            #expect(stopped.status == 0 && stopped.standardOutput.split(separator: "\n").map(String.init) == files)
            let distance = try distance("b")
            #expect(distance < 34_000_000, "\(distance)")
            try await bus.stop()
        }

        @Test func `a session records a movie of each of its cameras`() async throws {
            let bus = try await BusHarness(virtual: 2, microphones: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let made = try client.call(
                "session.create", ["inputs": ["cam0", "cam1", "mic0"], "outputs": ["movie"]])
            let session = try #require(made["session"])
            try client.call("session.start", ["session": session])
            let refusal = try client.refusal("movie.start", ["session": session, "path": path(bus, "a.mkv")])
            #expect(refusal?.data["path"] == "device" && refusal?.message.contains("eachCamera") == true)
            for params: JSONValue in [
                ["device": "cam0", "eachCamera": true], ["session": session, "device": "cam0", "eachCamera": true],
            ] {
                #expect(try client.refusal("movie.start", params)?.data["path"] == "eachCamera")
            }
            let started = try client.call(
                "movie.start", ["session": session, "eachCamera": true, "path": path(bus, "a.mkv")])
            let movies = started["movies"]?.array ?? []
            #expect(movies.map { $0["path"] } == [path(bus, "a-cam0.mkv"), path(bus, "a-cam1.mkv")])
            #expect(movies.allSatisfy { $0["microphone"] == "mic0" && $0["take"] == started["take"] })
            #expect(started["rig"] == nil)
            // Each camera's movie is one of the session.
            let busy = try client.refusal(
                "movie.start", ["session": session, "device": "cam1", "path": path(bus, "b.mkv")])
            #expect(busy?.reason == .recordingInProgress)
            let take = try #require(started["take"])
            let endings = try client.call("movie.stop", ["take": take])["movies"]?.array ?? []
            #expect(endings.count == 2 && endings.allSatisfy { $0["success"] == true })
            // One that has ended before is reported with the others.
            let more = try client.call(
                "movie.start", ["session": session, "eachCamera": true, "path": path(bus, "e.mkv")])
            let first = try #require(more["movies"]?[0]?["movie"])
            let alone = try client.call("movie.stop", ["movie": first])
            let all = try client.call("movie.stop", ["take": more["take"] ?? .null])["movies"]?.array ?? []
            #expect(all.count == 2 && all.contains(alone), "\(all)")
            // One alone, too; and all end with the session.
            let one = try client.call(
                "movie.start", ["session": session, "device": "cam1", "path": path(bus, "c.mkv")])
            let other = try client.call(
                "movie.start", ["session": session, "device": "cam0", "path": path(bus, "d.mkv")])
            try client.call("session.stop", ["session": session])
            for movie in [one, other] {
                let end = try client.call("movie.stop", ["movie": movie["movie"] ?? .null])
                #expect(end["reason"] == "stopped" && end["kept"] == true)
            }
            try await bus.stop()
        }

        @Test func `a bus that ends has its movies finished`() async throws {
            let bus = try await BusHarness(virtual: 1)
            let (client, ears) = (try RawClient(path: bus.directory.commandSocket), try Ears(bus))
            _ = try client.call("movie.start", ["device": "cam0", "path": path(bus, "a.mp4")])
            kill(bus.pid, SIGTERM)
            let end = try ears.next("didFinishRecording")
            #expect(end["reason"] == "shuttingDown" && end["success"] == true && end["kept"] == true)
            #expect(try ears.all() == ["ended"])
            try await bus.waitForEnd()
            try await bus.stop()
        }

        @Test func `the movie of a session ends with it`() async throws {
            let bus = try await BusHarness(virtual: 1, microphones: 1)
            let (client, ears) = (try RawClient(path: bus.directory.commandSocket), try Ears(bus))
            let session = try #require(
                client.call("session.create", ["preset": "640x480", "inputs": ["cam0"], "outputs": ["videoData"]])[
                    "session"])
            func start(_ name: String) throws -> BusError? {
                try client.refusal("movie.start", ["session": session, "path": path(bus, name)])
            }
            #expect(try start("a.mp4")?.data["path"] == "session")
            try client.call("session.configure", ["session": session, "actions": [["addOutput": "movie"]]])
            #expect(try start("a.mp4")?.reason == .sessionNotRunning)
            try client.call("session.start", ["session": session])
            let stops: [(String, JSONValue)] = [
                ("session.stop", ["session": session]),
                ("session.configure", ["session": session, "actions": [["removeOutput": "movie"]]]),
                ("session.delete", ["session": session]),
            ]
            for (number, stop) in stops.enumerated() {
                let started = try client.call(
                    "movie.start", ["session": session, "path": path(bus, "\(number).mp4")])
                #expect(started["video"]?["width"] == 640)
                #expect(try start("b.mp4")?.reason == .recordingInProgress)
                let id = try movie(started)
                #expect(try client.call("movie.status", ["movie": .string(id)])["movie"]?["session"] == session)
                try client.call(stop.0, stop.1)
                let end = try ears.next("didFinishRecording", of: id)
                #expect(end["reason"] == "stopped" && end["kept"] == true, "\(stop.0)")
                guard number < 2 else { continue }
                if number == 1 {
                    try client.call("session.configure", ["session": session, "actions": [["addOutput": "movie"]]])
                }
                try client.call("session.start", ["session": session])
            }
            try await bus.stop()
        }

        @Test func `a session's movie has the sound of its microphone, unless none is wished`() async throws {
            let bus = try await BusHarness(virtual: 1, microphones: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let session = try #require(
                client.call(
                    "session.create", ["preset": "640x480", "inputs": ["cam0", "mic0"], "outputs": ["movie"]])[
                        "session"])
            try client.call("session.start", ["session": session])
            let wishes: [(params: [String: JSONValue], microphone: JSONValue)] = [
                ([:], "mic0"), (["microphone": .null], .null),
            ]
            for (number, wish) in wishes.enumerated() {
                let own: [String: JSONValue] = ["session": session, "path": path(bus, "\(number).mp4")]
                let started = try client.call("movie.start", .object(own.merging(wish.params) { $1 }))
                #expect(started["microphone"] == wish.microphone)
                #expect(started["audio"]?.isNull == wish.microphone.isNull)
                try client.call("movie.stop", ["movie": started["movie"] ?? .null])
            }
            try await bus.stop()
        }

        @Test func `settings are recommended for what the camera gives, and accepted`() async throws {
            let bus = try await BusHarness(virtual: 1, microphones: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            for fileType in ["mp4", "mov", "mkv"] {
                let settings = try client.call(
                    "movie.recommendedSettings",
                    ["device": "cam0", "microphone": "mic0", "fileType": .string(fileType)])
                #expect(settings["video"]?["codec"] == "h264" && settings["audio"]?["rate"] == 48000)
                let started = try client.call(
                    "movie.start",
                    [
                        "device": "cam0", "microphone": "mic0", "path": path(bus, "a.\(fileType)"),
                        "settings": settings,
                    ])
                for name in ["codec", "width", "height"] {
                    #expect(started["video"]?[name] == settings["video"]?[name], "\(fileType) \(name)")
                }
                #expect(started["audio"]?["codec"] == settings["audio"]?["codec"])
                try client.call("movie.stop", ["movie": started["movie"] ?? .null])
            }
            let sound = try client.call("movie.recommendedSettings", ["device": "mic0", "fileType": "mp4"])
            #expect(sound["video"] == .null && sound["audio"]?["codec"] == "aac")
            try await bus.stop()
        }
    }
}
