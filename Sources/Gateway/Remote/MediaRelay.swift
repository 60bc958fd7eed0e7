import BusProtocol
import BusServer
import JSON
import LinuxIO
import Logging
import ZeroMQ

/// The port of pictures and sound: each client asks for the next message of a topic, and gets the one of then (``MediaAsk``).
///
/// What the bus makes for somebody here it makes once, for however many; and who doesn't ask costs nothing but what is on its way to it.
final class MediaRelay {
    /// A topic that somebody wants.
    private struct Run {
        let device: String
        let isPicture: Bool
        /// Messages that are kept of it, where each stands for itself: one, but of sound.
        let room: Int
        var reel = Reel<MediaItem>()
        var viewers: [[UInt8]: Viewer] = [:]
    }

    /// Who asks.
    private struct Peer {
        var key: String
        var connection: Int32?
        var topics: Set<[UInt8]> = []
        var bucket: TokenBucket
    }

    private let context: Context
    private let loop: Loop
    private let server: RemoteSocket
    private let directory: RuntimeDirectory
    private let settings: GatewayConfiguration.TCP
    private let visitors: Visitors
    private let keys: KeyBook
    private let logger: Logger
    private var runs: [[UInt8]: Run] = [:]
    private var peers: [[UInt8]: Peer] = [:]
    private var feeds: [String: MediaFeed] = [:]
    private let outgoing = Message()
    /// Messages that no room was for.
    private(set) var dropped = 0

    /// Messages that wait in libzmq for a client, beyond what it asked for at a time.
    static let waitingMessages = 16
    /// Bytes on their way to one client.
    static let maximumBytesUnderWay = 64 << 20
    /// Topics of one connection.
    static let maximumTopics = 64
    /// Topics of one device that one key may have at a time.
    static let maximumTopicsOfDevice = 4
    /// Messages of one connection in a second.
    private static let asksPerSecond = 1000
    private static let asksPerTurn = 64
    /// Messages that are kept of sound, and of frames that build on one another: a second or two.
    private static let chainRoom = 64

    init(
        _ context: Context, _ loop: Loop, _ server: RemoteSocket, _ directory: RuntimeDirectory,
        _ settings: GatewayConfiguration.TCP, _ visitors: Visitors, _ keys: KeyBook, logger: Logger
    ) {
        self.context = context
        self.loop = loop
        self.server = server
        self.directory = directory
        self.settings = settings
        self.visitors = visitors
        self.keys = keys
        self.logger = logger
        loop.watch(.socket(server.socket)) { [weak self] in self?.read() }
        visitors.whenClosed { [weak self] connection in self?.forget { $0.connection == connection } }
    }

    /// Whoever has one of these keys gets nothing any more.
    func drop(where isMeant: (_ key: String) -> Bool) { forget { isMeant($0.key) } }

    private func forget(_ isMeant: (Peer) -> Bool) {
        for (routing, peer) in peers where isMeant(peer) { forget(routing) }
    }

    private func forget(_ routing: [UInt8]) {
        guard let peer = peers.removeValue(forKey: routing) else { return }
        for topic in peer.topics { end(topic, of: routing) }
    }

    // MARK: Asking

    private func read() {
        for _ in 0..<Self.asksPerTurn {
            guard let message = try? server.socket.receive(maximumFrames: 2) else { return }
            guard message.count == 2 else { continue }
            take(routing: Array(message[0].bytes), message[1])
        }
    }

    private func take(routing: [UInt8], _ frame: Message) {
        visitors.update()
        let connection = frame.connection
        guard let key = frame.property("User-Id"), keys[key] != nil else {
            if let connection { visitors.shutDown(connection) }
            return
        }
        if let connection { visitors.seen(connection, key: key) }
        let now = MonotonicClock.now()
        if let known = peers[routing], known.key != key || known.connection != connection { forget(routing) }
        if peers[routing] == nil {
            let bucket = TokenBucket(perSecond: Self.asksPerSecond, burst: Self.asksPerSecond, at: now)
            peers[routing] = Peer(key: key, connection: connection, bucket: bucket)
        }
        guard peers[routing]?.bucket.take(at: now) == true else {
            if let connection { visitors.shutDown(connection) }
            return
        }
        guard let ask = MediaAsk(parsing: frame.bytes) else { return }
        if ask.kind == .end {
            peers[routing]?.topics.remove(ask.topic)
            return end(ask.topic, of: routing)
        }
        guard begin(ask.topic, for: routing, at: now) else { return }
        runs[ask.topic]?.viewers[routing]?.ask(raw: ask.kind == .nextRaw, at: now)
        serve(ask.topic, routing, at: now)
    }

    /// Has a topic made for a client.
    ///
    /// - Returns: false: it can't be, and the client is told so as far as it can be.
    private func begin(_ topic: [UInt8], for routing: [UInt8], at now: Int64) -> Bool {
        if runs[topic]?.viewers[routing] != nil { return true }
        guard let peer = peers[routing], peer.topics.count < Self.maximumTopics else { return false }
        guard let run = runs[topic] ?? Self.run(topic) else {
            refuse(topic, routing, Self.notHere)
            return false
        }
        // A device makes so many renditions for all: one key must not have them all made.
        let own = Set(peers.values.filter { $0.key == peer.key }.flatMap(\.topics))
        let wanted = own.count(where: { $0 != topic && runs[$0]?.device == run.device })
        guard wanted < Self.maximumTopicsOfDevice else {
            refuse(topic, routing, Self.tooMany)
            return false
        }
        if runs[topic] == nil {
            guard let feed = feed(of: run.device) else { return false }
            runs[topic] = run
            feed.subscribe(topic)
        }
        guard let newest = runs[topic]?.reel.newest else { return false }
        runs[topic]?.viewers[routing] = Viewer(after: newest, at: now)
        peers[routing]?.topics.insert(topic)
        return true
    }

