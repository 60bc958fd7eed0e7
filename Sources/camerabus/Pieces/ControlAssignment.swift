import ArgumentParser
import JSON

/// `brightness=10`, `white_balance_automatic=false`, `test_pattern=Bars`, `reset` (a button).
struct ControlAssignment: ExpressibleByArgument, Hashable {
    var name: String
    var value: JSONValue

    init(name: String, value: JSONValue) {
        self.name = name
        self.value = value
    }

    init?(argument: String) {
        let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard let name = parts.first, !name.isEmpty else { return nil }
        self.name = String(name)
        guard parts.count == 2 else {
            value = .null
            return
        }
        guard let value = Self.value(String(parts[1])) else { return nil }
        self.value = value
    }

    /// Integers, `true` and `false`; JSON in quotes or brackets; numbers with commas between them; anything else is text, and
    /// the name of a menu's item.
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
