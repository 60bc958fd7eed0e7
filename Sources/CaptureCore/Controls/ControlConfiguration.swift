import BusProtocol
import JSON

/// What is asked of controls, the drivers' and the model's, in the order in which it is to be set.
extension ConfigurationPlanner {
    /// A driver's control that is to be set.
    private struct Wish {
        var control: CaptureControl
        var value: ControlValue
        /// What it was asked by: its own name, or a camera control's.
        var name: String
        var isImplied = false
    }

    func planControls(
        _ change: ConfigurationChange, _ path: String, _ current: DeviceConfiguration, _ mode: ConfigurationMode,
        into plan: inout ConfigurationPlan
    ) throws(BusError) {
        let usable = description.controls.filter { !$0.flags.contains(.disabled) && $0.type != .unknown }
        var wishes = try ownWishes(change, path, usable, mode, into: &plan)
        try addCameraWishes(change, path, current, mode, to: &wishes, into: &plan)
        try checkSelection(wishes, current)
        clampZoom(path, current, &wishes, into: &plan)
        let values = Dictionary(wishes.map { ($0.control.id, $0.value) }) { first, _ in first }
        for wish in wishes { try checkBusy(wish, values, current) }
        noteCustom(wishes, into: &plan)
        plan.implied = Set(wishes.filter(\.isImplied).map(\.control.name))
        plan.controls = (0...4).flatMap { rank in wishes.filter { Self.rank($0.control.id) == rank } }.map {
            PlannedControl(name: $0.control.name, value: $0.value)
        }
    }

    // Where to look, which modes, the values that these leave free, what is to be done with all of it, and then what is
    // to stay so (``AutomaticLock``).
    private static func rank(_ id: UInt32) -> Int {
        switch id {
        case CameraControlID.lock3A: 4
        case CameraControlID.focusX, CameraControlID.focusY, CameraControlID.exposureX, CameraControlID.exposureY: 0
        case CameraControlID.focusStart, CameraControlID.doWhiteBalance, CameraControlID.exposureStart: 3
        default: ControlGate.isController(id) ? 1 : 2
        }
    }

    // An exposure that somebody has set is custom, by whichever name it was set.
    private func noteCustom(_ wishes: [Wish], into plan: inout ConfigurationPlan) {
        let mode = CameraControlName.exposureMode.rawValue
        let isSet = wishes.contains { wish in
            switch wish.control.id {
            case CameraControlID.exposureTime, CameraControlID.exposureMicroseconds, CameraControlID.iso:
                !wish.isImplied
            default: false
            }
        }
        if isSet, plan.words[mode] == nil { plan.words[mode] = "custom" }
    }

    // MARK: The drivers'

    private func ownWishes(
        _ change: ConfigurationChange, _ path: String, _ usable: [CaptureControl], _ mode: ConfigurationMode,
        into plan: inout ConfigurationPlan
    ) throws(BusError) -> [Wish] {
        var asked: [String: (name: String, value: JSONValue)] = [:]
        var strangers: [String] = []
        for (name, value) in change.controls.sorted(by: { $0.key < $1.key })
        where CameraControlName(rawValue: name) == nil {
            guard let control = ControlNames.control(name, in: usable) else {
                strangers.append(name)
                continue
            }
            if let other = asked.updateValue((name, value), forKey: control.name) {
                throw .invalidParams(
                    ConfigurationChange.path(of: "controls.\(name)", in: path),
                    "is the same control as \(other.name)")
            }
        }
        if let stranger = strangers.first {
            let settable = usable.filter { !$0.flags.contains(.readOnly) }.map(\.name).sorted()
            throw BusError(
                .controlUnsupported, "\(change.device) has no control \(stranger); device.controls lists its controls.",
                ["control": .string(stranger), "supported": JSONValue(settable)])
        }
        var wishes: [Wish] = []
        for control in usable {
            guard let (name, json) = asked[control.name] else { continue }
            if control.flags.contains(.readOnly) {
                throw BusError(
                    .controlReadOnly, "\(control.name) is read-only.", ["control": .string(control.name)])
            }
            let controlPath = ConfigurationChange.path(of: "controls.\(name)", in: path)
            let input = ControlInput(control: control, path: controlPath, mode: mode)
            let (value, adjusted) = try input.value(of: json)
            wishes.append(Wish(control: control, value: value, name: control.name))
            if let adjusted {
                plan.adjustments.append(Adjustment(path: controlPath, asked: json, given: value.json, why: adjusted))
            }
        }
        return wishes
    }

    // MARK: The model's

    private func cameraControls(_ plan: ConfigurationPlan, _ current: DeviceConfiguration) -> CameraControlMap {
        description.cameraControls(formatID: plan.format == nil ? current.formatID : plan.formatID)
    }

