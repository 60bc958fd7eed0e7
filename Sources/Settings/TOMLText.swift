import CTOML
import Glibc
import JSON

/// Reads TOML (1.0), the language of the configuration files.
enum TOMLText {
    /// How long the parser may take. It needs some milliseconds for the largest files.
    private static let limit: Int32 = 5000

    /// The document as JSON: dates and times are strings, also `inf` and `nan`.
    ///
    /// The parser runs in a process of its own, since some texts end it. Such a text is an error like any other.
    static func json(_ text: String) throws(SettingsError) -> JSONValue {
        switch try read(text) {
        case .json(let json): return json
        case .invalid(let why): throw SettingsError(description: why)
        case .died: throw SettingsError(description: "line \(try deadlyLine(text)): this is not valid TOML")
        }
    }

    private enum Answer {
        case json(JSONValue)
        case invalid(String)
        case died
    }

    private static func read(_ text: String) throws(SettingsError) -> Answer {
        var (answer, count): (UnsafeMutablePointer<CChar>?, Int) = (nil, 0)
        var text = text
        let result = text.withUTF8 { bytes in
            bytes.withMemoryRebound(to: CChar.self) { ctoml_read($0.baseAddress, $0.count, limit, &answer, &count) }
        }
        let code = errno
        defer { free(answer) }
        let bytes = Array(UnsafeRawBufferPointer(start: answer, count: answer == nil ? 0 : count))
        switch Int(result) {
        case CTOML_JSON:
            do {
                return .json(try JSONValue(parsing: bytes))
            } catch {
                return .invalid("\(error)")
            }
        case CTOML_ERROR: return .invalid(String(decoding: bytes, as: UTF8.self))
        case CTOML_DIED: return .died
        default:
            throw SettingsError(description: "it can't be read now: \(String(cString: strerror(code)))")
        }
    }

    /// The first line at which the parser dies.
    private static func deadlyLine(_ text: String) throws(SettingsError) -> Int {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        // With all lines it dies, without any it doesn't.
        var (lives, dies) = (0, lines.count)
        while dies - lives > 1 {
            let middle = (lives + dies) / 2
            if case .died = try read(lines[..<middle].joined(separator: "\n")) { dies = middle } else { lives = middle }
        }
        return dies
    }
}
