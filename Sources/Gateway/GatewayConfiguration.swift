public import BusProtocol
public import Settings

/// What `deploy/gateway.toml` says, every key of which is documented there.
public struct GatewayConfiguration: Hashable, Sendable {
    /// `[tcp]`: clients on other machines.
    public struct TCP: Hashable, Sendable {
        /// `tcp.listen`: where requests come in; events and media are at the two ports after it.
        public var listen: TCPAddress
        /// `tcp.keys`: the file of those who are let in.
        public var keysPath = "/etc/camerabus/keys"
        /// `tcp.server_key`: the gateway's own keys; nil: `server.key` in `$STATE_DIRECTORY`.
        public var serverKeyPath: String?
        /// `tcp.connections` and `tcp.connections_per_address`: what exceeds is shut down. A client has three, and more while requests wait.
        public var connections = 256
        public var connectionsPerAddress = 64
        /// `tcp.requests_per_second`, of one key.
        public var requestsPerSecond = 100
        /// `tcp.reply_bytes`: of one answer with its photos.
        public var replyBytes = 64 << 20
        /// `tcp.raw`: uncompressed pictures, to who asks for them.
        public var allowsRaw = true

        public init(listen: TCPAddress) { self.listen = listen }
    }

    /// `gateway.log_level`.
    public var logLevel = "info"
    /// nil: nothing listens on TCP.
    public var tcp: TCP?

    public init() {}

    /// Reads a file's text. Unknown keys are errors: a misspelled one would else be silently without effect.
    public init(toml text: String) throws(SettingsError) {
        var reader = try TableReader(toml: text)
        try reader.section("gateway") { gateway throws(SettingsError) in
            logLevel = try gateway.string("log_level", oneOf: Self.logLevels) ?? logLevel
        }
        try reader.section("tcp") { section throws(SettingsError) in tcp = try Self.tcp(&section) }
        try reader.finish()
    }

    private static func tcp(_ reader: inout TableReader) throws(SettingsError) -> TCP? {
        let listen = try reader.string("listen")
        guard let listen, let address = TCPAddress(listen) else {
            throw SettingsError(description: "tcp.listen must be there: tcp://ADDRESS:PORT, * for all addresses")
        }
        var tcp = TCP(listen: address)
        tcp.keysPath = try path(&reader, "keys") ?? tcp.keysPath
        tcp.serverKeyPath = try path(&reader, "server_key")
        tcp.connections = try reader.integer("connections", 1...65536) ?? tcp.connections
        tcp.connectionsPerAddress =
            try reader.integer("connections_per_address", 1...65536) ?? tcp.connectionsPerAddress
        tcp.requestsPerSecond = try reader.integer("requests_per_second", 1...100_000) ?? tcp.requestsPerSecond
        tcp.replyBytes = try reader.integer("reply_bytes", 1...BusLimits.maxPhotoReplyBytes) ?? tcp.replyBytes
        tcp.allowsRaw = try reader.boolean("raw") ?? tcp.allowsRaw
        return tcp
    }

    private static func path(_ reader: inout TableReader, _ name: String) throws(SettingsError) -> String? {
        guard let path = try reader.string(name) else { return nil }
        guard path.hasPrefix("/"), !path.utf8.contains(0) else {
            throw SettingsError(description: "tcp.\(name) must be an absolute path")
        }
        return path
    }

    static let logLevels = ["trace", "debug", "info", "notice", "warning", "error", "critical"]
}
