/// A rate limit: so many actions per second, and a burst after a pause.
struct TokenBucket {
    private let perSecond: Double
    private let burst: Double
    private var tokens: Double
    private var last: Int64

    /// - Parameter now: monotonic nanoseconds, here as below.
    init(perSecond: Int, burst: Int, at now: Int64) {
        self.perSecond = Double(perSecond)
        self.burst = Double(burst)
        tokens = Double(burst)
        last = now
    }

    /// Once more; false: that is too often.
    mutating func take(at now: Int64) -> Bool {
        tokens = min(burst, tokens + Double(max(0, now - last)) / 1_000_000_000 * perSecond)
        last = now
        guard tokens >= 1 else { return false }
        tokens -= 1
        return true
    }
}
