import BusProtocol
import LinuxIO
import Sodium

/// Who may use the web side from other machines: a file with a line for each, `ROLE TOKEN NAME`.
struct WebTokens: Sendable {
    /// Why a line lets nobody in.
    struct Problem: Hashable, Sendable, CustomStringConvertible {
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
            do throws(GuestList.Problem) {
                guard let entry = try GuestList.entry(in: line, by: .token) else { continue }
                found.append((index + 1, Array(entry.key.utf8), Visitor(name: entry.name, role: entry.role)))
            } catch {
                problems.append(Problem(line: index + 1, why: error.description))
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

    /// All who have one.
    var visitors: [Visitor] { known.map(\.visitor) }

    /// The same for a ``GuestBook``, which keeps no secrets: for a token its digest stands.
    var guests: [GuestList.Entry] {
        known.map { token, visitor in
            // 160 bits of it, which are of the length of a key, in characters of one.
            GuestList.Entry(
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
}
