/// Decides when a device is opened, streams and is closed again: a value that gets what happens and returns what to do.
///
/// ```
/// closed → opening → open → starting → streaming
///    ↑        │      │  ↑       │          │
///    ├────────┘      │  └───────┴─ stopping┘
///    └──── closing ──┘
/// ```
/// One action runs at a time; requests that arrive meanwhile count when it has ended.
struct DeviceLifecycle {
    enum Phase: Equatable {
        case closed, opening, open, starting, streaming, stopping, closing
    }

    /// What an order needs of the device while it is carried out.
    enum Hold: Equatable {
        /// It is open; frames may go on.
        case open
        /// It is open and does not stream.
        case quiet
    }

    enum Action: Equatable {
        case open, start, stop, close
        /// ``wake(at:)`` is to be called at that time, which replaces an earlier one.
        case wake(at: Int64)
        /// The hold is in force until ``release(at:)``.
        case granted
        /// The device could not be opened for the hold, which is over.
        case refused
        /// The device is closed for good.
        case ended
    }

    private(set) var phase = Phase.closed
    private let idleTime: Int64
    private var isLocked = false
    private var wantsFrames = false
    /// Something is under way at the device that ends by itself.
    private var isBusy = false
    private var hold: Hold?
    private var isGranted = false
    private var hasBeenOpened = false
    private var isEnding = false
    /// The opened device is of no use any more: it was lost, or refuses to start.
    private(set) var mustReopen = false
    /// The running stream is to be ended; the next one begins by itself.
    private var mustRestart = false
    private var failures = 0
    /// When the running stream's first frame came.
    private var firstFrameTime: Int64?
    private var retryTime: Int64?
    /// How often the pictures' size has changed since then.
    private var changes = 0
    private var changesSince: Int64 = .min / 2
    private var idleSince: Int64?

    private static let firstBackOff: Int64 = 1_000_000_000
    private static let longestBackOff: Int64 = 10_000_000_000
    /// A stream that ran for so long has its past forgiven.
    private static let health: Int64 = 10_000_000_000
    /// In that time, before a device has to wait for the next one.
    private static let mostChanges = 8

    /// - Parameter idleTime: nanoseconds that the device stays open when no client wants it any more.
    init(idleTime: Int64) { self.idleTime = idleTime }

    /// Times are monotonic nanoseconds.
    mutating func begin(at now: Int64) -> [Action] { next(now) }

    /// Sets whether a client holds the device's lock, and whether frames are wanted.
    mutating func demand(isLocked: Bool, wantsFrames: Bool, at now: Int64) -> [Action] {
        self.isLocked = isLocked
        self.wantsFrames = wantsFrames
        return next(now)
    }

    /// Something is under way at the device that ends by itself, or no more.
    mutating func busy(_ isBusy: Bool, at now: Int64) -> [Action] {
        self.isBusy = isBusy
        return next(now)
    }

    /// An order needs the device. There is one hold at a time. It does not wait for a retry that is due later.
    mutating func hold(_ hold: Hold, at now: Int64) -> [Action] {
        self.hold = hold
        isGranted = false
        return next(now)
    }

    mutating func release(at now: Int64) -> [Action] {
        hold = nil
        isGranted = false
        return next(now)
    }

    mutating func opened(at now: Int64) -> [Action] {
        phase = .open
        hasBeenOpened = true
        return next(now)
    }

    mutating func openFailed(at now: Int64) -> [Action] {
        phase = .closed
        backOff(now)
        var actions: [Action] = []
        if hold != nil {
            hold = nil
            actions.append(.refused)
        }
        return actions + next(now)
    }

    mutating func started(at now: Int64) -> [Action] {
        phase = .streaming
        return next(now)
    }

    /// - Parameters:
    ///   - reopen: the device has to be closed and opened before the next try.
    ///   - isInUse: another program streams from it, and will do so a moment later too.
    mutating func startFailed(reopen: Bool, isInUse: Bool = false, at now: Int64) -> [Action] {
        phase = .open
        if isInUse { failures = max(1, failures) }
        mustReopen = mustReopen || reopen
        backOff(now)
        return next(now)
    }

    /// The first frame of a stream has come.
    mutating func firstFrame(at now: Int64) { firstFrameTime = now }

