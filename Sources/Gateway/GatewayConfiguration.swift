public import BusProtocol
import LinuxIO
public import Settings

/// The configuration. `deploy/gateway.toml` documents every key.
public struct GatewayConfiguration: Hashable, Sendable {
    /// `[tcp]`: clients on other machines.
    public struct TCP: Hashable, Sendable {
        /// `tcp.listen`: where requests come in; events and media are at the two ports after it.
        public var listen: TCPAddress
        /// `tcp.keys`: the file of those who are let in.
        public var keysPath = "/etc/camerabus/keys"
        /// `tcp.server_key`: the gateway's own keys; nil: `server.key` in `$STATE_DIRECTORY`.
        public var serverKeyPath: String?
        /// `tcp.connections` and `tcp.connections_per_address`: what exceeds is shut down, also of one key. A client
        /// has three, and more while requests wait.
        public var connections = 256
        public var connectionsPerAddress = 64
        /// `tcp.requests_per_second`, of one key.
        public var requestsPerSecond = 100
        /// `tcp.reply_bytes`: of one answer with its photos.
        public var replyBytes = 64 << 20
        /// `tcp.raw`: uncompressed pictures, to who asks for them.
        public var allowsRaw = true

        /// Of ``replyBytes``, at least: a part of a file of the library, and as much again.
        static let leastReplyBytes = 2 * BusLimits.maxLibraryPartBytes

        public init(listen: TCPAddress) { self.listen = listen }
    }

    /// `[web]`: the page, pictures and numbers for browsers and tools.
    public struct Web: Hashable, Sendable {
        /// `web.listen`.
        public var listen = WebAddress.standard
        /// `web.tokens`: the file of who may come from elsewhere; nil: nobody.
        public var tokensPath: String?
        /// `web.role` of who comes from this machine without a token; nil: a token is needed there, too.
        public var localRole: Request.Principal.Role? = .control
        /// Whether that is said of all at this machine: of root, the gateway's and the bus's user alone unless it is
        /// written.
        public var letsAllHereIn = false
        /// `web.hosts`: further names of this server.
        public var hosts: [String] = []
        /// `web.origins` of pages that may use it beside its own.
        public var origins: [String] = []
        /// `web.connections` and `web.connections_per_address`: what exceeds is closed.
        public var connections = 256
        public var connectionsPerAddress = 64
        /// `web.requests_per_second`, of one page.
        public var requestsPerSecond = 100
        /// `web.reply_bytes`: of one answer with its photos.
        public var replyBytes = 64 << 20

        public init() {}
    }

    /// `gateway.log_level`.
    public var logLevel = "info"
    /// nil: nothing listens on TCP.
    public var tcp: TCP?
    /// nil: nothing is served over HTTP (`web.listen = "none"`). Unless something is said of it the page is there for
    /// this machine's own browsers.
    public var web: Web? = Web()

    /// The word for no page.
    private static let nowhere = "none"

    public init() {}

    /// Reads a file's text. Unknown keys are errors: a misspelled one would else be silently without effect.
    public init(toml text: String) throws(SettingsError) {
        var reader = try TableReader(toml: text)
        try reader.section("gateway") { gateway throws(SettingsError) in
            logLevel = try gateway.string("log_level", oneOf: Self.logLevels) ?? logLevel
        }
        try reader.section("tcp") { section throws(SettingsError) in
            tcp = try Self.tcp(&section)
        }
        try reader.section("web") { section throws(SettingsError) in web = try Self.web(&section) }
        try reader.finish()
    }

