import CLinux
import Glibc

/// A process that can be watched and signalled without mistaking another for it (`pidfd_open(2)`). Readable when it has
/// ended.
public final class ProcessDescriptor: Sendable {
    public let pid: Int32
    private let owner: FileDescriptor
    public var rawValue: Int32 { owner.rawValue }

    /// - Throws: `ESRCH` when there is no such process.
    public init(pid: Int32) throws(SystemError) {
        self.pid = pid
        owner = FileDescriptor(owning: try check("pidfd_open", "\(pid)") { clinux_pidfd_open(pid) })
    }

    /// Sends a signal; harmless when the process has ended.
    public func send(_ signal: Int32) { _ = clinux_pidfd_send_signal(rawValue, signal) }

    public var hasEnded: Bool {
        var item = pollfd(fd: rawValue, events: Int16(POLLIN), revents: 0)
        return poll(&item, 1, 0) == 1
    }
}

/// A child process of ours.
public struct ChildProcess: Sendable {
    /// How a process ended.
    public enum Ending: Hashable, Sendable, CustomStringConvertible {
        case exited(Int32)
        case signalled(Int32)

        public var description: String {
            switch self {
            case .exited(let status): "exit status \(status)"
            case .signalled(let signal): "signal \(signal) (\(String(cString: strsignal(signal))))"
            }
        }
    }

    public let process: ProcessDescriptor

    /// Starts a program with default signal handling.
    ///
    /// - Parameters:
    ///   - program: a path; nothing is searched for, unless `searchesPath`: then a name without `/` is looked for in
    ///     `$PATH`.
    ///   - arguments: what everybody on the machine may read.
    ///   - privateArguments: behind these, for the program's user alone, where it is one that takes them
    ///     (``PrivateArguments/all()``).
    ///   - environment: its variables; nil: ours.
    ///   - standardInput: a descriptor that becomes its standard input; nil: /dev/null.
    ///   - standardOutput: a descriptor that becomes its standard output; nil: ours.
    ///   - standardError: a descriptor that becomes its standard error; nil: ours.
    ///   - keepsDescriptors: whether it also gets those of our other descriptors that aren't close-on-exec, as whoever
    ///     started us may have left some.
    public init(
        program: String, arguments: [String], privateArguments: [String] = [], environment: [String: String]? = nil,
        searchesPath: Bool = false,
        standardInput: Int32? = nil, standardOutput: Int32? = nil, standardError: Int32? = nil,
        keepsDescriptors: Bool = true
    ) throws(SystemError) {
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var all = sigset_t()
        sigfillset(&all)
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        if let standardInput {
            posix_spawn_file_actions_adddup2(&actions, standardInput, 0)
        } else {
            posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        }
        if let standardOutput { posix_spawn_file_actions_adddup2(&actions, standardOutput, 1) }
        if let standardError { posix_spawn_file_actions_adddup2(&actions, standardError, 2) }
        let memory = privateArguments.isEmpty ? nil : try PrivateArguments.Memory(privateArguments)
        defer { withExtendedLifetime(memory) {} }
        // After the standard ones, which may come from there.
        let first = PrivateArguments.descriptor
        if let memory { posix_spawn_file_actions_adddup2(&actions, memory.rawValue, first) }
        if !keepsDescriptors { _ = clinux_spawn_close_from(&actions, memory == nil ? first : first + 1) }
        let shown = memory == nil ? arguments : arguments + [PrivateArguments.place]

        let argv: [UnsafeMutablePointer<CChar>?] = ([program] + shown).map { strdup($0) } + [nil]
        defer { for argument in argv { free(argument) } }
        let envp: [UnsafeMutablePointer<CChar>?]? = environment.map { variables in
            variables.map { strdup("\($0.key)=\($0.value)") } + [nil]
        }
        defer { for variable in envp ?? [] { free(variable) } }
        var pid: pid_t = 0
        let spawn = searchesPath ? posix_spawnp : posix_spawn
        let code = spawn(&pid, program, &actions, &attributes, argv, envp ?? Self.currentEnvironment())
        guard code == 0 else { throw SystemError(code: code, operation: "posix_spawn", subject: program) }
        process = try ProcessDescriptor(pid: pid)
    }

    /// Once the process has ended: how, and the kernel forgets it. nil while it runs, or when it was reaped before.
    public func reap() -> Ending? {
        var status: Int32 = 0
        guard clinux_reap(process.pid, &status) == 0 else { return nil }
        let signal = status & 0x7F
        return signal == 0 ? .exited((status >> 8) & 0xFF) : .signalled(signal)
    }

    private static func currentEnvironment() -> [UnsafeMutablePointer<CChar>?] {
        var result: [UnsafeMutablePointer<CChar>?] = []
        var entry = clinux_environment()
        while let variable = entry?.pointee {
            result.append(variable)
            entry = entry?.successor()
        }
        return result + [nil]
    }
}

/// What `/proc` tells of a process.
public enum ProcessTable {
    /// When it started, in clock ticks after boot: with the pid it names a process for good. nil when it is gone.
    public static func startTime(of pid: Int32) -> UInt64? {
        guard let text = try? File.read("/proc/\(pid)/stat", limit: 4096) else { return nil }
        // The name in parentheses may hold anything, so fields are counted from the last one.
        guard let close = text.lastIndex(of: UInt8(ascii: ")")) else { return nil }
        let fields = String(decoding: text[(close + 1)...], as: UTF8.self).split(separator: " ")
        return fields.count > 19 ? UInt64(fields[19]) : nil
    }

    /// The process's short name (`/proc/PID/comm`).
    public static func name(of pid: Int32) -> String? {
        guard let text = try? File.read("/proc/\(pid)/comm", limit: 64) else { return nil }
        return String(decoding: text.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    }

    /// Now, in the clock ticks of ``startTime(of:)``.
    public static func now() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        let ticks = UInt64(max(1, sysconf(Int32(_SC_CLK_TCK))))
        return UInt64(time.tv_sec) * ticks + UInt64(time.tv_nsec) * ticks / 1_000_000_000
    }
}
