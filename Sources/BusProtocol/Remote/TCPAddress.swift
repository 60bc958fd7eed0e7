/// Where a gateway is: `tcp://HOST:PORT`. Requests go to that port, state and events come from the next one, pictures
/// and sound from the one after that.
public struct TCPAddress: Hashable, Sendable, CustomStringConvertible {
    /// What goes over a port.
    public enum Door: Int, Hashable, Sendable, CaseIterable {
        case command = 0
        case events = 1
        case media = 2
    }

    /// A name, a number, `[` an IPv6 address `]`; `*` to listen on all of a machine's.
    public var host: String
    /// Of requests.
    public var port: Int

    /// nil for another text; the last port has to be one, too.
    public init?(_ text: String) {
        let scheme = "tcp://"
        guard text.hasPrefix(scheme), let colon = text.lastIndex(of: ":"),
            let port = Int(text[text.index(after: colon)...]), (1...65533).contains(port)
        else { return nil }
        let host = String(text[text.index(text.startIndex, offsetBy: scheme.count)..<colon])
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
        guard !host.isEmpty, isBracketed || !host.contains(":"),
            host.utf8.allSatisfy({ $0 > 0x20 && $0 != UInt8(ascii: "/") && $0 < 0x7F })
        else { return nil }
        self.host = host
        self.port = port
    }

    /// As libzmq wants it.
    public func endpoint(_ door: Door) -> String { "tcp://\(host):\(port + door.rawValue)" }

    public var isIPv6: Bool { host.hasPrefix("[") }
    public var description: String { endpoint(.command) }
}
