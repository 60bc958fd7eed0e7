import BusProtocol
import BusServer
import CaptureCore
import Logging

/// The claims of sessions on a device, and their results.
extension SessionRegistry {
    /// A session with that device: its present inputs, or those with another camera that is tried.
    struct Claim {
        let entry: Entry
        var isTrial = false
        /// As it is to be; nil: as it is.
        var candidate: CaptureSession?
        var session: CaptureSession { candidate ?? (isTrial ? entry.trial?.session : nil) ?? entry.session }

        /// What has become of it there.
        func place(on device: String) -> Place { (isTrial ? entry.trial?.place : entry.places[device]) ?? .pending }
    }

    func claims(on device: String) -> [Claim] {
        entries.values.filter(\.session.run.isActive).compactMap { entry in
            if entry.trial?.device == device { return Claim(entry: entry, isTrial: true) }
            return entry.session.input(device) == nil || !access.mayHave(device, entry.session)
                ? nil : Claim(entry: entry)
        }.sorted { $0.entry.session.id < $1.entry.session.id }
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
        for input in entry.session.inputs where access.mayHave(input.device, entry.session) {
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
}
