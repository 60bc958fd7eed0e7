import BusClient
import BusProtocol
import CameraBusTesting
import CaptureLibrary
import Glibc
import JSON
import LinuxIO
import Synchronization
import Testing
import ZeroMQ

extension ProcessTests {
    /// Files of the capture library as they come to clients, on this machine and on another one.
    @Suite(.timeLimit(.minutes(5))) struct LibraryReading {
        private let home: TemporaryDirectory
        init() throws { home = try TemporaryDirectory() }

        private var library: CaptureLibrary { get throws { try CaptureLibrary("\(home.path)/library") } }

        private func bus(virtual: Int = 0) async throws -> BusHarness {
            try await BusHarness(virtual: virtual, arguments: ["--state-dir", home.path])
        }

        /// A key of a gateway, as programs are told of it.
        private func environment(
            _ bus: BusHarness, _ gateway: RemoteGateway, _ name: String, _ role: Request.Principal.Role
        ) throws -> [String: String] {
            let pair = try gateway.add(name, role)
            let text = KeyFile.text(publicKey: pair.publicKey.text, secretKey: pair.secretKey.text, name: name)
            return [
                "CAMERABUS_RUNTIME_DIR": "tcp://127.0.0.1:\(gateway.port)",
                "CAMERABUS_SERVER_KEY": gateway.serverKey.text, "CAMERABUS_KEY": try bus.write(text, to: "\(name).key"),
            ]
        }

        private func client(_ environment: [String: String]) async throws -> Client {
            let remote = try RemoteBus(
                environment["CAMERABUS_RUNTIME_DIR"] ?? "", serverKey: environment["CAMERABUS_SERVER_KEY"] ?? "",
                keyFile: environment["CAMERABUS_KEY"] ?? "")
            return try await Client.connect(to: .remote(remote), name: "probe", timeout: .seconds(20))
        }

        // What can be told from its neighbours anywhere.
        private static func bytes(_ count: Int) -> [UInt8] {
            var generator = SystemRandomNumberGenerator()
            var bytes: [UInt8] = []
            bytes.reserveCapacity(count)
            while bytes.count < count { withUnsafeBytes(of: generator.next()) { bytes.append(contentsOf: $0) } }
            return bytes
        }

        private func names(_ folder: String) -> [String] {
            guard let listing = opendir(folder) else { return [] }
            defer { closedir(listing) }
            var names: [String] = []
            while let entry = readdir(listing) {
                let name = withUnsafePointer(to: &entry.pointee.d_name) {
                    $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                }
                if name != ".", name != ".." { names.append(name) }
            }
            return names.sorted()
        }

        @Test func `a part follows its reply, for users who may see the entry`() async throws {
            let bytes = Self.bytes(300_000)
            _ = try StoredFile(library, id: "one", bytes: bytes)
            let bus = try await bus()
            let client = try RawClient(path: bus.directory.commandSocket)
            try client.start("library.read", ["id": "one", "offset": 1000, "length": 200_000])
            let (reply, frames) = try client.replyWithFrames()
            let result = try reply.result.get()
            #expect(
                result["attachments"] == [["name": "one.mp4", "contentType": "video/mp4", "bytes": 200_000]]
                    && result["size"] == 300_000 && result["offset"] == 1000, "\(result)")
            #expect(frames.map { Array($0.bytes) } == [Array(bytes[1000..<201_000])])
            // Small ones, and none.
            for length in [7, 0] {
                try client.start("library.read", ["id": "one", "length": JSONValue(length)])
                #expect(try client.replyWithFrames().frames.map { Array($0.bytes) } == [Array(bytes[..<length])])
            }
            let tooLong = try client.refusal("library.read", ["id": "one", "length": JSONValue((4 << 20) + 1)])
            #expect(tooLong?.reason == .invalidParams)
            #expect(try client.refusal("library.read", ["id": "two"])?.reason == .entryNotFound)
            try await bus.stop()
        }

        @Test func `library reads with keys don't displace photos among the stored answers`() async throws {
            let bytes = Self.bytes(4 << 20)
            _ = try StoredFile(library, id: "one", bytes: bytes)
            let bus = try await bus(virtual: 1)
            let client = try RawClient(path: bus.directory.commandSocket)
            let photo: JSONValue = ["device": "cam0", "deliver": ["reply"]]
            try client.start("photo.capture", photo, key: "photo")
            let taken = try client.replyWithFrames(within: 30).frames.map { Array($0.bytes) }
            // Once more than answers are kept of.
            for number in 0...16 {
                try client.start("library.read", ["id": "one", "length": JSONValue(4 << 20)], key: "part \(number)")
                #expect(try client.replyWithFrames().frames.map(\.count) == [bytes.count])
            }
            try client.start("photo.capture", photo, key: "photo")
            #expect(try client.replyWithFrames().frames.map { Array($0.bytes) } == taken && taken.count == 1)
            // A part is had again, as it is then, and its key stands for nothing else.
            _ = try StoredFile(library, id: "two", bytes: bytes)
            try client.call("library.delete", ["id": "one"])
            let part: JSONValue = ["id": "one", "length": JSONValue(4 << 20)]
            #expect(try client.refusal("library.read", part, key: "part 0")?.reason == .entryNotFound)
            #expect(try client.refusal("library.read", ["id": "two"], key: "part 0")?.data["path"] == "key")
            try await bus.stop()
        }

