import BusProtocol
import BusServer
import CaptureCore
import JSON
import Logging

/// Sessions of users who may not have their cameras: those that were started wait until somebody allows it, and those that run end when
/// it is taken back.
extension SessionRegistry {
    /// Somebody may do what he could not, or the other way round; or other devices are there.
    func permissionChanged() {
        for (_, entry) in entries.sorted(by: { $0.key < $1.key }) where entry.session.run.isWanted {
            guard let error = refusal(entry.session) else {
                go(entry)
                // Of what it can do without there may be more now, or less.
                for input in entry.session.inputs where entry.session.isReplaceable(input.device) {
                    review(input.device)
                    judge(entry)
                }
                continue
            }
            if entry.session.run.state == .waitingForAuthorization {
                refuse(entry, error)
            } else {
                end(
                    entry,
                    BusError(
                        .unauthorized, "The permission to use the session's devices was taken back; ask for it again.",
                        ["status": "denied", "needed": error.data["needed"] ?? "video"]))
            }
        }
    }

    /// One of the coordinator before this one, which had it wait, goes on waiting: no device is opened for it meanwhile.
    func inheritWaiting(_ entry: Entry) {
        guard !entry.session.run.hasStarted, let error = refusal(entry.session),
            entry.session.run.waitForAuthorization()
        else { return }
        refuse(entry, error)
    }

    func go(_ entry: Entry) {
        guard entry.session.run.state == .waitingForAuthorization else { return }
        do throws(BusError) {
            // Others may have taken meanwhile what there was room for when it was started.
            try checkBandwidth(entry.session)
        } catch {
            return end(entry, error)
        }
        _ = entry.session.run.authorized()
        entry.error = nil
        update(entry, [])
        reviewAll(entry)
        if entry.session.inputs.isEmpty { update(entry, entry.session.run.serve()) }
    }

    /// A session that waits is told whether somebody has said no.
    func refuse(_ entry: Entry, _ error: BusError) {
        // Until then it is no error to wait.
        let isDecided = error.data["status"] != .string(AuthorizationStatus.notDetermined.rawValue)
        let before = entry.error
        entry.error = isDecided ? error : nil
        let isNew = isDecided && before != error
        update(entry, isNew ? [.runtimeError(error)] : [])
        settle(entry)
    }

    private func end(_ entry: Entry, _ error: BusError) {
        // Before those who wait for an answer get one.
        entry.error = error
        halt(entry, also: [.runtimeError(error)])
    }
}

extension Coordinator {
    /// Why a session's user may not have its devices; nil: it may. A session without any has nothing that it may not.
    func refusal(_ session: CaptureSession) -> BusError? {
        let (media, needed) = (session.media, session.neededMedia)
        let owner = session.owner
        let denied = AuthorizationMedia.allCases.filter {
            media.contains($0) && !permission.mayChange(uid: owner.uid, gid: owner.gid, $0)
        }
        // Of nothing there is no session.
        return denied.first { needed.contains($0) || denied.count == media.count }.map {
            permission.refusal(uid: owner.uid, gid: owner.gid, $0)
        }
    }

    /// Whether an input of a session is to be had for it: not what its user may not have, and it can do without.
    func mayHave(_ device: String, of session: CaptureSession) -> Bool {
        guard session.isReplaceable(device), let medium = session.input(device)?.medium else { return true }
        return permission.mayChange(uid: session.owner.uid, gid: session.owner.gid, medium)
    }

    /// Lets the caller have sessions: who may change cameras, or microphones, and who may still ask for it. Others are refused.
    ///
    /// - Throws: `unauthorized` {status, needed}.
    func checkMaySession(_ caller: Caller) throws(BusError) {
        guard may(caller, .video) || may(caller, .audio) else { throw permission.refusal(caller, .video) }
    }

    /// Lets the caller have this session, with all of its inputs; of one without any he has to have cameras.
    ///
    /// - Throws: `unauthorized` {status, needed}.
    func checkMaySession(_ caller: Caller, _ session: CaptureSession) throws(BusError) {
        let media: Set<AuthorizationMedia> = session.media.isEmpty ? [.video] : session.neededMedia
        for medium in AuthorizationMedia.allCases where media.contains(medium) && !may(caller, medium) {
            throw permission.refusal(caller, medium)
        }
    }

    private func may(_ caller: Caller, _ medium: AuthorizationMedia) -> Bool {
        permission.authorization(of: caller, medium) == .notDetermined
            || permission.mayChange(uid: caller.peer.uid, gid: caller.peer.gid, medium)
    }

    /// The bus asks for a caller who wants devices that nobody has allowed it yet.
    func askFor(_ caller: Caller, _ session: CaptureSession) {
        let peer = caller.peer
        let media = session.media
        for medium in AuthorizationMedia.allCases
        where media.contains(medium) && permission.authorization(of: caller, medium) == .notDetermined {
            permission.tried(uid: peer.uid, gid: peer.gid, pid: peer.pid, medium, program: programName(caller))
        }
    }
}
