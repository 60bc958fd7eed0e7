package import CaptureCore
import Glibc
package import Video4Linux

/// The controls of a V4L2 device under the names that v4l2-ctl gives them, and where those depend on the kernel, under
/// the present ones.
package struct V4L2ControlTable {
    package private(set) var controls: [CaptureControl] = []
    private var described: [String: V4L2Control] = [:]

    /// Asks the driver for every control and menu (`VIDIOC_QUERY_EXT_CTRL`, `VIDIOC_QUERYMENU`). Disabled controls are
    /// left out.
    package init(_ device: any V4L2Device) throws(V4L2Error) {
        var headings: [UInt32: String] = [:]
        for control in try device.controls() {
            if control.kind == .controlClass {
                headings[control.classID] = control.name
                continue
            }
            if control.flags.contains(.disabled) { continue }
            var name = ControlNames.present(CaptureControl.name(ofTitle: control.name), id: control.id)
            // Two controls of the same name, or one without any letter in it, are told apart by what the kernel tells
            // them apart.
            if name.isEmpty || described[name] != nil {
                let number = "0x" + String(control.id, radix: 16)
                name = name.isEmpty ? number : "\(name)_\(number)"
            }
            described[name] = control
            controls.append(
                CaptureControl(
                    control, name: name, menu: try device.menu(of: control), category: headings[control.classID] ?? ""))
        }
    }

    /// The ids of all of them.
    package var ids: [UInt32] { controls.map(\.id) }

    /// The driver's own description of the control of that name.
    package subscript(name: String) -> V4L2Control? { described[name] }

    /// The values of all controls that can be read now, by name (`VIDIOC_G_EXT_CTRLS`).
    ///
    /// A control that the driver fails to read is left out: cameras answer for some of theirs only in some modes.
    package func values(_ device: any V4L2Device) throws(V4L2Error) -> [String: ControlValue] {
        var values: [String: ControlValue] = [:]
        for (name, control) in described where control.hasKnownValue && !control.flags.contains(.writeOnly) {
            do throws(V4L2Error) {
                values[name] = ControlValue(try device.value(of: control), control)
            } catch  where error.errno != ENODEV {
                continue
            }
        }
        return values
    }
}

extension ControlValue {
    init(_ value: V4L2ControlValue, _ control: V4L2Control) {
        self =
            switch value {
            case .integer(let number): control.kind == .boolean ? .boolean(number != 0) : .integer(number)
            case .string(let text): .string(text)
            case .integers(let numbers): .integers(numbers)
            }
    }

    /// As V4L2 takes it; booleans and the numbers 0 and 1 stand for each other.
    var v4l2: V4L2ControlValue {
        switch self {
        case .boolean(let flag): .integer(flag ? 1 : 0)
        case .integer(let number): .integer(number)
        case .string(let text): .string(text)
        case .integers(let numbers): .integers(numbers)
        }
    }
}

extension CaptureControl {
    init(_ control: V4L2Control, name: String, menu: [Int64: V4L2MenuItem], category: String) {
        self.init(
            name: name, title: control.name, id: control.id, type: ControlType(control.kind), minimum: control.minimum,
            maximum: control.maximum, step: Int64(clamping: control.step),
            defaultValue: control.hasDefault ? control.defaultValue : nil,
            menu: menu.mapValues { item in
                switch item {
                case .name(let name): .name(name)
                case .value(let value): .value(value)
                }
            }, flags: Set(control.flags), dimensions: control.dimensions.map(Int.init), category: category)
    }
}

extension V4L2Control {
    fileprivate var hasDefault: Bool {
        switch kind {
        case .integer, .boolean, .menu, .integer64, .bitmask, .integerMenu, .u8, .u16, .u32: true
        case .button, .controlClass, .string, .area, .other: false
        }
    }
}

extension ControlType {
    fileprivate init(_ kind: V4L2Control.Kind) {
        self =
            switch kind {
            case .integer: .integer
            case .boolean: .boolean
            case .menu: .menu
            case .button: .button
            case .integer64: .integer64
            case .string: .string
            case .bitmask: .bitmask
            case .integerMenu: .integerMenu
            case .u8: .u8
            case .u16: .u16
            case .u32: .u32
            case .area: .area
            case .controlClass, .other: .unknown
            }
    }
}

extension Set<ControlFlag> {
    init(_ flags: V4L2Control.Flags) {
        let pairs: [(V4L2Control.Flags, ControlFlag)] = [
            (.disabled, .disabled), (.grabbed, .grabbed), (.readOnly, .readOnly), (.update, .update),
            (.inactive, .inactive), (.slider, .slider), (.writeOnly, .writeOnly), (.volatile, .volatile),
            (.hasPayload, .hasPayload), (.executeOnWrite, .executeOnWrite), (.modifyLayout, .modifyLayout),
            (.dynamicArray, .dynamicArray),
        ]
        self.init(pairs.lazy.filter { flags.contains($0.0) }.map(\.1))
    }
}
