import ArgumentParser
import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Testing

@testable import camerabus

/// The program itself, against a bus that says what the test wants.
@Suite(.timeLimit(.minutes(5))) struct CommandTests {
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
            ["nonsense"], ["set", "cam0"], ["frames", "cam0", "-n", "0"],
            ["format", "cam0", "f1", "--pixel", "X"], ["session", "switch", "s", "cam1", "--to", "cam1"],
            ["name", "cam0"], ["name", "cam0", "front", "--remove"], ["name", "cam0", ""],
            ["format", "cam0", "640"], ["frames", "cam0", "cam1"], ["frames", "cam0", "cam1", "jpeg"],
            ["set", "cam0", "brightness", "10"], ["set", "cam0", "=1"], ["watch", "nonsense"],
            ["watch", "state/devices"], ["--json"], ["--timeout", "5"], ["lock", "cam0", "--lease", "0"],
            ["devices", "--timeout", "-1"], ["lock", "cam0", "--"], ["fault", "cam0"], ["fault", "cam0", "explode"],
            ["fault", "cam0", "stall", "--list"], ["fault", "cam0", "--list", "--cancel"],
            ["fault", "cam0", "--cancel", "--ms", "5"], ["fault", "cam0", "stall", "--ms", "soon"],
            // Without a terminal there is nobody to press Enter.
            ["take", "cam0"], ["take", "create"], ["take", "create", "cam0", "--session", "s"],
            ["take", "create", "cam0", "--min", "5", "--max", "2"],
            ["take", "finish", "t", "-o", "a.mp4", "--name", "b"],
            ["keys", "add", "laptop"], ["keys", "new"], ["keys", "new", ""], ["keys", "role", "laptop", "owner"],
            ["tokens", "new"], ["tokens", "new", "web/x"], ["tokens", "new", "Ada", "--role", "owner"],
        ]
        for arguments in wrong {
            let result = try await start(nil, arguments).end()
            #expect(result.status == 2, "\(arguments): \(result)")
            #expect(result.standardOutput == "")
        }
        let help = try await run(nil, "--help")
        #expect(help.status == 0 && help.standardOutput.contains("EXIT STATUS") && help.standardError == "")
        for variable in ["RUNTIME_DIR", "SERVER_KEY", "KEY", "LOCK", "KEYS", "TOKENS"] {
            #expect(help.standardOutput.contains("\n  CAMERABUS_\(variable) "), "\(variable)")
        }
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
        #expect(result.standardError.contains("did not answer within 2 s"))
    }

    @Test func `devices are listed for people and for programs`() async throws {
        let bus = try FakeBus()
        let table = try await run(bus, "devices").standardOutput
        #expect(table.hasPrefix("ID    MEDIA  NAME"))
        #expect(table.contains("cam0  video  Virtual camera cam0  YUYV 640x480    30  closed"))
        let json = try JSONValue(parsing: try await run(bus, "devices", "--json").standardOutput)
        #expect(json["devices"]?[1]?["id"] == "cam1")
        #expect(try await run(bus, "devices", "--ids").standardOutput == "cam0\ncam1\n")
    }

    @Test func `bash completes commands, devices and methods`() async throws {
        let bus = try FakeBus { request, respond in
            switch request.method {
            case "device.controls":
                respond(.result(["controls": [["name": "hue", "type": "int"], ["name": "reset", "type": "button"]]]))
            case "device.formats":
                respond(
                    .result(["formats": [["pixelFormat": "YUYV"], ["pixelFormat": "MJPG"], ["pixelFormat": "YUYV"]]]))
            default: return false
            }
            return true
        }
        let script = """
            eval "$(camerabus completions bash)"
            try() {
                COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMPREPLY=()
                COMP_POINT=${#COMP_LINE}
                _camerabus_with_commands camerabus "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
                echo "${COMPREPLY[*]}"
            }
            try camerabus doc
            try camerabus who cam
            try camerabus call device.who
            try camerabus frames cam0 jp
            try camerabus get cam0 h
            try camerabus set cam0 ''
            try camerabus set cam0 hue = 10 re
            try camerabus format cam0 640x480 --pixel ''
            try camerabus watch state/device/
            try camerabus lock cam0 -- mktem
            try camerabus lock cam0 -- ls /usr/inclu
            """
        let environment = ["PATH": "\(Programs.directory):/usr/bin:/bin", "CAMERABUS_RUNTIME_DIR": bus.path]
        let result = try await RunningProgram("bash", ["-c", script], environment: environment, scratch: scratch).end()
        let lines = result.standardOutput.split(separator: "\n").map(String.init)
        #expect(lines.count == 11, "\(result)")
        #expect(lines.prefix(4) == ["doctor", "cam0 cam1", "device.who", "jpeg"])
        #expect(lines.dropFirst(4).prefix(4) == ["hue", "hue= reset", "reset", "YUYV MJPG"])
        #expect(lines.dropFirst(8).first == "state/device/ state/device/cam0/ state/device/cam1/")
        #expect(lines.dropFirst(9).first?.hasPrefix("mktemp") == true && lines.last == "/usr/include")
        #expect(["_normal", "compadd -S ''"].allSatisfy(CompletionScript.text(.zsh).contains))
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
        // What is over by itself is waited for, all else ends it.
        for error in [BusError(.deviceDisconnected, "It is gone."), BusError(.formatUnsupported, "It is no more.")] {
            bus.publishFrame(
                "cam0", "gray", header: Announcement.failure(device: "cam0", rendition: "gray", error: error),
                payload: nil)
            try await eventually { program.standardError.contains(error.message) }
        }
        let result = try await program.end()
        #expect(result.status == 1)
        #expect(
            result.standardError
                == "deviceDisconnected: It is gone. Waiting for cam0.\nformatUnsupported: It is no more.\n")
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

    @Test func `options of all commands may stand before the command`() async throws {
        let bus = try FakeBus()
        let result = try await start(nil, ["--json", "--runtime-dir", bus.path, "--timeout=5", "devices"]).end()
        #expect(try JSONValue(parsing: result.standardOutput)["devices"]?[0]?["id"] == "cam0")
    }

    @Test func `watch shows state once, however often it is published`() async throws {
        let bus = try FakeBus()
        let program = try start(bus, ["watch", "state/device/cam1", "--json"])
        try await eventually { bus.subscriptions.contains("state/device/cam1/") }
        func state(_ epoch: String, _ sequence: UInt64, _ x: JSONValue) -> [UInt8] {
            Announcement.state(epoch: epoch, sequence: sequence, previous: 0, value: ["x": x])
        }
        for (epoch, sequence, x) in [
            ("e1", 7, 1), ("e1", 7, 1), ("e1", 6, 0), ("e1", 8, 2), ("e1", 8, 2), ("e2", 3, 3), ("e2", 3, 3),
            ("e2", 4, 4),
        ] as [(String, UInt64, JSONValue)] {
            bus.publish("state/device/cam1/", state(epoch, sequence, x))
        }
        try await eventually { program.standardOutput.contains("\"x\":4") }
        let values = try program.standardOutput.split(separator: "\n").map {
            try JSONValue(parsing: String($0))["value"]?["x"] ?? .null
        }
        // What there was before the test's own, if it came, is no matter.
        #expect(values.filter { !$0.isNull } == [1, 2, 3, 4])
        program.process.send(SIGINT)
        #expect(try await program.end().status == 130)
    }

    @Test func `watch says what is not there, and waits for it`() async throws {
        let bus = try FakeBus()
        let program = try start(bus, ["watch", "state/device/cam7", "-n", "1"])
        try await eventually { program.standardError.hasSuffix("\n") }
        #expect(program.standardError.contains("'cam7' (known: cam0, cam1). Waiting"))
        try await eventually { bus.subscriptions.contains("state/device/cam7/") }
        bus.setState("state/device/cam7/", ["x": 1])
        let result = try await program.end()
        #expect(result.status == 0 && result.standardOutput == "state/device/cam7/ {\"x\":1}\n")
        let nonsense = try await run(bus, "watch", "cam0")
        #expect(nonsense.status == 2 && nonsense.standardError.contains("camerabus watch state/device/cam0"))
    }

    @Test func `a series that is interrupted says how far it came`() async throws {
        let bus = try FakeBus()
        let program = try start(bus, ["frames", "cam0", "gray", "-n", "9", "-o", "\(scratch.path)/f-%d.raw"])
        try await eventually { bus.subscriptions.contains("frame/cam0/gray/") }
        try await eventually {
            let header = FakeBus.header("cam0", "gray", sequence: 1)
            bus.publishFrame("cam0", "gray", header: header, payload: [1, 2, 3, 4])
            return scratch.contents().contains("f-1.raw")
        }
        program.process.send(SIGINT)
        let result = try await program.end()
        #expect(result.status == 130 && result.standardError.hasPrefix("Interrupted after "))
        #expect(result.standardError.hasSuffix(" of 9 frames.\n"))
    }

    @Test func `a file that is being written goes away with a second signal`() async throws {
        let bus = try FakeBus()
        // What is written to a pipe that nobody reads stays unfinished for as long as the test wants.
        let place = "\(scratch.path)/f.raw"
        let script = "mkfifo \(place).$$.part && exec 3<>\(place).$$.part && exec \"$0\" frames cam0 gray -o \(place)"
        let program = try RunningProgram(
            "sh", ["-c", script, Programs.path("camerabus")],
            environment: ["PATH": "/usr/bin:/bin", "CAMERABUS_RUNTIME_DIR": bus.path], scratch: scratch)
        try await eventually { bus.subscriptions.contains("frame/cam0/gray/") }
        let part = "f.raw.\(program.process.pid).part"
        #expect(scratch.contents().contains(part))
        let payload = [UInt8](repeating: 1, count: 1 << 20)
        bus.publishFrame("cam0", "gray", header: FakeBus.header("cam0", "gray", sequence: 1), payload: payload)
        // More than a pipe takes: once something is in it, the program waits for somebody who reads.
        let reader = try FileDescriptor(opening: "\(scratch.path)/\(part)", O_RDONLY | O_NONBLOCK)
        try await eventually {
            var item = pollfd(fd: reader.rawValue, events: Int16(POLLIN), revents: 0)
            return poll(&item, 1, 0) == 1
        }
        program.process.send(SIGINT)
        try await eventually { !Self.hasPending(SIGINT, program.process.pid) }
        program.process.send(SIGINT)
        #expect(try await program.end().status == 130)
        #expect(!scratch.contents().contains(part))
    }

    private static func hasPending(_ signal: Int32, _ pid: Int32) -> Bool {
        let text = String(decoding: (try? File.read("/proc/\(pid)/status", limit: 10_000)) ?? [], as: UTF8.self)
        let line = text.split(separator: "\n").first { $0.hasPrefix("ShdPnd:") }
        let mask = line.flatMap { UInt64($0.dropFirst(7).drop { $0 == "\t" }, radix: 16) } ?? 0
        return mask & (1 << UInt64(signal - 1)) != 0
    }

    @Test func `a lock of call is told to be over`() async throws {
        let bus = try FakeBus { request, respond in
            guard request.method == "device.lock" else { return false }
            respond(.result(["lock": "t0ken", "fence": 3, "devices": ["cam0"], "holder": [:]]))
            return true
        }
        let result = try await run(bus, "call", "device.lock", "{\"devices\": \"cam0\"}")
        #expect(result.status == 0 && result.standardError.contains("This lock ends now"))
        let leased = try await run(bus, "call", "device.lock", "{\"devices\": \"cam0\", \"lease\": 1000}")
        #expect(leased.status == 0 && leased.standardError == "")
    }

    @Test func `help keeps examples in one line`() async throws {
        let environment = ["PATH": "/usr/bin:/bin", "COLUMNS": "60"]
        for command in ["", "frames", "lock", "watch", "controls", "call"] {
            let arguments = ["help", command].filter { !$0.isEmpty }
            let help = try await RunningProgram("camerabus", arguments, environment: environment, scratch: scratch)
                .end()
            let lines = help.standardOutput.split(separator: "\n", omittingEmptySubsequences: false)
            let start = try #require(lines.firstIndex(of: "EXAMPLES:"))
            let examples = lines[(start + 1)...].prefix { !$0.isEmpty }
            let wide = try await RunningProgram(
                "camerabus", arguments, environment: environment.merging(["COLUMNS": "1000"]) { $1 }, scratch: scratch
            ).end().standardOutput
            #expect(!examples.isEmpty && wide.contains("\nEXAMPLES:\n\(examples.joined(separator: "\n"))\n\n"))
            let others = lines.filter { !examples.contains($0) && !$0.hasPrefix("USAGE: ") }
            #expect(others.allSatisfy { $0.count <= 60 }, "\(others)")
        }
    }

    @Test func `call prints what the bus answers`() async throws {
        let bus = try FakeBus()
        let result = try await run(bus, "call", "device.get", "{\"device\": \"cam0\"}", "--json")
        #expect(try JSONValue(parsing: result.standardOutput)["device"]?["id"] == "cam0")
        #expect(try await run(bus, "call", "device.get", "[1]").status == 2)
        #expect(try await run(bus, "call", "device.get", "{").status == 2)
        // Nothing is there to be read.
        let empty = try await run(bus, "call", "device.get", "-")
        #expect(empty.status == 2 && empty.standardError.hasPrefix("The parameters are not valid JSON"))
    }
}
