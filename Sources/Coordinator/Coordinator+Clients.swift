import BusServer
import CaptureCore
import LinuxIO

/// Clients that come and go: what a process holds goes with its last connection, but not at once.
extension Coordinator {
    /// How long a process without a connection keeps what it holds, milliseconds.
    private static let connectionGrace: Int64 = 5000

    // A process that has let go of its last connection can't be told of anything any more; it gets a moment to come back.
    func lastConnectionClosed(_ peer: ConnectionGuard.Peer) {
        loop.cancel(graces[peer])
        graces[peer] = loop.schedule(afterMilliseconds: Self.connectionGrace) { [weak self] in
            self?.graces[peer] = nil
            guard let self else { return }
            connections.update()
            if connections.peer(pid: peer.pid) != peer { processNames[peer] = nil }
            let isOfUser = graces.contains { $0.key.uid == peer.uid }
            if !isOfUser, !connections.isConnected(uid: peer.uid) { permission.left(uid: peer.uid) }
            guard let startTime = peer.startTime, connections.peer(pid: peer.pid)?.startTime != startTime else {
                return
            }
            locks.holderEnded(pid: peer.pid, startTime: startTime, cause: .connectionLost)
            permission.waiterEnded(pid: peer.pid, startTime: startTime)
            sources.ended(pid: peer.pid, startTime: startTime)
            movies.ownerEnded(pid: peer.pid, startTime: startTime)
            photos.ownerEnded(pid: peer.pid, startTime: startTime)
            sessions.holderEnded(pid: peer.pid, startTime: startTime)
        }
    }

    // Those who hold something since before this coordinator's time have as long to come back, from now on.
    func awaitHolders() {
        for holder in Set(locks.inheritedHolders + sessions.inheritedOwners + sources.inheritedOwners) {
            lastConnectionClosed(.init(uid: holder.uid, pid: holder.pid, startTime: holder.startTime))
        }
        for uid in permission.book.onceUsers {
            loop.schedule(afterMilliseconds: Self.connectionGrace) { [weak self] in
                guard let self else { return }
                connections.update()
                if !connections.isConnected(uid: uid) { permission.left(uid: uid) }
            }
        }
        loop.schedule(afterMilliseconds: Self.workerGrace) { [weak self] in self?.keeper.settleInherited() }
    }
}
