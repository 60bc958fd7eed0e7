public import LinuxIO

/// Decides whether a process that has not reported for too long hangs, or is only slow.
///
/// A process hangs when it makes no progress although it had the chance to. Time for which a thread of it waits for a
/// processor, or for its program's pages from the disk, is no such chance. Time for which it sleeps, is stopped
/// (SIGSTOP, a debugger), or sits in a driver is one. Each look at the process is compared with the look before;
/// nothing is known of the time before the first look.
public struct HangEvidence: Sendable {
    /// What the kernel says of two processes at one moment.
    public struct Look: Sendable {
        /// Monotonic nanoseconds.
        public var time: Int64
        /// The threads of the process that is watched; nil: they can't be read. Then all time counts.
        public var threads: [Int32: ThreadTimes]?
        /// The threads of the process that watches: what has been reported may wait for one of them.
        public var watchersThreads: [Int32: ThreadTimes]?

        public init(time: Int64, threads: [Int32: ThreadTimes]?, watchersThreads: [Int32: ThreadTimes]? = nil) {
            self.time = time
            self.threads = threads
            self.watchersThreads = watchersThreads
        }
    }

    /// What keeps a process from its work.
    public enum Hold: String, Hashable, Sendable {
        /// A thread waits for a processor.
        case processor = "it waits for a processor"
        /// Pages of its program or its memory come from the disk.
        case disk = "it waits for the disk"
        /// The process that watches was late itself.
        case watcher = "this process is late itself"
    }

    public enum Finding: Hashable, Sendable {
        case undecided
        case held(Hold)
        case hangs
    }

    /// The thread that should make progress. In its own process, the one with the number of the process runs the loop.
    private let thread: Int32
    /// The thread of the watching process that looks.
    private let watchersThread: Int32
    /// The process is being loaded: a thread that is blocked waits for the disk, and not for a device's driver.
    private let isLoading: Bool
    /// How many looks in a row have to find that it had its chance, and has not run at all.
    private let stillLooks: Int
    /// How long it may have its chance in all; nanoseconds.
    private let limit: Int64

    private var last: Look?
    private var still = 0
    private var spent: Int64 = 0

    public init(
        thread: Int32, watchersThread: Int32, isLoading: Bool = false, stillLooks: Int = 5, limit: Int64
    ) {
        self.thread = thread
        self.watchersThread = watchersThread
        self.isLoading = isLoading
        self.stillLooks = stillLooks
        self.limit = limit
    }

    /// Takes in one look.
    ///
    /// - Parameter interval: the time after the look before at which this one was due, nanoseconds.
    public mutating func add(_ look: Look, interval: Int64) -> Finding {
        defer { last = look }
        guard let last, look.time > last.time else { return .undecided }
        let time = look.time - last.time
        let before = last.threads?[thread]
        let now = look.threads?[thread]
        // A look that can't be compared counts as if the thread had slept.
        let ran = if let before, let now { now.processor - before.processor } else { Int64(0) }
        if let hold = hold(last, look, time, interval) {
            still = 0
            // A loop that spins on a busy machine is held in each look, and uses up its time all the same.
            spent += max(0, min(ran, time))
            return spent >= limit ? .hangs : .held(hold)
        }
        still = ran > 0 ? 0 : still + 1
        spent += time
        return still >= stillLooks || spent >= limit ? .hangs : .undecided
    }

    private func hold(_ last: Look, _ look: Look, _ time: Int64, _ interval: Int64) -> Hold? {
        if time > 2 * interval { return .watcher }
        for (id, now) in look.watchersThreads ?? [:] {
            guard let before = last.watchersThreads?[id] else { continue }
            // The thread that looks runs at that moment.
            if Self.isQueued(before, now, time) || id != watchersThread && Self.isWaiting(before, now, time) {
                return .watcher
            }
        }
        for (id, now) in look.threads ?? [:] {
            guard let before = last.threads?[id] else { continue }
            if Self.isQueued(before, now, time) || Self.isWaiting(before, now, time) { return .processor }
            if now.majorFaults > before.majorFaults || isLoading && now.state == .blocked { return .disk }
        }
        return nil
    }

    // A quarter of the time and more.
    private static func isQueued(_ before: ThreadTimes, _ now: ThreadTimes, _ time: Int64) -> Bool {
        guard let queued = now.queued, let earlier = before.queued else { return false }
        return queued - earlier >= time / 4
    }

    // It waits now. How long it has been waiting, the kernel accounts when that is over, or not at all.
    private static func isWaiting(_ before: ThreadTimes, _ now: ThreadTimes, _ time: Int64) -> Bool {
        now.state == .runnable && now.processor - before.processor < time / 2
    }
}
