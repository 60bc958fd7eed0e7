import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO
import Logging

/// What sessions cost the USB buses of their cameras: told before they start, refused above 1, and given up step by
/// step where a driver finds no room after all.
extension SessionRegistry {
    // MARK: Before the start, and before a change

    /// What the fullest bus of the session's cameras costs, with all that streams beside; of a session that isn't
    /// started as if it were.
    func hardwareCost(_ session: CaptureSession) -> Double { Self.cost(of: buses(of: session)) }

    /// A sentence for each USB bus that the session's cameras are on.
    func bandwidthSentences(_ session: CaptureSession) -> [String] { buses(of: session).map(\.explanation) }

    /// Checks a session that is to be started, or one that runs and is to be changed so.
    ///
    /// What is too much already is no reason against a change that doesn't make it more.
    ///
    /// - Throws: `limitExceeded` {limit: `hardwareCost`, hardwareCost, plan} when there is no room for the session's
    ///     cameras beside those that stream already.
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
            load.formats = workers[load.device]?.formats ?? []
            return load
        }
        return BandwidthBudget(loads).plan
    }

    /// All cameras on USB that stream, or are to for a session.
    ///
    /// - Parameter candidate: decided anew, as if it ran so, in the place of what is of it now.
    private func loads(asIf candidate: CaptureSession?) -> [BandwidthLoad] {
        workers.deviceIDs.compactMap { device in
            guard let worker = workers[device], worker.isConnected, let link = link(worker.device) else {
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
    private func settingWithout(_ entry: Entry, _ worker: WorkerHandle) -> StreamSetting? {
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

    /// What a camera on USB sends, as sessions beside it were told.
    struct Load: Equatable {
        var bus: String
        /// Bits a second.
        var bitRate: Double
    }

    /// What a camera took before it stopped, or took less, and when that was (monotonic nanoseconds).
    struct Freed {
        var load: Load
        var time: Int64
    }

    /// Sessions that run learn what a camera beside theirs takes of their bus, when that has changed.
    func tellCosts(beside device: String) {
        var load: Load?
        if let worker = workers[device], let link = link(worker.device),
            worker.status["isStreaming"]?.bool ?? false, let bitRate = worker.setting?.bitRate
        {
            load = Load(bus: link.bus, bitRate: bitRate)
        }
        // It was waited for until its worker is back.
        if freed[device] != nil, !isReturning(device) { lookAtFreed() }
        let before = loads[device]
        guard load != before else { return }
        // Nothing of one that has ended, or gone.
        loads[device] = load
        if let before, load.map({ $0.bitRate < before.bitRate }) ?? true { freed(before, by: device) }
        let buses = Set([before?.bus, load?.bus].compactMap { $0 })
        for (id, entry) in entries where entry.session.run.isActive {
            let isBeside = entry.session.inputs.contains { input in
                workers[input.device].flatMap { self.link($0.device) }.map { buses.contains($0.bus) } ?? false
            }
            if isBeside { publish(id) }
        }
    }

    // MARK: When the driver finds no room

    /// How long a camera that stops is waited for before its room is taken to be free, milliseconds: one that is only
    /// set otherwise begins again in a moment.
    private static let freeingTime: Int64 = 1000

    private func freed(_ load: Load, by device: String) {
        var most = load
        if let before = freed[device]?.load, before.bus == load.bus, before.bitRate > load.bitRate { most = before }
        freed[device] = Freed(load: most, time: MonotonicClock.now())
        lookAtFreed()
    }

    private func lookAtFreed() {
        guard freeingTimer == nil else { return }
        freeingTimer = loop.schedule(afterMilliseconds: Self.freeingTime) { [weak self] in
            guard let self else { return }
            freeingTimer = nil
            let present = freed
            freed = present.filter { self.isReturning($0.key) }
            for (device, freed) in present where !isReturning(device) && isFree(device, freed.load) {
                tryAgain(on: freed.load.bus, after: freed.time)
            }
        }
    }

    // A worker that has ended is started again, and its camera streams again for whoever comes back to it.
    private func isReturning(_ device: String) -> Bool {
        workers[device].map { $0.isConnected && !$0.isRunning } ?? false
    }

    private func isFree(_ device: String, _ load: Load) -> Bool {
        guard let now = loads[device], now.bus == load.bus else {
            return claims(on: device).isEmpty || workers[device]?.isConnected != true
        }
        return now.bitRate < load.bitRate
    }

    /// There may be room on a bus that there was not before: cameras that take less than was decided are set to that
    /// again.
    private func tryAgain(on bus: String, after time: Int64) {
        for (device, stage) in stages.sorted(by: { $0.key < $1.key }) {
            guard let less = stage.given, less.since <= time, let worker = workers[device],
                link(worker.device)?.bus == bus
            else { continue }
            stage.given?.mayBeOver = true
            review(device)
        }
    }

    /// A device for which there may be room by now is set to what was decided again; what somebody else has locked when
    /// that is over.
    ///
    /// - Parameter lock: a client's, and whether the sessions were given it; nil: there is none.
    /// - Returns: whether that is under way.
    func takesMore(_ stage: SessionStage, lock: Lock?, isOwn: Bool, _ claims: [Claim]) -> Bool {
        guard let less = stage.given, less.mayBeOver, lock == nil || isOwn else { return false }
        stage.given = nil
        stage.applied = nil
        apply(less.asked, stage, lock: lock, claims)
        return true
    }

    /// A device that streams otherwise has found room after all, or was set by somebody else.
    func forgetLess(_ stage: SessionStage, _ worker: WorkerHandle) {
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
        _ stage: SessionStage, _ worker: WorkerHandle, _ formats: [CaptureFormat],
        deciding: (_ less: StreamSetting) -> ArbiterDecision
    ) -> Bool {
        guard let error = worker.error, error.reason == .limitExceeded, error.data["limit"] == "deviceResources",
            let present = stage.decision, let setting = present.setting
        else { return false }
        let served = present.verdicts.filter(\.isServedSession).map(\.demand.party)
        for less in DegradeLadder.settings(below: stage.given?.given ?? setting, in: formats) {
            let decision = deciding(less)
            guard less.isSame(as: decision.setting), served.allSatisfy({ decision.isSatisfied($0) }) else { continue }
            stage.given = .init(
                asked: stage.given?.asked ?? setting, given: less, since: stage.given?.since ?? MonotonicClock.now())
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
