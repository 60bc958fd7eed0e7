/// The controls by which this program meters and drives the exposure of cameras that can only be set by hand, or that
/// expose for the whole picture: they stand beside the driver's, so that they are set, kept and put back as those are.
///
/// ```
/// exposure_point_x, exposure_point_y   where it meters, ten-thousandths of the picture
/// exposure_metering                    goes on by itself
/// auto_exposure_start                  once; what it comes to stays
/// adjusting_exposure                   on its way
/// auto_exposure_longest                what it may last, microseconds: only where the driver never exposes by itself
/// ```
public enum ExposureMetering {
    typealias ID = CameraControlID

    public static let pointX = "exposure_point_x"
    public static let pointY = "exposure_point_y"
    public static let isOn = "exposure_metering"
    public static let start = "auto_exposure_start"
    public static let isAdjusting = "adjusting_exposure"
    public static let longest = "auto_exposure_longest"

    /// The middle of the picture, in the units of the point's controls: there the whole picture is metered.
    public static let centre: Int64 = 5000
    /// How far a point can be from the top left.
    public static let end: Int64 = 10_000

    /// What they stand under in lists.
    public static let category = "CameraBus metering"

    /// Those that mean something only where frames can be metered.
    static let ofPoint: Set<UInt32> = [
        ID.exposureX, ID.exposureY, ID.exposureStart, ID.adjustingExposure, ID.longestExposure,
    ]

    /// The controls to add to a driver's; empty where it has what they are for, or nothing that could be driven. Where
    /// a driver has the point, it is the driver's, and what goes on by itself is too.
    public static func controls(beside driver: [CaptureControl]) -> [CaptureControl] {
        guard canDrive(driver) else { return [] }
        let ids = Set(driver.map(\.id))
        return (own + (longest(beside: driver).map { [$0] } ?? [])).filter { !ids.contains($0.id) }
    }

    /// A bound that always counts; nil: the driver may expose by itself, and knows no bound.
    private static func longest(beside driver: [CaptureControl]) -> CaptureControl? {
        let automatic = driver.first { $0.id == ID.autoExposure }?.menu.keys.contains { $0 != ID.exposureManual }
        guard automatic != true, let time = driver.first(where: { $0.id == ID.exposureTime }) else { return nil }
        // A driver's unit is 100 µs.
        let (least, most) = (max(1, time.minimum), min(time.maximum, 1_000_000_000))
        guard least < most else { return nil }
        var bound = control(
            ID.longestExposure, longest, "Auto Exposure, Longest", .integer, maximum: most * 100, most * 100)
        bound.minimum = least * 100
        return bound
    }

    /// Exposure times can be set, by hand, and the driver can't be asked to do it once.
    private static func canDrive(_ controls: [CaptureControl]) -> Bool {
        let usable = controls.filter { !$0.flags.contains(.disabled) && !$0.flags.contains(.readOnly) }
        guard let time = usable.first(where: { $0.id == ID.exposureTime }), time.type == .integer,
            time.minimum < time.maximum, !controls.contains(where: { $0.id == ID.exposureStart })
        else { return false }
        guard let mode = controls.first(where: { $0.id == ID.autoExposure }) else { return true }
        return mode.menu[ID.exposureManual] != nil && !mode.flags.contains(.readOnly)
    }

    /// What is driven, by name: the exposure time, and the gain if there is one.
    public static func driven(_ controls: [CaptureControl]) -> (time: CaptureControl, gain: CaptureControl?)? {
        guard let time = controls.first(where: { $0.id == ID.exposureTime }) else { return nil }
        let gains: [UInt32] = [0x0098_0913, 0x009E_0903]
        let gain = gains.compactMap { id in controls.first { $0.id == id } }.first {
            $0.type == .integer && $0.minimum < $0.maximum && !$0.flags.contains(.readOnly)
                && !$0.flags.contains(.disabled)
        }
        return (time, gain)
    }

    /// The control that says whether the camera exposes by itself.
    public static func mode(_ controls: [CaptureControl]) -> CaptureControl? {
        controls.first { $0.id == ID.autoExposure }
    }

    /// True for a control of the driver's that is driven while the metering is on, and so nobody else's to set.
    public static func isHeld(_ control: CaptureControl) -> Bool {
        ControlGate.gates(of: control.id).contains { $0.controller == ID.exposureMetering }
    }

    /// True for a control that leaves the exposure to the camera when it has this value.
    public static func isAutomatic(_ control: CaptureControl, _ value: ControlValue) -> Bool {
        guard control.id == ID.autoExposure, let number = value.number else { return false }
        return number == ID.exposureAuto || number == ID.aperturePriority
    }

    private static let own: [CaptureControl] = [
        control(ID.exposureX, pointX, "Exposure Point, X", .integer, maximum: end, centre),
        control(ID.exposureY, pointY, "Exposure Point, Y", .integer, maximum: end, centre),
        control(ID.adjustingExposure, isAdjusting, "Adjusting Exposure", .boolean, maximum: 1, 0, [.readOnly]),
        control(
            ID.exposureStart, start, "Auto Exposure, Start", .button, maximum: 0, nil, [.writeOnly, .executeOnWrite]),
        control(ID.exposureMetering, isOn, "Exposure Metering", .boolean, maximum: 1, 0, [.update]),
    ]

    private static func control(
        _ id: UInt32, _ name: String, _ title: String, _ type: ControlType, maximum: Int64, _ value: Int64?,
        _ flags: Set<ControlFlag> = []
    ) -> CaptureControl {
        CaptureControl(
            name: name, title: title, id: id, type: type, maximum: maximum, step: type == .button ? 0 : 1,
            defaultValue: value, flags: flags, category: category)
    }
}
