import BusClient
import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

extension ProcessTests {
    /// Movies whose recorder, worker and bus are killed at random moments.
    @Suite(.timeLimit(.minutes(60))) struct MovieKills {
        /// `CAMERABUS_MOVIE_KILLS`: how many rounds, instead of 6. `CAMERABUS_KILL_SEED`: the choices of an earlier
        /// run.
        private static let rounds = CurrentProcess.environment("CAMERABUS_MOVIE_KILLS").flatMap { Int($0) } ?? 6
        private static let seed =
            CurrentProcess.environment("CAMERABUS_KILL_SEED").flatMap { UInt64($0) } ?? UInt64.random(in: 1...999_999)

        private enum Victim: CaseIterable {
            case recorder, worker, microphone, bus, recorderAndBus, all

            var hasRecorder: Bool { self == .recorder || self == .recorderAndBus || self == .all }
            var hasBus: Bool { self == .bus || self == .recorderAndBus || self == .all }
        }

        /// Milliseconds.
        private static let fragment = 300.0
        /// A frame, and as much of sound as is encoded at once.
        private static let frame = 70.0

        @Test func `whoever is killed, and when, the file plays to within its last fragment, and the library knows it`()
            async throws
        {
            let bus = try await RecordedMovies.bus()
            var dice = Dice(seed: Self.seed)
            for round in 0..<Self.rounds {
                // Each in turn, so that few rounds meet all.
                let victim = Victim.allCases[round % Victim.allCases.count]
                do {
                    try await self.round(bus, round, victim, &dice)
                } catch {
                    Issue.record("round \(round), \(victim), seed \(Self.seed): \(error)\n\(bus.log.suffix(4000))")
                    break
                }
            }
            try await bus.stop()
        }

        private func round(_ bus: BusHarness, _ round: Int, _ victim: Victim, _ dice: inout Dice) async throws {
            let path = "\(bus.scratchPath)/\(round).\(["mp4", "mov", "mkv"][dice.below(3)])"
            let what: Comment = "round \(round), \(victim), seed \(Self.seed)"
            let client = try await bus.connect()
            let movie = try await client.startMovie([
                "device": "cam0", "microphone": "mic0", "path": .string(path), "detached": true,
                "fragmentInterval": .number(Self.fragment),
            ])
            var state = try await client.movie(movie.id)
            let moment = Double(700 + dice.below(1500))
            let updates = try await client.updates(ofMovie: movie.id)
            // What is told is that only so much can be lost.
            while state.recordedDuration < .milliseconds(moment), let update = try await updates.next() {
                guard case .state(let now) = update else { continue }
                state = now
                let open = (now.json["recordedDuration"]?.double ?? 0) - (now.json["syncedDuration"]?.double ?? 0)
                #expect(open <= Self.fragment + Self.frame, what)
            }
            // Anywhere between two words of it.
            try await Task.sleep(for: dice.milliseconds(0...120))
            try await kill(victim, bus)
            if victim.hasRecorder {
                try await checkCrashed(bus, movie, atLeast: state, what)
            } else {
                try await checkGoesOn(bus, movie, from: state, what)
            }
            let recorded = try RecordedMovie(path)
            #expect(try await recorded.complaints() == "", what)
            let pictures = try await recorded.pictures()
            #expect(pictures.allSatisfy { $0.counter != nil }, what)
            let counters = pictures.compactMap { $0.counter?.counter }
            #expect(
                zip(counters, counters.dropFirst()).allSatisfy { $0 < $1 } || victim == .worker || victim == .all, what)
            let synced = (state.json["syncedDuration"]?.double ?? 0) / 1000
            // Matroska tells no duration of what was not finished.
            let end = pictures.last?.time ?? 0
            #expect(end >= synced - Self.frame / 1000, "\(what): \(end) of \(synced) s")
            if victim != .worker, victim != .microphone, victim != .all {
                let lags = try RecordedMovie.lags(pictures, try await recorded.ticks())
                #expect(lags.allSatisfy { abs($0) < 1.0 / 60 }, "\(what): \(lags)")
            }
            await client.close()
        }

