import BusProtocol
import BusServer
import CaptureCore
import JSON
import Logging

/// Sessions of users without permission for their devices: a session that was started waits for permission, and a
/// session that runs ends when permission is revoked.
extension SessionRegistry {
    /// Permission or devices have changed.
    func permissionChanged() {
        for (_, entry) in entries.sorted(by: { $0.key < $1.key }) where entry.session.run.isWanted {
            guard let error = access.refusal(entry.session) else {
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
                        .unauthorized, "The permission to use the session's devices was revoked; request it again.",
                        ["status": "denied", "needed": error.data["needed"] ?? "video"]))
            }
        }
    }

    /// A session that waited under the coordinator before this one keeps waiting. No device is opened for it.
    func inheritWaiting(_ entry: Entry) {
        guard !entry.session.run.hasStarted, let error = access.refusal(entry.session),
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

    /// Sets the error of a session that waits, if permission was denied.
    func refuse(_ entry: Entry, _ error: BusError) {
        // Without a decision it is no error to wait.
        let isDecided = error.data["status"] != .string(AuthorizationStatus.notDetermined.rawValue)
        let before = entry.error
        entry.error = isDecided ? error : nil
        let isNew = isDecided && before != error
        update(entry, isNew ? [.runtimeError(error)] : [])
        settle(entry)
    }

    private func end(_ entry: Entry, _ error: BusError) {
        // Before the replies that wait are sent.
        entry.error = error
        halt(entry, also: [.runtimeError(error)])
    }
}
