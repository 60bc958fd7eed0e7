import Glibc
public import JSON

// What of a photo's settings a camera takes otherwise than they were asked for.

extension PhotoResolution {
    /// In doublings of light: what differs by less is as it was asked for.
    public static let tolerance = 0.05

    /// The same with the exposures that the photos were taken with, as far as those are known.
    public func with(exposuresOf photos: [PhotoResult]) -> PhotoResolution {
        var resolution = self
        let exposures = Dictionary(
            photos.filter { $0.device == device }.map { ($0.index, $0.exposure) },
            uniquingKeysWith: { first, _ in first })
        switch bracket {
        case .exposureBias(let steps)?:
            resolution.bracket = .exposureBias(
                steps.enumerated().map { (exposures[$0.offset] ?? nil)?.bias ?? $0.element })
        case .exposureDuration(let steps)?:
            resolution.bracket = .exposureDuration(
                steps.enumerated().map { (exposures[$0.offset] ?? nil)?.duration ?? $0.element })
        case nil: break
        }
        return resolution
    }

    /// The steps of a bracket that the camera takes otherwise, and those that are the same to it: {device, path, asked,
    /// given, why}, with the path as `settings.bracket.exposureBias[0]`.
    ///
    /// - Parameter settings: as they were asked for.
    public func adjustments(to settings: PhotoSettings) -> [JSONValue] {
        guard let wanted = settings.bracket, let bracket else { return [] }
        let (asked, given) = (wanted.stops, bracket.stops)
        guard wanted.member == bracket.member, asked.count == given.count else { return [] }
        return asked.indices.compactMap { index -> JSONValue? in
            let twin = asked.indices.prefix(index).first {
                abs(given[$0] - given[index]) < Self.tolerance && abs(asked[$0] - asked[index]) >= Self.tolerance
            }
            guard twin != nil || abs(asked[index] - given[index]) >= Self.tolerance else { return nil }
            let adjustment = Adjustment(
                path: "settings.bracket.\(wanted.member)[\(index)]", asked: wanted.value(index),
                given: bracket.value(index),
                why: twin.map { "The camera takes the same exposure for step \($0 + 1)." }
                    ?? "The camera has no nearer exposure.")
            return .object((adjustment.json.object ?? [:]).merging(["device": .string(device)]) { $1 })
        }
    }
}

extension PhotoBracket {
    /// As it is called in the settings.
    fileprivate var member: String {
        switch self {
        case .exposureBias: "exposureBias"
        case .exposureDuration: "exposureDuration"
        }
    }

    /// Of each step, in doublings of light.
    fileprivate var stops: [Double] {
        switch self {
        case .exposureBias(let steps): steps
        case .exposureDuration(let steps): steps.map { log2(Double(max($0, 1))) }
        }
    }

    /// EV, or seconds.
    fileprivate func value(_ index: Int) -> JSONValue {
        switch self {
        case .exposureBias(let steps): .number(steps[index])
        case .exposureDuration(let steps): .number(Double(steps[index]) / 1e9)
        }
    }
}
