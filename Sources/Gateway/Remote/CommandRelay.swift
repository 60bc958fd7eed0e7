import BusProtocol
import BusServer
import JSON
import LinuxIO
import Logging
import ZeroMQ

/// The request port: passes each request to the bus in the name of the key of its connection.
final class CommandRelay {
    /// One connection that requests come over.
    private struct Visit {
        let caller: RemoteCaller
        let key: String
        let connection: Int32?
    }

    private let place: BusEndpoints
    private let server: RemoteSocket
    private let settings: GatewayConfiguration.TCP
    private let registry: ConnectionRegistry
    private let keys: RemoteUserStore
    private let logger: Logger
    /// By libzmq's names of connections.
    private var visits: [[UInt8]: Visit] = [:]
    private var buckets: [String: TokenBucket] = [:]
    private var frames: [Message] = []
    private let queuedBytes = QueuedByteCounter()
    /// Requests that were refused here, and answers that no room was for.
    private(set) var refusals = 0
    private(set) var dropped = 0

    /// Answers that wait for a client that doesn't read.
    static let waitingAnswers = 4
    private static let requestsPerTurn = 32
    /// Bytes of a request that is read also when there are too many of them.
    private static let shortBytes = 4096
    /// Milliseconds that the bus has to take the last requests of who has gone.
    private static let parting: Int64 = 5000

    init(
        _ place: BusEndpoints, _ server: RemoteSocket, _ settings: GatewayConfiguration.TCP,
        _ registry: ConnectionRegistry,
        _ keys: RemoteUserStore, logger: Logger
    ) {
        self.place = place
        self.server = server
        self.settings = settings
        self.registry = registry
        self.keys = keys
        self.logger = logger
        place.loop.watch(.socket(server.socket)) { [weak self] in self?.read() }
        registry.whenClosed { [weak self] connection in self?.forget { $0.connection == connection } }
    }

    /// Whoever has one of these keys asks nothing any more.
    func drop(where isMeant: (_ key: String) -> Bool) {
        forget { isMeant($0.key) }
        buckets = buckets.filter { !isMeant($0.key) }
    }

    private func forget(_ isMeant: (Visit) -> Bool) {
        for (routing, visit) in visits where isMeant(visit) { visits[routing] = nil }
    }

    private func read() {
        for _ in 0..<Self.requestsPerTurn {
            guard let count = try? server.socket.receive(into: &frames) else { return }
            take(frames.prefix(count))
            for index in 0..<count { frames[index].removeAll() }
        }
    }

    private func take(_ message: ArraySlice<Message>) {
        guard let routing = message.first.map({ Array($0.bytes) }), let last = message.last else { return }
        // The end of what had the connection's number before comes first.
        registry.update()
        let connection = last.connection
        guard let key = last.property("User-Id"), let entry = keys[key] else {
            // One that was let in, and is not any more.
            if let connection { registry.shutDown(connection) }
            return
        }
        let isThere = connection.map { registry.seen($0, key: key, on: server) } ?? true
        let (envelope, body) = RequestEnvelope.split(message.dropFirst(), size: \.count)
        guard RequestEnvelope.isAcceptable(envelope, size: \.count) else { return }
        let mirrored = envelope.map { Array($0.bytes) }
        guard body.count == 1, let text = body.first else {
            return refuse(routing, mirrored, Request.wrongFrameCount(body.count))
        }
        let isInTime = isInTime(key)
        // Who asks too often is told so, but what is long is not even read for it.
        guard isInTime || text.count <= Self.shortBytes else {
            if let connection { registry.shutDown(connection) }
            return
        }
        switch text.withUnsafeBytes({ Request.parse($0) }) {
        case .failure(let failure): refuse(routing, mirrored, failure)
        case .success(let request):
            do throws(BusError) {
                let named = try RemoteRequest.checked(
                    request, of: Request.Principal(name: entry.name, role: entry.role))
                guard isInTime else {
                    throw BusError(
                        .limitExceeded, "This key sends more requests per second than allowed. Send fewer.",
                        ["limit": "requestRate", "maximum": JSONValue(settings.requestsPerSecond)])
                }
                // Before it is carried out: a photo can't be taken back.
                guard !RemoteRequest.mayBringFrames(request) || queuedBytes.hasRoom(for: key) else {
                    throw ReplyRefusal.noRoomYet
                }
                let caller = try caller(routing, entry, isThere ? connection : nil)
                if !isThere { part(routing, key) }
                guard caller.ask(named, envelope: mirrored) else {
                    throw BusError(
                        .limitExceeded, "This connection has too many open requests. Wait for their answers.",
                        ["limit": "remoteRequests", "maximum": JSONValue(RemoteCaller.maximumPending)])
                }
            } catch {
                if let id = request.id { refuse(routing, mirrored, RequestFailure(id: id, error: error)) }
            }
        }
    }

