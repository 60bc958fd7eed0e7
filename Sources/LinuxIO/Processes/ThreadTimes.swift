import Glibc

/// What the kernel has accounted for one thread since the thread started.
public struct ThreadTimes: Hashable, Sendable {
    /// What the thread does at the moment of the reading.
    public enum State: Hashable, Sendable {
        /// It runs, or waits for a processor.
        case runnable
        /// It sleeps where a signal wakes it.
        case sleeping
        /// It sleeps where no signal wakes it: in a driver, or until a page arrives from the disk.
        case blocked
        /// SIGSTOP or a debugger has stopped it.
        case stopped
        /// It has ended.
        case ended
    }

    /// The thread's name (`comm`), of at most 15 bytes.
    public var name: String
    public var state: State
    /// Processor time, nanoseconds. Without ``queued`` it is rounded down to clock ticks (10 ms).
    public var processor: Int64
    /// Time for which it was runnable and another thread had the processor, nanoseconds. The kernel adds it when the
    /// thread gets a processor again. nil: the kernel does not account it.
    public var queued: Int64?
    /// How many times it has got a processor; nil: the kernel does not account it.
    public var turns: Int64?
    /// Pages that came from the disk because the thread needed them.
    public var majorFaults: Int64

    public init(
        name: String = "", state: State, processor: Int64, queued: Int64? = nil, turns: Int64? = nil, majorFaults: Int64
    ) {
        self.name = name
        self.state = state
        self.processor = processor
        self.queued = queued
        self.turns = turns
        self.majorFaults = majorFaults
    }

    /// Reads the texts of `/proc/PID/task/TID/stat` and `schedstat`.
    ///
    /// - Parameters:
    ///   - schedstat: nil: the kernel has no such file.
    ///   - ticksPerSecond: `sysconf(_SC_CLK_TCK)`.
    public init?(stat: String, schedstat: String?, ticksPerSecond: Int64) {
        // The name in parentheses may hold anything, so fields are counted from the last parenthesis.
        guard let open = stat.firstIndex(of: "("), let close = stat.lastIndex(of: ")"), open < close else {
            return nil
        }
        let fields = stat[stat.index(after: close)...].split(separator: " ")
        guard fields.count > 12, let state = State(letter: fields[0]), let faults = Int64(fields[9]),
            let user = Int64(fields[11]), let system = Int64(fields[12]), ticksPerSecond > 0
        else { return nil }
        let (ticks, overflow) = user.addingReportingOverflow(system)
        let (time, isTooLong) = ticks.multipliedReportingOverflow(by: 1_000_000_000 / ticksPerSecond)
        guard !overflow, !isTooLong else { return nil }
        self.init(
            name: String(stat[stat.index(after: open)..<close]), state: state, processor: time, majorFaults: faults)
        // Processor time, time in the queue, and turns. A kernel that does not account them writes three zeros.
        let numbers = (schedstat ?? "").split(whereSeparator: \.isWhitespace).map { Int64($0) }
        if numbers.count == 3, let processor = numbers[0], let queued = numbers[1], let turns = numbers[2], turns > 0 {
            (self.processor, self.queued, self.turns) = (processor, queued, turns)
        }
    }
}

extension ThreadTimes.State {
    /// - Parameter letter: as in `/proc/PID/stat`.
    fileprivate init?(letter: Substring) {
        switch letter {
        case "R": self = .runnable
        case "S", "I": self = .sleeping
        case "D": self = .blocked
        case "T", "t": self = .stopped
        case "Z", "X": self = .ended
        default: return nil
        }
    }
}

extension ProcessTable {
    private static let ticksPerSecond = Int64(max(1, sysconf(Int32(_SC_CLK_TCK))))

    /// The times of all threads of a process, by thread id; nil where they can't be read, as after its end.
    ///
    /// It opens two files for each thread: not for what happens often.
    public static func threads(of pid: Int32) -> [Int32: ThreadTimes]? {
        let folder = "/proc/\(pid)/task"
        guard let names = Directory.names(folder) else { return nil }
        var threads: [Int32: ThreadTimes] = [:]
        for name in names {
            // A thread may have ended since.
            guard let thread = Int32(name), let stat = text("\(folder)/\(name)/stat"),
                let times = ThreadTimes(
                    stat: stat, schedstat: text("\(folder)/\(name)/schedstat"), ticksPerSecond: ticksPerSecond)
            else { continue }
            threads[thread] = times
        }
        return threads.isEmpty ? nil : threads
    }

    private static func text(_ path: String) -> String? {
        (try? File.read(path, limit: 4096)).map { String(decoding: $0, as: UTF8.self) }
    }
}
