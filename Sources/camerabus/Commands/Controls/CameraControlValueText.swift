import JSON

/// Converts typed values of a control of the capture model, and describes the values that it takes.
struct CameraControlValueText {
    private let control: JSONValue
    private let name: String

    /// - Parameter control: as `cameraControls` of `device.controls` describes it.
    init(_ control: JSONValue) {
        self.control = control
        name = ValueText.plain(control["name"])
    }

    /// Whether this is a name of the capture model. Names of drivers have no capital letters.
    static func isName(_ name: String) -> Bool { name != name.lowercased() }

    /// Converts a typed value to the value for the bus.
    ///
    /// - Throws: what the control takes, when it can't be that.
    func value(_ typed: JSONValue) throws(Failure) -> JSONValue {
        if typed.object != nil { return typed }
        switch control["type"]?.string {
        case "flag":
            if let flag = typed.bool ?? typed.string.flatMap(ControlValueText.flag) { return .bool(flag) }
            if let number = typed.integer, number == 0 || number == 1 { return .bool(number == 1) }
            throw wrong(typed)
        case "number":
            let fraction = control["unit"] == "s" ? typed.string.flatMap { ValueText.fraction($0) } : nil
            guard let number = typed.double ?? typed.string.flatMap(Double.init) ?? fraction, number.isFinite else {
                throw wrong(typed)
            }
            return .number(number)
        case "word":
            // `on` and `off` are words here.
            if let flag = typed.bool { return flag ? "on" : "off" }
            return typed
        case "point": return try pair(typed, "x", "y")
        case "gains": return try pair(typed, "red", "blue")
        case "rectangle": return try rectangle(typed)
        default: return typed
        }
    }

    /// What it takes, in a few words.
    var range: String {
        switch control["type"]?.string {
        case "flag": return "on or off"
        case "number":
            if let values = control["values"]?.array, !values.isEmpty {
                return values.map(\.description).joined(separator: ", ")
            }
            let unit = control["unit"]?.string.map { " \($0)" } ?? ""
            return "\(ValueText.plain(control["minimum"]))–\(ValueText.plain(control["maximum"]))\(unit)"
        case "word": return (control["choices"]?.array?.compactMap(\.string) ?? []).joined(separator: ", ")
        case "point": return "x,y from 0 to 1"
        case "gains":
            let most = control["maximum"]
            return "red,blue up to \(ValueText.plain(most?["red"])),\(ValueText.plain(most?["blue"]))"
        case "rectangle": return "x,y,width,height within \(ValueText.assigned(control["bounds"]))"
        default: return "-"
        }
    }

    private func rectangle(_ typed: JSONValue) throws(Failure) -> JSONValue {
        let parts = typed.string?.split(separator: ",", omittingEmptySubsequences: false)
        let numbers = typed.array?.compactMap(\.integer) ?? parts?.compactMap { Int64($0) } ?? []
        guard numbers.count == 4, typed.array?.count ?? parts?.count == 4 else { throw wrong(typed) }
        return [
            "x": .integer(numbers[0]), "y": .integer(numbers[1]), "width": .integer(numbers[2]),
            "height": .integer(numbers[3]),
        ]
    }

    private func pair(_ typed: JSONValue, _ first: String, _ second: String) throws(Failure) -> JSONValue {
        let numbers =
            typed.array?.compactMap(\.double)
            ?? typed.string?.split(separator: ",", omittingEmptySubsequences: false).compactMap { Double($0) } ?? []
        guard numbers.count == 2 else { throw wrong(typed) }
        return .object([first: .number(numbers[0]), second: .number(numbers[1])])
    }

    private func wrong(_ typed: JSONValue) -> Failure {
        let shown = typed.isNull ? "nothing" : typed.string.map { "'\($0)'" } ?? typed.description
        return Failure(
            status: ExitStatus.usage, description: Table.printable("\(name) can't be \(shown); it takes \(range)."))
    }
}
