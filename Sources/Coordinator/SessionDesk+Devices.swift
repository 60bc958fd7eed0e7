import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO
import Logging

/// From what sessions want to how devices are set: asked anew whenever either, or a lock, has changed.
extension SessionDesk {
    /// It is known which devices there are.
    func devicesKnown() {
        guard !isSettled else { return }
        isSettled = true
        let wanted = Set(entries.values.flatMap { $0.session.inputs.map(\.device) })
        for device in wanted.union(fleet.deviceIDs.filter(stabilization.isOwed)).sorted() { review(device) }
        for device in fleet.deviceIDs { returnLoans(device) }
    }

    /// Something of the device is otherwise, or of its lock.
    func deviceChanged(_ device: String) {
        tellCosts(beside: device)
        returnLoans(device)
        if fleet.workers[device] == nil { toldRunning[device] = nil }
        guard let stage = stages[device] else {
            if stabilization.isOwed(device) || !claims(on: device).isEmpty { review(device) }
            return
        }
        if facts(device) != stage.facts { review(device) }
    }

    /// The device's worker is a new process, or a new connection to it.
    func greeted(_ worker: Worker) {
        toldRunning[worker.device.id] = nil
        // What is known of its sessions counts until it is decided anew: no frame is to be lost for that.
        let isWanted = entries.values.contains {
            $0.session.run.isActive && $0.session.input(worker.device.id) != nil
                && mayHave(worker.device.id, $0.session)
        }
        tell(worker.device.id, isRunning: isWanted)
    }

    private func facts(_ device: String) -> SessionStage.Facts? {
        guard let worker = fleet.workers[device] else { return nil }
        return SessionStage.Facts(
            descriptions: worker.descriptions, isRunning: worker.isRunning, isConnected: worker.isConnected,
            isStreaming: worker.status["isStreaming"]?.bool ?? false, error: worker.status["error"] ?? .null,
            activeFormat: worker.status["activeFormat"] ?? .null,
            frameDuration: worker.status["frameDuration"] ?? .null,
            subscribers: worker.status["subscribers"] ?? .null, lock: held(device)?.id,
            stabilization: worker.stabilization)
    }

    /// A client's lock. One that lasts for a call is waited for.
    func held(_ device: String) -> Lock? {
        locks.table.lock(on: device).flatMap { $0.isTransient ? nil : $0 }
    }

    func tell(_ device: String, isRunning: Bool) {
        // What another coordinator told it isn't known here.
        let sessions = isRunning ? active(on: device) : []
        let told = Told(
            isRunning: isRunning, preRoll: sessions.map { $0.preRoll(of: device) }.max() ?? 0,
            watchesScene: sessions.contains { $0.watchesScene(of: device) })
        guard let worker = fleet.workers[device], worker.isRunning, toldRunning[device] != told else { return }
        toldRunning[device] = told
        worker.order(
            .session(isRunning: told.isRunning, preRoll: told.preRoll, watchesScene: told.watchesScene))
    }

    /// Sessions that are to run, and may have the device.
    private func active(on device: String) -> [CaptureSession] {
        entries.values.map(\.session).filter {
            $0.run.isActive && $0.input(device) != nil && mayHave(device, $0)
        }
    }

    // MARK: Who wants it

    /// A session that wants the device, as it is or as it is to be with another camera.
    struct Claim {
        let entry: Entry
        var isTrial = false
        /// As it is to be; nil: as it is.
        var candidate: CaptureSession?
        var session: CaptureSession { candidate ?? (isTrial ? entry.trial?.session : nil) ?? entry.session }
    }

    func claims(on device: String) -> [Claim] {
        entries.values.filter(\.session.run.isActive).compactMap { entry in
            if entry.trial?.device == device { return Claim(entry: entry, isTrial: true) }
            return entry.session.input(device) == nil || !mayHave(device, entry.session) ? nil : Claim(entry: entry)
        }.sorted { $0.entry.session.id < $1.entry.session.id }
    }

    private func place(_ claim: Claim, _ device: String) -> Place {
        (claim.isTrial ? claim.entry.trial?.place : claim.entry.places[device]) ?? .pending
    }

