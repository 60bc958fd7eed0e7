import CaptureCore
import Glibc
import LinuxIO

/// The controls of a virtual camera with their values: names, ids and types are those of V4L2's controls, and which of
/// them are inactive follows from the automatic ones, as in a driver.
struct VirtualControls {
    private struct Entry {
        var control: CaptureControl
        var value: Int64
    }

    private var entries: [Entry]

    init(_ definitions: [CaptureControl]) {
        entries = definitions.map { Entry(control: $0, value: $0.defaultValue ?? 0) }
    }

    /// All controls with their present flags.
    var controls: [CaptureControl] {
        entries.map { entry in
            var control = entry.control
            if isInactive(control.id) { control.flags.insert(.inactive) }
            return control
        }
    }

    /// Of all but the buttons.
    var values: [String: ControlValue] {
        var values: [String: ControlValue] = [:]
        for entry in entries where entry.control.type != .button {
            values[entry.control.name] =
                entry.control.type == .boolean ? .boolean(entry.value != 0) : .integer(entry.value)
        }
        return values
    }

    func has(_ id: UInt32) -> Bool { entries.contains { $0.control.id == id } }

    func id(_ name: String) -> UInt32? { entries.first { $0.control.name == name }?.control.id }

    /// The present value; 0 for a control that isn't there.
    subscript(id: UInt32) -> Int64 { entries.first { $0.control.id == id }?.value ?? 0 }

    /// 0 for a control that isn't there.
    func maximum(_ id: UInt32) -> Int64 { entries.first { $0.control.id == id }?.control.maximum ?? 0 }

    /// The item that a menu of numbers is at, or the number itself.
    func number(_ id: UInt32) -> Int64 {
        guard let entry = entries.first(where: { $0.control.id == id }) else { return 0 }
        if case .value(let item)? = entry.control.menu[entry.value] { return item }
        return entry.value
    }

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
        if control.flags.contains(.readOnly) {
            throw refusal(.controlBusy, EACCES, "\(name) is read-only")
        }
        if isInactive(control.id) {
            throw refusal(.controlBusy, EACCES, "\(name) is set by the camera itself in its current mode")
        }
        if control.type == .button { return }
        let number: Int64
        switch value {
        case .boolean(let flag): number = flag ? 1 : 0
        case .integer(let integer): number = integer
        case .string, .integers: throw refusal(.refused, EINVAL, "\(name) takes a number")
        }
        guard (control.minimum...control.maximum).contains(number) else {
            throw refusal(.refused, ERANGE, "\(number) is not in \(control.minimum)...\(control.maximum) of \(name)")
        }
        switch control.type {
        case .menu, .integerMenu:
            guard control.menu[number] != nil else {
                throw refusal(.refused, EINVAL, "\(name) has no item \(number)")
            }
            entries[index].value = number
        case .bitmask: entries[index].value = number & control.maximum
        default:
            // As the kernel does: to the nearest step.
            let step = max(1, control.step)
            let steps = (number - control.minimum + step / 2) / step
            entries[index].value = min(control.minimum + steps * step, control.maximum)
        }
    }

    /// Takes in what the camera itself has made of a control.
    mutating func absorb(_ id: UInt32, _ value: Int64) {
        guard let index = entries.firstIndex(where: { $0.control.id == id }) else { return }
        let control = entries[index].control
        entries[index].value = min(max(value, control.minimum), control.maximum)
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

    /// It is the camera's to set in the present mode (``ControlGate``), or locked (``AutomaticLock``).
    func isInactive(_ id: UInt32) -> Bool {
        AutomaticLock.keeps(self[VirtualControlTable.ID.lock3A], valueOf: id)
            || ControlGate.gates(of: id).contains { has($0.controller) && !$0.open.contains(self[$0.controller]) }
    }
}
