import CaptureCore

/// Which controls a virtual camera has.
enum VirtualControlTable {
    /// `V4L2_EXPOSURE_MANUAL`.
    static let manualExposure: Int64 = 1
    /// What daylight is to the picture: no tint.
    static let neutralTemperature: Int64 = 4600
    /// Seconds: neither darker nor brighter.
    static let neutralExposure = 0.0156
    /// In thousandths of ISO.
    static let neutralISO: Int64 = 100_000
    static let neutralBalance: Int64 = 1000
    static let bestFocus: Int64 = 85

    /// By `V4L2_CID_*`, and those of this camera's own (`V4L2_CTRL_DRIVER_PRIV`).
    enum ID {
        static let brightness: UInt32 = 0x0098_0900
        static let contrast: UInt32 = 0x0098_0901
        static let saturation: UInt32 = 0x0098_0902
        static let hue: UInt32 = 0x0098_0903
        static let autoWhiteBalance: UInt32 = 0x0098_090C
        static let doWhiteBalance: UInt32 = 0x0098_090D
        static let redBalance: UInt32 = 0x0098_090E
        static let blueBalance: UInt32 = 0x0098_090F
        static let gain: UInt32 = 0x0098_0913
        static let horizontalFlip: UInt32 = 0x0098_0914
        static let verticalFlip: UInt32 = 0x0098_0915
        static let powerLine: UInt32 = 0x0098_0918
        static let temperature: UInt32 = 0x0098_091A
        static let autoExposure: UInt32 = 0x009A_0901
        static let exposureTime: UInt32 = 0x009A_0902
        static let dynamicFramerate: UInt32 = 0x009A_0903
        static let focus: UInt32 = 0x009A_090A
        static let autoFocus: UInt32 = 0x009A_090C
        static let zoom: UInt32 = 0x009A_090D
        static let bias: UInt32 = 0x009A_0913
        static let wideDynamicRange: UInt32 = 0x009A_0915
        static let stabilization: UInt32 = 0x009A_0916
        static let iso: UInt32 = 0x009A_0917
        static let autoISO: UInt32 = 0x009A_0918
        static let sceneMode: UInt32 = 0x009A_091A
        static let lock3A: UInt32 = 0x009A_091B
        static let focusStart: UInt32 = 0x009A_091C
        static let focusStatus: UInt32 = 0x009A_091E
        static let focusX: UInt32 = 0x009A_1001
        static let focusY: UInt32 = 0x009A_1002
        static let exposureX: UInt32 = 0x009A_1003
        static let exposureY: UInt32 = 0x009A_1004
        static let adjustingExposure: UInt32 = 0x009A_1005
        static let adjustingWhiteBalance: UInt32 = 0x009A_1006
        static let smoothFocus: UInt32 = 0x009A_1007
        static let autoFlash: UInt32 = 0x009A_1008
        static let autoTorch: UInt32 = 0x009A_1009
        static let autoDynamicRange: UInt32 = 0x009A_100A
        static let exposureMicroseconds: UInt32 = 0x009A_100B
        static let exposureStart: UInt32 = 0x009A_100C
        static let longestExposure: UInt32 = 0x009A_100D
        static let exposureOffset: UInt32 = 0x009A_100E
        static let lampMode: UInt32 = 0x009C_0901
        static let strobe: UInt32 = 0x009C_0903
        static let torchIntensity: UInt32 = 0x009C_0908
        static let testPattern: UInt32 = 0x009F_0903
    }

    private static let ofFocus: Set<UInt32> = [
        ID.focus, ID.autoFocus, ID.focusStart, ID.focusStatus, ID.focusX, ID.focusY, ID.smoothFocus,
    ]
    private static let ofLamp: Set<UInt32> = [
        ID.autoFlash, ID.autoTorch, ID.lampMode, ID.strobe, ID.torchIntensity,
    ]

