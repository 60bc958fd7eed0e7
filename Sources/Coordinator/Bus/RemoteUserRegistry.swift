import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO

/// Users on other machines, for whom gateways pass requests on (`for`).
final class RemoteUserRegistry {
    private let permission: AuthorizationService
    /// The names behind the users' numbers.
    private var names = BoundedDictionary<UInt32, String>(limit: 4096)

    init(_ permission: AuthorizationService) { self.permission = permission }

    /// Whose request it is: its sender's, or that of a remote user for whom a gateway asks. The remote user has a uid
    /// of its own (``RemoteUser``) in the gateway's process; everything that it holds ends with that process.
    ///
    /// - Throws: `unauthorized` for a sender that is no gateway.
    func asker(_ sender: Caller, _ request: Request) throws(BusError) -> Caller {
        guard !RemoteUser.uids.contains(sender.peer.uid) else {
            throw BusError(
                .unauthorized,
                "User ids from \(RemoteUser.uids.lowerBound) on are reserved for clients on other machines; run the "
                    + "program as another user.",
                ["status": "restricted", "needed": "gateway"])
        }
        guard let principal = request.onBehalfOf else { return sender }
        guard permission.isGateway(sender) else {
            throw BusError(
                .unauthorized,
                "Only a gateway may send requests for another user ('for'): see permission.gateway in camerabus.toml.",
                ["status": "denied", "needed": "gateway"])
        }
        let uid = RemoteUser.uid(named: principal.name)
        if let other = names[uid], other != principal.name {
            throw BusError(
                .unauthorized,
                "The keys '\(principal.name)' and '\(other)' get the same user id; rename one of them.",
                ["status": "restricted", "needed": "gateway"])
        }
        guard permission.setRemote(uid: uid, AuthorizationRole(principal.role)) else {
            throw BusError(
                .limitExceeded, "Too many clients on other machines have used this bus since it started.",
                ["limit": "remotes"])
        }
        names[uid] = principal.name
        let peer = PeerAddress(uid: uid, gid: sender.peer.gid, pid: sender.peer.pid)
        let connection = sender.connection + [0] + Array(principal.name.utf8)
        return Caller(peer: peer, connection: connection, remote: principal.name)
    }

    /// Refuses what is not possible, or not allowed, from another machine.
    ///
    /// - Throws: `pathNotAllowed` for a path of this one; `unauthorized` for sources, whose frames come over a Unix
    ///     socket.
    func checkPlace(_ method: Method, _ caller: Caller, _ params: JSONValue) throws(BusError) {
        guard caller.remote != nil else { return }
        if params["path"] != nil {
            throw BusError(
                .pathNotAllowed,
                "A client on another machine can't choose a path; leave it out: then the file is stored in the "
                    + "library.",
                ["roots": []])
        }
        if method.feature == .sources {
            throw BusError(
                .unauthorized,
                "Only clients on the bus's machine can publish frames of their own; run the program there.",
                ["status": "restricted", "needed": "local"])
        }
    }
}
