/// Counts the connections of each user and of each process, so that no user can take all of them, and reports when a
/// process has closed its last one.
public struct ConnectionTable: Sendable {
    private struct Peer: Sendable {
        var uid: UInt32
        var pid: Int32
    }

    /// Connections that one user may have.
    public private(set) var perUser: Int
    /// Connections that all may have together.
    public private(set) var total: Int
    /// A user with no limit but the total: the gateway's user, whose connections serve other users.
    public var unbounded: UInt32?
    private var peers: [Int32: Peer] = [:]
    private var users: [UInt32: Int] = [:]
    private var processes: [Int32: Int] = [:]

    public init(perUser: Int, total: Int) {
        self.perUser = perUser
        self.total = total
    }

    /// Connections that are open now, without the refused ones.
    public var count: Int { peers.count }

    /// New limits; connections that are open stay, also beyond them.
    public mutating func setLimits(perUser: Int, total: Int) {
        self.perUser = perUser
        self.total = total
    }

    /// Connections of that user.
    public func count(uid: UInt32) -> Int { users[uid] ?? 0 }

    /// Connections of that process.
    public func count(pid: Int32) -> Int { processes[pid] ?? 0 }

    /// Counts a new connection.
    ///
    /// If the descriptor is counted already, its old connection has been closed unnoticed; it counts for the new peer
    /// alone.
    /// - Returns: false if there are too many: it is not counted then, and must be shut down.
    public mutating func open(descriptor: Int32, uid: UInt32, pid: Int32) -> Bool {
        _ = close(descriptor: descriptor)
        guard peers.count < total, count(uid: uid) < perUser || uid == unbounded else { return false }
        peers[descriptor] = Peer(uid: uid, pid: pid)
        users[uid, default: 0] += 1
        processes[pid, default: 0] += 1
        return true
    }

    /// A connection has been closed; one that is not counted is ignored.
    ///
    /// - Returns: true if it was the last one of its process; always false for an unknown process (pid 0).
    public mutating func close(descriptor: Int32) -> Bool {
        guard let peer = peers.removeValue(forKey: descriptor) else { return false }
        Self.decrement(&users, peer.uid)
        Self.decrement(&processes, peer.pid)
        return peer.pid > 0 && processes[peer.pid] == nil
    }

    private static func decrement<Key: Hashable>(_ counts: inout [Key: Int], _ key: Key) {
        let left = (counts[key] ?? 0) - 1
        counts[key] = left > 0 ? left : nil
    }
}
