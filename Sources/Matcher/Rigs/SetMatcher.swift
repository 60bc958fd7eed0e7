import BusProtocol
import BusServer
import CaptureCore
public import Delivery
import Glibc
import JSON
public import LinuxIO
public import Logging
import ZeroMQ

/// How a matcher is started.
public struct SetMatcherOptions: Sendable {
    /// The rig's name.
    public var set: String
    public var runtimeDirectory: String
    /// The file with the access list (``AccessList``); it is read at the start and whenever it changes. nil, or a file
    /// that cannot be read: only root and the matcher's own user may connect.
    public var accessListPath: String?
    /// The group that may connect to the rig's socket; nil: only the matcher's own user.
    public var group: String?
    /// Distinct renditions of which sets are made at the same time.
    public var renditions = 8
    /// Connections to the socket, of one user and in all.
    public var connectionsPerUser = 128
    public var connections = 1024
    /// How long the matcher runs without a coordinator.
    public var graceMilliseconds: Int64 = 30_000
    /// How long the matcher runs while nobody is connected: a client that comes back does not wait for a new process.
    public var idleMilliseconds: Int64 = 10_000

    public init(set: String, runtimeDirectory: String) {
        self.set = set
        self.runtimeDirectory = runtimeDirectory
    }
}

/// Matches the frames of a rig's devices and publishes them as sets on the rig's own socket.
///
/// It receives the frames as any subscriber does. It opens no device, and subscribes to the devices only while sets are
/// subscribed to. It ends when nobody has been connected for a while.
public final class SetMatcher {
    private let options: SetMatcherOptions
    private let logger: Logger
    private let process: DeliveryProcess
    private let loop: Loop
    private let accessWatch: FileWatch?
    private let socket: MediaSocket
    private let errors: ErrorPublisher
    private let rigReader: RigReader
    private let reports: Socket
    private let memory = PayloadMemory(budget: PayloadMemory.defaultBudget)
    private var table: SubscriptionTable
    private var streams: [Rendition: SetStream] = [:]
    private var ending: ProcessEnding?
    private var idleTimer: Loop.Token?
    private let heartbeatTopic = Topic.heartbeat.bytes

    /// Takes the rig's lock file and opens its socket.
    ///
    /// - Throws: `deviceTaken` when another matcher has the rig.
    public init(_ options: SetMatcherOptions, logger: Logger) throws(StartError) {
        self.options = options
        var logger = logger
        logger[metadataKey: "rig"] = "\(options.set)"
        self.logger = logger
        do throws(SystemError) {
            // Watched before it is read: no change falls between the two.
            accessWatch = try options.accessListPath.map { path throws(SystemError) in try FileWatch(path) }
        } catch {
            throw .failed("\(error)")
        }
        var parts = DeliveryProcess.Options(name: options.set, runtimeDirectory: options.runtimeDirectory)
        parts.nameTitle = "rig's name"
        parts.group = options.group
        parts.isHandedSocket = true
        parts.connectionsPerUser = options.connectionsPerUser
        parts.connections = options.connections
        parts.access = Self.readAccess(options.accessListPath)
        process = try DeliveryProcess(parts, lockPath: { $0.matcherLock(options.set) }, logger: logger)
        loop = process.loop
        socket = process.socket
        errors = process.errors
        table = SubscriptionTable(device: options.set, kinds: [.set], maximumRenditions: options.renditions)
        do {
            reports = try Self.openReports(process.context, process.directory)
            rigReader = try RigReader(
                process.context, process.loop, process.directory, rig: options.set,
                graceMilliseconds: options.graceMilliseconds, logger: logger)
        } catch {
            throw .failed("\(error)")
        }
        connect()
    }

    private func connect() {
        table.standing = { [access = process.access] uid in access.standing(of: uid) }
        socket.onBarrier = { [weak self] topic, error in self?.publish(topic, Announcement.ack(refused: error)) }
        socket.onRefused = { [weak self] topic, uid, error in self?.errors.refuse(topic, of: uid, error) }
        socket.onSubscribe = { [weak self] topic, client, isFirst in self?.subscribed(topic, client, isFirst) }
        socket.onUnsubscribe = { [weak self] topic, client in
            guard let self else { return }
            let change = table.unsubscribe(topic, by: client)
            if change == .forgotten { errors.forget(topic) }
            handle(change)
        }
        if let accessWatch {
            loop.watch(.descriptor(accessWatch.rawValue)) { [weak self] in
                if accessWatch.hasChanged() { self?.changeAccess() }
            }
        }
        // The coordinator asks the administrators about refused users, as for a device. The first of them may be there
        // before the connection to the coordinator.
        process.access.onRefused = { [weak self] in self?.report(.refused(uid: $0, gid: $1, pid: $2)) ?? false }
        errors.onFailure = { [weak self] in self?.fail("errors can't be sent: \($0)") }
        process.connections.onEmpty = { [weak self] in self?.awaitConnection() }
        awaitConnection()
        rigReader.onChange = { [weak self] _ in self?.update() }
        rigReader.onGone = { [weak self] in self?.end(.inOrder) }
        rigReader.onAbandoned = { [weak self] in
            self?.logger.warning("no coordinator has published this rig for too long")
            self?.end(.inOrder)
        }
    }

