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
            lasting: Rendition(.native),
            unauthorized: BusError(
                .unauthorized,
                "This user has no permission for this camera. authorization.status says why; 'camerabus ask video "
                    + "--reason TEXT' requests it.",
                ["status": "denied", "needed": "video"]))
        connect()
    }

    private func connect() {
        socket.onSubscribe = { [weak self] topic in self?.subscribed(topic) }
        socket.onFurtherSubscriber = { [weak self] topic in self?.joined(topic) }
        socket.onUnsubscribe = { [weak self] topic in self?.unsubscribed(topic) }
        errors.onFailure = { [weak self] error in self?.onFailure?("errors can't be sent: \(error)") }
        frames.onFailure = { [weak self] error in self?.onFailure?("frames can't be sent: \(error)") }
        frames.onRing = { [weak self] rendition, ring in
            if let ring { self?.rings.offer(rendition, ring) } else { self?.rings.withdraw(rendition) }
        }
        rings.admits = { [access] peer in access.admit(uid: peer.uid, gid: peer.gid, pid: peer.pid) }
        rings.onRequest = { [weak self] text throws(BusError) in
            guard let self else { throw BusError(.shuttingDown, "The worker is ending.") }
            let rendition = try ringWanted(text)
            frames.requestKeyframe()
            return rendition
        }
        rings.onLeave = { [weak self] rendition in
            self?.table.unwantRing(rendition)
            self?.changeWanted()
        }
    }

    /// Whether at least one rendition is wanted.
    var wantsFrames: Bool { !table.wanted.isEmpty }

    // MARK: Coming and going

    private func subscribed(_ topic: [UInt8]) {
        switch table.subscribe(topic) {
        case .none, .forgotten: break
        case .acknowledge(let topic): publish(topic, Announcement.ack)
        case .wanted: changeWanted()
        case .refused(let subscribed, let error): errors.publish(subscribed, error)
        }
    }

    // Others get the same already.
    private func joined(_ topic: [UInt8]) {
        recount()
        if let refused = table.refusal(of: topic) {
            errors.publish(refused.topic, refused.error)
        } else {
            frames.requestKeyframe()
            errors.publishAgain(topic)
        }
    }

    private func unsubscribed(_ topic: [UInt8]) {
        if table.unsubscribe(topic) == .wanted { changeWanted() }
    }

    private func ringWanted(_ text: String) throws(BusError) -> Rendition {
        let rendition = try table.wantRing(text)
        changeWanted()
        return rendition
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
        rings.retry()
    }

    private var failures: [ErrorPublisher.Refusal] { frames.failures(obstacle()) }

    private var ringFailures: [(rendition: Rendition, error: BusError)] { frames.ringFailures(obstacle()) }

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
            of: Set(table.wanted.map(\.rendition)), socket.subscriptions, readers: rings.readers, device: device)
        counted = counts
        return counts
    }

    /// The processes.
    var processes: [DeviceUsers.Subscriber] {
        DeviceUsers.subscribers(socket.subscriptions, readers: rings.readers, device: device)
    }

    /// {subscriptions, ignoredSubscriptions, connections, subscribersCut, readers, refused, ringReaders,
    /// ringReadersCut}
    var counters: [String: JSONValue] {
        [
            "subscriptions": JSONValue(table.count), "ignoredSubscriptions": JSONValue(table.ignored + socket.ignored),
            "connections": JSONValue(connections.count), "subscribersCut": JSONValue(socket.cut),
            "readers": JSONValue(DeviceUsers.readers(socket.subscriptions, readers: rings.readers, device: device)),
            "refused": JSONValue(access.refused), "ringReaders": JSONValue(rings.count),
            "ringReadersCut": JSONValue(rings.cutCount),
        ]
    }
}
