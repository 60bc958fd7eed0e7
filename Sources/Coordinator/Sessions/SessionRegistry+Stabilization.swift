import BusProtocol
import CaptureCore
import JSON

/// Video stabilization that sessions prefer: one control of the device, for all that it serves.
extension SessionRegistry {
    /// Has a device's stabilization on for the sessions that prefer it, and off again when none does any more. It is
    /// not held against a client that sets the control itself meanwhile; nor does a session wait for it.
    ///
    /// - Parameters:
    ///   - isPreferred: by a session that is served.
    ///   - lock: the sessions' own, if it has been given to them.
    func stabilize(_ stage: SessionStage, _ isPreferred: Bool, lock: Lock?) {
        if !isPreferred {
            stage.prefersStabilization = false
            if !isNeeded(.stabilization, stage.device) { stabilization.turnOff(stage.device, lock: lock) }
        } else if !stage.prefersStabilization {
            stage.prefersStabilization = stabilization.turnOn(stage.device, lock: lock)
        }
    }

    /// A client has set devices: stabilization without a session that prefers it, and focus, stay as the client has set
    /// them.
    func controlsSet(_ changes: [(device: String, change: JSONValue, path: String)]) {
        for (device, change, _) in changes {
            for automatic in [stabilization, smoothFocus] {
                let isSet = change["controls"]?.object?.keys.contains { automatic.control.names.contains($0) } ?? false
                if isSet, automatic.control != .stabilization || stages[device]?.prefersStabilization != true {
                    automatic.forget(device)
                }
            }
        }
    }

    /// Turns off what was turned on for movies, when none of them is made any more.
    func releaseControls(_ device: String) {
        guard isSettled, !hasEnded else { return }
        if smoothFocus.isOwed(device), !isNeeded(.smoothFocus, device) { smoothFocus.turnOff(device, lock: nil) }
    }

    /// Whether a movie needs a control turned on.
    private func isNeeded(_ control: AutomaticControl, _ device: String) -> Bool {
        movies?.isNeeded(control, device) ?? false
    }
}

extension SessionRegistry: AutomaticControlOwner {
    func automaticControlChanged(_ control: AutomaticControl, _ device: String, isOpen: Bool) {
        guard control == .stabilization else { return releaseControls(device) }
        if isOpen, let stage = stages[device] { stage.prefersStabilization = stabilization.isOwed(device) }
        review(device)
    }
}
