public import BusProtocol
import JSON

/// How a microphone is set.
public struct SoundConfiguration: Hashable, Sendable {
    public var format: SoundFormat
    /// The values of those controls that can be read.
    public var controls: [String: ControlValue]

    public init(format: SoundFormat, controls: [String: ControlValue]) {
        self.format = format
        self.controls = controls
    }
}

/// What is to be set at a microphone, checked against what it can do.
public struct SoundPlan: Hashable, Sendable {
    /// nil: stays.
    public var format: SoundFormat?
    public var controls: [PlannedControl] = []
    public var adjustments: [Adjustment] = []

    public init() {}
}

/// Checks what is asked of a microphone against what it can do, before anything is touched.
///
/// What is not asked of a format stays: the present rate, channels and sample format, as far as the device has them
/// together with what is asked; else what is nearest to them.
public struct SoundPlanner: Sendable {
    private let description: MicrophoneDescription

    /// - Parameter description: the microphone as it is now; its controls' flags and ranges may change.
    public init(description: MicrophoneDescription) { self.description = description }

    /// What is to be set so that the microphone is as asked.
    ///
    /// - Parameters:
    ///   - path: where the change stands in the request: `changes[0]`.
    ///   - current: how it is set now.
    /// - Throws: `formatUnsupported` {nearest}, `controlUnsupported` {control, supported}, `controlOutOfRange`,
    ///   `controlReadOnly` {control}, or `invalidParams` {path, why}.
    public func plan(
        _ change: ConfigurationChange, path: String, current: SoundConfiguration, mode: ConfigurationMode
    ) throws(BusError) -> SoundPlan {
        guard change.frameRate == nil else {
            throw .invalidParams(
                ConfigurationChange.path(of: "frameRate", in: path),
                "\(change.device) is a microphone and has no frame rate; set a sample rate with activeFormat, as in "
                    + "{\"rate\": 48000}")
        }
        var plan = SoundPlan()
        if let request = change.activeFormat {
            plan.format = try choose(request, change.device, current.format)
            let isExact = try isJustSo(plan.format, request, current.format)
            if !isExact, let given = plan.format {
                let nearest = given.json(id: description.formatID(of: given))
                let why = "\(change.device) doesn't have this format."
                guard mode == .nearest else {
                    throw BusError(
                        .formatUnsupported, "\(why) The nearest format that it has is \(given.words).",
                        ["nearest": nearest])
                }
                plan.adjustments.append(
                    Adjustment(
                        path: ConfigurationChange.path(of: "activeFormat", in: path), asked: request.json,
                        given: nearest, why: why))
            }
        }
        try planControls(change, path, mode, into: &plan)
        return plan
    }

    // MARK: Format

    private func choose(
        _ request: FormatRequest, _ device: String, _ current: SoundFormat
    ) throws(BusError) -> SoundFormat {
        switch request {
        case .id(let id):
            guard let row = description.formats.first(where: { $0.id == id }) else {
                throw BusError(
                    .formatUnsupported, "\(device) has no format \(id); device.formats lists its formats.",
                    ["nearest": current.json(id: description.formatID(of: current))])
            }
            return row.nearest(to: current, SoundFormatRequest(sampleFormat: row.sampleFormat))
        case .size:
            throw BusError(
                .formatUnsupported,
                "\(device) is a microphone; its formats have a sampleFormat, a rate and channels.",
                ["nearest": current.json(id: description.formatID(of: current))])
        case .sound(let request):
            let found = description.formats.map { $0.nearest(to: current, request) }
            let best = found.enumerated().min { left, right in
                let (one, other) = (
                    left.element.distance(to: request, current), right.element.distance(to: request, current)
                )
                return one == other ? left.offset < right.offset : one < other
            }
            guard let best = best?.element else {
                throw BusError(.formatUnsupported, "\(device) has no format.", ["nearest": .null])
            }
            return best
        }
    }

    // What was asked is there; what wasn't may be otherwise.
    private func isJustSo(
        _ format: SoundFormat?, _ request: FormatRequest, _ current: SoundFormat
    ) throws(BusError) -> Bool {
        guard let format, case .sound(let request) = request else { return true }
        return request.sampleFormat ?? format.sampleFormat == format.sampleFormat
            && request.rate ?? format.rate == format.rate && request.channels ?? format.channels == format.channels
    }

    // MARK: Controls

    private func planControls(
        _ change: ConfigurationChange, _ path: String, _ mode: ConfigurationMode, into plan: inout SoundPlan
    ) throws(BusError) {
        let usable = description.controls.filter { !$0.flags.contains(.disabled) }
        for (name, json) in change.controls.sorted(by: { $0.key < $1.key }) {
            guard let control = usable.first(where: { $0.name == name }) else {
                throw BusError(
                    .controlUnsupported,
                    "\(change.device) has no control \(name); device.controls lists its controls.",
                    [
                        "control": .string(name),
                        "supported": JSONValue(usable.filter { !$0.flags.contains(.readOnly) }.map(\.name).sorted()),
                    ])
            }
            guard !control.flags.contains(.readOnly) else {
                throw BusError(.controlReadOnly, "\(name) is read-only.", ["control": .string(name)])
            }
            let controlPath = ConfigurationChange.path(of: "controls.\(name)", in: path)
            let input = ControlInput(control: control, path: controlPath, mode: mode)
            let (value, adjusted) = try input.value(of: dataSource(json, of: control))
            plan.controls.append(PlannedControl(name: name, value: value))
            if let adjusted {
                plan.adjustments.append(Adjustment(path: controlPath, asked: json, given: value.json, why: adjusted))
            }
        }
    }

    // A data source goes by its id too, beside its name and its number.
    private func dataSource(_ json: JSONValue, of control: CaptureControl) -> JSONValue {
        guard control.name == MicrophoneControl.dataSource, let id = json.string,
            let index = description.dataSources.firstIndex(where: { $0.id == id })
        else { return json }
        return JSONValue(index)
    }
}

extension SoundFormat {
    /// For people: `s16, 48000 Hz, 2 channels`.
    public var words: String { "\(sampleFormat.rawValue), \(rate) Hz, \(channels) channel\(channels == 1 ? "" : "s")" }

    // What was asked counts most, then what is set.
    fileprivate func distance(to request: SoundFormatRequest, _ current: SoundFormat) -> Int64 {
        func far(_ value: Int, _ asked: Int?, _ present: Int) -> Int64 {
            if let asked { return Int64(abs(value - asked)) << 20 }
            return Int64(abs(value - present))
        }
        var distance = far(rate, request.rate, current.rate)
        distance += 1000 * far(channels, request.channels, current.channels)
        if let asked = request.sampleFormat {
            if sampleFormat != asked { distance += 1 << 40 }
        } else if sampleFormat != current.sampleFormat {
            distance += 100
        }
        return distance
    }
}

extension MicrophoneFormat {
    // Of this row, what comes nearest to what is asked, else to what is set.
    fileprivate func nearest(to current: SoundFormat, _ request: SoundFormatRequest) -> SoundFormat {
        let wanted = request.rate ?? current.rate
        var rate = rates.min { abs($0 - wanted) < abs($1 - wanted) } ?? wanted
        if let rateRange { rate = min(max(wanted, rateRange.lowerBound), rateRange.upperBound) }
        let channels = min(max(request.channels ?? current.channels, channels.lowerBound), channels.upperBound)
        let format = SoundFormat(sampleFormat: sampleFormat, rate: rate, channels: channels)
        return format.isSame(as: current) ? current : format
    }
}
