import CaptureCore
import Glibc
import LinuxIO

/// The controls of a virtual camera with their values: names, ids and types are those of V4L2's controls, and which of them are
/// inactive follows from the automatic ones, as in a driver.
struct VirtualControls {
    private struct Entry {
        var control: CaptureControl
        var value: Int64
    }

    private var entries: [Entry]

    /// - Parameter hasFocus: front cameras have none.
    init(hasFocus: Bool) {
        entries = Self.definitions.compactMap { control in
            if !hasFocus, control.name.hasPrefix("focus") { return nil }
            return Entry(control: control, value: control.defaultValue ?? 0)
        }
    }

    /// All controls with their present flags.
    var controls: [CaptureControl] {
        entries.map { entry in
            var control = entry.control
            if isInactive(control.name) { control.flags.insert(.inactive) }
            return control
        }
    }

    var values: [String: ControlValue] {
        var values: [String: ControlValue] = [:]
        for entry in entries {
            values[entry.control.name] =
                entry.control.type == .boolean ? .boolean(entry.value != 0) : .integer(entry.value)
        }
        return values
    }

    /// The present value; 0 for a control that isn't there.
    subscript(name: String) -> Int64 { entries.first { $0.control.name == name }?.value ?? 0 }

    /// Sets a control as `VIDIOC_S_EXT_CTRLS` does; `device` is what errors call the camera.
    mutating func set(_ name: String, to value: ControlValue, device: String) throws(SourceError) {
        func refusal(_ kind: SourceError.Kind, _ code: Int32, _ why: String) -> SourceError {
            SourceError(
                kind, operation: "VIDIOC_S_EXT_CTRLS", errno: code, message: "\(device): \(why)", control: name)
        }
        guard let index = entries.firstIndex(where: { $0.control.name == name }) else {
            throw refusal(.refused, EINVAL, "there is no control \(name)")
        }
        let control = entries[index].control
        if isInactive(name) {
            throw refusal(.controlBusy, EACCES, "\(name) is set by the camera itself in the present mode")
        }
        let number: Int64
        switch value {
        case .boolean(let flag): number = flag ? 1 : 0
        case .integer(let integer): number = integer
        case .string, .integers: throw refusal(.refused, EINVAL, "\(name) takes a number")
        }
        guard (control.minimum...control.maximum).contains(number) else {
            throw refusal(.refused, ERANGE, "\(number) is not in \(control.minimum)...\(control.maximum) of \(name)")
        }
        if control.type == .menu {
            guard control.menu[number] != nil else {
                throw refusal(.refused, EINVAL, "\(name) has no item \(number)")
            }
            entries[index].value = number
        } else {
            // As the kernel does: to the nearest step.
            let step = max(1, control.step)
            let steps = (number - control.minimum + step / 2) / step
            entries[index].value = min(control.minimum + steps * step, control.maximum)
        }
    }

    /// What the automatic modes that are on make of the values that they govern.
    mutating func settle() {
        for (name, value) in [
            ("white_balance_temperature", Self.neutralTemperature), ("exposure_time_absolute", Self.neutralExposure),
            ("focus_absolute", Self.bestFocus),
        ] where isInactive(name) {
            guard let index = entries.firstIndex(where: { $0.control.name == name }) else { continue }
            entries[index].value = value
        }
    }

    /// What a driver tells of the changes since: of all but the value of the control that was set through it.
    func events(since before: VirtualControls, besides set: String?) -> [ControlEvent] {
        zip(zip(before.entries, before.controls), zip(entries, controls)).compactMap { old, new in
            let (control, value) = (new.1, new.0.value)
            var event = ControlEvent(id: control.id, time: MonotonicClock.now())
            if value != old.0.value, control.name != set {
                event.value = control.type == .boolean ? .boolean(value != 0) : .integer(value)
            }
            if control.flags != old.1.flags { event.flags = control.flags }
            return event.value == nil && event.flags == nil ? nil : event
        }
    }

    private func isInactive(_ name: String) -> Bool {
        switch name {
        case "white_balance_temperature": self["white_balance_automatic"] != 0
        case "exposure_time_absolute": self["auto_exposure"] != Self.manualExposure
        case "focus_absolute": self["focus_automatic_continuous"] != 0
        default: false
        }
    }

    // MARK: Definitions

    /// `V4L2_EXPOSURE_MANUAL`.
    static let manualExposure: Int64 = 1
    /// What daylight is to the picture: no tint.
    static let neutralTemperature: Int64 = 4600
    /// In 100 µs: neither darker nor brighter.
    static let neutralExposure: Int64 = 156
    static let bestFocus: Int64 = 85

