import BusClient
import BusProtocol
import LinuxIO

/// Notes why a device that has delivered frames delivers none for a while: once for each reason.
struct FrameStall {
    private let device: String
    private var told: BusError.Reason?
    private var since: Int64?

    init(_ device: String) { self.device = device }

    /// Reasons that end by themselves.
    private static let passing: Set<BusError.Reason> = [
        .deviceDisconnected, .deviceInUse, .workerCrashed, .interrupted, .internalError, .limitExceeded,
    ]

    /// The note about an error; empty if it was noted before; nil: the error is final.
    mutating func note(of error: any Error, hasGiven: Bool, now: Int64 = MonotonicClock.now()) -> String? {
        guard hasGiven, case ClientError.refused(let refusal)? = error as? ClientError,
            Self.passing.contains(refusal.reason)
        else { return nil }
        since = since ?? now
        defer { told = refusal.reason }
        return refusal.reason == told ? "" : "\(refusal.word): \(refusal.message) Waiting for \(device)."
    }

    /// Whether the stall has lasted longer than `patience`. The bus repeats the reason, so there is no silence to
    /// measure.
    func hasLasted(_ patience: Duration, now: Int64 = MonotonicClock.now()) -> Bool {
        since.map { .nanoseconds(now - $0) >= patience } ?? false
    }

    /// Frames arrive again.
    mutating func end() { (told, since) = (nil, nil) }
}
