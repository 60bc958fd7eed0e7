/// Checks the host names and page origins of requests. A foreign page, open in a browser on this machine, must not use
/// this server, whatever name it resolves to here.
struct HostCheck: Hashable, Sendable {
    private let names: Set<String>
    private let origins: Set<String>

    /// - Parameters:
    ///   - listen: where it listens; an address that is no wildcard is a name, too.
    ///   - hosts: further names, with or without a port.
    ///   - origins: of pages that may use it beside its own: `https://cameras.example.org`.
    init(listen: WebAddress, hosts: [String], origins: [String]) {
        var names = Set(hosts.map { $0.lowercased() })
        if !listen.isWildcard { names.insert(listen.host.lowercased()) }
        self.names = names
        self.origins = Set(origins.map { $0.lowercased() })
    }

    /// Whether a Host header names this server.
    func isOurs(_ host: String) -> Bool {
        let host = host.lowercased()
        return Self.isLoopback(host) || names.contains(host) || names.contains(Self.withoutPort(host))
    }

    /// Whether a Host header names this machine as it calls itself.
    static func isLoopback(_ host: String) -> Bool {
        ["localhost", "127.0.0.1", "[::1]"].contains(withoutPort(host.lowercased()))
    }

    /// Whether a page of that origin may use what is called by that Host header.
    func isSame(origin: String, host: String) -> Bool {
        let (own, host) = (origin.lowercased(), host.lowercased())
        return own == "http://\(host)" || own == "https://\(host)" || isConfigured(origin: origin)
    }

    /// Whether that is an origin of those that may use it beside its own.
    func isConfigured(origin: String) -> Bool { origins.contains(origin.lowercased()) }

    private static func withoutPort(_ host: String) -> String {
        guard let colon = host.lastIndex(of: ":"), !host[colon...].contains("]") else { return host }
        let port = host[host.index(after: colon)...]
        return port.utf8.allSatisfy { (48...57).contains($0) } ? String(host[..<colon]) : host
    }
}
