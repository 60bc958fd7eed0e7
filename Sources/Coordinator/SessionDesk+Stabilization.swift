import BusProtocol
import CaptureCore
import JSON
import Logging

/// What sessions prefer for the steadiness of pictures: one control of the device, for all that it serves.
extension SessionDesk {
    /// Turns a device's stabilization on for the sessions that prefer it, and off again when none does any more. It is not held against
    /// a client that sets the control itself meanwhile; nor does a session wait for it.
    ///
    /// - Parameters:
    ///   - isPreferred: by a session that is served.
    ///   - lock: the sessions' own, if it has been given to them.
    func stabilize(_ stage: SessionStage, _ isPreferred: Bool, lock: Lock?) {
        let device = stage.device
        guard stage.stabilizes != isPreferred, let worker = fleet.workers[device] else { return }
        let word = isPreferred ? "standard" : "off"
        guard worker.status["supports"]?["videoStabilizationMode"]?.array?.contains(.string(word)) ?? false,
            // Another who has locked the device decides; it is looked at again when that has ended.
            lock != nil || held(device) == nil
        else { return }
        // One that was on before the sessions came is on when they have gone.
        guard worker.stabilization != word else {
            stage.stabilizes = false
            return
        }
        stage.stabilizes = isPreferred
        let change: JSONValue = [
            "device": .string(device), "controls": ["videoStabilizationMode": .string(word)],
        ]
        carryOut(change, of: device, lock) { [weak self] result in
            guard let self, case .failure(let error) = result else { return }
            logger.notice(
                "stabilization can't be set for sessions",
                metadata: ["device": "\(device)", "error": "\(error.message)"])
        }
    }
}
