import BusProtocol
import BusServer
import CaptureCore
import JSON
import Logging

/// Sets devices as decided, under the right lock.
extension SessionRegistry {
    /// How long a change waits for another client's lock for one call, nanoseconds.
    private static let lockPatience: Int64 = 10_000_000_000

    func apply(_ wish: StreamSetting, _ stage: SessionStage, lock: Lock?, _ claims: [Claim]) {
        stage.isApplying = true
        let device = stage.device
        let ahead = locks.table.waiters(on: device).first { !$0.isTransient }
        let formats = workers[device]?.formats ?? []
        let change = JSONValue.members([
            "device": .string(device), "activeFormat": wish.format.request(id: wish.formatID, in: formats).json,
            "frameRate": wish.frameDuration.map { FrameRateRequest.duration($0).json },
        ])
        let wait = { [weak self] (ticket: UInt64) in
            // For a call that is under way it is waited without a word.
            guard let self, let ahead else { return }
            stage.ticket = ticket
            // Sessions that have its pictures keep them until the change is made.
            for claim in claims {
                if case .served = claim.place(on: device) { continue }
                put(claim, device, .denied(promised(device, to: ahead.holder)))
            }
        }
        carryOut(change, of: device, lock, isStandIn: stage.given != nil, onWait: wait) { [weak self] in
            self?.applied(wish, stage, $0)
        }
    }

    private func promised(_ device: String, to holder: LockHolder) -> SessionInterruption {
        SessionInterruption(
            .videoDeviceInUseByAnotherClient, device: device, by: ["holder": holder.json],
            cause: "\(device) needs another setting, and \(holder.name) waits for its lock and came first")
    }

    func carryOut(_ change: JSONValue, of device: String, _ lock: Lock?, then body: @escaping Responder) {
        carryOut(change, of: device, lock, isStandIn: false, onWait: { _ in }, then: body)
    }

    /// Changes a device.
    ///
    /// - Parameters:
    ///   - lock: the one that it is done under; nil: one for just this, for which it waits.
    ///   - isStandIn: its format stands in for what there is no room for.
    ///   - onWait: gets the ticket with which it waits, if it has to.
    func carryOut(
        _ change: JSONValue, of device: String, _ lock: Lock?, isStandIn: Bool,
        onWait: (_ ticket: UInt64) -> Void, then body: @escaping Responder
    ) {
        var batch = ConfigurationService.Batch(
            changes: [(device, change, "")], mode: .exact, isDryRun: false, fence: 0, isStandIn: isStandIn)
        if let lock {
            batch.fence = lock.fence
            return configurations.carryOut(batch, body)
        }
        locks.withTransientLock(
            on: [device], for: .ourselves, wait: Self.lockPatience, onWait: onWait, then: body
        ) { [configurations, batch] fence, done in
            var batch = batch
            batch.fence = fence
            configurations.carryOut(batch, done)
        }
    }

    private func applied(_ wish: StreamSetting, _ stage: SessionStage, _ result: Result<JSONValue, BusError>) {
        let isWithdrawn = stage.isWithdrawn
        stage.isApplying = false
        stage.isDirty = false
        stage.ticket = nil
        stage.isWithdrawn = false
        guard stages[stage.device] === stage else { return }
        // Of what was given up nothing is to be learned.
        if isWithdrawn, case .failure = result { return review(stage.device) }
        switch result {
        case .success:
            stage.applied = .init(wish: wish, result: workers[stage.device]?.setting)
            stage.succeeded()
        case .failure(let error) where error.mayPass: retry(stage, error)
        case .failure(let error):
            logger.warning("a device can't be set for its sessions", metadata: ["error": "\(error.message)"])
            for claim in claims(on: stage.device) {
                guard case .satisfied? = stage.decision?.outcome(of: CaptureParty(.session, id: claim.session.id))
                else { continue }
                fail(claim, stage.device, error, stops: true)
            }
        }
        review(stage.device)
    }

    // A driver may accept later what it refuses now. There is no notification for that.
    func retry(_ stage: SessionStage, _ obstacle: BusError) {
        stage.obstacle = obstacle
        loop.cancel(stage.retry)
        stage.retry = loop.schedule(afterMilliseconds: stage.backOff()) { [weak self, weak stage] in
            guard let self, let stage else { return }
            stage.retry = nil
            stage.obstacle = nil
            review(stage.device)
        }
    }
}
