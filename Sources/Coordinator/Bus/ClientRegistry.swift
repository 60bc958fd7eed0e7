import BusProtocol
import BusServer
import CaptureCore
import LinuxIO

/// The names that clients gave themselves in `bus.hello`, and the process behind each caller.
final class ClientRegistry {
    private let connections: ConnectionGuard
    /// By connection.
    private var names = BoundedDictionary<[UInt8], String>(limit: 1024)
    /// By process: nothing else is known of a subscriber.
    private var processNames = BoundedDictionary<ConnectionGuard.Peer, String>(limit: 1024)

    init(_ connections: ConnectionGuard) { self.connections = connections }

    /// A client has said hello.
    func greeted(_ caller: Caller, name: String?) {
        names[caller.connection] = name
        connections.update()
        // A gateway's process does not have the names of the clients for whom it asks.
        if caller.remote == nil, let process = connections.peer(pid: caller.peer.pid) { processNames[process] = name }
    }

    /// The process has let go of its last connection.
    func forget(_ process: ConnectionGuard.Peer) { processNames[process] = nil }

    /// The name that the process with that number gave itself; nil: it has not said hello.
    func name(of pid: Int32) -> String? { connections.peer(pid: pid).flatMap { processNames[$0] } }

    /// The caller as the holder of what it takes.
    func holder(_ caller: Caller) -> LockHolder {
        let peer = caller.peer
        // The start time is that of the connection's process, so that another process with the same number can't
        // inherit. The connection may be among those that have not been counted yet.
        connections.update()
        let startTime =
            connections.peer(pid: peer.pid)?.startTime
            ?? (peer.pid == 0 ? nil : ProcessTable.startTime(of: peer.pid))
        let name = caller.remote ?? programName(caller)
        return LockHolder(uid: peer.uid, gid: peer.gid, pid: peer.pid, startTime: startTime, name: name)
    }

    /// The name of the caller's program.
    func programName(_ caller: Caller) -> String {
        names[caller.connection] ?? ProcessTable.name(of: caller.peer.pid) ?? "unknown"
    }
}
