/// Who was let in and is not known by a connection yet: whose one is shows from its first message only. Until then it counts by the key that was
/// shown at the door, or who says nothing would have as many as he likes.
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