    /// - Parameters:
    ///   - isFront: such a camera has neither focus nor lamp.
    static func controls(_ profile: VirtualProfile, isFront: Bool) -> [CaptureControl] {
        definitions.compactMap { definition in
            var control = definition
            if isFront, ofFocus.contains(control.id) || ofLamp.contains(control.id) { return nil }
            switch (profile, control.id) {
            case (.plain, ID.exposureMicroseconds), (.iphone6, ID.exposureTime): return nil
            case (.iphone6, ID.zoom): control.maximum = 9562
            case (.iphone6, ID.iso): (control.minimum, control.maximum) = (29_000, 928_000)
            default: break
            }
            return control
        }
    }

    static func isFlag(_ id: UInt32) -> Bool { id == ID.adjustingExposure || id == ID.adjustingWhiteBalance }

    // MARK: Definitions

    private static func user(
        _ id: UInt32, _ title: String, _ type: ControlType, _ range: ClosedRange<Int64>, _ value: Int64?,
        step: Int64 = 1, menu: [Int64: String] = [:], numbers: [Int64: Int64] = [:], flags: Set<ControlFlag> = [],
        category: String = "User Controls"
    ) -> CaptureControl {
        CaptureControl(
            name: CaptureControl.name(ofTitle: title), title: title, id: id, type: type, minimum: range.lowerBound,
            maximum: range.upperBound, step: step, defaultValue: value,
            menu: numbers.isEmpty ? menu.mapValues { .name($0) } : numbers.mapValues { .value($0) }, flags: flags,
            category: category)
    }

    private static func camera(
        _ id: UInt32, _ title: String, _ type: ControlType, _ range: ClosedRange<Int64>, _ value: Int64?,
        step: Int64 = 1, menu: [Int64: String] = [:], numbers: [Int64: Int64] = [:], flags: Set<ControlFlag> = []
    ) -> CaptureControl {
        user(
            id, title, type, range, value, step: step, menu: menu, numbers: numbers, flags: flags,
            category: "Camera Controls")
    }

    private static func button(_ id: UInt32, _ title: String, category: String) -> CaptureControl {
        user(id, title, .button, 0...0, nil, step: 0, flags: [.writeOnly, .executeOnWrite], category: category)
    }

    private static func flash(
        _ id: UInt32, _ title: String, _ type: ControlType, _ range: ClosedRange<Int64>, _ value: Int64,
        menu: [Int64: String] = [:]
    ) -> CaptureControl {
        user(id, title, type, range, value, menu: menu, category: "Flash Controls")
    }

    private static let scenes = [
        "None", "Backlight", "Beach/Snow", "Candle Light", "Dusk/Dawn", "Fall Colors", "Fireworks", "Landscape",
        "Night", "Party/Indoor", "Portrait", "Sports", "Sunset", "Text",
    ]

