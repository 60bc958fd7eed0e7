import NIOCore
import NIOHTTP1
import NIOWebSocket
import Synchronization

/// A connection of the web server, for those who answer its requests. A write waits until the kernel has taken its
/// bytes, so nothing piles up for a client that is slow.
final class WebStream: Sendable {
    /// Why nothing more goes.
    struct Ended: Error {}

    private let channel: any Channel
    private let limit: ConnectionLimit
    private let place: ConnectionLimit.Place
    private let isDown = Atomic(false)
    /// An answer was begun that ends only with the connection.
    private let isEndless = Atomic(false)
    private let hasInputEnded = Atomic(false)

    init(_ channel: any Channel, _ limit: ConnectionLimit, _ place: ConnectionLimit.Place) {
        self.channel = channel
        self.limit = limit
        self.place = place
    }

    /// A request has come, and the connection keeps its place until it is answered.
    ///
    /// - Parameter owner: who was let in; nil: nobody, and the connection is idle.
    /// - Returns: false: this user has ``maximumPerOwner`` such connections already, and this one is idle.
    func begin(for owner: String?) -> Bool { limit.set(place, busyFor: owner) }

    /// The request is answered.
    func answered() { _ = limit.set(place, busyFor: nil) }

    /// Connections of one user whose requests are being answered.
    var maximumPerOwner: Int { limit.perOwner }

    /// Returns after that time, also where the connection has ended by then. It takes no thread.
    func pause(_ time: TimeAmount) async {
        try? await channel.eventLoop.scheduleTask(in: time) {}.futureResult.get()
    }

    /// Sends a whole answer.
    ///
    /// - Returns: whether another request may follow.
    func send(_ response: WebResponse, for request: WebRequest) async throws -> Bool {
        try await send(
            response, keepsAlive: request.keepsAlive, hasBody: request.method != "HEAD", for: request.pageOrigin)
        return request.keepsAlive
    }

    func send(
        _ response: WebResponse, keepsAlive: Bool, hasBody: Bool = true, for origin: String? = nil
    ) async throws {
        let head = response.head(bodyBytes: response.body.readableBytes, keepsAlive: keepsAlive, for: origin)
        channel.write(HTTPServerResponsePart.head(head), promise: nil)
        if hasBody, response.body.readableBytes > 0 {
            channel.write(HTTPServerResponsePart.body(.byteBuffer(response.body)), promise: nil)
        }
        try await end()
    }

    /// Sends the head of an answer whose body follows in parts.
    ///
    /// - Parameter bodyBytes: of the body; nil: it ends with the connection, or when the other end sends nothing more:
    ///   a client that has closed the connection looks like that until something is written.
    func begin(_ response: WebResponse, bodyBytes: Int?, for request: WebRequest) async throws {
        if bodyBytes == nil {
            isEndless.store(true, ordering: .sequentiallyConsistent)
            if hasInputEnded.load(ordering: .sequentiallyConsistent) {
                shutDown()
                throw Ended()
            }
        }
        let head = response.head(
            bodyBytes: bodyBytes, keepsAlive: bodyBytes != nil && request.keepsAlive, for: request.pageOrigin)
        try await channel.writeAndFlush(HTTPServerResponsePart.head(head)).get()
    }

    /// Sends a part of a body.
    func send(_ part: ByteBuffer) async throws {
        try await channel.writeAndFlush(HTTPServerResponsePart.body(.byteBuffer(part))).get()
    }

    /// The body is all sent.
    func end() async throws { try await channel.writeAndFlush(HTTPServerResponsePart.end(nil)).get() }