    private func addCameraWishes(
        _ change: ConfigurationChange, _ path: String, _ current: DeviceConfiguration, _ mode: ConfigurationMode,
        to wishes: inout [Wish], into plan: inout ConfigurationPlan
    ) throws(BusError) {
        let wanted = CameraControlName.allCases.compactMap { name in
            change.controls[name.rawValue].map { json in
                (name: name, json: json, path: ConfigurationChange.path(of: "controls.\(name.rawValue)", in: path))
            }
        }
        let zooms = cameraControls(plan, current).zoom
        if current.isRampingZoom {
            let zoom = wanted.first { $0.name == .videoZoomFactor || $0.name == .zoomValue }?.name.rawValue
            let raw = wishes.first { $0.control.id == zooms?.id }?.name
            if let name = zoom ?? raw {
                throw BusError(
                    .controlBusy, "\(name) can't be set while a zoom ramp runs; device.cancelZoomRamp ends it.",
                    ["control": .string(name)])
            }
        }
        guard !wanted.isEmpty else { return }
        var planner = CameraControlPlanner(cameraControls(plan, current), current: current)
        for setting in try planner.plan(wanted, mode: mode) {
            if let other = wishes.first(where: { $0.control.id == setting.control.id }) {
                guard other.value != setting.value else { continue }
                throw BusError(
                    .controlBusy, "\(other.name) can't be set together with \(setting.name.rawValue).",
                    ["control": .string(other.name)])
            }
            wishes.append(
                Wish(
                    control: setting.control, value: setting.value, name: setting.name.rawValue, isImplied: true))
        }
        plan.cameraControls = wanted.map(\.name.rawValue)
        plan.words = planner.words
        plan.adjustments += planner.adjustments
    }

    // The driver's selection is one.
    private func checkSelection(_ wishes: [Wish], _ current: DeviceConfiguration) throws(BusError) {
        guard let rectangle = wishes.first(where: { $0.control.id == CameraControlID.cropRectangle }) else { return }
        let zoom = wishes.first { $0.control.id == CameraControlID.cropZoom }
        let why: String
        if let zoom {
            why = "together with \(zoom.name): the driver zooms by its rectangle"
        } else if current.isRampingZoom, description.controls.contains(where: { $0.id == CameraControlID.cropZoom }) {
            why = "while a zoom ramp runs; device.cancelZoomRamp ends it"
        } else {
            return
        }
        throw BusError(
            .controlBusy, "\(rectangle.name) can't be set \(why).", ["control": .string(rectangle.name)])
    }

    // A format that zooms less far takes the factor with it, whoever set it.
    private func clampZoom(
        _ path: String, _ current: DeviceConfiguration, _ wishes: inout [Wish], into plan: inout ConfigurationPlan
    ) {
        guard plan.format != nil, plan.formatID != current.formatID else { return }
        let (before, now) = (description.cameraControls(formatID: current.formatID), cameraControls(plan, current))
        // One that can't be zoomed at all gives the whole picture.
        let map = now.zoom == nil ? before : now
        let most = now.zoom == nil ? 1 : now.videoMaxZoomFactor
        guard let zoom = map.zoom, !wishes.contains(where: { $0.control.id == zoom.id }),
            let factor = map.zoomFactor(current.controls), factor > most, let (_, value) = map.zoomSetting(most)
        else { return }
        wishes.append(Wish(control: zoom, value: .integer(value), name: "videoZoomFactor", isImplied: true))
        plan.adjustments.append(
            Adjustment(
                path: ConfigurationChange.path(of: "controls.videoZoomFactor", in: path), asked: .tidy(factor),
                given: .tidy(most), why: "The new format has a smaller maximum zoom."))
    }

    // MARK: What can't be set now

    /// Refuses a control that couldn't be set when its turn comes.
    ///
    /// A gate that this change opens or closes decides; else the driver's flag. Where the flag shows that the driver
    /// doesn't mind the automatic mode that is on now, neither is minded here.
    private func checkBusy(
        _ wish: Wish, _ values: [UInt32: ControlValue], _ current: DeviceConfiguration
    ) throws(BusError) {
        let control = wish.control
        func busy(_ why: String) -> BusError {
            BusError(.controlBusy, "\(wish.name) can't be set \(why).", ["control": .string(wish.name)])
        }
        let lock = description.controls.first(where: AutomaticLock.isLock)
        let isLocked =
            lock.flatMap { current.controls[$0.name]?.number }.map { AutomaticLock.blocks($0, control.id) } ?? false
        // Where the change has the lock, it is open when the control's turn comes.
        let isUnlocked = isLocked && values[CameraControlID.lock3A] != nil
        if isLocked, !isUnlocked, let lock,
            AutomaticLock.keeps(current.controls[lock.name]?.number ?? 0, valueOf: control.id),
            !control.flags.isDisjoint(with: [.grabbed, .inactive])
        {
            throw busy("while \(lock.name) locks it; unlock it in the same change, or set the mode")
        }
        if control.flags.contains(.grabbed), !isUnlocked {
            throw busy("now: the driver blocks it, as some drivers do while they stream; try again later")
        }
        let isInactive = control.flags.contains(.inactive)
        var isOpened = isUnlocked && !isGated(control, current)
        for gate in ControlGate.all where gate.controlled.contains(control.id) {
            guard let value = values[gate.controller]?.number,
                let controller = description.controls.first(where: { $0.id == gate.controller })
            else { continue }
            if gate.open.contains(value) {
                isOpened = true
                continue
            }
            let isOpenNow = current.controls[controller.name]?.number.map(gate.open.contains) ?? true
            if isInactive || isOpenNow { throw busy("together with \(controller.name) in its automatic mode") }
        }
        if isInactive, !isOpened { throw busy("in the current mode; switch off the automatic mode that controls it") }
    }

    // An automatic mode governs it now.
    private func isGated(_ control: CaptureControl, _ current: DeviceConfiguration) -> Bool {
        ControlGate.gates(of: control.id).contains { gate in
            description.controls.first { $0.id == gate.controller }.flatMap { current.controls[$0.name] }
                .map { !gate.isOpen($0) } ?? false
        }
    }
}
