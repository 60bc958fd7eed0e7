/// Explains why cameras can't run together on a bus, and what settings would fit.
struct BandwidthSentences {
    let before: BandwidthBudget.Bus
    let after: BandwidthBudget.Bus
    let changes: [DegradePlan.Change]

    var sentences: [String] {
        let names = Self.list(before.loads.map(\.device))
        let isOne = before.loads.count == 1
        var sentences = [
            "\(before.link.busName) has room for \(Self.told(before.room)), and \(names) \(isOne ? "needs" : "need") "
                + "\(Self.told(before.bitRate))\(isOne ? "" : " together")."
        ]
        sentences += changes.map { "\($0.device) would stream \(Self.told($0))." }
        if after.hardwareCost <= 1 {
            sentences.append("That needs \(Self.told(after.bitRate)), which fits.")
        } else {
            sentences.append(
                changes.isEmpty
                    ? "None of these settings may be changed; \(Self.otherPort)."
                    : "Even that needs \(Self.told(after.bitRate)); \(Self.otherPort).")
        }
        return sentences
    }

    static func use(of bus: BandwidthBudget.Bus) -> String {
        let percent = Int((min(bus.hardwareCost, 1e6) * 100).rounded(.up))
        let names = list(bus.loads.map(\.device))
        let take = bus.loads.count == 1 ? "takes" : "take"
        return "\(names) \(take) \(percent) % of what \(bus.link.busName) has for cameras."
    }

    static func less(_ device: String, asked: StreamSetting, given: StreamSetting) -> String {
        let change = told(DegradePlan.Change(device: device, from: asked, to: given))
        return "\(device) had no bandwidth on its bus or no memory, and streams \(change)."
    }

    private static let otherPort = "stop one of them, or plug it into a port of another controller"

    private static func told(_ change: DegradePlan.Change) -> String {
        var parts: [(String, String)] = []
        let (from, to) = (change.from, change.to)
        if from.format.pixelFormat != to.format.pixelFormat {
            parts.append((to.format.pixelFormat.name, from.format.pixelFormat.name))
        }
        if from.format.dimensions != to.format.dimensions {
            parts.append(("\(to.format.dimensions)", "\(from.format.dimensions)"))
        }
        if let old = from.frameDuration, let new = to.frameDuration, old != new {
            parts.append(("at \(ArbiterSentences.told(new))", "\(ArbiterSentences.told(old))"))
        }
        return parts.map { "\($0) instead of \($1)" }.joined(separator: ", ")
    }

    private static func list(_ names: [String]) -> String {
        guard names.count > 1, let last = names.last else { return names.first ?? "nobody" }
        return names.dropLast().joined(separator: ", ") + " and " + last
    }

    /// `326 Mb/s`
    private static func told(_ bits: Double) -> String {
        let megabits = min(bits, 1e18) / 1_000_000
        return megabits < 10 ? "\((megabits * 10).rounded() / 10) Mb/s" : "\(Int(megabits.rounded())) Mb/s"
    }
}

extension BandwidthBudget.Bus {
    /// The used part of the bus, in a sentence for people.
    public var explanation: String { BandwidthSentences.use(of: self) }
}

extension BandwidthBudget {
    /// Why a camera is set to less than was decided, in a sentence for people.
    public static func explanation(of device: String, asked: StreamSetting, given: StreamSetting) -> String {
        BandwidthSentences.less(device, asked: asked, given: given)
    }
}
