import BusClient
import BusProtocol
import CameraBusTesting
import CaptureLibrary
import Glibc
import JSON
import LinuxIO
import Testing

extension ProcessTests {
    /// How much of the library each user may have, and of its disk.
    @Suite(.timeLimit(.minutes(5))) struct LibraryQuota {
        private let home: TemporaryDirectory
        init() throws { home = try TemporaryDirectory() }

        private var library: CaptureLibrary { get throws { try CaptureLibrary("\(home.path)/library") } }

        private func bus(quota: Int, _ more: String = "") async throws -> BusHarness {
            try await BusHarness(
                virtual: 2, configuration: "[library]\nquota = \(quota)\n\(more)",
                arguments: ["--state-dir", home.path])
        }

        /// A recording that has so many bytes, as its entry says.
        private func store(_ id: String, _ bytes: Int64, uid: UInt32? = nil) throws {
            _ = try StoredFile(library, id: id, bytes: [1], size: bytes, uid: uid)
        }

        private func check(_ error: BusError?, used: Int64, of quota: Int64) {
            #expect(error?.reason == .limitExceeded && error?.data["limit"] == "libraryQuota", "\(error as Any)")
            #expect(error?.data["used"] == .integer(used) && error?.data["maximum"] == .integer(quota))
            #expect(error?.message.contains("library.delete") == true)
        }

        @Test func `who has reached the quota records and stores nothing until something is deleted`() async throws {
            try store("old", 3_000_000)
            try store("theirs", 90_000_000, uid: 64_117)
            let bus = try await bus(quota: 3_000_000)
            let client = try RawClient(path: bus.directory.commandSocket)
            let take = try client.call("take.create", ["device": "cam1"])["take"]?["id"] ?? .null
            let movie: JSONValue = ["device": "cam0", "name": "a.mp4"]
            check(try client.refusal("movie.start", movie), used: 3_000_000, of: 3_000_000)
            check(try client.refusal("take.record", ["take": take]), used: 3_000_000, of: 3_000_000)
            let photo: JSONValue = ["device": "cam0", "deliver": ["library"]]
            check(try client.refusal("photo.capture", photo), used: 3_000_000, of: 3_000_000)
            // What leaves nothing in the library is no matter of it.
            try client.start("photo.capture", ["device": "cam0", "deliver": ["reply"]])
            #expect(try client.replyWithFrames(within: 30).frames.count == 1)
            let told = try await bus.run("camerabus", ["record", "cam0", "--duration", "1"])
            #expect(told.status == 1 && told.standardError.contains("camerabus library delete ID"), "\(told)")
            #expect(told.standardError.contains("3 MB"))

            try client.call("library.delete", ["id": "old"])
            let started = try client.call("movie.start", movie, within: 30)
            let ending = try client.call("movie.stop", ["movie": started["movie"] ?? .null], within: 30)
            #expect(ending["reason"] == "stopped" && ending["kept"] == true)
            try client.call("photo.capture", photo, within: 30)
            try await bus.stop()
        }

        @Test func `a movie that reaches the quota ends whole, with its user's others`() async throws {
            try store("old", 4_000_000)
            let bus = try await bus(quota: 5_000_000)
            let client = try await bus.connect()
            var movies: [String] = []
            for camera in ["cam0", "cam1"] {
                let movie = try await client.startMovie([
                    "device": .string(camera), "fragmentInterval": 200, "name": .string("\(camera).mp4"),
                ])
                movies.append(movie.id)
            }
            var stored: Int64 = 4_000_000
            for movie in movies {
                let updates = try await client.updates(ofMovie: movie)
                var ending: MovieEnding?
                while let update = try await updates.next() { if case .ended(let last) = update { ending = last } }
                #expect(ending?.reason == "libraryQuotaReached" && ending?.isSuccess == true, "\(ending as Any)")
                #expect(ending?.isKept == true)
                let path = try #require(ending?.path)
                #expect(try await RecordedMovie(path).complaints() == "")
                stored += Int64(try File.read(path, limit: 64 << 20).count)
            }
            // A second of both, at most.
            #expect(stored >= 5_000_000 && stored < 9_000_000, "\(stored)")
            let raw = try RawClient(path: bus.directory.commandSocket)
            let refusal = try raw.refusal("movie.start", ["device": "cam0", "name": "b.mkv"])
            check(refusal, used: stored, of: 5_000_000)
            await client.close()
            try await bus.stop()
        }

        /// What is recorded is counted as it is stored, and what was there when the bus started.
        @Test func `photos count, over the death of the bus and a reload too`() async throws {
            let bus = try await bus(quota: 1)
            var client = try RawClient(path: bus.directory.commandSocket)
            let photo: JSONValue = ["device": "cam0", "deliver": ["library"]]
            let size = try #require(
                client.call("photo.capture", photo, within: 30)["photos"]?[0]?["bytes"]?.integer)
            check(try client.refusal("photo.capture", photo), used: size, of: 1)
            try await bus.killCoordinator()
            try await bus.startCoordinator()
            client = try RawClient(path: bus.directory.commandSocket)
            check(try client.refusal("photo.capture", photo), used: size, of: 1)
            try bus.write("[library]\nquota = \(size * 2)\n", to: "camerabus.toml")
            kill(bus.pid, SIGHUP)
            try await eventually { bus.log.contains("configuration read again") }
            try client.call("photo.capture", photo, within: 30)
            try bus.write("[library]\nquota = 0\n", to: "camerabus.toml")
            kill(bus.pid, SIGHUP)
            try await eventually { (try? client.call("photo.capture", photo, within: 30)) != nil }
            try await bus.stop()
        }

        @Test func `a client can only raise what stays free`() async throws {
            let bus = try await bus(quota: 0, "min_free = \(Int64.max)\n")
            let client = try RawClient(path: bus.directory.commandSocket)
            let movie: JSONValue = ["device": "cam0", "name": "a.mp4", "minFreeDiskSpace": 0]
            #expect(try client.refusal("movie.start", movie)?.reason == .diskFull)
            try await bus.stop()
        }
    }
}