    /// In the order of their ids, as a driver lists them; titles are the kernel's (`v4l2-ctrls-defs.c`).
    private static let definitions: [CaptureControl] = [
        user(ID.brightness, "Brightness", .integer, -64...64, 0, flags: [.slider]),
        user(ID.contrast, "Contrast", .integer, 0...64, 32, flags: [.slider]),
        user(ID.saturation, "Saturation", .integer, 0...128, 64, flags: [.slider]),
        user(ID.hue, "Hue", .integer, -180...180, 0, flags: [.slider]),
        user(ID.autoWhiteBalance, "White Balance, Automatic", .boolean, 0...1, 1, flags: [.update]),
        button(ID.doWhiteBalance, "Do White Balance", category: "User Controls"),
        user(ID.redBalance, "Red Balance", .integer, 250...4000, neutralBalance),
        user(ID.blueBalance, "Blue Balance", .integer, 250...4000, neutralBalance),
        user(ID.gain, "Gain", .integer, 0...100, 0),
        user(ID.horizontalFlip, "Horizontal Flip", .boolean, 0...1, 0),
        user(ID.verticalFlip, "Vertical Flip", .boolean, 0...1, 0),
        user(
            ID.powerLine, "Power Line Frequency", .menu, 0...3, 3,
            menu: [0: "Disabled", 1: "50 Hz", 2: "60 Hz", 3: "Auto"]),
        user(ID.temperature, "White Balance Temperature", .integer, 2800...6500, neutralTemperature, step: 10),
        // A UVC camera has two of the four modes.
        camera(
            ID.autoExposure, "Auto Exposure", .menu, 0...3, 3, menu: [1: "Manual Mode", 3: "Aperture Priority Mode"],
            flags: [.update]),
        camera(ID.exposureTime, "Exposure Time, Absolute", .integer, 1...5000, 156),
        camera(ID.dynamicFramerate, "Exposure, Dynamic Framerate", .boolean, 0...1, 0),
        camera(ID.focus, "Focus, Absolute", .integer, 0...255, 0, step: 5),
        camera(ID.autoFocus, "Focus, Automatic Continuous", .boolean, 0...1, 1, flags: [.update]),
        camera(ID.zoom, "Zoom, Absolute", .integer, 100...400, 100),
        camera(
            ID.bias, "Auto Exposure, Bias", .integerMenu, 0...8, 4,
            numbers: Dictionary(uniqueKeysWithValues: (0...8).map { (Int64($0), Int64($0 - 4) * 500) })),
        camera(ID.wideDynamicRange, "Wide Dynamic Range", .boolean, 0...1, 0),
        camera(ID.stabilization, "Image Stabilization", .boolean, 0...1, 0),
        camera(ID.iso, "ISO Sensitivity", .integer, 25_000...3_200_000, neutralISO),
        camera(ID.autoISO, "ISO Sensitivity, Auto", .menu, 0...1, 1, menu: [0: "Manual", 1: "Auto"], flags: [.update]),
        camera(
            ID.sceneMode, "Scene Mode", .menu, 0...13, 0,
            menu: Dictionary(uniqueKeysWithValues: scenes.enumerated().map { (Int64($0.offset), $0.element) })),
        camera(ID.lock3A, "3A Lock", .bitmask, 0...7, 0),
        button(ID.focusStart, "Auto Focus, Start", category: "Camera Controls"),
        camera(ID.focusStatus, "Auto Focus, Status", .bitmask, 0...7, 0, flags: [.readOnly]),
        camera(ID.focusX, "Focus Point, X", .integer, 0...10_000, 5000),
        camera(ID.focusY, "Focus Point, Y", .integer, 0...10_000, 5000),
        camera(ID.exposureX, "Exposure Point, X", .integer, 0...10_000, 5000),
        camera(ID.exposureY, "Exposure Point, Y", .integer, 0...10_000, 5000),
        camera(ID.adjustingExposure, "Adjusting Exposure", .boolean, 0...1, 0, flags: [.readOnly]),
        camera(ID.adjustingWhiteBalance, "Adjusting White Balance", .boolean, 0...1, 0, flags: [.readOnly]),
        camera(ID.smoothFocus, "Smooth Focus", .boolean, 0...1, 0),
        camera(ID.autoFlash, "Flash, Automatic", .boolean, 0...1, 0),
        camera(ID.autoTorch, "Torch, Automatic", .boolean, 0...1, 0),
        camera(ID.autoDynamicRange, "Wide Dynamic Range, Automatic", .boolean, 0...1, 0, flags: [.update]),
        camera(ID.exposureMicroseconds, "Exposure Time, Microseconds", .integer, 3...500_000, 15_600),
        button(ID.exposureStart, "Auto Exposure, Start", category: "Camera Controls"),
        camera(ID.longestExposure, "Auto Exposure, Longest", .integer, 100...500_000, 500_000),
        camera(ID.exposureOffset, "Exposure Offset", .integer, -20_000...20_000, 0, flags: [.readOnly]),
        flash(ID.lampMode, "LED Mode", .menu, 0...2, 0, menu: [0: "Off", 1: "Flash", 2: "Torch"]),
        button(ID.strobe, "Strobe", category: "Flash Controls"),
        flash(ID.torchIntensity, "Intensity, Torch Mode", .integer, 1...100, 100),
        user(
            ID.testPattern, "Test Pattern", .menu, 0...4, 0,
            menu: [0: "Color Bars", 1: "Gradient", 2: "Black", 3: "White", 4: "Checkerboard"],
            category: "Image Processing Controls"),
    ]
}
