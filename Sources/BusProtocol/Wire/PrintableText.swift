/// Text of others (names of programs, notes, reasons, paths), made fit for a terminal or a line of a log: nothing in it
/// steers a terminal, begins a line, or changes the direction of writing.
extension StringProtocol {
    /// Each such character is U+FFFD instead: one column wide.
    public var printable: String { replacingControls { _ in "\u{FFFD}" } }

    /// The same, but the line feeds and tabs stay.
    public var printableLines: String { replacingControls { $0 == "\n" || $0 == "\t" ? String($0) : "\u{FFFD}" } }

    /// Each such character is an escape instead: `\n`, `\t`, `\u{1b}`.
    public var escaped: String {
        replacingControls { scalar in
            switch scalar {
            case "\n": "\\n"
            case "\r": "\\r"
            case "\t": "\\t"
            default: "\\u{\(String(scalar.value, radix: 16))}"
            }
        }
    }

    /// Of a text of JSON: each such character of its strings is an escape of JSON instead, `\u009b`. The line feeds
    /// between its members stay.
    public var escapedInJSON: String {
        replacingControls { scalar in
            guard scalar != "\n" else { return "\n" }
            return UTF16.encode(scalar)?.map { unit in
                let digits = String(unit, radix: 16)
                return "\\u\(String(repeating: "0", count: 4 - digits.count))\(digits)"
            }.joined() ?? ""
        }
    }

    private func replacingControls(_ replacement: (Unicode.Scalar) -> String) -> String {
        guard unicodeScalars.contains(where: \.isControl) else { return String(self) }
        return unicodeScalars.reduce(into: "") { text, scalar in
            if scalar.isControl { text += replacement(scalar) } else { text.unicodeScalars.append(scalar) }
        }
    }
}

extension Unicode.Scalar {
    /// Whether it steers a terminal, begins a line, or changes the direction of writing.
    var isControl: Bool {
        switch properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: true
        default: false
        }
    }
}
