import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO
import Logging
import ZeroMQ

/// Distributes pictures and sound to all clients that are not on this machine's sockets. Each client asks for the next
/// message of a topic, and gets the newest one (``MediaAsk``).
///
/// The bus makes each rendition once, for any number of clients of any kind. A client that does not ask costs nothing
/// except the messages that are already on their way to it.
final class MediaDistributor {
    /// Names who asks.
    struct Peer: Hashable {
        fileprivate let number: UInt64
    }

    /// How somebody gets what he asked for.
    struct Way {
        /// What is bounded for all of one owner's connections together.
        var owner: String
        /// Of the key or token of that owner.
        var role: Request.Principal.Role
        /// Uncompressed pictures, to who asks for them.
        var allowsRaw: Bool
        /// Whether something can be sent now; if not, ``MediaDistributor/room(for:)`` says when.
        var hasRoom: () -> Bool
        /// Sends a message; false: it can't be, and is lost.
        var send: (_ topic: [UInt8], _ frames: [Message]) -> Bool
    }

    /// A topic that somebody wants.
    private final class Run {
        let device: String
        /// The permission that it needs: pictures or sound.
        let media: AuthorizationMedia
        /// The bus makes it whatever else it makes.
        let isAlwaysMade: Bool
        let pixels: Pixels
        /// Messages that are kept of it, where each stands for itself: one, but of sound.
        let room: Int
        var recent = RecentMessages<MediaItem>()
        var viewers: [Peer: Viewer] = [:]
        /// The later it was subscribed to, the higher.
        var number: UInt64 = 0
        /// The last error that the bus sent in place of messages: whether for lack of room, and when. nil: there is
        /// none, or messages have come since.
        var refusal: (isForRoom: Bool, at: Int64)?
        /// Whether the bus has had the device, or the rig, while this was wanted.
        var wasKnown = false
        /// Since when it hasn't; nil: it has.
        var unknownSince: Int64?

        /// What is known of the pixels of its pictures before one comes.
        enum Pixels { case compressed, uncompressed, asOfDevice }

        init(device: String, _ media: AuthorizationMedia, isAlwaysMade: Bool, _ pixels: Pixels, room: Int) {
            self.device = device
            self.media = media
            self.isAlwaysMade = isAlwaysMade
            self.pixels = pixels
            self.room = room
        }
    }

    private struct Asker {
        let way: Way
        var topics: Set<[UInt8]> = []
        var refusals: [[UInt8]: TopicRefusal] = [:]
    }

    private let place: BusEndpoints
    private let events: BusEvents
    private let logger: Logger
    private var runs: [[UInt8]: Run] = [:]
    private var askers: [Peer: Asker] = [:]
    private var feeds: [String: MediaFeed] = [:]
    private var lastNumber: UInt64 = 0
    private var lastSubscription: UInt64 = 0
    private var lastSweep: Int64 = 0
    /// When those who were refused are answered next.
    private var reconsideration: Loop.Token?
    /// Messages that no room was for, and those that were sent.
    private(set) var dropped = 0
    private(set) var sent = 0

    /// Bytes on their way to one client.
    static let maximumBytesUnderWay = 64 << 20
    /// Topics of one owner.
    static let maximumTopics = 64
    /// Topics of one device that one owner may have at a time.
    static let maximumTopicsOfDevice = 4
    /// Topics that one client may be refused at a time; of more it is told nothing.
    static let maximumRefusals = 64
    /// Nanoseconds between two looks at those who were refused, however many there are.
    private static let leastReconsideration: Int64 = 100_000_000
    /// Messages that are kept of sound, and of frames that build on one another: a second or two.
    private static let chainRoom = 64
    /// Nanoseconds for which a device that was there may be away before who waits for it is refused: a bus that was
    /// started anew makes it again.
    private static let absence: Int64 = 10_000_000_000
    /// Nanoseconds between two renditions of a device that make room: meanwhile the bus says what came of the first.
    private static let leastTurn: Int64 = 500_000_000
    /// Nanoseconds for which a refusal of the bus holds, which repeats it once a second.
    private static let refusalPatience: Int64 = 3_000_000_000

