/// Finds the connections whose peer does not take what is sent to it: by how much lies there unread, looked at again and again.
struct StallWatch {
    private struct Sight {
        var unread: Int
        /// Since when it is that much, and since when it was never nothing.
        var since: Int64
        var undrained: Int64
    }

    /// Nanoseconds after which a peer counts as one that takes nothing.
    static let limit: Int64 = 2_000_000_000
    /// Nanoseconds after which a peer that takes something, but never all, has to give way to the others.
    static let slowLimit: Int64 = 10_000_000_000
    private static let interval: Int64 = 250_000_000

    private var seen: [Int32: Sight] = [:]
    private var lastTime = Int64.min / 2

    /// Whether it is time for another ``look(_:at:isSpent:)``.
    func isDue(at now: Int64) -> Bool { now - lastTime >= Self.interval }

    /// Takes note of what each connection's peer has not read.
    ///
    /// - Parameter isSpent: others have lost frames since the last look because there was no memory left.
    /// - Returns: those that have taken nothing for ``limit`` while they were looked at, and where all is spent those that have always
    ///   left something for ``slowLimit``.
    mutating func look(_ connections: [(connection: Int32, bytes: Int)], at now: Int64, isSpent: Bool) -> [Int32] {
        lastTime = now
        let before = seen
        seen = [:]
        var stalled: [Int32] = []
        for (connection, unread) in connections where unread > 0 {
            var sight = before[connection] ?? Sight(unread: unread, since: now, undrained: now)
            if sight.unread != unread { (sight.unread, sight.since) = (unread, now) }
            seen[connection] = sight
            let isStalled = now - sight.since >= Self.limit
            if isStalled || isSpent && now - sight.undrained >= Self.slowLimit { stalled.append(connection) }
        }
        return stalled
    }

    /// Nobody has to be found any more.
    mutating func rest() { if !seen.isEmpty { seen = [:] } }
}
