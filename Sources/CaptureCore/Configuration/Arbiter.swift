/// Decides how a device streams that several want something of.
///
/// Those are served in the order of their priority, then of their age, sessions before mere subscribers; each in turn
/// is served if one format of the device does for it and for all before it, and is else interrupted by the one it can't
/// go together with. Pictures are scaled down and left out for each as it needs, never made larger. So who comes first
/// never loses anything to who comes later, and the order of the demands in the array decides nothing.
///
/// - A stream keeps its format and rate while they serve all demands. They are lowered only if the stream's one session
///   changes its demand: then no other reader has a gap.
/// - A locked device keeps its format and rate. Who needs another waits, interrupted by the holder. Where the holder
///   himself asks, pass no lock.
/// - Subscribers never change the format, and never keep a session from changing it; but where there is a choice, they
///   are minded. Those of `native` follow the device, whatever it is set to.
/// - A preset's rate is had as far as those allow who come first; a rate that is asked for is kept or not served at
///   all.
public enum Arbiter {
    /// - Parameters:
    ///   - device: what people call the device, for the explanation.
    ///   - formats: its format table.
    ///   - orientation: how its pictures have to be turned to be upright, as the sizes of renditions count them.
    ///   - current: how it is set; nil: not known.
    ///   - isStreaming: whether a change costs somebody a restart. If not, a format is chosen that fits best; else any
    ///     that does is kept.
    ///   - mayLower: its only session asks for something else than what it streams for: it is set lower if that does.
    ///   - demands: of all who want something; each party once.
    ///   - lock: who holds the lock of the device; nil: nobody.
    public static func decide(
        device: String, formats: [CaptureFormat], orientation: PictureOrientation = .upright, current: StreamSetting?,
        isStreaming: Bool = true, mayLower: Bool = false, demands: [CaptureDemand], lock: CaptureParty? = nil
    ) -> ArbiterDecision {
        let ranked = demands.sorted { $0.comesBefore($1) }
        let table = FormatTable(formats, orientation, for: ranked)
        func decide(isStreaming: Bool) -> ArbiterDecision {
            Self.decide(device, table, current, isStreaming: isStreaming, ranked, lock)
        }
        let decision = decide(isStreaming: isStreaming)
        guard mayLower, isStreaming, !decision.isChange else { return decision }
        let lower = decide(isStreaming: false)
        let isLower = lower.isChange && lower.setting.map { setting in current.map(setting.isLess) ?? false } ?? false
        return isLower && lower.serves(allOf: decision) ? lower : decision
    }

    private static func decide(
        _ device: String, _ table: FormatTable, _ current: StreamSetting?, isStreaming: Bool,
        _ ranked: [CaptureDemand], _ lock: CaptureParty?
    ) -> ArbiterDecision {
        var trial = ArbiterTrial(device: device, table: table, current: current, isStreaming: isStreaming, lock: lock)
        trial.run(ranked)
        let setting = trial.setting
        let verdicts = trial.verdicts(of: ranked)
        let explanation = ArbiterSentences(
            device: device, table: table, setting: setting, lock: lock
        ).sentences(verdicts)
        let isOther =
            current?.format != setting?.format || current?.frameDuration != setting?.frameDuration
            || current?.isOtherRow(than: setting) ?? false
        return ArbiterDecision(
            setting: setting, isChange: isOther && ranked.contains { $0.party.kind == .session }, verdicts: verdicts,
            explanation: explanation,
            forecast: ArbiterSentences(device: device, table: table, setting: setting, lock: lock, isForecast: true)
                .sentences(verdicts))
    }
}

extension CaptureDemand {
    /// The order in which demands are served. Total, but for two of one party.
    func comesBefore(_ other: CaptureDemand) -> Bool {
        let (mine, others) = (party.kind == .subscriber ? 1 : 0, other.party.kind == .subscriber ? 1 : 0)
        return (mine, -Double(priority), since, party.kind.rawValue, party.id)
            < (others, -Double(other.priority), other.since, other.party.kind.rawValue, other.party.id)
    }
}

/// One decision while it is made.
private struct ArbiterTrial {
    private let device: String
    private let table: FormatTable
    private let current: StreamSetting?
    private let isStreaming: Bool
    private let lock: CaptureParty?
    /// The device as it is set; nil: not known.
    private let pinned: StreamCandidate?

    private var candidates: [StreamCandidate]
    /// What has been granted, in that order.
    private var granted: [(party: CaptureParty, need: CaptureNeed)] = []
    /// Whoever is not served.
    private var refused: [CaptureParty: ArbiterDecision.Outcome] = [:]
    private(set) var setting: StreamSetting?

    init(device: String, table: FormatTable, current: StreamSetting?, isStreaming: Bool, lock: CaptureParty?) {
        self.device = device
        self.table = table
        self.current = current
        self.isStreaming = isStreaming
        self.lock = lock
        pinned = current.map { StreamCandidate(pinned: $0, row: table.row(of: $0)) }
        candidates = table.formats.enumerated().map { StreamCandidate($0.element, index: $0.offset) }
    }

    mutating func run(_ ranked: [CaptureDemand]) {
        let sessions = ranked.filter { $0.party.kind != .subscriber }
        let subscribers = ranked.filter { $0.party.kind == .subscriber }
        if lock != nil { candidates = pinned.map { [$0] } ?? [] }
        for demand in sessions { serve(demand) }
        if lock == nil {
            reachSoftRates()
            keepWhatStreams()
        }
        for demand in subscribers { serve(demand) }
        setting = current
        if lock == nil, !ranked.isEmpty, let best = best() { setting = best.setting(keeping: current) }
    }