    init(_ place: BusEndpoints, _ events: BusEvents, logger: Logger) {
        self.place = place
        self.events = events
        self.logger = logger
        events.listen { [weak self] topic, _ in
            if topic == Topic.heartbeat.text { self?.cameHeartbeat(at: MonotonicClock.now()) }
        }
        events.whenPermissionChanges { [weak self] in self?.permissionChanged(at: MonotonicClock.now()) }
    }

    /// Topics that the bus makes something for now.
    var topicCount: Int { runs.count }

    /// Somebody comes.
    func open(_ way: Way) -> Peer {
        lastNumber += 1
        let peer = Peer(number: lastNumber)
        askers[peer] = Asker(way: way)
        return peer
    }

    /// Somebody has gone; harmless once more.
    func close(_ peer: Peer) {
        guard let asker = askers.removeValue(forKey: peer) else { return }
        for topic in asker.topics { end(topic, of: peer) }
    }

    // MARK: Asking

    func take(_ ask: MediaAsk, of peer: Peer) {
        let now = MonotonicClock.now()
        take(ask, of: peer, at: now)
        endIdle(at: now)
    }

    private func take(_ ask: MediaAsk, of peer: Peer, at now: Int64) {
        let topic = ask.topic
        if ask.kind == .end {
            askers[peer]?.topics.remove(topic)
            askers[peer]?.refusals[topic] = nil
            return end(topic, of: peer)
        }
        guard let asker = askers[peer] else { return }
        let isRaw = ask.kind == .nextRaw
        guard asker.refusals[topic] == nil else {
            askers[peer]?.refusals[topic]?.ask(raw: isRaw)
            return
        }
        guard events.permission != nil else {
            guard asker.refusals.count < Self.maximumRefusals else { return }
            askers[peer]?.refusals[topic] = .undecided
            askers[peer]?.refusals[topic]?.ask(raw: isRaw)
            return
        }
        if let error = begin(topic, for: peer, raw: isRaw, at: now) {
            return refuseFirst(topic, peer, error, at: now)
        }
        runs[topic]?.viewers[peer]?.ask(raw: isRaw, at: now)
        serve(topic, peer, at: now)
    }

    /// It can take something again.
    func room(for peer: Peer) {
        let now = MonotonicClock.now()
        for topic in askers[peer]?.topics ?? [] { serve(topic, peer, at: now) }
    }

    /// Has a topic made for a client. What is refused is not subscribed to: it takes nothing from others, and keeps no
    /// camera streaming.
    ///
    /// - Parameter takesRaw: whether the client takes uncompressed pictures.
    /// - Returns: why it can't be; nil: it is.
    private func begin(_ topic: [UInt8], for peer: Peer, raw takesRaw: Bool, at now: Int64) -> BusError? {
        if runs[topic]?.viewers[peer] != nil { return nil }
        guard let way = askers[peer]?.way else { return Self.noFeed }
        let owner = way.owner
        let own = Set(askers.values.filter { $0.way.owner == owner }.flatMap(\.topics))
        guard own.contains(topic) || own.count < Self.maximumTopics else { return Self.tooManyTopics }
        guard let run = runs[topic] ?? Self.run(topic) else { return Self.notHere }
        if let refusal = refusal(way, run) ?? rawRefusal(way, run, takesRaw) { return refusal }
        // A device makes so many renditions for all: one key must not have them all made.
        let wanted = own.count(where: {
            $0 != topic && runs[$0]?.device == run.device && runs[$0]?.isAlwaysMade == false
        })
        guard run.isAlwaysMade || wanted < Self.maximumTopicsOfDevice else { return Self.tooMany }
        if runs[topic] == nil {
            guard let feed = feed(of: run.device) else { return Self.noFeed }
            run.wasKnown = events.knows(run.device)
            runs[topic] = run
            run.number = nextSubscription()
            feed.subscribe(topic)
        }
        run.viewers[peer] = Viewer(after: run.recent.newest, at: now)
        askers[peer]?.topics.insert(topic)
        return nil
    }

    private func nextSubscription() -> UInt64 {
        lastSubscription += 1
        return lastSubscription
    }

