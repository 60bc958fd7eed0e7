import Glibc

/// Wraps help at blanks to fit the terminal. Usage lines and examples stay whole, so that they can be copied.
enum HelpText {
    /// - Parameters:
    ///   - text: with each paragraph, and each option, in a line of its own.
    ///   - columns: how many characters a line may have.
    static func wrapped(_ text: String, columns: Int) -> String {
        var isExample = false
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).flatMap { line -> [Substring] in
            if line == "EXAMPLES:" { isExample = true }
            if line.isEmpty { isExample = false }
            return isExample || line.hasPrefix("USAGE: ") ? [line] : wrapped(line, columns: columns)
        }
        return lines.joined(separator: "\n")
    }

    /// How many characters fit into a line: of the terminal, else as `COLUMNS` says, else 80.
    static var columns: Int {
        var size = winsize()
        if ioctl(1, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 { return max(40, Int(size.ws_col)) }
        let named = getenv("COLUMNS").flatMap { Int(String(cString: $0)) } ?? 80
        return (40...1000).contains(named) ? named : 80
    }

    private static func wrapped(_ line: Substring, columns: Int) -> [Substring] {
        let indent = String(repeating: " ", count: hangingIndent(line))
        var lines: [Substring] = []
        var rest = line
        while rest.count > columns {
            // Blanks of the indentation, and between an option and its text, are no place to break.
            let head = rest.prefix(columns + 1)
            let start = rest.index(rest.startIndex, offsetBy: indent.count, limitedBy: rest.endIndex) ?? rest.endIndex
            let place = head.lastIndex(of: " ") ?? start
            guard let blank = place > start ? place : rest[start...].firstIndex(of: " ") else { break }
            lines.append(rest[..<blank])
            rest = indent + rest[rest.index(after: blank)...]
        }
        return lines + [rest]
    }

    /// Where further lines begin: below the text behind an option or a number, else where the line begins.
    private static func hangingIndent(_ line: Substring) -> Int {
        let own = line.prefix { $0 == " " }.count
        let label = line.dropFirst(own)
        guard own > 0, let gap = label.firstRange(of: "  ") else { return own }
        let blanks = label[gap.lowerBound...].prefix { $0 == " " }.count
        let column = own + label.distance(from: label.startIndex, to: gap.lowerBound) + blanks
        return column <= 26 ? column : own
    }
}
