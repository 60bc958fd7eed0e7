import BusProtocol
import CaptureCore
import JSON

/// What was set at the device for a photo: it replaces the previous values until they are restored, and is never
/// committed.
struct StandIn: Hashable, Sendable {
    /// How the device was.
    var before: DeviceConfiguration
    /// All that was set.
    var plan: ConfigurationPlan

    var setsFormat: Bool { plan.format != nil }

    /// Names of controls.
    var controls: Set<String> { Set(plan.controls.map(\.name)) }

    /// What a plan sets, in addition to what was set before it.
    init(_ plan: ConfigurationPlan, before: DeviceConfiguration, beside known: StandIn?) {
        self.before = known?.before ?? before
        self.plan = plan
        self.plan.adopt(known?.plan)
    }

    /// What the next process needs to put it back: {activeFormat, frameDuration, values: {name: value…}, setsFormat?,
    /// controls: [name…]}
    var json: JSONValue {
        .members([
            "activeFormat": before.format.json, "frameDuration": before.frameDuration?.json ?? .null,
            "values": .object(before.controls.mapValues(\.json)), "setsFormat": setsFormat ? .bool(true) : nil,
            "controls": JSONValue(plan.controls.map(\.name)),
        ])
    }

    /// Reads what ``json`` writes.
    init(json: JSONValue) throws(BusError) {
        let format = try FormatSelection(json: json["activeFormat"] ?? .null, path: "activeFormat")
        let duration = json["frameDuration"] ?? .null
        var values: [String: ControlValue] = [:]
        for (name, value) in json["values"]?.object ?? [:] {
            values[name] = try ControlValue(json: value, path: "values.\(name)")
        }
        before = DeviceConfiguration(
            format: format,
            frameDuration: duration.isNull ? nil : try FrameDuration(json: duration, path: "frameDuration"),
            controls: values)
        plan = ConfigurationPlan(
            format: json["setsFormat"] == true ? format : nil,
            controls: (json["controls"]?.array ?? []).compactMap(\.string).compactMap { name in
                values[name].map { PlannedControl(name: name, value: $0) }
            })
    }
}

extension ConfigurationPlan {
    /// Takes in what an earlier plan has set as well.
    fileprivate mutating func adopt(_ earlier: ConfigurationPlan?) {
        guard let earlier else { return }
        format = format ?? earlier.format
        formatID = formatID ?? earlier.formatID
        frameDuration = frameDuration ?? earlier.frameDuration
        let names = Set(controls.map(\.name))
        controls = earlier.controls.filter { !names.contains($0.name) } + controls
    }
}
