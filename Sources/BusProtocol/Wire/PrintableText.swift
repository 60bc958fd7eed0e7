/// Text of others (names of programs, notes, reasons, paths), made fit for a terminal or a line of a log: nothing in it
/// steers a terminal, begins a line, or changes the direction of writing.
extension StringProtocol {
    /// Each such character is U+FFFD instead: one column wide.
    public var printable: String { replacingControls { _ in "\u{FFFD}" } }

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

    private func replacingControls(_ replacement: (Unicode.Scalar) -> String) -> String {
        guard unicodeScalars.contains(where: \.isControl) else { return String(self) }
        return unicodeScalars.reduce(into: "") { text, scalar in
            if scalar.isControl { text += replacement(scalar) } else { text.unicodeScalars.append(scalar) }
        }
    }
}

extension Unicode.Scalar {
    fileprivate var isControl: Bool {
        switch properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: true
        default: false
        }
    }
}
