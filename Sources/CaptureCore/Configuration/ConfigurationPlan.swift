public import BusProtocol
public import JSON

/// How a device is set.
public struct DeviceConfiguration: Hashable, Sendable {
    /// The row of the format table; nil if the format is in none.
    public var formatID: String?
    public var format: FormatSelection
    /// nil: the device doesn't tell.
    public var frameDuration: FrameDuration?
    /// The values of those controls that can be read.
    public var controls: [String: ControlValue]
    /// What was asked of camera controls where the drivers' values mean several words at once: `exposureMode`. Not in
    /// ``json``.
    public var words: [String: String]
    /// A zoom ramp runs. Not in ``json``.
    public var isRampingZoom = false

    public init(
        formatID: String? = nil, format: FormatSelection, frameDuration: FrameDuration? = nil,
        controls: [String: ControlValue] = [:], words: [String: String] = [:]
    ) {
        self.formatID = formatID
        self.format = format
        self.frameDuration = frameDuration
        self.controls = controls
        self.words = words
    }

    /// {activeFormat: {id, pixelFormat, width, height}, frameDuration, controls}
    public var json: JSONValue {
        .object([
            "activeFormat": format.json(id: formatID), "frameDuration": frameDuration?.json ?? .null,
            "controls": .object(controls.mapValues(\.json)),
        ])
    }

    public init(json: JSONValue, path: String = "") throws(BusError) {
        var reader = try MemberReader(json, path: path)
        let formatPath = reader.path(of: "activeFormat")
        let formatJSON = try reader.required("activeFormat")
        var format = try MemberReader(formatJSON, path: formatPath)
        let controlsPath = reader.path(of: "controls")
        var controls: [String: ControlValue] = [:]
        guard let members = try reader.required("controls").object else {
            throw .invalidParams(controlsPath, "must be an object")
        }
        for (name, value) in members { controls[name] = try ControlValue(json: value, path: "\(controlsPath).\(name)") }
        self.init(
            formatID: format.known("id") == nil ? nil : try format.string("id"),
            format: try FormatSelection(json: formatJSON, path: formatPath),
            frameDuration: reader.known("frameDuration") == nil ? nil : try reader.duration("frameDuration"),
            controls: controls)
    }
}

/// Something that is given otherwise than it was asked, or changes with it unasked.
public struct Adjustment: Hashable, Sendable {
    /// Where it was asked: `changes[0].frameRate`.
    public var path: String
    /// What was asked; for a rate that a new format lacks, the rate that was.
    public var asked: JSONValue
    public var given: JSONValue
    /// One sentence for people.
    public var why: String

    public init(path: String, asked: JSONValue, given: JSONValue, why: String) {
        self.path = path
        self.asked = asked
        self.given = given
        self.why = why
    }

    /// {path, asked, given, why}
    public var json: JSONValue {
        .object(["path": .string(path), "asked": asked, "given": given, "why": .string(why)])
    }
}

/// A control and the value that it is to get.
public struct PlannedControl: Hashable, Sendable {
    public var name: String
    /// For a button any; it isn't used.
    public var value: ControlValue

    public init(name: String, value: ControlValue) {
        self.name = name
        self.value = value
    }
}

/// What is to be set at a device, checked against what it can do.
public struct ConfigurationPlan: Hashable, Sendable {
    /// nil: stays. Also given when it is what is set already.
    public var format: FormatSelection?
    /// The row of the format table that it is.
    public var formatID: String?
    /// nil: as it is, or what the format brings. To be set after the format, which may change it.
    public var frameDuration: FrameDuration?
    /// In this order: automatic modes before the manual values that they gate.
    public var controls: [PlannedControl]
    /// The camera controls that were asked for, by name; ``controls`` has what they are made of.
    public var cameraControls: [String] = []
    /// Those of ``controls`` that nobody named: they are only what camera controls are made of.
    public var implied: Set<String> = []
    /// To go with ``DeviceConfiguration/words``.
    public var words: [String: String] = [:]
    public var adjustments: [Adjustment]

    public init(
        format: FormatSelection? = nil, formatID: String? = nil, frameDuration: FrameDuration? = nil,
        controls: [PlannedControl] = [], adjustments: [Adjustment] = []
    ) {
        self.format = format
        self.formatID = formatID
        self.frameDuration = frameDuration
        self.controls = controls
        self.adjustments = adjustments
    }

    /// What will be set: {activeFormat?, frameDuration?, controls?}.
    public var json: JSONValue {
        let values = controls.map { ($0.name, $0.value.json) }
        return .members([
            "activeFormat": format?.json(id: formatID), "frameDuration": frameDuration?.json,
            "controls": controls.isEmpty
                ? .none : .some(.object(Dictionary(values, uniquingKeysWith: { _, last in last }))),
        ])
    }
}

extension FormatSelection {
    /// {id, pixelFormat, width, height}
    func json(id: String?) -> JSONValue {
        .object([
            "id": id.map(JSONValue.string) ?? .null, "pixelFormat": pixelFormat.json,
            "width": JSONValue(dimensions.width), "height": JSONValue(dimensions.height),
        ])
    }
}
