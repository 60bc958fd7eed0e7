import BusProtocol
import BusServer
import CaptureCore
import Delivery
import JSON
import LinuxIO
import ZeroMQ

/// Serves the subscribers of a camera, at its media socket and as rings: has the wanted renditions made, and publishes
/// why there are none.
final class SubscriberService {
    private let device: String
    private let socket: MediaSocket
    private let access: AccessControl
    private let connections: ConnectionGuard
    private let rings: RingSocket<Rendition>
    private let errors: ErrorPublisher
    private let frames: FrameRelay
    private var table: SubscriptionTable
    /// nil: to be counted anew.
    private var counted: [Rendition: Int]?

    /// Why there are no frames at all, if so.
    var obstacle: () -> BusError? = { nil }
    /// The format of the device's pictures, now or when it streams; nil: not known yet.
    var currentFormat: () -> FormatDescription? = { nil }
    private var format: FormatDescription?
    /// Called when ``wantsFrames`` may have changed.
    var onDemandChange: (() -> Void)?
    /// Called when ``counts`` may have changed.
    var onChange: (() -> Void)?
    /// Nothing can be sent any more.
    var onFailure: ((String) -> Void)?

    /// Opens the socket for rings.
    init(_ options: WorkerOptions, _ process: DeliveryProcess, _ frames: FrameRelay) throws(SystemError) {
        device = options.device
        socket = process.socket
        access = process.access
        connections = process.connections
        errors = process.errors
        self.frames = frames
        table = SubscriptionTable(device: options.device, maximumRenditions: options.renditions)
        rings = try RingSocket(
            process.loop, path: process.directory.ringSocket(options.device), mode: process.mode,
            group: process.group, perUser: options.connectionsPerUser, total: options.connections,
            budget: options.ringBudget, options.ringRemainders,
            unauthorized: BusError(
                .unauthorized,
                "This user has no permission for this camera. authorization.status says why; 'camerabus ask video "
                    + "--reason TEXT' requests it.",
                ["status": "denied", "needed": "video"]))
        connect()
    }

    private func connect() {
        table.standing = { [access] uid in access.standing(of: uid) }
        table.obstacle = { [weak self] rendition in
            self?.format.flatMap { RenditionOutput.obstacle(to: rendition, from: $0) }
        }
        socket.onBarrier = { [weak self] topic, error in self?.publish(topic, Announcement.ack(refused: error)) }
        socket.onRefused = { [weak self] topic, uid, error in self?.errors.refuse(topic, of: uid, error) }
        socket.onSubscribe = { [weak self] topic, client, isFirst in self?.subscribed(topic, client, isFirst) }
        socket.onUnsubscribe = { [weak self] topic, client in self?.unsubscribed(topic, client) }
        errors.onFailure = { [weak self] error in self?.onFailure?("errors can't be sent: \(error)") }
        frames.onFailure = { [weak self] error in self?.onFailure?("frames can't be sent: \(error)") }
        frames.isCounted = { [weak self] ring in self?.rings.counts(ring) ?? false }
        rings.onUse = { [weak self] in self?.onChange?() }
        frames.onRing = { [weak self] rendition, ring in
            if let ring { self?.rings.offer(rendition, ring) } else { self?.rings.withdraw(rendition) }
        }
        rings.admits = { [access] peer in access.admit(uid: peer.uid, gid: peer.gid, pid: peer.pid) }
        rings.form = { text throws(BusError) in try Rendition(parsing: text) }
        rings.onRequest = { [weak self] rendition, client in
            guard let self else { return }
            handle(table.wantRing(rendition, by: client))
            frames.requestKeyframe()
            // A refusal of rings is in no topic.
            rings.setFailures(ringFailures)
        }
        rings.onLeave = { [weak self] rendition, client in
            guard let self else { return }
            handle(table.unwantRing(rendition, by: client))
        }
    }

    /// Whether at least one rendition is wanted.
    var wantsFrames: Bool { !table.wanted.isEmpty }

    // MARK: Coming and going

    private func subscribed(_ topic: [UInt8], _ client: RenditionClient, _ isFirst: Bool) {
        let before = table.refusal(of: topic)
        handle(table.subscribe(topic, by: client))
        guard !isFirst else { return }
        // Others get the same already.
        recount()
        guard let refused = table.refusal(of: topic) else {
            frames.requestKeyframe()
            return errors.publishAgain(topic)
        }
        if before != nil { errors.publish(refused.topic, refused.error) }
    }

