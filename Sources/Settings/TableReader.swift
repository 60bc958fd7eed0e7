public import JSON

/// What is wrong with a configuration file, and where.
public struct SettingsError: Error, Hashable, CustomStringConvertible, Sendable {
    public var description: String
    /// The file may be right: the machine was short of something.
    public var isTemporary: Bool

    public init(description: String, isTemporary: Bool = false) {
        (self.description, self.isTemporary) = (description, isTemporary)
    }
}

/// Reads a table's keys by name and type, and then tells of those that nobody asked for.
public struct TableReader {
    private let table: [String: JSONValue]
    private let path: String
    private var unread: Set<String>

    /// Reads a file's text.
    public init(toml text: String) throws(SettingsError) {
        self.init(try TOMLText.json(text).object ?? [:], path: "")
    }

    private init(_ table: [String: JSONValue], path: String) {
        self.table = table
        self.path = path
        unread = Set(table.keys)
    }

    /// The keys, sorted.
    public var names: [String] { table.keys.sorted() }

    /// `[name]`, if it is there.
    public mutating func section(
        _ name: String, _ read: (inout TableReader) throws(SettingsError) -> Void
    ) throws(SettingsError) {
        unread.remove(name)
        guard let value = table[name] else { return }
        guard let section = value.object else { throw wrong(name, "must be a section, [\(name)]") }
        var reader = TableReader(section, path: "\(path)\(name).")
        try read(&reader)
        try reader.finish()
    }

    /// `[[name]]`, as often as it is there.
    public mutating func tables(
        _ name: String, _ read: (inout TableReader) throws(SettingsError) -> Void
    ) throws(SettingsError) {
        guard take(name) else { return }
        guard let array = table[name]?.array else { throw wrong(name, "must be written as [[\(name)]]") }
        for item in array {
            guard let section = item.object else { throw wrong(name, "must be written as [[\(name)]]") }
            var reader = TableReader(section, path: "\(path)\(name).")
            try read(&reader)
            try reader.finish()
        }
    }

    /// A number within a range. nil: it is not there.
    public mutating func number(_ name: String, _ range: ClosedRange<Double>) throws(SettingsError) -> Double? {
        guard take(name) else { return nil }
        guard let value = table[name]?.double, range.contains(value) else {
            throw wrong(name, "must be a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }

    /// A value of any kind; nil: it is not there.
    public mutating func json(_ name: String) -> JSONValue? {
        unread.remove(name)
        return table[name]
    }

    /// A string, or one of some words. nil: it is not there.
    public mutating func string(_ name: String, oneOf words: [String]? = nil) throws(SettingsError) -> String? {
        guard take(name) else { return nil }
        guard let value = table[name]?.string else { throw wrong(name, "must be a string") }
        if let words, !words.contains(value) { throw wrong(name, "must be one of \(words.joined(separator: ", "))") }
        return value
    }

    /// A whole number within a range. nil: it is not there.
    public mutating func integer(_ name: String, _ range: ClosedRange<Int>) throws(SettingsError) -> Int? {
        guard take(name) else { return nil }
        guard case .integer(let number)? = table[name], let value = Int(exactly: number), range.contains(value) else {
            throw wrong(name, "must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }

    /// A list of strings. nil: it is not there.
    public mutating func strings(_ name: String) throws(SettingsError) -> [String]? {
        guard take(name) else { return nil }
        guard let array = table[name]?.array else { throw wrong(name, "must be a list of strings") }
        var strings: [String] = []
        for item in array {
            guard let text = item.string else { throw wrong(name, "must be a list of strings") }
            strings.append(text)
        }
        return strings
    }

    /// True or false. nil: it is not there.
    public mutating func boolean(_ name: String) throws(SettingsError) -> Bool? {
        guard take(name) else { return nil }
        guard let value = table[name]?.bool else { throw wrong(name, "must be true or false") }
        return value
    }

    /// - Throws: for a key that nobody asked for: a misspelled one would else be silently without effect.
    public func finish() throws(SettingsError) {
        if let name = unread.sorted().first { throw wrong(name, "is not a key that this version knows") }
    }

    private mutating func take(_ name: String) -> Bool {
        unread.remove(name)
        return table[name] != nil
    }

    private func wrong(_ name: String, _ why: String) -> SettingsError {
        SettingsError(description: "\(path)\(name) \(why)")
    }
}
