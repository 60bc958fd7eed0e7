import BusProtocol
import CaptureCore
import JSON

/// What sessions prefer for the steadiness of pictures: one control of the device, for all that it serves.
extension SessionDesk {
    /// Has a device's stabilization on for the sessions that prefer it, and off again when none does any more. It is not held against
    /// a client that sets the control itself meanwhile; nor does a session wait for it.
    ///
    /// - Parameters:
    ///   - isPreferred: by a session that is served.
    ///   - lock: the sessions' own, if it has been given to them.
    func stabilize(_ stage: SessionStage, _ isPreferred: Bool, lock: Lock?) {
        if !isPreferred {
            stage.prefersStabilization = false
            stabilization.turnOff(stage.device, lock: lock)
        } else if !stage.prefersStabilization {
            stage.prefersStabilization = stabilization.turnOn(stage.device, lock: lock)
        }
    }

    func makeStabilizationDesk(_ books: BookKeeper) -> StabilizationDesk {
        StabilizationDesk(
            loop, books, logger: logger, worker: { [fleet] in fleet.workers[$0] },
            workerOf: { [fleet] in fleet.worker(of: $0) },
            isHeld: { [weak self] in self?.held($0) != nil },
            carryOut: { [weak self] change, device, lock, body in self?.carryOut(change, of: device, lock, then: body)
            },
            whenDone: { [weak self] device, isOpen in
                guard let self else { return }
                if isOpen, let stage = stages[device] {
                    stage.prefersStabilization = stabilization.isOwed(device)
                }
                review(device)
            })
    }

    /// A client has set devices: where no session prefers anything for their stabilization, that is as it is to be.
    func controlsSet(_ changes: [(device: String, change: JSONValue, path: String)]) {
        for (device, change, _) in changes where stages[device]?.prefersStabilization != true {
            let names = change["controls"]?.object?.keys.contains { Self.stabilizationNames.contains($0) } ?? false
            if names { stabilization.forget(device) }
        }
    }

    private static let stabilizationNames: Set<String> = ["videoStabilizationMode", "image_stabilization"]
}
