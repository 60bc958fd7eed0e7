import BusProtocol
import BusServer
import LinuxIO
import ZeroMQ

/// The port of state and events: all that the bus publishes there, to who has subscribed to it.
///
/// Subscriptions stay here: to the bus this is one subscriber of everything, and who comes later gets the present state from what is kept.
final class EventRelay {
    private let loop: Loop
    private let server: RemoteSocket
    private let visitors: Visitors
    private let keys: KeyBook
    private let bus: BusEvents
    private var counter = SubscriptionCounter()
    /// When a topic was last sent again, so that a crowd of subscribers can't multiply the traffic.
    private var resent: [String: Int64] = [:]
    private var overdue: Set<String> = []
    private var overdueTimer: Loop.Token?
    /// By connection: each subscription has all that is kept looked through.
    private var buckets: [Int32: TokenBucket] = [:]

    /// Messages that wait for a client that is slow.
    static let waitingMessages = 1000
    private static let resendInterval: Int64 = 100_000_000
    private static let messagesPerTurn = 64
    /// Subscriptions of one connection in a second; at once as many as it may have, and a second's more.
    private static let subscriptionsPerSecond = 200
    private static let subscriptionsAtOnce = SubscriptionCounter.maximum + subscriptionsPerSecond

    init(
        _ loop: Loop, _ bus: BusEvents, _ server: RemoteSocket, _ visitors: Visitors, _ keys: KeyBook
    ) {
        self.loop = loop
        self.bus = bus
        self.server = server
        self.visitors = visitors
        self.keys = keys
        bus.listen { [weak self] topic, body in self?.send(topic, body) }
        loop.watch(.socket(server.socket)) { [weak self] in self?.readSubscriptions() }
        visitors.whenClosed { [weak self] in
            self?.counter.closed($0)
            self?.buckets[$0] = nil
        }
    }

    private func send(_ topic: String, _ body: [UInt8]) {
        // It never refuses: who is slow loses the message, and sees that by `previous`.
        _ = try? server.socket.send(frames: [Array(topic.utf8), body])
    }

    private func readSubscriptions() {
        for _ in 0..<Self.messagesPerTurn {
            guard let frames = try? server.socket.receive() else { return }
            guard let frame = frames.first, let kind = frame.bytes.first else { continue }
            visitors.update()
            let connection = frame.connection
            // The end of a connection tells of its subscriptions, too, but not whose they were.
            if kind == 0 {
                if let connection { counter.unsubscribed(connection) }
                continue
            }
            guard kind == 1, let connection, let key = frame.property("User-Id") else { continue }
            guard keys[key] != nil, counter.subscribed(connection), isInTime(connection) else {
                visitors.shutDown(connection)
                continue
            }
            visitors.seen(connection, key: key, on: server)
            guard let prefix = String(validating: frame.bytes.dropFirst(), as: UTF8.self) else { continue }
            if case .ack = Topic.parse(prefix.utf8) {
                send(prefix, Array("{}".utf8))
            } else {
                let now = MonotonicClock.now()
                for (topic, body) in bus.current(matching: prefix) { resend(topic, body, at: now) }
            }
        }
    }

    private func isInTime(_ connection: Int32) -> Bool {
        let now = MonotonicClock.now()
        let fresh = TokenBucket(perSecond: Self.subscriptionsPerSecond, burst: Self.subscriptionsAtOnce, at: now)
        return buckets[connection, default: fresh].take(at: now)
    }

    private func resend(_ topic: String, _ body: [UInt8], at now: Int64) {
        if let last = resent[topic], now - last < Self.resendInterval {
            overdue.insert(topic)
            if overdueTimer == nil {
                overdueTimer = loop.schedule(at: last + Self.resendInterval) { [weak self] in self?.sendOverdue() }
            }
        } else {
            if resent.count >= StateCache.maximum {
                resent = resent.filter { now - $0.value < Self.resendInterval }
            }
            resent[topic] = now
            send(topic, body)
        }
    }

    private func sendOverdue() {
        overdueTimer = nil
        let topics = overdue
        overdue = []
        let now = MonotonicClock.now()
        // What is older than the interval says nothing any more.
        resent = resent.filter { now - $0.value < Self.resendInterval }
        for topic in topics {
            for (found, body) in bus.current(matching: topic) where found == topic { resend(found, body, at: now) }
        }
    }
}
