import BusProtocol
import CaptureCore

/// Decides which callers may have which session.
final class SessionAccess {
    private let permission: AuthorizationService
    private let clients: ClientRegistry

    init(_ permission: AuthorizationService, _ clients: ClientRegistry) {
        self.permission = permission
        self.clients = clients
    }

    /// Why a session's user may not have its devices, {status, needed}; nil: it may. A session without devices needs no
    /// permission.
    func refusal(_ session: CaptureSession) -> BusError? {
        let (media, needed) = (session.media, session.neededMedia)
        let owner = session.owner
        let denied = AuthorizationMedia.allCases.filter {
            media.contains($0) && !permission.mayChange(uid: owner.uid, gid: owner.gid, $0)
        }
        // Without any permitted device there is no session.
        return denied.first { needed.contains($0) || denied.count == media.count }.map {
            permission.refusal(uid: owner.uid, gid: owner.gid, $0)
        }
    }

    /// Whether a session gets this input. It does not when its user has no permission for it and the session can do
    /// without it.
    func mayHave(_ device: String, _ session: CaptureSession) -> Bool {
        guard session.isReplaceable(device), let medium = session.input(device)?.medium else { return true }
        return permission.mayChange(uid: session.owner.uid, gid: session.owner.gid, medium)
    }

    /// Admits callers with permission to change cameras or microphones, or whose permission is not determined yet.
    ///
    /// - Throws: `unauthorized` {status, needed}.
    func check(_ caller: Caller) throws(BusError) {
        guard may(caller, .video) || may(caller, .audio) else { throw permission.refusal(caller, .video) }
    }

    /// Lets the caller have this session with all of its inputs. One without inputs needs permission for cameras.
    ///
    /// - Throws: `unauthorized` {status, needed}.
    func check(_ caller: Caller, _ session: CaptureSession) throws(BusError) {
        let media: Set<AuthorizationMedia> = session.media.isEmpty ? [.video] : session.neededMedia
        for medium in AuthorizationMedia.allCases where media.contains(medium) && !may(caller, medium) {
            throw permission.refusal(caller, medium)
        }
    }

    /// Lets administrators alone raise a session's priority above 0.
    ///
    /// - Throws: `unauthorized` {status, needed}.
    func checkPriority(_ caller: Caller, _ session: CaptureSession, _ actions: [SessionAction]) throws(BusError) {
        for case .priority(let priority) in actions {
            try session.check(permission.editor(caller), priority: priority)
        }
    }

    private func may(_ caller: Caller, _ medium: AuthorizationMedia) -> Bool {
        permission.authorization(of: caller, medium) == .notDetermined
            || permission.mayChange(uid: caller.peer.uid, gid: caller.peer.gid, medium)
    }

    /// Asks the administrators for the caller, where nobody has decided about the session's devices yet.
    func ask(_ caller: Caller, _ session: CaptureSession) {
        let peer = caller.peer
        let media = session.media
        for medium in AuthorizationMedia.allCases
        where media.contains(medium) && permission.authorization(of: caller, medium) == .notDetermined {
            permission.tried(uid: peer.uid, gid: peer.gid, pid: peer.pid, medium, program: clients.programName(caller))
        }
    }
}
