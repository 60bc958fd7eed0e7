import BusProtocol
import CameraBusTesting
import JSON
import Testing

@testable import camerabus

/// `camerabus library`, and ids of which the beginning is typed, against a bus that says what the test wants.
@Suite(.timeLimit(.minutes(5))) struct LibraryCommandTests {
    private let scratch: TemporaryDirectory

    init() throws { scratch = try TemporaryDirectory() }

    private func run(_ bus: FakeBus, _ arguments: String...) async throws -> ProgramResult {
        try await RunningProgram(
            "camerabus", arguments,
            environment: ["PATH": "/usr/bin:/bin", "CAMERABUS_RUNTIME_DIR": bus.path, "TZ": "UTC"], scratch: scratch
        ).end()
    }

    private static let photo: JSONValue = [
        "id": "1f0c9a2b3d4e5f60", "kind": "photo", "path": "/l/2026-11-22/photo-143205.jpg", "state": "finished",
        "devices": [["device": "cam0", "uniqueID": "virtual-0"]], "started": 1_795_333_303_000_000_000,
        "duration": 0, "size": 123_456, "fileType": "jpeg",
        "photo": ["uniqueID": "one", "index": 1, "width": 1280, "height": 720],
        "owner": ["uid": 1000, "pid": 42, "name": "probe"],
    ]

    /// A bus that keeps a photo and two takes, of which one is recorded.
    private func bus() throws -> FakeBus {
        let takes: [JSONValue] = ["1f0c000000000000", "1f0d000000000000"].map {
            [
                "id": $0, "name": "a", "state": "paused", "segment": .null, "duration": 0, "total": 0,
                "remaining": .null, "segments": [],
            ]
        }
        return try FakeBus { request, respond in
            let entries = [Self.photo].filter { entry in
                let (id, prefix) = (entry["id"]?.string ?? "", request.params["prefix"]?.string ?? "")
                return id.hasPrefix(prefix) && request.params["take"] == nil
            }
            switch request.method {
            case "library.list": respond(.result(["entries": .array(entries), "more": false]))
            case "library.get" where request.params["id"] == Self.photo["id"]: respond(.result(["entry": Self.photo]))
            case "library.get": respond(.error(BusError(.entryNotFound, "There is none.")))
            case "take.list": respond(.result(["takes": .array(takes)]))
            case "take.discard": respond(.result(["deleted": [request.params["take"] ?? .null]]))
            default: return false
            }
            return true
        }
    }

    @Test func `a photo is shown with its size in pixels`() async throws {
        let bus = try bus()
        let table = try await run(bus, "library", "--kind", "photo", "--photo", "one")
        let lines = table.standardOutput.split(separator: "\n")
        #expect(table.status == 0 && lines.count == 2, "\(table)")
        #expect(lines.last?.contains("1280x720") == true && lines.last?.contains("  -  ") == true)
        let params = try #require(bus.requests.first { $0.method == "library.list" }?.params)
        #expect(params == ["kind": "photo", "photo": "one"])
        let text = try await run(bus, "library", "get", "1f0c9a2b3d4e5f60")
        #expect(text.standardOutput.contains("jpeg 1280x720") && text.standardOutput.contains("taken "), "\(text)")
        #expect(!text.standardOutput.contains("length"))
    }

    @Test func `a file's own name is what stands behind the last slash, whatever that is followed by`() {
        #expect(LibraryCommand.Fetch.name("/l/\u{301}a.mp4") == "\u{301}a.mp4")
        #expect(LibraryCommand.Fetch.name("/l/a.mp4") == "a.mp4" && LibraryCommand.Fetch.name("/l/..") == nil)
    }

    @Test func `a live photo is shown with its movie`() throws {
        let movie: JSONValue = [
            "contentIdentifier": "7E0A3B52-9C41-4D68-A1F0-2B9C5D7E6F81", "width": 640, "height": 480, "bytes": 5000,
            "duration": 2.9, "photoDisplayTime": 1.4,
        ]
        var entry = Self.photo.object ?? [:]
        entry["movie"] = "/l/2026-11-22/photo-143205.mov"
        var photo = entry["photo"]?.object ?? [:]
        photo["livePhotoMovie"] = movie
        entry["photo"] = .object(photo)
        let lines = LibraryText.lines(.object(entry))
        #expect(
            lines.contains { $0.hasPrefix("movie ") && $0.hasSuffix(" /l/2026-11-22/photo-143205.mov") }, "\(lines)")
        #expect(lines.contains { $0.hasPrefix("live ") && $0.hasSuffix(" 2.9 s, 640x480, 5 kB, the photo at 1.4 s") })
        let table = LibraryText.table([.object(entry), Self.photo]).lines
        #expect(table.contains { $0.hasSuffix("/l/2026-11-22/photo-143205.jpg + photo-143205.mov") }, "\(table)")
        #expect(table.last?.hasSuffix("/photo-143205.jpg") == true)
        #expect(table.contains { $0.contains("0:02.9") && $0.contains(" + 5 kB ") }, "\(table)")
    }

    @Test func `what does not match is not an empty library`() async throws {
        let bus = try bus()
        let none = try await run(bus, "library", "--take", "nobodys")
        #expect(none.status == 0 && none.standardOutput == "" && none.standardError.contains("matches"), "\(none)")
        let empty = try FakeBus { request, respond in
            guard request.method == "library.list" else { return false }
            respond(.result(["entries": [], "more": false]))
            return true
        }
        #expect(try await run(empty, "library").standardError.contains("The library is empty"))
    }

    @Test func `the beginning of an id is enough where one begins so`() async throws {
        let bus = try bus()
        let photo = try await run(bus, "library", "get", "1f0c9a2b", "--json")
        #expect(try JSONValue(parsing: photo.standardOutputBytes) == Self.photo, "\(photo)")
        #expect(try await run(bus, "library", "get", "2").standardError.hasPrefix("entryNotFound"))
        let discarded = try await run(bus, "take", "discard", "1f0d")
        #expect(discarded.standardOutput == "deleted 1f0d000000000000\n", "\(discarded)")
        let several = try await run(bus, "take", "discard", "1f0")
        #expect(several.status == 1 && several.standardOutput == "", "\(several)")
        #expect(several.standardError.contains("1f0c000000000000, 1f0d000000000000"))
        #expect(bus.requests.filter { $0.method == "take.discard" }.count == 1)
    }

    @Test func `the beginning of a request's or a take's id chooses from the library`() async throws {
        let entry = Self.photo.object.map { JSONValue.object($0.merging(["take": "7a0000"]) { $1 }) } ?? .null
        let bus = try FakeBus { request, respond in
            guard request.method == "library.list" else { return false }
            let (photo, take) = (request.params["photo"], request.params["take"])
            let isMeant = (photo == nil || photo == "one") && (take == nil || take == "7a0000")
            respond(.result(["entries": isMeant ? [entry] : [], "more": false]))
            return true
        }
        for arguments in [["--photo", "on"], ["--take", "7a"], ["--photo", "o", "--take", "7a0000"]] {
            let result = try await RunningProgram(
                "camerabus", ["library", "--ids"] + arguments,
                environment: ["PATH": "/usr/bin:/bin", "CAMERABUS_RUNTIME_DIR": bus.path], scratch: scratch
            ).end()
            #expect(result.standardOutput == "1f0c9a2b3d4e5f60\n", "\(result)")
        }
        #expect(try await run(bus, "library", "--photo", "two").standardError.contains("matches"))
    }

    @Test func `the beginning of an ended movie's id, and of a session's, is enough`() async throws {
        let bus = try FakeBus { request, respond in
            switch request.method {
            case "movie.list": respond(.result(["movies": []]))
            case "library.list":
                respond(.result(["entries": [["id": "cfe2300000000000", "kind": "movie"]], "more": false]))
            case "session.list": respond(.result(["sessions": [["id": "5e55101a"], ["id": "77000000"]]]))
            default: return false
            }
            return true
        }
        _ = try await run(bus, "movies", "show", "cfe23")
        _ = try await run(bus, "photo", "--session", "5e")
        _ = try await run(bus, "take", "create", "--session", "5e")
        _ = try await run(bus, "session", "stop", "77")
        func params(_ method: String) -> JSONValue? { bus.requests.first { $0.method == method }?.params }
        #expect(params("movie.status")?["movie"] == "cfe2300000000000")
        #expect(params("photo.capture")?["session"] == "5e55101a")
        #expect(params("take.create")?["session"] == "5e55101a")
        #expect(params("session.stop")?["session"] == "77000000")
    }

    @Test func `an id is taken as it is typed where nobody lists any`() async throws {
        let bus = try FakeBus { request, respond in
            guard request.method == "take.discard" else { return false }
            respond(.result(["deleted": [request.params["take"] ?? .null]]))
            return true
        }
        #expect(try await run(bus, "take", "discard", "1f0d").standardOutput == "deleted 1f0d\n")
    }

    @Test func `an id that is whole is meant, whatever else begins so`() throws {
        let ids = ["a", "ab", "b1", "b2"] + (0..<20).map { "c\($0)" }
        #expect(try ShortID.chosen("a", among: ids, "takes") == "a")
        #expect(try ShortID.chosen("ab", among: ids, "takes") == "ab")
        #expect(try ShortID.chosen("x", among: ids, "takes") == "x" && ShortID.chosen("b1", among: [], "takes") == "b1")
        let error = #expect(throws: Failure.self) { try ShortID.chosen("c", among: ids, "takes") }
        #expect(error?.description.contains("c7, …") == true && error?.description.contains("c8") == false)
    }
}
