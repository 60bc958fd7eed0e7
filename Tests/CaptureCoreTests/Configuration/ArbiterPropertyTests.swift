import BusProtocol
import Testing

@testable import CaptureCore

/// Random devices and demands against what must hold whatever happens.
@Suite struct ArbiterPropertyTests {
    // The last one found a device whose setting is called by a row that doesn't have it.
    @Test(arguments: seeds + [2_096_832_036_045_862_387]) func randomDevices(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var waiting = 0
        for round in 0..<150 {
            let device = Situation(using: &random)
            let decision = device.decide(device.demands)
            waiting += decision.verdicts.filter { $0.isInterrupted }.count
            if let broken = device.broken(decision, using: &random) {
                Issue.record("seed \(seed), round \(round): \(broken)\n\(device.told)")
                return
            }
        }
        #expect(waiting > 20, "seed \(seed): the demands are too easy")
    }

    /// What one gets never changes by who comes later.
    @Test(arguments: seeds) func whoComesFirstLosesNothing(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<60 {
            let device = Situation(using: &random)
            let all = device.decide(device.demands)
            for count in 1...max(1, device.demands.count) {
                let first = all.verdicts.prefix(count)
                let alone = device.decide(first.map(\.demand))
                for (one, other) in zip(first, alone.verdicts) where one.demand.party.kind == .session {
                    #expect(
                        one.isSatisfied == other.isSatisfied,
                        "seed \(seed), \(one.demand.party.id) of \(count): \(other.outcome)\n\(device.told)")
                }
            }
        }
    }

    @Test func manyDemandsAndFormats() {
        var random = SeededGenerator(seed: 7)
        let formats = (0..<200).map { index in
            CaptureFormat(
                id: "f\(index)", pixelFormat: random.pick(Situation.pixelFormats),
                dimensions: random.pick(Situation.sizes),
                frameRates: (0..<10).map { rate(5 + $0 * 5) })
        }
        let demands = (0..<64).map { Situation.demand($0, formats, using: &random) }
        let decision = Arbiter.decide(device: "front", formats: formats, current: nil, demands: demands)
        #expect(decision.verdicts.count == 64)
    }
}

/// A device and what is wanted of it.
private struct Situation {
    static let pixelFormats: [PixelFormat] = [.yuyv, .motionJPEG, .h264, .grey, .nv12, .bayerRGGB8]
    static let sizes = [(320, 240), (640, 480), (641, 481), (640, 360), (1280, 720), (1920, 1080)]
        .map { Dimensions(width: $0.0, height: $0.1) }
    private static let rates = [5, 10, 15, 25, 30, 60]

    var formats: [CaptureFormat]
    var demands: [CaptureDemand]
    var current: StreamSetting?
    var isStreaming: Bool
    var lock: CaptureParty?

    init(using random: inout SeededGenerator) {
        var formats: [CaptureFormat] = []
        for index in 0..<(1 + random.below(8)) {
            var format = CaptureFormat(
                id: "f\(index)", pixelFormat: random.pick(Self.pixelFormats), dimensions: random.pick(Self.sizes),
                frameRates: random.some(Self.rates, atMost: 3).map { rate($0) })
            if random.chance(20) {
                format.sizes = DimensionRange(
                    minimum: Dimensions(width: 64, height: 48), maximum: format.dimensions,
                    step: Dimensions(width: 64, height: 24))
            }
            if random.chance(20) {
                format.frameRates = [
                    FrameRateRange(minFrameDuration: duration(1, 60), maxFrameDuration: duration(1, 7))
                ]
            }
            formats.append(format)
        }
        self.formats = formats
        demands = (0..<random.below(8)).map { Self.demand($0, formats, using: &random) }
        let row = random.pick(formats)
        if random.chance(70) {
            current = StreamSetting(
                formatID: row.id, format: FormatSelection(pixelFormat: row.pixelFormat, dimensions: row.dimensions),
                frameDuration: row.frameRates.first?.minFrameDuration)
        }
        isStreaming = random.chance(50)
        if current != nil, random.chance(20) { lock = CaptureParty(.lock, id: "l", name: "locker") }
    }

    static func demand(
        _ index: Int, _ formats: [CaptureFormat], using random: inout SeededGenerator
    ) -> CaptureDemand {
        let some = FrameDuration(framesPerSecond: random.pick(rates))
        let isSession = random.chance(75)
        let wish: CaptureDemand.Wish
        switch random.below(isSession ? 6 : 2) {
        case 0: wish = .nothing
        case 1 where !isSession:
            var rendition = Rendition(random.pick([.jpeg, .bgr, .nv12]))
            let size = random.pick(sizes)
            (rendition.width, rendition.height) = (size.width & ~1, random.chance(30) ? 0 : size.height & ~1)
            rendition.videoRotationAngle = random.chance(30) ? 90 : 0
            wish = .rendition(rendition)
        case 1, 2:
            let row = random.pick(formats)
            let durations = FrameDurationBounds(
                min: random.chance(30) ? some : nil, max: random.chance(30) ? FrameDuration(framesPerSecond: 5) : nil)
            wish = .format(
                FormatSelection(pixelFormat: row.pixelFormat, dimensions: row.dimensions),
                id: random.chance(50) ? row.id : nil,
                frameDurations: random.chance(30) ? FrameDurationBounds(constant: some) : durations)
        case 3: wish = .preset(random.pick(SessionPreset.allCases))
        default:
            wish = .size(
                random.pick(sizes), pixelFormat: random.chance(30) ? random.pick(pixelFormats) : nil,
                rate: random.chance(60) ? some : nil)
        }
        return CaptureDemand(
            CaptureParty(isSession ? .session : .subscriber, id: "d\(index)"), priority: random.below(3),
            since: Instant(random.below(3)), wish: wish)
    }

