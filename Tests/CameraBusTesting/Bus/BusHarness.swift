public import BusClient
public import BusProtocol
import Glibc
public import JSON
public import LinuxIO

/// The real bus with a runtime directory of its own, started for one test.
///
/// A test ends with ``stop()``, which fails it when something is left behind. What a test leaves running is killed.
public final class BusHarness {
    public let directory: RuntimeDirectory
    /// What the bus's own programs and those of ``start(_:_:environment:)`` get as environment.
    public let environment: [String: String]
    private let home: TemporaryDirectory
    // Outside of the runtime directory: what tests and programs write is no leak.
    private let scratch: TemporaryDirectory
    private var daemon: RunningProgram
    private let readiness: Readiness
    /// How the coordinator was started, to start it again.
    private let command: (program: String, arguments: [String], environment: [String: String])
    private var earlierLogs = ""
    private var started: [RunningProgram] = []
    private var client: Client?
    private let sharedMemoryBefore: Set<String>
    private var hasEnded = false

    /// The coordinator's.
    public var pid: Int32 { daemon.process.pid }

    /// Starts it, and returns when it is ready.
    ///
    /// - Parameters:
    ///   - virtual: how many virtual cameras `--virtual` asks for, and no hardware; nil: what the configuration says.
    ///   - microphones: how many virtual microphones; nil: as the bus does without a word.
    ///   - configuration: the text of a configuration file, `camerabus.toml` for ``write(_:to:)``.
    ///   - descriptorLimit: how many descriptors the coordinator may open.
    ///   - fileSizeLimit: bytes that a file of one of its programs may have, and shared memory.
    ///   - arguments: further ones.
    public init(
        virtual: Int? = 2, microphones: Int? = 0, configuration: String? = nil, descriptorLimit: Int? = nil,
        fileSizeLimit: Int? = nil,
        arguments: [String] = [],
        deadline: Deadline = .usual
    ) async throws {
        home = try TemporaryDirectory()
        scratch = try TemporaryDirectory()
        // Other users may pass through to the runtime directory, which has a mode of its own.
        chmod(home.path, 0o711)
        directory = try RuntimeDirectory("\(home.path)/bus")
        sharedMemoryBefore = Leaks.sharedMemory()
        readiness = try Readiness(scratch)
        var environment = Self.inherited()
        environment["PATH"] = "\(Programs.directory):\(environment["PATH"] ?? "/usr/bin:/bin")"
        environment["CAMERABUS_RUNTIME_DIR"] = directory.path
        self.environment = environment
        environment["NOTIFY_SOCKET"] = readiness.path
        var arguments = ["--runtime-dir", directory.path] + arguments
        if let virtual { arguments += ["--virtual", "\(virtual)", "--no-hardware"] }
        if let microphones { arguments += ["--virtual-microphones", "\(microphones)"] }
        // What else this machine does is not to show in what is tested.
        if !(configuration ?? "").contains("[pressure]") { arguments.append("--no-pressure") }
        if let configuration {
            let path = "\(scratch.path)/camerabus.toml"
            try File.replace(path, with: Array(configuration.utf8), mode: 0o600)
            arguments += ["--config", path]
        }
        var program = Programs.path("camerabusd")
        let limits =
            (descriptorLimit.map { "ulimit -n \($0); " } ?? "")
            + (fileSizeLimit.map { "ulimit -f \($0 / 512); " } ?? "")
        if !limits.isEmpty {
            arguments = ["-c", "\(limits)exec \"$0\" \"$@\"", program] + arguments
            program = "/bin/sh"
        }
        command = (program, arguments, environment)
        daemon = try RunningProgram(program, arguments, environment: environment, scratch: scratch)
        guard await readiness.wait(for: daemon.process, by: deadline) else {
            daemon.process.send(SIGKILL)
            throw TestingError("camerabusd did not become ready: \(daemon.standardError)")
        }
    }

    deinit {
        for program in started { program.process.send(SIGKILL) }
        if !hasEnded {
            daemon.process.send(SIGKILL)
            for pid in Self.pids(in: directory.path) { kill(pid, SIGKILL) }
        }
        for program in started + [daemon] { _ = program.child.reap() }
    }

    // MARK: Programs

    /// Starts a program beside the bus: one of ours, or any; its environment names the bus. It is killed at the end.
    public func start(
        _ program: String, _ arguments: [String], environment extra: [String: String] = [:]
    ) throws -> RunningProgram {
        let running = try RunningProgram(
            program, arguments, environment: environment.merging(extra) { $1 }, scratch: scratch)
        started.append(running)
        return running
    }

    /// Runs a program to its end.
    ///
    /// - Parameters:
    ///   - environment: variables beside the usual ones.
    ///   - input: what it reads.
    public func run(
        _ program: String, _ arguments: [String], environment extra: [String: String] = [:], input: [UInt8]? = nil,
        by deadline: Deadline = .usual
    ) async throws -> ProgramResult {
        let running = try RunningProgram(
            program, arguments, environment: environment.merging(extra) { $1 }, scratch: scratch, input: input)
        return try await running.end(by: deadline)
    }

