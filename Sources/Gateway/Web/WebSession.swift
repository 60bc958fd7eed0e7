import BusProtocol
import BusServer
import JSON
import LinuxIO
import Logging
import NIOWebSocket
import Synchronization
import ZeroMQ

/// A WebSocket on the side of the bus: its own connection for requests, its subscriptions, and its media. Used only on
/// the loop.
final class WebSession: @unchecked Sendable {
    let principal: Request.Principal
    private let owner: String
    /// Whether its user has logged in, and can log out.
    private let hasSession: Bool
    /// What is to be written to it; ends when it has to.
    let outbox = Outbox(maximumBytes: 8 << 20, maximumCount: 1000)
    private let busAccess: WebBusAccess
    /// Ends the connection.
    private let cut: @Sendable () -> Void
    private var caller: RemoteCaller?
    private var isClosed = false
    private var peer: MediaDistributor.Peer?
    private var listener: BusEvents.Token?
    private var prefixes: Set<String> = []
    /// How often it asks, for media and for all else.
    private var asks: TokenBucket
    private var requests: TokenBucket
    /// Requests under way, by what their answers are told apart by.
    private var asked: [[UInt8]: JSONValue] = [:]
    private var lastNumber: UInt64 = 0

    private static let maximumPrefixes = 64
    /// Messages that ask for media, in a second.
    private static let asksPerSecond = 1000
    /// Milliseconds for which nothing more is read of a page that asks more often.
    private static let pause: Int64 = 100
    /// Bytes of a request that is read also when there are too many of them.
    private static let shortBytes = 4096
    private static let media: UInt8 = 1
    private static let part: UInt8 = 2

    /// - Parameter cut: ends the connection of a page that doesn't take what it asked for.
    init(_ busAccess: WebBusAccess, _ visitor: WebAuthorization.Visitor, cut: @escaping @Sendable () -> Void) {
        self.busAccess = busAccess
        self.cut = cut
        principal = visitor.principal
        owner = visitor.owner
        hasSession = visitor.session != nil
        let (now, rate) = (MonotonicClock.now(), busAccess.settings.requestsPerSecond)
        asks = TokenBucket(perSecond: Self.asksPerSecond, burst: 2 * Self.asksPerSecond, at: now)
        requests = TokenBucket(perSecond: rate, burst: 2 * rate, at: now)
    }

    /// Begins; false: there is no way to the bus.
    func open() -> Bool {
        guard !isClosed else { return false }
        let caller: RemoteCaller
        do throws(ZeroMQError) {
            caller = try RemoteCaller(
                busAccess.place, maximumMessageBytes: BusLimits.maxPhotoReplyBytes, principal: principal)
        } catch {
            busAccess.logger.error("can't open a connection to the bus", metadata: ["error": "\(error)"])
            return false
        }
        caller.onAnswer = { [weak self] envelope, frames, isHello in self?.answer(envelope, frames, isHello) }
        caller.onGivenUp = { [weak self] envelope in self?.giveUp(envelope) }
        caller.onLost = { [weak self] in self?.refuseAll() }
        caller.onPresence = { [weak self] isHere in
            self?.send(Self.presence(isHere).serialized)
        }
        self.caller = caller
        peer = busAccess.media.open(
            MediaDistributor.Way(
                owner: owner, role: principal.role, allowsRaw: false,
                hasRoom: { [weak self] in self?.outbox.hasRoomForMedia ?? false },
                send: { [weak self] topic, frames in self?.send(topic, frames) ?? false }))
        listener = busAccess.events.listen { [weak self] topic, body in self?.pass(topic, body) }
        busAccess.add(self)
        let limits: JSONValue = [
            "requests": JSONValue(RemoteCaller.maximumPending),
            "requestsPerSecond": JSONValue(busAccess.settings.requestsPerSecond),
            "replyBytes": JSONValue(busAccess.settings.replyBytes), "topics": JSONValue(MediaDistributor.maximumTopics),
            "topicsOfDevice": JSONValue(MediaDistributor.maximumTopicsOfDevice),
            "credit": JSONValue(Viewer.maximumCredit),
        ]
        let hello: JSONValue = [
            "method": "web.hello",
            "params": [
                "name": .string(principal.name), "role": .string(principal.role.rawValue),
                "session": .bool(hasSession), "limits": limits,
            ],
        ]
        send(hello.serialized)
        // That it is there is told when this page's own connection to it is.
        if !busAccess.isBusHere { send(Self.presence(false).serialized) }
        return true
    }

