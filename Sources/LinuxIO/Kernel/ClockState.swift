import CLinux

/// How far this machine's clock may be from the true time, as the kernel is told by whoever keeps it (`adjtimex(2)`).
public struct ClockState: Hashable, Sendable {
    /// Somebody keeps the clock: NTP, PTP.
    public var isSynchronized: Bool
    /// The most that it is wrong by, nanoseconds, where somebody keeps it; nil: nobody knows.
    public var maximumError: Int64?

    public init(isSynchronized: Bool, maximumError: Int64?) {
        self.isSynchronized = isSynchronized
        self.maximumError = maximumError
    }

    /// As it is now; where it can't be read, that is as if nobody kept it.
    public static func now() -> ClockState {
        var error: Int64 = 0
        guard clinux_clock_error(&error) == 1 else { return ClockState(isSynchronized: false, maximumError: nil) }
        return ClockState(isSynchronized: true, maximumError: error)
    }
}
