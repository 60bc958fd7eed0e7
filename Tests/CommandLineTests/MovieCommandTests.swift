import BusProtocol
import CameraBusTesting
import JSON
import LinuxIO
import Testing

/// `camerabus movies` and `camerabus record`, against a bus that says what the test wants.
@Suite(.timeLimit(.minutes(5))) struct MovieCommandTests {
    private let scratch: TemporaryDirectory

    init() throws { scratch = try TemporaryDirectory() }

    private func run(_ bus: FakeBus, _ arguments: String...) async throws -> ProgramResult {
        try await RunningProgram(
            "camerabus", arguments, environment: ["PATH": "/usr/bin:/bin", "CAMERABUS_RUNTIME_DIR": bus.path],
            scratch: scratch
        ).end()
    }

    private static func end(_ movie: JSONValue) -> JSONValue {
        [
            "movie": movie, "path": .string("/v/\(movie.string ?? "").mp4"), "reason": "stopped", "success": true,
            "error": .null, "duration": 1000, "size": 5, "frames": 30, "dropped": 0, "kept": true,
        ]
    }

    @Test func `several movies are ended, whatever becomes of one of them`() async throws {
        let bus = try FakeBus { request, respond in
            if request.method == "movie.list" {
                respond(.result(["movies": []]))
                return true
            }
            guard request.method.hasPrefix("movie."), let movie = request.params["movie"] else { return false }
            if movie == "none" {
                respond(.error(BusError(.notRecording, "There is no movie 'none'.", ["movie": movie])))
            } else {
                respond(.result(request.method == "movie.stop" ? Self.end(movie) : ["movie": ["id": movie]]))
            }
            return true
        }
        let stopped = try await run(bus, "movies", "stop", "a", "none", "b")
        #expect(stopped.status == 1 && stopped.standardOutput == "/v/a.mp4\n/v/b.mp4\n", "\(stopped)")
        #expect(stopped.standardError.contains("notRecording: There is no movie 'none'"))
        let paused = try await run(bus, "movies", "pause", "a", "b", "--json")
        #expect(paused.status == 0 && paused.standardOutput.split(separator: "\n").count == 2, "\(paused)")
        let resumed = try await run(bus, "movies", "resume", "none")
        #expect(resumed.status == 1 && resumed.standardError.hasPrefix("notRecording: "), "\(resumed)")
    }

    @Test func `what can't be recorded is told before anything is begun`() async throws {
        let bus = try FakeBus { request, respond in
            guard request.method == "rig.list" else { return false }
            respond(.result(["rigs": [["name": "stereo", "devices": [["id": "cam0"], ["id": "cam1"]]]]]))
            return true
        }
        let refusals: [([String], Int32, String)] = [
            (["--mic", "mic0"], 2, "Name a camera. 'camerabus record mic0' records only its sound."),
            ([], 2, "Name a camera, or a rig."), (["stero"], 1, "Did you mean 'stereo'?"),
            (["cam7"], 1, "There is no device or rig 'cam7'. Known: cam0, cam1, stereo."),
            (["cam0", "stereo"], 1, "'stereo' is a rig. Record it alone"),
        ]
        for (arguments, status, text) in refusals {
            let result = try await RunningProgram(
                "camerabus", ["record"] + arguments,
                environment: ["PATH": "/usr/bin:/bin", "CAMERABUS_RUNTIME_DIR": bus.path], scratch: scratch
            ).end()
            #expect(result.status == status && result.standardError.contains(text), "\(arguments): \(result)")
        }
        #expect(!bus.requests.contains { $0.method == "movie.start" })
    }
}
