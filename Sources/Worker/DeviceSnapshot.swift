import BusProtocol
import CaptureCore
import JSON

/// What was read from the open device at one moment.
struct DeviceSnapshot: Hashable, Sendable {
    /// The controls' flags and ranges are those of that moment.
    var description: DeviceDescription
    var configuration: DeviceConfiguration
    /// When its controls were read: monotonic nanoseconds.
    var asOf: Int64
}

/// What was last set by order: put back whenever the device is opened anew, also by another process.
struct CommittedConfiguration: Hashable, Sendable {
    var generation: UInt64
    var format: FormatSelection
    /// nil: the device has none.
    var frameDuration: FrameDuration?
    /// Those controls that were ever asked for, in the order in which they are to be set.
    var controls: [PlannedControl]

    /// The same after a further change.
    func changed(by plan: ConfigurationPlan, generation: UInt64, to now: DeviceConfiguration) -> Self {
        let names = Set(plan.controls.map(\.name))
        let set = plan.controls.compactMap { planned in
            now.controls[planned.name].map { PlannedControl(name: planned.name, value: $0) }
        }
        return Self(
            generation: generation, format: now.format, frameDuration: now.frameDuration,
            controls: controls.filter { !names.contains($0.name) } + set)
    }

    /// {generation, activeFormat, frameDuration, controls: [{name, value}]}
    var json: JSONValue {
        [
            "generation": JSONValue(generation), "activeFormat": format.json,
            "frameDuration": frameDuration?.json ?? .null,
            "controls": .array(controls.map { ["name": .string($0.name), "value": $0.value.json] }),
        ]
    }

    init(generation: UInt64, format: FormatSelection, frameDuration: FrameDuration?, controls: [PlannedControl]) {
        self.generation = generation
        self.format = format
        self.frameDuration = frameDuration
        self.controls = controls
    }

    /// Reads what ``json`` writes.
    init(json: JSONValue) throws(BusError) {
        guard let generation = json["generation"]?.integer.flatMap({ UInt64(exactly: $0) }) else {
            throw .invalidParams("generation", "must be a count")
        }
        self.generation = generation
        format = try FormatSelection(json: json["activeFormat"] ?? .null, path: "activeFormat")
        let duration = json["frameDuration"] ?? .null
        frameDuration = duration.isNull ? nil : try FrameDuration(json: duration, path: "frameDuration")
        controls = []
        for (index, control) in (json["controls"]?.array ?? []).enumerated() {
            guard let name = control["name"]?.string else {
                throw .invalidParams("controls[\(index)].name", "is missing")
            }
            let value = try ControlValue(json: control["value"] ?? .null, path: "controls[\(index)].value")
            controls.append(PlannedControl(name: name, value: value))
        }
    }
}
