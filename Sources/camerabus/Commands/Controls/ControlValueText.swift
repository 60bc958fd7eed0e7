import JSON

/// Converts typed values of a driver's control, and describes the values that it takes.
struct ControlValueText {
    private let control: JSONValue
    private let name: String

    /// - Parameter control: as `device.controls` describes it.
    init(_ control: JSONValue) {
        self.control = control
        name = ValueText.plain(control["name"])
    }

    /// Converts a typed value to the value for the bus.
    ///
    /// - Throws: what the control takes, when it can't be that.
    func value(_ typed: JSONValue) throws(Failure) -> JSONValue {
        let type = control["type"]?.string
        if typed.isNull {
            if type == "button" { return typed }
            throw wrong("\(name) needs a value, \(name)=VALUE")
        }
        switch type {
        case "bool": return .bool(try flag(typed))
        case "int", "int64", "bitmask":
            if typed.integer == nil { throw wrong("\(name) can't be \(shown(typed))") }
        case "menu", "intmenu", "str":
            if let flag = typed.bool { return .string(String(flag)) }
        case "button": throw Failure(status: ExitStatus.usage, description: "\(name) is a button. It takes no value.")
        default: break
        }
        return typed
    }

    /// What it takes, in a few words.
    var range: String {
        let (low, high) = (ValueText.plain(control["minimum"]), ValueText.plain(control["maximum"]))
        switch control["type"]?.string {
        case "bool": return "on or off"
        case "int", "int64":
            let step = control["step"]?.integer ?? 1
            return "whole numbers from \(low) to \(high)" + (step > 1 ? " in steps of \(step)" : "")
        case "bitmask": return "a number of the bits in \(high)"
        case "menu", "intmenu":
            let items = (control["menu"]?.array ?? []).map { item in
                "\(ValueText.plain(item["index"])) (\(ValueText.plain(item["name"] ?? item["value"])))"
            }
            return items.joined(separator: ", ")
        case "str": return "text of \(low) to \(high) bytes"
        default: return "numbers separated by commas"
        }
    }

    /// Reads a boolean in one of its usual spellings.
    static func flag(_ text: String) -> Bool? {
        switch text.lowercased() {
        case "true", "yes", "on", "y": true
        case "false", "no", "off", "n": false
        default: nil
        }
    }

    private func flag(_ typed: JSONValue) throws(Failure) -> Bool {
        if let flag = typed.bool ?? typed.string.flatMap(Self.flag) { return flag }
        switch typed.integer {
        case 0: return false
        case 1: return true
        default: throw wrong("\(name) can't be \(shown(typed))")
        }
    }

    private func shown(_ value: JSONValue) -> String { value.string.map { "'\($0)'" } ?? value.description }

    private func wrong(_ what: String) -> Failure {
        let now = control["value"].map { $0.isNull ? "" : " The current value is \(ValueText.plain($0))." } ?? ""
        return Failure(status: ExitStatus.usage, description: Table.printable("\(what); it takes \(range).\(now)"))
    }
}
