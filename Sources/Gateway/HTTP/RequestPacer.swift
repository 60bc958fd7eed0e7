import NIOCore

/// Passes the bytes of a connection on in small parts: one for each read that the handlers of its requests ask for.
///
/// A parser turns all that it is given into requests at once, and a request takes many times the memory of its bytes.
/// So requests that a client sends ahead wait as bytes: here as many as one read brings, the rest with the client. When
/// a client says that nothing more comes, all that the kernel has of it is read at once.
final class RequestPacer: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = Never

    private var waiting = ByteBuffer()
    /// A read was asked for, and nothing was passed on since.
    private var isWanted = false
    private var isPassing = false
    /// Bytes that are still read and dropped; nil: none are dropped.
    private var droppable: Int?
    /// The other end has said that nothing more comes, and bytes still wait.
    private var isClosing = false

    private let inputClosed: () -> Void

    /// Bytes that are passed on at once.
    static let partBytes = 512
    private static let maximumDroppedBytes = 1 << 20

    /// - Parameter inputClosed: called when the other end has said that nothing more comes. The handlers learn of it
    ///   behind the bytes that still wait.
    init(inputClosed: @escaping () -> Void) { self.inputClosed = inputClosed }

    /// What waits, and what comes from now on, is read and dropped, but not without end: with something unread, the end
    /// of the connection would cost the other end the last answer.
    func drop() {
        droppable = Self.maximumDroppedBytes
        waiting.clear()
    }

    func read(context: ChannelHandlerContext) {
        isWanted = true
        pass(context)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        if let left = droppable {
            droppable = left - bytes.readableBytes
        } else if waiting.readableBytes == 0 {
            waiting = bytes
        } else {
            waiting.writeBuffer(&bytes)
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if let droppable { isWanted = droppable > 0 }
        pass(context)
    }

    private func pass(_ context: ChannelHandlerContext) {
        guard !isPassing else { return }
        isPassing = true
        while isWanted, let part = waiting.readSlice(length: min(waiting.readableBytes, Self.partBytes)),
            part.readableBytes > 0
        {
            isWanted = false
            context.fireChannelRead(wrapInboundOut(part))
            context.fireChannelReadComplete()
        }
        isPassing = false
        guard waiting.readableBytes == 0 else { return }
        waiting = ByteBuffer()
        if isClosing {
            isClosing = false
            context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        } else if isWanted {
            context.read()
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event as? ChannelEvent == .inputClosed else { return context.fireUserInboundEventTriggered(event) }
        inputClosed()
        if waiting.readableBytes > 0 { isClosing = true } else { context.fireUserInboundEventTriggered(event) }
    }
}
