import BusProtocol
import BusServer
import JSON
import LinuxIO
import Logging
import Synchronization
import ZeroMQ

/// All of the bus that the web side uses: on the loop alone, where connections have it done by ``LoopMailbox``.
final class WebDesk: @unchecked Sendable {
    // Everything but the mailbox and the counters is touched on the loop's thread only.
    let mailbox: LoopMailbox
    let counters: WebCounters
    let place: BusPlace
    let media: MediaDesk
    let events: BusEvents
    let settings: GatewayConfiguration.Web
    let logger: Logger
    private let herald: Herald
    private let service: WebService
    /// Counters of the whole process beside the web side's, by name.
    private let others: () -> [(name: String, value: Int)]
    /// Called when the server can go on no more.
    var onEnd: (() -> Void)?
    private var buckets: [PaceKey: TokenBucket] = [:]
    private var sessions: [ObjectIdentifier: WebSession] = [:]

    /// Messages of one owner that ask for media, in a second.
    private static let asksPerSecond = 1000
    private static let maximumBuckets = 4096
    /// Milliseconds that who has no connection any more has to come back, as on the bus's own machine.
    private static let absence: Int64 = 5000

    init(
        _ place: BusPlace, _ media: MediaDesk, _ events: BusEvents, _ herald: Herald,
        _ settings: GatewayConfiguration.Web, logger: Logger, others: @escaping () -> [(name: String, value: Int)]
    ) throws(GatewayError) {
        self.place = place
        self.media = media
        self.events = events
        self.herald = herald
        self.settings = settings
        self.logger = logger
        self.others = others
        counters = WebCounters()
        do {
            mailbox = try LoopMailbox()
            service = try WebService(place)
        } catch {
            throw GatewayError(description: "\(error)")
        }
        mailbox.deliver(on: place.loop)
        herald.whoIsHere { [weak self] name in
            self?.sessions.values.contains { $0.principal.name == name } ?? false
        }
    }

    // MARK: From connections' threads

    /// Asks the bus, in that name or its own.
    func ask(
        _ method: String, _ params: JSONValue = [:], for principal: Request.Principal? = nil
    ) async -> Result<JSONValue, BusError> {
        await mailbox.ask { tell in self.service.ask(method, params, for: principal, tell) }
    }

    /// What is counted, by name.
    func counts() async -> [(name: String, value: Int)] {
        await mailbox.ask { tell in
            let own = [
                ("web_connections", self.counters.connections.load(ordering: .relaxed)),
                ("web_sockets", self.sessions.count),
                ("web_refused_connections_total", self.counters.refusedConnections.load(ordering: .relaxed)),
                ("web_requests_total", self.counters.requests.load(ordering: .relaxed)),
                ("web_refused_requests_total", self.counters.refusedRequests.load(ordering: .relaxed)),
                ("web_sent_bytes_total", self.counters.sentBytes.load(ordering: .relaxed)),
                ("web_cut_sockets_total", self.counters.cutSockets.load(ordering: .relaxed)),
                ("media_topics", self.media.topicCount),
                ("media_sent_total", self.media.sent), ("media_dropped_total", self.media.dropped),
            ]
            tell((own + self.others()).map { (name: $0.0, value: $0.1) })
        }
    }

    /// The present states of devices.
    func devices() async -> [JSONValue] {
        await mailbox.ask { tell in
            let bodies = self.events.current(matching: "state/device/")
            tell(bodies.compactMap { (try? JSONValue(parsing: $0.body))?["value"] })
        }
    }

    // MARK: On the loop

    /// Whether the bus is there now.
    var isBusHere: Bool { service.isBusHere }

    /// All that this one has ends; the body is called when the bus has answered that.
    func revoked(_ principal: Request.Principal, then told: @escaping () -> Void) {
        herald.revoked(principal.name, then: told)
    }

    /// Whether an owner has not asked too often, this time included.
    func isInTime(_ owner: String, _ kind: Pace) -> Bool {
        let now = MonotonicClock.now()
        if buckets.count >= Self.maximumBuckets { buckets = [:] }
        let rate = kind == .requests ? settings.requestsPerSecond : Self.asksPerSecond
        return buckets[
            PaceKey(owner: owner, kind: kind), default: TokenBucket(perSecond: rate, burst: 2 * rate, at: now)
        ]
        .take(at: now)
    }

    /// What is asked so often at most.
    enum Pace: Hashable {
        case requests, media
    }

    private struct PaceKey: Hashable {
        var owner: String
        var kind: Pace
    }

    func add(_ session: WebSession) { sessions[ObjectIdentifier(session)] = session }

    /// A WebSocket has ended: what its user has ends with the last one, as it does with the last process on the bus's machine.
    func remove(_ session: WebSession) {
        guard sessions.removeValue(forKey: ObjectIdentifier(session)) != nil else { return }
        let principal = session.principal
        place.loop.schedule(afterMilliseconds: Self.absence) { [weak self] in
            guard let self, !sessions.values.contains(where: { $0.principal.name == principal.name }) else { return }
            herald.left(principal)
        }
    }
}