    private static func tcp(_ reader: inout TableReader) throws(SettingsError) -> TCP? {
        let listen = try reader.string("listen")
        // What is neither may be a name, which has an address when the network says so.
        func isPossible(_ host: String) -> Bool {
            let isNumber = host.hasPrefix("[") || host.utf8.allSatisfy { (48...57).contains($0) || $0 == 46 }
            return !isNumber || InternetSocket.isAddress(host)
        }
        guard let listen else {
            throw SettingsError(description: "[tcp] needs tcp.listen: tcp://ADDRESS:PORT, with * for all addresses")
        }
        guard let address = TCPAddress(listen), isPossible(address.host) else {
            throw SettingsError(
                description:
                    "tcp.listen: '\(listen)' is not an address; use one like tcp://192.168.1.5:7350 or tcp://*:7350, "
                    + "with a port up to 65533"
            )
        }
        var tcp = TCP(listen: address)
        tcp.keysPath = try path(&reader, "keys") ?? tcp.keysPath
        tcp.serverKeyPath = try path(&reader, "server_key")
        tcp.connections = try reader.integer("connections", 1...65536) ?? tcp.connections
        tcp.connectionsPerAddress =
            try reader.integer("connections_per_address", 1...65536) ?? tcp.connectionsPerAddress
        tcp.requestsPerSecond = try reader.integer("requests_per_second", 1...100_000) ?? tcp.requestsPerSecond
        tcp.replyBytes =
            try reader.integer("reply_bytes", TCP.leastReplyBytes...BusLimits.maxPhotoReplyBytes) ?? tcp.replyBytes
        tcp.allowsRaw = try reader.boolean("raw") ?? tcp.allowsRaw
        return tcp
    }

    private static func web(_ reader: inout TableReader) throws(SettingsError) -> Web? {
        var web = Web()
        let listen = try reader.string("listen")
        if let listen, listen != nowhere {
            guard let address = WebAddress(listen),
                address.host == "*" || (InternetSocket.isAddress(address.host) && !address.host.contains("%"))
            else {
                throw SettingsError(
                    description:
                        "web.listen: '\(listen)' is not a numeric address; use one like 127.0.0.1:7380, [::1]:7380 or "
                        + "*:7380, "
                        + "with a port up to 65535, or none for no page"
                )
            }
            web.listen = address
        }
        web.tokensPath = try path(&reader, "tokens", of: "web")
        let words = RemoteUserList.roles.map(\.rawValue) + [Request.Principal.Role.nobody.rawValue]
        let role = try reader.string("role", oneOf: words)
        web.hosts = try reader.strings("hosts") ?? []
        web.origins = try reader.strings("origins") ?? []
        if let role {
            web.localRole = RemoteUserList.roles.first { $0.rawValue == role }
            web.letsAllHereIn = true
        } else if web.tokensPath != nil || !web.hosts.isEmpty || !web.origins.isEmpty {
            // There is a proxy then, and not all of them say that it is somebody else who comes.
            web.localRole = nil
        }
        guard web.origins.allSatisfy({ $0.hasPrefix("http://") || $0.hasPrefix("https://") }) else {
            throw SettingsError(
                description: "web.origins must be origins of pages, such as https://cameras.example.org")
        }
        web.connections = try reader.integer("connections", 1...65536) ?? web.connections
        web.connectionsPerAddress =
            try reader.integer("connections_per_address", 1...65536) ?? web.connectionsPerAddress
        web.requestsPerSecond = try reader.integer("requests_per_second", 1...100_000) ?? web.requestsPerSecond
        web.replyBytes = try reader.integer("reply_bytes", 1...BusLimits.maxPhotoReplyBytes) ?? web.replyBytes
        guard web.listen.isLoopback || web.tokensPath != nil else {
            throw SettingsError(
                description:
                    "web.listen allows other machines, but there are no tokens for them; "
                    + "set web.tokens to a tokens file, or listen on 127.0.0.1"
            )
        }
        return listen == nowhere ? nil : web
    }

    /// What can be, and is likely to be a mistake.
    var warnings: [String] {
        var warnings: [String] = []
        if tcp == nil, web == nil {
            warnings.append("the gateway serves no client: there is no [tcp], and web.listen is none")
        }
        if let web, web.localRole == nil, web.tokensPath == nil {
            warnings.append("no user can use the page: each one needs a token, but web.tokens names no tokens file")
        }
        return warnings
    }

    private static func path(
        _ reader: inout TableReader, _ name: String, of section: String = "tcp"
    ) throws(SettingsError) -> String? {
        guard let path = try reader.string(name) else { return nil }
        guard path.hasPrefix("/"), !path.utf8.contains(0) else {
            throw SettingsError(description: "\(section).\(name) must be an absolute path")
        }
        return path
    }

    static let logLevels = ["trace", "debug", "info", "notice", "warning", "error", "critical"]
}
