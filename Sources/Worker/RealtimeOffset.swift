import LinuxIO

/// How far CLOCK_REALTIME is from CLOCK_MONOTONIC, so that a frame's time can be told by both without asking either: what lies between
/// them changes only when somebody sets the clock, and is looked at after each frame.
struct RealtimeOffset {
    private var nanoseconds: Int64
    /// When it was looked at last, CLOCK_MONOTONIC; nil: never.
    private var measured: Int64?

    /// Nanoseconds after which it is looked at again before it is used.
    private static let validity: Int64 = 1_000_000_000

    init(nanoseconds: Int64 = 0, measured: Int64? = nil) {
        self.nanoseconds = nanoseconds
        self.measured = measured
    }

    /// CLOCK_REALTIME at a time of CLOCK_MONOTONIC, nanoseconds.
    mutating func at(_ time: Int64) -> Int64 {
        if measured.map({ time &- $0 > Self.validity }) ?? true { measure() }
        return time &+ nanoseconds
    }

    /// Looks at both clocks.
    ///
    /// - Returns: CLOCK_MONOTONIC now, nanoseconds.
    @discardableResult
    mutating func measure() -> Int64 {
        let now = MonotonicClock.now()
        nanoseconds = MonotonicClock.realtime() &- now
        measured = now
        return now
    }
}
