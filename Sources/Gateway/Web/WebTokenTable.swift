import BusProtocol
import LinuxIO
import Sodium

/// The users of the web server on other machines, from a file with one line `ROLE TOKEN NAME` each.
struct WebTokenTable: Sendable {
    private var known: [(token: [UInt8], digest: String, visitor: Visitor)] = []
    /// Of the lines that are wrong, in their order.
    private(set) var problems: [RemoteUserList.Problem] = []

    /// Whose a token is, as the file says.
    struct Visitor: Hashable, Sendable {
        var name: String
        var role: Request.Principal.Role

        /// As whom the bus is asked.
        var principal: Request.Principal { WebAuthorization.Visitor(name: name, role: role, address: "").principal }
    }

    /// Nobody.
    init() {}

    /// Reads a file's text. A line that is wrong lets nobody in, nor does any of two that have the same name or token;
    /// the others count.
    init(parsing text: String) {
        let list = RemoteUserList(reading: text, by: .token)
        known = list.entries.map {
            let token = Array($0.key.utf8)
            return (token, Self.digest(token), Visitor(name: $0.name, role: $0.role))
        }
        problems = list.problems
    }

    /// All who have one.
    var visitors: [Visitor] { known.map(\.visitor) }

    /// The same for a ``RemoteUserStore``, which keeps no secrets: for a token its digest stands.
    var remoteUsers: [RemoteUserList.Entry] {
        known.map { RemoteUserList.Entry(role: $0.visitor.role, key: $0.digest, name: $0.visitor.name) }
    }

    // 160 bits of it, which are of the length of a key, in characters of one.
    private static func digest(_ token: [UInt8]) -> String { hexadecimal(sha256(token).prefix(20)) }

    /// The digest of a token; nil: the token is not in the file.
    func digest(of token: String) -> String? { visitor(of: token) == nil ? nil : Self.digest(Array(token.utf8)) }

    /// Whose token has that digest; nil: nobody's.
    func visitor(ofDigest digest: String) -> Visitor? { known.first { $0.digest == digest }?.visitor }

    /// Whose token that is; nil: nobody's. It takes as long whichever it is.
    func visitor(of token: String) -> Visitor? {
        let asked = Array(token.utf8)
        var found: Visitor?
        for (token, _, visitor) in known where token.count == asked.count {
            var difference: UInt8 = 0
            for index in token.indices { difference |= token[index] ^ asked[index] }
            if difference == 0 { found = visitor }
        }
        return found
    }
}
