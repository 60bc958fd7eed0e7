import BusProtocol
import JSON
import LinuxIO
import ZeroMQ

/// One SUB socket with its topics, from connecting until it is removed. Lives on the loop's thread.
///
/// It is open once its subscriptions are in force: the publisher's `welcome/` shows that the connection is up, and
/// `ack/<nonce>/`, requested after it, shows that all earlier subscriptions were received. libzmq connects
/// again, and subscribes again, by itself.
final class Subscription {
    struct Plan: Sendable {
        /// Whose socket.
        var source: BusPlace.Source
        var topics: [String]
        /// Messages that libzmq keeps on this side.
        var receiveHighWaterMark: Int
        /// When to give up opening; monotonic nanoseconds.
        var deadline: Int64
        /// How long nothing may come, once it is open, in nanoseconds; nil: for ever.
        var silence: Int64?
        /// Whether a heartbeat counts as something.
        var heartbeatCounts: Bool
        /// Who publishes, for messages: `the bus`, `cam0`.
        var publisher: String
        /// Where the bus is.
        var place: BusPlace
        /// From another machine: also pixels that are not compressed.
        var takesRaw = false

        /// Whether it is the bus itself that publishes, and no worker: then it says here when it ends.
        var isOfBus: Bool { source == .events }
        /// Whether each message is asked for: media from another machine.
        var isAskedFor: Bool { place.isRemote && !isOfBus }
        var end: ClientError { .ended(directory: place.name) }
    }

    /// What becomes of a message.
    enum Disposal {
        case goOn
        /// There is no room: nothing is read until ``resume()``.
        case pause
    }

    /// How long a publisher may be silent before its heartbeat is missed.
    static let silenceWithoutHeartbeat = Duration.seconds(3)

    private unowned let loop: any SocketLoop
    private let plan: Plan
    private let socket: Socket
    /// Of one that asks for each message; nil: it subscribes.
    private let asking: MediaRequester?
    private let accept: ([Message]) -> Disposal
    private let fail: (ClientError) -> Void
    private var opened: ((Result<Void, ClientError>) -> Void)?

    private let wantsHeartbeat: Bool
    private let wantsEndNotice: Bool
    private var isWelcome = false
    private var nonce: String?
    // Of the answer that comes behind all that is on its way.
    private var probe: String?
    private var flushes: [String: () -> Void] = [:]
    private var isPaused = false
    private var lastMessage: Int64
    private var lastHeartbeat: Int64?

    /// - Parameters:
    ///   - opened: called once: its subscriptions are in force, or why they will not be.
    ///   - accept: called with each message on the topics.
    ///   - fail: called when nothing came for as long as the plan allows, and at the end.
    init(
        _ loop: any SocketLoop, _ plan: Plan, opened: @escaping (Result<Void, ClientError>) -> Void,
        accept: @escaping ([Message]) -> Disposal, fail: @escaping (ClientError) -> Void
    ) throws(ZeroMQError) {
        self.loop = loop
        self.plan = plan
        self.accept = accept
        self.fail = fail
        self.opened = opened
        lastMessage = MonotonicClock.now()
        wantsHeartbeat = plan.topics.contains { Topic.heartbeat.text.hasPrefix($0) }
        wantsEndNotice = plan.topics.contains { Topic.event(.bus).text.hasPrefix($0) }
        socket = try Socket(loop.context, plan.isAskedFor ? .dealer : .subscribe)
        try socket.set(.receiveHighWaterMark, plan.receiveHighWaterMark)
        // Topics beyond it would be lost without a notice. The bus takes 1024 of a connection, and answers further
        // ones with an error.
        try socket.set(.sendHighWaterMark, 2000)
        if plan.isAskedFor {
            asking = try MediaRequester(loop.context, socket, topics: plan.topics, takesRaw: plan.takesRaw)
        } else {
            asking = nil
            try socket.subscribe(Topic.welcome.text)
            if !wantsHeartbeat { try socket.subscribe(Topic.heartbeat.text) }
            if plan.isOfBus, !wantsEndNotice { try socket.subscribe(Topic.event(.bus).text) }
            for topic in plan.topics { try socket.subscribe(topic) }
        }
        try plan.place.connect(socket, to: plan.source)
        alarm(at: plan.deadline) { $0.openingRanOut() }
    }

    var sources: [PollSet.Source] { isPaused ? [] : [.socket(socket)] + (asking.map { [$0.source] } ?? []) }

