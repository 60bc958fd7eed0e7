import Glibc
public import LinuxIO

/// Where the programs under test are: `$CAMERABUS_BIN`, else beside the test program.
public enum Programs {
    public static var directory: String {
        if let named = CurrentProcess.environment("CAMERABUS_BIN"), !named.isEmpty { return named }
        let program = CurrentProcess.executablePath ?? CommandLine.arguments.first ?? "."
        return program.lastIndex(of: "/").map { String(program[..<$0]) } ?? "."
    }

    /// The path of one of this project's programs; a path, and a program of others, as it is.
    public static func path(_ program: String) -> String {
        if program.contains("/") { return program }
        let ours = "\(directory)/\(program)"
        return access(ours, X_OK) == 0 ? ours : program
    }

    /// What a script in the place of a program that the coordinator starts reads its arguments by, without its own.
    public static let privateArguments = "$(tr '\\0' ' ' </proc/$$/fd/3)"

    /// Where the Python client is, for `PYTHONPATH`.
    public static var pythonPath: String { "\(checkout)/Protocol/python" }

    /// A Python 3 with pyzmq, for clients that aren't ours: `$PYTHON`, else what `deploy/find-python` finds, since the
    /// one in the `PATH` may be another than Debian's.
    public static let python: String = {
        if let named = CurrentProcess.environment("PYTHON"), !named.isEmpty { return named }
        guard let output = popen("'\(checkout)/deploy/find-python'", "re") else { return "python3" }
        defer { pclose(output) }
        var line = [CChar](repeating: 0, count: Int(PATH_MAX) + 2)
        guard fgets(&line, Int32(line.count), output) != nil else { return "python3" }
        let path = line.prefix { $0 != 0 && $0 != 10 }
        return String(decoding: path.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }()

    private static var checkout: String {
        "/" + #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
    }
}

/// A program that has ended, and what it wrote.
public struct ProgramResult: Sendable, CustomStringConvertible {
    public var ending: ChildProcess.Ending
    public var standardOutputBytes: [UInt8]
    public var standardError: String

    public var standardOutput: String { String(decoding: standardOutputBytes, as: UTF8.self) }

    /// As a shell tells it: the exit status, or 128 and the signal's number.
    public var status: Int32 {
        switch ending {
        case .exited(let status): status
        case .signalled(let signal): 128 + signal
        }
    }

    public var description: String { "\(ending)\nstdout: \(standardOutput)\nstderr: \(standardError)" }
}

/// A program that runs, with its output going to files.
public final class RunningProgram: Sendable {
    public let child: ChildProcess
    public var process: ProcessDescriptor { child.process }
    public let name: String
    private let output: String
    private let errors: String

    /// - Parameters:
    ///   - program: one of ours by its name, or any by name or path.
    ///   - scratch: where the files go.
    ///   - environment: all of its variables.
    ///   - input: what it reads; nil: nothing.
    public init(
        _ program: String, _ arguments: [String], environment: [String: String], scratch: TemporaryDirectory,
        input: [UInt8]? = nil
    ) throws {
        name = program
        let stem = "\(scratch.path)/\(hexadecimal(randomBytes(6)))"
        (output, errors) = ("\(stem).out", "\(stem).err")
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_APPEND
        let out = try FileDescriptor(opening: output, flags)
        let err = try FileDescriptor(opening: errors, flags)
        if let input { try File.replace("\(stem).in", with: input, mode: 0o600) }
        let source = try FileDescriptor(opening: input == nil ? "/dev/null" : "\(stem).in", O_RDONLY)
        child = try ChildProcess(
            program: Programs.path(program), arguments: arguments, environment: environment, searchesPath: true,
            standardInput: source.rawValue, standardOutput: out.rawValue, standardError: err.rawValue)
    }

    /// What it has written to standard output so far.
    public var standardOutput: String { text(output) }

    /// What it has written to standard error so far.
    public var standardError: String { text(errors) }

    /// Waits for its end; kills it when the time is over.
    public func end(by deadline: Deadline = .usual) async throws -> ProgramResult {
        guard await hasEnded(by: deadline) else {
            child.process.send(SIGKILL)
            _ = await hasEnded(by: .after(seconds: 10))
            _ = child.reap()
            throw TestingError("\(name) did not end. stdout: \(standardOutput) stderr: \(standardError)")
        }
        guard let ending = child.reap() else { throw TestingError("\(name) was waited for twice.") }
        return ProgramResult(
            ending: ending, standardOutputBytes: try File.read(output, limit: 256 << 20), standardError: standardError)
    }

    private func text(_ path: String) -> String {
        String(decoding: (try? File.read(path, limit: 16 << 20)) ?? [], as: UTF8.self)
    }

    // Waiting blocks a thread of its own, not one of the pool that all tests share.
    private func hasEnded(by deadline: Deadline) async -> Bool {
        let descriptor = child.process.rawValue
        return await withCheckedContinuation { continuation in
            let thread = try? NamedThread(name: "wait-for-end") {
                continuation.resume(returning: waitUntilReadable(descriptor, by: deadline))
            }
            if thread == nil { continuation.resume(returning: false) }
        }
    }
}

extension RunningProgram {
    /// Runs a program of others to its end.
    ///
    /// - Parameter input: what it reads; nil: nothing.
    public static func result(
        _ program: String, _ arguments: [String], in scratch: TemporaryDirectory, input: [UInt8]? = nil
    ) async throws -> ProgramResult {
        let environment = ["PATH": CurrentProcess.environment("PATH") ?? "/usr/bin:/bin"]
        return try await RunningProgram(program, arguments, environment: environment, scratch: scratch, input: input)
            .end(by: .after(seconds: 120))
    }
}

/// Waits for a descriptor, or one of two, to become readable.
public func waitUntilReadable(_ descriptor: Int32, orEnd other: Int32 = -1, by deadline: Deadline) -> Bool {
    var items = [
        pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0), pollfd(fd: other, events: Int16(POLLIN), revents: 0),
    ]
    while true {
        let count = poll(&items, 2, Int32(clamping: deadline.millisecondsLeft))
        if count > 0 { return items[0].revents != 0 }
        if count == 0 ? deadline.hasPassed : errno != EINTR { return false }
    }
}
