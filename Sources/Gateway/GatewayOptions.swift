/// What the command line says.
public struct GatewayOptions: Sendable {
    /// nil: no file, and so the page is served on the loopback, and nothing else.
    public var configurationPath: String?
    /// Where the bus has its sockets; nil: as clients look for it.
    public var runtimeDirectory: String?
    /// It goes before the configuration.
    public var logLevel: String?

    public init() {}
}

/// Why the gateway can't serve. The text says what to do.
public struct GatewayError: Error, CustomStringConvertible, Sendable {
    public var description: String
    /// The configuration is at fault, and trying again without another one is in vain.
    public var isMisconfigured = false
}
