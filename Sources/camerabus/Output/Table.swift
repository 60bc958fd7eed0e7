import BusProtocol

/// Rows in aligned columns, for people.
struct Table {
    enum Alignment { case left, right }

    private enum Row {
        case cells([String])
        case note(String)
    }

    private let columns: [(title: String, alignment: Alignment)]
    private var rows: [Row] = []

    /// - Parameter columns: titles from left to right; a title that begins with `>` is of a column of numbers, aligned
    ///   to the right.
    init(_ columns: String...) {
        self.columns = columns.map { title in
            title.hasPrefix(">") ? (String(title.dropFirst()), .right) : (title, .left)
        }
    }

    var isEmpty: Bool { rows.isEmpty }

    /// A row; missing cells are empty.
    mutating func add(_ cells: String...) { rows.append(.cells(cells.map(Self.printable))) }

    /// A line below the last row, of no column.
    mutating func note(_ text: String) { rows.append(.note(Self.printable(text))) }

    /// The lines, with the titles first.
    var lines: [String] {
        let all = [Row.cells(columns.map(\.title))] + rows
        var widths = columns.map { _ in 0 }
        for case .cells(let cells) in all {
            for (index, cell) in cells.enumerated() where index < widths.count {
                widths[index] = max(widths[index], cell.count)
            }
        }
        return all.map { row in
            switch row {
            case .note(let text): return "    " + text
            case .cells(let cells):
                var line = ""
                for (index, column) in columns.enumerated() {
                    let cell = index < cells.count ? cells[index] : ""
                    let filler = String(repeating: " ", count: widths[index] - cell.count)
                    line += (index > 0 ? "  " : "") + (column.alignment == .left ? cell + filler : filler + cell)
                }
                while line.hasSuffix(" ") { line.removeLast() }
                return line
            }
        }
    }

    func print() throws { for line in lines { try Output.line(line) } }

    // What other programs call themselves must not steer the terminal.
    static func printable(_ text: String) -> String { text.printable }
}
