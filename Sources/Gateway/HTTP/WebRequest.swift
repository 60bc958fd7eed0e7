import NIOHTTP1

/// The head of an HTTP/1.1 request. Heads that could be understood in two ways are refused.
struct WebRequest: Sendable {
    /// Why a head is none, as a status.
    struct Refusal: Error, Hashable, Sendable {
        var status: Int
        var reason: String
    }

    let method: String
    /// The parts of the path, decoded; `/` is none.
    let path: [String]
    let query: [String: String]
    /// By their names in lower case; what came twice is joined by commas, as it means the same.
    private(set) var headers: [String: String] = [:]
    /// The origin that the requesting page names, if the configuration allows it besides this server's own; nil: it is
    /// not allowed.
    var pageOrigin: String?
    /// Whether the connection is used for another request after this one.
    let keepsAlive: Bool

    init(_ head: HTTPRequestHead) throws(Refusal) {
        method = head.method.rawValue
        // Behind a wish for another protocol nothing more is read as requests.
        keepsAlive = head.isKeepAlive && !head.headers.contains(name: "upgrade")
        (path, query) = try Self.target(Substring(head.uri))
        for (name, value) in head.headers {
            let key = name.lowercased()
            guard let known = headers[key] else {
                headers[key] = value
                continue
            }
            // Whoever reads the first of these and whoever reads the last would not mean the same request.
            guard !["host", "origin", "authorization"].contains(key) else {
                throw Refusal(status: 400, reason: "The header \(key) occurs twice.")
            }
            headers[key] = known + (key == "cookie" ? "; " : ", ") + value
        }
    }

    subscript(header: String) -> String? { headers[header] }

    /// Whether the header, a list of words, has that one.
    func says(_ header: String, _ word: String) -> Bool {
        headers[header]?.split(separator: ",").contains { Self.trimmed($0).lowercased() == word } ?? false
    }

    /// The value of a cookie.
    func cookie(_ name: String) -> String? {
        for pair in headers["cookie"]?.split(separator: ";") ?? [] {
            let pair = Self.trimmed(pair)
            if pair.hasPrefix("\(name)=") { return String(pair.dropFirst(name.count + 1)) }
        }
        return nil
    }

    /// Whether a proxy says that it brings somebody else's request.
    var isForwarded: Bool {
        headers.keys.contains { ["forwarded", "via", "x-real-ip"].contains($0) || $0.hasPrefix("x-forwarded-") }
    }

    // MARK: Targets

    private static func target(_ text: Substring) throws(Refusal) -> ([String], [String: String]) {
        guard text.hasPrefix("/") else { throw Refusal(status: 400, reason: "The target is not a path.") }
        let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        var path: [String] = []
        for part in parts[0].dropFirst().split(separator: "/", omittingEmptySubsequences: false) {
            // Nothing that a path leads through on a disk has a meaning here.
            guard let segment = decoded(part), segment != ".", segment != "..",
                segment.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "/") })
            else { throw Refusal(status: 400, reason: "The path contains an invalid part.") }
            path.append(segment)
        }
        if path == [""] { path = [] }
        return (path, parts.count > 1 ? form(parts[1]) : [:])
    }

    /// Names and values as a form has them; what can't be read is left out, and of a name that is there twice the first
    /// counts.
    static func form(_ text: Substring) -> [String: String] {
        var found: [String: String] = [:]
        for pair in text.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = decoded(parts[0]), let value = parts.count > 1 ? decoded(plus(parts[1])) : "",
                found[name] == nil
            else { continue }
            found[name] = value
        }
        return found
    }

    private static func plus(_ text: Substring) -> Substring { Substring(text.map { $0 == "+" ? " " : $0 }) }

    /// Without percent signs; nil where one stands for nothing, or it is no UTF-8.
    static func decoded(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(digit), let low = rest.popFirst().flatMap(digit) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 48...57: byte - 48
        case 65...70: byte - 55
        case 97...102: byte - 87
        default: nil
        }
    }

    private static func trimmed(_ text: Substring) -> String {
        var text = text
        while text.first == " " || text.first == "\t" { text.removeFirst() }
        while text.last == " " || text.last == "\t" { text.removeLast() }
        return String(text)
    }
}