    /// - Returns: the sessions that are to be looked at again, as this changed something.
    func put(_ claim: Claim, _ device: String, _ place: Place) {
        if claim.isTrial {
            claim.entry.trial?.place = place
            judgeTrial(claim.entry)
        } else {
            claim.entry.places[device] = place
            judge(claim.entry)
        }
    }

    // From what has become of it on each of its devices to whether it runs.
    func judge(_ entry: Entry) {
        var isServed = true
        for input in entry.session.inputs where mayHave(input.device, entry.session) {
            switch entry.places[input.device] ?? .pending {
            case .denied(let interruption): return update(entry, entry.session.run.interrupt(interruption))
            case .pending: isServed = false
            case .served, .heard: break
            }
        }
        guard isServed else { return publish(entry.session.id) }
        entry.error = nil
        let before = entry.session.run
        update(entry, entry.session.run.serve())
        // That it was told to run is kept, so that the next coordinator doesn't tell it again.
        if entry.session.run.hasStarted != before.hasStarted { save() }
    }

    func fail(_ claim: Claim, _ device: String, _ error: BusError, stops: Bool) {
        let entry = claim.entry
        if claim.isTrial { return endTrial(entry, error) }
        entry.places[device] = .pending
        if entry.error != error || stops {
            entry.error = error
            update(entry, entry.session.run.fail(error, stops: stops))
            logger.warning(
                "session has failed",
                metadata: ["session": "\(entry.session.id)", "device": "\(device)", "error": "\(error.message)"])
        }
        guard stops else { return }
        entry.places = [:]
        save()
        for input in entry.session.inputs where input.device != device { review(input.device) }
    }

    // MARK: The decision

    /// Decides the device anew, and has it set so.
    func review(_ device: String) {
        guard isSettled, !hasEnded else { return }
        let claims = claims(on: device)
        let stage =
            stages[device] ?? SessionStage(device: device, prefersStabilization: stabilization.isOwed(device))
        guard !stage.isApplying else {
            stage.isDirty = true
            // Who was first has the lock now: what can be had beside that is decided at once.
            if let ticket = stage.ticket, held(device) != nil, locks.isWaiting(ticket) {
                stage.isWithdrawn = true
                locks.cancel(ticket)
            }
            return
        }
        guard !claims.isEmpty else {
            loop.cancel(stage.retry)
            stages[device] = nil
            stabilize(stage, false, lock: nil)
            return tell(device, isRunning: false)
        }
        stages[device] = stage
        stage.facts = facts(device)
        decide(stage, claims)
        for claim in claims { settle(claim.entry) }
    }

    private func decide(_ stage: SessionStage, _ claims: [Claim]) {
        let device = stage.device
        guard let worker = fleet.workers[device], worker.isConnected else {
            tell(device, isRunning: true)
            let message = Self.away(device, fleet.workers[device])
            return deny(claims, device, SessionInterruption(.deviceDisconnected, device: device, message: message))
        }
        guard worker.isRunning, let formats = worker.formats else {
            tell(device, isRunning: true)
            let error = worker.error
            for claim in claims {
                if worker.state == .restarting {
                    let message = "The worker of \(device) has ended and is started again; the session goes on then."
                    fail(claim, device, BusError(.workerCrashed, message, ["device": .string(device)]), stops: false)
                } else if let error, error.reason == .deviceInUse {
                    put(claim, device, .denied(inUse(device, error)))
                } else {
                    put(claim, device, .pending)
                }
            }
            return
        }
        if let state = halt(device) {
            // It is held by its worker, whoever wants it, and begins again with what is wanted then.
            tell(device, isRunning: true)
            return deny(claims, device, interruption(device, state))
        }
        if let error = stage.obstacle ?? worker.error, error.reason == .deviceInUse {
            // The worker tries again, and again.
            tell(device, isRunning: true)
            return deny(claims, device, inUse(device, error))
        }
        // It is tried again in a while; those whom it serves as it is go on.
        guard stage.obstacle == nil else { return }
        if worker.device.identity.mediaType == .audio { return arbitrateSound(stage, worker, claims) }
        if isBorrowed?(worker.device.identity.uniqueID) == true { return }
        arbitrate(stage, worker, formats, claims)
    }

    private func deny(_ claims: [Claim], _ device: String, _ interruption: SessionInterruption) {
        for claim in claims { put(claim, device, .denied(interruption)) }
    }