    private func rawRefusal(_ way: Way, _ run: Run, _ takesRaw: Bool) -> BusError? {
        guard !(way.allowsRaw && takesRaw) else { return nil }
        switch run.pixels {
        case .uncompressed: return Self.rawRefusal(way)
        case .asOfDevice where events.isUncompressed(run.device): return Self.rawRefusal(way)
        case .asOfDevice, .compressed: return nil
        }
    }

    private static func rawRefusal(_ way: Way) -> BusError { way.allowsRaw ? rawUnasked : rawForbidden }

    // MARK: Permission

    private func refusal(_ way: Way, _ run: Run) -> BusError? {
        events.permission?.refusal(of: AuthorizationRole(way.role), run.media)
    }

    /// Ends what somebody may not have any more, and says why; decides about what nothing was known of yet.
    private func permissionChanged(at now: Int64) {
        for (peer, asker) in askers {
            for topic in asker.topics {
                guard let run = runs[topic], let error = refusal(asker.way, run) else { continue }
                withdraw(topic, from: peer, error, at: now)
            }
            for (topic, refusal) in asker.refusals where refusal.isUndecided {
                reconsider(topic, refusal, of: peer, at: now)
            }
        }
    }

    // MARK: Refusing

    /// Ends what a client may not have any more.
    private func withdraw(_ topic: [UInt8], from peer: Peer, _ error: BusError, at now: Int64) {
        let viewer = runs[topic]?.viewers[peer]
        askers[peer]?.topics.remove(topic)
        end(topic, of: peer)
        refuseFirst(topic, peer, error, at: now)
        // The error answers one of its asks.
        for _ in 1..<max(1, viewer?.credit ?? 0) {
            askers[peer]?.refusals[topic]?.ask(raw: viewer?.takesRaw ?? false)
        }
    }

    private func refuseFirst(_ topic: [UInt8], _ peer: Peer, _ error: BusError, at now: Int64) {
        guard let count = askers[peer]?.refusals.count, count < Self.maximumRefusals else { return }
        askers[peer]?.refusals[topic] = TopicRefusal(at: now)
        refuse(topic, peer, error)
        reconsider(at: now + TopicRefusal.interval)
    }

    private func reconsider(at time: Int64) {
        guard reconsideration == nil else { return }
        reconsideration = place.loop.schedule(at: time) { [weak self] in
            guard let self else { return }
            reconsideration = nil
            reconsider(now: MonotonicClock.now())
        }
    }

    /// Who was refused and has asked on gets it by now, or is told again.
    func reconsider(now: Int64) {
        for (peer, asker) in askers {
            for (topic, refusal) in asker.refusals {
                if let due = refusal.due, due <= now { reconsider(topic, refusal, of: peer, at: now) }
            }
        }
        guard let next = askers.values.flatMap({ $0.refusals.values.compactMap(\.due) }).min() else { return }
        reconsider(at: max(next, now + Self.leastReconsideration))
    }

    private func reconsider(_ topic: [UInt8], _ refusal: TopicRefusal, of peer: Peer, at now: Int64) {
        guard refusal.asks > 0 else {
            askers[peer]?.refusals[topic] = nil
            return
        }
        if let error = begin(topic, for: peer, raw: refusal.takesRaw, at: now) {
            askers[peer]?.refusals[topic]?.told(at: now)
            refuse(topic, peer, error)
            return reconsider(at: now + TopicRefusal.interval)
        }
        askers[peer]?.refusals[topic] = nil
        for _ in 0..<refusal.asks { runs[topic]?.viewers[peer]?.ask(raw: refusal.takesRaw, at: now) }
        serve(topic, peer, at: now)
    }

    // MARK: Ending

    /// Ends what nobody has asked for since long, also where nothing comes that would show it.
    private func endIdle(at now: Int64) {
        guard now - lastSweep > 1_000_000_000 else { return }
        lastSweep = now
        for (topic, run) in runs {
            for (peer, viewer) in run.viewers where viewer.isIdle(at: now) {
                askers[peer]?.topics.remove(topic)
                end(topic, of: peer)
            }
        }
    }

