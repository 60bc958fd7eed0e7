import BusProtocol
import Glibc
public import JSON

/// The camera controls that a camera has, made of the drivers' controls that it has.
///
/// Units: focus, zoom and torch of V4L2 have none. A lens position is the share of the focus range, with 1 for the far
/// end, since V4L2 counts towards the camera; a zoom factor is the ratio to the least value, where that is above 0, as
/// focal lengths are; a balance is the ratio to the driver's default. What can't be said so is not there.
public struct CameraControlMap: Sendable {
    typealias ID = CameraControlID

    /// R2's bound of what `zoomValue` spans, where nothing else is configured.
    public static let defaultMaxZoom = 4.0

    let byID: [UInt32: CaptureControl]
    let traits: FormatTraits
    /// What `zoomValue` spans at most.
    let zoomLimit: Double
    /// The exposure can be driven by what is metered in the frames of the active format.
    let isMetered: Bool
    /// Of the active format; nil: not known.
    private let dimensions: Dimensions?

    /// - Parameters:
    ///   - controls: the driver's, with their present flags.
    ///   - traits: those of the active format.
    ///   - zoomLimit: what `zoomValue` spans at most.
    ///   - isConvertible: pictures can be made of the active format, so that light can be measured and parts be
    ///     enlarged.
    ///   - dimensions: those of the active format; nil: not known.
    public init(
        controls: [CaptureControl], traits: FormatTraits = FormatTraits(), zoomLimit: Double = defaultMaxZoom,
        isConvertible: Bool = true, dimensions: Dimensions? = nil
    ) {
        var usable = controls.filter { !$0.flags.contains(.disabled) && $0.type != .unknown }
        // A driver's own points are its own business.
        isMetered =
            isConvertible && usable.contains { $0.id == ID.exposureX && $0.category == ExposureMetering.category }
        if !isConvertible {
            usable.removeAll {
                ExposureMetering.ofPoint.contains($0.id) && $0.category == ExposureMetering.category
                    || $0.id == ID.digitalZoom
            }
        }
        self.dimensions = dimensions
        byID = Dictionary(usable.map { ($0.id, $0) }) { first, _ in first }
        self.traits = traits
        self.zoomLimit = max(1, zoomLimit)
    }

    // MARK: What there is

    /// All that the camera has, in the order of ``CameraControlName``.
    public var controls: [CameraControl] {
        CameraControlName.allCases.compactMap { name in
            kind(name).map { CameraControl(name, $0, sources: sources(name)) }
        }
    }

    /// What AVFoundation's cameras may have and none of this bus has, so that a client that asks is told.
    static let unsupported = ["depth", "portraitMatte", "dualCamera"]

    /// By name what the camera can do: false, true, or for controls that take words those that it has; and
    /// ``unsupported``.
    public var supports: JSONValue {
        var members = Dictionary(Self.unsupported.map { ($0, JSONValue.bool(false)) }) { first, _ in first }
        for name in CameraControlName.allCases {
            switch kind(name) {
            case nil: members[name.rawValue] = false
            case .word(let words)?: members[name.rawValue] = JSONValue(words)
            case _?: members[name.rawValue] = true
            }
        }
        return .object(members)
    }

    /// How many times the picture can be enlarged in the active format; 1: it can't.
    public var videoMaxZoomFactor: Double {
        guard let zoom, zoom.minimum > 0 else { return 1 }
        var most = Double(zoom.maximum) / Double(zoom.minimum)
        if zoom.id == ID.digitalZoom, let dimensions { most = min(most, DigitalZoom.limit(of: dimensions)) }
        return min(traits.videoMaxZoomFactor ?? most, most)
    }

    /// What `zoomValue` spans.
    public var maxZoomFactor: Double { min(videoMaxZoomFactor, zoomLimit) }

    /// The control that the zoom factor is made of.
    public var zoom: CaptureControl? {
        [ID.zoom, ID.cropZoom, ID.digitalZoom].compactMap { byID[$0] }.first {
            $0.type == .integer && $0.minimum > 0 && $0.maximum > $0.minimum && !$0.flags.contains(.readOnly)
        }
    }

