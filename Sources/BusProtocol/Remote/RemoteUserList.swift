/// The text of a keys or tokens file: which remote users are allowed, with comments and invalid lines kept.
public struct RemoteUserList: Hashable, Sendable {
    /// Who is let in.
    public struct Entry: Hashable, Sendable {
        public var role: Request.Principal.Role
        /// His key or token.
        public var key: String
        /// What he is called as holder of locks and elsewhere: each once.
        public var name: String

        public init(role: Request.Principal.Role, key: String, name: String) {
            self.role = role
            self.key = key
            self.name = name
        }
    }

    /// Why something is no line of such a file, or can't be added to it. It quotes no key: what isn't one may be a
    /// secret.
    public struct Problem: Error, Hashable, Sendable, CustomStringConvertible {
        /// Of the file, from 1 on; nil: of none.
        public var line: Int?
        public var why: String

        public var description: String { line.map { "line \($0): \(why)" } ?? why }
    }

    private enum Line: Hashable, Sendable {
        case entry(Entry)
        /// For people.
        case text(String)
        /// Lets nobody in, though it may have been meant for somebody.
        case wrong(String, name: String?, Problem)
    }

    /// Of a name.
    public static let maximumNameCharacters = 64
    /// Browsers on the gateway's own machine, which would be one user with a key of that name.
    public static let pageName = "web"
    /// The words for roles.
    public static let roles: [Request.Principal.Role] = [.view, .control, .admin]

    private var lines: [Line] = []
    private let credential: RemoteCredential

    /// Nobody.
    public init(by credential: RemoteCredential = .key) { self.credential = credential }

    /// Reads a file's text. A line that is wrong makes all of it wrong: half a list might leave somebody out, or let
    /// him in.
    public init(parsing text: String, by credential: RemoteCredential = .key) throws(Problem) {
        self.init(reading: text, by: credential)
        if let first = problems.first { throw first }
    }