    /// The stream has failed, or the device is gone.
    mutating func lost(at now: Int64) -> [Action] {
        switch phase {
        case .open, .starting, .streaming, .stopping:
            // One loss may be reported twice.
            if !mustReopen {
                mustReopen = true
                backOff(now)
            }
        case .closed, .opening, .closing: break
        }
        return next(now)
    }

    /// The pictures have another size from now on: the device is opened again at once. One that changes all the time
    /// has to wait.
    mutating func changed(at now: Int64) -> [Action] {
        guard phase == .streaming, !mustReopen else { return next(now) }
        mustReopen = true
        firstFrameTime = nil
        if now - changesSince >= Self.health { (changes, changesSince) = (0, now) }
        changes += 1
        if changes > Self.mostChanges { retryTime = now + Self.firstBackOff }
        return next(now)
    }

    /// The stream is of no use any more, but the device is. A start that failed before may succeed now.
    mutating func restart(at now: Int64) -> [Action] {
        if phase == .streaming { mustRestart = true } else if phase == .open { retryTime = nil }
        return next(now)
    }

    mutating func stopped(at now: Int64) -> [Action] {
        phase = .open
        return next(now)
    }

    mutating func closed(at now: Int64) -> [Action] {
        phase = .closed
        mustReopen = false
        return next(now)
    }

    /// The device has been away and is back, or is in another place: what is open of it is of no use any more, and no
    /// failure of the past counts. It is opened once, so that it is set as it was and can be described.
    mutating func plugged(at now: Int64) -> [Action] {
        failures = 0
        retryTime = nil
        hasBeenOpened = false
        firstFrameTime = nil
        mustReopen = phase != .closed && phase != .opening && phase != .closing
        return next(now)
    }

    mutating func wake(at now: Int64) -> [Action] { next(now) }

    /// The device is to be closed for good. A hold that is in force is waited for.
    mutating func end(at now: Int64) -> [Action] {
        isEnding = true
        return next(now)
    }

    // The first failure is followed by an immediate retry; further failures by longer and longer delays.
    private mutating func backOff(_ now: Int64) {
        if let firstFrameTime, now - firstFrameTime >= Self.health { failures = 0 }
        firstFrameTime = nil
        let delay = failures == 0 ? 0 : min(Self.firstBackOff << Int64(min(failures - 1, 10)), Self.longestBackOff)
        failures += 1
        retryTime = now + delay
    }

    private mutating func next(_ now: Int64) -> [Action] {
        var actions: [Action] = []
        if let hold, !isGranted {
            if isEnding, phase == .closed || phase == .open {
                self.hold = nil
                actions.append(.refused)
            } else if !mustReopen, phase == .open || (phase == .streaming && hold == .open) {
                isGranted = true
                actions.append(.granted)
            }
        }
        let isWanted = isLocked || wantsFrames || isBusy || hold != nil || !hasBeenOpened
        switch phase {
        case .closed:
            idleSince = nil
            if isEnding {
                actions.append(.ended)
            } else if isWanted {
                if hold == nil, let retryTime, now < retryTime {
                    actions.append(.wake(at: retryTime))
                } else {
                    phase = .opening
                    actions.append(.open)
                }
            }
        case .open:
            if mustReopen || isEnding {
                if !isGranted { actions.append(contentsOf: close()) }
            } else if wantsFrames, hold != .quiet {
                idleSince = nil
                if let retryTime, now < retryTime {
                    actions.append(.wake(at: retryTime))
                } else {
                    phase = .starting
                    actions.append(.start)
                }
            } else if isWanted {
                idleSince = nil
            } else {
                let since = idleSince ?? now
                idleSince = since
                if now - since >= idleTime {
                    failures = 0
                    retryTime = nil
                    actions.append(contentsOf: close())
                } else {
                    actions.append(.wake(at: since + idleTime))
                }
            }
        case .streaming:
            if !wantsFrames || hold == .quiet || isEnding || mustReopen || mustRestart {
                mustRestart = false
                phase = .stopping
                actions.append(.stop)
            }
        case .opening, .starting, .stopping, .closing: break
        }
        return actions
    }

    private mutating func close() -> [Action] {
        phase = .closing
        return [.close]
    }
}
