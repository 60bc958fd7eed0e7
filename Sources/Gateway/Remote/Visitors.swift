import BusServer
import LinuxIO
import Logging
import ZeroMQ

/// The connections from other machines: whose they are, how many, and their end.
final class Visitors {
    private struct Visitor {
        var address: String
        var port: Int
        /// Known from its first message on.
        var key: String?
    }

    private let loop: Loop
    private let logger: Logger
    private let total: Int
    private let perAddress: Int
    private var servers: [RemoteSocket] = []
    private var visitors: [Int32: Visitor] = [:]
    private var closings: [(Int32) -> Void] = []
    private var lastWarning: Int64 = 0
    /// Addresses from which somebody with a key has come.
    private var familiar: Set<String> = []
    /// Connections that were shut down because there were too many.
    private(set) var refused = 0
    /// Called when a key has no connection any more.
    var onLeft: ((_ key: String) -> Void)?

    /// Events of one socket that are taken in one turn.
    private static let eventsPerTurn = 256
    private static let turnsAtOnce = 8
    private static let maximumFamiliar = 1024

    init(_ loop: Loop, total: Int, perAddress: Int, logger: Logger) {
        self.loop = loop
        self.total = total
        self.perAddress = perAddress
        self.logger = logger
    }

    var count: Int { visitors.count }

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

    /// Takes in all that the monitors have told so far: a connection's end comes before what its descriptor's number stands for next.
    func update() {
        for server in servers {
            for _ in 0..<Self.turnsAtOnce { guard read(server) else { break } }
        }
    }

    /// A message came from that connection of that socket, of who has that key.
    ///
    /// - Returns: false: the connection has ended by now, and nobody is told of its end any more.
    func seen(_ connection: Int32, key: String, on server: RemoteSocket) -> Bool {
        guard let known = visitors[connection], known.port == server.port else {
            // Nobody would end it with its key.
            shutDown(connection, port: server.port)
            return false
        }
        guard known.key != key else { return true }
        // A message of who had the descriptor's number before may come late. Whose the connection is has to be sure, or it could
        // outlast its key: its client comes again.
        guard known.key == nil, visitors.values.count(where: { $0.key == key }) < perAddress else {
            refused += 1
            shutDown(connection)
            return true
        }
        visitors[connection]?.key = key
        if familiar.count >= Self.maximumFamiliar { familiar = [] }
        familiar.insert(known.address)
        return true
    }

    /// Somebody has had something done over a connection that has ended before it was known whose it was.
    func passed(_ key: String) { if !isHere(key) { onLeft?(key) } }

    /// Whether the key has a connection.
    func isHere(_ key: String) -> Bool { visitors.values.contains { $0.key == key } }

    /// Ends a connection.
    func shutDown(_ connection: Int32) {
        if let visitor = visitors[connection] { shutDown(connection, port: visitor.port) }
    }

    private func shutDown(_ connection: Int32, port: Int) {
        // Another descriptor of our own stays that connection's, whatever libzmq closes meanwhile.
        guard let pinned = UnixSocket.duplicate(connection), InternetSocket.localPort(of: pinned.rawValue) == port
        else { return }
        UnixSocket.shutDown(pinned.rawValue)
    }

    /// Ends all connections of those keys.
    func shutDown(where isMeant: (_ key: String) -> Bool) {
        update()
        for (connection, visitor) in visitors { if let key = visitor.key, isMeant(key) { shutDown(connection) } }
    }

    /// - Returns: whether there may be more.
    private func read(_ server: RemoteSocket) -> Bool {
        for _ in 0..<Self.eventsPerTurn {
            guard let frames = try? server.monitor.receive() else { return false }
            guard let event = MonitorEvent(frames) else { continue }
            switch event.kind {
            case .accepted: accepted(event.value, on: server)
            // The number may be a connection's of another socket by now, of which was told before.
            case .disconnected, .closed: if visitors[event.value]?.port == server.port { closed(event.value) }
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
        guard visitors.count < room, visitors.values.count(where: { $0.address == address }) < perAddress else {
            refused += 1
            UnixSocket.shutDown(pinned.rawValue)
            let now = MonotonicClock.now()
            if now - lastWarning > 1_000_000_000 {
                lastWarning = now
                logger.warning(
                    "connections beyond the limit are shut down",
                    metadata: ["address": "\(address)", "refused": "\(refused)"])
            }
            return
        }
        visitors[connection] = Visitor(address: address, port: server.port)
    }

    private func closed(_ connection: Int32) {
        guard let visitor = visitors.removeValue(forKey: connection) else { return }
        for body in closings { body(connection) }
        if let key = visitor.key, !isHere(key) { onLeft?(key) }
    }
}
