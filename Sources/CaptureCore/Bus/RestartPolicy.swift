/// When a worker that ended is started again: the first time at once, then after 0.5 s, 1 s, 2 s … 30 s.
///
/// A worker that ran well for a minute has its past forgiven.
public struct RestartPolicy: Sendable, Hashable {
    /// Nanoseconds of the first delay, which doubles each time.
    public static let firstDelay: Int64 = 500_000_000
    public static let longestDelay: Int64 = 30_000_000_000
    /// Nanoseconds that a worker must have been running for.
    public static let health: Int64 = 60_000_000_000

    /// How often it has ended without having been healthy before.
    public private(set) var failures = 0
    private var startedAt: Instant?

    public init() {}

    /// The worker has said that it is up.
    public mutating func started(at now: Instant) { startedAt = now }

    /// The worker has ended, or could not be started.
    ///
    /// - Returns: when to start it again; now, if at once.
    public mutating func restart(at now: Instant) -> Instant {
        if let startedAt, now.advanced(byNanoseconds: -Self.health) >= startedAt { failures = 0 }
        startedAt = nil
        defer { failures = min(failures, Int.max - 1) + 1 }
        guard failures > 0 else { return now }
        // Six doublings pass the longest.
        let delay = min(Self.firstDelay << min(failures - 1, 6), Self.longestDelay)
        return now.advanced(byNanoseconds: delay)
    }
}