    private func inUse(_ device: String, _ error: BusError) -> SessionInterruption {
        SessionInterruption(
            fleet.workers[device]?.device.identity.mediaType == .audio
                ? .audioDeviceInUseByAnotherClient : .deviceInUseByForeignProcess, device: device,
            by: error.data["by"] ?? .null,
            message: "Another program has \(device); the session goes on by itself when it lets go.")
    }

    private func arbitrate(_ stage: SessionStage, _ worker: Worker, _ formats: [CaptureFormat], _ claims: [Claim]) {
        let device = stage.device
        let lock = held(device)
        let isOwnLock = lock.map { lock in claims.contains { $0.session.lockID == lock.id } } ?? false
        forgetLess(stage, worker)
        if takesMore(stage, lock: lock, isOwn: isOwnLock, claims) { return }
        let decision = decision(device, worker, formats, claims, lock, less: stage.given?.given)
        stage.decision = decision
        var served: [(Claim, Delivery)] = []
        for claim in claims {
            switch decision.outcome(of: CaptureParty(.session, id: claim.session.id)) {
            case .satisfied(let delivery):
                served.append((claim, delivery))
                let deliveries = claim.session.deliveries(of: device, delivery, position: position(device))
                claim.entry.renditions[device] = Set(deliveries.compactMap(\.rendition))
            case .interrupted(let reason, let by):
                put(claim, device, .denied(interruption(device, reason, by, decision)))
            case .unsupported(let why):
                let error = BusError(
                    .formatUnsupported, why, ["device": .string(device), "nearest": .null])
                fail(claim, device, error, stops: true)
            case nil: put(claim, device, .pending)
            }
        }
        tell(device, isRunning: !served.isEmpty)
        guard !served.isEmpty else { return }
        let isDone =
            !decision.isChange
            || (stage.applied.map { $0.wish == decision.setting && $0.result == worker.setting } ?? false)
        guard isDone, let wish = decision.setting else {
            if let wish = decision.setting { apply(wish, stage, lock: isOwnLock ? lock : nil, served.map(\.0)) }
            return
        }
        stage.succeeded()
        if stage.applied?.wish != wish { stage.applied = nil }
        let isStreaming = worker.status["isStreaming"]?.bool ?? false
        if !isStreaming, lock == nil || isOwnLock,
            takesLess(
                stage, worker, formats, deciding: { self.decision(device, worker, formats, claims, lock, less: $0) })
        {
            return arbitrate(stage, worker, formats, claims)
        }
        stabilize(
            stage, served.contains { $0.0.session.prefersStabilization(of: device) }, lock: isOwnLock ? lock : nil)
        for (claim, delivery) in served {
            // A session begins with the first stream; what restarts later on doesn't end it.
            if case .served = place(claim, device) {
                put(claim, device, .served(delivery))
            } else if isStreaming {
                put(claim, device, .served(delivery))
            } else if let error = worker.error {
                fail(claim, device, error, stops: false)
            } else {
                put(claim, device, .pending)
            }
        }
    }

    /// - Parameter less: what the device is to be set to and nothing else, as there was no room for more.
    func decision(
        _ device: String, _ worker: Worker, _ formats: [CaptureFormat], _ claims: [Claim], _ lock: Lock?,
        less: StreamSetting? = nil
    ) -> ArbiterDecision {
        let alone = decision(device, worker, formats, claims, lock, less: less, subscribers: [])
        let subscribers = plainSubscribers(of: worker, beside: claims, alone)
        guard !subscribers.isEmpty else { return alone }
        return decision(device, worker, formats, claims, lock, less: less, subscribers: subscribers)
    }

