import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO
import ZeroMQ

/// `events.sock`: publishes state and events. A new subscriber gets the present state first.
final class EventSocket {
    private let loop: Loop
    let server: ServerSocket
    private let connections: ConnectionGuard
    private(set) var store: StateStore
    private var pacer: TopicPacer?
    private var counter = SubscriptionCounter()
    private var hasEnded = false

    private static let heartbeatInterval: Int64 = 1000

    init(_ loop: Loop, _ server: ServerSocket, _ connections: ConnectionGuard, epoch: String) {
        self.loop = loop
        self.server = server
        self.connections = connections
        store = StateStore(epoch: epoch)
        pacer = TopicPacer(loop) { [weak self] topic in
            guard let self else { return }
            for publication in store.current(matching: topic, where: { $0 == topic }) { publish(publication) }
        }
        loop.watch(.socket(server.socket)) { [weak self] in self?.readSubscriptions() }
        scheduleHeartbeat()
    }

    /// A connection has ended.
    func closed(_ connection: Int32) { counter.closed(connection) }

    /// Publishes a new value; nil: the thing is gone. Nothing is sent when it is what it was.
    func set(_ path: String, _ value: JSONValue?) {
        if value == nil { pacer?.forget("\(path)/") }
        if let publication = store.set(path, value) { publish(publication) }
    }

    /// Publishes that something happened.
    func event(_ path: String, _ name: String, _ members: [String: JSONValue] = [:]) {
        publish(store.event(path, name: name, members: members))
    }

    /// Publishes that the bus ends, and nothing of its own accord after it.
    func end() {
        guard !hasEnded else { return }
        event("event/bus", "ended")
        hasEnded = true
        // It gets a moment to leave.
        try? server.socket.set(.linger, 200)
    }

    private func publish(_ publication: StateStore.Publication) {
        send(publication.topic, publication.message)
    }

    private func send(_ topic: String, _ message: JSONValue) {
        // An XPUB never refuses: a subscriber with a full queue loses the message, and detects that by `previous`.
        _ = try? server.socket.send(frames: [Array(topic.utf8), message.serialized])
    }

    private func readSubscriptions() {
        for _ in 0..<64 {
            guard let message = try? server.socket.receive()?.first else { return }
            // When a connection ends, libzmq reports unsubscriptions without a connection.
            guard let connection = message.connection else { continue }
            // A descriptor's number may be a new connection's: the end of the old one comes first.
            connections.update()
            if connections.isLate(message, from: connection) { continue }
            let frame = message.bytes
            guard frame.first == 1 else {
                if frame.first != 0 {
                    connections.cutOff(connection, for: .noSubscription)
                } else if !counter.unsubscribed(connection, frame) {
                    connections.cutOff(connection, for: .unsubscriptions)
                }
                continue
            }
            let verdict = counter.subscribed(connection, frame)
            guard verdict != .excessive else {
                connections.cutOff(connection, for: .subscriptions)
                continue
            }
            guard let prefix = String(validating: frame.dropFirst(), as: UTF8.self) else { continue }
            if case .ack = Topic.parse(prefix.utf8) {
                send(prefix, counter.refusal(connection).map { ["error": $0.headerJSON] } ?? [:])
            } else if verdict == .accepted {
                let now = MonotonicClock.now()
                // Nothing is made of topics that were sent a moment ago: a client may subscribe on and on.
                let due = store.current(matching: prefix) { pacer?.isTime(for: $0, at: now) == true }
                for publication in due { publish(publication) }
            }
        }
    }

    private func scheduleHeartbeat() {
        loop.schedule(afterMilliseconds: Self.heartbeatInterval) { [weak self] in
            guard let self, !hasEnded else { return }
            send(
                "heartbeat/",
                [
                    "epoch": .string(store.epoch), "latest": store.latest,
                    "monotonic": JSONValue(MonotonicClock.now()),
                ])
            scheduleHeartbeat()
        }
    }
}
