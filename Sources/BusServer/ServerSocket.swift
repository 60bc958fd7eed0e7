public import LinuxIO
public import ZeroMQ

/// Why a socket of the bus could not be opened.
public enum ServerError: Error, CustomStringConvertible {
    case system(SystemError)
    case zeroMQ(ZeroMQError)
    /// libzmq does not tell who is at the other end: then nobody may be let in.
    case peerAddressMissing(libraryVersion: String, seen: String?)

    public var description: String {
        switch self {
        case .system(let error): error.description
        case .zeroMQ(let error): error.description
        case .peerAddressMissing(let version, let seen):
            "libzmq \(version) does not tell the uid, gid and pid of a peer on ipc (Peer-Address: "
                + "\(seen ?? "absent")); "
                + "the bus can't know who asks and refuses to run. Use Debian's libzmq5 4.3.4 or later."
        }
    }
}

/// A socket that peers connect to at a path in the runtime directory.
///
/// `zmq_bind` on ipc would silently steal a path that is in use and leave its mode to the umask; so the listening
/// socket is made by us, with its mode, and handed over (`ZMQ_USE_FD`). The path is removed when this ends; that of a
/// socket which a service manager made stays its own.
public final class ServerSocket {
    public struct Options {
        public var kind: Socket.Kind
        public var path: String
        public var mode: UInt32
        public var group: UInt32?
        /// Messages queued per peer.
        public var sendHighWaterMark: Int
        public var receiveHighWaterMark: Int
        /// Bytes of one frame; a peer that sends more is disconnected.
        public var maximumMessageBytes: Int
        /// Whether also all frames of a message together may have no more, but for ``spareBytes``, and what waits to be
        /// read is bounded: for sockets that anybody may connect to.
        public var boundsMessages: Bool
        /// What the ZAP handler is told about which door it is.
        public var authenticationDomain: String
        /// What each subscriber gets first.
        public var welcome: [UInt8]?

        public init(
            kind: Socket.Kind, path: String, mode: UInt32, group: UInt32? = nil, sendHighWaterMark: Int,
            receiveHighWaterMark: Int, maximumMessageBytes: Int, boundsMessages: Bool = true,
            authenticationDomain: String, welcome: [UInt8]? = nil
        ) {
            self.kind = kind
            self.path = path
            self.mode = mode
            self.group = group
            self.sendHighWaterMark = sendHighWaterMark
            self.receiveHighWaterMark = receiveHighWaterMark
            self.maximumMessageBytes = maximumMessageBytes
            self.boundsMessages = boundsMessages
            self.authenticationDomain = authenticationDomain
            self.welcome = welcome
        }
    }

    public let socket: Socket
    public let path: String
    /// What the kernel calls its end of a connection (`getsockname`): another name than the one that peers connect to.
    let address: String
    /// Where its connections are told (``ConnectionGuard``).
    let monitor: Socket
    /// A service manager has made the socket, and listens on when this has ended.
    private let isInherited: Bool

    /// Messages of one subscriber that wait where each may cost a whole receive buffer, until an XPUB takes them.
    public static let waitingSubscriptions = 128
    /// Bytes of a message in addition to its largest frame: envelopes, and the cost of each frame.
    private static let spareBytes = 1 << 20

    /// - Parameter inherited: sockets of a service manager; the one of this path is taken in the place of a new one.
    public init(
        _ context: Context, _ options: Options, inherited: InheritedSockets = InheritedSockets()
    ) throws(ServerError) {
        path = options.path
        do throws(ZeroMQError) {
            socket = try Socket(context, options.kind)
            try socket.set(.sendHighWaterMark, options.sendHighWaterMark)
            try socket.set(.receiveHighWaterMark, options.receiveHighWaterMark)
            try socket.setMaximumMessageBytes(options.maximumMessageBytes)
            try socket.setAuthenticationDomain(options.authenticationDomain)
            // A refused peer with status 300 tries again after this time, and comes in as soon as it is allowed.
            try socket.set(.handshakeInterval, 500)
            if options.kind == .router { try socket.set(.routerMandatory, 1) }
            // It reports every subscription and every end of one, not only the first and the last of a topic: they are
            // counted for each connection, also by the bound on messages.
            if options.kind == .extendedPublish { try socket.set(.xpubVerboser, 1) }
            if let welcome = options.welcome { try socket.setWelcomeMessage(welcome) }
            let endpoint = "inproc://monitor\(options.path)"
            try socket.startMonitor(at: endpoint, events: [.accepted, .disconnected, .acceptFailed])
            monitor = try Socket(context, .pair)
            // A flood of connections must not lose an event: an unseen one would never be counted out again.
            try monitor.set(.receiveHighWaterMark, 0)
            try monitor.connect(endpoint)
        } catch {
            throw .zeroMQ(error)
        }
        let descriptor: FileDescriptor
        do throws(SystemError) {
            if let handed = try inherited.take(options.path, mode: options.mode, group: options.group) {
                descriptor = handed
                isInherited = true
            } else {
                descriptor = try UnixSocket.listen(at: options.path, mode: options.mode, group: options.group)
                isInherited = false
            }
        } catch {
            throw .system(error)
        }
        if options.boundsMessages {
            socket.limitMessages(
                of: descriptor.rawValue, to: options.maximumMessageBytes + Self.spareBytes, kind: options.kind)
        }
        address = UnixSocket.localPath(of: descriptor.rawValue) ?? options.path
        do throws(ZeroMQError) {
            try socket.set(.useDescriptor, Int(descriptor.rawValue))
            try socket.bind("ipc://\(options.path)")
        } catch {
            if !isInherited { File.remove(options.path) }
            throw .zeroMQ(error)
        }
        // From here on libzmq closes it.
        _ = descriptor.release()
    }

    deinit {
        socket.stopMonitor()
        if !isInherited { File.remove(path) }
    }
}
