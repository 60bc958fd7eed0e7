import BusClient
import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

extension ProcessTests {
    /// Where movies end by themselves, and who may not have them.
    @Suite(.timeLimit(.minutes(10))) struct MovieLimits {
        private func end(_ client: Client, _ id: String) async throws -> MovieEnding {
            let updates = try await client.updates(ofMovie: id)
            while let update = try await updates.next() {
                if case .ended(let ending) = update { return ending }
            }
            throw TestingError("no end was told")
        }

        @Test(.enabled(if: SmallDisk.obstacle == nil, "left out: \(SmallDisk.obstacle ?? "")"))
        func `a full disk ends it whole, and the next one works when there is room`() async throws {
            let disk = try await SmallDisk(megabytes: 24)
            let bus = try await RecordedMovies.bus(
                configuration: "[library]\ndirectory = \"\(disk.path)/library\"\nmin_free = 0\n")
            let client = try await bus.connect()
            let wishes: [String: JSONValue] = ["device": "cam0", "fragmentInterval": 200, "minFreeDiskSpace": 0]
            let movie = try await client.startMovie(wishes.merging(["path": .string("\(disk.path)/a.mp4")]) { $1 })
            // Another program takes nearly all of the rest.
            let filler = try disk.fill(leaving: 700_000)
            let ending = try await end(client, movie.id)
            #expect(ending.reason == "diskFull" && !ending.isSuccess && ending.isKept, "\(ending)")
            let recorded = try RecordedMovie(movie.path)
            #expect(try await recorded.complaints() == "")
            let pictures = try await recorded.pictures()
            #expect(pictures.count == Int(ending.frames) && pictures.count > 0, "\(pictures.count): \(ending)")
            // There is no room for another one.
            do {
                let second = try await client.startMovie(wishes.merging(["path": .string("\(disk.path)/b.mp4")]) { $1 })
                let ending = try await end(client, second.id)
                #expect(ending.reason == "diskFull", "\(ending)")
            } catch let error as ClientError {
                #expect(error.reason == .diskFull, "\(error)")
                #expect(access("\(disk.path)/b.mp4", F_OK) != 0)
            }
            // The command says so.
            let refused = try await bus.run(
                "camerabus", ["record", "cam0", "--duration", "30", "--min-free", "1G", "-o", "\(disk.path)/c.mp4"])
            #expect(refused.status == 1 && refused.standardError.contains("1000 MB must stay free"), "\(refused)")
            #expect(refused.standardError.contains("--min-free"))
            unlink(filler)
            let third = try await client.startMovie(wishes.merging(["path": .string("\(disk.path)/d.mp4")]) { $1 })
            let last = try await client.stopMovie(third.id)
            #expect(last.isSuccess && last.reason == "stopped", "\(last)")
            #expect(try await RecordedMovie(third.path).complaints() == "")
            await client.close()
            try await bus.stop()
        }

        @Test(.enabled(if: SmallDisk.obstacle == nil, "left out: \(SmallDisk.obstacle ?? "")"))
        func `what is to stay free stays free`() async throws {
            let disk = try await SmallDisk(megabytes: 24)
            let bus = try await RecordedMovies.bus(
                configuration: "[library]\ndirectory = \"\(disk.path)/library\"\nmin_free = 0\n")
            let client = try await bus.connect()
            let movie = try await client.startMovie([
                "device": "cam0", "path": .string("\(disk.path)/a.mp4"), "fragmentInterval": 200,
                "minFreeDiskSpace": 8_000_000,
            ])
            _ = try disk.fill(leaving: 9_000_000)
            let ending = try await end(client, movie.id)
            #expect(ending.reason == "minimumFreeDiskSpaceReached" && ending.isSuccess, "\(ending)")
            // The library's entry and the side-car are on the same disk.
            #expect(disk.free >= 8_000_000 - 131_072, "\(disk.free)")
            #expect(try await RecordedMovie(movie.path).complaints() == "")
            await client.close()
            try await bus.stop()
        }

        @Test func `a size and a duration end it within them`() async throws {
            let bus = try await RecordedMovies.bus()
            let client = try await bus.connect()
            for (member, limit, reason) in [
                ("maxFileSize", 1_500_000, "maximumFileSizeReached"), ("maxDuration", 700, "maximumDurationReached"),
            ] {
                let path = "\(bus.scratchPath)/\(member).mp4"
                let movie = try await client.startMovie([
                    "device": "cam0", "microphone": "mic0", "path": .string(path), member: JSONValue(limit),
                    "fragmentInterval": 300,
                ])
                let ending = try await end(client, movie.id)
                #expect(ending.reason == reason && ending.isSuccess, "\(ending)")
                let recorded = try RecordedMovie(path)
                #expect(try await recorded.complaints() == "")
                try RecordedMovies.checkPictures(try await recorded.pictures(), ending.json)
                if member == "maxFileSize" {
                    #expect(try File.read(path, limit: 64 << 20).count <= limit)
                } else {
                    // The last frame begins before the limit.
                    let duration = try await recorded.duration()
                    #expect(duration < 0.7 + 1.0 / 15 && duration > 0.5, "\(duration)")
                }
            }
            await client.close()
            try await bus.stop()
        }

        @Test func `one movie of a camera at a time, and paths that can't be are refused without a trace`() async throws
        {
            let bus = try await RecordedMovies.bus()
            let there = try bus.write("somebody's", to: "there.mp4")
            let client = try await bus.connect()
            let movie = try await client.startMovie(["device": "cam0", "name": "first.mp4"])
            do {
                _ = try await client.startMovie(["device": "cam0", "name": "second.mp4"])
                Issue.record("two movies of one camera")
            } catch {
                guard case .refused(let refusal) = error else { throw error }
                #expect(refusal.reason == .recordingInProgress && refusal.data["movie"] == .string(movie.id))
            }
            _ = try await client.stopMovie(movie.id)
            for path in ["/nowhere/a.mp4", "\(bus.scratchPath)/../a.mp4", "a.mp4", there] {
                do {
                    _ = try await client.startMovie(["device": "cam0", "path": .string(path)])
                    Issue.record("\(path) was taken")
                } catch {
                    #expect([.invalidParams, .pathNotAllowed].contains(error.reason), "\(path): \(error)")
                }
            }
            await client.close()
            try await bus.stop()
        }

        @Test func `a camera that stays away ends it, one that comes back does not`() async throws {
            let bus = try await RecordedMovies.bus()
            let client = try await bus.connect()
            let path = "\(bus.scratchPath)/a.mp4"
            let movie = try await client.startMovie(["device": "cam0", "path": .string(path), "fragmentInterval": 300])
            let updates = try await client.updates(ofMovie: movie.id)
            // So that its rate is known.
            while let update = try await updates.next() {
                if case .state(let state) = update, state.frames > 5 { break }
            }
            _ = try await client.call(
                "fault.inject", ["device": "cam0", "fault": "unplug", "milliseconds": 3000])
            try await bus.wait(for: "state/device/cam0/") { $0?["connected"] == false }
            let away = try await client.movie(movie.id).frames
            var (frames, dropped, hasWaited, waitingFor) = (away, Int64(0), false, [String]())
            while frames < away + 10, let update = try await updates.next() {
                if case .state(let state) = update {
                    (frames, dropped, waitingFor) = (state.frames, state.dropped, state.waitingFor)
                    hasWaited = hasWaited || waitingFor == ["cam0"]
                }
                if case .ended(let ending) = update { throw TestingError("\(ending)") }
            }
            // 1.5 s at 30 frames a second.
            #expect(hasWaited && waitingFor == [] && dropped >= 40, "\(dropped) dropped")
            _ = try await client.call("fault.inject", ["device": "cam0", "fault": "unplug"])
            var ending: MovieEnding?
            while let update = try await updates.next() { if case .ended(let last) = update { ending = last } }
            #expect(ending?.reason == "deviceLost" && ending?.isSuccess == false && ending?.isKept == true)
            let recorded = try RecordedMovie(path)
            #expect(try await recorded.complaints() == "")
            let pictures = try await recorded.pictures()
            #expect(pictures.count == Int(ending?.frames ?? 0))
            // The time that it was away is in it.
            #expect(zip(pictures, pictures.dropFirst()).contains { $1.time - $0.time > 1 })
            await client.close()
            try await bus.stop()
        }

        @Test func `a camera that is set otherwise continues in another movie, and both are whole`() async throws {
            let bus = try await RecordedMovies.bus()
            let client = try await bus.connect()
            let path = "\(bus.scratchPath)/a.mp4"
            let movie = try await client.startMovie([
                "device": "cam0", "path": .string(path), "codec": "passThrough", "microphone": "mic0",
            ])
            let set = try await bus.run("camerabus", ["format", "cam0", "320x240", "--pixel", "MJPG"])
            try #require(set.status == 0, "\(set)")
            let ending = try await end(client, movie.id)
            #expect(ending.reason == "formatChanged" && ending.isSuccess && ending.isKept, "\(ending)")
            #expect(try await RecordedMovie(path).complaints() == "")
            let next = try #require(ending.next)
            let updates = try await client.updates(ofMovie: next)
            while let update = try await updates.next() {
                guard case .state(let state) = update, state.frames > 5 else { continue }
                #expect(state.follows == movie.id && state.json["part"] == 2)
                break
            }
            // Its first id is enough.
            let last = try await client.stopMovie(movie.id)
            #expect(last.id == next && last.reason == "stopped" && last.path == "\(bus.scratchPath)/a-2.mp4")
            #expect(try await RecordedMovie(last.path).complaints() == "")
            await client.close()
            try await bus.stop()
        }

        @Test(.enabled(if: OtherUser.isPossible, "left out: \(OtherUser.obstacle ?? "")"))
        func
            `another user records into the library, copies it, can't stop others' movies, and loses it with the permission`()
            async throws
        {
            let user = OtherUser.first
            // A library that his group may look into.
            let library = try TemporaryDirectory()
            chown(library.path, 0, user.gid)
            chmod(library.path, 0o2755)
            let bus = try await RecordedMovies.bus(
                configuration: OtherUser.configuration + "[library]\ndirectory = \"\(library.path)\"\n")
            let client = try await bus.connect()
            let ours = try await client.startMovie(["device": "cam0", "name": "ours.mp4"])
            let refused = try await bus.run("camerabus", ["record", "cam0", "--duration", "1"], as: user)
            #expect(refused.status == 1 && refused.standardError.contains("unauthorized"), "\(refused)")
            let allowed = try await bus.run("camerabus", ["allow", "\(user.uid)", "video", "libraryAdd", "library"])
            try #require(allowed.status == 0, "\(allowed)")
            for verb in ["stop", "pause"] {
                let foreign = try await bus.run("camerabus", ["movies", verb, ours.id], as: user)
                #expect(foreign.status == 1 && foreign.standardError.contains("unauthorized"), "\(foreign)")
            }
            #expect(try await client.movie(ours.id).state == "recording")
            // A microphone needs a permission of its own.
            let silent = try await bus.run(
                "camerabus", ["record", "cam0", "--mic", "mic0", "--duration", "1"], as: user)
            #expect(silent.status == 1 && silent.standardError.contains("unauthorized"), "\(silent)")
            // The bus may not write where it likes for others, so that the command copies.
            let folder = "\(bus.scratchPath)/theirs"
            mkdir(folder, 0o700)
            chown(folder, user.uid, user.gid)
            chmod(bus.scratchPath, 0o711)
            let copied = try await bus.run(
                "camerabus", ["record", "cam0", "--duration", "0.5", "-o", "\(folder)/a.mp4"], as: user)
            #expect(copied.status == 0 && copied.standardOutput == "\(folder)/a.mp4\n", "\(copied)")
            #expect(try await RecordedMovie("\(folder)/a.mp4").complaints() == "")
            // What is taken back ends what goes on.
            let running = try bus.start("camerabus", ["record", "cam0", "--json"], as: user)
            try await eventually { running.standardOutput.contains("\"frames\"") }
            let denied = try await bus.run("camerabus", ["deny", "\(user.uid)", "video"])
            try #require(denied.status == 0, "\(denied)")
            let ended = try await running.end()
            #expect(ended.status == 1 && ended.standardError.contains("unauthorized"), "\(ended)")
            #expect(try await client.stopMovie(ours.id).isSuccess)
            await client.close()
            try await bus.stop()
        }
    }
}
