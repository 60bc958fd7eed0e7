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
        var subscriptions = 0
        var bytes = 0
    }

    /// Subscriptions of one connection, including barriers that it has not withdrawn.
    public static let maximum = BusLimits.value(.subscriptions)
    /// Bytes of all topics of one connection: libzmq takes some fifty bytes for each.
    public static let maximumBytes = 128 << 10
    /// How many times as much ends the connection.
    private static let patience = 4

    private var counts: [Int32: Count] = [:]
    /// Connections that had too many.
    public private(set) var exceeded = 0

    public init() {}

    /// - Parameter bytes: of the topic.
    public mutating func subscribed(_ connection: Int32, bytes: Int) -> Verdict {
        counts[connection, default: Count()].subscriptions += 1
        counts[connection, default: Count()].bytes += bytes
        guard isBeyond(connection, 1) else { return .accepted }
        guard isBeyond(connection, Self.patience) else { return .refused }
        exceeded += 1
        return .excessive
    }

    public mutating func unsubscribed(_ connection: Int32, bytes: Int) {
        guard var count = counts[connection] else { return }
        count.subscriptions -= 1
        count.bytes -= bytes
        counts[connection] = count.subscriptions > 0 ? count : nil
    }

    /// The connection has ended.
    public mutating func closed(_ connection: Int32) { counts[connection] = nil }

    /// Why subscriptions of the connection are refused; nil: they are not.
    public func refusal(_ connection: Int32) -> BusError? { isBeyond(connection, 1) ? Self.tooMany : nil }

    private func isBeyond(_ connection: Int32, _ times: Int) -> Bool {
        guard let count = counts[connection] else { return false }
        return count.subscriptions > times * Self.maximum || count.bytes > times * Self.maximumBytes
    }

    private static let tooMany = BusError.limitExceeded(
        .subscriptions,
        "This connection has more subscriptions than one may have (\(maximum), and \(maximumBytes >> 10) KiB of "
            + "topics); the last ones are not served. Unsubscribe, subscribe to a prefix such as state/, or use "
            + "another connection.")
}
