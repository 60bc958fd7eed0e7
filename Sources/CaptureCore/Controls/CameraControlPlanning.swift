import BusProtocol
import JSON

/// The drivers' controls to set for what is asked of camera controls.
///
/// What the model leaves open is decided so:
/// - A value that only counts in a manual mode brings that mode along (`lensPosition` locks the focus,
///   `exposureDuration` and `ISO` make the exposure custom, a temperature, a tint or gains lock the white balance,
///   `torchLevel` turns the torch on), unless the same change asks for another: that is `controlBusy`.
/// - Flash and torch are one lamp: who turns one on turns the other off, and asking for both is `controlBusy`.
/// - A driver's selection is one: a zoom that is made by cropping and a rectangle replace one another, and asking for
///   both is `controlBusy` (``ConfigurationPlanner``).
struct CameraControlPlanner {
    typealias ID = CameraControlID

    struct Setting {
        var control: CaptureControl
        var value: ControlValue
        /// What it was asked by.
        var name: CameraControlName
    }

    /// Where the drivers' values mean several words at once: which was asked.
    private(set) var words: [String: String] = [:]
    private(set) var adjustments: [Adjustment] = []
    private var order: [UInt32] = []
    private var values: [UInt32: (value: Int64, name: CameraControlName)] = [:]
    private var asked: [CameraControlName: CameraControlValue] = [:]
    /// Why something is another value than was asked.
    private var reasons: [(path: String, name: CameraControlName, json: JSONValue, why: String)] = []
    private var locks: (set: Int64, cleared: Int64, name: CameraControlName?) = (0, 0, nil)

    private let map: CameraControlMap
    private let now: CameraControlReading

    init(_ map: CameraControlMap, current: DeviceConfiguration) {
        self.map = map
        now = CameraControlReading(map: map, values: current.controls, words: current.words)
    }

    /// - Parameter wanted: what is asked, with the path that errors name.
    mutating func plan(
        _ wanted: [(name: CameraControlName, json: JSONValue, path: String)], mode: ConfigurationMode
    ) throws(BusError) -> [Setting] {
        let parser = CameraControlParser(map: map, mode: mode)
        for (name, json, path) in wanted {
            let (value, why) = try parser.parse(name, json, path: path)
            if name == .zoomValue, asked[.videoZoomFactor] != nil {
                throw .invalidParams(path, "is the same control as videoZoomFactor")
            }
            asked[name] = value
            if let why { reasons.append((path, name, json, why)) }
        }
        try setPoints()
        try setFocus()
        try setExposure()
        try setWhiteBalance(tint: wanted.first { $0.name == .whiteBalanceTint }, mode)
        try setLamp()
        try setZoom()
        try setFlags()
        setLocks()
        var settings = order.compactMap { id -> Setting? in
            guard let control = map.byID[id], let entry = values[id] else { return nil }
            let value: ControlValue =
                control.type == .boolean || control.type == .button ? .boolean(entry.value != 0) : .integer(entry.value)
            return Setting(control: control, value: value, name: entry.name)
        }
        if case .rectangle(let rectangle)? = asked[.cropRectangle], let control = map.byID[ID.cropRectangle] {
            settings.append(Setting(control: control, value: rectangle.numbers, name: .cropRectangle))
        }
        for reason in reasons {
            let given = given(reason.name, settings)
            adjustments.append(Adjustment(path: reason.path, asked: reason.json, given: given, why: reason.why))
        }
        return settings
    }

    // What will be read when the settings are made.
    private func given(_ name: CameraControlName, _ settings: [Setting]) -> JSONValue {
        var values = now.values
        for setting in settings { values[setting.control.name] = setting.value }
        return CameraControlReading(map: map, values: values, words: words).value(name) ?? .null
    }

    // MARK: Groups

    private mutating func setPoints() throws(BusError) {
        for (name, x, y) in [
            (CameraControlName.focusPointOfInterest, ID.focusX, ID.focusY),
            (.exposurePointOfInterest, ID.exposureX, ID.exposureY),
        ] {
            guard case .point(let left, let top)? = asked[name] else { continue }
            try setShare(x, left, for: name)
            try setShare(y, top, for: name)
        }
    }

    private mutating func setFocus() throws(BusError) {
        var mode = word(.focusMode)
        if case .number(let position)? = asked[.lensPosition] {
            mode = try manual(mode, "locked", .focusMode, for: .lensPosition)
            try setShare(ID.focus, 1 - position, for: .lensPosition)
        }
        guard let mode else { return }
        let name = asked[.focusMode] == nil ? CameraControlName.lensPosition : .focusMode
        if map.has(ID.autoFocus) { try set(ID.autoFocus, mode == "continuousAutoFocus" ? 1 : 0, for: name) }
        if mode == "autoFocus" { try set(ID.focusStart, 1, for: name) }
        if map.hasLock(ID.focusLock) { clear(ID.focusLock, name) }
    }

