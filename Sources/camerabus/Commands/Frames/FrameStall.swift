import BusClient
import BusProtocol
import LinuxIO

/// A device that has given frames and gives none for a while: what keeps it is told, once for each reason.
struct FrameStall {
    private let device: String
    private var told: BusError.Reason?
    private var since: Int64?

    init(_ device: String) { self.device = device }

    /// What is over by itself, sooner or later.
    private static let passing: Set<BusError.Reason> = [
        .deviceDisconnected, .deviceInUse, .workerCrashed, .interrupted, .internalError, .limitExceeded,
    ]

    /// What to say of an error; nothing if that has been said; nil: it is not waited for.
    mutating func note(of error: any Error, hasGiven: Bool, now: Int64 = MonotonicClock.now()) -> String? {
        guard hasGiven, case ClientError.refused(let refusal)? = error as? ClientError,
            Self.passing.contains(refusal.reason)
        else { return nil }
        since = since ?? now
        defer { told = refusal.reason }
        return refusal.reason == told ? "" : "\(refusal.word): \(refusal.message) Waiting for \(device)."
    }

    /// Why there are none is told again and again, so that it never is silent.
    func hasLasted(_ patience: Duration, now: Int64 = MonotonicClock.now()) -> Bool {
        since.map { .nanoseconds(now - $0) >= patience } ?? false
    }

    /// There are frames again.
    mutating func end() { (told, since) = (nil, nil) }
}
