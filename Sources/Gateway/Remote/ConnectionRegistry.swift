import BusServer
import LinuxIO
import Logging
import ZeroMQ

/// The current connections from other machines: their keys, their number, and their end.
final class ConnectionRegistry {
    private struct Peer {
        var address: String
        var port: Int
        /// Known from its first message on.
        var key: String?
        /// How often it was found to have said nothing.
        var silences = 0
    }

    private let loop: Loop
    private let logger: Logger
    private let total: Int
    private let perAddress: Int
    private let look: Int64
    private var servers: [RemoteSocket] = []
    private var peers: [Int32: Peer] = [:]
    private var closings: [(Int32) -> Void] = []
    private var lastWarning: Int64 = 0
    /// Addresses from which somebody with a key has come.
    private var familiar: Set<String> = []
    private var pending: PendingConnections
    private var watch: Loop.Token?
    /// Connections that were shut down because there were too many.
    private(set) var refused = 0
    /// Called when a key has no connection any more, and when a connection of it becomes known.
    var onLeft: ((_ key: String) -> Void)?
    var onCame: ((_ key: String) -> Void)?

    /// Events of one socket that are taken in one turn.
    private static let eventsPerTurn = 256
    private static let turnsAtOnce = 8
    private static let maximumFamiliar = 1024
    /// Looks at a connection before it is ended for having said nothing. They are counted, not timed: a process that
    /// was stopped finds what was said meanwhile between two of them.
    private static let maximumSilences = 5

    /// - Parameters:
    ///   - perAddress: connections of one address, and of one key.
    ///   - look: milliseconds from one look at those that have said nothing to the next.
    init(_ loop: Loop, total: Int, perAddress: Int, look: Int64 = 2000, logger: Logger) {
        self.loop = loop
        self.total = total
        self.perAddress = perAddress
        self.look = look
        self.logger = logger
        pending = PendingConnections(patience: Int64(Self.maximumSilences) * look * 1_000_000)
    }

    deinit { loop.cancel(watch) }

    var count: Int { peers.count }

    /// Whether one more connection may come in by that key; it counts from now on.
    func admits(_ key: String) -> Bool {
        update()
        let now = MonotonicClock.now()
        guard connections(of: key) + pending.count(of: key, at: now) < perAddress else { return false }
        pending.came(key, at: now)
        return true
    }

    private func connections(of key: String) -> Int { peers.values.count { $0.key == key } }

    /// Has the body called with each connection that has ended.
    func whenClosed(_ body: @escaping (Int32) -> Void) { closings.append(body) }

    /// Counts that socket's connections from now on.
    func add(_ server: RemoteSocket) {
        servers.append(server)
        loop.watch(.socket(server.monitor)) { [weak self, weak server] in
            guard let self, let server else { return }
            _ = read(server)
        }
    }

    /// Takes in all that the monitors have told so far: a connection's end comes before what its descriptor's number
    /// stands for next.
    func update() {
        for server in servers {
            for _ in 0..<Self.turnsAtOnce { guard read(server) else { break } }
        }
    }

    /// A message came from that connection of that socket, of who has that key.
    ///
    /// - Returns: false: the connection has ended by now, and nobody is told of its end any more.
    func seen(_ connection: Int32, key: String, on server: RemoteSocket) -> Bool {
        guard let known = peers[connection], known.port == server.port else {
            // Nobody would end it with its key.
            shutDown(connection, port: server.port)
            return false
        }
        guard known.key != key else { return true }
        // A message of the descriptor number's earlier owner may come late. The connection's key has to be certain, or
        // the connection could outlast its key. The client connects again.
        guard known.key == nil, connections(of: key) < perAddress else {
            refused += 1
            shutDown(connection)
            return true
        }
        peers[connection]?.key = key
        pending.spoke(key)
        onCame?(key)
        if familiar.count >= Self.maximumFamiliar { familiar = [] }
        familiar.insert(known.address)
        return true
    }

    /// Somebody has had something done over a connection that has ended before it was known whose it was.
    func passed(_ key: String) { if !isHere(key) { onLeft?(key) } }

    /// Whether the key has a connection.
    func isHere(_ key: String) -> Bool { peers.values.contains { $0.key == key } }

    /// Ends a connection.
    func shutDown(_ connection: Int32) {
        if let peer = peers[connection] { shutDown(connection, port: peer.port) }
    }

    private func shutDown(_ connection: Int32, port: Int) {
        // Another descriptor of our own stays that connection's, whatever libzmq closes meanwhile.
        guard let pinned = UnixSocket.duplicate(connection), InternetSocket.localPort(of: pinned.rawValue) == port
        else { return }
        UnixSocket.shutDown(pinned.rawValue)
    }

    /// Ends all connections of these keys, and all connections whose key is not known yet. The other clients among
    /// them connect again.
    func shutDown(where isMeant: (_ key: String) -> Bool) {
        update()
        for (connection, peer) in peers where peer.key.map(isMeant) ?? true { shutDown(connection) }
    }

    /// Who says nothing is nobody's: neither a limit of a key nor its end would be for it.
    private func watchSilent() {
        guard watch == nil, peers.values.contains(where: { $0.key == nil }) else { return }
        watch = loop.schedule(afterMilliseconds: look) { [weak self] in
            guard let self else { return }
            watch = nil
            lookAtSilent()
        }
    }

    private func lookAtSilent() {
        update()
        for (connection, peer) in peers where peer.key == nil {
            peers[connection]?.silences += 1
            if peer.silences + 1 >= Self.maximumSilences { shutDown(connection) }
        }
        watchSilent()
    }

    /// - Returns: whether there may be more.
    private func read(_ server: RemoteSocket) -> Bool {
        for _ in 0..<Self.eventsPerTurn {
            guard let frames = try? server.monitor.receive() else { return false }
            guard let event = MonitorEvent(frames) else { continue }
            switch event.kind {
            case .accepted: accepted(event.value, on: server)
            // The number may be a connection's of another socket by now, of which was told before.
            case .disconnected, .closed: if peers[event.value]?.port == server.port { closed(event.value) }
            default: break
            }
        }
        return true
    }

    private func accepted(_ connection: Int32, on server: RemoteSocket) {
        // The event may be older than the connection: its descriptor may be closed, or be another's by now.
        guard let pinned = UnixSocket.duplicate(connection),
            InternetSocket.localPort(of: pinned.rawValue) == server.port,
            let address = InternetSocket.peerAddress(of: pinned.rawValue)
        else { return }
        closed(connection)
        // A third is for those from where somebody with a key has come: who has none can't keep them out.
        let room = familiar.contains(address) ? total : total - total / 3
        guard peers.count < room, peers.values.count(where: { $0.address == address }) < perAddress else {
            refused += 1
            UnixSocket.shutDown(pinned.rawValue)
            let now = MonotonicClock.now()
            if now - lastWarning > 1_000_000_000 {
                lastWarning = now
                logger.warning(
                    "too many connections; new ones are closed",
                    metadata: ["address": "\(address)", "refused": "\(refused)"])
            }
            return
        }
        peers[connection] = Peer(address: address, port: server.port)
        watchSilent()
    }

    private func closed(_ connection: Int32) {
        guard let peer = peers.removeValue(forKey: connection) else { return }
        for body in closings { body(connection) }
        if let key = peer.key, !isHere(key) { onLeft?(key) }
    }
}
