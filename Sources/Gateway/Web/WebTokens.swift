public import BusProtocol

/// Who may use the web side from other machines: a file with a line for each, `ROLE TOKEN NAME`.
public struct WebTokens: Hashable, Sendable {
    /// Why a file is none.
    public struct Problem: Error, Hashable, Sendable, CustomStringConvertible {
        public var description: String
    }

    private var principals: [(token: [UInt8], principal: Request.Principal)] = []

    /// Nobody.
    public init() {}

    /// Reads a file's text. A line that is wrong makes all of it wrong, as of the keys.
    public init(parsing text: String) throws(Problem) {
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let words = line.split(maxSplits: 2, whereSeparator: { $0 == " " || $0 == "\t" }).map(String.init)
            guard let first = words.first, !first.hasPrefix("#") else { continue }
            guard words.count == 3, let role = AllowedKeys.roles.first(where: { $0.rawValue == first }) else {
                throw Problem(
                    description: "line \(index + 1) is not 'ROLE TOKEN NAME', with view, control or admin as role")
            }
            guard Self.isToken(words[1]) else {
                throw Problem(
                    description:
                        "line \(index + 1): a token has 16 to 128 letters, digits, '-' and '_', as from 'openssl rand -hex 16'"
                )
            }
            let name = words[2].split(whereSeparator: \.isWhitespace).joined(separator: " ")
            guard (1...AllowedKeys.maximumNameCharacters).contains(name.unicodeScalars.count) else {
                throw Problem(
                    description: "line \(index + 1): a name has 1 to \(AllowedKeys.maximumNameCharacters) characters")
            }
            principals.append((Array(words[1].utf8), Request.Principal(name: name, role: role)))
        }
    }

    public var isEmpty: Bool { principals.isEmpty }

    /// Whose token that is; nil: nobody's. It takes as long whichever it is.
    public func principal(of token: String) -> Request.Principal? {
        let asked = Array(token.utf8)
        var found: Request.Principal?
        for (known, principal) in principals where known.count == asked.count {
            var difference: UInt8 = 0
            for index in known.indices { difference |= known[index] ^ asked[index] }
            if difference == 0 { found = principal }
        }
        return found
    }

    /// Whether somebody with a token is called so and has that role.
    public func names(_ principal: Request.Principal) -> Bool {
        principals.contains { $0.principal == principal }
    }

    private static func isToken(_ text: String) -> Bool {
        (16...128).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 48...57, 65...90, 97...122, UInt8(ascii: "-"), UInt8(ascii: "_"): true
                default: false
                }
            }
    }

    public static func == (one: Self, other: Self) -> Bool {
        one.principals.elementsEqual(other.principals) { $0.token == $1.token && $0.principal == $1.principal }
    }

    public func hash(into hasher: inout Hasher) {
        for (token, principal) in principals {
            hasher.combine(token)
            hasher.combine(principal)
        }
    }
}
