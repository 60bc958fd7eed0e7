import BusProtocol
public import JSON

/// How one device was set when a profile was saved.
public struct DeviceSettings: Hashable, Sendable {
    public var uniqueID: String
    /// The name for people.
    public var name: String
    public var driver: String
    /// nil: the device didn't tell.
    public var format: FormatSelection?
    /// nil: the device didn't tell.
    public var frameDuration: FrameDuration?
    /// The values of those controls that can be set: ``settable(_:)``.
    public var controls: [String: ControlValue]

    public init(
        uniqueID: String, name: String, driver: String, format: FormatSelection? = nil,
        frameDuration: FrameDuration? = nil, controls: [String: ControlValue] = [:]
    ) {
        self.uniqueID = uniqueID
        self.name = name
        self.driver = driver
        self.format = format
        self.frameDuration = frameDuration
        self.controls = controls
    }

    /// A device of the same make: what one takes, the other takes too.
    public func isSameKind(name: String, driver: String) -> Bool { name == self.name && driver == self.driver }

    /// The values that are settings: of what is set by somebody, lasts, and counts in the device's present modes.
    ///
    /// - Parameter controls: as `device.controls` has them, with their values.
    public static func settable(_ controls: [JSONValue]) -> [String: ControlValue] {
        var values: [String: ControlValue] = [:]
        for json in controls {
            guard let control = try? CaptureControl(json: json), control.type != .button, control.type != .unknown,
                control.flags.isDisjoint(with: [
                    .readOnly, .writeOnly, .disabled, .inactive, .volatile, .grabbed, .executeOnWrite,
                ]), let value = try? CaptureControl.value(in: json)
            else { continue }
            values[control.name] = value
        }
        return values
    }

    /// What `device.configure` takes, for a device of that id.
    ///
    /// - Parameters:
    ///   - formats: the device's; nil: not known.
    ///   - controls: the device's, without values; nil: not known, so that its worker says what it doesn't have.
    ///   - mode: `nearest` leaves out what that device can't be told at all.
    ///   - path: where the change stands, for the adjustments: the device's id.
    public func change(
        device: String, formats: [CaptureFormat]? = nil, controls known: [CaptureControl]?, mode: ConfigurationMode,
        path: String
    ) -> (change: JSONValue, leftOut: [Adjustment]) {
        var leftOut: [Adjustment] = []
        var values: [String: JSONValue] = [:]
        for (name, value) in controls.sorted(by: { $0.key < $1.key }) {
            if mode == .nearest, let known, let why = Self.whyNot(name, value, known, device: device) {
                let path = ConfigurationChange.path(of: "controls.\(name)", in: path)
                leftOut.append(Adjustment(path: path, asked: value.json, given: .null, why: why))
            } else {
                values[name] = value.json
            }
        }
        let change = JSONValue.members([
            "device": .string(device), "activeFormat": format?.request(in: formats ?? []).json,
            "frameRate": frameDuration.map { FrameRateRequest.duration($0).json },
            "controls": values.isEmpty ? .none : .some(.object(values)),
        ])
        return (change, leftOut)
    }

    // What has no nearest value, and so would be refused.
    private static func whyNot(
        _ name: String, _ value: ControlValue, _ known: [CaptureControl], device: String
    ) -> String? {
        guard let control = ControlNames.control(name, in: known) else { return "\(device) has no control \(name)." }
        if control.flags.contains(.readOnly) { return "\(name) can't be set on \(device)." }
        if control.hasMenu, case .integer(let index) = value, control.menu[index] == nil {
            return "\(name) has no item \(index) on \(device)."
        }
        return nil
    }

    // MARK: As JSON

    /// {uniqueID, name, driver, activeFormat, frameDuration, controls}
    public var json: JSONValue {
        [
            "uniqueID": .string(uniqueID), "name": .string(name), "driver": .string(driver),
            "activeFormat": format?.json ?? .null, "frameDuration": frameDuration?.json ?? .null,
            "controls": .object(controls.mapValues(\.json)),
        ]
    }

    /// Reads what ``json`` writes; nil for anything else.
    public init?(json: JSONValue) {
        guard let uniqueID = json["uniqueID"]?.string, let name = json["name"]?.string,
            let driver = json["driver"]?.string, let members = json["controls"]?.object
        else { return nil }
        self.init(uniqueID: uniqueID, name: name, driver: driver)
        do throws(BusError) {
            if let value = json["activeFormat"], !value.isNull { format = try FormatSelection(json: value, path: "") }
            if let value = json["frameDuration"], !value.isNull {
                frameDuration = try FrameDuration(json: value, path: "")
            }
            for (name, value) in members { controls[name] = try ControlValue(json: value) }
        } catch {
            return nil
        }
    }
}

/// Settings of one or more devices under a name.
public struct Profile: Hashable, Sendable {
    /// One for each device, in the order in which they were named.
    public var devices: [DeviceSettings]
    /// Seconds since 1970.
    public var saved: Int64
    /// The user that saved it first; nil: it belongs to the administrators.
    public var owner: UInt32?

    public init(devices: [DeviceSettings], saved: Int64, owner: UInt32? = nil) {
        self.devices = devices
        self.saved = saved
        self.owner = owner
    }

    /// The settings for a device: its own, else the only ones there are, else the only ones of a device of the same
    /// make.
    public func settings(uniqueID: String, name: String, driver: String) -> DeviceSettings? {
        if let own = devices.first(where: { $0.uniqueID == uniqueID }) { return own }
        if devices.count == 1 { return devices[0] }
        let alike = devices.filter { $0.isSameKind(name: name, driver: driver) }
        return alike.count == 1 ? alike[0] : nil
    }
}
