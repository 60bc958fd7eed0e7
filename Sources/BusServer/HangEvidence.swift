public import LinuxIO

/// Decides whether a process that has not reported for too long hangs, or is only slow.
///
/// A process hangs when its loop makes no progress although it has the chance to. While the thread of the loop, or a
/// thread of libzmq that carries its reports, waits for a processor, or the loop waits for pages from the disk, it has
/// none. While the thread sleeps, is stopped (SIGSTOP, a debugger) or runs without an end, it has one. A loop that
/// sleeps while another thread of the process starves gets more time. Each look is compared with the look before.
///
/// Waits for the disk, for a driver and for the watching process have an end all the same: whoever has not reported for
/// ten minutes of them is of no use to anybody. Waiting for a processor has none: killing would only add to the load.
public struct HangEvidence: Sendable {
    /// What the kernel says of two processes at one moment.
    public struct Look: Sendable {
        /// Monotonic nanoseconds.
        public var time: Int64
        /// The threads of the process that is watched; nil: they can't be read. Then all time counts, as long as those
        /// of the watching process can be read.
        public var threads: [Int32: ThreadTimes]?
        /// The threads of the process that watches: a report may wait for one of them. nil: nothing can be read at the
        /// moment, not even its own.
        public var watchersThreads: [Int32: ThreadTimes]?

        public init(time: Int64, threads: [Int32: ThreadTimes]?, watchersThreads: [Int32: ThreadTimes]?) {
            self.time = time
            self.threads = threads
            self.watchersThreads = watchersThreads
        }
    }

    /// What keeps a process, or its reports, waiting.
    public enum Hold: String, Hashable, Sendable {
        /// A thread waits for a processor.
        case processor = "it waits for a processor"
        /// Its loop waits for pages of its memory from the disk, or is in a driver.
        case disk = "it waits for the disk or a driver"
        /// The process that watches was late itself.
        case watcher = "this process is late itself"
    }

    public enum Finding: Hashable, Sendable {
        case undecided
        case held(Hold)
        case hangs
    }

    /// The thread of the loop; the first one of its process, which has the process's number.
    private let thread: Int32
    /// The thread of the watching process that looks.
    private let watchersThread: Int32
    /// How many looks in a row have to find that the loop had its chance, and has not run at all.
    private let stillLooks: Int
    /// How long the loop may have its chance in all, and how long it may sleep without a break; nanoseconds.
    private let limit: Int64
    /// How long it may be held in all by the disk, a driver or the watching process; nanoseconds.
    private let heldLimit: Int64

    private var last: Look?
    private var still = 0
    /// How long it has slept, been stopped, or been in one call of a driver without a break; nanoseconds.
    private var idle: Int64 = 0
    /// How long it has had its chance; nanoseconds.
    private var spent: Int64 = 0
    /// How long it was held by anything but a processor; nanoseconds.
    private var held: Int64 = 0

    public init(
        thread: Int32, watchersThread: Int32, stillLooks: Int = 5, limit: Int64, heldLimit: Int64 = 600_000_000_000
    ) {
        self.thread = thread
        self.watchersThread = watchersThread
        self.stillLooks = stillLooks
        self.limit = limit
        self.heldLimit = heldLimit
    }

    /// Takes in one look.
    ///
    /// - Parameter interval: the time after the look before at which this one was due, nanoseconds.
    public mutating func add(_ look: Look, interval: Int64) -> Finding {
        defer { last = look }
        guard let last, look.time > last.time else { return .undecided }
        let loop = Step(last.threads?[thread], look.threads?[thread], look.time - last.time)
        // A machine that stood still as a whole shows one long look.
        let time = min(look.time - last.time, 2 * interval)
        let hold = hold(last, look, loop, interval)
        if loop?.hasRun == true { still = 0 }
        idle = loop?.isIdle == true ? idle + time : 0
        switch hold {
        // It may be that a report waits, and not the loop.
        case .watcher?: break
        // A sleeping loop may wait for a lock that a starved thread has: it gets more time.
        case nil: if loop?.isIdle == true, loop?.now.state == .stopped || !othersStarve(last, look) { still += 1 }
        case .processor?, .disk?: still = 0
        }
        // A loop that spins on a busy machine is held in each look, and uses up its time all the same.
        spent += hold == nil ? time : max(0, min(loop?.ran ?? 0, time))
        if hold == .disk || hold == .watcher { held += time }
        if still >= stillLooks || idle >= limit || spent >= limit || held >= heldLimit { return .hangs }
        return hold.map(Finding.held) ?? .undecided
    }

    private func hold(_ last: Look, _ look: Look, _ loop: Step?, _ interval: Int64) -> Hold? {
        guard let watchersThreads = look.watchersThreads, look.time - last.time <= 2 * interval else { return .watcher }
        let time = look.time - last.time
        for (id, now) in watchersThreads where id == watchersThread || Self.carriesReports(now) {
            guard let step = Step(last.watchersThreads?[id], now, time) else { continue }
            // The thread that looks runs at that moment.
            if step.wasQueued || id != watchersThread && step.isWaiting { return .watcher }
        }
        for (id, now) in look.threads ?? [:] where id == thread || Self.carriesReports(now) {
            guard let step = Step(last.threads?[id], now, time) else { continue }
            if step.wasQueued || step.isWaiting { return .processor }
        }
        return loop.map { $0.hasFaulted || $0.now.state == .blocked } == true ? .disk : nil
    }

    // Another thread of the process waits for a processor or for the disk.
    private func othersStarve(_ last: Look, _ look: Look) -> Bool {
        (look.threads ?? [:]).contains { id, now in
            guard id != thread, let step = Step(last.threads?[id], now, look.time - last.time) else { return false }
            return step.wasQueued || step.isWaiting || step.hasFaulted || step.now.state == .blocked
        }
    }

    // libzmq's threads are called so.
    private static func carriesReports(_ thread: ThreadTimes) -> Bool { thread.name.hasPrefix("ZMQbg/") }
}

/// What one thread did from one look to the next.
private struct Step {
    let before: ThreadTimes
    let now: ThreadTimes
    let time: Int64

    /// nil: the thread was not seen both times.
    init?(_ before: ThreadTimes?, _ now: ThreadTimes?, _ time: Int64) {
        guard let before, let now else { return nil }
        (self.before, self.now, self.time) = (before, now, time)
    }

    /// Nanoseconds.
    var ran: Int64 { now.processor - before.processor }

    var hasRun: Bool { ran > 0 || now.turns != before.turns }

    var hasFaulted: Bool { now.majorFaults > before.majorFaults }

    /// It did not run, and does not wait for a processor. Without turns only a blocked thread certainly did not: times
    /// are rounded to clock ticks.
    var isIdle: Bool {
        guard !hasRun, !hasFaulted else { return false }
        return now.state == .blocked || now.turns != nil && (now.state == .sleeping || now.state == .stopped)
    }

    /// A quarter of the time and more.
    var wasQueued: Bool {
        guard let queued = now.queued, let earlier = before.queued else { return false }
        return queued - earlier >= time / 4
    }

    /// It waits now, and has not got a processor since the look before. How long, the kernel accounts when that is
    /// over.
    var isWaiting: Bool {
        now.state == .runnable && now.turns == before.turns && ran < time / 2
    }
}