    private mutating func setExposure() throws(BusError) {
        var mode = word(.exposureMode)
        var name = CameraControlName.exposureMode
        for value in [CameraControlName.exposureDuration, .iso] where asked[value] != nil {
            mode = try manual(mode, "custom", .exposureMode, for: value)
            if asked[.exposureMode] == nil { name = value }
        }
        if case .number(let seconds)? = asked[.exposureDuration], let (control, perSecond) = map.duration {
            try set(control.id, rounded(seconds * perSecond), for: .exposureDuration)
        }
        if case .number(let iso)? = asked[.iso] { try setScaled(ID.iso, iso, for: .iso) }
        if case .number(let bias)? = asked[.exposureTargetBias] {
            try setScaled(ID.bias, bias, for: .exposureTargetBias)
        }
        if case .number(let seconds)? = asked[.activeMaxExposureDuration] {
            try set(ID.longestExposure, rounded(seconds * 1_000_000), for: .activeMaxExposureDuration)
        }
        // A point counts at once where the camera exposes by itself, whoever does it there.
        if mode == nil, asked[.exposurePointOfInterest] != nil, map.isMetered,
            now.exposureMode == "continuousAutoExposure"
        {
            mode = "continuousAutoExposure"
            name = .exposurePointOfInterest
        }
        let isMetered = mode == "continuousAutoExposure" && wantsMetering
        if mode != nil, map.has(ID.exposureMetering) { try set(ID.exposureMetering, isMetered ? 1 : 0, for: name) }
        switch mode {
        case "locked" where map.hasLock(ID.exposureLock) && isExposing:
            words[CameraControlName.exposureMode.rawValue] = mode
            hold(ID.exposureLock, name)
        case "locked", "custom":
            words[CameraControlName.exposureMode.rawValue] = mode
            if map.has(ID.autoExposure) { try set(ID.autoExposure, ID.exposureManual, for: name) }
            if mode == "custom", map.has(ID.autoISO) { try set(ID.autoISO, 0, for: name) }
            if map.hasLock(ID.exposureLock) { clear(ID.exposureLock, name) }
        case "autoExpose":
            // What it comes to stays, as it does for a driver's own search of the focus.
            words[CameraControlName.exposureMode.rawValue] = "locked"
            if map.has(ID.autoExposure) { try set(ID.autoExposure, ID.exposureManual, for: name) }
            try set(ID.exposureStart, 1, for: name)
            if map.hasLock(ID.exposureLock) { clear(ID.exposureLock, name) }
        case "continuousAutoExposure" where isMetered:
            if map.has(ID.autoExposure) { try set(ID.autoExposure, ID.exposureManual, for: name) }
            if map.hasLock(ID.exposureLock) { clear(ID.exposureLock, name) }
        case "continuousAutoExposure":
            let present = now[ID.autoExposure]
            let isAutomatic = present == ID.exposureAuto || present == ID.aperturePriority
            if let item = isAutomatic ? present : map.automaticExposure { try set(ID.autoExposure, item, for: name) }
            if map.hasItem(ID.autoISO, 1) { try set(ID.autoISO, 1, for: name) }
            if map.hasLock(ID.exposureLock) { clear(ID.exposureLock, name) }
        default: break
        }
    }

    // The camera exposes by itself. Where it doesn't, drivers ignore a lock, and there is nothing to lock.
    private var isExposing: Bool {
        guard let present = now[ID.autoExposure] else { return true }
        return present != ID.exposureManual || now[ID.autoISO] == 1
    }

    // The camera's own exposure looks at the whole picture; another point is metered.
    private var wantsMetering: Bool {
        guard map.isMetered else { return false }
        if map.automaticExposure == nil { return true }
        if case .point(let x, let y)? = asked[.exposurePointOfInterest] { return x != 0.5 || y != 0.5 }
        let centre = ExposureMetering.centre
        return (now[ID.exposureX] ?? centre, now[ID.exposureY] ?? centre) != (centre, centre)
    }

