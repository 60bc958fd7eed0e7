/// Whom a gateway lets in from other machines: a file with a line for each, `ROLE KEY NAME` for programs, `ROLE TOKEN NAME` for browsers and other
/// users of its page. Lines that are empty or begin with `#` are for people, and stay where they are.
///
/// The role stands first, as a key may begin with any character.
public struct GuestList: Hashable, Sendable {
    /// By what somebody is known.
    public enum Credential: String, Hashable, Sendable {
        /// The public key of the other's pair, in Z85.
        case key
        /// A secret of both.
        case token

        /// Whether a text can be one: the right number of the right characters.
        public func isWellFormed(_ text: String) -> Bool {
            switch self {
            case .key: text.utf8.count == 40 && text.utf8.allSatisfy(GuestList.alphabet.contains)
            case .token: (16...128).contains(text.utf8.count) && text.utf8.allSatisfy(GuestList.tokenAlphabet.contains)
            }
        }

        // A token that is nearly one is a secret already, and goes into no message.
        fileprivate func problem(_ text: String) -> Problem {
            switch self {
            case .key: Problem(description: "'\(text.prefix(64))' is no public key: 40 characters of Z85")
            case .token:
                Problem(
                    description:
                        "a token has 16 to 128 letters, digits, '-' and '_', as 'camerabus tokens new' makes it")
            }
        }
    }

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

    /// Why something is no line of such a file, or can't be added to it.
    public struct Problem: Error, Hashable, Sendable, CustomStringConvertible {
        public var description: String
    }

    private enum Line: Hashable, Sendable {
        case entry(Entry)
        case text(String)
    }

    /// Of a name.
    public static let maximumNameCharacters = 64
    /// Browsers on the gateway's own machine, which would be one user with a key of that name.
    public static let pageName = "web"
    /// The words for roles.
    public static let roles: [Request.Principal.Role] = [.view, .control, .admin]

    private var lines: [Line] = []
    private let credential: Credential

    /// Nobody.
    public init(by credential: Credential = .key) { self.credential = credential }

    /// Reads a file's text. A line that is wrong makes all of it wrong: half a list might leave somebody out, or let him in.
    public init(parsing text: String, by credential: Credential = .key) throws(Problem) {
        self.init(by: credential)
        var lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).map(String.init)
        // The last line ends, too.
        if lines.last == "" { lines.removeLast() }
        for (index, line) in lines.enumerated() {
            do throws(Problem) {
                if let entry = try Self.entry(in: line[...], by: credential) {
                    try add(entry)
                } else {
                    self.lines.append(.text(line))
                }
            } catch {
                throw Problem(description: "line \(index + 1): \(error.description)")
            }
        }
    }

    /// What a line says, by itself.
    ///
    /// - Returns: nil: it is for people.
    public static func entry(in line: Substring, by credential: Credential) throws(Problem) -> Entry? {
        let words = line.split(maxSplits: 2, whereSeparator: { $0 == " " || $0 == "\t" }).map(String.init)
        guard let first = words.first, !first.hasPrefix("#") else { return nil }
        guard words.count == 3, let role = roles.first(where: { $0.rawValue == first }) else {
            throw Problem(
                description:
                    "it is not 'ROLE \(credential.rawValue.uppercased()) NAME', with view, control or admin as role")
        }
        let entry = Entry(role: role, key: words[1], name: trimmed(words[2]))
        try check(entry, credential)
        return entry
    }

    private static func check(_ entry: Entry, _ credential: Credential) throws(Problem) {
        guard credential.isWellFormed(entry.key) else { throw credential.problem(entry.key) }
        try check(name: entry.name)
        guard roles.contains(entry.role) else { throw Problem(description: "a role is view, control or admin") }
    }

    /// - Throws: for what nobody can be called.
    public static func check(name: String) throws(Problem) {
        guard isName(name) else {
            throw Problem(
                description:
                    """
                    a name has 1 to \(maximumNameCharacters) characters, none of them a control character, and is not '\(pageName)' nor begins with \
                    '\(pageName)/', as the gateway's page is called
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

    /// Whose key or token that is; nil: nobody's who is let in.
    public subscript(key: String) -> Entry? { entries.first { $0.key == key } }

    /// The file.
    public var text: String {
        lines.map { line in
            switch line {
            case .entry(let entry): "\(entry.role.rawValue) \(entry.key) \(entry.name)\n"
            case .text(let text): "\(text)\n"
            }
        }.joined()
    }

    /// Lets somebody in.
    ///
    /// - Throws: for a key or token that is none, a name that can't be one, and where there is one or the other already.
    public mutating func add(_ entry: Entry) throws(Problem) {
        try Self.check(entry, credential)
        let word = credential.rawValue
        if let other = entries.first(where: { $0.name == entry.name }) {
            throw Problem(description: "there is a \(word) of the name '\(other.name)' already")
        }
        if let other = self[entry.key] { throw Problem(description: "'\(other.name)' has that \(word) already") }
        lines.append(.entry(entry))
    }

    /// Gives somebody another role.
    ///
    /// - Returns: false: there is none of that name.
    public mutating func setRole(_ role: Request.Principal.Role, of name: String) -> Bool {
        for (index, line) in lines.enumerated() {
            guard case .entry(var entry) = line, entry.name == name else { continue }
            entry.role = role
            lines[index] = .entry(entry)
            return true
        }
        return false
    }

    /// Lets who has that name in no more.
    ///
    /// - Returns: whose it was; nil: there is none of that name.
    public mutating func remove(_ name: String) -> Entry? {
        guard let entry = entries.first(where: { $0.name == name }) else { return nil }
        lines.removeAll { $0 == .entry(entry) }
        return entry
    }

    /// Whether a text can be a public key.
    public static func isKey(_ text: String) -> Bool { Credential.key.isWellFormed(text) }

    /// Whether somebody may be called so. Names of the web side's visitors, `web` and what begins with `web/`, are nobody's else.
    public static func isName(_ text: String) -> Bool {
        text != pageName && !text.hasPrefix("\(pageName)/")
            && (1...maximumNameCharacters).contains(text.unicodeScalars.count)
            && text == trimmed(text)
            && text.unicodeScalars.allSatisfy { scalar in
                switch scalar.properties.generalCategory {
                case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: false
                default: true
                }
            }
    }

    private static func trimmed(_ text: String) -> String {
        var scalars = Substring(text).unicodeScalars
        while scalars.first?.properties.isWhitespace == true { scalars.removeFirst() }
        while scalars.last?.properties.isWhitespace == true { scalars.removeLast() }
        return String(scalars)
    }

    private static let alphabet = Set(
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#".utf8)
    private static let tokenAlphabet = Set("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_".utf8)
}
