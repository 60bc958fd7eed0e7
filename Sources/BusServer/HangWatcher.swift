import LinuxIO

/// Watches that another process reports, and calls back once when it hangs (``HangEvidence``).
///
/// While the process reports, nothing is read about it. When it has not reported for the limit, the watcher looks at it
/// repeatedly, until it reports or hangs, or watching ends.
public final class HangWatcher {
    /// Milliseconds.
    public struct Limits: Sendable {
        /// How long a process may be silent until it is looked at. A driver may hold a device's thread for 10 s, but
        /// never a loop.
        public var silence: Int64
        /// The same of one that is being loaded (``HangWatcher/begin(isLoading:)``).
        public var loading: Int64
        /// From one look to the next.
        public var interval: Int64
        /// How many looks in a row must find that it could run and did not.
        public var looks: Int
        /// How long a silent process may wait for the disk, a driver or this process in all.
        public var held: Int64

        public init(
            silence: Int64 = 10_000, loading: Int64 = 30_000, interval: Int64 = 300, looks: Int = 5,
            held: Int64 = 600_000
        ) {
            self.silence = silence
            self.loading = loading
            self.interval = interval
            self.looks = looks
            self.held = held
        }
    }

    private let loop: Loop
    private let limits: Limits
    private let process: () -> Int32?
    private let onSlow: (HangEvidence.Hold, _ seconds: Int64) -> Void
    private let onHang: () -> Void
    private var timer: Loop.Token?
    private var isLoading = false
    /// When it reported last, or when watching began; monotonic nanoseconds.
    private var reportTime: Int64 = 0
    private var evidence: HangEvidence?
    /// Milliseconds from the last look to the next.
    private var interval: Int64 = 0
    private var isSlow = false

    /// The machine has little time for looks when it has none for the process.
    private static let longestInterval: Int64 = 2400

    /// - Parameters:
    ///   - process: the pid of the process to look at, whose first thread runs its loop; nil: it has ended, and so
    ///     does watching.
    ///   - onSlow: called once in each silence when the process is silent since so many seconds and does not hang.
    ///   - onHang: called once; then the process is not watched any more.
    public init(
        _ loop: Loop, limits: Limits = Limits(), process: @escaping () -> Int32?,
        onSlow: @escaping (HangEvidence.Hold, _ seconds: Int64) -> Void, onHang: @escaping () -> Void
    ) {
        self.loop = loop
        self.limits = limits
        self.process = process
        self.onSlow = onSlow
        self.onHang = onHang
    }

    deinit { loop.cancel(timer) }

    /// Begins to watch, or begins anew.
    ///
    /// - Parameter isLoading: the process has just been started; until it begins anew, the longer limit holds.
    public func begin(isLoading: Bool = false) {
        self.isLoading = isLoading
        reported()
        loop.cancel(timer)
        wait(until: reportTime + limit)
    }

    /// The process has reported.
    public func reported() {
        reportTime = MonotonicClock.now()
        evidence = nil
        isSlow = false
    }

    public func end() {
        loop.cancel(timer)
        timer = nil
        evidence = nil
    }

    private var limit: Int64 { (isLoading ? limits.loading : limits.silence) * 1_000_000 }

    // What has been reported may be on its way through libzmq's threads: sockets have their turn between any two of
    // these.
    private func wait(until time: Int64) {
        timer = loop.schedule(at: time) { [weak self] in self?.look() }
    }

    private func look() {
        timer = nil
        let now = MonotonicClock.now()
        // Each report only puts it off, as they are many.
        if evidence == nil, now < reportTime + limit { return wait(until: reportTime + limit) }
        guard let pid = process() else { return }
        var evidence =
            self.evidence
            ?? HangEvidence(
                thread: pid, watchersThread: CurrentProcess.threadID, stillLooks: limits.looks, limit: limit,
                heldLimit: limits.held * 1_000_000)
        let finding = evidence.add(
            HangEvidence.Look(
                time: now, threads: ProcessTable.threads(of: pid),
                watchersThreads: ProcessTable.threads(of: CurrentProcess.pid)),
            interval: interval * 1_000_000)
        self.evidence = evidence
        switch finding {
        case .undecided: interval = limits.interval
        case .held: interval = min(max(interval, limits.interval) * 2, max(limits.interval, Self.longestInterval))
        case .hangs:
            self.evidence = nil
            return onHang()
        }
        // Before it calls back: that may end or begin it.
        wait(until: MonotonicClock.now() + interval * 1_000_000)
        if case .held(let hold) = finding, !isSlow {
            isSlow = true
            onSlow(hold, (now - reportTime) / 1_000_000_000)
        }
    }
}