    func verdicts(of ranked: [CaptureDemand]) -> [ArbiterDecision.Verdict] {
        ranked.map { demand in
            .init(demand: demand, outcome: refused[demand.party] ?? delivery(to: demand))
        }
    }

    // MARK: Who is served

    private mutating func serve(_ demand: CaptureDemand) {
        guard let need = CaptureNeed(demand.wish, in: table) else {
            refused[demand.party] = .unsupported(why: UnsupportedDemand(device: device, table: table).why(demand.wish))
            return
        }
        let remaining = candidates.compactMap { $0.admitting(need) }
        guard remaining.isEmpty else {
            candidates = remaining
            granted.append((demand.party, need))
            return
        }
        refused[demand.party] = refusal(of: demand, need)
    }

    private func refusal(of demand: CaptureDemand, _ need: CaptureNeed) -> ArbiterDecision.Outcome {
        var rows = table.formats.enumerated().compactMap {
            StreamCandidate($0.element, index: $0.offset).admitting(need)
        }
        if rows.isEmpty {
            return .unsupported(why: UnsupportedDemand(device: device, table: table).why(demand.wish))
        }
        if let lock, pinned?.admitting(need) == nil {
            return .interrupted(reason: .videoDeviceInUseByAnotherClient, by: lock)
        }
        // By the one with whom the last format went that would have done.
        for other in granted {
            rows = rows.compactMap { $0.admitting(other.need) }
            if rows.isEmpty { return .interrupted(reason: .videoDeviceInUseByAnotherClient, by: other.party) }
        }
        let set = current.map { "\(device) is set to \(ArbiterSentences.told($0))" } ?? "\(device) stays as it is"
        return .unsupported(why: "\(set), and a subscription alone doesn't change that")
    }

    /// Presets and ranges of rates bring a rate that is wished for, and that nobody is refused for.
    private mutating func reachSoftRates() {
        let isKept = isStreaming && pinnedServing(granted) != nil
        for (party, need) in granted {
            guard let rate = need.softRate else { continue }
            // A range is content with any rate in it, so nothing is changed for its sake.
            if isKept, need.native != nil, let present = current?.frameDuration, need.rate.contains(present) {
                continue
            }
            let wanted = candidates.compactMap(\.fastest).min().map { max($0, rate) } ?? rate
            let remaining = candidates.compactMap { $0.reaching(wanted) }
            guard !remaining.isEmpty else { continue }
            candidates = remaining
            var soft = CaptureNeed.nothing
            soft.rate.maxFrameDuration = wanted
            granted.append((party, soft))
        }
    }

    /// What streams goes on if it does for those who are served, or if there are only some whom it isn't changed for.
    private mutating func keepWhatStreams() {
        guard isStreaming || !isAnythingDemanded, let kept = pinnedServing(granted) else { return }
        candidates = [kept]
    }

    private var isAnythingDemanded: Bool { granted.contains { $0.need.isDemanding } }

    /// The device as it is set; nil if that doesn't do for all of them.
    private func pinnedServing(_ granted: [(party: CaptureParty, need: CaptureNeed)]) -> StreamCandidate? {
        granted.reduce(pinned) { $0?.admitting($1.need) }
    }

    // MARK: What serves them

    /// The candidate that serves best.
    private func best() -> StreamCandidate? {
        if !isAnythingDemanded, current == nil, let high = SessionPreset.high.resolve(for: table.formats) {
            return candidates.first { $0.format.id == high.formatID }
        }
        return candidates.map { (candidate: $0, cost: cost(of: $0)) }.min { $0.cost < $1.cost }?.candidate
    }

    /// Lower is better; what comes first counts before all that follows.
    private func cost(of candidate: StreamCandidate) -> StreamCost {
        let setting = candidate.setting(keeping: current)
        let pixelFormat = setting.format.pixelFormat
        let isPresent = current?.format == setting.format && !(current?.isOtherRow(than: setting) ?? false)
        let sized = granted.filter { $0.need.least.width > 0 && $0.need.least.height > 0 }
        let isRateAsked = granted.contains { $0.need.rate.maxFrameDuration != nil }
        let rate = setting.frameDuration?.framesPerSecond ?? 0
        return StreamCost(parts: [
            isStreaming && !isPresent ? 1 : 0,
            Double(pixelFormat.rank),
            Double(sized.filter { !setting.format.dimensions.isAspect(of: $0.need.least) }.count),
            Double(setting.format.dimensions.width) * Double(setting.format.dimensions.height),
            isRateAsked ? 0 : -min(rate, 30),
            Double(granted.filter { $0.need.isConverting(setting.format) }.count),
            pixelFormat == current?.format.pixelFormat ? 0 : 1,
            Double(pixelFormat.preference),
            rate,
            Double(candidate.index),
        ])
    }

    private func delivery(to demand: CaptureDemand) -> ArbiterDecision.Outcome {
        guard let setting, let need = CaptureNeed(demand.wish, in: table) else {
            return .unsupported(why: "\(device) has no format")
        }
        return .satisfied(DemandDelivery(of: demand.wish, need, from: setting, table.orientation))
    }
}

private struct StreamCost: Comparable {
    let parts: [Double]

    static func < (left: Self, right: Self) -> Bool { left.parts.lexicographicallyPrecedes(right.parts) }
}

extension CaptureNeed {
    /// False if any setting of the device does.
    fileprivate var isDemanding: Bool {
        formatID != nil || native != nil || hasSize || isConverted || output != nil || needsColour
            || rate.maxFrameDuration != nil
    }
}

extension FrameDurationBounds {
    fileprivate func contains(_ duration: FrameDuration) -> Bool {
        (minFrameDuration.map { $0.isAtMost(duration) } ?? true)
            && (maxFrameDuration.map { duration.isAtMost($0) } ?? true)
    }
}
