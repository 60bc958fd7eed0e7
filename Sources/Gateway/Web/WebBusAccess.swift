import BusProtocol
import BusServer
import CaptureCore
import JSON
import Logging
import Synchronization
import ZeroMQ

/// The web server's access to the bus. It is used only on the loop; connections post to it through ``LoopMailbox``.
final class WebBusAccess: @unchecked Sendable {
    // Everything but the mailbox and the counters is touched on the loop's thread only.
    let mailbox: LoopMailbox
    let counters: WebCounters
    let place: BusEndpoints
    let media: MediaDistributor
    let events: BusEvents
    let settings: GatewayConfiguration.Web
    let logger: Logger
    private let departures: DepartureReporter
    private let service: WebService
    /// Counters of the whole process beside the web side's, by name.
    private let others: () -> [(name: String, value: Int)]
    /// Called when the server can go on no more.
    var onEnd: (() -> Void)?
    /// The role that who is called so at the bus has now; `nobody`: it is let in no more.
    var roleNow: (_ name: String) -> Request.Principal.Role = { _ in .nobody }
    private var sessions: [ObjectIdentifier: WebSession] = [:]
    private let grace: DisconnectGrace
    /// Files on their way.
    private var downloads: [ObjectIdentifier: Download] = [:]

    /// - Parameter absence: milliseconds in which a client without a connection may return, as on the bus's own
    ///   machine.
    init(
        _ place: BusEndpoints, _ media: MediaDistributor, _ events: BusEvents, _ departures: DepartureReporter,
        _ settings: GatewayConfiguration.Web, absence: Int64 = 5000, logger: Logger,
        others: @escaping () -> [(name: String, value: Int)]
    ) throws(GatewayError) {
        self.place = place
        self.media = media
        self.events = events
        self.departures = departures
        self.settings = settings
        self.logger = logger
        self.others = others
        counters = WebCounters()
        grace = DisconnectGrace(place.loop, milliseconds: absence)
        do {
            mailbox = try LoopMailbox()
            service = try WebService(place)
        } catch {
            throw GatewayError(description: "\(error)")
        }
        mailbox.deliver(on: place.loop)
        departures.whoIsHere { [weak self] name in self?.isHere(name) ?? false }
        grace.onOver = { [weak self] in self?.left($0) }
        events.whenPermissionChanges { [weak self] in self?.endDownloads() }
    }

    // MARK: From connections' threads

    /// Asks the bus, in that user's name or in the gateway's own.
    ///
    /// - Parameters:
    ///   - principal: on whose behalf; nil: the gateway's own.
    ///   - visitor: whose share of the requests under way it takes.
    ///   - patience: milliseconds that the answer may take.
    func ask(
        _ method: String, _ params: JSONValue = [:], for principal: Request.Principal? = nil,
        of visitor: WebAuthorization.Visitor, within patience: Int64 = WebService.patience
    ) async -> Result<JSONValue, BusError> {
        await askWithAttachments(method, params, for: principal, of: visitor, within: patience).map(\.result)
    }

    /// The same of a method whose answers have attachments.
    func askWithAttachments(
        _ method: String, _ params: JSONValue, for principal: Request.Principal?,
        of visitor: WebAuthorization.Visitor, within patience: Int64
    ) async -> Result<WebService.Answer, BusError> {
        await mailbox.ask { tell in
            // The bus would take it for news of the role.
            if let principal, self.roleNow(principal.name) != principal.role { return tell(.failure(Self.notLetIn)) }
            self.service.ask(method, params, for: principal, of: visitor.owner, within: patience, tell)
        }
    }

    /// Whether the bus answers.
    func isBusAnswering() async -> Bool { await mailbox.ask { tell in self.service.checkHealth(tell) } }

    private static let notLetIn = BusError(
        .unauthorized, "This token was just revoked, or its role has changed.",
        ["status": "denied", "needed": "token"])

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

    /// Ends that connection when its user may not see the library any more, while the body sends a file over it.
    func downloading<Value: Sendable>(
        _ visitor: WebAuthorization.Visitor, _ stream: WebStream, _ body: () async throws -> Value
    ) async rethrows -> Value {
        let download = Download(visitor, stream)
        mailbox.post { [self] in
            downloads[ObjectIdentifier(download)] = download
            endDownloads()
        }
        defer { mailbox.post { [self] in downloads[ObjectIdentifier(download)] = nil } }
        return try await body()
    }

    /// A file that is being sent. One connection may begin the next before the loop has noted the end of the last.
    private final class Download: Sendable {
        let visitor: WebAuthorization.Visitor
        let stream: WebStream

        init(_ visitor: WebAuthorization.Visitor, _ stream: WebStream) {
            self.visitor = visitor
            self.stream = stream
        }
    }

    private func endDownloads() {
        for download in downloads.values {
            let role = AuthorizationRole(download.visitor.role)
            guard let refusal = events.permission?.refusal(of: role, .library) else { continue }
            logger.notice(
                "a download ended: its user may not see the library any more",
                metadata: ["name": "\(download.visitor.principal.name)", "reason": "\(refusal.message)"])
            download.stream.shutDown()
        }
    }

    // MARK: On the loop

    /// Whether the bus is there now.
    var isBusHere: Bool { service.isBusHere }

    /// All that this one has ends; the body is called when the bus has answered that.
    func revoked(_ principal: Request.Principal, then told: @escaping () -> Void) {
        departures.revoked(principal.name, then: told)
    }

    /// What this one had has ended, and it has this role now; the body is called when the bus has answered that.
    func changed(_ principal: Request.Principal, then told: @escaping () -> Void) {
        departures.changed(principal, then: told)
    }

    /// Ends the WebSockets of principals that lost or changed their access. Messages that they sent and nobody has read
    /// yet are not carried out.
    func cut(_ gone: Set<Request.Principal>) {
        for session in sessions.values where gone.contains(session.principal) { session.close() }
    }

    func add(_ session: WebSession) {
        sessions[ObjectIdentifier(session)] = session
        grace.ended(session.principal.name)
    }

    /// A WebSocket has ended: what its user has ends with the last one, as it does with the last process on the bus's
    /// machine.
    func remove(_ session: WebSession) {
        guard sessions.removeValue(forKey: ObjectIdentifier(session)) != nil else { return }
        let name = session.principal.name
        if !isHere(name) { grace.began(name) }
    }

    private func isHere(_ name: String) -> Bool { sessions.values.contains { $0.principal.name == name } }

    private func left(_ name: String) {
        departures.left(name) { [weak self] in
            Request.Principal(name: name, role: self?.roleNow(name) ?? .nobody)
        }
    }
}
