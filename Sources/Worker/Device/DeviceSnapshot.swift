import BusProtocol
import CaptureCore
import JSON

/// What was read from the open device at one moment.
struct DeviceSnapshot: Hashable, Sendable {
    /// The controls' flags and ranges are those of that moment.
    var description: DeviceDescription
    var configuration: DeviceConfiguration
    /// What the device states about the pictures of its present setting.
    var formatDescription: FormatDescription
    /// When reading began: earlier events contain nothing new. Monotonic nanoseconds.
    var began: Int64
    /// When its controls were read: monotonic nanoseconds.
    var asOf: Int64
    /// ``MeteringState/revision`` then.
    var meteringRevision: UInt64 = 0

    /// The camera controls that the device has now.
    var cameraControls: CameraControlMap { description.cameraControls(formatID: configuration.formatID) }

    /// All controls' values: the drivers' and the model's.
    var values: [String: JSONValue] {
        let camera = cameraControls.values(
            configuration.controls, words: configuration.words, isRamping: configuration.isRampingZoom)
        return configuration.controls.mapValues(\.json).merging(camera) { own, _ in own }
    }
}

/// What was last set by order: put back whenever the device is opened anew, also by another process.
struct CommittedConfiguration: Hashable, Sendable {
    var generation: UInt64
    var format: FormatSelection
    /// nil: the device has none.
    var frameDuration: FrameDuration?
    /// Those controls that were ever asked for, in the order in which they are to be set.
    var controls: [PlannedControl]
    /// ``DeviceConfiguration/words``
    var words: [String: String] = [:]
    /// What ``format`` and ``frameDuration`` stand in for, as there was no room for that; nil: they are what was asked
    /// for.
    var wish: Wish?

    struct Wish: Hashable {
        var format: FormatSelection
        var frameDuration: FrameDuration?
    }

    /// What stood in for a wish is forgotten.
    mutating func endStandIn() {
        guard let wish else { return }
        (format, frameDuration) = (wish.format, wish.frameDuration)
        self.wish = nil
    }

    /// The same after a further change.
    ///
    /// To a value that was set belongs the mode in which it counts: a camera that starts in its automatic mode would
    /// have the value put back and go on as it likes. What the change doesn't name stays as it was committed, however
    /// the device is now: another program may have set it.
    ///
    /// - Parameter isStandIn: the format, or its rate, is not what was asked for.
    func changed(
        by plan: ConfigurationPlan, generation: UInt64, to now: DeviceSnapshot, isStandIn: Bool = false
    ) -> Self {
        let table = now.description.controls
        let values = now.configuration.controls
        var names = Set(plan.controls.map(\.name))
        var set: [PlannedControl] = []
        for planned in plan.controls {
            guard let control = table.first(where: { $0.name == planned.name }), control.canBePutBack,
                let value = values[planned.name]
            else { continue }
            for gate in ControlGate.gates(of: control.id) {
                guard let mode = table.first(where: { $0.id == gate.controller }), !names.contains(mode.name),
                    let value = values[mode.name], gate.isOpen(value)
                else { continue }
                let isCommitted = controls.contains { $0.name == mode.name && gate.isOpen($0.value) }
                guard !isCommitted else { continue }
                names.insert(mode.name)
                set.append(PlannedControl(name: mode.name, value: value))
            }
            set.append(PlannedControl(name: planned.name, value: value))
        }
        // One selection of the driver's is behind both.
        for planned in set { CropRectangleControl.rivals[planned.name].map { _ = names.insert($0) } }
        let setsRate = plan.format != nil || plan.frameDuration != nil
        var changed = Self(
            generation: generation,
            format: plan.format != nil || plan.setsCropRectangle ? now.configuration.format : format,
            frameDuration: setsRate ? now.configuration.frameDuration : frameDuration,
            controls: controls.filter { !names.contains($0.name) } + set)
        changed.words = words.merging(plan.words) { $1 }
        // A format may come with another part of the sensor's picture. What was set last counts.
        let crop = CropRectangleControl.name
        if plan.format != nil, let part = values[crop], changed.controls.contains(where: { $0.name == crop }) {
            changed = changed.setting(crop, to: part)
        }
        if setsRate, isStandIn {
            changed.wish = wish ?? Wish(format: format, frameDuration: frameDuration)
        } else if plan.format == nil {
            changed.wish = wish
            // A rate alone is asked for in the format that was.
            if setsRate { changed.wish?.frameDuration = changed.frameDuration }
        }
        return changed
    }

    /// The same with one control set to another value.
    func setting(_ name: String, to value: ControlValue) -> Self {
        var changed = self
        changed.controls.removeAll { $0.name == name || $0.name == CropRectangleControl.rivals[name] }
        changed.controls.append(PlannedControl(name: name, value: value))
        return changed
    }

    /// {generation, activeFormat, frameDuration, controls: [{name, value}], words?, insteadOf?: {activeFormat,
    /// frameDuration}}
    var json: JSONValue {
        .members([
            "generation": JSONValue(generation), "activeFormat": format.json,
            "frameDuration": frameDuration?.json ?? .null,
            "controls": .array(controls.map { ["name": .string($0.name), "value": $0.value.json] }),
            "words": words.isEmpty ? .none : .some(.object(words.mapValues(JSONValue.string))),
            "insteadOf": wish.map {
                ["activeFormat": $0.format.json, "frameDuration": $0.frameDuration?.json ?? .null]
            },
        ])
    }

    init(generation: UInt64, format: FormatSelection, frameDuration: FrameDuration?, controls: [PlannedControl]) {
        self.generation = generation
        self.format = format
        self.frameDuration = frameDuration
        self.controls = controls
    }

    /// Reads what ``json`` writes. What stood in for a wish does so no more.
    init(json: JSONValue) throws(BusError) {
        guard let generation = json["generation"]?.integer.flatMap({ UInt64(exactly: $0) }) else {
            throw .invalidParams("generation", "must be a whole number, 0 or more")
        }
        self.generation = generation
        let setting = json["insteadOf"] ?? json
        format = try FormatSelection(json: setting["activeFormat"] ?? .null, path: "activeFormat")
        let duration = setting["frameDuration"] ?? .null
        frameDuration = duration.isNull ? nil : try FrameDuration(json: duration, path: "frameDuration")
        words = (json["words"]?.object ?? [:]).compactMapValues(\.string)
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