    private mutating func setWhiteBalance(
        tint: (name: CameraControlName, json: JSONValue, path: String)?, _ configuration: ConfigurationMode
    ) throws(BusError) {
        if let tint { try fitTint(tint.json, tint.path, configuration) }
        var mode = word(.whiteBalanceMode)
        var name = CameraControlName.whiteBalanceMode
        let values = [CameraControlName.whiteBalanceTemperature, .whiteBalanceTint, .whiteBalanceGains]
        for value in values where asked[value] != nil {
            mode = try manual(mode, "locked", .whiteBalanceMode, for: value)
            if asked[.whiteBalanceMode] == nil { name = value }
        }
        if case .number(let kelvin)? = asked[.whiteBalanceTemperature], map.span(ID.temperature) != nil {
            try set(ID.temperature, rounded(kelvin), for: .whiteBalanceTemperature)
        } else if let light = askedLight {
            let gains = WhitePoint.gains(light.kelvin, tint: light.tint)
            let name = asked[.whiteBalanceTint] == nil ? CameraControlName.whiteBalanceTemperature : .whiteBalanceTint
            try setGain(ID.redBalance, gains.red, for: name)
            try setGain(ID.blueBalance, gains.blue, for: name)
        }
        if case .gains(let red, let blue)? = asked[.whiteBalanceGains] {
            try setGain(ID.redBalance, red, for: .whiteBalanceGains)
            try setGain(ID.blueBalance, blue, for: .whiteBalanceGains)
        }
        guard let mode else { return }
        if let automatic = map.whiteBalanceAutomatic {
            try set(automatic, mode == "continuousAutoWhiteBalance" ? 1 : 0, for: name)
            if mode == "autoWhiteBalance" { try set(ID.doWhiteBalance, 1, for: name) }
            if map.hasLock(ID.whiteBalanceLock) { clear(ID.whiteBalanceLock, name) }
        } else if map.hasLock(ID.whiteBalanceLock) {
            hold(ID.whiteBalanceLock, name)
        }
    }

    // A temperature alone is that of daylight; a tint alone keeps the temperature.
    private var askedLight: (kelvin: Double, tint: Double)? {
        var (kelvin, tint): (Double?, Double?)
        if case .number(let number)? = asked[.whiteBalanceTemperature] { kelvin = number }
        if case .number(let number)? = asked[.whiteBalanceTint] { tint = number }
        guard kelvin != nil || tint != nil else { return nil }
        return (kelvin ?? now.light?.kelvin ?? WhitePoint.neutralKelvin, tint ?? 0)
    }

    // How far a tint goes depends on the temperature.
    private mutating func fitTint(
        _ json: JSONValue, _ path: String, _ mode: ConfigurationMode
    ) throws(BusError) {
        guard let light = askedLight, let red = map.gains(ID.redBalance), let blue = map.gains(ID.blueBalance) else {
            return
        }
        let tints = WhitePoint.tints(light.kelvin, red: red, blue: blue)
        guard !tints.contains(light.tint) else { return }
        let range = "\(JSONValue.tidy(tints.lowerBound)) to \(JSONValue.tidy(tints.upperBound))"
        let temperature = "\(Int64(light.kelvin.rounded())) K"
        let name = CameraControlName.whiteBalanceTint
        guard mode == .nearest else {
            throw BusError(
                .controlOutOfRange,
                "\(name.rawValue) can't be \(JSONValue.tidy(light.tint)) at \(temperature); it takes \(range) there.",
                [
                    "control": .string(name.rawValue), "min": .tidy(tints.lowerBound), "max": .tidy(tints.upperBound),
                    "step": 0,
                ])
        }
        asked[name] = .number(min(max(light.tint, tints.lowerBound), tints.upperBound))
        reasons.removeAll { $0.path == path }
        reasons.append((path, name, json, "\(name.rawValue) is \(range) at \(temperature)."))
    }

    private mutating func setLamp() throws(BusError) {
        let flash = word(.flashMode)
        var torch = word(.torchMode)
        if case .number(let level)? = asked[.torchLevel] {
            if torch == "off" { throw together(.torchLevel, "torchMode off") }
            if torch == nil, now[ID.lampMode] != ID.lampTorch { torch = "on" }
            try setShare(ID.torchIntensity, level, for: .torchLevel)
        }
        let (wantsFlash, wantsTorch) = (flash.map { $0 != "off" } ?? false, torch.map { $0 != "off" } ?? false)
        if wantsFlash, wantsTorch { throw together(.torchMode, "flashMode: both use the same lamp") }
        let name =
            asked[.torchMode] != nil ? CameraControlName.torchMode : asked[.flashMode] != nil ? .flashMode : .torchLevel
        let present = now[ID.lampMode]
        if wantsTorch {
            try set(ID.lampMode, ID.lampTorch, for: name)
        } else if wantsFlash {
            try set(ID.lampMode, ID.lampFlash, for: name)
        } else if (torch == "off" && present == ID.lampTorch) || (flash == "off" && present == ID.lampFlash) {
            try set(ID.lampMode, ID.lampOff, for: name)
        }
        if let flash, map.has(ID.autoFlash) { try set(ID.autoFlash, flash == "auto" ? 1 : 0, for: .flashMode) }
        if let torch, map.has(ID.autoTorch) { try set(ID.autoTorch, torch == "auto" ? 1 : 0, for: .torchMode) }
    }

