import BusProtocol

/// The subscriptions of each connection.
///
/// libzmq reports that a topic has lost its last subscriber also when a peer unsubscribes that never subscribed (seen
/// with 4.3.4). Without a table of our own, one peer could end the stream of all others.
struct SubscriberTable {
    private var holders: [[UInt8]: Set<Int32>] = [:]
    private var topics: [Int32: Set<[UInt8]>] = [:]
    /// Subscriptions that were ignored because they are too long.
    private(set) var ignored: UInt64 = 0

    /// The topics of each connection.
    var subscriptions: [Int32: Set<[UInt8]>] { topics }

    /// The connections that subscribe to a topic.
    func holders(of topic: [UInt8]) -> Set<Int32> { holders[topic] ?? [] }

    /// What a subscription means for its topic.
    enum Subscription { case first, further, repeated, ignored }

    mutating func subscribe(_ topic: [UInt8], by connection: Int32) -> Subscription {
        guard topic.count <= BusLimits.maxTopicBytes else {
            ignored += 1
            return .ignored
        }
        guard topics[connection, default: []].insert(topic).inserted else { return .repeated }
        holders[topic, default: []].insert(connection)
        return holders[topic]?.count == 1 ? .first : .further
    }

    /// - Returns: whether it had subscribed.
    mutating func unsubscribe(_ topic: [UInt8], by connection: Int32) -> Bool {
        guard topics[connection]?.remove(topic) != nil else { return false }
        if topics[connection]?.isEmpty == true { topics[connection] = nil }
        remove(connection, from: topic)
        return true
    }

    /// The connection has ended.
    ///
    /// - Returns: the topics that it had.
    mutating func close(_ connection: Int32) -> [[UInt8]] {
        let topics = topics.removeValue(forKey: connection) ?? []
        for topic in topics { remove(connection, from: topic) }
        return Array(topics)
    }

    /// A connection that had subscribed to the topic has ended: removes all connections that are not open any more.
    ///
    /// The end of a connection may be reported before its subscription is read.
    ///
    /// - Returns: the topics that each of them had.
    mutating func sweep(_ topic: [UInt8], isOpen: (Int32) -> Bool) -> [(connection: Int32, topics: [[UInt8]])] {
        (holders[topic] ?? []).filter { !isOpen($0) }.map { ($0, close($0)) }
    }

    private mutating func remove(_ connection: Int32, from topic: [UInt8]) {
        holders[topic]?.remove(connection)
        if holders[topic]?.isEmpty == true { holders[topic] = nil }
    }
}
