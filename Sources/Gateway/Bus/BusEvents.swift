import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO
import ZeroMQ

/// All state and events that the bus publishes: subscribed once for the whole process. It caches the newest state of
/// each topic for later subscribers.
final class BusEvents {
    /// Names who listens, to take it back.
    struct Token: Hashable {
        fileprivate let number: UInt64
    }

    private let loop: Loop
    private let bus: Socket
    private var token: Loop.Token?
    private var cache = StateCache()
    /// What clients may do by their roles, as the bus published it last; nil: it has not yet. While no bus runs, the
    /// last word holds.
    private(set) var permission: RemotePermission?
    private var permissionObservers: [() -> Void] = []
    private var listeners: [(token: Token, take: (_ topic: String, _ body: [UInt8]) -> Void)] = []
    private var lastNumber: UInt64 = 0
    /// The bus that was heard last.
    private var epoch: String?
    /// Since when that has been telling what it has; nil: it has not begun.
    private var since: Int64?

    /// Nanoseconds in which a bus has told all that it has.
    private static let introduction: Int64 = 1_000_000_000

    private static let messagesPerTurn = 64

    init(_ place: BusEndpoints) throws(ZeroMQError) {
        loop = place.loop
        bus = try Socket(place.context, .subscribe)
        try bus.set(.receiveHighWaterMark, 10_000)
        try bus.set(.reconnectInterval, 100)
        for topic in ["state/", "event/", Topic.heartbeat.text] { try bus.subscribe(topic) }
        try bus.connect(RuntimeDirectory.endpoint(place.directory.eventsSocket))
        token = loop.watch(.socket(bus)) { [weak self] in self?.read() }
    }

    deinit { loop.cancel(token) }

    /// Has the body called with each message from now on.
    @discardableResult
    func listen(_ body: @escaping (_ topic: String, _ body: [UInt8]) -> Void) -> Token {
        lastNumber += 1
        listeners.append((Token(number: lastNumber), body))
        return Token(number: lastNumber)
    }

    func cancel(_ token: Token) { listeners.removeAll { $0.token == token } }

    /// Has the body called whenever ``permission`` has changed.
    func whenPermissionChanges(_ body: @escaping () -> Void) { permissionObservers.append(body) }

    /// What clients may do from now on.
    func permit(_ permission: RemotePermission) {
        guard permission != self.permission else { return }
        self.permission = permission
        for observer in permissionObservers { observer() }
    }

    /// What a subscription to that beginning of topics sees, in the order in which it came about.
    func current(matching prefix: String) -> [(topic: String, body: [UInt8])] { cache.current(matching: prefix) }

    /// Whether there is a device or a rig of that name.
    func knows(_ device: String) -> Bool {
        cache.has(Topic.state(.device(device)).text) || cache.has(Topic.state(.rig(device)).text)
    }

    /// Whether the bus has told all of itself, and nothing of a device or rig of that name.
    func knowsNothing(of device: String, at now: Int64) -> Bool {
        guard let since else { return false }
        return now - since > Self.introduction && !knows(device)
    }

    /// Whether a camera, or one of a rig's, has a format without compression now; false where that is not known.
    func isUncompressed(_ device: String) -> Bool {
        let cameras = value(of: Topic.state(.rig(device)).text)?["devices"]?.array?.compactMap { $0["id"]?.string }
        return (cameras ?? [device]).contains { camera in
            let format = value(of: Topic.state(.device(camera)).text)?["activeFormat"]?["pixelFormat"]?.string
            return format.map { !FrameHeaderScan.isCompressed($0.utf8) } ?? false
        }
    }

    private func value(of topic: String) -> JSONValue? {
        cache.body(of: topic).flatMap { try? JSONValue(parsing: $0) }?["value"]
    }

    private func read() {
        for _ in 0..<Self.messagesPerTurn {
            guard let frames = try? bus.receive(maximumFrames: 2) else { return }
            guard frames.count == 2, let topic = String(validating: frames[0].bytes, as: UTF8.self) else { continue }
            let body = Array(frames[1].bytes)
            cache.take(topic, body)
            if cache.epoch != epoch {
                epoch = cache.epoch
                since = nil
            }
            if since == nil, cache.has(Topic.state(.bus).text) { since = MonotonicClock.now() }
            takePermission(topic, body)
            for listener in listeners { listener.take(topic, body) }
        }
    }

    private func takePermission(_ topic: String, _ body: [UInt8]) {
        let own = Topic.state(.bus).text
        guard topic == own || topic == Topic.heartbeat.text, let message = try? JSONValue(parsing: body) else { return }
        if topic == own {
            if let bus = message["value"], !bus.isNull { permit(RemotePermission(json: bus["remote"] ?? [:])) }
        } else if cache.misses(own, by: message) {
            // It was lost in a full queue: who subscribes gets it once more.
            try? bus.subscribe(own)
            try? bus.unsubscribe(own)
        }
    }
}
