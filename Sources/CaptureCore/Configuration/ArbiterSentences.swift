import BusProtocol

/// Says in whole sentences what was decided about a device, and why.
struct ArbiterSentences {
    let device: String
    let table: FormatTable
    let setting: StreamSetting?
    let lock: CaptureParty?
    /// It is not so now: the device is not there, or who wants it has not been started.
    var isForecast = false

    /// More names than these are only counted.
    private static let maximumNames = 8

    func sentences(_ verdicts: [ArbiterDecision.Verdict]) -> [String] {
        var sentences = [first(verdicts)]
        let demands = Dictionary(verdicts.map { ($0.demand.party, $0.demand) }) { first, _ in first }
        var waiting = 0
        for verdict in verdicts {
            switch verdict.outcome {
            case .satisfied:
                let party = verdict.demand.party
                if party.kind == .subscriber, verdict.demand.follows {
                    sentences.append("\(party.told) \(party.verb("follow")), whatever \(device) is set to.")
                }
            case .unsupported(let why):
                let party = verdict.demand.party
                sentences.append("\(party.told) \(party.verb("get")) nothing: \(why).")
            case .interrupted(_, let party):
                waiting += 1
                let because = because(of: demands[party], party, verdict.demand)
                let loser = verdict.demand.party
                let wants = loser.count == 1 ? "it wants" : "they want"
                sentences.append(
                    "\(loser.told) \(loser.verb("wait")): \(wants) \(told(verdict.demand.wish)), and \(because).")
            }
        }
        if waiting > 0 { sentences.append("Waiting sessions resume by themselves when that ends.") }
        return sentences
    }

    // MARK: What it streams, and who gets it how

    private func first(_ verdicts: [ArbiterDecision.Verdict]) -> String {
        guard let setting else { return "\(device) streams nothing." }
        let served = verdicts.compactMap { verdict -> Served? in
            guard case .satisfied(let delivery) = verdict.outcome else { return nil }
            // Those who follow are told of by themselves.
            guard verdict.demand.party.kind != .subscriber || !verdict.demand.follows else { return nil }
            return (verdict.demand.party, how(delivery, setting))
        }
        let what =
            lock.map { "\(device) is locked by \($0.told) and stays at \(Self.told(setting))" }
            ?? "\(device) \(isForecast ? "would stream" : "streams") \(Self.told(setting))"
        guard let only = served.first else {
            return verdicts.isEmpty ? "\(what); no other request differs." : "\(what)."
        }
        if served.count == 1 {
            return only.how == Self.asItIs
                ? "\(what), for \(only.party.told)."
                : "\(what), which \(only.party.told) \(only.party.verb("get")) \(only.how)."
        }
        let count = served.reduce(0) { $0 + $1.party.count }
        return "\(what), which serves \(count == 2 ? "both" : "all \(count)"): \(list(served))."
    }

    private typealias Served = (party: CaptureParty, how: String)

    private func list(_ served: [Served]) -> String {
        var parts: [String] = []
        var last: String?
        for (party, how) in served.prefix(Self.maximumNames) {
            let name = party.told
            parts.append(
                parts.isEmpty
                    ? "\(name) \(party.verb("get")) it \(how)" : how == last ? "\(name) too" : "\(name) \(how)")
            last = how
        }
        let others = served.dropFirst(Self.maximumNames).reduce(0) { $0 + $1.party.count }
        if others > 0 { parts.append("and \(others) more") }
        return parts.joined(separator: ", ")
    }

    private static let asItIs = "as it is"

    private func how(_ delivery: DemandDelivery, _ setting: StreamSetting) -> String {
        var words: [String] = []
        let encoding = delivery.rendition.encoding
        if delivery.dimensions != setting.format.dimensions { words.append("scaled to \(delivery.dimensions)") }
        if encoding != .native, encoding != setting.format.pixelFormat.renditionEncoding {
            words.append("as \(encoding.rawValue)")
        }
        if let duration = delivery.frameDuration, duration != setting.frameDuration {
            words.append("at \(Self.told(duration))")
        }
        return words.isEmpty ? Self.asItIs : words.joined(separator: " ")
    }

    // MARK: Why somebody waits

    private func because(of winner: CaptureDemand?, _ party: CaptureParty, _ loser: CaptureDemand) -> String {
        guard party.kind != .lock else { return "\(party.told) has \(device) locked" }
        guard let winner else { return "\(party.told) has it" }
        let right =
            if loser.party.kind == .subscriber, winner.party.kind != .subscriber {
                "which has a session"
            } else if winner.priority != loser.priority {
                "which has the higher priority (\(winner.priority) against \(loser.priority))"
            } else {
                "which was there first"
            }
        return "\(party.told), \(right), has \(told(winner.wish))"
    }

    private func told(_ wish: CaptureDemand.Wish) -> String {
        switch wish {
        case .format(let selection, _, let durations):
            let rate = durations.flatMap { Self.told($0) } ?? ""
            return "the format \(selection.dimensions) \(selection.pixelFormat.name)\(rate)"
        case .size(let size, let pixelFormat, let duration):
            return "\(size)\(pixelFormat.map { " \($0.name)" } ?? "")\(duration.map { " at \(Self.told($0))" } ?? "")"
        case .preset(let preset):
            guard let resolution = table.resolution(of: preset), preset.dimensions == nil else {
                return "the preset \(preset.rawValue)"
            }
            return "the preset \(preset.rawValue) (\(resolution.dimensions))"
        case .rendition(let rendition): return rendition.description
        case .nothing: return "whatever there is"
        }
    }

    // MARK: Values

    /// `1920x1080 MJPG at 30/s`
    static func told(_ setting: StreamSetting) -> String {
        let format = "\(setting.format.dimensions) \(setting.format.pixelFormat.name)"
        return setting.frameDuration.map { "\(format) at \(told($0))" } ?? format
    }

    /// `30/s`, `29.97/s`
    static func told(_ duration: FrameDuration) -> String {
        let hundredths = (min(duration.framesPerSecond, 1e9) * 100).rounded()
        guard hundredths >= 1 else { return "less than 0.01/s" }
        let (whole, part) = Int(hundredths).quotientAndRemainder(dividingBy: 100)
        let digits = part == 0 ? "" : part % 10 == 0 ? ".\(part / 10)" : part < 10 ? ".0\(part)" : ".\(part)"
        return "\(whole)\(digits)/s"
    }

    private static func told(_ bounds: FrameDurationBounds) -> String? {
        switch (bounds.minFrameDuration, bounds.maxFrameDuration) {
        case (let low?, let high?): low == high ? " at \(told(low))" : " at \(told(high)) to \(told(low))"
        case (let low?, nil): " at up to \(told(low))"
        case (nil, let high?): " at \(told(high)) or more"
        case (nil, nil): nil
        }
    }
}

extension CaptureParty {
    /// What people call it.
    var told: String { name.isEmpty ? "\(kind.rawValue) \(id)" : name }

    fileprivate func verb(_ verb: String) -> String { count == 1 ? "\(verb)s" : verb }
}