    private func unsubscribed(_ topic: [UInt8], _ client: RenditionClient) {
        let change = table.unsubscribe(topic, by: client)
        if change == .forgotten { errors.forget(topic) }
        handle(change)
    }

    private func handle(_ change: SubscriptionChange) {
        if change == .wanted { changeWanted() }
        let refusals = table.takeRefusals()
        guard !refusals.isEmpty else { return }
        for (topic, error) in refusals { errors.publish(topic, error) }
        onChange?()
    }

    /// The format of the device's pictures may have changed, and with it what can be made of them.
    func formatChanged() {
        let format = currentFormat()
        guard format != self.format else { return }
        self.format = format
        if table.recheck() { handle(.wanted) } else { handle(.none) }
    }

    private func changeWanted() {
        frames.setWanted(table.wanted)
        recount()
        onDemandChange?()
        publishFailures()
    }

    /// Replaces the list of admitted users. A user without permission loses its connections, but keeps the memory that
    /// it has. A user that was refused before and is admitted now connects at once: its socket tries again.
    ///
    /// - Returns: whether the stream has to begin anew for that.
    func admit(_ list: AccessList) -> Bool {
        let isOther = access.change(list)
        connections.shutDown(where: isOther)
        var needsRestart = false
        for (rendition, ring) in rings.expel(unless: { [access] in access.admits(uid: $0, gid: $1) })
        where !frames.remakeRing(rendition, ring) {
            needsRestart = true
        }
        return needsRestart
    }

    // MARK: Errors

    /// Sends a message to all who subscribe to the topic.
    func publish(_ topic: [UInt8], _ header: [UInt8]) {
        do {
            try socket.publish(topic: topic, header)
        } catch {
            onFailure?("nothing can be published: \(error)")
        }
    }

    /// Publishes the reasons why there are no frames, if they have changed.
    func publishFailures() {
        errors.setFailures(failures)
        rings.setFailures(ringFailures)
    }

    /// Once a second: publishes all errors again, and tries again what failed.
    func remind() {
        errors.publishAll(table.refused + failures)
        frames.retry()
        rings.setFailures(ringFailures)
        rings.sweep()
    }

    private var failures: [ErrorPublisher.Refusal] { frames.failures(obstacle()) }

    private var ringFailures: [(rendition: Rendition, error: BusError)] {
        table.refusedRings + frames.ringFailures(obstacle())
    }

    // MARK: Counts

    /// If one of several subscribers of a topic has left, that is seen a second later.
    func recount() {
        counted = nil
        onChange?()
    }

    /// How many there are of each rendition. Read with every status, that is with every order.
    var counts: [Rendition: Int] {
        if let counted { return counted }
        let counts = DeviceUsers.readers(
            of: Set(table.demanded), socket.subscriptions, readers: rings.readers, device: device)
        counted = counts
        return counts
    }

    /// Bytes of rings that count for each user.
    var ringBytes: [UInt32: Int] { rings.used }

    /// Renditions that are refused, and why.
    var refused: [(rendition: Rendition, error: BusError)] { table.refusedRenditions }

    /// The processes.
    var processes: [DeviceUsers.Subscriber] {
        DeviceUsers.subscribers(socket.subscriptions, readers: rings.readers, device: device)
    }

    /// {subscriptions, ignoredSubscriptions, connections, connectionsCutOff, subscribersCut, readers, refused,
    /// ringReaders, ringReadersCut}
    var counters: [String: JSONValue] {
        [
            "subscriptions": JSONValue(table.count), "ignoredSubscriptions": JSONValue(table.ignored + socket.ignored),
            "connections": JSONValue(connections.count), "connectionsCutOff": JSONValue(Context.connectionsCutOff),
            "subscribersCut": JSONValue(socket.cut),
            "readers": JSONValue(DeviceUsers.readers(socket.subscriptions, readers: rings.readers, device: device)),
            "refused": JSONValue(access.refused), "ringReaders": JSONValue(rings.count),
            "ringReadersCut": JSONValue(rings.cutCount),
        ]
    }
}
