import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureLibrary
import Glibc
import JSON
import LinuxIO
import Testing

extension ProcessTests {
    /// Recordings are their user's: nobody else of the bus's group reads them, unless an administrator says so.
    @Suite(.timeLimit(.minutes(5))) struct LibraryAccess {
        private let home: TemporaryDirectory
        private let place: TemporaryDirectory
        private var directory: String { "\(place.path)/library" }

        init() throws {
            home = try TemporaryDirectory()
            place = try TemporaryDirectory()
            // As of the service: those who know a path pass through.
            chmod(place.path, 0o711)
        }

        private func configuration(isShared: Bool) -> String {
            OtherUser.configuration + "[library]\ndirectory = \"\(directory)\"\nshared = \(isShared)\n"
        }

        private func modes(isShared: Bool = false) -> [String] {
            FileModes.others(
                below: directory, files: isShared ? 0o640 : 0o600, folders: isShared ? 0o750 : 0o700,
                except: ["index."])
        }

        private func bus(isShared: Bool = false, _ more: String = "") async throws -> BusHarness {
            try await BusHarness(
                virtual: 1, configuration: configuration(isShared: isShared) + more,
                arguments: ["--state-dir", home.path])
        }

        @Test func `everything in the library is the bus's own, also while it is recorded`() async throws {
            let bus = try await bus()
            let client = try RawClient(path: bus.directory.commandSocket)
            let movie = try client.call("movie.start", ["device": "cam0", "name": "walk.mkv"], within: 30)["movie"]
            #expect(FileModes.mode("\(directory)/entries") == 0o700 && modes() == [])
            try client.call("movie.stop", ["movie": movie ?? .null], within: 30)
            for more in [[], ["--live"]] {
                let taken = try await bus.run("camerabus", ["photo", "cam0", "--library"] + more)
                #expect(taken.status == 0, "\(taken)")
            }
            let take = try await bus.run("camerabus", ["take", "create", "cam0"]).standardOutput
            for step in ["record", "pause", "finish"] {
                let result = try await bus.run("camerabus", ["take", step, take.trimmed])
                #expect(result.status == 0, "\(step): \(result)")
            }
            let kinds = (try client.call("library.list")["entries"]?.array ?? []).compactMap { $0["kind"]?.string }
            #expect(kinds.sorted() == ["movie", "photo", "photo", "take"])
            #expect(modes() == [])
            #expect(FileModes.mode("\(directory)/index.sqlite3") == 0o600)
            try await bus.stop()
        }

        @Test func `a library that others could read is shut at the start, and as a reload says`() async throws {
            _ = try StoredFile(CaptureLibrary(directory, isShared: true), id: "old", bytes: [1])
            #expect(modes(isShared: true) == [])
            let bus = try await bus()
            try await eventually { modes() == [] }
            try await eventually { bus.log.contains("read by others than before") }
            for isShared in [true, false] {
                try bus.write(configuration(isShared: isShared), to: "camerabus.toml")
                kill(bus.pid, SIGHUP)
                try await eventually { modes(isShared: isShared) == [] }
                let movie = try await bus.run("camerabus", ["record", "cam0", "--duration", "0.2"])
                #expect(movie.status == 0 && modes(isShared: isShared) == [], "\(movie)")
            }
            try await bus.stop()
        }

        @Test func `a movie over a reload, and its next part, have the modes of now`() async throws {
            let bus = try await bus()
            let client = try RawClient(path: bus.directory.commandSocket)
            let params: JSONValue = [
                "device": "cam0", "name": "a.mp4", "fragmentInterval": 100, "continueAfterCrash": true,
            ]
            let id = try #require(client.call("movie.start", params, within: 30)["movie"]?.string)
            try bus.write(configuration(isShared: true), to: "camerabus.toml")
            kill(bus.pid, SIGHUP)
            try await eventually { modes(isShared: true) == [] }
            try bus.recorder(of: id).send(SIGKILL)
            var next: JSONValue?
            try await eventually {
                next = try client.call("movie.list")["movies"]?.array?.first { $0["state"] == "recording" }?["id"]
                return next != nil && next != .string(id)
            }
            try client.call("movie.stop", ["movie": next ?? .null], within: 30)
            #expect(modes(isShared: true) == [])
            try await bus.stop()
        }

        @Test(.enabled(if: OtherUser.isPossible, "left out: \(OtherUser.obstacle ?? "")"))
        func `one user's recordings reach no other user, and always their own`() async throws {
            let (owner, other) = (OtherUser.first, OtherUser.second)
            func permission(_ role: String) -> String {
                "[permission.users]\n\(owner.uid) = \"control\"\n\(other.uid) = \"\(role)\"\n"
            }
            let bus = try await bus(permission("control"))
            let desk = "\(place.path)/desk"
            mkdir(desk, 0o700)
            chown(desk, owner.uid, owner.gid)
            let client = try RawClient(path: bus.directory.commandSocket)

            // What this user can't open is told by its id, and how to get it.
            let recorded = try await bus.run("camerabus", ["record", "cam0", "--duration", "0.3"], as: owner)
            let movie = recorded.standardOutput.trimmed
            #expect(recorded.status == 0 && recorded.standardError.contains("camerabus library fetch \(movie)"))
            let photo = try await bus.run("camerabus", ["photo", "cam0", "--library"], as: owner)
            #expect(photo.status == 0 && photo.standardError.contains("camerabus library fetch"), "\(photo)")
            let path = try #require(try client.call("library.get", ["id": .string(movie)])["entry"]?["path"]?.string)
            for user in [owner, other] {
                #expect(try await bus.run("cat", [path], as: user).status != 0)
                #expect(try await bus.run("ls", [directory], as: user).status != 0)
            }
            let fetched = try await bus.run("camerabus", ["library", "fetch", movie, "-o", "\(desk)/a.mp4"], as: owner)
            #expect(fetched.status == 0, "\(fetched)")
            let (copy, original) = (
                try File.read("\(desk)/a.mp4", limit: 16 << 20), try File.read(path, limit: 16 << 20)
            )
            #expect(copy == original)
            // A path that the bus may not write to: the file comes there at the end.
            let brought = try await bus.run(
                "camerabus", ["record", "cam0", "--duration", "0.3", "-o", "\(desk)/b.mp4"], as: owner)
            #expect(brought.status == 0 && brought.standardOutput == "\(desk)/b.mp4\n", "\(brought)")
            #expect(FileModes.mode("\(desk)/b.mp4.frames.jsonl") != 0)
            let stolen = try await bus.run("camerabus", ["library", "fetch", movie, "-o", "-"], as: other)
            #expect(stolen.status == 1 && stolen.standardError.contains("entryNotFound"), "\(stolen)")
            // Nor while it is written, nor after all permission has been taken away.
            let running = try await bus.run("camerabus", ["record", "cam0", "--detach"], as: owner)
            let live = try client.call("movie.status", ["movie": .string(running.standardOutput.trimmed)])["movie"]
            let livePath = try #require(live?["path"]?.string)
            try bus.write(configuration(isShared: false) + permission("none"), to: "camerabus.toml")
            kill(bus.pid, SIGHUP)
            try await eventually {
                let refused = try await bus.run("camerabus", ["library", "fetch", movie, "-o", "-"], as: other)
                return refused.standardError.contains("unauthorized")
            }
            for path in [path, livePath] { #expect(try await bus.run("cat", [path], as: other).status != 0) }
            try client.call("movie.stop", ["movie": .string(running.standardOutput.trimmed)], within: 30)
            try await bus.stop()
        }

        @Test(.enabled(if: OtherUser.isPossible, "left out: \(OtherUser.obstacle ?? "")"))
        func `a library that is shared is read by the group`() async throws {
            let owner = OtherUser.first
            // The bus's group is theirs, as that of the service is.
            mkdir(directory, 0o750)
            chown(directory, 0, owner.gid)
            chmod(directory, 0o2750)
            let bus = try await bus(isShared: true, "[permission.users]\n\(owner.uid) = \"control\"\n")
            let recorded = try await bus.run("camerabus", ["record", "cam0", "--duration", "0.3"], as: owner)
            #expect(recorded.status == 0 && recorded.standardOutput.hasPrefix(directory), "\(recorded)")
            #expect(modes(isShared: true) == [])
            try await bus.stop()
        }

        @Test(.enabled(if: OtherUser.isPossible, "left out: \(OtherUser.obstacle ?? "")"))
        func `the page gives its user what only the bus can read`() async throws {
            let gateway = OtherUser.first
            let bytes = (0..<(3 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8) }
            let library = try CaptureLibrary(directory)
            let own = try StoredFile(library, id: "own", bytes: bytes, uid: RemoteUser.uid(named: "web"))
            _ = try StoredFile(library, id: "theirs", bytes: [1], uid: 1)
            chmod(own.path, 0o600)
            let bus = try await bus("[permission]\ngateway = \"\(gateway.uid)\"\n")
            let web = try await WebGateway(bus, as: gateway)
            let all = try await web.get("/library/own/own.mp4")
            #expect(all.status == 200 && all.body == bytes && all.head.contains("filename*=UTF-8''own.mp4"))
            let part = try await web.get("/library/own/own.mp4", ["-H", "Range: bytes=1000-2100000"])
            #expect(part.status == 206 && part.body == Array(bytes[1000...2_100_000]))
            let head = try await web.get("/library/own/own.mp4", ["--head"])
            #expect(head.status == 200 && head.head.contains("Content-Length: \(bytes.count)"))
            #expect(try await web.get("/library/theirs/theirs.mp4").status == 404)
            #expect(try await web.get("/library/own/other.mp4").status == 404)
            try await bus.stop()
        }
    }
}

extension String {
    fileprivate var trimmed: String { split(separator: "\n").first.map(String.init) ?? "" }
}
