import BusProtocol
import BusServer
import CaptureCore
import JSON
import Logging

/// What sessions cost the USB buses of their cameras: told before they start, refused above 1, and given up step by step where
/// a driver finds no room after all.
extension SessionDesk {
    // MARK: Before the start

    /// What the fullest bus of the session's cameras costs, with all that streams beside; of a session that isn't started as if it were.
    func hardwareCost(_ session: CaptureSession) -> Double {
        buses(of: session).map(\.hardwareCost).max() ?? 0
    }

    /// A sentence for each USB bus that the session's cameras are on.
    func bandwidthSentences(_ session: CaptureSession) -> [String] { buses(of: session).map(\.explanation) }

    /// - Throws: `limitExceeded` {limit: `hardwareCost`, hardwareCost, plan} when there is no room for the session's cameras beside
    ///   those that stream already.
    func checkBandwidth(_ entry: Entry) throws(BusError) {
        let session = entry.session
        guard !session.run.isActive, hardwareCost(session) > 1 else { return }
        // What others stream is not taken from them; only where nothing else helps, what it would take is told.
        let own = plan(session) { $0 }
        let all = plan(session) { _ in true }
        guard let plan = own?.runs == true ? own : all ?? own else { return }
        throw BusError(
            .limitExceeded,
            "There is no room for these cameras on USB. \(plan.explanation.joined(separator: " "))",
            [
                "limit": "hardwareCost", "hardwareCost": .number(BandwidthBudget.rounded(hardwareCost(session))),
                "plan": plan.json,
            ])
    }

    private func buses(of session: CaptureSession) -> [BandwidthBudget.Bus] {
        let budget = BandwidthBudget(loads(with: session))
        return budget.buses.filter { bus in bus.loads.contains { session.input($0.device) != nil } }
    }

    /// - Parameter mayChange: whether a camera may be set otherwise, given whether it is the session's.
    private func plan(_ session: CaptureSession, mayChange: (_ isOwn: Bool) -> Bool) -> DegradePlan? {
        let loads = buses(of: session).flatMap(\.loads).map { load in
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
    private func loads(with session: CaptureSession) -> [BandwidthLoad] {
        let isActive = session.run.isActive
        return fleet.deviceIDs.compactMap { device in
            guard let worker = fleet.workers[device], worker.isConnected, let link = link(worker.device) else {
                return nil
            }
            let isStreaming = worker.status["isStreaming"]?.bool ?? false
            var setting = isStreaming ? worker.setting : nil
            if let decision = stages[device]?.decision, decision.verdicts.contains(where: \.isSatisfied) {
                setting = decision.setting
            }
            if !isActive, session.input(device) != nil { setting = forecast(session, device)?.setting ?? setting }
            return setting.map { BandwidthLoad(device: device, link: link, setting: $0) }
        }
    }

    /// Sessions that run learn what a camera beside theirs takes of their bus, when that has changed.
    func tellCosts(beside device: String) {
        guard let worker = fleet.workers[device], let link = link(worker.device) else { return }
        let isStreaming = worker.status["isStreaming"]?.bool ?? false
        let bitRate = isStreaming ? worker.setting?.bitRate ?? 0 : 0
        guard bitRates.updateValue(bitRate, forKey: device) ?? 0 != bitRate else { return }
        for (id, entry) in entries where entry.session.run.isWanted {
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
        let served = present.verdicts.filter(\.isSatisfied).map(\.demand.party)
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
}

extension ArbiterDecision.Verdict {
    fileprivate var isSatisfied: Bool { if case .satisfied = outcome { true } else { false } }
}
