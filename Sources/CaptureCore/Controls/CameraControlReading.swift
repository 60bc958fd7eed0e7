import BusProtocol
import Glibc
public import JSON

extension CameraControlMap {
    /// The camera controls' values, made of the drivers'. One that can't be told now is null.
    ///
    /// - Parameters:
    ///   - values: by the drivers' names.
    ///   - words: what was asked last, where the drivers' values mean several words at once (`exposureMode`).
    ///   - isRamping: a zoom ramp runs.
    public func values(
        _ values: [String: ControlValue], words: [String: String] = [:], isRamping: Bool = false
    ) -> [String: JSONValue] {
        let reading = CameraControlReading(map: self, values: values, words: words, isRamping: isRamping)
        var told: [String: JSONValue] = [:]
        for name in CameraControlName.allCases where kind(name) != nil {
            told[name.rawValue] = reading.value(name) ?? .null
        }
        return told
    }

    /// The zoom factor that is set; nil: not known.
    public func zoomFactor(_ values: [String: ControlValue]) -> Double? {
        guard let zoom, let value = values[zoom.name]?.number else { return nil }
        return max(1, Double(value) / Double(zoom.minimum))
    }

    /// Doublings of light that the picture is to be brighter; 0 where that can't be set.
    public func exposureTargetBias(_ values: [String: ControlValue]) -> Double {
        CameraControlReading(map: self, values: values).value(.exposureTargetBias)?.double ?? 0
    }

    /// The value of the zoom's control that comes nearest to a factor.
    public func zoomSetting(_ factor: Double) -> (name: String, value: Int64)? {
        guard let zoom, factor.isFinite else { return nil }
        let value = (factor * Double(zoom.minimum)).rounded()
        let clamped = min(max(value, Double(zoom.minimum)), Double(zoom.maximum))
        return (zoom.name, zoom.stepped(Int64(clamped)))
    }

    /// The factor of a `zoomValue` of 0 to 1.
    public func zoomFactor(ofValue value: Double) -> Double { pow(maxZoomFactor, value) }

    /// `zoomValue` of a factor; above 1 beyond what it spans.
    public func zoomValue(ofFactor factor: Double) -> Double {
        maxZoomFactor > 1 ? log(max(1, factor)) / log(maxZoomFactor) : 0
    }
}

extension CaptureControl {
    /// Within the bounds, at the nearest step.
    func stepped(_ value: Int64) -> Int64 {
        guard minimum <= maximum else { return value }
        let step = Int128(max(1, step))
        let (low, high) = (Int128(minimum), Int128(maximum))
        let clamped = min(max(Int128(value), low), high)
        return Int64(clamping: low + min((clamped - low + step / 2) / step, (high - low) / step) * step)
    }
}

/// What camera controls read as, of the drivers' values.
struct CameraControlReading {
    typealias ID = CameraControlID

    let map: CameraControlMap
    let values: [String: ControlValue]
    var words: [String: String] = [:]
    var isRamping = false

    /// A driver's value; nil: it isn't there, or can't be read.
    subscript(id: UInt32) -> Int64? { map.byID[id].flatMap { values[$0.name]?.number } }

    func isLocked(_ bit: Int64) -> Bool { (self[ID.lock3A] ?? 0) & bit != 0 }

    func value(_ name: CameraControlName) -> JSONValue? {
        switch name {
        case .focusMode: return .string(focusMode)
        case .exposureMode: return .string(exposureMode)
        case .whiteBalanceMode: return .string(whiteBalanceMode)
        case .focusPointOfInterest: return point(ID.focusX, ID.focusY)
        case .exposurePointOfInterest: return point(ID.exposureX, ID.exposureY)
        case .lensPosition: return share(ID.focus).map { .tidy(1 - $0) }
        case .torchLevel: return share(ID.torchIntensity).map(JSONValue.tidy)
        case .smoothAutoFocusEnabled: return flag(ID.smoothFocus)
        case .lowLightBoostEnabled: return flag(ID.exposureAutoPriority)
        case .videoHDREnabled: return flag(ID.wideDynamicRange)
        case .automaticallyAdjustsVideoHDREnabled: return flag(ID.autoDynamicRange)
        case .adjustingFocus: return self[ID.focusStatus].map { .bool($0 & ID.focusBusy != 0) }
        case .adjustingExposure:
            // What a camera does by itself is not to be seen from here.
            let isOwn = self[ID.autoExposure].map { $0 == ID.exposureAuto || $0 == ID.aperturePriority } ?? false
            let isOurs = map.byID[ID.adjustingExposure]?.category == ExposureMetering.category
            return isOurs && isOwn ? nil : flag(ID.adjustingExposure)
        case .adjustingWhiteBalance: return flag(ID.adjustingWhiteBalance)
        case .exposureDuration:
            guard let (control, perSecond) = map.duration, let value = values[control.name]?.number else { return nil }
            return .tidy(Double(value) / perSecond)
        case .iso: return scaled(ID.iso, 1000)
        case .exposureTargetBias: return scaled(ID.bias, 1000)
        case .exposureTargetOffset: return scaled(ID.exposureOffset, 1000)
        case .activeMaxExposureDuration:
            // What is more than the format has bounds nothing.
            guard case .number(_, let most, _)? = map.kind(name) else { return nil }
            return self[ID.longestExposure].map { .tidy(min(Double($0) / 1_000_000, most)) }
        case .whiteBalanceTemperature:
            if map.span(ID.temperature) != nil { return self[ID.temperature].map(JSONValue.integer) }
            return light.map { .integer(Int64($0.kelvin.rounded())) }
        case .whiteBalanceTint:
            let tints = WhitePoint.tints
            return light.map { .integer(Int64(min(max($0.tint, tints.lowerBound), tints.upperBound).rounded())) }
        case .whiteBalanceGains:
            guard let red = gain(ID.redBalance), let blue = gain(ID.blueBalance) else { return nil }
            return ["red": .tidy(red), "green": 1, "blue": .tidy(blue)]
        case .flashMode: return lamp(ID.lampFlash, ID.autoFlash)
        case .torchMode: return lamp(ID.lampTorch, ID.autoTorch)
        case .videoZoomFactor: return map.zoomFactor(values).map(JSONValue.tidy)
        case .zoomValue:
            return map.zoomFactor(values).map { factor in
                // A share that a slider shows needs no more digits.
                .tidy((min(map.zoomValue(ofFactor: factor), 1) * 1_000_000).rounded() / 1_000_000)
            }
        case .rampingVideoZoom: return .bool(isRamping)
        case .cropRectangle:
            return map.byID[ID.cropRectangle].flatMap { values[$0.name] }.flatMap { PixelRectangle($0) }?.json
        case .videoStabilizationMode: return self[ID.stabilization].map { $0 != 0 ? "standard" : "off" }
        case .sceneMode:
            guard let item = self[ID.sceneMode].flatMap({ Int(exactly: $0) }),
                CameraControlMap.scenes.indices.contains(item)
            else { return nil }
            return .string(CameraControlMap.scenes[item])
        }
    }

