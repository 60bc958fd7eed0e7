import ArgumentParser
import JSON

/// `brightness=10`, `white_balance_automatic=false`, `test_pattern=Bars`, `reset` (a button).
struct ControlAssignment: Hashable {
    var name: String
    var value: JSONValue

    init(name: String, value: JSONValue) {
        self.name = name
        self.value = value
    }

    /// - Throws: what is wrong with it.
    init(reading argument: String) throws {
        let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard let name = parts.first, !name.isEmpty else {
            throw ValidationError("a control's name is missing before '='; 'camerabus controls' lists the names")
        }
        self.name = String(name)
        guard parts.count == 2 else {
            value = .null
            return
        }
        guard let value = Self.value(String(parts[1])) else {
            throw ValidationError("a value that begins with a quotation mark or a bracket must be JSON")
        }
        self.value = value
    }

    /// What it means depends on the control's type.
    var dependsOnType: Bool { value.integer == nil && value.array == nil }

    /// Integers, `true` and `false`; JSON in quotes or brackets; numbers with commas between them; anything else is
    /// text, and the name of a menu's item.
    static func value(_ text: String) -> JSONValue? {
        if text == "true" { return true }
        if text == "false" { return false }
        if let number = integer(text) { return .integer(number) }
        if text.hasPrefix("\"") || text.hasPrefix("[") { return try? JSONValue(parsing: text) }
        let parts = text.split(separator: ",", omittingEmptySubsequences: false).map { integer(String($0)) }
        if parts.count > 1, !parts.contains(nil) { return .array(parts.compactMap { $0.map(JSONValue.integer) }) }
        return .string(text)
    }

    // Also hexadecimal, as drivers' manuals give bit masks and colours.
    private static func integer(_ text: String) -> Int64? {
        text.hasPrefix("0x") ? Int64(text.dropFirst(2), radix: 16) : Int64(text)
    }
}