    /// The socket for reports to the coordinator. Without a coordinator no report waits: the next coordinator writes
    /// the access list again, and later refusals are reported to it.
    private static func openReports(_ context: Context, _ directory: RuntimeDirectory) throws(ZeroMQError) -> Socket {
        let socket = try Socket(context, .dealer)
        try socket.set(.immediate, 1)
        try socket.set(.sendHighWaterMark, 100)
        try socket.set(.receiveHighWaterMark, 1)
        try socket.set(.linger, 0)
        try socket.set(.reconnectInterval, 100)
        try socket.setMaximumMessageBytes(BusLimits.maxMessageBytes)
        try socket.connect(RuntimeDirectory.endpoint(directory.workersSocket))
        return socket
    }

    @discardableResult
    private func report(_ report: WorkerReport) -> Bool {
        (try? reports.send(frames: [report.json.serialized])) ?? false
    }

    /// Runs until a signal ends the process, the rig no longer exists, or a failure.
    public func run(signals: SignalDescriptor? = nil) -> ProcessEnding {
        if let signals {
            loop.watch(.descriptor(signals.rawValue)) { [weak self] in
                while let signal = signals.next() {
                    switch signal {
                    // The coordinator handles a hang-up of the terminal.
                    case SIGHUP: break
                    default: self?.end(.inOrder)
                    }
                }
            }
        }
        loop.eachSecond { [weak self] in
            self?.tick()
            return self != nil
        }
        do {
            try loop.run()
        } catch {
            logger.critical("the loop has failed", metadata: ["error": "\(error)"])
            ending = .failed
        }
        for stream in streams.values { stream.end() }
        return ending ?? .failed
    }

    // MARK: Access

    private static func readAccess(_ path: String?) -> AccessList {
        let bytes = path.flatMap { try? File.readOwn($0, limit: maximumAccessBytes) }
        let json = bytes.flatMap { try? JSONValue(parsing: $0) }
        return json.flatMap(AccessList.init(json:)) ?? .closed(owner: CurrentProcess.uid)
    }

    /// Bytes of the file with the access list.
    private static let maximumAccessBytes = 4 << 20

    // Only the file counts, whoever writes it: a restarted coordinator may not know this rig. Users that lost
    // permission lose their connections, as at a worker.
    private func changeAccess() {
        process.connections.shutDown(where: process.access.change(Self.readAccess(options.accessListPath)))
    }

    // MARK: Subscribers

    private func subscribed(_ topic: [UInt8], _ client: RenditionClient, _ isFirst: Bool) {
        let before = table.refusal(of: topic)
        handle(table.subscribe(topic, by: client))
        guard !isFirst else { return }
        guard let refused = table.refusal(of: topic) else { return errors.publishAgain(topic) }
        if before != nil { errors.publish(refused.topic, refused.error) }
    }

    private func handle(_ change: SubscriptionChange) {
        if change == .wanted { update() }
        for (topic, error) in table.takeRefusals() { errors.publish(topic, error) }
    }

    /// Makes sets of the wanted renditions, with the present devices of the rig.
    private func update() {
        guard let rig = rigReader.rig else { return }
        for (rendition, stream) in streams
        where !stream.isOf(rig) || !table.wanted.contains(where: { $0.rendition == rendition }) {
            stream.end()
            streams[rendition] = nil
        }
        for wanted in table.wanted {
            do {
                let stream = try streams[wanted.rendition] ?? begin(wanted.rendition, rig)
                stream.setTolerance(rig.tolerance)
                stream.setTopics(wanted.topics)
            } catch {
                fail("a camera can't be subscribed to: \(error)")
            }
        }
        publishFailures()
    }

    private func begin(_ rendition: Rendition, _ rig: RigReader.Rig) throws(ZeroMQError) -> SetStream {
        let stream = try SetStream(
            options.set, rig, rendition, process.context, loop, process.directory, socket, memory)
        stream.onFailures = { [weak self] in self?.publishFailures() }
        stream.onFailure = { [weak self] in self?.fail("sets can't be sent: \($0)") }
        streams[rendition] = stream
        return stream
    }

    private var failures: [ErrorPublisher.Refusal] { streams.values.flatMap(\.failures) }

    private func publishFailures() { errors.setFailures(failures) }

    private func publish(_ topic: [UInt8], _ header: [UInt8]) {
        do {
            try socket.publish(topic: topic, header)
        } catch {
            fail("nothing can be published: \(error)")
        }
    }

    // MARK: Once a second

    private func tick() {
        let last = streams.values.compactMap(\.lastSet).max()
        publish(
            heartbeatTopic,
            JSONValue.object([
                "device": .string(options.set), "stream": .null, "streaming": .bool(!streams.isEmpty),
                "lastFrame": last.map(JSONValue.integer) ?? .null, "monotonic": .integer(MonotonicClock.now()),
                "sets": JSONValue(streams.values.reduce(0) { $0 + $1.sets }),
                "lost": JSONValue(streams.values.reduce(0) { $0 + $1.lost }), "heldBytes": JSONValue(memory.held),
            ]).serialized)
        report(.alive(["connectionsCutOff": JSONValue(Context.connectionsCutOff)]))
        errors.publishAll(table.refused + failures)
        socket.relieve(memory, at: MonotonicClock.now())
    }

    // MARK: The end

    private func awaitConnection() {
        loop.cancel(idleTimer)
        idleTimer = loop.schedule(afterMilliseconds: options.idleMilliseconds) { [weak self] in
            guard let self else { return }
            process.connections.update()
            // One that comes from here on finds its connection ended, and connects again.
            if process.connections.isEmpty { end(.inOrder) }
        }
    }

    private func fail(_ why: String) {
        logger.critical("\(why)")
        end(.failed)
    }

    private func end(_ ending: ProcessEnding) {
        self.ending = self.ending ?? ending
        loop.stop()
    }
}
