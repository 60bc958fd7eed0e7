/// The address on which the web server listens: `ADDRESS:PORT`, an IPv6 address in brackets, `*` for all addresses.
public struct WebAddress: Hashable, Sendable, CustomStringConvertible {
    /// As it was written, brackets included.
    public var host: String
    public var port: Int

    /// nil for another text. A name is none: which address it has is somebody else's to say.
    public init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...]),
            (1...65535).contains(port)
        else { return nil }
        let host = String(text[..<colon])
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]") && host.utf8.count > 2
        let isNumber = host.utf8.allSatisfy { (48...57).contains($0) || $0 == UInt8(ascii: ".") }
        guard host == "*" || isBracketed || (isNumber && host.split(separator: ".").count == 4) else { return nil }
        self.host = host
        self.port = port
    }

    /// Where it listens unless something is said: this machine's own browsers alone.
    public static let standard = WebAddress(host: "127.0.0.1", port: 7380)

    private init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// All of a machine's addresses, of IPv6 and of IPv4.
    var isForBoth: Bool { host == "*" }
    public var isWildcard: Bool { host == "*" || host == "0.0.0.0" || host == "[::]" }
    public var isIPv6: Bool { host.hasPrefix("[") }
    /// Nobody on another machine can come in there.
    public var isLoopback: Bool { host.hasPrefix("127.") || host == "[::1]" }
    /// Without brackets.
    public var address: String { isIPv6 ? String(host.dropFirst().dropLast()) : host }
    public var description: String { "\(host):\(port)" }
}
