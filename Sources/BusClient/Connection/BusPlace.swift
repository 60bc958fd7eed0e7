public import BusProtocol
import Glibc
import LinuxIO
import ZeroMQ

/// Where a bus is: on this machine in a runtime directory, or on another machine behind a gateway.
public enum BusPlace: Hashable, Sendable {
    case local(RuntimeDirectory)
    case remote(RemoteBus)

    /// What a socket is for.
    enum Source: Hashable, Sendable {
        case command, events
        /// What a device, or a rig, of that name publishes.
        case media(String)
    }

    /// The directory's path, or the gateway's address.
    public var name: String {
        switch self {
        case .local(let directory): directory.path
        case .remote(let bus): bus.address.description
        }
    }

    /// Its sockets' directory; nil: it is on another machine.
    public var directory: RuntimeDirectory? {
        guard case .local(let directory) = self else { return nil }
        return directory
    }

    var isRemote: Bool { directory == nil }

    /// What frames are asked for unless something else is.
    var rendition: String { isRemote ? "jpeg" : "native" }

    func endpoint(_ source: Source) -> String {
        switch self {
        case .local(let directory):
            let path =
                switch source {
                case .command: directory.commandSocket
                case .events: directory.eventsSocket
                case .media(let device): directory.mediaSocket(device)
                }
            return RuntimeDirectory.endpoint(path)
        case .remote(let bus):
            let door: TCPAddress.Door =
                switch source {
                case .command: .command
                case .events: .events
                case .media: .media
                }
            return bus.address.endpoint(door)
        }
    }

    /// Connects a socket, as who we are there.
    func connect(_ socket: Socket, to source: Source) throws(ZeroMQError) {
        if case .remote(let bus) = self {
            try socket.setCurveClient(server: bus.serverKey, own: bus.keys)
            try socket.set(.heartbeatInterval, RemoteBus.heartbeat)
            try socket.set(.heartbeatTimeout, RemoteBus.silence)
            if bus.address.isIPv6 { try socket.set(.ipv6, 1) }
        }
        try socket.connect(endpoint(source))
    }

    /// The bus has ended in order: it takes its socket away then. Of one on another machine nobody can say.
    var isGone: Bool {
        guard let directory else { return false }
        return access(directory.commandSocket, F_OK) != 0 && errno == ENOENT
    }

    /// Somebody takes connections there; on another machine, as far as is known.
    var isLive: Bool { directory.map { UnixSocket.isLive($0.commandSocket) } ?? true }

    /// Why nobody answers there, in a few words.
    var absence: String {
        directory.map(BusDiscovery.absence) ?? "no answer"
    }
}

/// A bus on another machine, behind its gateway.
public struct RemoteBus: Hashable, Sendable {
    public let address: TCPAddress
    let serverKey: CurveKey
    let keys: CurveKeyPair

    /// Ours, by which the gateway knows us.
    public var publicKey: String { keys.publicKey.text }

    /// Milliseconds between signs of life, and after which a link without any is down.
    static let heartbeat = 2000
    static let silence = 6000

    /// - Parameters:
    ///   - address: `tcp://HOST:PORT`.
    ///   - serverKey: the gateway's public key, or a file with it (``KeyFile/publicKey(in:)``).
    ///   - keyFile: the file with our keys, as `camerabus keys new` makes it.
    /// - Throws: ``ClientError/invalidRuntimeDirectory(_:)`` with what is wrong with them.
    public init(_ address: String, serverKey: String, keyFile: String) throws(ClientError) {
        guard let parsed = TCPAddress(address), parsed.host != "*" else {
            throw .invalidRuntimeDirectory(
                "'\(address)' is not an address. A bus on another machine is named tcp://HOST:PORT.")
        }
        var text: String? = serverKey
        if !RemoteCredential.key.isWellFormed(serverKey) {
            text = KeyFile.publicKey(in: try Self.text(serverKey, "The gateway's key ($CAMERABUS_SERVER_KEY)"))
        }
        guard let server = text.flatMap({ CurveKey($0) }) else {
            throw .invalidRuntimeDirectory(
                "'\(serverKey)' contains no public key. Run 'camerabus keys server' on the gateway's machine to print "
                    + "it."
            )
        }
        let own = KeyFile.keys(in: try Self.text(keyFile, "The file with your keys ($CAMERABUS_KEY)"))
        guard let open = own.publicKey.flatMap({ CurveKey($0) }), let secret = own.secretKey.flatMap({ CurveKey($0) })
        else {
            throw .invalidRuntimeDirectory("'\(keyFile)' contains no pair of keys. Make one with 'camerabus keys new'.")
        }
        self.address = parsed
        self.serverKey = server
        keys = CurveKeyPair(publicKey: open, secretKey: secret)
    }

    private static func text(_ path: String, _ what: String) throws(ClientError) -> String {
        do throws(SystemError) {
            return String(decoding: try File.readAtOnce(path, limit: 1 << 16), as: UTF8.self)
        } catch {
            throw .invalidRuntimeDirectory(
                "\(what) can't be read: '\(path)': \(String(cString: strerror(error.code))).")
        }
    }
}
