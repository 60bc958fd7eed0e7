import Glibc

/// The options of the command line.
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

    /// Of an address that is none of ours now, or not free.
    ///
    /// - Parameters:
    ///   - key: where the configuration says it.
    ///   - code: an error number (`errno(3)`).
    static func cannotListen(_ address: String, _ key: String, _ code: Int32) -> GatewayError {
        let advice =
            switch code {
            case EADDRINUSE:
                "; another program, perhaps another gateway, uses this port; set another port in gateway.toml"
            case EADDRNOTAVAIL:
                "; this machine does not have this address, or not yet; 'ip address' lists its addresses"
            default: ""
            }
        return GatewayError(
            description: "can't listen on \(address) (\(key)): \(String(cString: strerror(code)))\(advice)")
    }
}
