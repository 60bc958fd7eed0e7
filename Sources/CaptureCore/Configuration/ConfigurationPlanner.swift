public import BusProtocol
import JSON

/// Checks what is asked of a device against what it can do, before anything is touched.
///
/// What the design leaves open is decided so:
/// - A size without a pixel format takes the present pixel format if it has the size; else uncompressed colour, if that
///   reaches the rate, else Motion JPEG, else whatever there is. A rate that is asked in the same change counts for
///   more than the present pixel format.
/// - A new format keeps the present rate if it has it. If not, the nearest one is taken and told as an adjustment, in
///   both modes: nobody asked for that rate, so nothing that was asked is refused.
/// - The id of a format whose size can vary means its largest size.
/// - A frame rate within a range is the present one if it lies within, else the highest.
/// - A menu item, a text, an array and an unknown format's id have no nearest: they are refused in both modes.
public struct ConfigurationPlanner: Sendable {
    let description: DeviceDescription

    /// - Parameter description: the device as it is now; the controls' flags and ranges change with its modes.
    public init(description: DeviceDescription) { self.description = description }

    /// What is to be set so that the device is as asked.
    ///
    /// - Parameters:
    ///   - path: where the change stands in the request: `changes[0]`.
    ///   - current: how the device is set now.
    /// - Throws: `formatUnsupported` {nearest}, `frameRateUnsupported` {ranges}, `controlUnsupported` {control,
    ///   supported}, `controlOutOfRange` {control, min, max, step}, `controlReadOnly` {control}, `controlBusy`
    ///   {control}, or `invalidParams` {path, why} for a value of the wrong type.
    public func plan(
        _ change: ConfigurationChange, path: String, current: DeviceConfiguration, mode: ConfigurationMode
    ) throws(BusError) -> ConfigurationPlan {
        var plan = ConfigurationPlan()
        let present = description.formats.first { $0.id == current.formatID } ?? row(of: current.format)
        var formats = present.map { [$0] } ?? []
        if let request = change.activeFormat {
            let choice = try choose(request, change, current, mode)
            let selection = FormatSelection(
                pixelFormat: choice.format.pixelFormat, dimensions: choice.size, variant: choice.format.variant)
            plan.format = selection
            plan.formatID = choice.format.id
            formats = [choice.format] + choice.alternatives
            if let why = choice.adjusted {
                let given = selection.json(id: choice.format.id)
                plan.adjustments.append(
                    Adjustment(
                        path: ConfigurationChange.path(of: "activeFormat", in: path), asked: request.json, given: given,
                        why: why))
            }
        }
        try planRate(change, formats, path, current, mode, into: &plan)
        try planControls(change, path, current, mode, into: &plan)
        return plan
    }

    // MARK: Format

    private struct Choice {
        var format: CaptureFormat
        var size: Dimensions
        /// Other rows that the request fits as well.
        var alternatives: [CaptureFormat] = []
        var adjusted: String?
    }

    private func row(of selection: FormatSelection) -> CaptureFormat? {
        description.formats.first { $0.isRow(of: selection) }
    }

    private func choose(
        _ request: FormatRequest, _ change: ConfigurationChange, _ current: DeviceConfiguration,
        _ mode: ConfigurationMode
    ) throws(BusError) -> Choice {
        switch request {
        case .id(let id):
            if let format = description.formats.first(where: { $0.id == id }) {
                return Choice(format: format, size: format.dimensions)
            }
            let nearest = row(of: current.format) ?? description.formats.first
            throw unsupported(
                "\(change.device) has no format \(id)", nearest.map { Choice(format: $0, size: $0.dimensions) })
        case .size(let pixelFormat, let size):
            let ofKind = pixelFormat.map { kind in description.formats.filter { $0.pixelFormat == kind } }
            let exact = (ofKind ?? description.formats).filter { $0.has(size) }
            let ranked = rank(exact, change, current)
            if let best = ranked.first {
                return Choice(format: best, size: size, alternatives: Array(ranked.dropFirst()))
            }
            let pool = ofKind.map { $0.isEmpty ? description.formats : $0 } ?? description.formats
            let asked = (pixelFormat.map { "\($0.name) at " } ?? "") + size.description
            guard var nearest = nearest(to: size, in: pool, change, current) else {
                throw unsupported("\(change.device) has no format", nil)
            }
            guard mode == .nearest else { throw unsupported("\(change.device) has no \(asked)", nearest) }
            nearest.adjusted = "\(change.device) has no \(asked)."
            return nearest
        case .sound:
            let nearest = row(of: current.format).map { Choice(format: $0, size: current.format.dimensions) }
            throw unsupported(
                "\(change.device) is a camera; its formats have a pixel format, a width and a "
                    + "height", nearest)
        }
    }