    func work() {
        if let asking, asking.look() {
            isWelcome = true
            // What is wanted has been asked for: of what comes from now on nothing is missed.
            if opened != nil { acknowledged() }
        }
        while !isPaused, let message = try? socket.receive(maximumFrames: 80) { take(message) }
    }

    /// There is room again.
    func resume() {
        guard isPaused else { return }
        isPaused = false
        loop.sourcesChanged()
    }

    /// Calls back when all that was published until now has come, or its time is over.
    func flush(within time: Int64, _ done: @escaping () -> Void) {
        // Nothing comes that was not asked for.
        if asking != nil { return done() }
        let topic = Topic.ack(nonce: hexadecimal(randomBytes(8))).text
        flushes[topic] = done
        try? socket.subscribe(topic)
        alarm(at: MonotonicClock.now() + time) { $0.finishFlush(topic) }
    }

    private func finishFlush(_ topic: String) {
        guard let done = flushes.removeValue(forKey: topic) else { return }
        try? socket.unsubscribe(topic)
        done()
    }

    /// Subscribes to another topic in place of one.
    func replace(_ old: String, by new: String) {
        try? socket.subscribe(new)
        try? socket.unsubscribe(old)
    }

    func close(_ error: ClientError) {
        finishOpening(.failure(error))
        fail(error)
        for topic in flushes.keys { finishFlush(topic) }
    }

    /// The bus has ended: so will its workers.
    func busEnded() {
        if !plan.isOfBus { close(plan.end) }
    }

    private func take(_ message: [Message]) {
        guard let topic = message.first?.bytes else { return }
        let now = MonotonicClock.now()
        if let asking {
            asking.taken(Array(topic))
            lastMessage = now
            if case .pause = accept(message) {
                isPaused = true
                loop.sourcesChanged()
            }
            return
        }
        if topic.elementsEqual(Topic.heartbeat.text.utf8) {
            lastHeartbeat = now
            if plan.heartbeatCounts { lastMessage = now }
            if !wantsHeartbeat { return }
        } else if opened != nil, topic.elementsEqual(Topic.welcome.text.utf8) {
            isWelcome = true
            return askForAcknowledgement()
        } else if topic.starts(with: "ack/".utf8) {
            if let nonce, topic.elementsEqual(Topic.ack(nonce: nonce).bytes) {
                if let error = Self.refusal(message) { return close(.refused(error)) }
                acknowledged()
            }
            if let probe, topic.elementsEqual(Topic.ack(nonce: probe).bytes) { judgeSilence(after: probe) }
            finishFlush(String(decoding: topic, as: UTF8.self))
            return
        } else if topic.elementsEqual(Topic.welcome.text.utf8) {
            // The connection is a new one, by which nothing can have come so far: silence begins here.
            lastMessage = now
            return
        } else {
            lastMessage = now
        }
        if plan.isOfBus, topic.elementsEqual(Topic.event(.bus).text.utf8) {
            if wantsEndNotice { _ = accept(message) }
            return close(plan.end)
        }
        guard case .pause = accept(message) else { return }
        isPaused = true
        loop.sourcesChanged()
    }

    // MARK: Opening

    // Why some subscriptions of this connection are not in force.
    private static func refusal(_ message: [Message]) -> BusError? {
        guard message.count > 1, let body = try? JSONValue(parsing: message[1].bytes) else { return nil }
        return body["error"].map { BusError(header: $0) }
    }

    private func askForAcknowledgement() {
        guard opened != nil else { return }
        withdrawNonce()
        let nonce = hexadecimal(randomBytes(8))
        self.nonce = nonce
        try? socket.subscribe(Topic.ack(nonce: nonce).text)
        // The answer can be lost like any message, when frames fill the queue.
        alarm(at: MonotonicClock.now() + 500_000_000) { $0.askForAcknowledgement() }
    }

    private func acknowledged() {
        withdrawNonce()
        lastMessage = MonotonicClock.now()
        finishOpening(.success(()))
        watchForSilence()
        if !plan.isOfBus { watchForDeath() }
    }

    private func withdrawNonce() {
        guard let nonce else { return }
        try? socket.unsubscribe(Topic.ack(nonce: nonce).text)
        self.nonce = nil
    }

    private func finishOpening(_ result: Result<Void, ClientError>) {
        opened?(result)
        opened = nil
    }

    private func openingRanOut() {
        guard opened != nil else { return }
        let why =
            isWelcome
            ? "The socket of \(plan.publisher) accepts this client but not its subscriptions "
                + "(\(plan.place.endpoint(plan.source)))."
            : "The socket of \(plan.publisher) (\(plan.place.endpoint(plan.source))) does not accept this client: "
                + "no process serves it, or it refuses this user."
                + (plan.place.isRemote ? " A firewall must allow three ports of a gateway." : "")
        finishOpening(.failure(.silent(why)))
    }

