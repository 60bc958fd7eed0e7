import BusProtocol
import BusServer
import CaptureCore
import JSON
import Logging

/// Microphones of sessions: set for the first session, heard by all.
extension SessionRegistry {
    func arbitrateSound(_ stage: SessionStage, _ worker: WorkerHandle, _ claims: [Claim]) {
        let device = stage.device
        tell(device, isRunning: true)
        guard let microphone = worker.microphone else {
            return take(claims, device, worker, nil)
        }
        let lock = held(device)
        let owners = lock.map { lock in claims.filter { $0.session.lockID == lock.id } } ?? claims
        let decision = soundDecision(device, microphone, owners, of: claims)
        stage.sound = decision
        let wish = SessionStage.SoundApplied(format: decision.wish, dataSource: decision.dataSource)
        // In whoever's lock it is, it stays as it is.
        if !owners.isEmpty, wish != stage.soundApplied {
            var change: [String: JSONValue] = ["device": .string(device)]
            if wish.format != stage.soundApplied?.format, !decision.format.isSame(as: microphone.current) {
                let format = decision.format
                let request = SoundFormatRequest(
                    sampleFormat: format.sampleFormat, rate: format.rate, channels: format.channels)
                change["activeFormat"] = request.json
            }
            if let source = wish.dataSource, source != stage.soundApplied?.dataSource, source != worker.dataSource {
                change["controls"] = [MicrophoneControl.dataSource: .string(source)]
            }
            guard change.count == 1 else {
                applySound(wish, .object(change), stage, lock: lock)
                // Who hears it goes on to; the others come when it is as they want it.
                return take(claims.filter { isHeard($0, device) }, device, worker, microphone)
            }
            stage.soundApplied = wish
        }
        take(claims, device, worker, microphone)
    }

    private func isHeard(_ claim: Claim, _ device: String) -> Bool {
        if case .heard? = claim.entry.places[device] { true } else { false }
    }

    // A session begins with the first sound; what restarts later on doesn't end it.
    private func take(_ claims: [Claim], _ device: String, _ worker: WorkerHandle, _ microphone: SessionMicrophone?) {
        let isStreaming = worker.status["isStreaming"]?.bool ?? false
        for claim in claims {
            if let microphone, isStreaming || isHeard(claim, device) {
                claim.entry.soundFormats[device] = claim.entry.soundFormats[device] ?? microphone.current
                put(claim, device, .heard(microphone))
            } else if let error = worker.error {
                fail(claim, device, error, stops: false)
            } else {
                put(claim, device, .pending)
            }
        }
    }

    /// - Parameter owners: those who may set it.
    private func soundDecision(
        _ device: String, _ microphone: SessionMicrophone, _ owners: [Claim], of claims: [Claim]
    ) -> SoundDecision {
        func demand(_ claim: Claim) -> SoundDemand? {
            claim.session.soundDemand(on: device, microphone, camera: claim.session.camera.map { position($0.device) })
        }
        let others = claims.filter { claim in !owners.contains { $0.session.id == claim.session.id } }
        return SoundDecision(
            device: device, microphone, demands: owners.compactMap(demand), others: others.compactMap(demand))
    }

    private func applySound(_ wish: SessionStage.SoundApplied, _ change: JSONValue, _ stage: SessionStage, lock: Lock?)
    {
        stage.isApplying = true
        let wait = { (ticket: UInt64) in
            // Nobody waits for that: what there is can be heard meanwhile.
            stage.ticket = ticket
        }
        carryOut(change, of: stage.device, lock, isStandIn: false, onWait: wait) { [weak self] result in
            guard let self else { return }
            let isWithdrawn = stage.isWithdrawn
            (stage.isApplying, stage.isDirty, stage.isWithdrawn, stage.ticket) = (false, false, false, nil)
            guard stages[stage.device] === stage else { return }
            if case .failure(let error) = result {
                if isWithdrawn { return review(stage.device) }
                if error.mayPass {
                    retry(stage, error)
                    return review(stage.device)
                }
                // Each gets a rendition that is as it wants.
                logger.warning(
                    "a microphone can't be set for its sessions",
                    metadata: ["device": "\(stage.device)", "error": "\(error.message)"])
            }
            stage.soundApplied = wish
            review(stage.device)
        }
    }

    /// What a session that is not started would get of a microphone.
    func soundForecast(_ session: CaptureSession, _ device: String) -> ([SessionSoundDelivery], [String]) {
        guard let worker = workers[device], let microphone = worker.microphone, let entry = entries[session.id]
        else { return ([], []) }
        let claims =
            [Claim(entry: entry, candidate: session)] + claims(on: device).filter { $0.entry !== entry }
        let lock = held(device)
        let owners = lock.map { lock in claims.filter { $0.session.lockID == lock.id } } ?? claims
        var then = microphone
        let decision = soundDecision(device, microphone, owners, of: claims)
        then.current = decision.format
        return (session.soundDeliveries(of: device, then), decision.explanation)
    }
}

extension WorkerHandle {
    /// Its microphone; nil: it has none, or it has not been opened yet.
    var microphone: SessionMicrophone? {
        guard device.identity.mediaType == .audio else { return nil }
        return SessionMicrophone(description: description, activeFormat: status["activeFormat"])
    }

    /// The id of the data source that it listens at.
    fileprivate var dataSource: String? {
        guard let index = status["controls"]?[MicrophoneControl.dataSource]?.integer,
            let sources = description?["dataSources"]?.array, sources.indices.contains(Int(clamping: index))
        else { return nil }
        return sources[Int(index)]["id"]?.string
    }
}
