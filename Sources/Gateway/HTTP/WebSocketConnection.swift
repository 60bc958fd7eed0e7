import NIOCore
import NIOWebSocket

/// A connection that has become a WebSocket: it passes messages of the page to its session, and writes those of the
/// session.
final class WebSocketConnection: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame

    private let busAccess: WebBusAccess
    private let stream: WebStream
    private let session: WebSession
    /// Messages that were read with one that is being taken: the next read comes when all are.
    private var waiting = CircularBuffer<WebSocketFrame>()
    private var isTaking = true
    /// Why nothing more is taken, once what came before is.
    private var ending: WebSocketErrorCode?

    /// Bytes of a message of text, and of another; and the parts of a message.
    static let maximumTextBytes = 1 << 20
    static let maximumBinaryBytes = 1024
    static let maximumFrames = 64

    init(_ busAccess: WebBusAccess, _ stream: WebStream, _ session: WebSession) {
        self.busAccess = busAccess
        self.stream = stream
        self.session = session
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let (bound, connection) = (context.loopBound, NIOLoopBound(self, eventLoop: context.eventLoop))
        let (busAccess, stream, session) = (busAccess, stream, session)
        // However it ends, and also if it has ended by now.
        stream.whenEnded {
            session.outbox.end()
            busAccess.mailbox.post { session.close() }
        }
        Task {
            // On the loop alone it is sure whether its token was taken away since it was let in.
            let isOpen: Bool = await busAccess.mailbox.ask { tell in tell(!stream.isShutDown && session.open()) }
            guard isOpen else { return stream.shutDown() }
            bound.eventLoop.execute { connection.value.taken(bound.value) }
            while let next = await session.outbox.next() {
                do { try await stream.send(next.frame) } catch { break }
                session.outbox.wrote(next)
                if next.isMedia { busAccess.mailbox.post { session.room() } }
            }
            stream.finish()
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard ending == nil else { return }
        waiting.append(unwrapInboundIn(data))
        if !isTaking { takeNext(context) }
    }

    // A read that brought only a part of a message has to be followed by another one.
    func channelReadComplete(context: ChannelHandlerContext) {
        if !isTaking { takeNext(context) }
        context.fireChannelReadComplete()
    }

    private func taken(_ context: ChannelHandlerContext) {
        isTaking = false
        takeNext(context)
    }

    private func takeNext(_ context: ChannelHandlerContext) {
        while !isTaking {
            if let frame = waiting.popFirst() {
                take(frame, context)
            } else if let ending {
                return say(ending, context)
            } else {
                return context.read()
            }
        }
    }

    private func take(_ frame: WebSocketFrame, _ context: ChannelHandlerContext) {
        let bytes = Array(frame.unmaskedData.readableBytesView)
        switch frame.opcode {
        case .text: pass(context) { session, taken in taken(session.take(text: bytes)) }
        case .binary where bytes.count > Self.maximumBinaryBytes: endNow(.messageTooLarge)
        case .binary: pass(context) { session, taken in session.take(binary: bytes, then: taken) }
        case .ping: put(.pong, bytes)
        case .pong: break
        case .connectionClose: endNow(.normalClosure)
        default: endNow(.protocolError)
        }
    }

    /// Ends before what came behind it.
    private func endNow(_ code: WebSocketErrorCode) {
        waiting.removeAll()
        ending = code
    }

    private func pass(
        _ context: ChannelHandlerContext,
        _ body: @escaping @Sendable (WebSession, _ taken: @escaping @Sendable (Bool) -> Void) -> Void
    ) {
        isTaking = true
        let (bound, connection) = (context.loopBound, NIOLoopBound(self, eventLoop: context.eventLoop))
        busAccess.mailbox.post { [session, stream] in
            body(session) { goesOn in
                guard goesOn else { return stream.shutDown() }
                bound.eventLoop.execute { connection.value.taken(bound.value) }
            }
        }
    }

    private func put(_ opcode: WebSocketOpcode, _ payload: [UInt8]) {
        _ = session.outbox.put(Outgoing(opcode, payload))
    }

    private func end(_ code: WebSocketErrorCode, _ context: ChannelHandlerContext) {
        guard ending == nil else { return }
        ending = code
        if !isTaking { takeNext(context) }
    }

    /// Says why it ends, as far as the other end still reads.
    private func say(_ code: WebSocketErrorCode, _ context: ChannelHandlerContext) {
        isTaking = true
        var payload = ByteBuffer()
        payload.write(webSocketErrorCode: code)
        put(.connectionClose, Array(payload.readableBytesView))
        session.outbox.end(dropping: false)
        // What comes now is read and dropped, up to the end: with something unread the last words would be lost.
        context.channel.setOption(.autoRead, value: true).whenComplete { _ in }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event as? ChannelEvent == .inputClosed { stream.shutDown() }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard ending == nil else { return }
        switch error {
        case NIOWebSocketError.invalidFrameLength, NIOWebSocketFrameAggregator.Error.accumulatedFrameSizeIsTooLarge:
            end(.messageTooLarge, context)
        case is NIOWebSocketError, is NIOWebSocketFrameAggregator.Error, is ClientFrames.Violation:
            end(.protocolError, context)
        default: stream.shutDown()
        }
    }
}

/// Refuses frames that no client may send (RFC 6455, sections 5.1 and 5.2): unmasked ones, and those with reserved
/// bits.
final class ClientFrames: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame
    typealias InboundOut = WebSocketFrame

    struct Violation: Error {}

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        let isReserved = frame.rsv1 || frame.rsv2 || frame.rsv3
        if isReserved || frame.maskKey == nil {
            context.fireErrorCaught(Violation())
        } else {
            context.fireChannelRead(data)
        }
    }
}
