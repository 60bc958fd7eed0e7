import BusProtocol
import CaptureCore
import JSON

/// What was last set by order at a microphone: put back whenever it is opened anew, also by another process.
struct CommittedSound: Hashable, Sendable {
    var generation: UInt64
    /// nil: no format was ever asked for.
    var format: SoundFormat?
    /// Those controls that were ever asked for.
    var controls: [PlannedControl] = []

    init(generation: UInt64) { self.generation = generation }

    /// The same after a further change.
    func changed(by plan: SoundPlan, generation: UInt64, to now: SoundConfiguration) -> Self {
        var changed = self
        changed.generation = generation
        if plan.format != nil { changed.format = now.format }
        for planned in plan.controls {
            changed.controls.removeAll { $0.name == planned.name }
            changed.controls.append(
                PlannedControl(name: planned.name, value: now.controls[planned.name] ?? planned.value))
        }
        return changed
    }

    /// {generation, activeFormat, controls: [{name, value}]}
    var json: JSONValue {
        [
            "generation": JSONValue(generation), "activeFormat": format?.json(id: nil) ?? .null,
            "controls": .array(controls.map { ["name": .string($0.name), "value": $0.value.json] }),
        ]
    }

    /// Reads what ``json`` writes.
    init(json: JSONValue) throws(BusError) {
        guard let generation = json["generation"]?.integer.flatMap({ UInt64(exactly: $0) }) else {
            throw .invalidParams("generation", "must be a whole number, 0 or more")
        }
        self.generation = generation
        if let value = json["activeFormat"], !value.isNull {
            format = try SoundFormat(json: value, path: "activeFormat")
        }
        for (index, control) in (json["controls"]?.array ?? []).enumerated() {
            guard let name = control["name"]?.string else {
                throw .invalidParams("controls[\(index)].name", "is missing")
            }
            let value = try ControlValue(json: control["value"] ?? .null, path: "controls[\(index)].value")
            controls.append(PlannedControl(name: name, value: value))
        }
    }
}

/// What was read from the open microphone at one moment.
struct SoundSnapshot: Hashable, Sendable {
    /// The controls' flags and ranges are those of that moment.
    var description: MicrophoneDescription
    var configuration: SoundConfiguration
    /// Monotonic nanoseconds.
    var asOf: Int64

    var activeFormat: JSONValue {
        configuration.format.json(id: description.formatID(of: configuration.format))
    }

    /// {controls, cameraControls, supports, asOf}: what `device.controls` answers.
    var controlsJSON: JSONValue {
        [
            "controls": .array(description.controls.map { $0.json(value: configuration.controls[$0.name]) }),
            "cameraControls": [], "supports": [:], "asOf": .integer(asOf),
        ]
    }
}

/// A change that was checked against the microphone and can be made.
struct PreparedSound: Hashable, Sendable {
    var plan: SoundPlan
    /// How it would be set.
    var outcome: SoundSnapshot

    /// {activeFormat, frameDuration, controls, adjusted}
    var json: JSONValue { outcome.json(of: plan) }

    /// The stream has to be stopped to make it.
    func needsQuiet(_ present: SoundSnapshot) -> Bool {
        plan.format.map { $0 != present.configuration.format } ?? false
    }
}

/// A change that was made, with what is needed to take it back.
struct AppliedSound: Hashable, Sendable {
    var plan: SoundPlan
    var generation: UInt64
    var now: SoundSnapshot
    var before: SoundConfiguration
    var committedBefore: CommittedSound?

    /// {generation, activeFormat, frameDuration, controls, adjusted}
    var json: JSONValue {
        var members = now.json(of: plan).object ?? [:]
        members["generation"] = JSONValue(generation)
        return .object(members)
    }
}

extension SoundSnapshot {
    // Of the controls only those that were asked for: the others are in the device's state.
    fileprivate func json(of plan: SoundPlan) -> JSONValue {
        let names = Set(plan.controls.map(\.name))
        return [
            "activeFormat": activeFormat, "frameDuration": .null,
            "controls": .object(configuration.controls.filter { names.contains($0.key) }.mapValues(\.json)),
            "adjusted": .array(plan.adjustments.map(\.json)),
        ]
    }
}
