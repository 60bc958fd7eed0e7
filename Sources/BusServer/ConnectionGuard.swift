import BusProtocol
import LinuxIO
public import Logging
public import ZeroMQ

/// Counts the connections to a process's sockets, by user and by process, and shuts down those beyond the limits.
///
/// libzmq ends the whole process when `accept` finds no descriptor left, so this is what keeps a careless client from
/// ending the bus. It also knows when a process has no connection left.
public final class ConnectionGuard {
    /// The process at the other end of a connection, named for good.
    public struct Peer: Hashable, Sendable {
        public var uid: UInt32
        public var pid: Int32
        /// As it was when the connection came in; nil when the process had gone by then.
        public var startTime: UInt64?

        public init(uid: UInt32, pid: Int32, startTime: UInt64?) {
            self.uid = uid
            self.pid = pid
            self.startTime = startTime
        }
    }

    private let loop: Loop
    private let logger: Logger
    private var table: ConnectionTable
    private var peers: [Int32: Peer] = [:]
    private var servers: [ServerSocket] = []
    /// When a line was last logged about connections beyond the limits: a flood is one line a second.
    private var lastWarning: Int64 = 0
    private var lastCutWarning: Int64 = 0
    private var lastExcessWarning: Int64 = 0
    /// Connections that were cut off in this process when that was last logged.
    private var loggedCuts = Context.connectionsCutOff
    /// When a connection could not be accepted for the last time, monotonic nanoseconds.
    private var lastFailure: Int64 = .min / 2
    /// Without a failure for so long, the next one is another shortage; nanoseconds.
    private static let calm: Int64 = 60_000_000_000
    /// Conditions of ``shutDown(where:)`` for connections that are reported later; kept until the socket's events are
    /// read.
    private var endings: [(server: ServerSocket, matches: (_ uid: UInt32, _ gid: UInt32) -> Bool)] = []
    /// Events of one socket that are read in one turn: a flood of connections leaves turns to everything else on the
    /// loop.
    private static let eventsPerTurn = 256
    /// The same where all reported events have to be known; further ones are handled when they are read.
    var eventsAtOnce = 2048
    /// Connections that were shut down when they were reported.
    private var cut: Set<Int32> = []
    /// Connections that were cut off for what they send, until their end is reported.
    private var leaving: Set<Int32> = []
    /// The number of the newest connection.
    private var lastNumber: UInt64 = 0
    /// By descriptor: messages of connections with such a number, or a lower one, are of earlier connections.
    private var floors: [Int32: UInt64] = [:]
    /// Connections that were shut down so far.
    public private(set) var refused = 0
    /// Called when a connection has ended, with its descriptor.
    public var onClosed: ((Int32) -> Void)?
    /// Called when a process has closed its last connection.
    public var onLastConnectionClosed: ((Peer) -> Void)?
    /// Called when the last connection of all has ended.
    public var onEmpty: (() -> Void)?

    public init(_ loop: Loop, perUser: Int, total: Int, logger: Logger) {
        self.loop = loop
        self.logger = logger
        table = ConnectionTable(perUser: perUser, total: total)
    }

    /// Connections that are open now.
    public var count: Int { table.count }

    /// Whether nobody is connected, also nobody whose connection is about to be shut down.
    public var isEmpty: Bool { peers.isEmpty }

    /// Whether the descriptor is that of a connection.
    public func isOpen(_ descriptor: Int32) -> Bool { peers[descriptor] != nil }

    /// Who is at the other end of that connection; nil when it is none, or has ended.
    public func peer(of descriptor: Int32) -> Peer? { peers[descriptor] }

    /// What each connection's peer has not read.
    public var unread: [(connection: Int32, bytes: Int)] {
        peers.keys.map { ($0, UnixSocket.unreadBytes($0)) }
    }

    /// New limits; connections that are open stay.
    public func setLimits(perUser: Int, total: Int) { table.setLimits(perUser: perUser, total: total) }

