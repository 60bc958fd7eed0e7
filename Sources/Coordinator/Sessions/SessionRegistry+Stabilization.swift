import BusProtocol
import CaptureCore
import JSON

/// What sessions prefer for the steadiness of pictures: one control of the device, for all that it serves.
extension SessionRegistry {
    /// Has a device's stabilization on for the sessions that prefer it, and off again when none does any more. It is not held against
    /// a client that sets the control itself meanwhile; nor does a session wait for it.
    ///
    /// - Parameters:
    ///   - isPreferred: by a session that is served.
    ///   - lock: the sessions' own, if it has been given to them.
    func stabilize(_ stage: SessionStage, _ isPreferred: Bool, lock: Lock?) {
        if !isPreferred {
            stage.prefersStabilization = false
            if !isLent(.stabilization, stage.device) { stabilization.turnOff(stage.device, lock: lock) }
        } else if !stage.prefersStabilization {
            stage.prefersStabilization = stabilization.turnOn(stage.device, lock: lock)
        }
    }

    func makeLoanDesk(_ loan: ControlLoan, _ books: DeviceStore) -> ControlLoanDesk {
        ControlLoanDesk(
            loan, loop, books, logger: logger, worker: { [fleet] in fleet.workers[$0] },
            workerOf: { [fleet] in fleet.worker(of: $0) },
            isHeld: { [weak self] in self?.held($0) != nil },
            carryOut: { [weak self] change, device, lock, body in self?.carryOut(change, of: device, lock, then: body)
            },
            whenDone: { [weak self] device, isOpen in
                guard let self else { return }
                guard loan == .stabilization else { return returnLoans(device) }
                if isOpen, let stage = stages[device] {
                    stage.prefersStabilization = stabilization.isOwed(device)
                }
                review(device)
            })
    }

    /// A client has set devices: where no session prefers anything for their stabilization, that is as it is to be, and so is their focus.
    func controlsSet(_ changes: [(device: String, change: JSONValue, path: String)]) {
        for (device, change, _) in changes {
            for desk in [stabilization, smoothFocus] {
                let isSet = change["controls"]?.object?.keys.contains { desk.loan.names.contains($0) } ?? false
                if isSet, desk.loan != .stabilization || stages[device]?.prefersStabilization != true {
                    desk.forget(device)
                }
            }
        }
    }

    /// Has a device as it was before the movies that it was set for, when none of them is made any more.
    func returnLoans(_ device: String) {
        guard isSettled, !hasEnded else { return }
        if smoothFocus.isOwed(device), !isLent(.smoothFocus, device) { smoothFocus.turnOff(device, lock: nil) }
    }
}
