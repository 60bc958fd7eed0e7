import BusServer
import CaptureCore
import LinuxIO

/// Ends what clients hold that have left the bus: at once on request, or some time after they closed their last
/// connection.
final class ClientDepartures {
    private let loop: Loop
    private let connections: ConnectionGuard
    private let clients: ClientRegistry
    private let store: RestartStore
    private let permission: AuthorizationService
    private let locks: LockService
    private let sources: SourceRegistry
    private let movies: MovieRegistry
    private let photos: PhotoService
    private let sessions: SessionRegistry
    /// When processes without a connection lose what they hold.
    private var graces: [ConnectionGuard.Peer: Loop.Token] = [:]

    /// How long a process without a connection keeps what it holds, milliseconds.
    private static let connectionGrace: Int64 = 5000
    /// How long a worker without a coordinator lives at most, with time to spare, milliseconds.
    private static let workerGrace: Int64 = 60_000

    init(
        _ loop: Loop, _ connections: ConnectionGuard, _ clients: ClientRegistry, _ store: RestartStore,
        _ permission: AuthorizationService, _ locks: LockService, _ sources: SourceRegistry, _ movies: MovieRegistry,
        _ photos: PhotoService, _ sessions: SessionRegistry
    ) {
        self.loop = loop
        self.connections = connections
        self.clients = clients
        self.store = store
        self.permission = permission
        self.locks = locks
        self.sources = sources
        self.movies = movies
        self.photos = photos
        self.sessions = sessions
        connections.onLastConnectionClosed = { [weak self] in self?.lastConnectionClosed($0) }
    }

    /// Processes that hold something since before this coordinator started have the same time to connect again, from
    /// now on.
    func awaitHolders() {
        for holder in Set(locks.inheritedHolders + sessions.inheritedOwners + sources.inheritedOwners) {
            awaitReturn(of: holder)
        }
        for uid in permission.table.onceUsers {
            loop.schedule(afterMilliseconds: Self.connectionGrace) { [weak self] in
                guard let self else { return }
                connections.update()
                if !connections.isConnected(uid: uid) { permission.left(uid: uid) }
            }
        }
        loop.schedule(afterMilliseconds: Self.workerGrace) { [weak self] in self?.store.settleInherited() }
    }

    /// A process whose lock, session, source or movie was taken over has to connect again.
    func awaitReturn(of holder: LockHolder) {
        lastConnectionClosed(.init(uid: holder.uid, pid: holder.pid, startTime: holder.startTime))
    }

    // A process without a connection receives nothing any more. It gets some time to connect again.
    private func lastConnectionClosed(_ peer: ConnectionGuard.Peer) {
        loop.cancel(graces[peer])
        graces[peer] = loop.schedule(afterMilliseconds: Self.connectionGrace) { [weak self] in
            self?.graces[peer] = nil
            self?.graceEnded(peer)
        }
    }

    private func graceEnded(_ peer: ConnectionGuard.Peer) {
        connections.update()
        if connections.peer(pid: peer.pid) != peer { clients.forget(peer) }
        let isOfUser = graces.contains { $0.key.uid == peer.uid }
        if !isOfUser, !connections.isConnected(uid: peer.uid) { permission.left(uid: peer.uid) }
        guard let startTime = peer.startTime, connections.peer(pid: peer.pid)?.startTime != startTime else { return }
        locks.holderEnded(pid: peer.pid, startTime: startTime, cause: .connectionLost)
        permission.waiterEnded(pid: peer.pid, startTime: startTime)
        sources.ended(pid: peer.pid, startTime: startTime)
        movies.ownerEnded(pid: peer.pid, startTime: startTime)
        photos.ownerEnded(pid: peer.pid, startTime: startTime)
        sessions.holderEnded(pid: peer.pid, startTime: startTime)
    }

    /// The client gives up everything that it holds.
    ///
    /// - Parameter isRemote: it is on another machine, so others may hold something in the same process.
    func left(_ holder: LockHolder, isRemote: Bool) {
        let (pid, startTime, uid) = (holder.pid, holder.startTime, holder.uid)
        locks.holderEnded(pid: pid, startTime: startTime, uid: uid, cause: .connectionLost)
        if !isRemote, let startTime {
            permission.waiterEnded(pid: pid, startTime: startTime)
            sources.ended(pid: pid, startTime: startTime)
        }
        movies.ownerEnded(pid: pid, startTime: startTime, uid: uid)
        photos.ownerEnded(pid: pid, startTime: startTime, uid: uid)
        sessions.holderEnded(pid: pid, startTime: startTime, uid: uid)
    }
}
