import BusProtocol
import BusServer
import LinuxIO
import ZeroMQ

/// The event port: passes state and events of the bus to their subscribers.
///
/// Subscriptions stay here: for the bus this is one subscriber to everything. A later subscriber gets the current state
/// from the cache.
final class EventRelay {
    private let server: RemoteSocket
    private let registry: ConnectionRegistry
    private let keys: RemoteUserStore
    private let bus: BusEvents
    private var counter = SubscriptionCounter()
    private var pacer: TopicPacer?
    /// By connection: each subscription has all that is kept looked through.
    private var buckets: [Int32: TokenBucket] = [:]

    /// Messages that wait for a client that is slow.
    static let waitingMessages = 1000
    private static let messagesPerTurn = 64
    /// Subscriptions of one connection in a second; at once as many as it may have, and a second's more.
    private static let subscriptionsPerSecond = 200
    private static let subscriptionsAtOnce = SubscriptionCounter.maximum + subscriptionsPerSecond

    init(
        _ loop: Loop, _ bus: BusEvents, _ server: RemoteSocket, _ registry: ConnectionRegistry, _ keys: RemoteUserStore
    ) {
        self.bus = bus
        self.server = server
        self.registry = registry
        self.keys = keys
        pacer = TopicPacer(loop) { [weak self] topic in
            guard let self else { return }
            for (found, body) in bus.current(matching: topic) where found == topic { send(found, body) }
        }
        bus.listen { [weak self] topic, body in self?.send(topic, body) }
        loop.watch(.socket(server.socket)) { [weak self] in self?.readSubscriptions() }
        registry.whenClosed { [weak self] in
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
            guard let frame = frames.first else { continue }
            registry.update()
            let connection = frame.connection
            // The end of a connection tells of its subscriptions, too, but not whose they were.
            guard let connection, let key = frame.property("User-Id") else { continue }
            guard keys[key] != nil else {
                registry.shutDown(connection)
                continue
            }
            // Before anything is counted: what comes late would count for who has the descriptor's number next.
            guard registry.seen(connection, key: key, on: server) else { continue }
            guard frame.bytes.first == 1 else {
                if frame.bytes.first != 0 || !counter.unsubscribed(connection, frame.bytes) {
                    registry.shutDown(connection)
                }
                continue
            }
            let verdict = counter.subscribed(connection, frame.bytes)
            guard verdict != .excessive, isInTime(connection) else {
                registry.shutDown(connection)
                continue
            }
            guard let prefix = String(validating: frame.bytes.dropFirst(), as: UTF8.self) else { continue }
            if case .ack = Topic.parse(prefix.utf8) {
                send(prefix, Announcement.ack(refused: counter.refusal(connection)))
            } else if verdict == .accepted {
                let now = MonotonicClock.now()
                for (topic, body) in bus.current(matching: prefix)
                where pacer?.isTime(for: topic, at: now) == true { send(topic, body) }
            }
        }
    }

    private func isInTime(_ connection: Int32) -> Bool {
        let now = MonotonicClock.now()
        let fresh = TokenBucket(perSecond: Self.subscriptionsPerSecond, burst: Self.subscriptionsAtOnce, at: now)
        return buckets[connection, default: fresh].take(at: now)
    }
}