    /// The light that the driver's gains make neutral.
    var light: (kelvin: Double, tint: Double)? {
        guard let red = gain(ID.redBalance), let blue = gain(ID.blueBalance) else { return nil }
        return WhitePoint.light(red: red, blue: blue)
    }

    var focusMode: String {
        if self[ID.autoFocus] ?? 0 != 0 {
            return isLocked(ID.focusLock) ? "locked" : "continuousAutoFocus"
        }
        let isScanning = (self[ID.focusStatus] ?? 0) & ID.focusBusy != 0
        return isScanning && map.has(ID.focusStart) ? "autoFocus" : "locked"
    }

    var exposureMode: String {
        if isLocked(ID.exposureLock) { return "locked" }
        switch self[ID.autoExposure] {
        case ID.exposureAuto?, ID.aperturePriority?: return "continuousAutoExposure"
        default:
            if map.isMetered, self[ID.exposureMetering] ?? 0 != 0 { return "continuousAutoExposure" }
            let isExposing = self[ID.adjustingExposure] ?? 0 != 0
            if isExposing, map.words(.exposureMode).contains("autoExpose") { return "autoExpose" }
            // The same to the camera: whether somebody has set the exposure, or keeps the one that it had.
            let words = map.words(.exposureMode)
            let word = self.words[CameraControlName.exposureMode.rawValue]
            if word == "locked" || word == "custom", let word, words.contains(word) { return word }
            return words.contains("custom") ? "custom" : "locked"
        }
    }

    var whiteBalanceMode: String {
        if isLocked(ID.whiteBalanceLock) { return "locked" }
        if let automatic = map.whiteBalanceAutomatic, self[automatic] == 1 { return "continuousAutoWhiteBalance" }
        let isBalancing = self[ID.adjustingWhiteBalance] ?? 0 != 0
        return isBalancing && map.words(.whiteBalanceMode).contains("autoWhiteBalance") ? "autoWhiteBalance" : "locked"
    }

    private func flag(_ id: UInt32) -> JSONValue? { self[id].map { .bool($0 != 0) } }

    /// 0 at the lower end of the range, 1 at the upper.
    private func share(_ id: UInt32) -> Double? {
        guard let value = self[id], let control = map.byID[id], control.maximum > control.minimum else { return nil }
        return (Double(value) - Double(control.minimum)) / (Double(control.maximum) - Double(control.minimum))
    }

    private func point(_ x: UInt32, _ y: UInt32) -> JSONValue? {
        guard let x = share(x), let y = share(y) else { return nil }
        return ["x": .tidy(x), "y": .tidy(y)]
    }

    private func scaled(_ id: UInt32, _ scale: Double) -> JSONValue? {
        guard let value = self[id], let control = map.byID[id] else { return nil }
        if control.type == .integerMenu {
            guard case .value(let item)? = control.menu[value] else { return nil }
            return .tidy(Double(item) / scale)
        }
        return .tidy(Double(value) / scale)
    }

    private func gain(_ id: UInt32) -> Double? {
        guard let value = self[id], let neutral = map.byID[id]?.defaultValue, neutral > 0 else { return nil }
        return Double(value) / Double(neutral)
    }

    private func lamp(_ mode: Int64, _ automatic: UInt32) -> JSONValue? {
        guard let present = self[ID.lampMode] else { return nil }
        guard present == mode else { return "off" }
        return self[automatic] ?? 0 != 0 ? "auto" : "on"
    }
}
