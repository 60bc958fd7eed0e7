/// How many subscriptions each connection has: libzmq keeps them all, so a client that goes on subscribing would take
/// memory for ever.
public struct SubscriptionCounter: Sendable {
    /// Of one connection, barriers that it has not taken back among them.
    public static let maximum = 1024

    private var counts: [Int32: Int] = [:]
    /// Connections that had too many.
    public private(set) var exceeded = 0

    public init() {}

    /// - Returns: false when the connection has too many now, and is to be shut down.
    public mutating func subscribed(_ connection: Int32) -> Bool {
        counts[connection, default: 0] += 1
        guard counts[connection, default: 0] > Self.maximum else { return true }
        exceeded += 1
        return false
    }

    public mutating func unsubscribed(_ connection: Int32) {
        guard let count = counts[connection] else { return }
        counts[connection] = count > 1 ? count - 1 : nil
    }

    /// The connection has ended.
    public mutating func closed(_ connection: Int32) { counts[connection] = nil }
}
