import BusProtocol
import BusServer
import CaptureCore
import JSON
import Logging

/// What sessions cost the USB buses of their cameras: told before they start, refused above 1, and given up step by step where
/// a driver finds no room after all.
extension SessionDesk {
    // MARK: Before the start, and before a change

    /// What the fullest bus of the session's cameras costs, with all that streams beside; of a session that isn't started as if it were.
    func hardwareCost(_ session: CaptureSession) -> Double { Self.cost(of: buses(of: session)) }

    /// A sentence for each USB bus that the session's cameras are on.
    func bandwidthSentences(_ session: CaptureSession) -> [String] { buses(of: session).map(\.explanation) }

    /// Checks a session that is to be started, or one that runs and is to be changed so.
    ///
    /// What is too much already is no reason against a change that doesn't make it more.
    ///
    /// - Throws: `limitExceeded` {limit: `hardwareCost`, hardwareCost, plan} when there is no room for the session's cameras beside
    ///   those that stream already.
    func checkBandwidth(_ session: CaptureSession) throws(BusError) {
        let after = buses(of: session, asIf: session)
        var present: [BandwidthBudget.Bus] = []
        if let entry = entries[session.id], entry.session.run.isActive {
            present = buses(of: entry.session, asIf: entry.session)
        }
        let isTooMuch = after.contains { bus in
            let before = present.first { $0.link.bus == bus.link.bus }?.hardwareCost ?? 0
            return bus.hardwareCost > max(1, before)
        }
        guard isTooMuch else { return }
        // What others stream is not taken from them; only where nothing else helps, what it would take is told.
        let own = plan(session, after) { $0 }
        let all = plan(session, after) { _ in true }
        guard let plan = own?.runs == true ? own : all ?? own else { return }
        throw BusError(
            .limitExceeded,
            "There is no room for these cameras on USB. \(plan.explanation.joined(separator: " "))",
            [
                "limit": "hardwareCost", "hardwareCost": .number(BandwidthBudget.rounded(Self.cost(of: after))),
                "plan": plan.json,
            ])
    }

    private func buses(of session: CaptureSession) -> [BandwidthBudget.Bus] {
        buses(of: session, asIf: session.run.isActive ? nil : session)
    }

    private func buses(of session: CaptureSession, asIf candidate: CaptureSession?) -> [BandwidthBudget.Bus] {
        let budget = BandwidthBudget(loads(asIf: candidate))
        return budget.buses.filter { bus in bus.loads.contains { session.input($0.device) != nil } }
    }

    private static func cost(of buses: [BandwidthBudget.Bus]) -> Double { buses.map(\.hardwareCost).max() ?? 0 }

    /// - Parameter mayChange: whether a camera may be set otherwise, given whether it is the session's.
    private func plan(
        _ session: CaptureSession, _ buses: [BandwidthBudget.Bus], mayChange: (_ isOwn: Bool) -> Bool
    ) -> DegradePlan? {
        let loads = buses.flatMap(\.loads).map { load in
            var load = load
            let input = session.input(load.device)
            load.isFixed =
                !mayChange(input != nil) || input?.activeFormat != nil || held(load.device) != nil
            load.formats = fleet.workers[load.device]?.formats ?? []
            return load
        }
        return BandwidthBudget(loads).plan
    }

    /// All cameras on USB that stream, or are to for a session.
    ///
    /// - Parameter candidate: decided anew, as if it ran so, in the place of what is of it now.
    private func loads(asIf candidate: CaptureSession?) -> [BandwidthLoad] {
        fleet.deviceIDs.compactMap { device in
            guard let worker = fleet.workers[device], worker.isConnected, let link = link(worker.device) else {
                return nil
            }
            let isStreaming = worker.status["isStreaming"]?.bool ?? false
            var setting = isStreaming ? worker.setting : nil
            if let decision = stages[device]?.decision, decision.servesSession { setting = decision.setting }
            if let candidate {
                if candidate.input(device) != nil {
                    setting = forecast(candidate, device)?.setting ?? setting
                } else if let entry = entries[candidate.id], entry.session.input(device) != nil {
                    setting = settingWithout(entry, worker)
                }
            }
            return setting.map { BandwidthLoad(device: device, link: link, setting: $0) }
        }
    }

