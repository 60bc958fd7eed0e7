/// The URL of a media server to which a movie is sent: `rtsp://user:password@host:port/path?query`.
///
/// Only what every reader of URLs takes for the same is one, so that what is allowed is what is connected to.
public struct StreamURL: Hashable, Sendable {
    public enum Scheme: String, Hashable, Sendable, CaseIterable {
        case rtsp, rtsps, srt, rtmp, rtmps

        /// nil: each URL has to name it.
        var port: Int? {
            switch self {
            case .rtsp: 554
            case .rtsps: 322
            case .rtmp: 1935
            case .rtmps: 443
            case .srt: nil
            }
        }
    }

    public let scheme: Scheme
    /// Who is to be let in, `user:password`; nil: nobody is named.
    public let user: String?
    /// In lower case; of IPv6 with its brackets.
    public let host: String
    public let port: Int
    /// Segments of the path.
    public let path: [String]
    /// As it is written; nil: there is none.
    public let query: String?

    static let maximumBytes = 1024

    /// What of SRT a client may set: what makes the bus a server, or chooses its network, is not in it.
    private static let options: Set = [
        "streamid", "passphrase", "pbkeylen", "latency", "peerlatency", "rcvlatency", "mode", "transtype", "pkt_size",
    ]

    /// nil: it is none that a movie can be sent to.
    public init?(_ text: String) {
        guard text.utf8.count <= Self.maximumBytes, text.utf8.allSatisfy(Self.isPlain),
            let colon = text.firstRange(of: "://"),
            let scheme = Scheme(rawValue: text[..<colon.lowerBound].lowercased())
        else { return nil }
        let rest = text[colon.upperBound...]
        let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
        let authority = rest[..<end]
        let at = authority.lastIndex(of: "@")
        user = at.map { String(authority[..<$0]) }
        guard user.map({ !$0.isEmpty && !$0.contains("@") }) ?? true,
            let place = Self.place(at.map { authority[authority.index(after: $0)...] } ?? authority),
            let port = place.port ?? scheme.port
        else { return nil }
        let mark = rest[end...].firstIndex(of: "?")
        let path = rest[end..<(mark ?? rest.endIndex)].split(separator: "/").map(String.init)
        guard path.allSatisfy(Self.isSegment) else { return nil }
        query = mark.map { String(rest[rest.index(after: $0)...]) }
        if scheme == .srt, let query, !Self.isOfCaller(query) { return nil }
        (self.scheme, self.host, self.port, self.path) = (scheme, place.host, port, path)
    }

    private static func place(_ text: Substring) -> (host: String, port: Int?)? {
        var host = text
        var port: Int?
        if let colon = text.lastIndex(of: ":"), text.last != "]" {
            let digits = text[text.index(after: colon)...]
            guard !digits.isEmpty, digits.utf8.count <= 5, digits.allSatisfy(\.isNumber), let number = Int(digits),
                (1...65535).contains(number)
            else { return nil }
            (host, port) = (text[..<colon], number)
        }
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]") && host.utf8.count > 2
        let name = isBracketed ? host.dropFirst().dropLast() : host
        guard !name.isEmpty, name.utf8.allSatisfy({ isOfName($0, isAddress: isBracketed) }) else { return nil }
        return (host.lowercased(), port)
    }

    private static func isOfName(_ byte: UInt8, isAddress: Bool) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."):
            true
        case UInt8(ascii: "-"), UInt8(ascii: "_"): !isAddress
        case UInt8(ascii: ":"): isAddress
        default: false
        }
    }

    // Of ASCII, without what one reader takes for an end and another does not.
    private static func isPlain(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte < 0x7F && !"\"#\\<>^`{|}".utf8.contains(byte)
    }

    // A server may undo what is escaped: it must not lead out of the path.
    private static func isSegment(_ segment: String) -> Bool {
        let lower = segment.lowercased()
        return segment != "." && segment != ".."
            && !["%2e", "%2f", "%5c", "%00", "%25"].contains { lower.contains($0) }
    }

    private static func isOfCaller(_ query: String) -> Bool {
        query.split(separator: "&").allSatisfy { option in
            let (name, value) = option.split(separator: "=", maxSplits: 1).pair
            return options.contains(name) && (name != "mode" || value == "caller")
                && (name != "transtype" || value == "live")
        }
    }

    /// All of it.
    public var text: String {
        shown(user: user) + (query.map { "?\($0)" } ?? "")
    }

    /// What anybody may see: without user, password and query, which may hold keys.
    public var shown: String { shown(user: nil) }

    private func shown(user: String?) -> String {
        let place = (user.map { "\($0)@" } ?? "") + host + (port == scheme.port ? "" : ":\(port)")
        return "\(scheme.rawValue)://\(place)" + (path.isEmpty ? "" : "/\(path.joined(separator: "/"))")
    }

    /// Whether it is that place, or one below it: scheme, host and port are the same, and its path begins with that
    /// one's segments.
    public func isWithin(_ destination: StreamURL) -> Bool {
        scheme == destination.scheme && host == destination.host && port == destination.port
            && path.starts(with: destination.path)
    }
}

extension [Substring] {
    fileprivate var pair: (String, String?) { (first.map(String.init) ?? "", count > 1 ? String(self[1]) : nil) }
}
