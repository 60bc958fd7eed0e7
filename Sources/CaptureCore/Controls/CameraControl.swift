public import JSON

/// A control of the capture model, by AVFoundation's name. Each is made of whichever V4L2 controls a camera has
/// (``CameraControlMap``).
///
/// Names of drivers' controls have no capital letters, so the two never mean the same.
public enum CameraControlName: String, Hashable, Sendable, CaseIterable {
    case focusMode, focusPointOfInterest, lensPosition, smoothAutoFocusEnabled, adjustingFocus
    case exposureMode, exposurePointOfInterest, exposureDuration
    case iso = "ISO"
    case exposureTargetBias, exposureTargetOffset, activeMaxExposureDuration, adjustingExposure
    case whiteBalanceMode, whiteBalanceTemperature, whiteBalanceTint, whiteBalanceGains, adjustingWhiteBalance
    case flashMode, torchMode, torchLevel
    case videoZoomFactor, zoomValue, rampingVideoZoom, cropRectangle
    case lowLightBoostEnabled, videoHDREnabled, automaticallyAdjustsVideoHDREnabled, videoStabilizationMode, sceneMode

    /// Whether it only tells what the camera does.
    public var isReadOnly: Bool {
        switch self {
        case .adjustingFocus, .adjustingExposure, .adjustingWhiteBalance, .rampingVideoZoom, .exposureTargetOffset:
            true
        default: false
        }
    }

    /// What its numbers count: `s` seconds, `K` kelvin, `EV` doublings of light; nil: they are mere numbers.
    public var unit: String? {
        switch self {
        case .exposureDuration, .activeMaxExposureDuration: "s"
        case .whiteBalanceTemperature: "K"
        case .exposureTargetBias, .exposureTargetOffset: "EV"
        default: nil
        }
    }
}

/// What a camera control takes on one camera.
public enum CameraControlKind: Hashable, Sendable {
    /// One of these words.
    case word([String])
    case flag
    /// A number within these bounds; of `values` only, where the camera has only some, in order.
    case number(minimum: Double, maximum: Double, values: [Double] = [])
    /// {x, y}, each from 0 to 1, in the unrotated, unmirrored picture: (0, 0) is the top left.
    case point
    /// {red, green, blue}, each from 0 up to these; green is 1.
    case gains(red: Double, blue: Double)
    /// {x, y, width, height} in the sensor's pixels: a part of these bounds; where nobody sets it, the default.
    case rectangle(bounds: PixelRectangle, defaultRectangle: PixelRectangle)

    /// `word`, `flag`, `number`, `point`, `gains`, `rectangle`.
    public var name: String {
        switch self {
        case .word: "word"
        case .flag: "flag"
        case .number: "number"
        case .point: "point"
        case .gains: "gains"
        case .rectangle: "rectangle"
        }
    }
}

/// A camera control as one camera has it.
public struct CameraControl: Hashable, Sendable {
    public var name: CameraControlName
    public var kind: CameraControlKind
    /// The drivers' controls that it is made of, by name.
    public var sources: [String]

    public init(_ name: CameraControlName, _ kind: CameraControlKind, sources: [String]) {
        self.name = name
        self.kind = kind
        self.sources = sources
    }

    /// {name, type, minimum?, maximum?, values?, choices?, bounds?, defaultRectangle?, unit?, readOnly, sources,
    /// value}, as `device.controls` answers.
    public func json(value: JSONValue?) -> JSONValue {
        var members: [String: JSONValue] = [
            "name": .string(name.rawValue), "type": .string(kind.name), "readOnly": .bool(name.isReadOnly),
            "sources": JSONValue(sources), "value": value ?? .null,
        ]
        if let unit = name.unit { members["unit"] = .string(unit) }
        switch kind {
        case .word(let words): members["choices"] = JSONValue(words)
        case .number(let minimum, let maximum, let values):
            members["minimum"] = .tidy(minimum)
            members["maximum"] = .tidy(maximum)
            if !values.isEmpty { members["values"] = .array(values.map(JSONValue.tidy)) }
        case .gains(let red, let blue):
            members["maximum"] = ["red": .tidy(red), "green": 1, "blue": .tidy(blue)]
        case .rectangle(let bounds, let defaultRectangle):
            members["bounds"] = bounds.json
            members["defaultRectangle"] = defaultRectangle.json
        case .flag, .point: break
        }
        return .object(members)
    }
}