    /// That user's connections are limited by the total, and not by the limit of one user.
    public func setUnbounded(_ uid: UInt32?) {
        table.unbounded = uid
        Context.setUnlimited(uid)
    }

    /// Counts that socket's connections from now on.
    public func add(_ server: ServerSocket) {
        servers.append(server)
        loop.watch(.socket(server.monitor)) { [weak self, weak server] in
            guard let self, let server else { return }
            read(server, atMost: Self.eventsPerTurn)
        }
    }

    /// Reads the events of the monitors. libzmq reports a connection before its first message can arrive.
    public func update() {
        for server in servers { read(server, atMost: eventsAtOnce) }
    }

    /// The number of the next connection: what the doorkeeper gives libzmq as the `User-Id` of its messages.
    func number() -> UInt64 {
        // libzmq reports a connection before it asks whether it may come in. So the descriptors of all earlier
        // connections are known when this one gets its number.
        for server in servers { read(server, atMost: .max) }
        lastNumber += 1
        return lastNumber
    }

    /// Whether a message is of a connection that was cut off, or that has ended and whose descriptor may belong to
    /// another one by now: libzmq gives what a peer had sent before its connection ended.
    public func isLate(_ message: Message, from descriptor: Int32) -> Bool {
        if leaving.contains(descriptor) { return true }
        guard let floor = floors[descriptor], let number = message.property("User-Id").flatMap({ UInt64($0) }) else {
            return false
        }
        return number <= floor
    }

    /// The process of that number that has a connection here; nil when none has.
    public func peer(pid: Int32) -> Peer? { peers.values.first { $0.pid == pid && $0.startTime != nil } }

    private func read(_ server: ServerSocket, atMost maximum: Int) {
        for _ in 0..<maximum {
            guard let frames = try? server.monitor.receive() else {
                endings.removeAll { $0.server === server }
                return
            }
            guard let event = MonitorEvent(frames) else { continue }
            switch event.kind {
            case .accepted: accepted(event.value, on: server)
            case .disconnected, .closed:
                closed(event.value)
                onClosed?(event.value)
                logCuts()
            case .acceptFailed:
                let now = MonotonicClock.now()
                if now - lastFailure > Self.calm {
                    let why = SystemError(code: event.value, operation: "accept")
                    logger.error(
                        "connections can't be accepted; most likely too few descriptors are left",
                        metadata: ["error": "\(why)"])
                }
                lastFailure = now
            default: break
            }
        }
    }

    private func accepted(_ descriptor: Int32, on server: ServerSocket) {
        // The event may be out of date: its descriptor may be closed, or belong to another connection by now. A second
        // descriptor of our own keeps this connection, whatever libzmq closes meanwhile.
        guard let pinned = UnixSocket.duplicate(descriptor),
            UnixSocket.localPath(of: pinned.rawValue) == server.address,
            let credentials = PeerCredentials(of: pinned.rawValue)
        else { return }
        closed(descriptor)
        floors[descriptor] = lastNumber
        guard !table.open(descriptor: descriptor, uid: credentials.uid, pid: credentials.pid) else {
            peers[descriptor] = Peer(
                uid: credentials.uid, pid: credentials.pid, startTime: ProcessTable.startTime(of: credentials.pid))
            if endings.contains(where: { $0.server === server && $0.matches(credentials.uid, credentials.gid) }) {
                UnixSocket.shutDown(pinned.rawValue)
                cut.insert(descriptor)
            }
            return
        }
        peers[descriptor] = Peer(uid: credentials.uid, pid: credentials.pid, startTime: nil)
        refused += 1
        UnixSocket.shutDown(pinned.rawValue)
        let now = MonotonicClock.now()
        if now - lastWarning > 1_000_000_000 {
            lastWarning = now
            logger.warning(
                "connections beyond the limit are closed",
                metadata: [
                    LogKeys.peerUID: "\(credentials.uid)", LogKeys.peerPID: "\(credentials.pid)",
                    "refused": "\(refused)",
                ])
        }
    }

