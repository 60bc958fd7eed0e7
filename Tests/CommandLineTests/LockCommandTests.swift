import BusProtocol
import CameraBusTesting
import Glibc
import JSON
import LinuxIO
import Synchronization
import Testing

/// `camerabus lock` as a program: what becomes of its command, of signals and of the lock.
@Suite(.timeLimit(.minutes(5))) struct LockCommandTests {
    private let scratch: TemporaryDirectory
    private let gate: Gate
    private let bus: FakeBus

    init() throws {
        scratch = try TemporaryDirectory()
        gate = try Gate("\(scratch.path)/gate")
        bus = try FakeBus { request, respond in
            guard request.method == "device.lock" else { return false }
            respond(.result(["lock": "t0ken", "fence": 3, "devices": request.params["devices"] ?? [], "holder": [:]]))
            return true
        }
        for device in ["cam0", "cam1"] { Self.lock(device, on: bus) }
    }

    /// Has the state say that a device is locked; with this id and this fence it is ours.
    private static func lock(_ device: String, on bus: FakeBus, id: JSONValue = "l", fence: JSONValue = 3) {
        let value = (FakeBus.device(device).object ?? [:]).merging(["lock": ["id": id, "fence": fence]]) { $1 }
        bus.setState("state/device/\(device)/", .object(value))
    }

    /// A bus that can't see its clients' processes, and locks cam0; the rest is the test's.
    private static func blindBus(_ answers: @escaping FakeBus.Answers) throws -> FakeBus {
        let bus = try FakeBus { request, respond in
            switch request.method {
            case "bus.hello":
                respond(
                    .result([
                        "server": "CameraBus", "version": "0", "epoch": "e1", "you": ["uid": 0, "gid": 0, "pid": 0],
                    ]))
            case "device.lock": respond(.result(["lock": "t0ken", "fence": 3, "devices": ["cam0"], "holder": [:]]))
            default: return answers(request, respond)
            }
            return true
        }
        lock("cam0", on: bus)
        return bus
    }

    private func start(_ arguments: String...) throws -> RunningProgram { try start(arguments) }

    private func start(_ arguments: [String], on other: FakeBus? = nil, input: [UInt8]? = nil) throws -> RunningProgram
    {
        try RunningProgram(
            "camerabus", ["lock"] + arguments,
            environment: ["PATH": "/usr/bin:/bin", "CAMERABUS_RUNTIME_DIR": (other ?? bus).path], scratch: scratch,
            input: input)
    }

    // Beside it the program may still ask for the state, to know when the lock is lost.
    private var isUnlocked: Bool { bus.requests.last { $0.method.hasPrefix("device.") }?.method == "device.unlock" }

    @Test func `the command has the lock, and its exit status is ours`() async throws {
        let result = try await start(
            "cam0", "cam1", "--note", "why", "--", "sh", "-c",
            "echo $CAMERABUS_LOCK $CAMERABUS_RUNTIME_DIR; exit 7"
        ).end()
        #expect(result.status == 7)
        #expect(result.standardOutput == "t0ken \(bus.path)\n")
        #expect(
            bus.requests.first { $0.method == "device.lock" }?.params == ["devices": ["cam0", "cam1"], "note": "why"])
        #expect(isUnlocked)
    }

    @Test func `a command that a signal ended has status 128 and its number`() async throws {
        #expect(try await start("cam0", "--", "sh", "-c", "kill -9 $$").end().status == 137)
        #expect(isUnlocked)
    }

    @Test func `a command that is not there has status 127, one that can't run 126`() async throws {
        let missing = try await start("cam0", "--", "no-such-command").end()
        #expect(missing.status == 127 && missing.standardError.contains("no-such-command"))
        #expect(isUnlocked)
        let text = "\(scratch.path)/text"
        try File.replace(text, with: [], mode: 0o600)
        #expect(try await start("cam0", "--", text).end().status == 126)
        #expect(isUnlocked)
    }

    @Test func `the command reads what we read`() async throws {
        let program = try start(["cam0", "--", "cat"], input: Array("through\n".utf8))
        #expect(try await program.end().standardOutput == "through\n")
    }

    @Test(arguments: [SIGINT, SIGTERM, SIGHUP])
    func `signals are handed on`(signal: Int32) async throws {
        let script = "trap 'echo caught; exit 5' INT TERM HUP; echo ready; while :; do sleep 0.05; done"
        let program = try start("cam0", "--", "sh", "-c", script)
        try await eventually { program.standardOutput.contains("ready") }
        program.process.send(signal)
        let result = try await program.end()
        #expect(result.status == 5 && result.standardOutput == "ready\ncaught\n")
        #expect(isUnlocked)
    }

    @Test func `without a command it holds the lock until a signal`() async throws {
        let program = try start("cam0")
        try await eventually { program.standardOutput == "t0ken\n" }
        program.process.send(SIGINT)
        #expect(try await program.end().status == 0)
        #expect(isUnlocked)
    }

    @Test func `a lock that is taken away ends it with status 1`() async throws {
        let program = try start("cam0")
        try await eventually { program.standardOutput == "t0ken\n" }
        Self.lock("cam0", on: bus, id: "m", fence: 4)
        let result = try await program.end()
        #expect(result.status == 1)
        #expect(result.standardError.contains("lockLost: "))
    }

    /// A command that ends when the gate is opened, so that something can be done to its lock before.
    private func waiting(status: Int) -> [String] {
        ["--", "sh", "-c", "echo on; \(gate.waiting); exit \(status)"]
    }

    @Test(arguments: [("takenOver", 0, 1), ("takenOver", 7, 7), ("unlocked", 0, 0)])
    func `a lock that is lost while the command runs is told`(cause: String, status: Int, expected: Int32) async throws
    {
        let isOver = Atomic(false)
        let bus = try FakeBus { request, respond in
            switch request.method {
            case "device.lock":
                respond(.result(["lock": "t0ken", "fence": 3, "devices": ["cam0"], "holder": [:]]))
            case "device.unlock" where isOver.load(ordering: .relaxed):
                respond(.error(BusError(.lockLost, "It is over.", ["fence": 4])))
            default: return false
            }
            return true
        }
        Self.lock("cam0", on: bus)
        let program = try start(["cam0"] + waiting(status: status), on: bus)
        try await eventually {
            program.standardOutput == "on\n" && bus.requests.contains { $0.method == "bus.snapshot" }
        }
        isOver.store(true, ordering: .relaxed)
        let event: JSONValue = [
            "epoch": "e1", "sequence": 90, "previous": 0, "event": "ended", "devices": ["cam0"],
            "cause": .string(cause), "by": ["name": "admin", "pid": 77, "uid": 0, "gid": 0],
        ]
        bus.publish("event/lock/l/", event.serialized)
        if cause != "unlocked" {
            try await eventually {
                program.standardError.contains("lockLost: The lock has ended: admin (pid 77, uid 0)")
            }
        }
        try gate.open()
        let result = try await program.end()
        #expect(result.status == expected, "\(result)")
        #expect(result.standardError.contains("another client may have held the lock") == (cause != "unlocked"))
        #expect(result.standardError.contains("ended with status 0") == (expected == 1))
    }

    @Test func `a bus that is gone at the end of the command is status 3`() async throws {
        let program = try start(["cam0", "--timeout", "2"] + waiting(status: 0))
        try await eventually { program.standardOutput == "on\n" }
        bus.stop()
        try gate.open()
        let result = try await program.end()
        #expect(result.status == 3 && result.standardError.contains("The bus does not answer any more."), "\(result)")
    }

    @Test func `with a lease and no command the token is all`() async throws {
        let result = try await start("cam0", "--lease", "1.5").end()
        #expect(result.status == 0 && result.standardOutput == "t0ken\n")
        #expect(bus.requests.last?.params == ["devices": ["cam0"], "lease": 1500])
        #expect(!isUnlocked)
    }

    @Test func `a command without its dashes is told how to write it`() async throws {
        let bus = try FakeBus { request, respond in
            guard request.method == "device.lock" else { return false }
            respond(.error(BusError(.deviceNotFound, "No device is called 'echo'.", ["device": "echo"])))
            return true
        }
        let known = try await start(["cam0", "echo", "a b"], on: bus).end()
        #expect(known.status == 1 && known.standardError.contains("camerabus lock cam0 -- echo 'a b'\n"), "\(known)")
        let unknown = try await start("cam0", "--wait", "3", "sh", "-c", "x").end()
        #expect(unknown.status == 2 && unknown.standardError.contains("camerabus lock cam0 --wait 3 -- sh -c x\n"))
    }

    @Test func `who is interrupted while waiting has the signal's status`() async throws {
        let waiting = try FakeBus { request, _ in request.method == "device.lock" }
        let program = try start(["cam0", "--wait", "600", "--", "true"], on: waiting)
        try await eventually { waiting.requests.last?.method == "device.lock" }
        program.process.send(SIGTERM)
        let result = try await program.end()
        #expect(result.status == 143 && result.standardError == "")
    }

    @Test func `a key on the terminal reaches the command once`() async throws {
        let script = """
            import os, pty, sys
            pid, terminal = pty.fork()
            if pid == 0:
                os.execv(sys.argv[1], sys.argv[1:])
            seen, pressed = b"", False
            while True:
                try:
                    data = os.read(terminal, 1000)
                except OSError:
                    break
                if not data:
                    break
                seen += data
                if b"ready" in seen and not pressed:
                    pressed = True
                    os.write(terminal, b"\\x03")
            sys.stdout.write(f"{seen.count(b'caught')} {os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}")
            """
        // It goes on for a while after the first, so that a second one would be seen.
        let command =
            "trap 'echo caught' INT; echo ready; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do sleep 0.1; done; "
            + "exit 9"
        let program = try RunningProgram(
            Programs.python, ["-c", script, Programs.path("camerabus"), "lock", "cam0", "--", "sh", "-c", command],
            environment: ["PATH": "/usr/bin:/bin", "CAMERABUS_RUNTIME_DIR": bus.path], scratch: scratch)
        let result = try await program.end()
        #expect(result.standardOutput == "1 9", "\(result)")
    }

    @Test func `a process that the bus can't see renews its lease, and ends when that is refused`() async throws {
        let bus = try Self.blindBus { request, respond in
            switch request.method {
            case "device.renew": respond(.error(BusError(.lockLost, "It has run out.")))
            default: return false
            }
            return true
        }
        let result = try await start(["cam0"], on: bus).end()
        #expect(result.status == 1 && result.standardError.contains("lockLost: It has run out."), "\(result)")
        #expect(bus.requests.first { $0.method == "device.renew" }?.params == ["lock": "t0ken"])
    }

    @Test func `a lease that can't be renewed has run out, and that is told while the command runs`() async throws {
        let bus = try Self.blindBus { request, respond in
            switch request.method {
            case "device.locks": respond(.result(["locks": [["fence": 3, "lease": 300]]]))
            // As over a link that is cut.
            case "device.renew": break
            case "device.unlock": respond(.error(BusError(.lockLost, "It is over.", ["fence": 4])))
            default: return false
            }
            return true
        }
        let program = try start(["cam0"] + waiting(status: 0), on: bus)
        try await eventually {
            program.standardError.contains("lockLost: The lock has ended: its lease of 0.3 s has expired")
        }
        try gate.open()
        let result = try await program.end()
        #expect(
            result.status == 1 && result.standardError.contains("another client may have held the lock"), "\(result)")
    }
}
