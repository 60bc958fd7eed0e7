import BusProtocol
import BusServer
import LinuxIO
import ZeroMQ

/// The media port: receives the requests of clients for pictures and sound, and sends these.
final class MediaRelay {
    /// Who asks.
    private struct Asker {
        var key: String
        var connection: Int32?
        var peer: MediaDistributor.Peer
        var bucket: TokenBucket
    }

    private let server: RemoteSocket
    private let media: MediaDistributor
    private let settings: GatewayConfiguration.TCP
    private let registry: ConnectionRegistry
    private let keys: RemoteUserStore
    /// By libzmq's names of connections.
    private var askers: [[UInt8]: Asker] = [:]
    private let queuedBytes = QueuedByteCounter()

    /// Messages that wait in libzmq for a client, beyond what it asked for at a time.
    static let waitingMessages = 16
    /// Messages of one connection in a second.
    private static let asksPerSecond = 1000
    private static let asksPerTurn = 64

    init(
        _ loop: Loop, _ media: MediaDistributor, _ server: RemoteSocket, _ settings: GatewayConfiguration.TCP,
        _ registry: ConnectionRegistry, _ keys: RemoteUserStore
    ) {
        self.media = media
        self.server = server
        self.settings = settings
        self.registry = registry
        self.keys = keys
        loop.watch(.socket(server.socket)) { [weak self] in self?.read() }
        registry.whenClosed { [weak self] connection in self?.forget { $0.connection == connection } }
    }

    /// Whoever has one of these keys gets nothing any more.
    func drop(where isMeant: (_ key: String) -> Bool) { forget { isMeant($0.key) } }

    private func forget(_ isMeant: (Asker) -> Bool) {
        for (routing, asker) in askers where isMeant(asker) { forget(routing) }
    }

    private func forget(_ routing: [UInt8]) {
        if let asker = askers.removeValue(forKey: routing) { media.close(asker.peer) }
    }

    private func read() {
        for _ in 0..<Self.asksPerTurn {
            guard let message = try? server.socket.receive(maximumFrames: 2) else { return }
            guard message.count == 2 else { continue }
            take(routing: Array(message[0].bytes), message[1])
        }
    }

    private func take(routing: [UInt8], _ frame: Message) {
        registry.update()
        let connection = frame.connection
        guard let key = frame.property("User-Id"), let entry = keys[key] else {
            if let connection { registry.shutDown(connection) }
            return
        }
        // For who has gone already nothing is to be made: nothing would end it.
        if let connection, !registry.seen(connection, key: key, on: server) { return }
        let now = MonotonicClock.now()
        if let known = askers[routing], known.key != key || known.connection != connection { forget(routing) }
        if askers[routing] == nil {
            let bucket = TokenBucket(perSecond: Self.asksPerSecond, burst: Self.asksPerSecond, at: now)
            askers[routing] = Asker(key: key, connection: connection, peer: open(routing, entry), bucket: bucket)
        }
        guard askers[routing]?.bucket.take(at: now) == true else {
            if let connection { registry.shutDown(connection) }
            return
        }
        guard let ask = MediaAsk(parsing: frame.bytes), let peer = askers[routing]?.peer else { return }
        media.take(ask, of: peer)
    }

    private func open(_ routing: [UInt8], _ entry: RemoteUserList.Entry) -> MediaDistributor.Peer {
        let key = entry.key
        return media.open(
            MediaDistributor.Way(
                owner: key, role: entry.role, allowsRaw: settings.allowsRaw,
                // There is again when the next message of a topic comes, or is asked for.
                hasRoom: { [queuedBytes] in queuedBytes.hasRoom(for: key) },
                send: { [weak self] topic, frames in self?.send(topic, routing, frames, of: key) ?? false }))
    }

    private func send(_ topic: [UInt8], _ routing: [UInt8], _ frames: [Message], of key: String) -> Bool {
        // Their bytes are counted, not copied: others get the same.
        guard let counted = try? frames.map({ try queuedBytes.counted($0, for: key) }) else { return false }
        return server.send(to: routing, [topic], counted)
    }
}
