import FlyingSocks
import Glibc
import LinuxIO
import Logging
import Synchronization

/// Takes connections in, so many at a time, and has each served by a task of its own.
///
/// The sockets are FlyingFox's (FlyingSocks). Its HTTP server isn't used: it bounds neither heads, nor frames of
/// WebSockets, nor connections, and ends when no descriptor is left.
final class WebServer: Sendable {
    private let listener: FlyingSocks.Socket
    private let pool: SocketPool<ePoll>
    private let site: WebRouter
    private let connectionLimit: ConnectionLimit
    private let counters: WebCounters
    private let logger: Logger

    /// Bytes that the kernel holds for a client that is slow: what lies there is of the past already when it is taken.
    private static let sendBuffer = 256 << 10
    /// Seconds after which a silent client is asked whether it is still there, and after which one that takes nothing
    /// isn't any more.
    private static let silence: Int32 = 30
    private static let stall: Int32 = 60_000
    /// How long no connection is taken when there is no room for one.
    private static let patience = Duration.seconds(1)
    /// Of accept(2): those of one connection, after which the next can be taken.
    private static let errorsOfOne: Set<Int32> = [
        ECONNABORTED, EINTR, EPROTO, EPERM, ENETDOWN, ENETUNREACH, EHOSTDOWN, EHOSTUNREACH, ENONET, ENOPROTOOPT,
        EOPNOTSUPP,
    ]

    /// - Throws: when nothing can listen there; the text says so.
    init(_ address: WebAddress, _ site: WebRouter, total: Int, perAddress: Int, _ counters: WebCounters, logger: Logger)
        throws(GatewayError)
    {
        self.site = site
        connectionLimit = ConnectionLimit(total: total, perAddress: perAddress)
        self.counters = counters
        self.logger = logger
        pool = .ePoll(maxEvents: 64)
        // Of what goes from a file into a socket (sendfile(2)) nothing else keeps it away.
        signal(SIGPIPE, SIG_IGN)
        do {
            listener = try Self.listen(address)
        } catch SocketError.failed(type: _, errno: let code, message: _) {
            throw .cannotListen("\(address)", "web.listen", code)
        } catch {
            throw GatewayError(description: "can't listen on \(address) (web.listen): \(error)")
        }
    }

    private static func listen(_ address: WebAddress) throws -> FlyingSocks.Socket {
        func bound(
            _ domain: Int32, _ place: some SocketAddress, forBoth: Bool = false
        ) throws -> FlyingSocks.Socket {
            let socket = try FlyingSocks.Socket(domain: domain, type: .stream)
            _ = fcntl(socket.file.rawValue, F_SETFD, FD_CLOEXEC)
            do {
                try socket.setValue(true, for: .localAddressReuse)
                if forBoth { Self.set(socket.file.rawValue, Int32(IPPROTO_IPV6), IPV6_V6ONLY, 0) }
                try socket.bind(to: place)
                // Those that it accepts have it, too.
                Self.set(socket.file.rawValue, SOL_SOCKET, SO_SNDBUF, Int32(sendBuffer))
                try socket.listen()
            } catch {
                try? socket.close()
                throw error
            }
            return socket
        }
        let port = UInt16(address.port)
        // One socket for IPv6 and IPv4, but on a machine that knows no IPv6.
        if address.isForBoth,
            let both = try? bound(AF_INET6, sockaddr_in6.inet6(ip6: "::", port: port), forBoth: true)
        {
            return both
        }
        if address.isIPv6 { return try bound(AF_INET6, sockaddr_in6.inet6(ip6: address.address, port: port)) }
        return try bound(
            AF_INET, sockaddr_in.inet(ip4: address.isWildcard ? "0.0.0.0" : address.address, port: port))
    }

    /// Serves for ever.
    func run() async {
        do {
            try await pool.prepare()
            let listener = try AsyncSocket(socket: listener, pool: pool)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { [pool] in try await pool.run() }
                group.addTask { [self] in try await accept(on: listener) }
                try await group.next()
                group.cancelAll()
            }
        } catch {
            logger.critical("the HTTP server ends", metadata: ["error": "\(error)"])
        }
    }

    private func accept(on listener: AsyncSocket) async throws {
        try await withThrowingDiscardingTaskGroup { group in
            while !Task.isCancelled {
                do {
                    let socket = try await listener.accept()
                    guard let address = Self.address(of: socket), enter(address) else {
                        counters.refusedConnections.add(1, ordering: .relaxed)
                        try? socket.close()
                        continue
                    }
                    group.addTask { [self] in
                        let descriptor = socket.socket.file.rawValue
                        Self.prepare(descriptor)
                        let user = WebAuthorization.isLoopback(address) ? InternetSocket.peerUser(of: descriptor) : nil
                        let stream = WebStream(socket, pool, counters)
                        await site.serve(stream, from: WebAuthorization.Peer(address: address, user: user))
                        stream.close()
                        leave(address)
                    }
                } catch SocketError.failed(type: _, errno: let code, message: _) where Self.errorsOfOne.contains(code) {
                    // Who came has gone already, or can't be reached.
                } catch {
                    logger.error("a connection can't be accepted", metadata: ["error": "\(error)"])
                    await waitForRoom()
                }
            }
        }
    }

    // Most likely there is no descriptor, or no memory, left: one of ours may go, or somebody else's, which nobody
    // tells.
    private func waitForRoom() async {
        await withTaskGroup(of: Bool.self) { group in
            group.addTask { [connectionLimit] in await connectionLimit.someoneLeft() }
            group.addTask { (try? await Task.sleep(for: Self.patience)) != nil }
            for await isTime in group where isTime { break }
            group.cancelAll()
        }
    }

    private func enter(_ address: String) -> Bool {
        guard connectionLimit.enter(address) else { return false }
        counters.connections.add(1, ordering: .relaxed)
        return true
    }

    private func leave(_ address: String) {
        connectionLimit.leave(address)
        counters.connections.subtract(1, ordering: .relaxed)
    }

    /// Without the port.
    private static func address(of socket: AsyncSocket) -> String? {
        switch try? socket.socket.remotePeer() {
        case .ip4(let address, port: _), .ip6(let address, port: _): WebAuthorization.plain(address)
        default: nil
        }
    }

    private static func prepare(_ descriptor: Int32) {
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        set(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        set(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1)
        set(descriptor, Int32(IPPROTO_TCP), TCP_KEEPIDLE, silence)
        set(descriptor, Int32(IPPROTO_TCP), TCP_KEEPINTVL, 10)
        set(descriptor, Int32(IPPROTO_TCP), TCP_KEEPCNT, 3)
        set(descriptor, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, stall)
    }

    private static func set(_ descriptor: Int32, _ level: Int32, _ name: Int32, _ value: Int32) {
        var value = value
        setsockopt(descriptor, level, name, &value, socklen_t(MemoryLayout<Int32>.size))
    }
}
