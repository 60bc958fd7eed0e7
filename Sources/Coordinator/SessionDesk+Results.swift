import BusProtocol
import CaptureCore
import JSON

/// What comes of sessions, and why: for their state, and for replies.
extension SessionDesk {
    /// What each output gets, of devices that serve the session.
    func resolved(_ entry: Entry) -> [SessionDelivery] {
        guard entry.session.run.isWanted else { return [] }
        return entry.session.inputs.flatMap { input -> [SessionDelivery] in
            guard case .served(let delivery)? = entry.places[input.device] else { return [] }
            return entry.session.deliveries(of: input.device, delivery, position: position(input.device))
        }
    }

    private static let maximumSentences = 32

    /// The arbiter's sentences on the session's devices.
    func explanation(_ entry: Entry) -> [String] {
        guard entry.session.run.isWanted else { return [] }
        let sentences =
            entry.session.inputs.flatMap { stages[$0.device]?.explanation ?? [] } + bandwidthSentences(entry.session)
        // Each of many sessions on one camera is told of all the others.
        return Array(sentences.prefix(Self.maximumSentences))
    }

    /// What a session that is not started would get if it were.
    func forecast(_ session: CaptureSession) -> (resolved: [SessionDelivery], explanation: [String]) {
        var (resolved, explanation): ([SessionDelivery], [String]) = ([], [])
        for input in session.inputs {
            guard let decision = forecast(session, input.device) else { continue }
            explanation += decision.forecast
            if case .satisfied(let delivery)? = decision.outcome(of: CaptureParty(.session, id: session.id)) {
                resolved += session.deliveries(of: input.device, delivery, position: position(input.device))
            }
        }
        return (resolved, explanation + bandwidthSentences(session))
    }

    /// What would be decided for one of its devices if it were started.
    func forecast(_ session: CaptureSession, _ device: String) -> ArbiterDecision? {
        guard let worker = fleet.workers[device], let formats = worker.formats,
            let demand = session.demand(on: device, formats: formats)
        else { return nil }
        let others = claims(on: device).filter { $0.session.id != session.id }
        let party = held(device).map { CaptureParty(.lock, id: $0.id, name: $0.holder.name) }
        return Arbiter.decide(
            device: device, formats: formats, current: worker.setting,
            isStreaming: worker.status["isStreaming"]?.bool ?? false,
            demands: [demand] + others.compactMap { $0.session.demand(on: device, formats: formats) }, lock: party)
    }

    private func position(_ device: String) -> DevicePosition {
        fleet.workers[device]?.device.identity.position ?? .unspecified
    }
}
