/// The head of an HTTP/1.1 request (RFC 9112), parsed strictly: ambiguous heads are refused.
struct WebRequest: Hashable, Sendable {
    /// Why a head is none, as a status.
    struct Refusal: Error, Hashable, Sendable {
        var status: Int
        var reason: String
    }

    /// Bytes of a head.
    static let maximumHeadBytes = 16 << 10
    private static let maximumHeaders = 64

    var method: String
    /// The parts of the path, decoded; `/` is none.
    var path: [String]
    var query: [String: String]
    /// By their names in lower case; what came twice is joined by commas, as it means the same.
    private(set) var headers: [String: String] = [:]
    /// The origin that the requesting page names, if the configuration allows it besides this server's own; nil: it is
    /// not allowed.
    var pageOrigin: String?
    private var isHTTP11: Bool

    /// Where a head ends, with its empty line; nil: not yet.
    ///
    /// - Parameter start: from where on nobody has looked yet.
    static func end(in bytes: some RandomAccessCollection<UInt8>, from start: Int = 0) -> Int? {
        let bytes = Array(bytes)
        guard bytes.count >= 4 else { return nil }
        for index in max(0, start - 3)...(bytes.count - 4)
        where bytes[index] == 13 && bytes[index + 1] == 10 && bytes[index + 2] == 13 && bytes[index + 3] == 10 {
            return index + 4
        }
        return nil
    }

    /// - Parameter head: with its empty line.
    init(parsing head: some Sequence<UInt8>) throws(Refusal) {
        guard let text = String(validating: head, as: UTF8.self), text.hasSuffix("\r\n\r\n") else {
            throw Refusal(status: 400, reason: "The head is not valid UTF-8.")
        }
        var lines = text.utf8.dropLast(4).split(separator: 10, omittingEmptySubsequences: false).map {
            Substring($0.last == 13 ? $0.dropLast() : $0)
        }
        guard lines.allSatisfy({ $0.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 9 } }) else {
            throw Refusal(status: 400, reason: "The head contains control characters.")
        }
        let words = lines.removeFirst().split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 3, !words[0].isEmpty, words[0].utf8.allSatisfy(Self.isToken) else {
            throw Refusal(status: 400, reason: "The first line is not a request line.")
        }
        guard words[2] == "HTTP/1.1" || words[2] == "HTTP/1.0" else {
            throw Refusal(status: 505, reason: "This server supports only HTTP/1.1.")
        }
        method = String(words[0])
        isHTTP11 = words[2] == "HTTP/1.1"
        (path, query) = try Self.target(words[1])
        guard lines.count <= Self.maximumHeaders else {
            throw Refusal(status: 431, reason: "There are more than \(Self.maximumHeaders) headers.")
        }
        for line in lines { try take(line) }
    }

    private mutating func take(_ line: Substring) throws(Refusal) {
        guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")) else {
            throw Refusal(status: 400, reason: "A header has no colon.")
        }
        let name = line[..<colon]
        guard !name.isEmpty, name.utf8.allSatisfy(Self.isToken) else {
            throw Refusal(status: 400, reason: "The name of a header is invalid.")
        }
        let value = Self.trimmed(line[line.utf8.index(after: colon)...])
        let key = name.lowercased()
        guard let known = headers[key] else {
            headers[key] = value
            return
        }
        // Whoever reads the first of these and whoever reads the last would not mean the same request.
        guard !["host", "content-length", "transfer-encoding", "origin", "authorization"].contains(key) else {
            throw Refusal(status: 400, reason: "The header \(key) occurs twice.")
        }
        headers[key] = known + (key == "cookie" ? "; " : ", ") + value
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

    /// Whether the connection is used for another request after this one.
    var keepsAlive: Bool { isHTTP11 ? !says("connection", "close") : says("connection", "keep-alive") }

    /// Whether a proxy says that it brings somebody else's request.
    var isForwarded: Bool {
        headers.keys.contains { ["forwarded", "via", "x-real-ip"].contains($0) || $0.hasPrefix("x-forwarded-") }
    }

    /// Bytes of a body.
    func bodyBytes(maximum: Int) throws(Refusal) -> Int {
        guard headers["transfer-encoding"] == nil else {
            throw Refusal(status: 411, reason: "A body needs a Content-Length.")
        }
        guard let text = headers["content-length"] else { return 0 }
        guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }), text.utf8.count < 10,
            let count = Int(text)
        else { throw Refusal(status: 400, reason: "The length of the body is not a number.") }
        guard count <= maximum else { throw Refusal(status: 413, reason: "The body is too long.") }
        return count
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

    private static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case 48...57, 65...90, 97...122: true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }

    private static func trimmed(_ text: Substring) -> String {
        var text = text
        while text.first == " " || text.first == "\t" { text.removeFirst() }
        while text.last == " " || text.last == "\t" { text.removeLast() }
        return String(text)
    }
}
