/// Suggests a known name for a mistyped one.
enum Spelling {
    /// The one of the names that is typed most like the word; nil: none is much like it.
    static func nearest(_ word: String, _ names: [String]) -> String? {
        let word = Array(word.lowercased().unicodeScalars.prefix(64))
        let best = names.map { (name: $0, distance: distance(word, Array($0.unicodeScalars))) }
            .min { $0.distance < $1.distance }
        guard let best, best.distance <= max(1, best.name.count / 3) else { return nil }
        return best.name
    }

    /// How many letters have to be put in, left out, changed or swapped with the next one.
    private static func distance(_ one: [Unicode.Scalar], _ other: [Unicode.Scalar]) -> Int {
        var rows = [Array(0...other.count)]
        for (i, letter) in one.enumerated() {
            var row = [i + 1]
            for (j, wanted) in other.enumerated() {
                var cost = min(row[j] + 1, rows[i][j + 1] + 1, rows[i][j] + (letter == wanted ? 0 : 1))
                if i > 0, j > 0, letter == other[j - 1], one[i - 1] == wanted {
                    cost = min(cost, rows[i - 1][j - 1] + 1)
                }
                row.append(cost)
            }
            rows.append(row)
        }
        return rows[one.count][other.count]
    }
}
