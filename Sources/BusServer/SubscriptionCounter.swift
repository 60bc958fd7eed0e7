public import BusProtocol

/// Counts the subscriptions of each connection: libzmq keeps them all, so a client that subscribes without end would
/// take memory without end.
public struct SubscriptionCounter: Sendable {
    /// What becomes of a subscription.
    public enum Verdict: Sendable {
        case accepted
        /// The connection has too many: nothing is started for it, and its client gets an error.
        case refused
        /// The client did not stop: the connection is to be shut down.
        case excessive
    }

    private struct Count {
        /// Hashes: the topics are in libzmq's memory already, and nobody knows this process's seed.
        var topics: Set<Int> = []
        var bytes = 0
        /// Ends of subscriptions that there were not.
        var strays = 0
    }

    /// Subscriptions of one connection, including barriers that it has not withdrawn.
    public static let maximum = BusLimits.value(.subscriptions)
    /// Bytes of all topics of one connection: libzmq takes some fifty bytes for each.
    public static let maximumBytes = 128 << 10
    /// How many times as much ends the connection.
    private static let patience = 4
    /// Ends of subscriptions that there were not. No client of libzmq sends any.
    private static let maximumStrays = 256

    private var counts: [Int32: Count] = [:]
    /// Connections that had too many.
    public private(set) var exceeded = 0

    public init() {}

    /// - Parameter message: the topic, and the byte before it.
    public mutating func subscribed(_ connection: Int32, _ message: some Sequence<UInt8>) -> Verdict {
        let (hash, bytes) = Self.measure(message)
        // libzmq keeps a topic of a connection once.
        if counts[connection, default: Count()].topics.insert(hash).inserted {
            counts[connection, default: Count()].bytes += bytes
        }
        guard isBeyond(connection, 1) else { return .accepted }
        guard isBeyond(connection, Self.patience) else { return .refused }
        exceeded += 1
        return .excessive
    }

    /// - Parameter message: as above.
    /// - Returns: false: the connection is to be shut down, as it ends what it never began.
    public mutating func unsubscribed(_ connection: Int32, _ message: some Sequence<UInt8>) -> Bool {
        let (hash, bytes) = Self.measure(message)
        guard counts[connection]?.topics.remove(hash) != nil else {
            counts[connection, default: Count()].strays += 1
            return counts[connection]?.strays ?? 0 <= Self.maximumStrays
        }
        counts[connection]?.bytes -= bytes
        return true
    }

    private static func measure(_ message: some Sequence<UInt8>) -> (hash: Int, bytes: Int) {
        let topic = Array(message.dropFirst())
        return (topic.hashValue, topic.count + 1)
    }

    /// The connection has ended.
    public mutating func closed(_ connection: Int32) { counts[connection] = nil }

    /// Why subscriptions of the connection are refused; nil: they are not.
    public func refusal(_ connection: Int32) -> BusError? { isBeyond(connection, 1) ? Self.tooMany : nil }

    private func isBeyond(_ connection: Int32, _ times: Int) -> Bool {
        guard let count = counts[connection] else { return false }
        return count.topics.count > times * Self.maximum || count.bytes > times * Self.maximumBytes
    }

    private static let tooMany = BusError.limitExceeded(
        .subscriptions,
        "This connection has more subscriptions than one may have (\(maximum), and \(maximumBytes >> 10) KiB of "
            + "topics); the last ones are not served. Unsubscribe, subscribe to a prefix such as state/, or use "
            + "another connection.")
}
