import BusProtocol
import BusServer
import JSON
import LinuxIO
import Logging
import ZeroMQ

/// Counts what `command.sock` does, for `bus.metrics`.
final class CommandCounters {
    var requests = 0
    var refusals = 0
    /// Replies for which there was no room: their clients don't read.
    var droppedReplies = 0
}

/// `command.sock`: takes requests in and sends replies out. What can be refused without knowing any device is refused
/// here.
final class CommandSocket {
    let server: ServerSocket
    private let logger: Logger
    private let handle: (Caller, Request, @escaping ReplyTaker) -> Void
    /// The request that is being read, and the reply that is being written: their memory is used again and again.
    private var frames: [Message] = []
    private var reply = JSONWriter(capacity: CommandSocket.keptReplyBytes)
    private let counters: CommandCounters
    private let budget = ReplyBudget()

    init(
        _ loop: Loop, _ server: ServerSocket, _ counters: CommandCounters, logger: Logger,
        handle: @escaping (Caller, Request, @escaping ReplyTaker) -> Void
    ) {
        self.server = server
        self.counters = counters
        self.logger = logger
        self.handle = handle
        loop.watch(.socket(server.socket)) { [weak self] in self?.readRequests() }
    }

    private static let keptReplyBytes = ReplyBudget.smallBytes

    private static let requestsPerTurn = 64
    private static let bytesPerTurn = 1 << 20

    // A bounded number at a time, so that one client's flood leaves turns to everything else on the loop.
    private func readRequests() {
        var bytes = 0
        for _ in 0..<Self.requestsPerTurn where bytes < Self.bytesPerTurn {
            do {
                guard let count = try server.socket.receive(into: &frames) else { return }
                bytes += frames.prefix(count).reduce(0) { $0 + $1.count }
                let message = read(frames.prefix(count))
                // Before the reply is sent: libzmq receives the next request into the same memory once that is free.
                for index in 0..<count { frames[index].removeAll() }
                if let message { serve(message) } else { counters.refusals += 1 }
            } catch {
                logger.error("a request could not be received", metadata: ["error": "\(error)"])
                return
            }
        }
    }

    /// A request, and where its reply goes.
    private struct Incoming {
        let connection: [UInt8]
        let envelope: [[UInt8]]
        let request: Result<(PeerAddress, Request), RequestFailure>
    }

    /// - Returns: nil: dropped without a reply.
    private func read(_ frames: ArraySlice<Message>) -> Incoming? {
        guard let routing = frames.first, let last = frames.last else { return nil }
        let (envelope, body) = RequestEnvelope.split(frames.dropFirst(), size: \.count)
        guard RequestEnvelope.isAcceptable(envelope, size: \.count) else { return nil }
        counters.requests += 1
        let request: Result<(PeerAddress, Request), RequestFailure>
        if let peer = last.withProperty("Peer-Address", PeerAddress.init(zmqPeerAddress:)) {
            if body.count == 1, let text = body.first {
                request = text.withUnsafeBytes { Request.parse($0) }.map { (peer, $0) }
            } else {
                request = .failure(Request.wrongFrameCount(body.count))
            }
        } else {
            let error = BusError(.unauthorized, "Your process could not be identified; connect over the Unix socket.")
            request = .failure(RequestFailure(id: .null, error: error))
        }
        return Incoming(
            connection: routing.withUnsafeBytes { Array($0) },
            envelope: envelope.map { frame in frame.withUnsafeBytes { Array($0) } }, request: request)
    }

    private func serve(_ message: Incoming) {
        let (connection, envelope) = (message.connection, message.envelope)
        switch message.request {
        case .failure(let failure): answer(connection, nil, envelope, failure.id, .failure(failure.error))
        case .success((let peer, let request)):
            handle(Caller(peer: peer, connection: connection), request) { [weak self] answer in
                guard let id = request.id else { return }
                self?.answer(connection, peer.uid, envelope, id, answer)
            }
        }
    }

    private func answer(
        _ connection: [UInt8], _ uid: UInt32?, _ envelope: [[UInt8]], _ id: JSONValue, _ answer: CallReply
    ) {
        var attachments = answer.attachments
        if case .failure = answer.result { counters.refusals += 1 }
        Response.write(id: id, answer.result, to: &reply)
        var large: Message?
        if let uid, reply.bytes.count > ReplyBudget.smallBytes {
            // libzmq looks only about once in a millisecond at what clients have taken meanwhile. Asking for the
            // socket's events makes it look.
            if !budget.hasRoom(reply.bytes.count, connection, uid: uid) { _ = server.socket.readiness() }
            if budget.hasRoom(reply.bytes.count, connection, uid: uid) {
                large = try? budget.message(reply.bytes, connection, uid: uid)
            } else {
                counters.refusals += 1
                attachments = []
                reply = JSONWriter()
                Response.write(id: id, .failure(budget.refusal), to: &reply)
            }
        }
        if !send(connection, envelope, large, attachments) {
            // It takes one for stuck that has read all its replies.
            _ = server.socket.readiness()
            if !send(connection, envelope, large, attachments) { counters.droppedReplies += 1 }
        }
        if reply.bytes.count > Self.keptReplyBytes { reply = JSONWriter() } else { reply.removeAll() }
    }

    /// Sends the reply that has been written; false, and nothing is sent, when there is no room for it.
    ///
    /// - Parameter large: its bytes, if they are counted.
    private func send(
        _ connection: [UInt8], _ envelope: [[UInt8]], _ large: Message?, _ attachments: [Message]
    ) -> Bool {
        let socket = server.socket
        do throws(ZeroMQError) {
            guard try socket.send(connection, more: true) else { return false }
            for frame in envelope { guard try socket.send(frame, more: true) else { return false } }
            // Once its first frame is taken, all of a message is.
            if let large {
                guard try socket.send(large, more: !attachments.isEmpty) else { return false }
            } else {
                guard try socket.send(reply.bytes, more: !attachments.isEmpty) else { return false }
            }
            for (index, frame) in attachments.enumerated() {
                guard try socket.send(frame, more: index < attachments.count - 1) else { return false }
            }
            return true
        } catch {
            return false
        }
    }
}
