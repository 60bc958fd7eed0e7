import BusProtocol
import BusServer
import CaptureCore
import JSON

/// Switches a session's camera. The other camera is tried first, so that nothing is lost if it can't be used.
extension SessionRegistry {
    /// How long another camera is tried at most, milliseconds.
    private static let trialPatience: Int64 = 10_000

    /// Tries another camera while the present one runs, and then switches. The completion gets the error, if any.
    ///
    /// - Parameter session: the session with the other camera.
    func tryOut(
        _ entry: Entry, _ session: CaptureSession, _ device: String, _ completion: @escaping (BusError?) -> Void
    ) {
        let timer = loop.schedule(afterMilliseconds: Self.trialPatience) { [weak self, weak entry] in
            guard let entry else { return }
            let message = "\(entry.trial?.device ?? device) could not be made ready in time."
            self?.endTrial(entry, BusError(.deviceBusy, message, ["holder": .null, "queue": 0]))
        }
        entry.trial = Trial(session: session, device: device, timer: timer, completion: completion)
        review(device)
    }

    func judgeTrial(_ entry: Entry) {
        guard let trial = entry.trial else { return }
        switch trial.place {
        case .pending, .heard: break
        case .denied(let interruption): endTrial(entry, refusal(interruption, trial.device))
        case .served(let delivery):
            let before = entry.session
            loop.cancel(trial.timer)
            entry.trial = nil
            var session = trial.session
            session.run = entry.session.run
            entry.session = session
            guard save() else {
                entry.session = before
                review(trial.device)
                return trial.completion(
                    BusError(.internalError, "The session could not be written to the disk; see the coordinator's log.")
                )
            }
            // Its microphones are what they were.
            entry.places = entry.places.filter { session.input($0.key) != nil }
            entry.places[trial.device] = .served(delivery)
            judge(entry)
            for input in before.inputs { review(input.device) }
            trial.completion(nil)
        }
    }

    /// Gives up the other camera. The session keeps its present one, which the error names.
    func endTrial(_ entry: Entry, _ error: BusError) {
        guard let trial = entry.trial else { return }
        var error = error
        if let kept = entry.session.camera?.device, error.reason != .cancelled {
            error.message += " The session keeps \(kept)."
            error.data["active"] = .string(kept)
        }
        loop.cancel(trial.timer)
        entry.trial = nil
        // Later: that device may be being decided now.
        loop.schedule(at: 0) { [weak self] in self?.review(trial.device) }
        trial.completion(error)
    }

    private func refusal(_ interruption: SessionInterruption, _ device: String) -> BusError {
        let data: [String: JSONValue] = ["device": .string(device), "by": interruption.by]
        let message = "\(interruption.cause)."
        switch interruption.reason {
        case .deviceDisconnected: return BusError(.deviceDisconnected, message, data)
        case .deviceInUseByForeignProcess, .audioDeviceInUseByAnotherClient:
            return BusError(.deviceInUse, message, data)
        case .videoDeviceNotAvailableDueToSystemPressure:
            return BusError(
                .interrupted, message,
                data.merging(["interruption": .string(interruption.reason.rawValue)]) { own, _ in own })
        default:
            let holder = interruption.by["holder"] ?? .null
            return BusError(
                .deviceBusy, message, data.merging(["holder": holder, "queue": 0]) { own, _ in own })
        }
    }
}