        private func kill(_ victim: Victim, _ bus: BusHarness) async throws {
            func end(_ pid: Int32?) { if let pid { Glibc.kill(pid, SIGKILL) } }
            let recorders = bus.pids(of: "camerabus-recorder")
            let (camera, microphone) = (try bus.workerPID("cam0"), try bus.workerPID("mic0"))
            if victim == .worker || victim == .all { end(camera) }
            if victim == .microphone || victim == .all { end(microphone) }
            if victim.hasRecorder { for pid in recorders { end(pid) } }
            guard victim.hasBus else { return }
            try await bus.killCoordinator()
            try await bus.startCoordinator()
        }

        /// The file is what was on the disk, and the library says so.
        private func checkCrashed(
            _ bus: BusHarness, _ movie: ClientMovie, atLeast state: MovieState, _ what: Comment
        ) async throws {
            let raw = try RawClient(path: bus.directory.commandSocket)
            var entry: JSONValue?
            try await eventually {
                let entries = try raw.call("library.list")["entries"]?.array ?? []
                entry = entries.first { $0["id"] == .string(movie.id) }
                // Until then it is damaged, and not mended yet.
                return entry?["state"] == "recovered"
            }
            let duration = entry?["duration"]?.double ?? 0
            #expect(duration + 1 >= state.json["syncedDuration"]?.double ?? 0, "\(what): \(entry ?? .null)")
            #expect(try raw.call("movie.list")["movies"] == [], what)
        }

        /// It is the same movie, goes on, and is whole.
        private func checkGoesOn(
            _ bus: BusHarness, _ movie: ClientMovie, from state: MovieState, _ what: Comment
        ) async throws {
            let client = try await bus.connect()
            let updates = try await client.updates(ofMovie: movie.id)
            var frames = state.frames
            while frames < state.frames + 30 {
                guard let update = try await updates.next() else { throw TestingError("the movie has ended") }
                if case .state(let now) = update { frames = now.frames }
                if case .ended(let ending) = update { throw TestingError("the movie has ended: \(ending)") }
            }
            let ending = try await client.stopMovie(movie.id)
            #expect(ending.reason == "stopped" && ending.isSuccess && ending.isKept, "\(what): \(ending)")
            let raw = try RawClient(path: bus.directory.commandSocket)
            let entry = try raw.call("library.get", ["id": .string(movie.id)])["entry"]
            #expect(entry?["state"] == "finished", "\(what): \(entry ?? .null)")
            await client.close()
        }

        @Test func `a recorder's death is published, and a next file is recorded if requested`() async throws {
            let bus = try await RecordedMovies.bus()
            let path = "\(bus.scratchPath)/a.mp4"
            let recording = try bus.start(
                "camerabus", ["record", "cam0", "--fragment", "0.3", "--resilient", "--json", "-o", path])
            func states() -> [JSONValue] {
                recording.standardOutput.split(separator: "\n").compactMap { try? JSONValue(parsing: String($0)) }
            }
            try await eventually { states().contains { ($0["state"]?["fragments"]?.integer ?? 0) > 1 } }
            let first = states()[0]
            Glibc.kill(try #require(bus.pids(of: "camerabus-recorder").first), SIGKILL)
            try await eventually {
                states().contains { $0["state"]?["part"] == 2 && ($0["state"]?["frames"]?.integer ?? 0) > 20 }
            }
            recording.process.send(SIGINT)
            let ended = try await recording.end()
            #expect(ended.status == 0, "\(ended)")
            let ends = states().filter { $0["event"] == "didFinishRecording" }
            #expect(ends.map { $0["reason"] } == ["recorderCrashed", "stopped"])
            #expect(ends.first?["next"] == ends.last?["movie"] && ends.first?["success"] == false)
            let second = "\(bus.scratchPath)/a-2.mp4"
            #expect(ends.last?["path"] == .string(second))
            let taken = try await [path, second].asyncMap { path in
                let movie = try RecordedMovie(path)
                #expect(try await movie.complaints() == "")
                return try await movie.pictures().compactMap { $0.counter?.microseconds }
            }
            #expect(taken[0].last ?? .max < taken[1].first ?? 0)
            let entries = try RawClient(path: bus.directory.commandSocket).call("library.list")["entries"]?.array ?? []
            #expect(Set(entries.map { $0["take"] }) == [first["take"]] && entries.count == 2)
            try await bus.stop()
        }
    }
}

extension Sequence where Element: Sendable {
    fileprivate func asyncMap<Value>(_ transform: (Element) async throws -> Value) async throws -> [Value] {
        var values: [Value] = []
        for element in self { values.append(try await transform(element)) }
        return values
    }
}
