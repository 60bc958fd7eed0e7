import BusProtocol
import BusServer
import CaptureCore
import JSON

/// From the demands of sessions to the settings of devices: decided anew when demands, devices or locks change.
extension SessionRegistry {
    /// It is known which devices there are.
    func devicesKnown() {
        guard !isSettled else { return }
        isSettled = true
        let wanted = Set(entries.values.flatMap { $0.session.inputs.map(\.device) })
        for device in wanted.union(workers.deviceIDs.filter(stabilization.isOwed)).sorted() { review(device) }
        for device in workers.deviceIDs { releaseControls(device) }
    }

    /// The device or its lock has changed.
    func deviceChanged(_ device: String) {
        tellCosts(beside: device)
        releaseControls(device)
        if workers[device] == nil { toldRunning[device] = nil }
        guard let stage = stages[device] else {
            if stabilization.isOwed(device) || !claims(on: device).isEmpty { review(device) }
            return
        }
        if facts(device) != stage.facts { review(device) }
    }

    /// The device's worker is a new process, or a new connection to it.
    func greeted(_ worker: WorkerHandle) {
        toldRunning[worker.device.id] = nil
        // What is known of its sessions counts until it is decided anew: no frame is to be lost for that.
        let isWanted = entries.values.contains {
            $0.session.run.isActive && $0.session.input(worker.device.id) != nil
                && access.mayHave(worker.device.id, $0.session)
        }
        tell(worker.device.id, isRunning: isWanted)
    }

    private func facts(_ device: String) -> SessionStage.Facts? {
        guard let worker = workers[device] else { return nil }
        return SessionStage.Facts(
            descriptions: worker.descriptions, isRunning: worker.isRunning, isConnected: worker.isConnected,
            isStreaming: worker.status["isStreaming"]?.bool ?? false, error: worker.status["error"] ?? .null,
            activeFormat: worker.status["activeFormat"] ?? .null,
            frameDuration: worker.status["frameDuration"] ?? .null,
            formatDescription: worker.formatDescription,
            subscribers: worker.status["subscribers"] ?? .null, refused: worker.status["refused"] ?? .null,
            lock: held(device)?.id,
            stabilization: worker.stabilization)
    }

    /// A client's lock. One that lasts for a call is waited for.
    func held(_ device: String) -> Lock? {
        locks.table.lock(on: device).flatMap { $0.isTransient ? nil : $0 }
    }

    func tell(_ device: String, isRunning: Bool) {
        // The orders of another coordinator are not known here.
        let sessions = isRunning ? active(on: device) : []
        let told = Told(
            isRunning: isRunning, preRoll: sessions.map { $0.preRoll(of: device) }.max() ?? 0,
            watchesScene: sessions.contains { $0.watchesScene(of: device) })
        guard let worker = workers[device], worker.isRunning, toldRunning[device] != told else { return }
        toldRunning[device] = told
        worker.order(
            .session(isRunning: told.isRunning, preRoll: told.preRoll, watchesScene: told.watchesScene))
    }

    /// Sessions that are to run, and may have the device.
    private func active(on device: String) -> [CaptureSession] {
        entries.values.map(\.session).filter {
            $0.run.isActive && $0.input(device) != nil && access.mayHave(device, $0)
        }
    }

    // MARK: The decision

