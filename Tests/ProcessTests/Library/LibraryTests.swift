import BusClient
import BusProtocol
import CameraBusTesting
import CaptureLibrary
import Glibc
import JSON
import LinuxIO
import Testing

extension ProcessTests {
    /// The capture library as clients meet it.
    @Suite(.timeLimit(.minutes(5))) struct Library {
        private let home: TemporaryDirectory
        init() throws { home = try TemporaryDirectory() }

        private var library: CaptureLibrary {
            get throws { try CaptureLibrary("\(home.path)/library") }
        }

        private func bus(configuration: String? = nil, arguments: [String] = []) async throws -> BusHarness {
            try await BusHarness(
                virtual: 1, configuration: configuration, arguments: ["--state-dir", home.path] + arguments)
        }

        @Test func `unfinished files of a recorder are repaired when the bus starts`() async throws {
            let torn = try LeftMovie(try library, id: "torn", cut: 0.8)
            let empty = try LeftMovie(try library, id: "empty", cut: 0)
            let bus = try await bus()
            let client = try RawClient(path: bus.directory.commandSocket)
            // Questions don't wait for the mending.
            try await eventually {
                try library.entry("torn")?.state == .recovered && library.entry("empty")?.state == .damaged
            }
            let answer = try client.call("library.list")
            let states = (answer["entries"]?.array ?? []).map {
                "\($0["id"]?.string ?? "") \($0["state"]?.string ?? "")"
            }
            #expect(Set(states) == ["torn recovered", "empty damaged"] && answer["more"] == false)
            #expect(try client.call("library.list", ["state": "damaged"])["entries"]?.array?.count == 1)
            let entry = try client.call("library.get", ["id": "torn"])["entry"]
            #expect(entry?["reason"] == "recorderCrashed" && entry?["path"] == .string(torn.entry.path))
            #expect(try #require(entry?["duration"]?.integer) > 0)
            try await eventually { bus.log.contains(torn.entry.path) && bus.log.contains(empty.entry.path) }
            let deleted = try client.call("library.delete", ["id": "torn"])
            #expect(deleted["deleted"]?.array?.count == 2)
            #expect(access(torn.entry.path, F_OK) != 0)
            #expect(try client.refusal("library.get", ["id": "torn"])?.reason == .entryNotFound)
            try await bus.stop()
        }

        @Test func `ten thousand entries are listed every time, to both clients and the command line`() async throws {
            let place = try library
            for number in 0..<10_000 {
                var entry = LibraryEntry.photo("entry-\(number)", in: place, started: Int64(number + 1))
                entry.state = .finished
                entry.path = "2026-11-22/\(entry.id).jpg"
                // Not as the library does it: ten thousand times fsync would take minutes.
                let file = try FileDescriptor(
                    opening: "\(place.entriesDirectory)/\(entry.id).json", O_WRONLY | O_CREAT | O_EXCL)
                try FileDescriptor.writeAll(entry.json.serialized, to: file.rawValue)
            }
            let bus = try await bus()
            let client = try RawClient(path: bus.directory.commandSocket)
            for _ in 0..<10 {
                let answer = try client.call("library.list", ["limit": 1000], within: 60)
                let ids = answer["entries"]?.array?.compactMap { $0["id"]?.string } ?? []
                #expect(ids == (9000..<10_000).reversed().map { "entry-\($0)" } && answer["more"] == true)
            }
            let swift = try await Client.connect(runtimeDirectory: bus.directory.path, name: "a test")
            #expect(try await swift.library(Client.LibraryFilter(limit: 1000))["entries"]?.array?.count == 1000)
            await swift.close()
            let listed = try await bus.run("camerabus", ["library", "--limit", "1000", "--json"])
            #expect(listed.status == 0, "\(listed.standardError)")
            #expect(try JSONValue(parsing: listed.standardOutput)["entries"]?.array?.count == 1000)
            try await bus.stop()
        }

        @Test func `a movie that ends its librarian does not keep others from being mended`() async throws {
            _ = try LeftMovie(try library, id: "good", cut: 0.8, started: 1)
            let pill = try LeftMovie(try library, id: "pill", cut: 0.8, started: 2)
            let mortal = "\(home.path)/mortal"
            let script = """
                #!/bin/sh
                all="\(Programs.privateArguments)"
                case "$all" in *pill*) case "$all" in *recover*) kill -9 $$;; esac;; esac
                exec "\(Programs.path("camerabus-librarian"))" "$@"

                """
            try File.replace(mortal, with: Array(script.utf8), mode: 0o700)
            let bus = try await bus(arguments: ["--librarian", mortal])
            try await eventually {
                try library.entry("pill")?.state == .damaged && library.entry("good")?.state == .recovered
            }
            #expect(try File.read(pill.entry.path, limit: 16 << 20) == pill.bytes)
            try await bus.stop()
        }

        @Test func `a recorder that dies leaves playable files`() async throws {
            let bus = try await bus()
            let client = try RawClient(path: bus.directory.commandSocket)
            let started = try client.call(
                "movie.start", ["device": "cam0", "name": "walk.mkv", "fragmentInterval": 200], within: 30)
            let id = try #require(started["movie"]?.string)
            #expect(try client.call("library.get", ["id": .string(id)])["entry"]?["state"] == "recording")
            try await bus.wait(for: "state/movie/\(id)/") { ($0?["fragments"]?.integer ?? 0) > 1 }
            try bus.recorder(of: id).send(SIGKILL)
            var entry: JSONValue?
            try await eventually {
                entry = try client.call("library.get", ["id": .string(id)])["entry"]
                return entry?["state"] == "recovered"
            }
            #expect(entry?["reason"] == "recorderCrashed" && entry?["path"] == started["path"])
            #expect(try #require(entry?["duration"]?.integer) >= 200)
            #expect(entry?["devices"]?[0]?["uniqueID"] == "virtual-0" && entry?["take"] == started["take"])
            try await bus.stop()
        }

        @Test func `what is being recorded is left alone`() async throws {
            let lock = try LockFile("\(home.path)/recorder.lock")
            let left = try LeftMovie(try library, id: "live", cut: 0.8, lock: "\(home.path)/recorder.lock")
            let bus = try await bus()
            let client = try RawClient(path: bus.directory.commandSocket)
            #expect(try client.call("library.get", ["id": "live"])["entry"]?["state"] == "recording")
            #expect(try client.refusal("library.delete", ["id": "live"])?.reason == .recordingInProgress)
            #expect(try File.read(left.entry.path, limit: 16 << 20) == left.bytes)
            withExtendedLifetime(lock) {}
            try await bus.stop()
        }

        @Test(.enabled(if: OtherUser.isPossible, "left out: \(OtherUser.obstacle ?? "")"))
        func `only users with permission can read the library`() async throws {
            _ = try LeftMovie(try library, id: "mine", cut: 1, uid: OtherUser.first.uid)
            _ = try LeftMovie(try library, id: "theirs", cut: 1, uid: OtherUser.second.uid)
            let bus = try await bus(configuration: OtherUser.configuration)
            func list(_ user: OtherUser?) async throws -> ProgramResult {
                guard let user else { return try await bus.run("camerabus", ["library", "--ids"]) }
                return try await bus.run("camerabus", ["library", "--ids"], as: user)
            }
            let refused = try await list(.first)
            #expect(refused.status == 1 && refused.standardError.hasPrefix("unauthorized"), "\(refused)")
            try await bus.wait(for: "state/authorization/\(OtherUser.first.uid)/") { $0?["asked"] == ["library"] }
            let allowed = try await bus.run("camerabus", ["allow", "\(OtherUser.first.uid)", "library"])
            #expect(allowed.status == 0, "\(allowed)")
            #expect(try await list(.first).standardOutput == "mine\n")
            let foreign = try await bus.run("camerabus", ["library", "delete", "theirs"], as: .first)
            #expect(foreign.status == 1 && foreign.standardError.hasPrefix("entryNotFound"), "\(foreign)")
            #expect(try await bus.run("camerabus", ["library", "delete", "mine"], as: .first).status == 0)
            #expect(try await list(.first).standardOutput == "")
            #expect(try await list(nil).standardOutput == "theirs\n", "administrators see everything")
            try await bus.stop()
        }

        @Test func `a librarian that hangs holds up nothing else`() async throws {
            let stuck = "\(home.path)/stuck"
            try File.replace(stuck, with: Array("#!/bin/sh\nexec sleep 1000\n".utf8), mode: 0o700)
            let bus = try await bus(arguments: ["--librarian", stuck])
            let waiting = try RawClient(path: bus.directory.commandSocket)
            for _ in 0..<20 { try waiting.start("library.list") }
            var refused = 0
            // Those beyond what one user may have wait no longer than for their turn.
            for _ in 0..<4 {
                if case .failure(let error) = try waiting.reply().result, error.reason == .limitExceeded {
                    refused += 1
                }
            }
            #expect(refused == 4)
            let other = try RawClient(path: bus.directory.commandSocket)
            #expect(try other.call("device.list", within: 5)["devices"]?.array?.count == 1)
            // Those that wait are given up, and their processes ended.
            guard case .failure(let error) = try waiting.reply(within: 30).result else {
                Issue.record("a librarian that says nothing has answered")
                return
            }
            #expect(error.reason == .internalError)
            try await bus.stop()
        }

        @Test func `a librarian that there is not costs only the library`() async throws {
            let bus = try await bus(arguments: ["--librarian", "\(home.path)/none"])
            let client = try RawClient(path: bus.directory.commandSocket)
            #expect(try client.refusal("library.list")?.reason == .internalError)
            #expect(try client.call("device.list")["devices"]?.array?.count == 1)
            try await bus.stop()
        }

        @Test func `the command line shows it`() async throws {
            _ = try LeftMovie(try library, id: "torn", cut: 0.8)
            let bus = try await bus()
            try await eventually { try library.entry("torn")?.state == .recovered }
            let table = try await bus.run("camerabus", ["library"])
            let lines = table.standardOutput.split(separator: "\n")
            #expect(table.status == 0 && lines.count == 2 && lines[0].hasPrefix("ID"), "\(table)")
            #expect(lines.last?.contains("recovered") == true && lines.last?.contains("cam0") == true)
            let json = try await bus.run("camerabus", ["library", "get", "torn", "--json"])
            #expect(try JSONValue(parsing: json.standardOutputBytes)["state"] == "recovered")
            let text = try await bus.run("camerabus", ["library", "get", "torn"])
            #expect(text.standardOutput.contains("recorderCrashed"), "\(text)")
            let deleted = try await bus.run("camerabus", ["library", "delete", "torn"])
            #expect(deleted.status == 0 && deleted.standardOutput.hasPrefix("deleted /"), "\(deleted)")
            let nothing = try await bus.run("camerabus", ["library"])
            #expect(nothing.status == 0 && nothing.standardOutput == "")
            try await bus.stop()
        }
    }
}