    private static func user(
        _ id: UInt32, _ title: String, _ type: ControlType, _ range: ClosedRange<Int64>, _ value: Int64,
        step: Int64 = 1,
        menu: [Int64: String] = [:], flags: Set<ControlFlag> = [], category: String = "User Controls"
    ) -> CaptureControl {
        CaptureControl(
            name: CaptureControl.name(ofTitle: title), title: title, id: id, type: type, minimum: range.lowerBound,
            maximum: range.upperBound, step: step, defaultValue: value, menu: menu.mapValues { .name($0) },
            flags: flags, category: category)
    }

    private static func camera(
        _ id: UInt32, _ title: String, _ type: ControlType, _ range: ClosedRange<Int64>, _ value: Int64,
        step: Int64 = 1,
        menu: [Int64: String] = [:], flags: Set<ControlFlag> = []
    ) -> CaptureControl {
        user(id, title, type, range, value, step: step, menu: menu, flags: flags, category: "Camera Controls")
    }

    /// In the order of their ids, as a driver lists them; titles are the kernel's (`v4l2-ctrls-defs.c`).
    private static let definitions: [CaptureControl] = [
        user(0x0098_0900, "Brightness", .integer, -64...64, 0, flags: [.slider]),
        user(0x0098_0901, "Contrast", .integer, 0...64, 32, flags: [.slider]),
        user(0x0098_0902, "Saturation", .integer, 0...128, 64, flags: [.slider]),
        user(0x0098_0903, "Hue", .integer, -180...180, 0, flags: [.slider]),
        user(0x0098_090C, "White Balance, Automatic", .boolean, 0...1, 1, flags: [.update]),
        user(0x0098_0913, "Gain", .integer, 0...100, 0),
        user(0x0098_0914, "Horizontal Flip", .boolean, 0...1, 0),
        user(0x0098_0915, "Vertical Flip", .boolean, 0...1, 0),
        user(
            0x0098_0918, "Power Line Frequency", .menu, 0...3, 3,
            menu: [0: "Disabled", 1: "50 Hz", 2: "60 Hz", 3: "Auto"]),
        user(0x0098_091A, "White Balance Temperature", .integer, 2800...6500, neutralTemperature, step: 10),
        // A UVC camera has two of the four modes.
        camera(
            0x009A_0901, "Auto Exposure", .menu, 0...3, 3, menu: [1: "Manual Mode", 3: "Aperture Priority Mode"],
            flags: [.update]),
        camera(0x009A_0902, "Exposure Time, Absolute", .integer, 1...5000, neutralExposure),
        camera(0x009A_090A, "Focus, Absolute", .integer, 0...255, 0, step: 5),
        camera(0x009A_090C, "Focus, Automatic Continuous", .boolean, 0...1, 1, flags: [.update]),
        camera(0x009A_090D, "Zoom, Absolute", .integer, 100...400, 100),
        user(
            0x009F_0903, "Test Pattern", .menu, 0...4, 0,
            menu: [0: "Color Bars", 1: "Gradient", 2: "Black", 3: "White", 4: "Checkerboard"],
            category: "Image Processing Controls"),
    ]
}

/// What the controls make of the picture.
struct VirtualLook: Hashable {
    enum Pattern: Int64 {
        case bars, gradient, black, white, checkerboard
    }

    var pattern: Pattern
    /// Added to luma of 0–255.
    var brightness: Double
    /// Times the distance from middle grey.
    var contrast: Double
    /// Times the distance from no colour.
    var saturation: Double
    /// Turns colours, in degrees.
    var hue: Double
    /// Times luma: gain and exposure.
    var exposure: Double
    /// Towards red, and away from blue.
    var warmth: Double
    /// 1 is everything.
    var zoom: Double
    /// How far edges are smeared, in thousandths of the width.
    var blur: Double
    var isMirrored: Bool
    var isUpsideDown: Bool

    init(_ controls: VirtualControls) {
        pattern = Pattern(rawValue: controls["test_pattern"]) ?? .bars
        brightness = Double(controls["brightness"])
        contrast = Double(controls["contrast"]) / 32
        saturation = Double(controls["saturation"]) / 64
        hue = Double(controls["hue"])
        exposure = 1 + Double(controls["gain"]) / 100
        if controls["auto_exposure"] == VirtualControls.manualExposure {
            exposure *= Double(controls["exposure_time_absolute"]) / Double(VirtualControls.neutralExposure)
        }
        warmth = 0
        if controls["white_balance_automatic"] == 0 {
            warmth = Double(controls["white_balance_temperature"] - VirtualControls.neutralTemperature) / 40
        }
        zoom = max(1, Double(controls["zoom_absolute"]) / 100)
        blur = 0
        let hasFocus = controls.values["focus_absolute"] != nil
        if hasFocus, controls["focus_automatic_continuous"] == 0 {
            blur = Double(abs(controls["focus_absolute"] - VirtualControls.bestFocus)) / 8
        }
        isMirrored = controls["horizontal_flip"] != 0
        isUpsideDown = controls["vertical_flip"] != 0
    }
}