        @Test func `parts that nobody takes don't fill the memory`() async throws {
            _ = try StoredFile(library, id: "large", bytes: [1], size: 64 << 20)
            let bus = try await bus()
            // Clients that take one reply, and read none.
            let context = try Context()
            let stuck = try (0..<3).map { _ in
                let socket = try Socket(context, .dealer)
                try socket.set(.receiveHighWaterMark, 1)
                try socket.connect("ipc://\(bus.directory.commandSocket)")
                return socket
            }
            let params: JSONValue = ["id": "large", "length": JSONValue(4 << 20)]
            let request = Request(id: 1, method: "library.read", params: params).serialized
            let asking = try RawClient(path: bus.directory.commandSocket)
            try await eventually {
                // One of each at a time: too many questions would be refused for their number.
                for socket in stuck { try socket.send(frames: [[], request]) }
                guard let error = try asking.refusal("library.read", params) else { return false }
                return error.reason == .limitExceeded && error.data["limit"] == "libraryReplies"
            }
            withExtendedLifetime(stuck) {}
            try await bus.stop()
        }

        @Test func `a movie is recorded to a laptop, and what stays on the rig is told as such`() async throws {
            let bus = try await bus(virtual: 1)
            let gateway = try await RemoteGateway(bus)
            let desk = try environment(bus, gateway, "desk", .control)
            let file = "\(bus.scratchPath)/walk.mp4"
            let recorded = try await bus.run(
                "camerabus", ["record", "cam0", "--duration", "0.5", "-o", file], environment: desk)
            #expect(recorded.status == 0 && recorded.standardOutput == "\(file)\n", "\(recorded)")
            #expect(recorded.standardError.contains("is copied from there"), "\(recorded)")
            #expect(try await RecordedMovie(file).complaints() == "")
            #expect(try File.read("\(file).frames.jsonl", limit: 1 << 20).count > 0)
            let kept = try await bus.run("camerabus", ["record", "cam0", "--duration", "0.2"], environment: desk)
            let id = kept.standardOutput.trimmingNewline
            #expect(kept.status == 0 && !id.isEmpty && !id.contains("/"), "\(kept)")
            let shown = try await bus.run("camerabus", ["movies", "show", id], environment: desk)
            #expect(shown.standardOutput == "\(id)\n", "\(shown)")
            #expect(shown.standardError.contains("Get it with 'camerabus library fetch \(id)'"), "\(shown)")
            let told = try await bus.run("camerabus", ["library", "get", id], environment: desk)
            #expect(told.standardOutput.contains("tcp://127.0.0.1:\(gateway.port), /"), "\(told)")
            let folder = "\(bus.scratchPath)/laptop/"
            mkdir(folder, 0o700)
            let fetched = try await bus.run(
                "camerabus", ["library", "fetch", String(id.prefix(8)), "--all", "-o", folder], environment: desk)
            let names = names(folder)
            #expect(fetched.status == 0 && names.count == 2, "\(fetched) \(names)")
            #expect(fetched.standardOutput.split(separator: "\n").map(String.init) == names.map { folder + $0 })
            #expect(try await RecordedMovie(folder + names[0]).complaints() == "")
            let again = try await bus.run(
                "camerabus", ["library", "fetch", id, "-o", folder], environment: desk)
            #expect(again.status == 1 && again.standardError.contains("--force"), "\(again)")
            let poured = try await bus.run("camerabus", ["library", "fetch", id, "-o", "-"], environment: desk)
            #expect(try poured.standardOutputBytes == File.read(folder + names[0], limit: 64 << 20))
            let viewer = try environment(bus, gateway, "viewer", .view)
            let refused = try await bus.run("camerabus", ["library", "fetch", id], environment: viewer)
            #expect(refused.status == 1 && refused.standardError.hasPrefix("unauthorized"), "\(refused)")
            try await bus.stop()
        }

