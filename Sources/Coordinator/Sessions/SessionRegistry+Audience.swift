import BusProtocol
import CaptureCore

/// Subscribers of a device without a session.
extension SessionRegistry {
    /// The demands of a device's subscribers that have no session there.
    ///
    /// Who subscribes to a topic that a session has in `resolved`, or had before it was interrupted, is that session's
    /// audience, whoever it is.
    ///
    /// - Parameter alone: what is decided without them.
    func plainSubscribers(
        of worker: WorkerHandle, beside claims: [Claim], _ alone: ArbiterDecision?
    ) -> [CaptureDemand] {
        let counts = worker.subscribers
        guard !counts.isEmpty else { return [] }
        let device = worker.device.id
        var heard: Set<Rendition> = []
        for claim in claims {
            heard.formUnion(claim.entry.renditions[device] ?? [])
            let party = CaptureParty(.session, id: claim.session.id)
            guard case .satisfied(let delivery)? = alone?.outcome(of: party) else { continue }
            let deliveries = claim.session.deliveries(
                of: device, delivery, position: position(device), orientation: orientation(device))
            heard.formUnion(deliveries.compactMap(\.rendition))
        }
        return counts.filter { !heard.contains($0.key) }.map { CaptureDemand(subscribers: $1, of: $0) }
    }
}
