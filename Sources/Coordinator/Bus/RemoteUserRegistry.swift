import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO

/// Requests for somebody on another machine, which a gateway passes on (`for`).
extension Coordinator {
    /// Whose request it is: its sender's, or that of somebody for whom a gateway asks. The latter is a user of its own
    /// (``RemoteUser``) in the gateway's process, with whose end all ends that it has.
    ///
    /// - Throws: `unauthorized` for who is no gateway.
    func asker(_ sender: Caller, _ request: Request) throws(BusError) -> Caller {
        guard !RemoteUser.uids.contains(sender.peer.uid) else {
            throw BusError(
                .unauthorized,
                "Users from \(RemoteUser.uids.lowerBound) on stand for clients on other machines; no local one may be such a user.",
                ["status": "restricted", "needed": "gateway"])
        }
        guard let principal = request.onBehalfOf else { return sender }
        guard permission.isGateway(sender) else {
            throw BusError(
                .unauthorized,
                "Only a gateway may ask for somebody else ('for'): see permission.gateway in camerabus.toml.",
                ["status": "denied", "needed": "gateway"])
        }
        let uid = RemoteUser.uid(named: principal.name)
        if let other = remoteNames[uid], other != principal.name {
            throw BusError(
                .unauthorized,
                "The names '\(principal.name)' and '\(other)' have the same number; rename one of these keys.",
                ["status": "restricted", "needed": "gateway"])
        }
        guard permission.setRemote(uid: uid, principal.role.authorization) else {
            throw BusError(
                .limitExceeded, "The bus knows of too many clients on other machines.", ["limit": "remotes"])
        }
        remoteNames[uid] = principal.name
        let peer = PeerAddress(uid: uid, gid: sender.peer.gid, pid: sender.peer.pid)
        let connection = sender.connection + [0] + Array(principal.name.utf8)
        return Caller(peer: peer, connection: connection, remote: principal.name)
    }

    /// Refuses what can't be had, or must not be, from another machine.
    ///
    /// - Throws: `pathNotAllowed` for a path of this one; `unauthorized` for sources, whose frames come over a Unix socket.
    func checkPlace(_ method: Method, _ caller: Caller, _ params: JSONValue) throws(BusError) {
        guard caller.remote != nil else { return }
        if params["path"] != nil {
            throw BusError(
                .pathNotAllowed,
                "From another machine nothing is written to a path; leave it out, and the file is in the library.",
                ["roots": []])
        }
        if method.feature == .sources {
            throw BusError(
                .unauthorized,
                "Frames of a client's own come over a Unix socket; run the program on the bus's machine.",
                ["status": "restricted", "needed": "local"])
        }
    }

    /// How long a lock lasts for which no lease is asked; nil: as long as its holder's process.
    func lease(of caller: Caller) -> Int64? { caller.remote == nil ? nil : LockService.leaseOfUnknownProcess }

    /// `bus.leave`
    func leave(_ call: Call, _ respond: @escaping Responder) {
        let holder = holder(call.caller)
        let (pid, startTime, uid) = (holder.pid, holder.startTime, holder.uid)
        // Who is on another machine is a user of its own, also where its gateway's process can't be seen; of a local one it isn't known whose
        // it is then.
        if call.caller.remote != nil || startTime != nil {
            locks.holderEnded(pid: pid, startTime: startTime, uid: uid, cause: .connectionLost)
            if call.caller.remote == nil, let startTime {
                permission.waiterEnded(pid: pid, startTime: startTime)
                sources.ended(pid: pid, startTime: startTime)
            }
            movies.ownerEnded(pid: pid, startTime: startTime, uid: uid)
            photos.ownerEnded(pid: pid, startTime: startTime, uid: uid)
            sessions.holderEnded(pid: pid, startTime: startTime, uid: uid)
        }
        respond(.success([:]))
    }
}

extension Request.Principal.Role {
    fileprivate var authorization: AuthorizationRole {
        switch self {
        case .view: .view
        case .control: .control
        case .admin: .admin
        case .nobody: .none
        }
    }
}