    private mutating func setZoom() throws(BusError) {
        if case .number(let factor)? = asked[.videoZoomFactor], let zoom = map.zoomSetting(factor),
            let control = map.zoom
        {
            try set(control.id, zoom.value, for: .videoZoomFactor)
        }
        if case .number(let value)? = asked[.zoomValue], let control = map.zoom,
            let zoom = map.zoomSetting(map.zoomFactor(ofValue: value))
        {
            try set(control.id, zoom.value, for: .zoomValue)
        }
    }

    private mutating func setFlags() throws(BusError) {
        for (name, id) in [
            (CameraControlName.smoothAutoFocusEnabled, ID.smoothFocus),
            (.lowLightBoostEnabled, ID.exposureAutoPriority),
            (.automaticallyAdjustsVideoHDREnabled, ID.autoDynamicRange), (.videoHDREnabled, ID.wideDynamicRange),
        ] {
            if case .flag(let flag)? = asked[name] { try set(id, flag ? 1 : 0, for: name) }
        }
        if let word = word(.videoStabilizationMode) {
            try set(ID.stabilization, word == "off" ? 0 : 1, for: .videoStabilizationMode)
        }
        if let word = word(.sceneMode), let item = CameraControlMap.scenes.firstIndex(of: word) {
            try set(ID.sceneMode, Int64(item), for: .sceneMode)
        }
    }

    private mutating func setLocks() {
        guard let name = locks.name, let control = map.byID[ID.lock3A] else { return }
        let present = now[ID.lock3A] ?? 0
        let wanted = (present & ~locks.cleared | locks.set) & control.maximum
        // What is locked and is to be another value is unlocked for a moment.
        let isOpened = AutomaticLock.open(from: present, to: wanted, for: order) != present
        guard wanted != present || isOpened else { return }
        order.append(control.id)
        values[control.id] = (wanted, name)
    }

    // MARK: The parts

    private func word(_ name: CameraControlName) -> String? {
        if case .word(let word)? = asked[name] { word } else { nil }
    }

    private func manual(
        _ mode: String?, _ needed: String, _ control: CameraControlName, for name: CameraControlName
    ) throws(BusError) -> String? {
        if let mode, mode != needed { throw together(name, "\(control.rawValue) \(mode)") }
        return map.words(control).contains(needed) ? needed : mode
    }

    private func together(_ name: CameraControlName, _ what: String) -> BusError {
        BusError(
            .controlBusy, "\(name.rawValue) can't be set together with \(what).", ["control": .string(name.rawValue)])
    }

    private mutating func set(_ id: UInt32, _ value: Int64, for name: CameraControlName) throws(BusError) {
        guard let control = map.byID[id] else { return }
        let value = control.type == .integer || control.type == .integer64 ? control.stepped(value) : value
        if let other = values[id], other.value != value { throw together(name, other.name.rawValue) }
        if values[id] == nil { order.append(id) }
        values[id] = (value, name)
    }

    private mutating func setShare(_ id: UInt32, _ share: Double, for name: CameraControlName) throws(BusError) {
        guard let span = map.span(id) else { return }
        let width = Double(span.upperBound) - Double(span.lowerBound)
        try set(id, rounded(Double(span.lowerBound) + share * width), for: name)
    }

    private mutating func setScaled(_ id: UInt32, _ value: Double, for name: CameraControlName) throws(BusError) {
        guard let control = map.byID[id] else { return }
        guard control.type == .integerMenu else { return try set(id, rounded(value * 1000), for: name) }
        let wanted = rounded(value * 1000)
        let items = control.menu.compactMap { index, item -> (index: Int64, distance: UInt64)? in
            guard case .value(let number) = item else { return nil }
            let (difference, overflow) = number.subtractingReportingOverflow(wanted)
            return (index, overflow ? .max : difference.magnitude)
        }
        if let item = items.min(by: { ($0.distance, $0.index) < ($1.distance, $1.index) }) {
            try set(id, item.index, for: name)
        }
    }

    private mutating func setGain(_ id: UInt32, _ gain: Double, for name: CameraControlName) throws(BusError) {
        guard let neutral = map.byID[id]?.defaultValue else { return }
        try set(id, rounded(gain * Double(neutral)), for: name)
    }

    private mutating func hold(_ bit: Int64, _ name: CameraControlName) {
        locks.set |= bit
        locks.name = name
    }

    private mutating func clear(_ bit: Int64, _ name: CameraControlName) {
        locks.cleared |= bit
        locks.name = locks.name ?? name
    }

    private func rounded(_ value: Double) -> Int64 {
        let value = value.rounded()
        // The bounds of 64 bits that a Double holds exactly.
        return Int64(min(max(value, -0x1p62), 0x1p62))
    }
}