    /// Ends; harmless once more.
    func close() {
        isClosed = true
        outbox.end()
        caller = nil
        if let peer { busAccess.media.close(peer) }
        peer = nil
        if let listener { busAccess.events.cancel(listener) }
        listener = nil
        busAccess.remove(self)
    }

    /// What was being written is written.
    func room() { if let peer { busAccess.media.room(for: peer) } }

    private static func presence(_ isHere: Bool) -> JSONValue {
        ["method": "web.bus", "params": ["here": .bool(isHere)]]
    }

    // MARK: From the page

    /// A message of bytes: what the page asks for of media.
    ///
    /// - Parameter taken: called when the next may be read, which is later for a page that asks too often; whether it
    ///   may at all.
    func take(binary bytes: [UInt8], then taken: @escaping @Sendable (Bool) -> Void) {
        guard asks.take(at: MonotonicClock.now()) else {
            busAccess.place.loop.schedule(afterMilliseconds: Self.pause) { [self] in taken(ask(bytes)) }
            return
        }
        taken(ask(bytes))
    }

    private func ask(_ bytes: [UInt8]) -> Bool {
        guard let peer else { return false }
        if let ask = MediaAsk(parsing: bytes) { busAccess.media.take(ask, of: peer) }
        return true
    }

    /// A message of text: a request.
    ///
    /// - Returns: whether the next may be read.
    func take(text bytes: [UInt8]) -> Bool {
        // Whoever is let in no more may have sent many by then.
        guard caller != nil else { return false }
        read(bytes)
        return true
    }

    private func read(_ bytes: [UInt8]) {
        let isInTime = requests.take(at: MonotonicClock.now())
        // Who asks too often is told so, but what is long is not even read for it.
        guard isInTime || bytes.count <= Self.shortBytes else { return cut() }
        switch bytes.withUnsafeBytes({ Request.parse($0) }) {
        case .failure(let failure): refuse(failure)
        case .success(let request):
            do throws(BusError) {
                guard isInTime else {
                    throw BusError(
                        .limitExceeded, "This page sends more requests per second than allowed. Send fewer.",
                        ["limit": "requestRate", "maximum": JSONValue(busAccess.settings.requestsPerSecond)])
                }
                try take(request)
            } catch {
                if let id = request.id { refuse(RequestFailure(id: id, error: error)) }
            }
        }
    }

    private func take(_ request: Request) throws(BusError) {
        switch request.method {
        case "web.subscribe": return try subscribe(request)
        case "web.unsubscribe":
            prefixes.subtract(try Self.topics(of: request))
            return accept(request)
        default: break
        }
        let named = try RemoteRequest.checked(request, of: principal)
        lastNumber += 1
        let tag = withUnsafeBytes(of: lastNumber) { Array($0) }
        guard let caller else { throw WebService.gone }
        if let id = request.id { asked[tag] = id }
        guard caller.ask(named, envelope: [tag]) else {
            asked[tag] = nil
            throw BusError(
                .limitExceeded, "This page has too many open requests. Wait for their answers.",
                ["limit": "remoteRequests", "maximum": JSONValue(RemoteCaller.maximumPending)])
        }
    }

    private func subscribe(_ request: Request) throws(BusError) {
        let topics = try Self.topics(of: request)
        let fresh = topics.filter { !prefixes.contains($0) }
        guard prefixes.union(topics).count <= Self.maximumPrefixes else {
            throw BusError(
                .limitExceeded, "A page may subscribe to at most \(Self.maximumPrefixes) topic prefixes.",
                ["limit": "subscriptions", "maximum": JSONValue(Self.maximumPrefixes)])
        }
        prefixes.formUnion(fresh)
        accept(request)
        var sent: Set<String> = []
        for prefix in fresh {
            for (topic, body) in busAccess.events.current(matching: prefix) where sent.insert(topic).inserted {
                tell(topic, body)
            }
        }
    }