    /// Reads a file's text as far as it goes. A line that is wrong lets nobody in, nor does any of two that have the
    /// same name or key; the others count.
    public init(reading text: String, by credential: RemoteCredential) {
        self.init(by: credential)
        var texts = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).map(String.init)
        // The last line ends, too.
        if texts.last == "" { texts.removeLast() }
        lines = texts.enumerated().map { Self.line($1, number: $0 + 1, by: credential) }
        // Which of two is meant, nobody knows.
        let found = lines.enumerated().compactMap { index, line -> (index: Int, entry: Entry)? in
            guard case .entry(let entry) = line else { return nil }
            return (index, entry)
        }
        let names = Dictionary(grouping: found, by: \.entry.name)
        let keys = Dictionary(grouping: found, by: \.entry.key)
        for (index, entry) in found {
            let words = [("name", names[entry.name]), (credential.rawValue, keys[entry.key])]
            for (word, group) in words {
                guard let other = group?.first(where: { $0.index != index }) else { continue }
                let why = "line \(other.index + 1) has the same \(word), and neither counts"
                lines[index] = .wrong(texts[index], name: entry.name, Problem(line: index + 1, why: why))
            }
        }
    }

    private static func line(_ text: String, number: Int, by credential: RemoteCredential) -> Line {
        let words = text.split(maxSplits: 2, whereSeparator: { $0 == " " || $0 == "\t" }).map(String.init)
        guard let first = words.first, !first.hasPrefix("#") else { return .text(text) }
        let name = words.count == 3 ? credential.plainName(words[2]) : nil
        do throws(Problem) {
            guard let name, let role = roles.first(where: { $0.rawValue == first }) else {
                let shape = "ROLE \(credential.rawValue.uppercased()) NAME"
                throw Problem(why: "it is not '\(shape)', with view, control or admin as role")
            }
            let entry = Entry(role: role, key: words[1], name: name)
            try check(entry, credential)
            return .entry(entry)
        } catch {
            return .wrong(text, name: name, Problem(line: number, why: error.why))
        }
    }

    private static func check(_ entry: Entry, _ credential: RemoteCredential) throws(Problem) {
        guard credential.isWellFormed(entry.key) else { throw Problem(why: credential.shape) }
        try check(name: entry.name)
        guard roles.contains(entry.role) else { throw Problem(why: "a role is view, control or admin") }
    }

    /// - Throws: for what nobody can be called.
    public static func check(name: String) throws(Problem) {
        guard isName(name) else {
            throw Problem(
                why: """
                    a name has 1 to \(maximumNameCharacters) characters, none of them a control character, and is not \
                    '\(pageName)' nor begins with '\(pageName)/', as the gateway's page is called
                    """)
        }
    }

    /// In the order of the file.
    public var entries: [Entry] {
        lines.compactMap { line in
            guard case .entry(let entry) = line else { return nil }
            return entry
        }
    }

    /// Of the lines that are wrong, in their order.
    public var problems: [Problem] {
        lines.compactMap { line in
            guard case .wrong(_, _, let problem) = line else { return nil }
            return problem
        }
    }

    /// Whose key or token that is; nil: nobody's who is let in.
    public subscript(key: String) -> Entry? { entries.first { $0.key == key } }

    /// The file.
    public var text: String {
        lines.map { line in
            switch line {
            case .entry(let entry): "\(entry.role.rawValue) \(entry.key) \(entry.name)\n"
            case .text(let text), .wrong(let text, _, _): "\(text)\n"
            }
        }.joined()
    }

    /// Lets somebody in.
    ///
    /// - Throws: for a key or token that is none, a name that can't be one, and where there is one or the other
    ///   already.
    public mutating func add(_ entry: Entry) throws(Problem) {
        var entry = entry
        // Of keys, blanks around it are refused.
        if credential == .token { entry.name = credential.plainName(entry.name) }
        try Self.check(entry, credential)
        if lines.contains(where: { Self.name(of: $0) == entry.name }) {
            throw Problem(why: "there is a \(credential.rawValue) of the name '\(entry.name)' already")
        }
        if let other = self[entry.key] { throw Problem(why: "'\(other.name)' has that \(credential.rawValue) already") }
        lines.append(.entry(entry))
    }

    private static func name(of line: Line) -> String? {
        switch line {
        case .entry(let entry): entry.name
        case .wrong(_, let name, _): name
        case .text: nil
        }
    }

    /// Whether a line that is wrong has that name.
    public func isWrong(_ name: String) -> Bool {
        let name = credential.plainName(name)
        return lines.contains { line in
            guard case .wrong(_, let other, _) = line else { return false }
            return other == name
        }
    }

    /// Gives somebody another role.
    ///
    /// - Returns: false: there is none of that name.
    public mutating func setRole(_ role: Request.Principal.Role, of name: String) -> Bool {
        let name = credential.plainName(name)
        for (index, line) in lines.enumerated() {
            guard case .entry(var entry) = line, entry.name == name else { continue }
            entry.role = role
            lines[index] = .entry(entry)
            return true
        }
        return false
    }

    /// Lets who has that name in no more: all lines of that name go, those that are wrong, too.
    ///
    /// - Returns: false: there is none of that name.
    public mutating func remove(_ name: String) -> Bool {
        let (name, before) = (credential.plainName(name), lines.count)
        lines.removeAll { Self.name(of: $0) == name }
        return lines.count != before
    }

    /// Whether somebody may be called so. Names of the web side's visitors, `web` and what begins with `web/`, are
    /// nobody's else.
    public static func isName(_ text: String) -> Bool {
        text != pageName && !text.hasPrefix("\(pageName)/")
            && (1...maximumNameCharacters).contains(text.unicodeScalars.count)
            && text == RemoteCredential.trimmed(text)
            && !text.unicodeScalars.contains(where: \.isControl)
    }
}