    func decide(_ demands: [CaptureDemand]) -> ArbiterDecision {
        Arbiter.decide(
            device: "front", formats: formats, current: current, isStreaming: isStreaming, demands: demands, lock: lock)
    }

    var told: String {
        """
        \(formats.map { "\($0.id) \($0.pixelFormat) \($0.dimensions) \($0.sizes != nil) \($0.frameRates.map { "\($0.minFrameDuration)…\($0.maxFrameDuration)" })" }.joined(separator: "\n"))
        current \(current.map { "\($0)" } ?? "-"), streaming \(isStreaming), lock \(lock != nil)
        \(demands.map { "\($0.party.kind) \($0.party.id) \($0.priority) \($0.since) \($0.wish)" }.joined(separator: "\n"))
        """
    }

    /// What is wrong with the decision; nil: nothing.
    func broken(_ decision: ArbiterDecision, using random: inout SeededGenerator) -> String? {
        guard decide(demands.shuffled(using: &random)) == decision else { return "the order of the demands decides" }
        guard Set(decision.verdicts.map(\.demand.party)) == Set(demands.map(\.party)),
            decision.verdicts.count == demands.count
        else { return "not each demand has one verdict" }
        if lock != nil, decision.setting != current { return "the lock is broken" }
        if !decision.explanation.allSatisfy({ $0.hasSuffix(".") }) { return "no sentences: \(decision.explanation)" }
        let isSession = { (verdict: ArbiterDecision.Verdict) in verdict.demand.party.kind == .session }
        if decision.isChange, !decision.verdicts.contains(where: isSession) { return "changed for a subscriber" }
        let alone = decide(demands.filter { $0.party.kind == .session })
        for verdict in decision.verdicts where isSession(verdict) {
            let other = alone.verdicts.first { $0.demand == verdict.demand }
            if other?.isSatisfied != verdict.isSatisfied { return "\(verdict.demand.party.id) minds a subscriber" }
        }
        guard let setting = decision.setting else {
            return decision.verdicts.contains(where: \.isSatisfied) ? "served by nothing" : nil
        }
        if setting != current, !has(setting) { return "the device has no \(setting)" }
        for (index, verdict) in decision.verdicts.enumerated() {
            let above = decision.verdicts[..<index]
            switch verdict.outcome {
            case .satisfied(let delivery):
                if let why = unfit(delivery, for: verdict.demand.wish, setting) {
                    return "\(verdict.demand.party.id): \(why): \(delivery)"
                }
            case .interrupted(_, let by):
                guard by == lock || above.contains(where: { $0.demand.party == by && $0.isSatisfied }) else {
                    return "\(verdict.demand.party.id) is interrupted by one who comes later or waits"
                }
                if lock == nil, isSession(verdict) {
                    let others = above.filter { $0.isSatisfied }.map(\.demand.wish)
                    if let better = settings.first(where: { one in
                        ([verdict.demand.wish] + others).allSatisfy { fits($0, one) }
                    }) {
                        return "\(verdict.demand.party.id) could be served too: by \(better)"
                    }
                }
            case .unsupported:
                if isSession(verdict), settings.contains(where: { fits(verdict.demand.wish, $0) }) {
                    return "\(verdict.demand.party.id) can be served"
                }
            }
        }
        return comesBack(decision)
    }

    /// Whoever waits is served, or waits for another, once the one has left for whom it waits.
    private func comesBack(_ decision: ArbiterDecision) -> String? {
        for verdict in decision.verdicts {
            guard case .interrupted(_, let by) = verdict.outcome else { continue }
            var later = self
            later.current = decision.setting
            if by.kind == .lock { later.lock = nil }
            let demands = demands.filter { $0.party != by }
            let next = later.decide(demands).outcome(of: verdict.demand.party)
            if case .interrupted(_, let other) = next, other == by { return "waits for one who left" }
            // Alone it is always served.
            later.lock = nil
            if verdict.demand.party.kind == .session,
                case .satisfied = later.decide([verdict.demand]).verdicts[0].outcome
            {
                continue
            } else if verdict.demand.party.kind == .session {
                return "\(verdict.demand.party.id) isn't served alone"
            }
        }
        return nil
    }

    // MARK: The plainest possible second opinion

