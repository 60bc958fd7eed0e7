import BusProtocol
import BusServer
import JSON
import LinuxIO
import Logging
import ZeroMQ

/// Who sent a request, as the kernel says.
struct Caller: Hashable {
    let peer: PeerAddress
    /// libzmq's name of the connection.
    let connection: [UInt8]

    /// Root and the coordinator's own user.
    var isAdmin: Bool { peer.uid == 0 || peer.uid == CurrentProcess.uid }
}

/// Takes the answer to a request, once.
typealias Responder = (Result<JSONValue, BusError>) -> Void

/// `command.sock`: takes requests in and sends replies out. What can be refused without knowing any device is refused here.
final class CommandSocket {
    let server: ServerSocket
    private let logger: Logger
    private let handle: (Caller, Request, @escaping Responder) -> Void
    /// Replies that no room was for: their clients don't read.
    private(set) var droppedReplies = 0
    private(set) var requests = 0
    private(set) var refusals = 0

    init(
        _ loop: Loop, _ server: ServerSocket, logger: Logger,
        handle: @escaping (Caller, Request, @escaping Responder) -> Void
    ) {
        self.server = server
        self.logger = logger
        self.handle = handle
        loop.watch(.socket(server.socket)) { [weak self] in self?.readRequests() }
    }

    // A bounded number at a time, so that one client's flood leaves turns to everything else on the loop.
    private func readRequests() {
        for _ in 0..<64 {
            do {
                guard let frames = try server.socket.receive() else { return }
                read(frames)
            } catch {
                logger.error("a request could not be received", metadata: ["error": "\(error)"])
                return
            }
        }
    }

    private func read(_ frames: [Message]) {
        guard let routing = frames.first, let last = frames.last else { return }
        let connection = routing.withUnsafeBytes { Array($0) }
        let (received, body) = RequestEnvelope.split(frames.dropFirst(), size: \.count)
        guard RequestEnvelope.isAcceptable(received, size: \.count) else {
            refusals += 1
            return
        }
        let envelope = received.map { $0.withUnsafeBytes { Array($0) } }
        requests += 1
        guard let peer = last.property("Peer-Address").flatMap(PeerAddress.init(zmqPeerAddress:)) else {
            let error = BusError(.unauthorized, "Your process could not be identified; connect over the Unix socket.")
            return answer(connection, envelope, .null, .failure(error))
        }
        guard body.count == 1, let text = body.first else {
            let failure = Request.wrongFrameCount(body.count)
            return answer(connection, envelope, failure.id, .failure(failure.error))
        }
        switch text.withUnsafeBytes({ Request.parse($0) }) {
        case .failure(let failure): answer(connection, envelope, failure.id, .failure(failure.error))
        case .success(let request):
            handle(Caller(peer: peer, connection: connection), request) { [weak self] result in
                guard let id = request.id else { return }
                self?.answer(connection, envelope, id, result)
            }
        }
    }

    private func answer(
        _ connection: [UInt8], _ envelope: [[UInt8]], _ id: JSONValue, _ result: Result<JSONValue, BusError>
    ) {
        let text: [UInt8]
        switch result {
        case .success(let value): text = Response.success(id: id, result: value)
        case .failure(let error):
            refusals += 1
            text = Response.failure(id: id, error: error)
        }
        let reply = [connection] + envelope + [text]
        if (try? server.socket.send(frames: reply)) == true { return }
        // In a row of requests libzmq looks only about once in a millisecond at what clients have taken meanwhile, and takes one for
        // stuck that has read all its replies. Asking for the socket's events makes it look.
        _ = server.socket.readiness()
        if (try? server.socket.send(frames: reply)) != true { droppedReplies += 1 }
    }
}
