import BusProtocol

/// Who may use the web side from other machines: a file with a line for each, `ROLE TOKEN NAME`.
struct WebTokens: Sendable {
    /// Why a file is none.
    struct Problem: Error, Hashable, Sendable, CustomStringConvertible {
        var description: String
    }

    private var known: [(token: [UInt8], visitor: Visitor)] = []

    /// Whose a token is, as the file says.
    struct Visitor: Hashable, Sendable {
        var name: String
        var role: Request.Principal.Role

        /// As whom the bus is asked.
        var principal: Request.Principal { WebAccess.Visitor(name: name, role: role, address: "").principal }
    }

    /// Nobody.
    init() {}

    /// Reads a file's text. A line that is wrong makes all of it wrong, as of the keys.
    init(parsing text: String) throws(Problem) {
        for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
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
            guard AllowedKeys.isName(name) else { throw Problem(description: "line \(index + 1): the name is none") }
            guard !known.contains(where: { $0.visitor.name == name || $0.token == Array(words[1].utf8) }) else {
                throw Problem(description: "line \(index + 1): the name, or the token, is there already")
            }
            known.append((Array(words[1].utf8), Visitor(name: name, role: role)))
        }
    }

    /// All who have one.
    var visitors: [Visitor] { known.map(\.visitor) }

    /// Whose token that is; nil: nobody's. It takes as long whichever it is.
    func visitor(of token: String) -> Visitor? {
        let asked = Array(token.utf8)
        var found: Visitor?
        for (token, visitor) in known where token.count == asked.count {
            var difference: UInt8 = 0
            for index in token.indices { difference |= token[index] ^ asked[index] }
            if difference == 0 { found = visitor }
        }
        return found
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
}