    /// Everything that the device could be set to and that could matter.
    private var settings: [StreamSetting] {
        formats.flatMap { format -> [StreamSetting] in
            let sizes =
                format.sizes.map { range in
                    stride(from: range.minimum.width, through: range.maximum.width, by: range.step.width).flatMap {
                        width in
                        Self.sizes.map { Dimensions(width: width, height: ($0.height + 23) / 24 * 24) }
                            + [Dimensions(width: width, height: range.maximum.height)]
                    }.filter { range.contains($0) }
                } ?? [format.dimensions]
            let durations = format.frameRates.flatMap { range in
                [range.minFrameDuration] + Self.rates.map { FrameDuration(framesPerSecond: $0) }
            }.filter { duration in
                format.frameRates.contains { $0.minFrameDuration <= duration && duration <= $0.maxFrameDuration }
            }
            return sizes.flatMap { size in
                Set(durations).map {
                    StreamSetting(
                        formatID: format.id,
                        format: FormatSelection(pixelFormat: format.pixelFormat, dimensions: size), frameDuration: $0)
                }
            }
        }
    }

    private func has(_ setting: StreamSetting) -> Bool {
        formats.contains { format in
            format.id == setting.formatID && format.pixelFormat == setting.format.pixelFormat
                && format.has(setting.format.dimensions)
                && format.frameRates.contains {
                    setting.frameDuration.map([$0.minFrameDuration...$0.maxFrameDuration][0].contains) ?? false
                }
        }
    }

    private func fits(_ wish: CaptureDemand.Wish, _ setting: StreamSetting) -> Bool {
        guard let duration = setting.frameDuration else { return false }
        let pixelFormat = setting.format.pixelFormat
        let size = setting.format.dimensions
        func scales(_ wanted: Dimensions, _ output: PixelFormat?) -> Bool {
            if wanted == size, output == nil || output == pixelFormat { return true }
            guard pixelFormat != .h264, size.width >= wanted.width, size.height >= wanted.height else { return false }
            switch output {
            case nil, .grey, .motionJPEG: return true
            case .yuyv, .nv12: return wanted.width % 2 == 0 && wanted.height % 2 == 0
            default: return false
            }
        }
        func keeps(_ bounds: FrameDurationBounds) -> Bool {
            guard duration <= (bounds.maxFrameDuration ?? duration) else { return false }
            return pixelFormat != .h264 || duration >= (bounds.minFrameDuration ?? duration)
        }
        let hasColour = formats.contains { ![.grey, .h264].contains($0.pixelFormat) }
        switch wish {
        case .nothing, .preset(.inputPriority): return true
        case .format(let selection, let id, let durations):
            return selection == setting.format && (id == nil || id == setting.formatID)
                && keeps(durations ?? FrameDurationBounds())
        case .size(let wanted, let output, let rate):
            if hasColour, output != .grey, output != .h264, [.grey, .h264].contains(pixelFormat) { return false }
            return scales(wanted, output)
                && keeps(rate.map { FrameDurationBounds(constant: $0) } ?? FrameDurationBounds())
        case .preset(let preset):
            guard let resolution = preset.resolve(for: formats) else { return false }
            if hasColour, [.grey, .h264].contains(pixelFormat) { return false }
            return scales(resolution.dimensions, nil)
                && keeps(FrameDurationBounds(min: resolution.frameDuration))
        case .rendition: return false
        }
    }

    /// Why somebody doesn't get with it what was wanted; nil: it does.
    private func unfit(_ delivery: DemandDelivery, for wish: CaptureDemand.Wish, _ setting: StreamSetting) -> String? {
        let rendition = delivery.rendition
        if (try? Rendition(parsing: rendition.description)) != rendition { return "no rendition" }
        let size = setting.format.dimensions
        if rendition.encoding == .native {
            if delivery.dimensions != size { return "native isn't scaled" }
        } else if setting.format.pixelFormat == .h264 {
            return "nothing is made of H.264"
        }
        if let width = rendition.width, let height = rendition.height, rendition.videoRotationAngle == 0,
            width > size.width || height > size.height
        {
            return "made larger"
        }
        if let duration = delivery.frameDuration, let own = setting.frameDuration {
            if duration < own { return "faster than the device" }
            if rendition.rateMillionths == nil, duration != own { return "decimated by nobody" }
        }
        switch wish {
        case .rendition(let wanted): return wanted == rendition ? nil : "another rendition"
        case .nothing, .preset(.inputPriority): return rendition == Rendition(.native) ? nil : "not as it is"
        case .size(let wanted, _, _):
            if wanted != delivery.dimensions { return "another size" }
        case .preset(let preset):
            if preset.resolve(for: formats)?.dimensions != delivery.dimensions { return "another size" }
        case .format: break
        }
        // A device that is kept as it is set may be in no row, which nothing is wrong with.
        return fits(wish, setting) ? nil : "not what it wants"
    }
}

extension ArbiterDecision.Verdict {
    fileprivate var isInterrupted: Bool { if case .interrupted = outcome { true } else { false } }
    fileprivate var isSatisfied: Bool { if case .satisfied = outcome { true } else { false } }
}