    private func end(_ topic: [UInt8], of routing: [UInt8]) {
        guard runs[topic]?.viewers.removeValue(forKey: routing) != nil, let run = runs[topic], run.viewers.isEmpty
        else { return }
        runs[topic] = nil
        feeds[run.device]?.unsubscribe(topic)
        if feeds[run.device]?.topics.isEmpty == true { feeds[run.device] = nil }
    }

    private func feed(of device: String) -> MediaFeed? {
        if let known = feeds[device] { return known }
        do throws(ZeroMQError) {
            let made = try MediaFeed(context, loop, directory, device: device) { [weak self] in self?.came($0) }
            feeds[device] = made
            return made
        } catch {
            logger.error("a device's frames can't be had", metadata: ["device": "\(device)", "error": "\(error)"])
            return nil
        }
    }

    /// What is kept of a topic; nil for one that doesn't go to other machines.
    private static func run(_ topic: [UInt8]) -> Run? {
        switch Topic.parse(topic) {
        case .media(let media)? where media.kind == .frame || media.kind == .set:
            Run(device: media.device, isPicture: true, room: 1)
        case .media(let media)? where media.kind == .audio:
            Run(device: media.device, isPicture: false, room: chainRoom)
        case .level(let device)?: Run(device: device, isPicture: false, room: 1)
        default: nil
        }
    }

    // MARK: Giving

    private func came(_ message: [Message]) {
        guard let topic = message.first.map({ Array($0.bytes) }), let run = runs[topic],
            let item = MediaItem(message.dropFirst(), isPicture: run.isPicture, at: MonotonicClock.now())
        else { return }
        runs[topic]?.reel.put(item, room: item.isKey == nil ? run.room : Self.chainRoom)
        for (routing, viewer) in run.viewers {
            guard viewer.isIdle(at: item.arrived) else {
                serve(topic, routing, at: item.arrived)
                continue
            }
            peers[routing]?.topics.remove(topic)
            end(topic, of: routing)
        }
    }

    /// Gives a client what it has asked for, as far as it is there.
    private func serve(_ topic: [UInt8], _ routing: [UInt8], at now: Int64) {
        while let reel = runs[topic]?.reel, bytesUnderWay(to: routing) < Self.maximumBytesUnderWay,
            let item = runs[topic]?.viewers[routing]?.take(from: reel, at: now)
        {
            let mayHave = !item.isRaw || (settings.allowsRaw && runs[topic]?.viewers[routing]?.takesRaw == true)
            guard mayHave else {
                guard runs[topic]?.viewers[routing]?.isToBeRefused(at: now) == true else { continue }
                refuse(topic, routing, settings.allowsRaw ? Self.rawUnasked : Self.rawForbidden)
                runs[topic]?.viewers[routing]?.sent(bytes: 0)
                continue
            }
            if send(topic, routing, item.frames) {
                runs[topic]?.viewers[routing]?.sent(bytes: item.bytes)
            } else {
                dropped += 1
                runs[topic]?.viewers[routing]?.lost()
                return
            }
        }
    }

    private func bytesUnderWay(to routing: [UInt8]) -> Int {
        (peers[routing]?.topics ?? []).reduce(0) { $0 + (runs[$1]?.viewers[routing]?.bytesUnderWay ?? 0) }
    }

    private func send(_ topic: [UInt8], _ routing: [UInt8], _ frames: [Message]) -> Bool {
        // libzmq looks only now and then at what clients have taken; asking for the events makes it look.
        _ = server.socket.readiness()
        do throws(ZeroMQError) {
            guard try server.socket.send(routing, more: true) else { return false }
            try server.socket.send(topic, more: true)
            for (index, frame) in frames.enumerated() {
                // Its bytes are counted, not copied: others get the same.
                try outgoing.share(frame)
                try server.socket.send(outgoing, more: index < frames.count - 1)
            }
            return true
        } catch {
            return false
        }
    }

    // MARK: What can't be had

    private static let notHere = BusError(
        .formatUnsupported, "That does not go to other machines; frame/, set/, audio/ and level/ do.",
        ["nearest": .null])
    private static let tooMany = BusError(
        .limitExceeded, "This key has as much of this device already as goes to other machines; end one of the others.",
        ["limit": "renditions", "maximum": JSONValue(maximumTopicsOfDevice)])
    private static let rawUnasked = BusError(
        .formatUnsupported,
        "Pixels that are not compressed go to other machines only where they are asked for; jpeg goes always.",
        ["nearest": "jpeg"])
    private static let rawForbidden = BusError(
        .formatUnsupported, "This gateway sends no uncompressed pixels (tcp.raw in gateway.toml); jpeg goes.",
        ["nearest": "jpeg"])

    private func refuse(_ topic: [UInt8], _ routing: [UInt8], _ error: BusError) {
        let parts = String(decoding: topic, as: UTF8.self).split(separator: "/").map(String.init)
        let header: JSONValue = [
            "v": 1, "device": .string(parts.count > 1 ? parts[1] : ""),
            "rendition": .string(parts.count > 2 ? parts[2] : ""),
            "error": [
                "reason": .string(error.reason.rawValue), "message": .string(error.message),
                "data": .object(error.data),
            ],
        ]
        do throws(ZeroMQError) {
            guard try server.socket.send(routing, more: true) else { return }
            try server.socket.send(topic, more: true)
            try server.socket.send(header.serialized)
        } catch {
            dropped += 1
        }
    }
}