        @Test(.enabled(if: OtherUser.isPossible, "left out: \(OtherUser.obstacle ?? "")"))
        func `who may not read the library's folder gets his movie all the same`() async throws {
            let user = OtherUser.first
            let bus = try await BusHarness(
                virtual: 1,
                configuration: OtherUser.configuration + "[permission.users]\n\(user.uid) = \"control\"\n",
                arguments: ["--state-dir", home.path])
            // Neither the bus's nor to be seen through for this user: his own.
            let own = try TemporaryDirectory()
            #expect(chown(own.path, user.uid, user.gid) == 0)
            let file = "\(own.path)/own.mkv"
            let recorded = try await bus.run(
                "camerabus", ["record", "cam0", "--duration", "0.3", "-o", file], as: user)
            #expect(recorded.status == 0 && recorded.standardOutput == "\(file)\n", "\(recorded)")
            #expect(try await RecordedMovie(file).complaints() == "")
            var status = stat()
            #expect(stat("\(file).frames.jsonl", &status) == 0 && status.st_uid == user.uid)
            try await bus.stop()
        }

        @Test func `a large file costs neither the bus nor the gateway its size`() async throws {
            let size: Int64 = 96 << 20
            _ = try StoredFile(library, id: "large", bytes: Self.bytes(1000), size: size)
            let bus = try await bus()
            let gateway = try await RemoteGateway(bus, settings: "")
            let client = try await client(environment(bus, gateway, "desk", .admin))
            let before = try (memory(bus.pid), memory(gateway.program.process.pid))
            let file = "\(bus.scratchPath)/large.mp4"
            let fetched = try await client.fetchFromLibrary("large", to: file)
            #expect(fetched.size == size && names(bus.scratchPath).allSatisfy { !$0.hasSuffix(".part") })
            let after = try (memory(bus.pid), memory(gateway.program.process.pid))
            #expect(after.0 - before.0 < size / 2 && after.1 - before.1 < size / 2, "\(before) \(after)")
            await client.close()
            try await bus.stop()
        }

        // The most that it ever had, bytes.
        private func memory(_ pid: Int32) throws -> Int64 {
            let text = String(decoding: try File.read("/proc/\(pid)/status", limit: 1 << 16), as: UTF8.self)
            let line = text.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
            return try #require(line?.split(separator: " ").compactMap { Int64($0) }.first) * 1024
        }

        @Test func `a file that changes, or is deleted, between two parts is detected`() async throws {
            let stored = try StoredFile(library, id: "one", bytes: Self.bytes(1 << 20))
            let bus = try await bus()
            let client = try await bus.connect()
            let file = "\(bus.scratchPath)/one.mp4"
            let other = Self.bytes(2 << 20)
            let isChanged = Mutex(false)
            try await client.fetchFromLibrary("one", to: file) { done, size in
                let isFirst = isChanged.withLock { isChanged in
                    defer { isChanged = true }
                    return !isChanged
                }
                guard isFirst, done < size, let target = fopen(stored.path, "r+") else { return }
                fwrite(other, 1, other.count, target)
                fclose(target)
            }
            #expect(try File.read(file, limit: 64 << 20) == other, "all of it is of one time")
            #expect(names(bus.scratchPath).allSatisfy { !$0.hasSuffix(".part") })
            let gone = await #expect(throws: ClientError.self) {
                try await client.fetchFromLibrary("one", to: file, replaces: true) { _, _ in unlink(stored.path) }
            }
            #expect(gone?.reason == .entryNotFound)
            #expect(try File.read(file, limit: 64 << 20) == other, "what was there is there")
            await client.close()
            try await bus.stop()
        }

        @Test func `an interrupted copy continues where it ended, also with the next bus`() async throws {
            let bytes = Self.bytes(6 << 20)
            _ = try StoredFile(library, id: "one", bytes: bytes)
            let bus = try await bus()
            let gateway = try await RemoteGateway(bus)
            let client = try await client(environment(bus, gateway, "desk", .admin))
            let file = "\(bus.scratchPath)/one.mp4"
            let come = Mutex<Int64>(0)
            let cut = Task {
                try await client.fetchFromLibrary("one", to: file) { done, size in
                    come.withLock { $0 = done }
                    if done < size { withUnsafeCurrentTask { $0?.cancel() } }
                }
            }
            #expect(await { if case .failure = await cut.result { true } else { false } }())
            let pid = bus.pid
            let isKilled = Mutex(false)
            async let whole = client.fetchFromLibrary("one", to: file, timeout: .seconds(30)) { done, size in
                guard done < size, !isKilled.withLock(\.self) else { return }
                kill(pid, SIGKILL)
                isKilled.withLock { $0 = true }
            }
            try await eventually { isKilled.withLock(\.self) }
            try await bus.killCoordinator()
            try await bus.startCoordinator()
            let fetched = try await whole
            #expect(fetched.resumedAt > 0 && fetched.resumedAt == come.withLock(\.self))
            #expect(try File.read(file, limit: 64 << 20) == bytes)
            await client.close()
            try await bus.stop()
        }
    }
}

extension String {
    fileprivate var trimmingNewline: String { hasSuffix("\n") ? String(dropLast()) : self }
}