    private func nearest(
        to size: Dimensions, in formats: [CaptureFormat], _ change: ConfigurationChange, _ current: DeviceConfiguration
    ) -> Choice? {
        let sizes = formats.map { $0.nearestSize(to: size) }
        // Of two sizes as far away the larger: a picture can be made smaller, but not larger.
        let best = sizes.min { ($0.distance(to: size), -$0.area) < ($1.distance(to: size), -$1.area) }
        guard let best else { return nil }
        let candidates = zip(formats, sizes).filter { $0.1 == best }.map(\.0)
        return rank(candidates, change, current).first.map { Choice(format: $0, size: best) }
    }

    /// The best first.
    private func rank(
        _ formats: [CaptureFormat], _ change: ConfigurationChange, _ current: DeviceConfiguration
    ) -> [CaptureFormat] {
        let wanted = change.frameRate ?? current.frameDuration.map(FrameRateRequest.duration)
        let ranks = formats.enumerated().map { index, format in
            let isOther = format.pixelFormat == current.format.pixelFormat ? 0.0 : 1.0
            let far = wanted.map {
                FrameRateMatch($0, in: format.frameRates, present: current.frameDuration).distance
            }
            let first = change.frameRate == nil ? (isOther, far ?? 0) : (far ?? 0, isOther)
            return (format, (first.0, first.1, format.pixelFormat.preference, index))
        }
        return ranks.sorted { $0.1 < $1.1 }.map(\.0)
    }

    private func unsupported(_ problem: String, _ nearest: Choice?) -> BusError {
        guard let nearest else { return BusError(.formatUnsupported, "\(problem).", ["nearest": .null]) }
        let selection = FormatSelection(pixelFormat: nearest.format.pixelFormat, dimensions: nearest.size)
        return BusError(
            .formatUnsupported,
            "\(problem); the nearest format is \(selection.pixelFormat.name) at \(selection.dimensions) "
                + "(id \(nearest.format.id)).",
            ["nearest": selection.json(id: nearest.format.id)])
    }

    // MARK: Frame rate

    /// - Parameter formats: the row that will be set, then others that the format request would have fitted.
    private func planRate(
        _ change: ConfigurationChange, _ formats: [CaptureFormat], _ path: String, _ current: DeviceConfiguration,
        _ mode: ConfigurationMode, into plan: inout ConfigurationPlan
    ) throws(BusError) {
        let ranges = formats.first?.frameRates ?? []
        if let request = change.frameRate {
            let match = FrameRateMatch(request, in: ranges, present: current.frameDuration)
            plan.frameDuration = match.duration
            if match.distance == 0 {
                if case .range(let low?, let high?) = request, low != high, let given = match.duration {
                    plan.adjustments.append(
                        Adjustment(
                            path: ConfigurationChange.path(of: "frameRate", in: path), asked: request.json,
                            given: given.json, why: "A device has one frame duration, which does not vary."))
                }
                return
            }
            let problem =
                ranges.isEmpty
                ? "the frame rate of \(change.device) can't be set" : "\(change.device) doesn't have this frame rate"
            guard mode == .nearest else { throw unsupported(problem, formats.flatMap(\.frameRates)) }
            let given = match.duration ?? current.frameDuration
            plan.adjustments.append(
                Adjustment(
                    path: ConfigurationChange.path(of: "frameRate", in: path), asked: request.json,
                    given: given?.json ?? .null,
                    why: ranges.isEmpty
                        ? "The driver has no setting for the frame "
                            + "rate." : "This format doesn't have this frame rate."
                ))
            return
        }
        guard let format = plan.format, format != current.format, let present = current.frameDuration else { return }
        let match = FrameRateMatch(.duration(present), in: ranges, present: present)
        plan.frameDuration = match.duration
        if let given = match.duration, match.distance > 0 {
            plan.adjustments.append(
                Adjustment(
                    path: ConfigurationChange.path(of: "frameRate", in: path), asked: present.json, given: given.json,
                    why: "The new format doesn't have the frame rate that was set."))
        }
    }

    private func unsupported(_ problem: String, _ ranges: [FrameRateRange]) -> BusError {
        var distinct: [FrameRateRange] = []
        for range in ranges where !distinct.contains(range) { distinct.append(range) }
        distinct.sort { ($0.minFrameDuration, $0.maxFrameDuration) < ($1.minFrameDuration, $1.maxFrameDuration) }
        let rates = distinct.map(\.told).joined(separator: ", ")
        return BusError(
            .frameRateUnsupported,
            rates.isEmpty ? "\(problem)." : "\(problem); it supports \(rates) frames per second.",
            ["ranges": .array(distinct.map(\.json))])
    }
}

extension FrameRateRange {
    fileprivate var told: String {
        let (low, high) = (maxFrameDuration.rateJSON.description, minFrameDuration.rateJSON.description)
        return low == high ? low : "\(low)–\(high)"
    }
}