    private func decision(
        _ device: String, _ worker: Worker, _ formats: [CaptureFormat], _ claims: [Claim], _ lock: Lock?,
        less: StreamSetting?, subscribers: [CaptureDemand]
    ) -> ArbiterDecision {
        let isStreaming = worker.status["isStreaming"]?.bool ?? false
        let current = isStreaming ? worker.setting : less ?? worker.setting
        func decide(_ claims: [Claim], _ current: StreamSetting?, _ lock: CaptureParty?) -> ArbiterDecision {
            var decision = Arbiter.decide(
                device: device, formats: less.map(formats.only) ?? formats, current: current, isStreaming: isStreaming,
                demands: claims.compactMap { $0.session.demand(on: device, formats: formats) } + subscribers,
                lock: lock)
            if less != nil { decision.isChange = !(decision.setting?.isSame(as: worker.setting) ?? true) }
            return decision
        }
        guard let lock else { return decide(claims, current, nil) }
        let party = CaptureParty(.lock, id: lock.id, name: lock.holder.name)
        let owners = claims.filter { $0.session.lockID == lock.id }
        guard !owners.isEmpty else { return decide(claims, worker.setting, party) }
        // Those that were given the lock set the device; for all others it is locked as they have set it.
        let first = decide(owners, current, nil)
        var decision = decide(claims, first.setting ?? worker.setting, party)
        decision.isChange = decision.isChange || first.isChange
        return decision
    }

    private static func away(_ device: String, _ worker: Worker?) -> String {
        // What software makes is not plugged in: it says itself what it lacks.
        if case .replay? = worker?.device.source, let error = worker?.error {
            return "\(error.message) The session goes on by itself when it is back."
        }
        return "\(device) is not plugged in; the session goes on by itself when it is back."
    }

    private func interruption(
        _ device: String, _ reason: InterruptionReason, _ by: CaptureParty, _ decision: ArbiterDecision
    ) -> SessionInterruption {
        var who: [String: JSONValue] = [by.kind.rawValue: .string(by.id)]
        var name = by.name.isEmpty ? by.id : by.name
        switch by.kind {
        case .session:
            guard let other = entries[by.id]?.session else { break }
            who["holder"] = other.owner.json
            name = "the session \(other.name ?? by.id) of \(other.owner.name)"
        case .lock:
            guard let lock = held(device) else { break }
            who["holder"] = lock.holder.json
            name = "the lock of \(lock.holder.name)"
        case .subscriber: break
        }
        return SessionInterruption(
            reason, device: device, by: .object(who),
            message: "\(device) is kept by \(name); the session goes on by itself when that is over.")
    }

    // MARK: Setting the device

    /// How long a change waits for somebody's short lock, nanoseconds.
    private static let lockPatience: Int64 = 10_000_000_000

    func apply(_ wish: StreamSetting, _ stage: SessionStage, lock: Lock?, _ claims: [Claim]) {
        stage.isApplying = true
        let device = stage.device
        let ahead = locks.table.waiters(on: device).first { !$0.isTransient }
        let formats = fleet.workers[device]?.formats ?? []
        let change = JSONValue.members([
            "device": .string(device), "activeFormat": wish.format.request(id: wish.formatID, in: formats).json,
            "frameRate": wish.frameDuration?.json,
        ])
        let wait = { [weak self] (ticket: UInt64) in
            // For a call that is under way it is waited without a word.
            guard let self, let ahead else { return }
            stage.ticket = ticket
            // Who has its pictures goes on with them until the change is made.
            for claim in claims {
                if case .served = place(claim, device) { continue }
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
            message:
                "\(device) is to be set otherwise, and \(holder.name) waits for its lock and was first; the session goes on "
                + "by itself when that is over.")
    }

    /// Changes a device.
    ///
    /// - Parameters:
    ///   - lock: the one that it is done under; nil: one for just this, for which it waits.
    ///   - isStandIn: its format stands in for what there is no room for.
    ///   - onWait: gets the ticket with which it waits, if it has to.
    func carryOut(
        _ change: JSONValue, of device: String, _ lock: Lock?, isStandIn: Bool = false,
        onWait: (_ ticket: UInt64) -> Void = { _ in }, then body: @escaping Responder
    ) {
        var batch = ConfigurationDesk.Batch(
            changes: [(device, change, "")], mode: .exact, isDryRun: false, fence: 0, isStandIn: isStandIn)
        if let lock {
            batch.fence = lock.fence
            return carryOut(batch, body)
        }
        locks.withTransientLock(
            on: [device], for: .ourselves, wait: Self.lockPatience, onWait: onWait, then: body
        ) { [carryOut, batch] fence, done in
            var batch = batch
            batch.fence = fence
            carryOut(batch, done)
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
            stage.applied = .init(wish: wish, result: fleet.workers[stage.device]?.setting)
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

    // What a driver refuses now it may take in a while; nobody tells when.
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
