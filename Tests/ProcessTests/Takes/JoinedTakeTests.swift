import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

extension ProcessTests {
    /// Takes, from their segments to the movie that is made of them, as players find it.
    @Suite(.timeLimit(.minutes(5))) struct JoinedTakes {
        private let home: TemporaryDirectory
        init() throws { home = try TemporaryDirectory() }

        /// With cameras of small pictures, which cost little to encode.
        private func bus(_ virtual: Int = 1) async throws -> BusHarness {
            let bus = try await BusHarness(virtual: virtual, microphones: 1, arguments: ["--state-dir", home.path])
            for camera in 0..<virtual {
                let set = try await bus.run("camerabus", ["format", "cam\(camera)", "320x240", "--pixel", "YUYV"])
                try #require(set.status == 0, "\(set)")
            }
            return bus
        }

        private func take(_ client: RawClient, _ wishes: [String: JSONValue]) throws -> JSONValue {
            try #require(try client.call("take.create", .object(wishes))["take"]?["id"])
        }

        /// Records a segment of at least so many milliseconds; the body is called on the way. Answers what `take.pause`
        /// does.
        private func segment(
            _ bus: BusHarness, _ client: RawClient, _ take: JSONValue, _ milliseconds: Int64,
            _ body: () async throws -> Void = {}
        ) async throws -> JSONValue {
            try client.call("take.record", ["take": take])
            try await body()
            let duration = try await bus.wait(for: "state/take/\(take.string ?? "")/") {
                ($0?["duration"]?.integer ?? 0) >= milliseconds
            }
            #expect(duration?["state"] == "recording")
            let end = try client.call("take.pause", ["take": take])
            #expect(end["kept"] == true && end["success"] == true, "\(end)")
            return end
        }

        private func exists(_ path: JSONValue?) -> Bool { path?.string.map { access($0, F_OK) == 0 } ?? false }

        @Test func `segments are joined in their order, without one that was thrown away`() async throws {
            let bus = try await bus()
            let client = try RawClient(path: bus.directory.commandSocket)
            let take = try take(client, ["device": "cam0", "microphone": "mic0", "name": "belt"])
            var ends: [JSONValue] = []
            for milliseconds: Int64 in [1200, 200, 1200] {
                ends.append(try await segment(bus, client, take, milliseconds))
            }
            let pictures = try await [
                RecordedMovie(try #require(ends[0]["path"]?.string)).pictures(),
                RecordedMovie(try #require(ends[2]["path"]?.string)).pictures(),
            ]
            let entries = try [ends[0], ends[2]].map {
                try #require(client.call("library.get", ["id": $0["segment"] ?? .null])["entry"])
            }
            try client.call("take.delete", ["take": take, "segment": ends[1]["segment"] ?? .null])
            #expect(!exists(ends[1]["path"]))
            let answer = try client.call("take.finish", ["take": take], within: 60)
            #expect(answer["encoded"] == false && exists(answer["cover"]), "\(answer)")
            #expect(!exists(ends[0]["path"]) && !exists(ends[2]["path"]))
            let movie = try RecordedMovie(try #require(answer["path"]?.string))
            #expect(try await movie.complaints() == "")
            #expect(try await movie.codecs() == ["h264", "aac", "mjpeg"])
            let joined = try await movie.pictures()
            #expect(joined.map(\.counter) == pictures.flatMap { $0 }.map(\.counter), "each picture, in its order")
            let counters = joined.compactMap(\.counter)
            try #require(counters.count == joined.count)
            #expect(zip(counters, counters.dropFirst()).allSatisfy { $0.microseconds < $1.microseconds })
            // None is missing in either of them that is not told; between them the camera may have rested.
            for (part, entry) in zip(pictures, entries) { try RecordedMovies.checkPictures(part, entry) }
            #expect(zip(joined, joined.dropFirst()).allSatisfy { $0.time < $1.time })
            // Half a frame, in both of them.
            let ticks = try await movie.ticks()
            let lags = try RecordedMovie.lags(joined, ticks)
            #expect(lags.count >= 2 && lags.allSatisfy { abs($0) < 1.0 / 60 }, "\(lags)")
            let border = joined[pictures[0].count].time
            #expect(ticks.contains { $0.time < border } && ticks.contains { $0.time > border }, "\(ticks), \(border)")
            let duration = try await movie.duration()
            #expect(abs(duration * 1000 - (answer["duration"]?.double ?? 0)) < 60)
            let left = try client.call("library.list")["entries"]?.array ?? []
            #expect(left.map { $0["kind"] } == ["take"] && left.first?["id"] == take)
            #expect(try client.call("library.delete", ["id": take])["deleted"]?.array?.count == 2)
            #expect(!exists(answer["path"]) && !exists(answer["cover"]))
            try await bus.stop()
        }

        @Test func `a take ends by itself, and has room again for what is thrown away`() async throws {
            let bus = try await bus()
            let client = try RawClient(path: bus.directory.commandSocket)
            let take = try take(client, ["device": "cam0", "maxDuration": 3000])
            let topic = "state/take/\(take.string ?? "")/"
            let first = try await segment(bus, client, take, 1000)
            try client.call("take.record", ["take": take])
            let full = try await bus.wait(for: topic) {
                $0?["state"] == "paused" && $0?["segments"]?.array?.count == 2
            }
            #expect(full?["remaining"] == 0, "\(String(describing: full))")
            #expect(abs((full?["total"]?.integer ?? 0) - 3000) < 70, "\(String(describing: full))")
            #expect(try client.refusal("take.record", ["take": take])?.reason == .limitExceeded)
            try client.call("take.delete", ["take": take, "segment": first["segment"] ?? .null])
            try await bus.wait(for: topic) { ($0?["remaining"]?.integer ?? 0) >= 900 }
            let paths = full?["segments"]?.array?.map { $0["path"] } ?? []
            try client.call("take.discard", ["take": take])
            #expect(paths.count == 2 && paths.allSatisfy { !exists($0) })
            #expect(try client.call("library.list")["entries"] == [])
            try await bus.stop()
        }

        @Test func `a segment goes on when its session switches cameras, at its size`() async throws {
            let bus = try await bus(2)
            let client = try RawClient(path: bus.directory.commandSocket)
            let session = try client.call(
                "session.create", ["inputs": ["cam0", "mic0"], "outputs": ["movie"], "preset": "640x480"])
            let id = try #require(session["session"])
            try client.call("session.start", ["session": id])
            let take = try take(client, ["session": id])
            let end = try await segment(bus, client, take, 1500) {
                try await bus.wait(for: "state/take/\(take.string ?? "")/") { ($0?["duration"]?.integer ?? 0) > 300 }
                try client.call("session.switchCamera", ["session": id, "device": "cam1"])
            }
            let answer = try client.call("take.finish", ["take": take], within: 60)
            #expect(answer["encoded"] == false, "one file, one size")
            let movie = try RecordedMovie(try #require(answer["path"]?.string))
            #expect(try await movie.complaints() == "")
            let pictures = try await movie.pictures()
            let counters = pictures.compactMap(\.counter)
            #expect(counters.count == pictures.count)
            #expect(counters.first?.camera == 0 && counters.last?.camera == 1)
            // By when they were taken, whichever camera took them.
            #expect(zip(counters, counters.dropFirst()).allSatisfy { $0.microseconds < $1.microseconds })
            try RecordedMovies.checkTimes(pictures, within: 0.002)
            #expect((end["duration"]?.integer ?? 0) >= 1500)
            try await bus.stop()
        }
    }
}
