import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

/// `camerabus take`, against a bus that says what the test wants.
@Suite(.timeLimit(.minutes(5))) struct TakeCommandTests {
    private let scratch: TemporaryDirectory

    init() throws { scratch = try TemporaryDirectory() }

    private func run(_ bus: FakeBus, _ arguments: String...) async throws -> ProgramResult {
        try await RunningProgram(
            "camerabus", ["take"] + arguments,
            environment: ["PATH": "/usr/bin:/bin", "CAMERABUS_RUNTIME_DIR": bus.path], scratch: scratch
        ).end()
    }

    /// A bus with a take of one segment, which may not write where this user would have its movie.
    ///
    /// - Parameter least: milliseconds that it is to be long.
    private func bus(least: JSONValue = .null) throws -> FakeBus {
        let library = "\(scratch.path)/library"
        try PrivateDirectory.make(library, mode: 0o700)
        for name in ["a-1.mp4", "a.mp4", "a.jpg"] {
            try File.replace("\(library)/\(name)", with: Array(name.utf8), mode: 0o600)
        }
        let take: JSONValue = [
            "id": "t1", "name": "a", "state": "paused", "segment": .null, "duration": 0, "total": 2000,
            "remaining": .null, "minDuration": least,
            "segments": [["id": "m1", "path": .string("\(library)/a-1.mp4"), "duration": 2000]],
        ]
        return try FakeBus { request, respond in
            switch request.method {
            case "rig.list":
                let rig: JSONValue = ["name": "stereo", "devices": [["id": "cam0"], ["id": "cam1"]]]
                respond(.result(["rigs": [rig]]))
            case "take.create", "take.get": respond(.result(["take": take]))
            case "take.list": respond(.result(["takes": [take]]))
            case "take.delete": respond(.result(["take": take, "deleted": ["/v/a-1.mp4"]]))
            case "take.finish" where request.params["path"] != nil:
                respond(.error(BusError(.pathNotAllowed, "Not there.", ["roots": []])))
            case "take.finish":
                respond(
                    .result([
                        "take": "t1", "path": .string("\(library)/a.mp4"), "cover": .string("\(library)/a.jpg"),
                        "duration": 2000, "size": 5, "encoded": false,
                    ]))
            case "take.pause":
                respond(
                    .result([
                        "segment": "m1", "path": "/v/a-1.mp4", "reason": "deviceLost", "success": false,
                        "error": ["reason": "deviceLost", "message": "cam0 is gone."], "kept": true, "duration": 2000,
                        "total": 2000, "remaining": .null,
                    ]))
            default: return false
            }
            return true
        }
    }

    @Test func `segments of a take that is made in a script outlive the program that begins them`() async throws {
        let bus = try bus()
        #expect(try await run(bus, "create", "cam0", "--min", "1").standardOutput == "t1\n")
        #expect(try await run(bus, "create", "--session", "s1").status == 0)
        let asked = bus.requests.filter { $0.method == "take.create" }.map(\.params)
        // A session's segments are the session's.
        #expect(asked.map { $0["detached"] } == [true, nil] && asked.map { $0["minDuration"]?.double } == [1000, nil])
    }

    @Test func `the last segment is the one that is thrown away`() async throws {
        let bus = try bus()
        #expect(try await run(bus, "delete", "t1").standardOutput == "deleted /v/a-1.mp4\n")
        #expect(bus.requests.last?.params == ["take": "t1", "segment": "m1"])
    }

    @Test func `a segment that was lost has status 1`() async throws {
        let result = try await run(try bus(), "pause", "t1")
        #expect(result.status == 1)
        #expect(result.standardError == "deviceLost: cam0 is gone. 0:02.0, 0:02.0 in all.\n")
    }

    @Test func `a take that is shorter than it is to be is told, and joined all the same`() async throws {
        let bus = try bus(least: 3000)
        let short = "The take is 0:02.0 long; its minimum is 0:03.0.\n"
        #expect(try await run(bus, "pause", "t1").standardError.hasSuffix(short))
        let finished = try await run(bus, "finish", "t1")
        #expect(finished.status == 0 && finished.standardError.hasPrefix(short), "\(finished)")
        #expect(try await run(try self.bus(least: 2000), "finish", "t1").standardError.hasPrefix("0:02.0, 5 B"))
    }

    @Test func `where the bus may not write, the movie is copied from its library`() async throws {
        let bus = try bus()
        let place = "\(scratch.path)/mine.mp4"
        let result = try await run(bus, "finish", "t1", "-o", place)
        #expect(result.status == 0 && result.standardOutput == "\(place)\n", "\(result)")
        #expect(try File.read(place, limit: 100) == Array("a.mp4".utf8))
        #expect(try File.read("\(scratch.path)/mine.jpg", limit: 100) == Array("a.jpg".utf8))
        // What is there stays, and the take as it was.
        let count = bus.requests.count
        let again = try await run(bus, "finish", "t1", "-o", place)
        #expect(again.status == 1 && again.standardError.contains("exists already; --force"))
        #expect(!bus.requests.dropFirst(count).contains { $0.method == "take.finish" })
        // Unless it is told otherwise; then there is nothing left of what was there.
        for path in [place, place + ".frames.jsonl", "\(scratch.path)/mine.jpg"] {
            try File.replace(path, with: [1], mode: 0o600)
        }
        let forced = try await run(bus, "finish", "t1", "-o", place, "--force")
        #expect(forced.status == 0 && forced.standardOutput == "\(place)\n", "\(forced)")
        #expect(try File.read(place, limit: 100) == Array("a.mp4".utf8))
        #expect(scratch.contents().filter { $0.hasPrefix("mine") } == ["mine.jpg", "mine.mp4"])
    }

    @Test func `what is there comes back when the take can't be finished`() async throws {
        let bus = try FakeBus { request, respond in
            if request.method == "take.list" { respond(.result(["takes": []])) }
            if request.method == "take.get" { respond(.result(["take": ["id": "t1"]])) }
            if request.method == "take.list" { respond(.result(["takes": []])) }
            if request.method == "take.finish" { respond(.error(BusError(.notRecording, "No segments.", [:]))) }
            return request.method.hasPrefix("take.")
        }
        let place = "\(scratch.path)/mine.mp4"
        try File.replace(place, with: [1], mode: 0o600)
        #expect(try await run(bus, "finish", "t1", "-o", place, "--force").status == 1)
        #expect(
            try File.read(place, limit: 100) == [1] && scratch.contents().filter { $0.hasPrefix("mine") }.count == 1)
    }

    @Test func `a rig is no camera, which is said with what to do`() async throws {
        let result = try await run(try bus(), "create", "stereo")
        #expect(result.status == 1 && result.standardError.contains("Name cam0 or cam1"), "\(result)")
        #expect(result.standardError.contains("camerabus record stereo"))
    }

    @Test func `who doesn't wait for the joining is told that it goes on`() async throws {
        let bus = try FakeBus { request, respond in
            if request.method == "take.list" { respond(.result(["takes": []])) }
            if request.method == "take.get" { respond(.result(["take": ["id": "t1", "total": 2000]])) }
            return ["take.list", "take.get", "take.finish"].contains(request.method)
        }
        let finishing = try RunningProgram(
            "camerabus", ["take", "finish", "t1"],
            environment: ["PATH": "/usr/bin:/bin", "CAMERABUS_RUNTIME_DIR": bus.path], scratch: scratch)
        try await eventually { bus.requests.contains { $0.method == "take.finish" } }
        finishing.process.send(SIGINT)
        let result = try await finishing.end()
        #expect(result.status == 130 && result.standardError.contains("library list --take t1"), "\(result)")
        #expect(!bus.requests.contains { $0.method == "bus.cancel" })
    }

    @Test func `what is refused of one take keeps no other from being thrown away`() async throws {
        let bus = try FakeBus { request, respond in
            if request.method == "take.list" { respond(.result(["takes": []])) }
            guard request.method == "take.discard" else { return request.method == "take.list" }
            let isThere = request.params["take"] != "t1"
            respond(
                isThere
                    ? .result(["take": "t2", "deleted": ["/v/a.mp4"]])
                    : .error(BusError(.takeNotFound, "No t1; take.list answers.", ["take": "t1"])))
            return true
        }
        let result = try await run(bus, "discard", "t1", "t2")
        #expect(result.status == 1 && result.standardOutput == "deleted /v/a.mp4\n", "\(result)")
        #expect(result.standardError == "takeNotFound: No t1; 'camerabus take list' lists them.\n")
    }

    @Test func `without a terminal there is nobody to press Enter`() async throws {
        let bus = try bus()
        let result = try await run(bus, "cam0")
        #expect(result.status == 2 && result.standardError.contains("camerabus take create"))
        #expect(bus.requests.isEmpty)
    }
}
