import Glibc
import LinuxIO

/// Takes the processor from processes, as a machine does that has too much to do: their threads may only run when
/// nobody else wants to (SCHED_IDLE), on a processor on which others never stop.
public final class Starvation {
    private var busy: [ChildProcess] = []
    private let pids: [Int32]

    /// A thread gets a turn of a millisecond, and next time after 0.4 s for each of these, on a busy machine sooner: well
    /// after the 10 s for which a process may be silent.
    private static let count = 80

    /// A shell script that never stops while its parent is there: what a killed test leaves behind ends by itself.
    public static let busyLoop = "while kill -0 $PPID; do :; done 2>/dev/null"

    /// - Parameter pids: processes, with the threads that they have now and start from now on.
    public init(of pids: [Int32]) throws {
        self.pids = pids
        let processor = try Self.processor()
        for _ in 0..<Self.count {
            busy.append(
                try ChildProcess(
                    program: "taskset", arguments: ["-c", processor, "sh", "-c", Self.busyLoop],
                    searchesPath: true))
        }
        for pid in pids {
            try Self.run("taskset", ["-a", "-c", "-p", processor, "\(pid)"])
            try Self.run("chrt", ["-a", "-i", "-p", "0", "\(pid)"])
        }
    }

    deinit { end() }

    /// Gives the processor back, with an ordinary claim to it (SCHED_OTHER). The processes stay on it.
    public func end() {
        guard !busy.isEmpty else { return }
        // One that has ended meanwhile needs none.
        for pid in pids { try? Self.run("chrt", ["-a", "-o", "-p", "0", "\(pid)"]) }
        for child in busy { child.process.send(SIGKILL) }
        for child in busy {
            _ = waitUntilReadable(child.process.rawValue, by: .usual)
            _ = child.reap()
        }
        busy = []
    }

    // The last one that this process may run on, as some container's processors do not begin with 0.
    private static func processor() throws -> String {
        let status = String(decoding: try File.read("/proc/self/status", limit: 1 << 16), as: UTF8.self)
        let line = status.split(separator: "\n").first { $0.hasPrefix("Cpus_allowed_list:") }
        guard let last = line?.split(whereSeparator: { !$0.isNumber }).last else {
            throw TestingError("No processor is named in /proc/self/status.")
        }
        return String(last)
    }

    private static func run(_ program: String, _ arguments: [String]) throws {
        let null = try FileDescriptor(opening: "/dev/null", O_WRONLY)
        let child = try ChildProcess(
            program: program, arguments: arguments, searchesPath: true, standardOutput: null.rawValue)
        guard waitUntilReadable(child.process.rawValue, by: .usual), child.reap() == .exited(0) else {
            throw TestingError("\(program) \(arguments.joined(separator: " ")) has failed.")
        }
    }
}