    /// The bus has told what there is by now. Of what isn't there nothing comes, not even what would end it: who waits
    /// for that is refused.
    func cameHeartbeat(at now: Int64) {
        for (topic, run) in runs {
            guard events.knowsNothing(of: run.device, at: now) else {
                if events.knows(run.device) { run.wasKnown = true }
                run.unknownSince = nil
                continue
            }
            guard let since = run.unknownSince else {
                // What came to be just before it was asked for may be told behind this.
                run.unknownSince = now
                continue
            }
            guard !run.wasKnown || now - since >= Self.absence else { continue }
            for peer in run.viewers.keys {
                refuse(topic, peer, Self.nobody(run.device))
                askers[peer]?.topics.remove(topic)
                end(topic, of: peer)
            }
        }
        endIdle(at: now)
    }

    private func end(_ topic: [UInt8], of peer: Peer) {
        guard runs[topic]?.viewers.removeValue(forKey: peer) != nil, let run = runs[topic], run.viewers.isEmpty
        else { return }
        runs[topic] = nil
        feeds[run.device]?.unsubscribe(topic)
        if feeds[run.device]?.topics.isEmpty == true { feeds[run.device] = nil }
    }

    private func feed(of device: String) -> MediaFeed? {
        if let known = feeds[device] { return known }
        do throws(ZeroMQError) {
            let made = try MediaFeed(place, device: device) { [weak self] in self?.came($0) }
            feeds[device] = made
            return made
        } catch {
            logger.error(
                "can't connect to the media socket of a device", metadata: ["device": "\(device)", "error": "\(error)"])
            return nil
        }
    }

    /// What is kept of a topic; nil for one that doesn't go to other machines.
    private static func run(_ topic: [UInt8]) -> Run? {
        switch Topic.parse(topic) {
        case .media(let media)? where media.kind == .frame || media.kind == .set:
            picture(media)
        case .media(let media)? where media.kind == .audio:
            Run(
                device: media.device, .audio, isAlwaysMade: (try? media.soundRendition())?.isAlwaysMade ?? false,
                .compressed, room: chainRoom)
        case .level(let device)?: Run(device: device, .audio, isAlwaysMade: true, .compressed, room: 1)
        default: nil
        }
    }

    private static func picture(_ media: MediaTopic) -> Run {
        let rendition = try? media.rendition()
        let pixels: Run.Pixels =
            switch rendition?.encoding {
            // The bus says what is wrong with one that can't be read.
            case .jpeg?, nil: .compressed
            case .native?: .asOfDevice
            case .bgr?, .rgb?, .gray?, .yuyv?, .nv12?, .i420?, .gray16?, .rgb48?: .uncompressed
            }
        return Run(device: media.device, .video, isAlwaysMade: rendition?.isAlwaysMade ?? false, pixels, room: 1)
    }

    // MARK: Sharing

    /// The bus has sent an error in place of a rendition's messages. If it is for lack of room, a client with more
    /// renditions may have to give one up.
    ///
    /// - Returns: whether the rendition's clients get the error: it is not their turn.
    private func wasRefused(_ topic: [UInt8], _ run: Run, _ header: Message, at now: Int64) -> Bool {
        let error = (try? JSONValue(parsing: header.bytes))?["error"].map { BusError(header: $0) }
        let limit = BusLimits.Name.renditions.rawValue
        let isForRoom = error?.reason == .limitExceeded && error?.data["limit"]?.string == limit
        run.refusal = (isForRoom, now)
        guard isForRoom, let feed = feeds[run.device], let turn = turn(of: run.device, at: now) else { return true }
        if feed.lastTurn.map({ now - $0 >= Self.leastTurn }) ?? true {
            feed.lastTurn = now
            feed.subscribeAnew(turn.behind)
            for topic in turn.behind {
                runs[topic]?.number = nextSubscription()
                runs[topic]?.refusal = (true, now)
            }
            runs[turn.next]?.refusal = nil
        }
        return !turn.waiting.contains(topic)
    }