    /// Decides the device's configuration anew, and applies it.
    func review(_ device: String) {
        guard isSettled, !hasEnded else { return }
        let claims = claims(on: device)
        let stage =
            stages[device] ?? SessionStage(device: device, prefersStabilization: stabilization.isOwed(device))
        guard !stage.isApplying else {
            stage.isDirty = true
            // The client that was first has the lock now: decide at once what is possible under it.
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
        guard let worker = workers[device], worker.isConnected else {
            tell(device, isRunning: true)
            let cause = Self.away(device, workers[device])
            return deny(
                claims, device,
                SessionInterruption(.deviceDisconnected, device: device, cause: cause, until: "it is back"))
        }
        // The formats may be known from the worker before, while this one has not opened the device yet. Sessions that
        // leave the device as it is must not change it: they wait until it is known how that is.
        guard worker.isRunning, let formats = worker.formats, worker.activeFormat != nil else {
            tell(device, isRunning: true)
            let error = worker.error
            for claim in claims {
                if worker.state == .restarting {
                    let end = claim.isTrial ? "." : "; then the session continues."
                    let message = "The worker of \(device) has ended and is started again\(end)"
                    fail(claim, device, BusError(.workerCrashed, message, ["device": .string(device)]), stops: false)
                } else if let error, error.reason == .deviceInUse {
                    put(claim, device, .denied(inUse(device, error)))
                } else if let error, worker.isRunning, worker.formats != nil {
                    // The worker tries again to open it.
                    fail(claim, device, error, stops: false)
                } else {
                    put(claim, device, .pending)
                }
            }
            return
        }
        if let state = pressures.halt(worker) {
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
        if photos?.isBorrowed(uniqueID: worker.device.identity.uniqueID) == true { return }
        arbitrate(stage, worker, formats, claims)
    }

    private func deny(_ claims: [Claim], _ device: String, _ interruption: SessionInterruption) {
        for claim in claims { put(claim, device, .denied(interruption)) }
    }

    private func inUse(_ device: String, _ error: BusError) -> SessionInterruption {
        SessionInterruption(
            workers[device]?.device.identity.mediaType == .audio
                ? .audioDeviceInUseByAnotherClient : .deviceInUseByForeignProcess, device: device,
            by: error.data["by"] ?? .null,
            cause: "Another program has \(device)", until: "it lets go")
    }

    private func arbitrate(_ stage: SessionStage, _ worker: WorkerHandle, _ formats: [CaptureFormat], _ claims: [Claim])
    {
        let device = stage.device
        let lock = held(device)
        let isOwnLock = lock.map { lock in claims.contains { $0.session.lockID == lock.id } } ?? false
        forgetLess(stage, worker)
        if takesMore(stage, lock: lock, isOwn: isOwnLock, claims) { return }
        let decision = decision(device, worker, formats, claims, lock, less: stage.given?.given)
        stage.decision = decision
        var served: [(Claim, DemandDelivery)] = []
        for claim in claims {
            switch decision.outcome(of: CaptureParty(.session, id: claim.session.id)) {
            case .satisfied(let delivery):
                served.append((claim, delivery))
                let deliveries = claim.session.deliveries(
                    of: device, delivery, position: position(device), orientation: orientation(device))
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
        let isDone = !decision.isChange || stage.hasApplied(decision.setting, worker)
        guard isDone, let wish = decision.setting else {
            if let wish = decision.setting { apply(wish, stage, lock: isOwnLock ? lock : nil, served.map(\.0)) }
            return
        }
        stage.succeeded()
        settleWishes(stage, worker, formats, claims, lock: isOwnLock ? nil : lock)
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
            if case .served = claim.place(on: device) {
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

    /// The device has only this session, which asks for something else than what the device was set for.
    private func isAskedAnew(_ device: String, _ formats: [CaptureFormat], _ claims: [Claim]) -> Bool {
        guard claims.count == 1, let session = claims.first?.session,
            let settled = stages[device]?.settledWishes[session.id]
        else { return false }
        return session.demand(on: device, formats: formats)?.wish != settled
    }

    // What a lock or a plain subscriber keeps from being set lower stays asked for until they are gone.
    private func settleWishes(
        _ stage: SessionStage, _ worker: WorkerHandle, _ formats: [CaptureFormat], _ claims: [Claim],
        lock: Lock?
    ) {
        if isAskedAnew(stage.device, formats, claims) {
            let alone = decision(stage.device, worker, formats, claims, nil, less: nil, subscribers: [])
            guard lock == nil, !alone.isChange || stage.hasApplied(alone.setting, worker) else { return }
        }
        let wishes = claims.map { ($0.session.id, $0.session.demand(on: stage.device, formats: formats)?.wish) }
        stage.settledWishes = Dictionary(wishes) { $1 }.compactMapValues(\.self)
    }

    /// - Parameter less: what the device is to be set to and nothing else, as there was no room for more.
    func decision(
        _ device: String, _ worker: WorkerHandle, _ formats: [CaptureFormat], _ claims: [Claim], _ lock: Lock?,
        less: StreamSetting? = nil
    ) -> ArbiterDecision {
        let alone = decision(device, worker, formats, claims, lock, less: less, subscribers: [])
        let subscribers = plainSubscribers(of: worker, beside: claims, alone)
        guard !subscribers.isEmpty else { return alone }
        return decision(device, worker, formats, claims, lock, less: less, subscribers: subscribers)
    }

    private func decision(
        _ device: String, _ worker: WorkerHandle, _ formats: [CaptureFormat], _ claims: [Claim], _ lock: Lock?,
        less: StreamSetting?, subscribers: [CaptureDemand]
    ) -> ArbiterDecision {
        let isStreaming = worker.status["isStreaming"]?.bool ?? false
        let current = isStreaming ? worker.setting : less ?? worker.setting
        func decide(_ claims: [Claim], _ current: StreamSetting?, _ lock: CaptureParty?) -> ArbiterDecision {
            var decision = Arbiter.decide(
                device: device, formats: less.map(formats.only) ?? formats, orientation: orientation(device),
                current: current, isStreaming: isStreaming,
                mayLower: less == nil && isAskedAnew(device, formats, claims),
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

    private static func away(_ device: String, _ worker: WorkerHandle?) -> String {
        // What software makes is not plugged in: it says itself what it lacks.
        if case .replay? = worker?.device.source, let error = worker?.error {
            return error.message.hasSuffix(".") ? String(error.message.dropLast()) : error.message
        }
        return "\(device) is not plugged in"
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
            cause: "\(device) is kept by \(name)")
    }

    /// The interruption of the sessions of a device that had to stop.
    private func interruption(_ device: String, _ state: SystemPressureState) -> SessionInterruption {
        SessionInterruption(
            .videoDeviceNotAvailableDueToSystemPressure, device: device, by: ["systemPressureState": state.json],
            cause: "\(device) is under too much pressure (\(state.words))")
    }
}

extension SystemPressureState {
    /// `shutdown: memory`
    fileprivate var words: String {
        let names = SystemPressureFactor.allCases.filter(factors.contains).map(\.rawValue).joined(separator: ", ")
        return names.isEmpty ? level.rawValue : "\(level.rawValue): \(names)"
    }
}
