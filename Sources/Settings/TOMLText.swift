import CTOML
import Glibc
import JSON

/// Reads TOML (1.0), the language of the configuration files.
enum TOMLText {
    /// How long it may take altogether, milliseconds: the parser needs some for the largest files.
    private static let limit: Int64 = 2000
    /// Levels of tables and arrays.
    private static let levels = 64

    /// The document as JSON: dates and times are strings, also `inf` and `nan`.
    ///
    /// The parser runs in a process of its own, since some texts end it. Such a text is an error like any other.
    static func json(_ text: String) throws(SettingsError) -> JSONValue {
        let bytes = Array(text.utf8)
        let began = ContinuousClock.now
        switch try read(bytes[...], began) {
        case .json(let json): return json
        case .invalid(let why): throw SettingsError(description: why)
        case .late: throw SettingsError(description: "it could not be read in time; try again", isTemporary: true)
        case .died:
            let place = try deadlyLine(bytes, began).map { "line \($0): " } ?? ""
            throw SettingsError(description: "\(place)this is not valid TOML")
        }
    }

    private enum Answer {
        case json(JSONValue)
        case invalid(String)
        case died
        case late
    }

    private static func read(
        _ text: ArraySlice<UInt8>, _ began: ContinuousClock.Instant
    ) throws(SettingsError) -> Answer {
        let spent = began.duration(to: .now).components
        let left = Self.limit - spent.seconds * 1000 - spent.attoseconds / 1_000_000_000_000_000
        guard left > 0 else { return .late }
        var (answer, count): (UnsafeMutablePointer<CChar>?, Int) = (nil, 0)
        let result = text.withUnsafeBytes { bytes in
            ctoml_read(
                bytes.bindMemory(to: CChar.self).baseAddress, bytes.count, Int32(levels), Int32(left), &answer, &count)
        }
        let code = errno
        defer { free(answer) }
        let bytes = Array(UnsafeRawBufferPointer(start: answer, count: answer == nil ? 0 : count))
        switch Int(result) {
        case CTOML_JSON:
            do {
                return .json(try JSONValue(parsing: bytes, maximumDepth: levels))
            } catch {
                return .invalid("\(error)")
            }
        case CTOML_ERROR: return .invalid(String(decoding: bytes, as: UTF8.self))
        case CTOML_DIED: return .died
        case CTOML_LATE: return .late
        default:
            throw SettingsError(
                description: "it can't be read now: \(String(cString: strerror(code)))", isTemporary: true)
        }
    }

    /// The first line at which the parser dies; nil: that can't be found out in time.
    private static func deadlyLine(
        _ text: [UInt8], _ began: ContinuousClock.Instant
    ) throws(SettingsError) -> Int? {
        // Each with its end: some texts are deadly only with it.
        var ends = text.indices.filter { text[$0] == UInt8(ascii: "\n") }.map { $0 + 1 }
        if ends.last != text.count { ends.append(text.count) }
        // With all lines it dies, without any it doesn't.
        var (lives, dies) = (0, ends.count)
        while dies - lives > 1 {
            let middle = (lives + dies) / 2
            switch try read(text[..<ends[middle - 1]], began) {
            case .died: dies = middle
            case .late: return nil
            case .json, .invalid: lives = middle
            }
        }
        return dies
    }
}