    private func accept(_ request: Request) {
        guard let id = request.id else { return }
        send(Response.success(id: id, result: ["topics": .array(prefixes.sorted().map(JSONValue.string))]))
    }

    private static func topics(of request: Request) throws(BusError) -> Set<String> {
        guard let values = request.params["topics"]?.array else {
            throw .invalidParams("topics", "must be a list of topic prefixes")
        }
        var topics: Set<String> = []
        for value in values.prefix(maximumPrefixes + 1) {
            guard let text = value.string, text.utf8.count <= BusLimits.maxTopicBytes,
                ["state/", "event/", "heartbeat/"].contains(where: text.hasPrefix)
            else { throw .invalidParams("topics", "each must begin with state/, event/ or heartbeat/") }
            topics.insert(text)
        }
        return topics
    }

    // MARK: To the page

    private func answer(_ envelope: [[UInt8]], _ frames: ArraySlice<Message>, _ isHello: Bool) {
        guard let tag = envelope.first, let id = asked.removeValue(forKey: tag), let first = frames.first else {
            return
        }
        let bytes = frames.reduce(0) { $0 + $1.count }
        guard bytes <= busAccess.settings.replyBytes else {
            let error = ReplyRefusal.tooLong(bytes, maximum: busAccess.settings.replyBytes)
            return refuse(RequestFailure(id: id, error: error))
        }
        if isHello { return send(HelloReply.withoutPlaces(Array(first.bytes))) }
        guard let text = try? first.shared() else { return }
        guard put(Outgoing(.text, frames: [text])) else { return }
        let topic = Array((id.string ?? String(decoding: id.serialized, as: UTF8.self)).utf8.prefix(1024))
        for frame in frames.dropFirst() {
            guard let payload = try? frame.shared() else { return }
            _ = outbox.put(Self.binary(Self.part, topic, headerBytes: 0, [payload]), isPart: true)
        }
    }

    private func giveUp(_ envelope: [[UInt8]]) {
        guard let tag = envelope.first, let id = asked.removeValue(forKey: tag) else { return }
        refuse(RequestFailure(id: id, error: WebService.late))
    }

    private func refuseAll() {
        let lost = asked
        asked = [:]
        for id in lost.values { refuse(RequestFailure(id: id, error: WebService.gone)) }
    }

    private func refuse(_ failure: RequestFailure) {
        send(Response.failure(id: failure.id, error: failure.error))
    }

    private func pass(_ topic: String, _ body: [UInt8]) {
        if prefixes.contains(where: { topic.utf8.starts(with: $0.utf8) }) { tell(topic, body) }
    }

    private func tell(_ topic: String, _ body: [UInt8]) {
        var text = Array(#"{"topic":"#.utf8)
        text += JSONValue.string(topic).serialized
        text += Array(#","message":"#.utf8)
        text += body
        text.append(UInt8(ascii: "}"))
        send(text)
    }

    private func send(_ text: [UInt8]) { put(Outgoing(.text, text)) }

    private func send(_ topic: [UInt8], _ frames: [Message]) -> Bool {
        guard let frames = try? frames.map({ try $0.shared() }), let header = frames.first else { return false }
        return put(Self.binary(Self.media, topic, headerBytes: header.count, frames, isMedia: true))
    }

    /// Ours, before what comes with it: what it is, and how long its parts are.
    private static func binary(
        _ kind: UInt8, _ topic: [UInt8], headerBytes: Int, _ frames: [Message], isMedia: Bool = false
    ) -> Outgoing {
        var head = [kind, 0, UInt8(topic.count & 0xFF), UInt8(topic.count >> 8)]
        withUnsafeBytes(of: UInt32(headerBytes).littleEndian) { head += $0 }
        head += topic
        return Outgoing(.binary, head, frames: frames, isMedia: isMedia)
    }

    /// A page that doesn't take what it has asked for is cut: it comes back, and sees the present.
    @discardableResult
    private func put(_ outgoing: Outgoing) -> Bool {
        if outbox.put(outgoing) { return true }
        // What comes after its last words was not asked for any more.
        if peer != nil, !outbox.hasEnded {
            busAccess.counters.cutSockets.add(1, ordering: .relaxed)
            outbox.end()
            cut()
        }
        return false
    }
}