    /// What a control takes here; nil: the camera hasn't got it.
    public func kind(_ name: CameraControlName) -> CameraControlKind? {
        switch name {
        case .focusMode, .exposureMode, .whiteBalanceMode, .flashMode, .torchMode, .videoStabilizationMode, .sceneMode:
            let words = words(name)
            return words.isEmpty ? nil : .word(words)
        case .focusPointOfInterest: return has(ID.focusX) && has(ID.focusY) ? .point : nil
        case .exposurePointOfInterest: return has(ID.exposureX) && has(ID.exposureY) ? .point : nil
        case .lensPosition: return span(ID.focus) == nil ? nil : .number(minimum: 0, maximum: 1)
        case .torchLevel:
            return words(.torchMode).isEmpty || span(ID.torchIntensity) == nil ? nil : .number(minimum: 0, maximum: 1)
        case .smoothAutoFocusEnabled: return flag(ID.smoothFocus)
        case .lowLightBoostEnabled: return flag(ID.exposureAutoPriority)
        case .videoHDREnabled: return traits.videoHDRSupported == false ? nil : flag(ID.wideDynamicRange)
        case .automaticallyAdjustsVideoHDREnabled:
            return traits.videoHDRSupported == false ? nil : flag(ID.autoDynamicRange)
        case .adjustingFocus: return byID[ID.focusStatus] == nil ? nil : .flag
        case .adjustingExposure: return byID[ID.adjustingExposure] == nil ? nil : .flag
        case .adjustingWhiteBalance: return byID[ID.adjustingWhiteBalance] == nil ? nil : .flag
        case .exposureDuration: return durationKind
        case .iso: return scaledKind(ID.iso, 1000, traits.minISO, traits.maxISO)
        case .exposureTargetBias: return scaledKind(ID.bias, 1000, nil, nil)
        case .exposureTargetOffset:
            return byID[ID.exposureOffset].map {
                .number(minimum: Double($0.minimum) / 1000, maximum: Double($0.maximum) / 1000)
            }
        case .activeMaxExposureDuration:
            return scaledKind(ID.longestExposure, 1_000_000, traits.minExposureDuration, traits.maxExposureDuration)
        case .whiteBalanceTemperature:
            return (span(ID.temperature).map { Double($0.lowerBound)...Double($0.upperBound) } ?? temperaturesOfGains)
                .map { .number(minimum: $0.lowerBound, maximum: $0.upperBound) }
        case .whiteBalanceTint:
            guard span(ID.temperature) == nil, temperaturesOfGains != nil else { return nil }
            return .number(minimum: WhitePoint.tints.lowerBound, maximum: WhitePoint.tints.upperBound)
        case .whiteBalanceGains:
            guard let red = largestGain(ID.redBalance), let blue = largestGain(ID.blueBalance) else { return nil }
            return .gains(red: red, blue: blue)
        case .videoZoomFactor:
            return videoMaxZoomFactor > 1 ? .number(minimum: 1, maximum: videoMaxZoomFactor) : nil
        case .zoomValue: return videoMaxZoomFactor > 1 ? .number(minimum: 0, maximum: 1) : nil
        case .rampingVideoZoom: return videoMaxZoomFactor > 1 ? .flag : nil
        case .cropRectangle:
            guard has(ID.cropRectangle), let control = byID[ID.cropRectangle], let bounds = control.bounds else {
                return nil
            }
            return .rectangle(bounds: bounds, defaultRectangle: control.defaultRectangle ?? bounds)
        }
    }

