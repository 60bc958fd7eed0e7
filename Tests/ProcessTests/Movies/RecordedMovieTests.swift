import BusClient
import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

extension ProcessTests {
    /// Movies, from the command that records them to what players find in their files.
    @Suite(.timeLimit(.minutes(10))) struct RecordedMovies {
        /// A bus with a camera that gives JPEG, which costs nothing to record.
        static func bus(
            _ format: [String] = ["640x480", "--pixel", "MJPG"], virtual: Int = 1, configuration: String? = nil
        ) async throws -> BusHarness {
            let bus = try await BusHarness(virtual: virtual, microphones: 1, configuration: configuration)
            for camera in 0..<virtual {
                let set = try await bus.run("camerabus", ["format", "cam\(camera)"] + format)
                try #require(set.status == 0, "\(set)")
            }
            return bus
        }

        /// Records for so long, and gives the end as it was told.
        private func record(
            _ bus: BusHarness, _ arguments: [String], seconds: Double
        ) async throws -> (ending: JSONValue, lines: [JSONValue]) {
            let result = try await bus.run(
                "camerabus", ["record"] + arguments + ["--duration", "\(seconds)", "--json"],
                by: .after(seconds: 60))
            try #require(result.status == 0, "\(result)\n\(bus.log)")
            let lines = try result.standardOutput.split(separator: "\n").map { try JSONValue(parsing: String($0)) }
            let ending = try #require(lines.last { $0["event"] == "didFinishRecording" })
            return (ending, lines)
        }

        /// Every picture from the first to the last is in it, but for those that are told as missing.
        static func checkPictures(_ pictures: [RecordedMovie.Picture], _ ending: JSONValue) throws {
            let counters = pictures.compactMap { $0.counter?.counter }
            #expect(counters.count == pictures.count && Int64(counters.count) == ending["frames"]?.integer)
            let (first, last) = (try #require(counters.first), try #require(counters.last))
            #expect(zip(counters, counters.dropFirst()).allSatisfy { $0 < $1 })
            let missing = Int64(last - first) + 1 - Int64(counters.count)
            #expect(missing == ending["dropped"]?.integer, "\(missing) are missing: \(ending)")
        }

        /// Frames stand where they were taken.
        static func checkTimes(_ pictures: [RecordedMovie.Picture], within seconds: Double) throws {
            let first = try #require(pictures.first)
            let start = try #require(first.counter).microseconds
            for picture in pictures {
                let counter = try #require(picture.counter)
                let taken = Double(counter.microseconds - start) / 1e6
                #expect(abs(picture.time - first.time - taken) < seconds, "\(picture)")
            }
        }

        @Test(
            arguments: [
                ("mp4", ["640x480", "--pixel", "MJPG"], "mjpeg"), ("mov", ["640x480", "--pixel", "YUYV"], "h264"),
                ("mkv", ["640x480", "--pixel", "MJPG"], "mjpeg"),
            ] as [(String, [String], String)])
        func `picture and sound are whole, and in step from the first to the last`(
            type: String, format: [String], codec: String
        ) async throws {
            let bus = try await Self.bus(format)
            let path = "\(bus.scratchPath)/take.\(type)"
            let (ending, lines) = try await record(
                bus, ["cam0", "--mic", "mic0", "--fragment", "0.5", "-o", path], seconds: 4)
            #expect(ending["reason"] == "maximumDurationReached" && ending["success"] == true, "\(ending)")
            #expect(ending["path"] == .string(path) && ending["kept"] == true)
            #expect(
                lines.contains { ($0["state"]?["syncedDuration"]?.double ?? 0) > 400 }, "nothing was told on the way")
            let movie = try RecordedMovie(path)
            #expect(try await movie.complaints() == "")
            #expect(try await movie.codecs() == [codec, type == "mkv" ? "opus" : "aac"])
            let duration = try await movie.duration()
            #expect(duration <= 4.1 && duration > 3.5, "\(duration)")
            let pictures = try await movie.pictures()
            try Self.checkPictures(pictures, ending)
            try Self.checkTimes(pictures, within: 0.002)
            let lags = try RecordedMovie.lags(pictures, try await movie.ticks())
            #expect(lags.count >= 3, "\(lags)")
            // Half a frame.
            #expect(lags.allSatisfy { abs($0) < 1.0 / 60 }, "\(lags)")
            try await bus.stop()
        }

        @Test func `Ctrl-C finishes the file, and nothing is overwritten`() async throws {
            let bus = try await Self.bus()
            let path = "\(bus.scratchPath)/a.mp4"
            let recording = try bus.start("camerabus", ["record", "cam0", "-o", path])
            let list = try RawClient(path: bus.directory.commandSocket)
            try await eventually { (try list.call("movie.list")["movies"]?[0]?["frames"]?.integer ?? 0) > 10 }
            recording.process.send(SIGINT)
            let ended = try await recording.end()
            #expect(ended.status == 0 && ended.standardOutput == "\(path)\n", "\(ended)")
            #expect(try list.call("movie.list")["movies"] == [])
            #expect(try await RecordedMovie(path).complaints() == "")
            let before = try File.read(path, limit: 64 << 20)
            let again = try await bus.run("camerabus", ["record", "cam0", "-o", path, "--duration", "0.2"])
            #expect(again.status == 1 && again.standardError.contains("--force"), "\(again)")
            // The bus itself refuses it, too.
            do {
                _ = try list.call("movie.start", ["device": "cam0", "path": .string(path)])
                Issue.record("a file was overwritten")
            } catch {
                #expect("\(error)".contains("invalidParams"), "\(error)")
            }
            #expect(try File.read(path, limit: 64 << 20) == before)
            let sideCar = try File.read(path + ".frames.jsonl", limit: 1 << 20)
            let forced = try await bus.run("camerabus", ["record", "cam0", "-o", path, "--duration", "0.2", "--force"])
            #expect(forced.status == 0, "\(forced)")
            #expect(try File.read(path + ".frames.jsonl", limit: 1 << 20) != sideCar)
            #expect(try File.read(path, limit: 64 << 20) != before)
            // The old one had another name until the new one was whole.
            let old = try #require(forced.standardError.split(separator: " ").first { $0.hasSuffix(".old") })
            #expect(throws: SystemError.self) { try File.read(String(old), limit: 64 << 20) }
            #expect(access(String(old).replacing(".mp4.", with: ".mp4.frames.jsonl."), F_OK) != 0)
            // A side-car without its movie makes room, another file does not.
            File.remove(path)
            for isOurs in [true, false] {
                if !isOurs { try bus.write("mine", to: "a.mp4.frames.jsonl") }
                let third = try await bus.run("camerabus", ["record", "cam0", "-o", path, "--duration", "0.2"])
                #expect(third.status == 0 && third.standardError.contains("no side-car") != isOurs, "\(third)")
                File.remove(path)
            }
            #expect(try File.read(path + ".frames.jsonl", limit: 100) == Array("mine".utf8))
            // What somebody else has ended is whole, and not what was asked for.
            for (reason, end) in [
                ("stopped", { _ = try list.call("movie.stop", ["movie": $0]) }), ("shuttingDown", { _ in }),
            ] as [(String, (JSONValue) throws -> Void)] {
                let cut = try bus.start("camerabus", ["record", "cam0", "-o", path, "--force"])
                var movie: JSONValue?
                try await eventually {
                    let movies = try list.call("movie.list")["movies"]
                    movie = movies?[0]?["id"]
                    return (movies?[0]?["frames"]?.integer ?? 0) > 10
                }
                try end(try #require(movie))
                if reason == "shuttingDown" { _ = try list.call("bus.shutdown") }
                let ended = try await cut.end()
                #expect(ended.status == 1 && ended.standardError.contains("\(reason): "), "\(ended)")
                #expect(try await RecordedMovie(path).complaints() == "")
            }
            _ = try await bus.waitForEnd()
            try await bus.stop()
        }

        @Test func `a detached one goes on, is paused and resumed, and has no hole`() async throws {
            let bus = try await Self.bus()
            let path = "\(bus.scratchPath)/a.mp4"
            let begun = try await bus.run(
                "camerabus", ["record", "cam0", "--mic", "mic0", "--detach", "-o", path])
            try #require(begun.status == 0, "\(begun)")
            let id = String(begun.standardOutput.dropLast())
            let client = try await bus.connect()
            let updates = try await client.updates(ofMovie: id)
            func state(_ condition: (MovieState) -> Bool) async throws {
                while let update = try await updates.next() {
                    if case .state(let state) = update, condition(state) { return }
                }
                throw TestingError("the movie has ended")
            }
            try await state { $0.frames > 20 }
            let paused = try await bus.run("camerabus", ["movies", "pause", id])
            #expect(paused.status == 0, "\(paused)")
            try await state { $0.state == "paused" }
            let frames = try await client.frames("cam0", "native", newest: 8)
            for _ in 0..<30 { _ = try await frames.next() }
            let resumed = try await bus.run("camerabus", ["movies", "resume", id])
            #expect(resumed.status == 0, "\(resumed)")
            try await state { $0.frames > 50 }
            let stopped = try await bus.run("camerabus", ["movies", "stop", id])
            #expect(stopped.status == 0 && stopped.standardOutput == "\(path)\n", "\(stopped)")
            guard case .ended(let ending)? = try await last(updates) else { throw TestingError("no end was told") }
            #expect(ending.reason == "stopped" && ending.isSuccess && ending.frames > 50)
            // Who asks later learns the same.
            #expect(try await client.stopMovie(id) == ending || ending.path == path)
            #expect(try await client.movie(id).ending?.reason == "stopped")
            let movie = try RecordedMovie(path)
            #expect(try await movie.complaints() == "")
            let pictures = try await movie.pictures()
            #expect(pictures.count == Int(ending.frames))
            let counters = pictures.compactMap { $0.counter?.counter }
            let gaps = zip(counters, counters.dropFirst()).filter { $1 > $0 + 20 }
            #expect(gaps.count == 1, "\(gaps)")
            // What was left out leaves no time behind.
            let steps = zip(pictures, pictures.dropFirst()).map { $1.time - $0.time }
            #expect(steps.allSatisfy { $0 < 0.4 }, "\(steps.max() ?? 0)")
            await client.close()
            try await bus.stop()
        }

        private func last(_ updates: MovieUpdates) async throws -> MovieUpdates.Update? {
            var last: MovieUpdates.Update?
            while let update = try await updates.next() { last = update }
            return last
        }

        @Test func `without a name it goes into the library, which knows it`() async throws {
            let bus = try await Self.bus()
            let (ending, _) = try await record(bus, ["cam0", "--mic", "mic0"], seconds: 1)
            let path = try #require(ending["path"]?.string)
            #expect(path.hasPrefix("\(bus.directory.path)/state/library/"), "\(path)")
            #expect(try await RecordedMovie(path).complaints() == "")
            let entries = try RawClient(path: bus.directory.commandSocket).call("library.list")["entries"]?.array ?? []
            #expect(entries.count == 1 && entries[0]["path"] == .string(path) && entries[0]["state"] == "finished")
            #expect(entries[0]["frames"] == ending["frames"])
            try await bus.stop()
        }

        @Test func `a recorder that can't keep up leaves frames out, says so, and never holds up the camera`()
            async throws
        {
            let bus = try await Self.bus()
            let client = try await bus.connect()
            let path = "\(bus.scratchPath)/a.mkv"
            let movie = try await client.startMovie(["device": "cam0", "path": .string(path), "fragmentInterval": 200])
            let frames = try await client.frames("cam0", "native", newest: 64)
            let recorder = try #require(bus.pids(of: "camerabus-recorder").first)
            kill(recorder, SIGSTOP)
            var first: UInt64?
            var (count, last) = (0, UInt64(0))
            // For longer than its ring and its queue hold.
            while count < 200 {
                let header = try await frames.next().header
                if let first { #expect(header.captureSequence == last + 1, "the camera was held up after \(first)") }
                first = first ?? header.captureSequence
                last = header.captureSequence
                count += 1
            }
            kill(recorder, SIGCONT)
            let updates = try await client.updates(ofMovie: movie.id)
            var isTold = false
            while !isTold, let update = try await updates.next() {
                if case .state(let state) = update { isTold = state.dropped > 0 }
            }
            let ending = try await client.stopMovie(movie.id)
            #expect(isTold && ending.isSuccess && ending.dropped > 0, "\(ending)")
            let recorded = try RecordedMovie(path)
            #expect(try await recorded.complaints() == "")
            try Self.checkPictures(try await recorded.pictures(), ending.json)
            await client.close()
            try await bus.stop()
        }

        @Test func `the movies of a rig begin together`() async throws {
            let bus = try await Self.bus(virtual: 2)
            let rig = try await bus.run("camerabus", ["rigs", "set", "stereo", "cam0", "cam1"])
            try #require(rig.status == 0, "\(rig)")
            let result = try await bus.run(
                "camerabus",
                ["record", "stereo", "--mic", "mic0", "--duration", "2", "-o", "\(bus.scratchPath)/s.mp4"],
                by: .after(seconds: 60))
            try #require(result.status == 0, "\(result)")
            let paths = ["cam0", "cam1"].map { "\(bus.scratchPath)/s-\($0).mp4" }
            #expect(result.standardOutput.split(separator: "\n").sorted() == paths.map { $0[...] })
            var starts: [Double] = []
            for path in paths {
                let movie = try RecordedMovie(path)
                #expect(try await movie.complaints() == "")
                let pictures = try await movie.pictures()
                let first = try #require(pictures.first?.counter)
                starts.append(Double(first.microseconds) / 1e6)
                let lags = try RecordedMovie.lags(pictures, try await movie.ticks())
                #expect(!lags.isEmpty && lags.allSatisfy { abs($0) < 1.0 / 60 }, "\(lags)")
            }
            // Within a frame.
            #expect(abs(starts[0] - starts[1]) < 1.0 / 30, "\(starts)")
            try await bus.stop()
        }

        @Test func `it ends with its program, whole`() async throws {
            let bus = try await Self.bus()
            let path = "\(bus.scratchPath)/a.mp4"
            let recording = try bus.start("camerabus", ["record", "cam0", "-o", path])
            let client = try await bus.connect()
            var movies: [MovieState] = []
            try await eventually {
                movies = try await client.movies()
                return (movies.first?.frames ?? 0) > 5
            }
            let updates = try await client.updates(ofMovie: movies[0].id)
            recording.process.send(SIGKILL)
            guard case .ended(let ending)? = try await last(updates) else { throw TestingError("no end was told") }
            #expect(ending.reason == "ownerGone" && ending.isSuccess, "\(ending)")
            #expect(try await RecordedMovie(path).complaints() == "")
            await client.close()
            try await bus.stop()
        }
    }
}