    /// Answers the request for a WebSocket, from where on the connection is one.
    ///
    /// - Returns: false: the request is not one for a WebSocket (RFC 6455, section 4.2), and is not answered.
    func becomeWebSocket(for request: WebRequest, _ session: WebSession, _ busAccess: WebBusAccess) async throws -> Bool
    {
        guard request.method == "GET", request.says("upgrade", "websocket"), request.says("connection", "upgrade")
        else {
            return false
        }
        let upgrader = NIOWebSocketServerUpgrader(
            maxFrameSize: WebSocketConnection.maximumTextBytes, automaticErrorHandling: false,
            shouldUpgrade: { channel, _ in channel.eventLoop.makeSucceededFuture([:]) },
            upgradePipelineHandler: { [self] channel, _ in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(ClientFrames())
                    try pipeline.addHandler(
                        NIOWebSocketFrameAggregator(
                            minNonFinalFragmentSize: 0, maxAccumulatedFrameCount: WebSocketConnection.maximumFrames,
                            maxAccumulatedFrameSize: WebSocketConnection.maximumTextBytes))
                    try pipeline.addHandler(WebSocketConnection(busAccess, self, session))
                }
            })
        let head = HTTPRequestHead(
            version: .http1_1, method: .GET, uri: "/bus", headers: HTTPHeaders(request.headers.map { ($0, $1) }))
        let built = upgrader.buildUpgradeResponse(channel: channel, upgradeRequest: head, initialResponseHeaders: [:])
        guard let headers = try? await built.get() else { return false }
        do { try await expectFrames(headers, upgrader, head) } catch {
            shutDown()
            throw error
        }
        return true
    }

    /// Sends the answer, and replaces the handlers of HTTP by those of frames.
    private func expectFrames(
        _ headers: HTTPHeaders, _ upgrader: NIOWebSocketServerUpgrader, _ head: HTTPRequestHead
    ) async throws {
        let channel = channel
        try await channel.eventLoop.flatSubmit {
            let pipeline = channel.pipeline.syncOperations
            channel.write(
                HTTPServerResponsePart.head(
                    HTTPResponseHead(version: .http1_1, status: .switchingProtocols, headers: headers)), promise: nil)
            let written = channel.writeAndFlush(HTTPServerResponsePart.end(nil))
            do {
                let parser = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
                let others: [any RemovableChannelHandler] = [
                    try pipeline.handler(type: HTTPConnection.self),
                    try pipeline.handler(type: RequestPacer.self),
                    try pipeline.handler(type: HTTPResponseEncoder.self),
                ]
                for handler in others { _ = pipeline.removeHandler(handler) }
                // The parser is gone before frames are expected: it would send requests to their decoder. A client
                // waits for the answer before it sends a frame (RFC 6455, section 4.1).
                let context = NIOLoopBound(
                    try pipeline.context(handlerType: SentBytes.self), eventLoop: channel.eventLoop)
                return pipeline.removeHandler(parser).and(written).flatMap { _ in
                    upgrader.upgrade(context: context.value, upgradeRequest: head)
                }
            } catch {
                return channel.eventLoop.makeFailedFuture(error)
            }
        }.get()
    }

    /// Sends a frame of a WebSocket.
    func send(_ frame: WebSocketFrame) async throws { try await channel.writeAndFlush(frame).get() }

    /// Nothing more is written. The other end has some time to say so, too: what was written last gets there before the
    /// end.
    func finish() {
        channel.close(mode: .output, promise: nil)
        channel.eventLoop.scheduleTask(in: Self.patience) { [self] in shutDown() }
    }

    private static let patience = TimeAmount.seconds(2)

    /// Ends it: what is being written ends with an error.
    func shutDown() {
        isDown.store(true, ordering: .relaxed)
        channel.close(promise: nil)
    }

    /// The other end has said that it sends nothing more.
    func inputEnded() {
        hasInputEnded.store(true, ordering: .sequentiallyConsistent)
        if isEndless.load(ordering: .sequentiallyConsistent) { shutDown() }
    }

    /// Whether it was ended by ``shutDown()``.
    var isShutDown: Bool { isDown.load(ordering: .relaxed) }

    /// Does that when it has ended, however it did.
    func whenEnded(_ body: @escaping @Sendable () -> Void) { channel.closeFuture.whenComplete { _ in body() } }
}
