/// Decides which refusals are logged: a refused client tries again every two seconds, for ever.
struct RefusalLog {
    private var last: [String: Int64] = [:]
    private var lastOfAll: Int64?

    /// Nanoseconds between lines, and between those of one client.
    static let interval: Int64 = 1_000_000_000
    static let repetition: Int64 = 60_000_000_000
    private static let maximum = 256

    /// Whether this one is, now.
    mutating func isToBeTold(_ who: String, at now: Int64) -> Bool {
        if let lastOfAll, now - lastOfAll < Self.interval { return false }
        if let last = last[who], now - last < Self.repetition { return false }
        if last.count >= Self.maximum {
            last = last.filter { now - $0.value < Self.repetition }
            if last.count >= Self.maximum { last = [:] }
        }
        last[who] = now
        lastOfAll = now
        return true
    }
}
