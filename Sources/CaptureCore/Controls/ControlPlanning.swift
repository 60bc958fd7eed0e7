import BusProtocol
import JSON

/// What a control makes of a value that a client asks for.
struct ControlInput {
    let control: CaptureControl
    let path: String
    let mode: ConfigurationMode

    /// The value to set, and why it is another than was asked if it is.
    func value(of json: JSONValue) throws(BusError) -> (ControlValue, adjusted: String?) {
        if !control.dimensions.isEmpty, control.type != .string { return (try elements(of: json), nil) }
        switch control.type {
        case .integer, .integer64: return try stepped(try integer(json))
        case .boolean: return (try boolean(json), nil)
        case .menu, .integerMenu: return (try menuItem(json), nil)
        case .button:
            guard json == .bool(true) || json.isNull else {
                throw .invalidParams(path, "is a button; pass true to press it")
            }
            return (.boolean(true), nil)
        case .string: return (try text(json), nil)
        case .bitmask: return try mask(try integer(json))
        case .u8, .u16, .u32, .area: return (try elements(of: json), nil)
        case .rectangle: return (try rectangle(json), nil)
        case .unknown: throw .invalidParams(path, "has a type that can't be set")
        }
    }

    private func integer(_ json: JSONValue) throws(BusError) -> Int64 {
        guard let number = json.integer else {
            throw .invalidParams(
                path, "must be an integer, not \(json.typeName == "number" ? "a fraction" : json.typeName)")
        }
        return number
    }

    /// In V4L2's own way (`check_range`, `ROUND_TO_RANGE`): within the bounds, and whole steps above the lower one.
    private func stepped(_ asked: Int64) throws(BusError) -> (ControlValue, adjusted: String?) {
        guard control.minimum <= control.maximum else { throw outOfRange(asked) }
        let step = Int128(max(1, control.step))
        let low = Int128(control.minimum)
        let clamped = min(max(asked, control.minimum), control.maximum)
        let steps = min((Int128(clamped) - low + step / 2) / step, (Int128(control.maximum) - low) / step)
        let value = Int64(low + steps * step)
        if value == asked { return (.integer(value), nil) }
        guard mode == .nearest else { throw outOfRange(asked) }
        let why =
            clamped == asked
            ? "\(control.name) takes steps of \(step) from \(low)."
            : "\(control.name) is between \(control.minimum) and \(control.maximum)."
        return (.integer(value), why)
    }

    private func boolean(_ json: JSONValue) throws(BusError) -> ControlValue {
        if let flag = json.bool { return .boolean(flag) }
        guard let number = json.integer else {
            throw .invalidParams(path, "must be true or false, not \(json.typeName)")
        }
        guard number == 0 || number == 1 else { throw outOfRange(number) }
        return .boolean(number == 1)
    }

    /// By its index or its name; the name of an integer menu's item is its number as text. There is no nearest item.
    private func menuItem(_ json: JSONValue) throws(BusError) -> ControlValue {
        if let text = json.string {
            if let item = control.menu.first(where: { $0.value.text == text }) { return .integer(item.key) }
            let folded = control.menu.filter { $0.value.text.lowercased() == text.lowercased() }
            if let item = folded.first, folded.count == 1 { return .integer(item.key) }
            throw outOfRange("\"\(text)\"")
        }
        guard let index = json.integer else {
            throw .invalidParams(path, "must be a menu item's index or name, not \(json.typeName)")
        }
        guard control.menu[index] != nil else { throw outOfRange(index) }
        return .integer(index)
    }

    private func mask(_ asked: Int64) throws(BusError) -> (ControlValue, adjusted: String?) {
        let value = asked & control.maximum
        if value == asked { return (.integer(value), nil) }
        guard mode == .nearest, asked >= 0 else { throw outOfRange(asked) }
        return (.integer(value), "\(control.name) has only the bits 0x\(String(control.maximum, radix: 16)).")
    }

    /// Bounds and steps are those of the length in bytes (`V4L2_CTRL_TYPE_STRING`). There is no nearest text.
    private func text(_ json: JSONValue) throws(BusError) -> ControlValue {
        guard let text = json.string else { throw .invalidParams(path, "must be a string, not \(json.typeName)") }
        if text.utf8.contains(0) { throw .invalidParams(path, "must not contain a NUL character") }
        let length = Int64(text.utf8.count)
        let step = max(1, control.step)
        guard length >= control.minimum, length <= control.maximum,
            (Int128(length) - Int128(control.minimum)) % Int128(step) == 0
        else { throw outOfRange("a text of \(length) bytes") }
        return .string(text)
    }