    /// The words that a control takes here; empty: the camera hasn't got it.
    func words(_ name: CameraControlName) -> [String] {
        switch name {
        case .focusMode:
            let (isAutomatic, canScan) = (has(ID.autoFocus), has(ID.focusStart))
            guard isAutomatic || canScan || has(ID.focus) else { return [] }
            return ["locked"] + (canScan ? ["autoFocus"] : []) + (isAutomatic ? ["continuousAutoFocus"] : [])
        case .exposureMode:
            let isManual = hasItem(ID.autoExposure, ID.exposureManual)
            let canBeSet = has(ID.exposureTime) || has(ID.exposureMicroseconds) || has(ID.iso)
            let isFixed = canBeSet && !has(ID.autoExposure)
            var words: [String] = []
            let canLock = isManual || hasLock(ID.exposureLock) || isMetered
            if canLock { words.append("locked") }
            if canLock, has(ID.exposureStart) { words.append("autoExpose") }
            if automaticExposure != nil || isMetered { words.append("continuousAutoExposure") }
            if (isManual && canBeSet) || isFixed { words.append("custom") }
            return words
        case .whiteBalanceMode:
            guard let automatic = whiteBalanceAutomatic else {
                return hasLock(ID.whiteBalanceLock) || has(ID.temperature) ? ["locked"] : []
            }
            let canScan = automatic == ID.autoWhiteBalance && has(ID.doWhiteBalance)
            return ["locked"] + (canScan ? ["autoWhiteBalance"] : []) + ["continuousAutoWhiteBalance"]
        case .flashMode:
            guard hasItem(ID.lampMode, ID.lampFlash) else { return [] }
            return ["off", "on"] + (has(ID.autoFlash) ? ["auto"] : [])
        case .torchMode:
            guard hasItem(ID.lampMode, ID.lampTorch) else { return [] }
            return ["off", "on"] + (has(ID.autoTorch) ? ["auto"] : [])
        case .videoStabilizationMode:
            let isSupported = traits.supportedVideoStabilizationModes.map { $0.contains { $0 != "off" } } ?? true
            return has(ID.stabilization) && isSupported ? ["off", "standard"] : []
        case .sceneMode:
            guard has(ID.sceneMode), let menu = byID[ID.sceneMode]?.menu else { return [] }
            return Self.scenes.enumerated().filter { menu[Int64($0.offset)] != nil }.map(\.element)
        default: return []
        }
    }

    /// Items of `V4L2_CID_SCENE_MODE` (`V4L2_SCENE_MODE_*`), in their order.
    static let scenes = [
        "none", "backlight", "beachSnow", "candleLight", "dawnDusk", "fallColors", "fireworks", "landscape", "night",
        "partyIndoor", "portrait", "sports", "sunset", "text",
    ]

    // MARK: The parts

    /// It is there and can be set, now or in another mode.
    func has(_ id: UInt32) -> Bool { byID[id].map { !$0.flags.contains(.readOnly) } ?? false }

    func hasItem(_ id: UInt32, _ item: Int64) -> Bool { has(id) && byID[id]?.menu[item] != nil }

    func hasLock(_ bit: Int64) -> Bool { has(ID.lock3A) && (byID[ID.lock3A]?.maximum ?? 0) & bit != 0 }

    /// The item of the exposure mode that leaves the exposure time to the camera.
    var automaticExposure: Int64? {
        [ID.exposureAuto, ID.aperturePriority].first { hasItem(ID.autoExposure, $0) }
    }

    /// The control that says whether the camera balances by itself.
    var whiteBalanceAutomatic: UInt32? {
        if has(ID.autoWhiteBalance) { return ID.autoWhiteBalance }
        return hasItem(ID.whiteBalancePreset, 0) && hasItem(ID.whiteBalancePreset, 1) ? ID.whiteBalancePreset : nil
    }

    /// The control that exposure times are set by, and how many of its units a second has.
    var duration: (control: CaptureControl, perSecond: Double)? {
        for (id, perSecond) in [(ID.exposureMicroseconds, 1_000_000.0), (ID.exposureTime, 10_000)] {
            if let control = byID[id], control.minimum < control.maximum { return (control, perSecond) }
        }
        return nil
    }

    /// The longest exposure that leaves a frame its time, and that an automatic exposure may have, in units of the
    /// control; nil: any.
    ///
    /// - Parameter values: of the drivers' controls.
    public func longestExposure(within frame: FrameDuration?, _ values: [String: ControlValue] = [:]) -> Int64? {
        guard let duration else { return nil }
        let bound = byID[ID.longestExposure].flatMap { values[$0.name]?.number }.map { Double($0) / 1_000_000 }
        let limits = [frame?.seconds, traits.maxExposureDuration, bound].compactMap { $0 }
        return limits.min().map { Int64(min(max($0, 0), 1_000_000) * duration.perSecond) }
    }

    func span(_ id: UInt32) -> ClosedRange<Int64>? {
        guard has(id), let control = byID[id], control.minimum < control.maximum else { return nil }
        return control.minimum...control.maximum
    }

    private func flag(_ id: UInt32) -> CameraControlKind? { has(id) ? .flag : nil }

    private var durationKind: CameraControlKind? {
        guard let (control, perSecond) = duration, !control.flags.contains(.readOnly) else { return nil }
        let bounds = Self.within(
            Double(max(control.minimum, 0)) / perSecond, Double(control.maximum) / perSecond,
            traits.minExposureDuration, traits.maxExposureDuration)
        return bounds.map { .number(minimum: $0.lowerBound, maximum: $0.upperBound) }
    }

