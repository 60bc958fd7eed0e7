/// `V4L2_CID_3A_LOCK`, of which each bit keeps the values that one of the camera's automatic modes has found.
///
/// Drivers differ in what they make of a value for something that is kept: they ignore it, refuse it, or mark its
/// control inactive or grabbed. So a bit is cleared before anything that it keeps is set, and set after that.
public enum AutomaticLock {
    typealias ID = CameraControlID

    private static let user: UInt32 = 0x0098_0900
    private static let camera: UInt32 = 0x009A_0900

    /// What each bit keeps: the values, and what else of the same mode a driver may not take meanwhile.
    private static let bits: [(bit: Int64, values: Set<UInt32>, modes: Set<UInt32>)] = [
        (
            // EXPOSURE, IRIS_ABSOLUTE, IRIS_RELATIVE
            ID.exposureLock, [ID.exposureTime, ID.exposureMicroseconds, ID.iso, user + 17, camera + 17, camera + 18],
            // GAIN, ANALOGUE_GAIN
            [ID.autoExposure, ID.autoISO, ID.exposureStart, ID.bias, ID.exposureAutoPriority, user + 19, 0x009E_0903]
        ),
        (
            ID.whiteBalanceLock, [ID.temperature, ID.redBalance, ID.blueBalance],
            [ID.autoWhiteBalance, ID.whiteBalancePreset, ID.doWhiteBalance]
        ),
        // FOCUS_RELATIVE, AUTO_FOCUS_STOP
        (ID.focusLock, [ID.focus, camera + 11], [ID.autoFocus, ID.focusStart, camera + 29]),
    ]

    /// The control is the lock.
    public static func isLock(_ control: CaptureControl) -> Bool { control.id == ID.lock3A }

    /// The lock with this value keeps the value of that control.
    public static func keeps(_ lock: Int64, valueOf id: UInt32) -> Bool {
        bits.contains { lock & $0.bit != 0 && $0.values.contains(id) }
    }

    /// The lock with this value may keep that control from being set.
    static func blocks(_ lock: Int64, _ id: UInt32) -> Bool { lock & bits(for: id) != 0 }

    private static func bits(for id: UInt32) -> Int64 {
        bits.reduce(0) { $1.values.contains(id) || $1.modes.contains(id) ? $0 | $1.bit : $0 }
    }

    /// The bits that stay while controls are set, on the way from one value of the lock to another.
    public static func open(from present: Int64, to wanted: Int64, for ids: [UInt32]) -> Int64 {
        ids.reduce(present & wanted) { $0 & ~bits(for: $1) }
    }

    /// The controls in the order in which they are to be set: the lock first, last, or both.
    ///
    /// - Parameters:
    ///   - controls: with the lock or without; without it nothing is locked or unlocked.
    ///   - table: all controls of the device.
    ///   - values: the device's present ones.
    public static func ordered(
        _ controls: [PlannedControl], _ table: [CaptureControl], _ values: [String: ControlValue]
    ) -> [PlannedControl] {
        guard let name = table.first(where: isLock)?.name, let lock = controls.first(where: { $0.name == name }),
            let wanted = lock.value.number, let present = values[name]?.number
        else { return controls }
        let others = controls.filter { $0.name != name }
        let names = Set(others.map(\.name))
        let open = open(from: present, to: wanted, for: table.filter { names.contains($0.name) }.map(\.id))
        var ordered = others
        if open != present { ordered.insert(PlannedControl(name: name, value: .integer(open)), at: 0) }
        if open == present || open != wanted { ordered.append(lock) }
        return ordered
    }
}
