import BusProtocol
import LinuxIO
import NIOCore
import NIOHTTP1

/// Collects the requests of a connection, and has one after the other answered by a task.
///
/// Nothing is read while a request is answered, and an answer is sent when the kernel has taken it. So a client that
/// sends faster than it is answered, or that takes no answers, has to wait, and fills no memory.
final class HTTPConnection: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart

    private let router: WebRouter
    private let stream: WebStream
    private let pacer: RequestPacer
    private let address: String
    /// Whose the other end is, once that was looked up: on this machine, and if that could be found out.
    private var user: UInt32??
    private var head: HTTPRequestHead?
    private var form: [UInt8] = []
    private var deadline: Scheduled<Void>?
    private var isAnswering = false
    /// What came behind the request that is being answered.
    private var waiting = CircularBuffer<Input>()
    /// Nothing more is taken: the last answer is being sent, or the other end has said that nothing more comes.
    private var isEnding = false
    private var isRemoved = false

    /// The time that a request's head and body may take, and that a connection may be idle between two.
    private static let patience = TimeAmount.seconds(15)
    private static let maximumFormBytes = 4096

    /// What comes from the other end, in its order.
    private enum Input {
        case part(HTTPServerRequestPart)
        /// It is no request, and nothing behind it can be read as one.
        case invalid(WebRequest.Refusal)
        case end
    }

    /// - Parameter pacer: gives it what comes.
    init(_ router: WebRouter, _ stream: WebStream, _ pacer: RequestPacer, from address: String) {
        self.router = router
        self.stream = stream
        self.pacer = pacer
        self.address = address
    }

    func handlerAdded(context: ChannelHandlerContext) { expectRequest(context) }

    func handlerRemoved(context: ChannelHandlerContext) {
        isRemoved = true
        deadline?.cancel()
    }

    func channelInactive(context: ChannelHandlerContext) {
        deadline?.cancel()
        context.fireChannelInactive()
    }

    private func expectRequest(_ context: ChannelHandlerContext) {
        deadline = context.eventLoop.scheduleTask(in: Self.patience) { [stream] in stream.shutDown() }
    }

    func channelActive(context: ChannelHandlerContext) {
        context.fireChannelActive()
        readOn(context)
    }

    private func readOn(_ context: ChannelHandlerContext) { if !isAnswering, !isRemoved { context.read() } }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { take(.part(unwrapInboundIn(data)), context) }

    func channelReadComplete(context: ChannelHandlerContext) {
        readOn(context)
        context.fireChannelReadComplete()
    }

    private func take(_ input: Input, _ context: ChannelHandlerContext) {
        waiting.append(input)
        takeWaiting(context)
    }

    private func takeWaiting(_ context: ChannelHandlerContext) {
        while !isAnswering, !isEnding, let next = waiting.popFirst() {
            switch next {
            case .part(let part): take(part, context)
            case .invalid(let refusal): refuse(refusal, context)
            case .end: inputEnded()
            }
        }
        if isEnding {
            waiting.removeAll()
        } else if case .end? = waiting.first {
            inputEnded()
        }
    }

    private func take(_ part: HTTPServerRequestPart, _ context: ChannelHandlerContext) {
        switch part {
        case .head(let head):
            (self.head, form) = (head, [])
            // A body that is too long is not waited for.
            if let count = head.headers.first(name: "content-length").flatMap({ Int($0) }),
                count > Self.maximumFormBytes
            {
                refuse(WebRequest.Refusal(status: 413, reason: "The body is too long."), context)
            }
        case .body(let part):
            form += part.readableBytesView
            if form.count > Self.maximumFormBytes {
                refuse(WebRequest.Refusal(status: 413, reason: "The body is too long."), context)
            }
        case .end:
            guard let head = head.take() else { return }
            deadline?.cancel()
            // Behind a wish for another protocol nothing is read as a request.
            if head.headers.contains(name: "upgrade") { isEnding = true }
            do throws(WebRequest.Refusal) {
                answer(try WebRequest(head), context)
            } catch {
                refuse(error, context)
            }
        }
    }

    private func answer(_ request: WebRequest, _ context: ChannelHandlerContext) {
        isAnswering = true
        let (bound, form) = (context.loopBound, form)
        let connection = NIOLoopBound(self, eventLoop: context.eventLoop)
        let (router, stream, address) = (router, stream, address)
        let asker = router.admit(request, stream, from: address) { lookUpUser(context) }
        Task {
            let goesOn: Bool? = try? await router.answer(request, form, stream, for: asker, from: address)
            bound.eventLoop.execute { connection.value.answered(goesOn, bound.value) }
        }
    }

    private func lookUpUser(_ context: ChannelHandlerContext) -> UInt32? {
        if let user { return user }
        let pipeline = context.channel.pipeline.syncOperations
        let found = try? pipeline.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
            InternetSocket.peerUser(of: $0)
        }
        user = .some(found ?? nil)
        return found ?? nil
    }

    /// - Parameter goesOn: whether another request may follow; nil: the answer could not be sent.
    private func answered(_ goesOn: Bool?, _ context: ChannelHandlerContext) {
        isAnswering = false
        if !context.channel.isActive { router.left(stream) }
        // It may be a WebSocket by now.
        guard !isRemoved else { return }
        stream.answered()
        guard !stream.isShutDown else { return }
        switch goesOn {
        case nil: stream.shutDown()
        case true? where !isEnding:
            expectRequest(context)
            takeWaiting(context)
            readOn(context)
        default: end(context)
        }
    }

    /// Answers what is no request. What follows can't be told from what came: the connection ends.
    private func refuse(_ refusal: WebRequest.Refusal, _ context: ChannelHandlerContext) {
        isEnding = true
        deadline?.cancel()
        isAnswering = true
        let (bound, connection) = (context.loopBound, NIOLoopBound(self, eventLoop: context.eventLoop))
        let (router, stream) = (router, stream)
        Task {
            await router.refuse(refusal, stream)
            bound.eventLoop.execute { connection.value.answered(false, bound.value) }
        }
    }

    private func end(_ context: ChannelHandlerContext) {
        isEnding = true
        stream.finish()
        pacer.drop()
        readOn(context)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event as? ChannelEvent == .inputClosed else { return context.fireUserInboundEventTriggered(event) }
        if isEnding { inputEnded() } else { take(.end, context) }
    }

    private func inputEnded() {
        // What is being answered still is.
        guard isAnswering else { return stream.shutDown() }
        isEnding = true
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? HTTPParserError else { return stream.shutDown() }
        let refusal =
            switch error {
            case .headerOverflow: WebRequest.Refusal(status: 431, reason: "The head is too long.")
            case .invalidVersion: WebRequest.Refusal(status: 505, reason: "This server supports only HTTP/1.1.")
            default: WebRequest.Refusal(status: 400, reason: "The request is not valid HTTP.")
            }
        take(.invalid(refusal), context)
    }
}