    // MARK: Silence

    /// How long a publisher that is alive may take to say so: steps, and nanoseconds of each.
    private static let probeSteps = 10
    private static let probeStep: Int64 = 300_000_000
    /// An alarm that is so late was slept through, nanoseconds.
    private static let oversleeping: Int64 = 300_000_000

    private func watchForSilence() {
        guard let silence = plan.silence else { return }
        let (due, overflow) = lastMessage.addingReportingOverflow(silence)
        if overflow { return }
        guard due <= MonotonicClock.now() else { return alarm(at: due) { $0.watchForSilence() } }
        // Nobody has read meanwhile.
        if isPaused { return alarm(at: MonotonicClock.now() + 1_000_000_000) { $0.watchForSilence() } }
        // This process may have been stopped, and what came meanwhile lies in the socket: the answer comes behind it.
        // Or its connection was cut for not reading, and has to come about again.
        let probe = hexadecimal(randomBytes(8))
        self.probe = probe
        try? socket.subscribe(Topic.ack(nonce: probe).text)
        awaitAnswer(to: probe, steps: Self.probeSteps)
    }

    // In steps, as this process may be stopped once more meanwhile: only time in which it was awake counts.
    private func awaitAnswer(to probe: String, steps: Int) {
        let due = MonotonicClock.now() + Self.probeStep
        alarm(at: due) { subscription in
            guard probe == subscription.probe else { return }
            guard MonotonicClock.now() - due < Self.oversleeping else {
                subscription.withdrawProbe()
                return subscription.watchForSilence()
            }
            guard steps > 1 else { return subscription.judgeSilence(after: probe) }
            subscription.awaitAnswer(to: probe, steps: steps - 1)
        }
    }

    private func withdrawProbe() {
        guard let probe else { return }
        self.probe = nil
        try? socket.unsubscribe(Topic.ack(nonce: probe).text)
    }

    private func judgeSilence(after probe: String) {
        guard probe == self.probe, let silence = plan.silence else { return }
        withdrawProbe()
        let (due, overflow) = lastMessage.addingReportingOverflow(silence)
        guard !overflow, due <= MonotonicClock.now() else { return watchForSilence() }
        guard let asking, !asking.isConnected, case .remote(let bus) = plan.place else {
            return fail(.silent(silenceReport(silence)))
        }
        loop.examine(bus) { [weak self] found in self?.failAsUnreachable(found) }
    }

    private func failAsUnreachable(_ found: GatewayObstacle?) {
        // Nothing may be wrong with the port of requests.
        guard let found else { return fail(.silent(mediaPortReport)) }
        fail(.unreachable(address: plan.place.name, found))
    }

    private var mediaPortReport: String {
        "The connection for the media of \(plan.publisher) was lost and can't be restored "
            + "(\(plan.place.endpoint(plan.source)))."
    }

    // A worker outlives its coordinator for a while; when neither gives a sign of life, nobody is there.
    private func watchForDeath() {
        let due = max(lastMessage, lastHeartbeat ?? 0) + Self.silenceWithoutHeartbeat.clampedNanoseconds
        guard due <= MonotonicClock.now() else { return alarm(at: due) { $0.watchForDeath() } }
        if !plan.place.isLive {
            let place = ClientError.Place(directory: plan.place.name, why: plan.place.absence)
            return fail(.noBus(lookedAt: [place]))
        }
        alarm(at: MonotonicClock.now() + Self.silenceWithoutHeartbeat.clampedNanoseconds) { $0.watchForDeath() }
    }

    private func silenceReport(_ silence: Int64) -> String {
        let time = ClientError.seconds(silence / 1_000_000)
        if plan.heartbeatCounts { return "No heartbeat of \(plan.publisher) for \(time) s." }
        // There are none at a gateway's port of media.
        if asking != nil { return "\(plan.publisher) has sent nothing for \(time) s, but the gateway is connected." }
        // Heartbeats come once a second: three missing are no accident.
        let isAlive = lastHeartbeat.map { MonotonicClock.now() - $0 < 3_000_000_000 } ?? false
        return isAlive
            ? "\(plan.publisher) has sent nothing for \(time) s, but its worker is alive."
            : "\(plan.publisher) has sent nothing for \(time) s, and its worker does not respond."
    }

    private func alarm(at time: Int64, _ action: @escaping (Subscription) -> Void) {
        loop.schedule(at: time) { [weak self] in self.map(action) }
    }
}