    /// Ends the connection of a peer that sends what nobody may.
    public func cutOff(_ descriptor: Int32, for excess: ConnectionCut.Excess) {
        guard let peer = peers[descriptor], leaving.insert(descriptor).inserted else { return }
        Context.count(ConnectionCut(excess, uid: peer.uid, pid: peer.pid))
        shutDown(descriptor)
        logCuts()
    }

    // libzmq's thread ends connections, too. At most one line a second.
    private func logCuts() {
        let cuts = Context.connectionsCutOff
        let now = MonotonicClock.now()
        guard cuts != loggedCuts, now - lastExcessWarning > 1_000_000_000, let last = Context.lastConnectionCutOff
        else { return }
        lastExcessWarning = now
        loggedCuts = cuts
        logger.warning(
            "a connection is closed for what its peer sends",
            metadata: [
                "reason": "\(last.excess.description)", LogKeys.peerUID: "\(last.uid)", LogKeys.peerPID: "\(last.pid)",
                "closed": "\(cuts)",
            ])
    }

    /// Ends the connection of a peer that does not read, with at most one line a second in the log.
    public func cutOff(_ descriptor: Int32) {
        let now = MonotonicClock.now()
        if let peer = peers[descriptor], now - lastCutWarning > 1_000_000_000 {
            lastCutWarning = now
            logger.warning(
                "a connection is closed: its peer does not read, and memory is short",
                metadata: [LogKeys.peerUID: "\(peer.uid)", LogKeys.peerPID: "\(peer.pid)"])
        }
        shutDown(descriptor)
    }

    /// Ends a connection. Nothing happens if the descriptor no longer belongs to the process for which it was counted.
    public func shutDown(_ descriptor: Int32) {
        guard let peer = peers[descriptor], let pinned = UnixSocket.duplicate(descriptor),
            servers.contains(where: { $0.address == UnixSocket.localPath(of: pinned.rawValue) }),
            let credentials = PeerCredentials(of: pinned.rawValue), credentials.pid == peer.pid,
            credentials.uid == peer.uid
        else { return }
        UnixSocket.shutDown(pinned.rawValue)
    }

    /// Ends the connections for which the closure returns true, including connections that were accepted before and not
    /// reported yet. Later connections are checked when they are accepted.
    ///
    /// - Returns: how many. If there are too many events to read at once, the next turns of the loop handle the rest.
    @discardableResult
    public func shutDown(where matches: @escaping (_ uid: UInt32, _ gid: UInt32) -> Bool) -> Int {
        // Each condition is removed by the first read that leaves no event, perhaps by this one.
        for server in servers { endings.append((server, matches)) }
        cut = []
        update()
        // Some of these have ended by now.
        var ended = cut
        cut = []
        for (descriptor, peer) in peers {
            guard let pinned = UnixSocket.duplicate(descriptor),
                servers.contains(where: { $0.address == UnixSocket.localPath(of: pinned.rawValue) }),
                let credentials = PeerCredentials(of: pinned.rawValue), credentials.pid == peer.pid,
                credentials.uid == peer.uid, matches(credentials.uid, credentials.gid)
            else { continue }
            UnixSocket.shutDown(pinned.rawValue)
            ended.insert(descriptor)
        }
        return ended.count
    }

    /// Whether the user has any connection.
    public func isConnected(uid: UInt32) -> Bool { table.count(uid: uid) > 0 }

    private func closed(_ descriptor: Int32) {
        leaving.remove(descriptor)
        guard let peer = peers.removeValue(forKey: descriptor) else { return }
        floors[descriptor] = lastNumber
        if table.close(descriptor: descriptor) { onLastConnectionClosed?(peer) }
        if isEmpty { onEmpty?() }
    }
}