    private func elements(of json: JSONValue) throws(BusError) -> ControlValue {
        if control.type == .area, let width = json["width"]?.integer, let height = json["height"]?.integer {
            return try elements(of: .array([.integer(width), .integer(height)]))
        }
        guard let array = json.array else {
            let alternative = control.type == .area ? "{width, height}" : "an array of integers"
            throw .invalidParams(path, "must be \(alternative), not \(json.typeName)")
        }
        let numbers = array.compactMap(\.integer)
        guard numbers.count == array.count else { throw .invalidParams(path, "must contain only integers") }
        let count = count
        let isRightLength = control.flags.contains(.dynamicArray) ? numbers.count <= count : numbers.count == count
        guard isRightLength else { throw .invalidParams(path, "must have \(count) elements, not \(numbers.count)") }
        let width: ClosedRange<Int64>
        switch control.type {
        case .u8: width = 0...Int64(UInt8.max)
        case .u16: width = 0...Int64(UInt16.max)
        case .u32, .area: width = 0...Int64(UInt32.max)
        default: width = .min ... .max
        }
        // An area has no bounds in V4L2; elsewhere they count for each element.
        let bounds =
            control.type == .area || control.minimum > control.maximum ? width : control.minimum...control.maximum
        if let stranger = numbers.first(where: { !width.contains($0) || !bounds.contains($0) }) {
            throw outOfRange(stranger)
        }
        return .integers(numbers)
    }

    /// As left, top, width and height, or {x, y, width, height}. There is no nearest rectangle.
    private func rectangle(_ json: JSONValue) throws(BusError) -> ControlValue {
        let numbers = json.array?.compactMap(\.integer) ?? []
        guard let rectangle = PixelRectangle(json: json) ?? PixelRectangle(.integers(numbers)),
            json.array?.count ?? 4 == 4
        else { throw .invalidParams(path, "must be four integers: left, top, width and height") }
        guard let bounds = control.bounds, bounds.contains(rectangle) else {
            throw .outside(control.bounds, rectangle, of: control.name)
        }
        return rectangle.numbers
    }

    private var count: Int {
        if control.type == .area, control.dimensions.isEmpty { return 2 }
        var count = 1
        for length in control.dimensions {
            let (product, overflow) = count.multipliedReportingOverflow(by: length)
            count = overflow ? .max : product
        }
        return count
    }

    private func outOfRange(_ asked: some CustomStringConvertible) -> BusError {
        var data: [String: JSONValue] = [
            "control": .string(control.name), "min": .integer(control.minimum), "max": .integer(control.maximum),
            "step": .integer(control.step),
        ]
        var range = "\(control.minimum) to \(control.maximum)"
        if control.step > 1 { range += " in steps of \(control.step)" }
        if control.type == .string { range += " bytes" }
        if control.hasMenu {
            let items = control.menu.sorted { $0.key < $1.key }
            data["menu"] = .array(
                items.map { .object(["index": .integer($0.key), "name": .string($0.value.text)]) })
            range = items.map { "\($0.key) (\($0.value.text))" }.joined(separator: ", ")
        }
        return BusError(.controlOutOfRange, "\(control.name) can't be \(asked); it takes \(range).", data)
    }
}

extension BusError {
    /// A rectangle that doesn't lie within its bounds.
    static func outside(_ bounds: PixelRectangle?, _ asked: PixelRectangle, of control: String) -> BusError {
        let bounds = bounds ?? PixelRectangle(x: 0, y: 0, width: 0, height: 0)
        return BusError(
            .controlOutOfRange,
            "\(control) can't be \(asked.told); it has at least one pixel and lies within \(bounds.told).",
            [
                "control": .string(control), "min": 1, "max": .integer(max(bounds.width, bounds.height)), "step": 1,
                "bounds": bounds.json,
            ])
    }
}

extension PixelRectangle {
    fileprivate var told: String { "\(width)x\(height) at \(x),\(y)" }
}

extension ControlMenuItem {
    fileprivate var text: String {
        switch self {
        case .name(let name): name
        case .value(let value): String(value)
        }
    }
}
