/// Accepted keys whose connection is not known yet: the first message of a connection shows its key. Until then it
/// counts for the key of the handshake, so that silent clients can't have unlimited connections.
struct PendingConnections {
    /// Nanoseconds after which one that has said nothing is not there any more.
    private let patience: Int64
    /// When they were let in, monotonic nanoseconds, by key; the oldest first.
    private var times: [String: [Int64]] = [:]

    init(patience: Int64) { self.patience = patience }

    /// How many of that key are still to be heard of.
    func count(of key: String, at now: Int64) -> Int {
        times[key]?.count { now - $0 < patience } ?? 0
    }

    /// One was let in.
    mutating func came(_ key: String, at now: Int64) {
        let patience = patience
        times[key, default: []].removeAll { now - $0 >= patience }
        times[key, default: []].append(now)
    }

    /// One of them has said something.
    mutating func spoke(_ key: String) {
        let left = Array((times[key] ?? []).dropFirst())
        times[key] = left.isEmpty ? nil : left
    }
}
