import Glibc
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization
import ZeroMQ

/// Listens, and takes connections in, so many at a time. SwiftNIO does sockets, HTTP and WebSockets, within the limits
/// that are set here.
final class WebServer: Sendable {
    private let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
    private let listener: any Channel
    private let logger: Logger

    /// Bytes that the kernel holds for a client that is slow: what lies there is of the past already when it is taken.
    private static let sendBuffer = 256 << 10
    /// Seconds after which a silent client is asked whether it is still there, and milliseconds after which one that
    /// takes nothing isn't any more.
    private static let silence = 30
    private static let stall = 60_000
    private static let receiveBuffer = 64 << 10
    /// Bytes that are read at once.
    private static let readBytes = 16 << 10
    /// Bytes that nobody reads any more: behind a wish for another protocol.
    private static let maximumBufferedBytes = 1 << 20
    private static let maximumHeadBytes = 16 << 10
    private static let maximumHeaders = 64

    /// - Throws: when nothing can listen there; the text says so.
    init(
        _ address: WebAddress, _ router: WebRouter, total: Int, perAddress: Int, _ counters: WebCounters, logger: Logger
    ) throws(GatewayError) {
        self.logger = logger
        let limit = ConnectionLimit(total: total, perAddress: perAddress)
        do {
            listener = try Self.bind(address) { [group] in
                Self.options(ServerBootstrap(group: group)).childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture { try Self.prepare(channel, limit, router, counters) }
                }
            }
            // NIO waits by itself while no descriptor is left.
            try listener.eventLoop.submit { [listener] in
                try listener.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
                    Context.leaveErrors(of: $0)
                }
            }.wait()
        } catch let error as IOError {
            throw .cannotListen("\(address)", "web.listen", error.errnoCode)
        } catch {
            throw GatewayError(description: "can't listen on \(address) (web.listen): \(error)")
        }
    }

    private static func options(_ bootstrap: ServerBootstrap) -> ServerBootstrap {
        func tcp(_ name: Int32) -> ChannelOptions.Types.SocketOption { .init(level: .tcp, name: .init(rawValue: name)) }
        return bootstrap.serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            // Nobody is taken in before run().
            .serverChannelOption(.autoRead, value: false)
            // A connection's handlers ask for each read.
            .childChannelOption(.autoRead, value: false)
            .childChannelOption(.maxMessagesPerRead, value: 1)
            .childChannelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: readBytes))
            .childChannelOption(.socketOption(.so_sndbuf), value: sendBuffer)
            .childChannelOption(.socketOption(.so_rcvbuf), value: receiveBuffer)
            .childChannelOption(.socketOption(.so_keepalive), value: 1)
            .childChannelOption(tcp(TCP_NODELAY), value: 1)
            .childChannelOption(tcp(TCP_KEEPIDLE), value: silence)
            .childChannelOption(tcp(TCP_KEEPINTVL), value: 10)
            .childChannelOption(tcp(TCP_KEEPCNT), value: 3)
            .childChannelOption(tcp(TCP_USER_TIMEOUT), value: stall)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
    }

    private static func bind(_ address: WebAddress, _ bootstrap: () -> ServerBootstrap) throws -> any Channel {
        // One socket for IPv6 and IPv4, but on a machine that knows no IPv6.
        if address.isForBoth {
            let both = bootstrap().serverChannelOption(
                ChannelOptions.Types.SocketOption(level: .ipv6, name: .ipv6_v6only), value: 0)
            if let listener = try? both.bind(host: "::", port: address.port).wait() { return listener }
        }
        let host = address.isIPv6 || !address.isWildcard ? address.address : "0.0.0.0"
        return try bootstrap().bind(host: host, port: address.port).wait()
    }

    private static func prepare(
        _ channel: any Channel, _ limit: ConnectionLimit, _ router: WebRouter, _ counters: WebCounters
    ) throws {
        guard let address = channel.remoteAddress?.ipAddress.map(WebAuthorization.plain),
            let place = limit.enter(address, end: { channel.close(promise: nil) })
        else {
            counters.refusedConnections.add(1, ordering: .relaxed)
            return channel.close(promise: nil)
        }
        let stream = WebStream(channel, limit, place)
        counters.connections.add(1, ordering: .relaxed)
        channel.closeFuture.whenComplete { _ in
            limit.leave(place)
            router.left(stream)
            counters.connections.subtract(1, ordering: .relaxed)
        }
        var limits = NIOHTTPDecoderLimitConfiguration()
        (limits.maxHeaderFieldSize, limits.maxHeaderListSize) = (maximumHeadBytes, maximumHeadBytes)
        limits.maxHeaderFieldCount = maximumHeaders
        var framing = HTTPResponseEncoder.Configuration()
        // Pictures without an end come as they are: not every reader of them knows chunks.
        framing.automaticallySetFramingHeaders = false
        let pacer = RequestPacer { stream.inputEnded() }
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(SentBytes(counters))
        try pipeline.addHandler(HTTPResponseEncoder(configuration: framing))
        try pipeline.addHandler(pacer)
        try pipeline.addHandler(
            ByteToMessageHandler(
                HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes, limitConfiguration: limits),
                maximumBufferSize: maximumBufferedBytes))
        try pipeline.addHandler(HTTPConnection(router, stream, pacer, from: address))
    }

    /// Serves for ever.
    func run() async {
        do {
            try await listener.setOption(.autoRead, value: true).get()
            try await listener.closeFuture.get()
        } catch {
            logger.critical("the HTTP server ends", metadata: ["error": "\(error)"])
        }
    }
}

/// Counts what is written to a connection.
final class SentBytes: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer

    private let counters: WebCounters

    init(_ counters: WebCounters) { self.counters = counters }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        counters.sentBytes.add(unwrapOutboundIn(data).readableBytes, ordering: .relaxed)
        context.write(data, promise: promise)
    }
}
