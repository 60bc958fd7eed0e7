import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

/// The program itself, against a bus that says what the test wants.
@Suite(.timeLimit(.minutes(2))) struct CommandTests {
    private let scratch: TemporaryDirectory

    init() throws { scratch = try TemporaryDirectory() }

    private func start(_ bus: FakeBus?, _ arguments: [String], _ extra: [String: String] = [:]) throws -> RunningProgram
    {
        var environment = ["PATH": "/usr/bin:/bin"].merging(extra) { $1 }
        environment["CAMERABUS_RUNTIME_DIR"] = bus?.path ?? scratch.path
        return try RunningProgram("camerabus", arguments, environment: environment, scratch: scratch)
    }

    private func run(_ bus: FakeBus?, _ arguments: String...) async throws -> ProgramResult {
        try await start(bus, arguments).end()
    }

    @Test func `without a bus it says where it looked, with status 3`() async throws {
        let result = try await run(nil, "devices")
        #expect(result.status == 3)
        #expect(result.standardOutput == "")
        #expect(result.standardError.contains(scratch.path) && result.standardError.contains("camerabusd"))
    }

    @Test func `wrong usage has status 2`() async throws {
        let wrong = [
            ["nonsense"], ["set", "cam0"], ["frames", "cam0", "-n", "0"], ["format", "cam0", "--pixel", "X"],
            ["name", "cam0"], ["name", "cam0", "front", "--remove"], ["name", "cam0", ""],
        ]
        for arguments in wrong {
            let result = try await start(nil, arguments).end()
            #expect(result.status == 2, "\(arguments): \(result)")
            #expect(result.standardOutput == "")
        }
        let help = try await run(nil, "--help")
        #expect(help.status == 0 && help.standardOutput.contains("EXIT STATUS") && help.standardError == "")
    }

    @Test func `refusals have status 1 and their reason, also as JSON`() async throws {
        let bus = try FakeBus()
        let result = try await run(bus, "formats", "cam9")
        #expect(result.status == 1)
        #expect(result.standardError.hasPrefix("methodNotFound: "))
        let json = try await run(bus, "frames", "cam9", "--json")
        #expect(json.status == 1 && json.standardOutput == "")
        #expect(try JSONValue(parsing: json.standardError)["data"]?["reason"] == "deviceNotFound")
    }

    @Test func `a bus that does not answer has status 4`() async throws {
        let bus = try FakeBus { request, _ in request.method == "device.list" }
        let result = try await run(bus, "devices", "--timeout", "2")
        #expect(result.status == 4)
        #expect(result.standardError.contains("device.list within 2 s"))
    }

    @Test func `devices are listed for people and for programs`() async throws {
        let bus = try FakeBus()
        let table = try await run(bus, "devices").standardOutput
        #expect(table.hasPrefix("ID    NAME"))
        #expect(table.contains("cam0  Virtual camera cam0  YUYV 640x480    30  closed"))
        let json = try JSONValue(parsing: try await run(bus, "devices", "--json").standardOutput)
        #expect(json["devices"]?[1]?["id"] == "cam1")
        #expect(try await run(bus, "devices", "--ids").standardOutput == "cam0\ncam1\n")
    }

    @Test func `bash completes commands, devices and methods`() async throws {
        let bus = try FakeBus()
        let script = """
            eval "$(camerabus completions bash)"
            try() {
                COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMPREPLY=()
                COMP_POINT=${#COMP_LINE}
                _camerabus camerabus "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
                echo "${COMPREPLY[*]}"
            }
            try camerabus doc
            try camerabus who cam
            try camerabus call device.who
            try camerabus frames cam0 jp
            """
        let environment = ["PATH": "\(Programs.directory):/usr/bin:/bin", "CAMERABUS_RUNTIME_DIR": bus.path]
        let result = try await RunningProgram("bash", ["-c", script], environment: environment, scratch: scratch).end()
        #expect(result.standardOutput == "doctor\ncam0 cam1\ndevice.who\njpeg\n", "\(result)")
        for shell in ["zsh", "fish"] where try await find(shell) {
            let name = "\(scratch.path)/\(shell)"
            let check = "camerabus completions \(shell) >\(name) && \(shell) -n \(name)"
            let syntax = try await RunningProgram(
                "bash", ["-c", check], environment: environment, scratch: scratch
            ).end()
            #expect(syntax.status == 0, "\(syntax)")
        }
    }

    private func find(_ program: String) async throws -> Bool {
        try await RunningProgram(
            "sh", ["-c", "command -v \(program)"], environment: ["PATH": "/usr/bin:/bin"], scratch: scratch
        ).end().status == 0
    }

    @Test func `frames become files that are never half there`() async throws {
        let bus = try FakeBus()
        let program = try start(bus, ["frames", "cam0", "gray", "-n", "2", "-o", "\(scratch.path)/f-%02d.raw"])
        try await eventually { bus.subscriptions.contains("frame/cam0/gray/") }
        try await eventually {
            let sequence = Int64(MonotonicClock.now() / 1_000_000)
            let header = FakeBus.header("cam0", "gray", sequence: sequence)
            bus.publishFrame("cam0", "gray", header: header, payload: [1, 2, 3, 4])
            return program.process.hasEnded
        }
        #expect(try await program.end().status == 0)
        #expect(try File.read("\(scratch.path)/f-01.raw", limit: 10) == [1, 2, 3, 4])
        #expect(try File.read("\(scratch.path)/f-02.raw", limit: 10) == [1, 2, 3, 4])
        #expect(!scratch.contents().contains { $0.hasSuffix(".part") })
    }

    @Test func `frames go to standard output, and its end ends the program quietly`() async throws {
        let bus = try FakeBus()
        let program = try RunningProgram(
            "sh", ["-c", "\(Programs.path("camerabus")) frames cam0 gray -o - | head -c 8; exit ${PIPESTATUS:-0}"],
            environment: ["PATH": "/usr/bin:/bin", "CAMERABUS_RUNTIME_DIR": bus.path], scratch: scratch)
        var sequence: Int64 = 0
        try await eventually {
            sequence += 1
            let header = FakeBus.header("cam0", "gray", sequence: sequence)
            bus.publishFrame("cam0", "gray", header: header, payload: [1, 2, 3, 4])
            return program.process.hasEnded
        }
        let result = try await program.end()
        #expect(result.standardOutputBytes == [1, 2, 3, 4, 1, 2, 3, 4])
        #expect(result.standardError == "")
    }

    @Test func `a line tells of each frame, and an error header ends with its reason`() async throws {
        let bus = try FakeBus()
        let program = try start(bus, ["frames", "cam0", "gray"])
        try await eventually { bus.subscriptions.contains("frame/cam0/gray/") }
        try await eventually {
            let header = FakeBus.header("cam0", "gray", sequence: 3)
            bus.publishFrame("cam0", "gray", header: header, payload: [1, 2, 3, 4])
            return program.standardOutput.split(separator: "\n").count > 1
        }
        let error = BusError(.deviceDisconnected, "cam0 was unplugged.")
        bus.publishFrame(
            "cam0", "gray", header: Announcement.failure(device: "cam0", rendition: "gray", error: error), payload: nil)
        let result = try await program.end()
        #expect(result.status == 1)
        #expect(result.standardError == "deviceDisconnected: cam0 was unplugged.\n")
        let fields = result.standardOutput.split(separator: "\n")[1].split(separator: " ")
        #expect(fields == ["3", "0.000", "GREY", "2x2", "4", "0"])
    }

    @Test func `a camera that is silent has status 4`() async throws {
        let bus = try FakeBus()
        let result = try await run(bus, "frames", "cam0", "--timeout", "3")
        #expect(result.status == 4)
        #expect(result.standardError.contains("cam0 has sent nothing for 3 s"))
    }

    @Test func `watch adds the slash, and ends with status 3 when the bus is gone`() async throws {
        let bus = try FakeBus()
        let program = try start(bus, ["watch", "state/device/cam1", "--json", "--timeout", "5"])
        try await eventually { bus.subscriptions.contains("state/device/cam1/") }
        try await eventually {
            bus.setState("state/device/cam10/", ["x": 0])
            bus.setState("state/device/cam1/", ["x": 1])
            return !program.standardOutput.isEmpty
        }
        let result = try await program.end()
        #expect(result.status == 3)
        let line = try JSONValue(parsing: String(result.standardOutput.split(separator: "\n")[0]))
        #expect(line["topic"] == "state/device/cam1/" && line["value"]?["x"] == 1)
        #expect(!result.standardOutput.contains("cam10"))
    }

    @Test func `call prints what the bus answers`() async throws {
        let bus = try FakeBus()
        let result = try await run(bus, "call", "device.get", "{\"device\": \"cam0\"}", "--json")
        #expect(try JSONValue(parsing: result.standardOutput)["device"]?["id"] == "cam0")
        #expect(try await run(bus, "call", "device.get", "[1]").status == 2)
        #expect(try await run(bus, "call", "device.get", "{").status == 2)
        // Nothing is there to be read.
        let empty = try await run(bus, "call", "device.get", "-")
        #expect(empty.status == 2 && empty.standardError.hasPrefix("The parameters are no JSON"))
    }
}
