import BusProtocol
import LinuxIO
import Sodium

/// Who may use the web side from other machines: a file with a line for each, `ROLE TOKEN NAME`.
struct WebTokens: Sendable {
    /// Why a line lets nobody in.
    struct Problem: Error, Hashable, Sendable, CustomStringConvertible {
        /// From 1 on.
        var line: Int
        var why: String

        var description: String { "line \(line): \(why)" }
    }

    private var known: [(token: [UInt8], visitor: Visitor)] = []
    /// Of the lines that are wrong, in their order.
    private(set) var problems: [Problem] = []

    /// Whose a token is, as the file says.
    struct Visitor: Hashable, Sendable {
        var name: String
        var role: Request.Principal.Role

        /// As whom the bus is asked.
        var principal: Request.Principal { WebAccess.Visitor(name: name, role: role, address: "").principal }
    }

    /// Nobody.
    init() {}

    /// Reads a file's text. A line that is wrong lets nobody in, nor does any of two that have the same name or token; the others count.
    init(parsing text: String) {
        var found: [(line: Int, token: [UInt8], visitor: Visitor)] = []
        for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            do throws(Problem) {
                guard let (token, visitor) = try Self.entry(line, number: index + 1) else { continue }
                found.append((index + 1, token, visitor))
            } catch {
                problems.append(error)
            }
        }
        for (line, token, visitor) in found {
            let isTwice = found.contains {
                $0.line != line && ($0.visitor.name == visitor.name || $0.token == token)
            }
            if isTwice {
                problems.append(Problem(line: line, why: "another line has the same name or token"))
            } else {
                known.append((token, visitor))
            }
        }
        problems.sort { $0.line < $1.line }
    }

    /// - Returns: nil: the line is for people.
    private static func entry(_ line: Substring, number: Int) throws(Problem) -> (token: [UInt8], visitor: Visitor)? {
        let words = line.split(maxSplits: 2, whereSeparator: { $0 == " " || $0 == "\t" }).map(String.init)
        guard let first = words.first, !first.hasPrefix("#") else { return nil }
        guard words.count == 3, let role = AllowedKeys.roles.first(where: { $0.rawValue == first }) else {
            throw Problem(line: number, why: "it is not 'ROLE TOKEN NAME', with view, control or admin as role")
        }
        guard isToken(words[1]) else {
            throw Problem(
                line: number,
                why: "a token has 16 to 128 letters, digits, '-' and '_', as from 'openssl rand -hex 16'")
        }
        let name = words[2].split(whereSeparator: \.isWhitespace).joined(separator: " ")
        guard AllowedKeys.isName(name) else { throw Problem(line: number, why: "the name is none") }
        return (Array(words[1].utf8), Visitor(name: name, role: role))
    }

    /// All who have one.
    var visitors: [Visitor] { known.map(\.visitor) }

    /// The same for a ``GuestBook``, which keeps no secrets: for a token its digest stands.
    var guests: [AllowedKeys.Entry] {
        known.map { token, visitor in
            // 160 bits of it, which are of the length of a key, in characters of one.
            AllowedKeys.Entry(
                role: visitor.role, key: hexadecimal(sha256(token).prefix(20)), name: visitor.name)
        }
    }

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