    private func scaledKind(_ id: UInt32, _ scale: Double, _ least: Double?, _ most: Double?) -> CameraControlKind? {
        guard has(id), let control = byID[id] else { return nil }
        let values = scaledValues(control, scale)
        let (low, high) = (
            values.first ?? Double(control.minimum) / scale, values.last ?? Double(control.maximum) / scale
        )
        guard low < high, let bounds = Self.within(low, high, least, most) else { return nil }
        return .number(
            minimum: bounds.lowerBound, maximum: bounds.upperBound, values: values.filter(bounds.contains))
    }

    /// The items of an integer menu, in its unit; empty for a control of all integers.
    func scaledValues(_ control: CaptureControl, _ scale: Double) -> [Double] {
        control.menu.values.compactMap { item in
            if case .value(let value) = item { Double(value) / scale } else { nil }
        }.sorted()
    }

    // What both take; nil: they have nothing in common.
    private static func within(_ low: Double, _ high: Double, _ least: Double?, _ most: Double?) -> ClosedRange<Double>?
    {
        let (low, high) = (max(low, least ?? low), min(high, most ?? high))
        return low <= high ? low...high : nil
    }

    private func largestGain(_ id: UInt32) -> Double? {
        gains(id)?.upperBound
    }

    /// Of a driver that has gains and no temperature; nil: of any other.
    private var temperaturesOfGains: ClosedRange<Double>? {
        guard let red = gains(ID.redBalance), let blue = gains(ID.blueBalance) else { return nil }
        return WhitePoint.temperatures(red: red, blue: blue)
    }

    /// What the driver's gain of a colour may be, as a multiple of its default.
    func gains(_ id: UInt32) -> ClosedRange<Double>? {
        guard let neutral = byID[id]?.defaultValue, neutral > 0, let span = span(id) else { return nil }
        return Double(span.lowerBound) / Double(neutral)...Double(span.upperBound) / Double(neutral)
    }

    private func sources(_ name: CameraControlName) -> [String] {
        let ids: [UInt32] =
            switch name {
            case .focusMode: [ID.autoFocus, ID.focusStart, ID.focusStatus]
            case .focusPointOfInterest: [ID.focusX, ID.focusY]
            case .lensPosition: [ID.focus]
            case .smoothAutoFocusEnabled: [ID.smoothFocus]
            case .adjustingFocus: [ID.focusStatus]
            case .exposureMode:
                [ID.autoExposure, ID.autoISO, ID.lock3A, ID.exposureMetering, ID.exposureStart]
            case .exposurePointOfInterest: [ID.exposureX, ID.exposureY]
            case .exposureDuration: duration.map { [$0.control.id] } ?? []
            case .iso: [ID.iso]
            case .exposureTargetBias: [ID.bias]
            case .exposureTargetOffset: [ID.exposureOffset]
            case .activeMaxExposureDuration: [ID.longestExposure]
            case .adjustingExposure: [ID.adjustingExposure]
            case .whiteBalanceMode: [whiteBalanceAutomatic ?? ID.lock3A, ID.doWhiteBalance]
            case .whiteBalanceTemperature:
                span(ID.temperature) == nil ? [ID.redBalance, ID.blueBalance] : [ID.temperature]
            case .whiteBalanceTint, .whiteBalanceGains: [ID.redBalance, ID.blueBalance]
            case .adjustingWhiteBalance: [ID.adjustingWhiteBalance]
            case .flashMode: [ID.lampMode, ID.autoFlash]
            case .torchMode: [ID.lampMode, ID.autoTorch]
            case .torchLevel: [ID.torchIntensity]
            case .videoZoomFactor, .zoomValue, .rampingVideoZoom: zoom.map { [$0.id] } ?? []
            case .cropRectangle: [ID.cropRectangle]
            case .lowLightBoostEnabled: [ID.exposureAutoPriority]
            case .videoHDREnabled: [ID.wideDynamicRange]
            case .automaticallyAdjustsVideoHDREnabled: [ID.autoDynamicRange]
            case .videoStabilizationMode: [ID.stabilization]
            case .sceneMode: [ID.sceneMode]
            }
        return ids.compactMap { byID[$0]?.name }
    }
}