    private func turn(of device: String, at now: Int64) -> RenditionTurn? {
        let wishes = runs.compactMap { topic, run -> RenditionTurn.Wish? in
            let refusal = run.refusal.flatMap { now - $0.at < Self.refusalPatience ? $0 : nil }
            guard run.device == device, !run.isAlwaysMade, refusal?.isForRoom != false else { return nil }
            return RenditionTurn.Wish(
                topic: topic, owners: Set(run.viewers.keys.compactMap { askers[$0]?.way.owner }),
                isRefused: refusal != nil, number: run.number)
        }
        return RenditionTurn(among: wishes)
    }

    // MARK: Giving

    private func came(_ message: [Message]) {
        let now = MonotonicClock.now()
        guard let topic = message.first.map({ Array($0.bytes) }), let run = runs[topic],
            let item = MediaItem(message.dropFirst(), isPicture: run.media == .video, at: now)
        else { return }
        if message.count > 2 || run.isAlwaysMade {
            run.refusal = nil
        } else if !wasRefused(topic, run, message[1], at: now) {
            return
        }
        run.recent.put(item, room: item.isKey == nil ? run.room : Self.chainRoom)
        for (peer, viewer) in run.viewers {
            guard viewer.isIdle(at: item.arrived) else {
                serve(topic, peer, at: item.arrived)
                continue
            }
            askers[peer]?.topics.remove(topic)
            end(topic, of: peer)
        }
    }

    /// Gives a client what it has asked for, as far as it is there.
    private func serve(_ topic: [UInt8], _ peer: Peer, at now: Int64) {
        guard let way = askers[peer]?.way else { return }
        while let recent = runs[topic]?.recent, way.hasRoom(), bytesUnderWay(to: peer) < Self.maximumBytesUnderWay,
            let item = runs[topic]?.viewers[peer]?.take(from: recent, at: now)
        {
            let mayHave = !item.isRaw || (way.allowsRaw && runs[topic]?.viewers[peer]?.takesRaw == true)
            guard mayHave else { return withdraw(topic, from: peer, Self.rawRefusal(way), at: now) }
            if way.send(topic, item.frames) {
                sent += 1
                runs[topic]?.viewers[peer]?.sent(bytes: item.bytes)
            } else {
                dropped += 1
                runs[topic]?.viewers[peer]?.lost()
                return
            }
        }
    }

    private func bytesUnderWay(to peer: Peer) -> Int {
        (askers[peer]?.topics ?? []).reduce(0) { $0 + (runs[$1]?.viewers[peer]?.bytesUnderWay ?? 0) }
    }

    // MARK: What can't be had

    private static func nobody(_ device: String) -> BusError {
        BusError(.deviceNotFound, "There is no device or rig with this name.", ["device": .string(device)])
    }

    private static let notHere = BusError(
        .formatUnsupported, "This topic is not available on other machines. Use frame/, set/, audio/ or level/.",
        ["nearest": .null])
    private static let tooMany = BusError(
        .limitExceeded,
        "This client has the maximum number of topics of this device. End another one first; native and jpeg are "
            + "always available.",
        ["limit": "renditions", "maximum": JSONValue(maximumTopicsOfDevice)])
    private static let tooManyTopics = BusError(
        .limitExceeded, "This client has the maximum number of topics. End another one first.",
        ["limit": "topics", "maximum": JSONValue(maximumTopics)])
    private static let noFeed = BusError(
        .internalError, "The gateway can't open another connection to this device. Try again later.")
    private static let rawUnasked = BusError(
        .formatUnsupported,
        "Uncompressed pixels are sent to other machines only if the client asks for them. Use jpeg.",
        ["nearest": "jpeg"])
    private static let rawForbidden = BusError(
        .formatUnsupported, "This gateway sends no uncompressed pixels (tcp.raw in gateway.toml). Use jpeg.",
        ["nearest": "jpeg"])

    private func refuse(_ topic: [UInt8], _ peer: Peer, _ error: BusError) {
        let parts = String(decoding: topic, as: UTF8.self).split(separator: "/").map(String.init)
        let header: JSONValue = [
            "v": 1, "device": .string(parts.count > 1 ? parts[1] : ""),
            "rendition": .string(parts.count > 2 ? parts[2] : ""), "error": error.headerJSON,
        ]
        guard let way = askers[peer]?.way, let message = try? Message.of(header.serialized) else { return }
        if !way.send(topic, [message]) { dropped += 1 }
    }
}
