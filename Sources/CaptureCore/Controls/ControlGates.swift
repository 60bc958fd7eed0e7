/// An automatic mode that must be in one of some values for a manual control to count: V4L2's auto clusters, and UVC's
/// (`uvc_control_mapping.master_id`), by `V4L2_CID_*`.
public struct ControlGate: Sendable {
    public let controller: UInt32
    public let controlled: [UInt32]
    /// The controller's values with which the controlled ones can be set.
    public let open: Set<Int64>

    private static let user: UInt32 = 0x0098_0900
    private static let camera: UInt32 = 0x009A_0900
    private static let imageSource: UInt32 = 0x009E_0900

    private static let exposureAuto = camera + 1

    /// All that are known.
    public static let all: [ControlGate] = [
        // AUTO_WHITE_BALANCE: DO_WHITE_BALANCE, RED_BALANCE, BLUE_BALANCE, WHITE_BALANCE_TEMPERATURE
        ControlGate(controller: user + 12, controlled: [user + 13, user + 14, user + 15, user + 26], open: [0]),
        // AUTOGAIN: GAIN, ANALOGUE_GAIN
        ControlGate(controller: user + 18, controlled: [user + 19, imageSource + 3], open: [0]),
        // HUE_AUTO: HUE
        ControlGate(controller: user + 25, controlled: [user + 3], open: [0]),
        // CHROMA_AGC: CHROMA_GAIN
        ControlGate(controller: user + 29, controlled: [user + 36], open: [0]),
        // AUTOBRIGHTNESS: BRIGHTNESS
        ControlGate(controller: user + 32, controlled: [user + 0], open: [0]),
        // EXPOSURE_AUTO is auto 0, manual 1, shutter priority 2, aperture priority 3: EXPOSURE_ABSOLUTE, EXPOSURE
        ControlGate(controller: exposureAuto, controlled: [camera + 2, user + 17], open: [1, 2]),
        // IRIS_ABSOLUTE, IRIS_RELATIVE
        ControlGate(controller: exposureAuto, controlled: [camera + 17, camera + 18], open: [1, 3]),
        // EXPOSURE_AUTO_PRIORITY (a rate that varies with the light)
        ControlGate(controller: exposureAuto, controlled: [camera + 3], open: [0, 3]),
        // AUTO_EXPOSURE_BIAS
        ControlGate(controller: exposureAuto, controlled: [camera + 19], open: [0, 2, 3]),
        // FOCUS_AUTO: FOCUS_ABSOLUTE, FOCUS_RELATIVE, AUTO_FOCUS_START, AUTO_FOCUS_STOP
        ControlGate(
            controller: camera + 12, controlled: [camera + 10, camera + 11, camera + 28, camera + 29], open: [0]),
        // AUTO_N_PRESET_WHITE_BALANCE is manual 0: RED_BALANCE, BLUE_BALANCE, WHITE_BALANCE_TEMPERATURE
        ControlGate(controller: camera + 20, controlled: [user + 14, user + 15, user + 26], open: [0]),
        // A virtual camera's finer exposure time, and its automatic WIDE_DYNAMIC_RANGE
        ControlGate(controller: exposureAuto, controlled: [CameraControlID.exposureMicroseconds], open: [1, 2]),
        // This program's metering: EXPOSURE_ABSOLUTE, GAIN, ANALOGUE_GAIN
        ControlGate(
            controller: CameraControlID.exposureMetering, controlled: [camera + 2, user + 19, imageSource + 3],
            open: [0]),
        ControlGate(
            controller: CameraControlID.autoDynamicRange, controlled: [CameraControlID.wideDynamicRange], open: [0]),
        // ISO_SENSITIVITY_AUTO is manual 0: ISO_SENSITIVITY
        ControlGate(controller: camera + 24, controlled: [camera + 23], open: [0]),
    ]

    /// True for a control that must be set before those it gates.
    public static func isController(_ id: UInt32) -> Bool { all.contains { $0.controller == id } }

    /// The modes that a control depends on.
    public static func gates(of id: UInt32) -> [ControlGate] { all.filter { $0.controlled.contains(id) } }

    /// True if the controlled ones can be set while the controller has this value.
    public func isOpen(_ value: ControlValue) -> Bool { value.number.map(open.contains) ?? true }
}