    /// How a camera would stream if that session let go of it; nil: not at all.
    private func settingWithout(_ entry: Entry, _ worker: Worker) -> StreamSetting? {
        let device = worker.device.id
        let claims = claims(on: device)
        let others = claims.filter { $0.entry !== entry }
        guard others.isEmpty else {
            return worker.formats.flatMap { decision(device, worker, $0, others, held(device)).setting }
        }
        let isStreaming = worker.status["isStreaming"]?.bool ?? false
        let audience = plainSubscribers(of: worker, beside: claims, stages[device]?.decision)
        return isStreaming && !audience.isEmpty ? worker.setting : nil
    }

    /// Sessions that run learn what a camera beside theirs takes of their bus, when that has changed.
    func tellCosts(beside device: String) {
        guard let worker = fleet.workers[device], let link = link(worker.device) else { return }
        let isStreaming = worker.status["isStreaming"]?.bool ?? false
        let bitRate = isStreaming ? worker.setting?.bitRate ?? 0 : 0
        guard bitRates.updateValue(bitRate, forKey: device) ?? 0 != bitRate else { return }
        for (id, entry) in entries where entry.session.run.isActive {
            let isBeside = entry.session.inputs.contains { input in
                fleet.workers[input.device].flatMap { self.link($0.device) }?.bus == link.bus
            }
            if isBeside { publish(id) }
        }
    }

    // MARK: When the driver finds no room

    /// A device that streams otherwise has found room after all, or was set by somebody else.
    func forgetLess(_ stage: SessionStage, _ worker: Worker) {
        let isStreaming = worker.status["isStreaming"]?.bool ?? false
        guard isStreaming, let given = stage.given?.given, !given.isSame(as: worker.setting) else { return }
        // A driver may have made something near it of it.
        if let applied = stage.applied, applied.wish.isSame(as: given), applied.result == worker.setting { return }
        stage.given = nil
    }

    /// A device that could not start for want of room is to take less, in the order of ``DegradeLadder``.
    ///
    /// - Returns: false: nothing less would do for those whom it serves.
    func takesLess(
        _ stage: SessionStage, _ worker: Worker, _ formats: [CaptureFormat],
        deciding: (_ less: StreamSetting) -> ArbiterDecision
    ) -> Bool {
        guard let error = worker.error, error.reason == .limitExceeded, error.data["limit"] == "deviceResources",
            let present = stage.decision, let setting = present.setting
        else { return false }
        let served = present.verdicts.filter(\.isServedSession).map(\.demand.party)
        for less in DegradeLadder.settings(below: stage.given?.given ?? setting, in: formats) {
            let decision = deciding(less)
            guard less.isSame(as: decision.setting), served.allSatisfy({ decision.isSatisfied($0) }) else { continue }
            stage.given = .init(asked: stage.given?.asked ?? setting, given: less)
            logger.warning(
                "a camera finds no room on its bus and takes less",
                metadata: [
                    "device": "\(stage.device)", "setting": "\(less.format.dimensions) \(less.format.pixelFormat.name)",
                ])
            return true
        }
        return false
    }
}

extension StreamSetting {
    /// The same, whichever row of the format table it is taken from.
    func isSame(as other: StreamSetting?) -> Bool {
        format == other?.format && frameDuration == other?.frameDuration
    }
}

extension ArbiterDecision {
    fileprivate func isSatisfied(_ party: CaptureParty) -> Bool {
        if case .satisfied? = outcome(of: party) { true } else { false }
    }

    fileprivate var servesSession: Bool { verdicts.contains(where: \.isServedSession) }
}

extension ArbiterDecision.Verdict {
    fileprivate var isServedSession: Bool {
        if case .satisfied = outcome { demand.party.kind == .session } else { false }
    }
}
