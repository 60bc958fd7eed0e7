/// Finds the connections whose peer does not read: the unread bytes of each are compared again and again.
struct StallDetector {
    private struct Sight {
        var unread: Int
        /// Since when `unread` has this value, and since when it was never zero.
        var since: Int64
        var undrained: Int64
    }

    /// Nanoseconds after which a peer that reads nothing has stalled.
    static let limit: Int64 = 2_000_000_000
    /// Nanoseconds after which a peer that reads something, but never all, is too slow.
    static let slowLimit: Int64 = 10_000_000_000
    private static let interval: Int64 = 250_000_000

    private var seen: [Int32: Sight] = [:]
    private var lastTime = Int64.min / 2

    /// Whether it is time for another ``look(_:at:isSpent:)``.
    func isDue(at now: Int64) -> Bool { now - lastTime >= Self.interval }

    /// Notes the unread bytes of each connection.
    ///
    /// - Parameter isSpent: since the last call, others have lost frames because no memory was left.
    /// - Returns: the peers that have read nothing for ``limit``, and if `isSpent` also those that have never read all
    ///   for ``slowLimit``.
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

    /// Forgets all connections: memory is no longer short.
    mutating func rest() { if !seen.isEmpty { seen = [:] } }
}
