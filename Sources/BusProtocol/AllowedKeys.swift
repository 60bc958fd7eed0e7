/// Whom a gateway lets in from other machines: a file with a line for each, `ROLE KEY NAME`, where the key is the public one of the
/// other's pair, in Z85. Lines that are empty or begin with `#` are for people, and stay where they are.
///
/// The role stands first, as a key may begin with any character.
public struct AllowedKeys: Hashable, Sendable {
    /// Who has a key.
    public struct Entry: Hashable, Sendable {
        public var role: Request.Principal.Role
        /// 40 characters of Z85.
        public var key: String
        /// What it is called as holder of locks and elsewhere: each once.
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

    /// Nobody's.
    public init() {}

    /// Reads a file's text. A line that is wrong makes all of it wrong: half a list might leave a key out, or let one in.
    public init(parsing text: String) throws(Problem) {
        var lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).map(String.init)
        // The last line ends, too.
        if lines.last == "" { lines.removeLast() }
        for (index, line) in lines.enumerated() {
            let words = line.split(maxSplits: 2, whereSeparator: { $0 == " " || $0 == "\t" }).map(String.init)
            guard let first = words.first, !first.hasPrefix("#") else {
                self.lines.append(.text(line))
                continue
            }
            guard words.count == 3, let role = Self.roles.first(where: { $0.rawValue == first }) else {
                throw Problem(
                    description: "line \(index + 1) is not 'ROLE KEY NAME', with view, control or admin as role")
            }
            do throws(Problem) {
                try add(Entry(role: role, key: words[1], name: Self.trimmed(words[2])))
            } catch {
                throw Problem(description: "line \(index + 1): \(error.description)")
            }
        }
    }

    /// In the order of the file.
    public var entries: [Entry] {
        lines.compactMap { line in
            guard case .entry(let entry) = line else { return nil }
            return entry
        }
    }

    /// Whose key that is; nil: nobody's who is let in.
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
    /// - Throws: for a key that is none, a name that can't be one, and where there is the key or the name already.
    public mutating func add(_ entry: Entry) throws(Problem) {
        guard Self.isKey(entry.key) else {
            throw Problem(description: "'\(entry.key.prefix(64))' is no public key: 40 characters of Z85")
        }
        guard Self.isName(entry.name) else {
            throw Problem(
                description:
                    "a name has 1 to \(Self.maximumNameCharacters) characters, none of them a control character, and is not 'web'"
            )
        }
        guard entry.name != Self.pageName else {
            throw Problem(description: "'\(Self.pageName)' is what the gateway's page is called; take another name")
        }
        guard Self.roles.contains(entry.role) else { throw Problem(description: "a role is view, control or admin") }
        if let other = entries.first(where: { $0.name == entry.name }) {
            throw Problem(description: "there is a key of the name '\(other.name)' already")
        }
        if let other = self[entry.key] { throw Problem(description: "'\(other.name)' has that key already") }
        lines.append(.entry(entry))
    }

    /// Gives a key another role.
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

    /// Lets the key of that name in no more.
    ///
    /// - Returns: whose it was; nil: there is none of that name.
    public mutating func remove(_ name: String) -> Entry? {
        guard let entry = entries.first(where: { $0.name == name }) else { return nil }
        lines.removeAll { $0 == .entry(entry) }
        return entry
    }

    /// Whether a text can be a key: the right number of the right characters.
    public static func isKey(_ text: String) -> Bool {
        text.utf8.count == 40 && text.utf8.allSatisfy(alphabet.contains)
    }

    /// Whether somebody may be called so. Names of the web side's visitors, `web` and what begins with `web/`, are nobody's else.
    public static func isName(_ text: String) -> Bool {
        text != "web" && !text.hasPrefix("web/") && (1...maximumNameCharacters).contains(text.unicodeScalars.count)
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
}