/// V4L2's controls that camera controls are made of, by `V4L2_CID_*`, and those that only virtual cameras have.
enum CameraControlID {
    private static let user: UInt32 = 0x0098_0900
    private static let camera: UInt32 = 0x009A_0900
    private static let flash: UInt32 = 0x009C_0900
    /// Of a driver's own (`V4L2_CTRL_DRIVER_PRIV`), in the camera class.
    private static let own: UInt32 = 0x009A_1000

    static let autoWhiteBalance = user + 12
    static let doWhiteBalance = user + 13
    static let redBalance = user + 14
    static let blueBalance = user + 15
    static let temperature = user + 26
    static let autoExposure = camera + 1
    static let exposureTime = camera + 2
    static let exposureAutoPriority = camera + 3
    static let focus = camera + 10
    static let autoFocus = camera + 12
    static let zoom = camera + 13
    static let bias = camera + 19
    static let whiteBalancePreset = camera + 20
    static let wideDynamicRange = camera + 21
    static let stabilization = camera + 22
    static let iso = camera + 23
    static let autoISO = camera + 24
    static let sceneMode = camera + 26
    static let lock3A = camera + 27
    static let focusStart = camera + 28
    static let focusStatus = camera + 30
    static let lampMode = flash + 1
    static let torchIntensity = flash + 8

    static let focusX = own + 1
    static let focusY = own + 2
    static let exposureX = own + 3
    static let exposureY = own + 4
    static let adjustingExposure = own + 5
    static let adjustingWhiteBalance = own + 6
    static let smoothFocus = own + 7
    static let autoFlash = own + 8
    static let autoTorch = own + 9
    static let autoDynamicRange = own + 10
    static let exposureMicroseconds = own + 11
    static let exposureStart = own + 12
    /// In microseconds: what an automatic exposure may last.
    static let longestExposure = own + 13
    /// In thousandths of doublings of light.
    static let exposureOffset = own + 14
    /// Not a driver's: the exposure is driven by what is metered around a point of the frames (``ExposureMetering``).
    static let exposureMetering: UInt32 = 0x00CB_0002
    /// Not a driver's: a picture that is cropped by `VIDIOC_S_SELECTION` and scaled up again, in hundredths.
    static let cropZoom: UInt32 = 0x00CB_0001
    /// Not a driver's: pictures are made of the middle of the device's (``DigitalZoom``).
    static let digitalZoom: UInt32 = 0x00CB_0003
    /// Not a driver's: what is taken of the sensor's picture, by `VIDIOC_S_SELECTION` (``CropRectangleControl``).
    static let cropRectangle: UInt32 = 0x00CB_0004

    /// Bits of `V4L2_CID_3A_LOCK`.
    static let exposureLock: Int64 = 1
    static let whiteBalanceLock: Int64 = 2
    static let focusLock: Int64 = 4
    /// `V4L2_AUTO_FOCUS_STATUS_BUSY`
    static let focusBusy: Int64 = 1
    /// Items of `V4L2_CID_FLASH_LED_MODE`.
    static let lampOff: Int64 = 0
    static let lampFlash: Int64 = 1
    static let lampTorch: Int64 = 2
    /// Items of `V4L2_CID_EXPOSURE_AUTO`.
    static let exposureAuto: Int64 = 0
    static let exposureManual: Int64 = 1
    static let shutterPriority: Int64 = 2
    static let aperturePriority: Int64 = 3
}