    /// A client that left without waiting for its replies: its requests are carried out, and their results end as if
    /// the connection had ended just now.
    private func part(_ routing: [UInt8], _ key: String) {
        registry.passed(key)
        place.loop.schedule(afterMilliseconds: Self.parting) { [weak self] in self?.visits[routing] = nil }
    }

    /// Whether the key has not asked too often, this time included.
    private func isInTime(_ key: String) -> Bool {
        let now = MonotonicClock.now()
        let rate = settings.requestsPerSecond
        return buckets[key, default: TokenBucket(perSecond: rate, burst: 2 * rate, at: now)].take(at: now)
    }

    private func caller(
        _ routing: [UInt8], _ entry: RemoteUserList.Entry, _ connection: Int32?
    ) throws(BusError) -> RemoteCaller {
        let key = entry.key
        if let known = visits[routing], known.key == key, known.connection == connection { return known.caller }
        visits[routing] = nil
        let made: RemoteCaller
        do throws(ZeroMQError) {
            made = try RemoteCaller(
                place, maximumMessageBytes: BusLimits.maxPhotoReplyBytes,
                principal: Request.Principal(name: entry.name, role: entry.role))
        } catch {
            logger.error("can't open a connection to the bus", metadata: ["error": "\(error)"])
            throw BusError(.internalError, "The gateway can't open another connection to the bus; see its log.")
        }
        made.onAnswer = { [weak self] envelope, frames, isHello in
            self?.answer(routing, key, envelope, frames, isHello: isHello)
        }
        // As on the bus's machine: the connection ends, and the client asks the next bus.
        made.onLost = { [weak self] in
            if let connection { self?.registry.shutDown(connection) }
        }
        visits[routing] = Visit(caller: made, key: key, connection: connection)
        return made
    }

    // MARK: Answers

    private func answer(
        _ routing: [UInt8], _ key: String, _ envelope: [[UInt8]], _ frames: ArraySlice<Message>, isHello: Bool
    ) {
        guard let first = frames.first else { return }
        let bytes = frames.reduce(0) { $0 + $1.count }
        guard bytes <= settings.replyBytes else {
            return refuse(routing, envelope, first, ReplyRefusal.tooLong(bytes, maximum: settings.replyBytes))
        }
        if isHello {
            return send(routing, envelope + [HelloReply.rewritten(Array(first.bytes), settings.listen)], [])
        }
        guard queuedBytes.hasRoom(for: key, bytes) else {
            return refuse(routing, envelope, first, ReplyRefusal.noRoomLeft)
        }
        guard let counted = try? frames.map({ try queuedBytes.counted($0, for: key) }) else {
            dropped += 1
            return
        }
        send(routing, envelope, counted)
    }

    /// In place of an answer.
    private func refuse(_ routing: [UInt8], _ envelope: [[UInt8]], _ answer: Message, _ error: BusError) {
        let id = (try? Reply(parsing: answer.bytes))?.id ?? .null
        refuse(routing, envelope, RequestFailure(id: id, error: error))
    }

    private func refuse(_ routing: [UInt8], _ envelope: [[UInt8]], _ failure: RequestFailure) {
        refusals += 1
        send(routing, envelope + [Response.failure(id: failure.id, error: failure.error)], [])
    }

    private func send(_ routing: [UInt8], _ head: [[UInt8]], _ frames: [Message]) {
        if !server.send(to: routing, head, frames) { dropped += 1 }
    }
}
