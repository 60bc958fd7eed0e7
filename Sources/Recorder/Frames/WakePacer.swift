import CaptureCore

/// Decides when the thread that writes is told of what waits for it: to be woken costs it more than to write a frame
/// that is stored as it comes.
struct WakePacer: Hashable, Sendable {
    /// For so long something waits at most before it is told of, nanoseconds; twice as long when nothing comes after
    /// it.
    static let longest: Int64 = 100_000_000

    /// When the oldest was taken that has not been told of; nil: all have.
    private var oldest: Instant?
    private var last: Instant?

    /// Something is put in.
    ///
    /// - Parameters:
    ///   - time: when it was taken.
    ///   - urgent: what was taken from then on is not to wait.
    /// - Returns: whether it is to be told of now, with what came before it.
    mutating func put(_ time: Instant, urgent: Instant) -> Bool {
        let begin = oldest ?? time
        // The next one would be too late for the oldest.
        let interval = last.map { time &- $0 } ?? Self.longest
        last = time
        let isDue = time >= urgent || time &- begin &+ interval > Self.longest || time < begin
        oldest = isDue ? nil : begin
        return isDue
    }

    /// Whether something is to be told of when nothing comes for twice ``longest``.
    var hasUntold: Bool { oldest != nil }

    mutating func told() { oldest = nil }
}