    /// Writes a file for programs to read.
    ///
    /// - Returns: its path.
    @discardableResult
    public func write(_ text: String, to name: String) throws -> String {
        let path = "\(scratch.path)/\(name)"
        try File.replace(path, with: Array(text.utf8), mode: 0o600)
        return path
    }

    /// A directory for the files of programs, gone at the end.
    public var scratchPath: String { scratch.path }

    /// What the coordinator, and the workers that it started, have logged so far.
    public var log: String { earlierLogs + daemon.standardError }

    // MARK: What it says

    /// A new client of the library.
    public func connect(name: String = "a test") async throws -> Client {
        try await Client.connect(
            runtimeDirectory: directory.path, name: name, timeout: Client.defaultTimeout * Slowness.factor)
    }

    /// The ids of the devices.
    public func devices() throws -> [String] { try RawClient(path: directory.commandSocket).devices() }

    /// The reasons of what is wrong with how the bus is set up.
    public func problems() throws -> [String] {
        let answer = try RawClient(path: directory.commandSocket).call("bus.snapshot", ["prefix": "state/bus/"])
        return answer["state"]?["state/bus/"]?["problems"]?.array?.compactMap { $0["reason"]?.string } ?? []
    }

    /// One of `bus.metrics`' counters; 0 when there is none of that name.
    public func metric(_ name: String) throws -> Int64 {
        try RawClient(path: directory.commandSocket).call("bus.metrics")["counters"]?[name]?.integer ?? 0
    }

    /// The pids of all workers that run.
    public func workerPIDs() throws -> [Int32] { try devices().compactMap { try workerPID($0) } }

    /// The pid of a device's worker; nil while none runs.
    public func workerPID(_ device: String) throws -> Int32? {
        try RawClient(path: directory.commandSocket).call("device.get", ["device": .string(device)])["device"]?[
            "worker"]?["pid"]?.integer.flatMap { Int32(exactly: $0) }
    }

    /// Goes on when the value of a state topic (`state/device/cam0/`) is as wished.
    @discardableResult
    public func wait(
        for topic: String, by deadline: Deadline = .usual, until condition: @escaping @Sendable (JSONValue?) -> Bool
    ) async throws -> JSONValue? {
        let client = try await sharedClient()
        return try await deadline.limit("\(topic) as wished") {
            let observer = try await client.observe([topic])
            return try await observer.wait(for: topic, until: condition)
        }
    }

    private func sharedClient() async throws -> Client {
        if let client { return client }
        let client = try await connect(name: "the harness")
        self.client = client
        return client
    }

    // MARK: Its death

    /// Kills the coordinator, alone, with a signal that it can't see coming; returns when it is gone.
    public func killCoordinator() async throws {
        daemon.process.send(SIGKILL)
        _ = try await daemon.end()
        earlierLogs = String((earlierLogs + daemon.standardError).suffix(1 << 20))
    }

    /// Starts another coordinator in the place of one that was killed.
    ///
    /// - Parameters:
    ///   - waits: until it says that it is ready; false: returns at once.
    ///   - arguments: instead of those that the first one was started with, but for the runtime directory.
    public func startCoordinator(
        waits: Bool = true, arguments: [String]? = nil, by deadline: Deadline = .usual
    ) async throws {
        readiness.forget()
        let arguments = arguments.map { ["--runtime-dir", directory.path] + $0 } ?? command.arguments
        daemon = try RunningProgram(
            command.program, arguments, environment: command.environment, scratch: scratch)
        guard waits else { return }
        guard await readiness.wait(for: daemon.process, by: deadline) else {
            throw TestingError("camerabusd did not become ready again: \(daemon.standardError)")
        }
    }

    // MARK: Its end

    /// Waits until the coordinator has ended.
    ///
    /// - Returns: how.
    @discardableResult
    public func waitForEnd(by deadline: Deadline = .usual) async throws -> ChildProcess.Ending {
        let result = try await daemon.end(by: deadline)
        hasEnded = true
        return result.ending
    }

    /// Ends it as a service manager would (SIGTERM), and fails when it doesn't end with status 0 or leaves something
    /// behind.
    public func stop(by deadline: Deadline = .usual) async throws {
        for program in started where !program.process.hasEnded {
            program.process.send(SIGKILL)
            _ = try await program.end()
        }
        await client?.close()
        if !hasEnded {
            daemon.process.send(SIGTERM)
            let ending = try await waitForEnd(by: deadline)
            guard ending == .exited(0) else { throw TestingError("camerabusd ended with \(ending): \(log)") }
        }
        let leaks = Leaks(directory: directory.path, sharedMemoryBefore: sharedMemoryBefore)
        guard leaks.isEmpty else { throw TestingError("The bus has left behind \(leaks).") }
    }

    private static func pids(in directory: String) -> [Int32] {
        Leaks(directory: directory, sharedMemoryBefore: []).processIDs
    }

    private static func inherited() -> [String: String] {
        var variables: [String: String] = [:]
        for name in [
            "PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "USER", "ASAN_OPTIONS", "TSAN_OPTIONS",
            "LD_PRELOAD",
        ] {
            variables[name] = CurrentProcess.environment(name)
        }
        return variables
    }
}

extension RawClient {
    fileprivate func devices() throws -> [String] {
        try call("device.list")["devices"]?.array?.compactMap { $0["id"]?.string } ?? []
    }
}
