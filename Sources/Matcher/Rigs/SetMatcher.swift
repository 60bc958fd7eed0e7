import BusProtocol
import BusServer
import CaptureCore
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
    /// Holds who may come in, as ``DoorList`` has it; read at the start and whenever it changes. nil, or it can't be read: nobody but
    /// root and the matcher's own user.
    public var doorsPath: String?
    /// The group that may connect to its socket; nil: only the matcher's own user.
    public var group: String?
    /// Distinct renditions of which sets are made at the same time.
    public var renditions = 8
    /// Connections to the socket, of one user and in all.
    public var connectionsPerUser = 128
    public var connections = 1024
    /// How long it goes on without a coordinator.
    public var graceMilliseconds: Int64 = 30_000

    public init(set: String, runtimeDirectory: String) {
        self.set = set
        self.runtimeDirectory = runtimeDirectory
    }
}

/// Matches the frames of a rig's devices, which it gets as any subscriber does, and publishes them as sets on the rig's own
/// socket. It opens no device, and subscribes to one only while somebody wants sets.
public final class SetMatcher {
    private let options: SetMatcherOptions
    private let logger: Logger
    private let directory: RuntimeDirectory
    private let lock: LockFile
    private let loop: Loop
    private let context: Context
    private let doors: Doors
    private let doorsWatch: FileWatch?
    private let doorkeeper: Doorkeeper
    private let connections: ConnectionGuard
    private let socket: MediaSocket
    private let errors: ErrorTeller
    private let watch: RigWatch
    private let reports: Socket
    private let memory = PayloadMemory(budget: PayloadMemory.defaultBudget)
    private var table: SubscriptionTable
    private var runs: [Rendition: SetRun] = [:]
    private var ending: WorkerEnding?
    private let heartbeatTopic = Topic.heartbeat.bytes

    /// Takes the rig's lock file and opens its socket.
    ///
    /// - Throws: `deviceTaken` when another matcher has the rig.
    public init(_ options: SetMatcherOptions, logger: Logger) throws(WorkerError) {
        self.options = options
        var logger = logger
        logger[metadataKey: "rig"] = "\(options.set)"
        self.logger = logger
        guard DeviceID.isValid(options.set) else {
            throw .usage("'\(options.set)' is no rig's name: 1 to 32 of a–z, 0–9 and -")
        }
        var group: UInt32?
        do {
            directory = try RuntimeDirectory(options.runtimeDirectory)
        } catch {
            throw .usage("\(error)")
        }
        if let name = options.group {
            group = CurrentProcess.groupID(named: name)
            if group == nil { throw .usage("there is no group '\(name)'") }
        }
        let lockPath = directory.matcherLock(options.set)
        do throws(SystemError) {
            lock = try LockFile(lockPath, isSigned: true)
        } catch {
            throw error.isWouldBlock ? .deviceTaken(lockPath) : .failed("\(error)")
        }
        CurrentProcess.raiseDescriptorLimit()
        Context.reserveDescriptors(64)
        table = SubscriptionTable(device: options.set, kinds: [.set], maximumRenditions: options.renditions)
        do {
            loop = try Loop()
            context = try Context()
            // Watched before it is read: no change falls between the two.
            doorsWatch = try options.doorsPath.map { path throws(SystemError) in try FileWatch(path) }
            doors = Doors(Self.readDoors(options.doorsPath))
            doorkeeper = try Doorkeeper(context, loop) { [doors] _, peer in
                doors.admit(uid: peer.uid, gid: peer.gid, pid: peer.pid) ? .admit : .notNow
            }
            connections = ConnectionGuard(
                loop, perUser: options.connectionsPerUser, total: options.connections, logger: logger)
            socket = try MediaSocket(
                context, loop, connections, path: directory.mediaSocket(options.set),
                mode: group == nil ? 0o600 : 0o660, group: group)
            errors = ErrorTeller(device: options.set, loop, socket)
            reports = try Self.openReports(context, directory)
            watch = try RigWatch(
                context, loop, directory, rig: options.set, graceMilliseconds: options.graceMilliseconds,
                logger: logger)
        } catch {
            throw .failed("\(error)")
        }
        connect()
    }

    private func connect() {
        socket.onSubscribe = { [weak self] in self?.subscribed($0) }
        socket.onFurtherSubscriber = { [weak self] topic in
            guard let self else { return }
            if let refused = table.refusal(of: topic) {
                errors.tell(refused.topic, refused.error)
            } else {
                errors.tellAgain(topic)
            }
        }
        socket.onUnsubscribe = { [weak self] topic in
            guard let self else { return }
            if table.unsubscribe(topic) == .wanted { update() }
        }
        if let doorsWatch {
            loop.watch(.descriptor(doorsWatch.rawValue)) { [weak self] in
                if doorsWatch.hasChanged() { self?.changeDoors() }
            }
        }
        // The coordinator asks for who comes in vain, as it does at a device's door.
        doors.onRefused = { [reports] uid, gid, pid in
            _ = try? reports.send(frames: [WorkerReport.refused(uid: uid, gid: gid, pid: pid).json.serialized])
        }
        errors.onFailure = { [weak self] in self?.fail("errors can't be sent: \($0)") }
        watch.onChange = { [weak self] _ in self?.update() }
        watch.onGone = { [weak self] in self?.end(.inOrder) }
        watch.onAbandoned = { [weak self] in
            self?.logger.warning("nobody has told of this rig for too long")
            self?.end(.inOrder)
        }
    }

    /// Where what is to be reported goes. Without a coordinator nothing waits: the next one writes the door list again, and whoever comes
    /// in vain from then on is told of.
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

    /// Runs until it is told to end, or there is no such rig any more, or it can't go on.
    public func run(signals: SignalDescriptor? = nil) -> WorkerEnding {
        if let signals {
            loop.watch(.descriptor(signals.rawValue)) { [weak self] in
                while let signal = signals.next() {
                    switch signal {
                    // A hang-up of the terminal is the coordinator's business.
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
        for run in runs.values { run.end() }
        return ending ?? .failed
    }

    // MARK: Doors

    private static func readDoors(_ path: String?) -> DoorList {
        let bytes = path.flatMap { try? File.readOwn($0, limit: maximumDoors) }
        let json = bytes.flatMap { try? JSONValue(parsing: $0) }
        return json.flatMap(DoorList.init(json:)) ?? .closed(owner: CurrentProcess.uid)
    }

    /// Bytes of the file that says who may come in.
    private static let maximumDoors = 4 << 20

    // By the file alone, whoever writes it: the coordinator may have been started again, and know nothing of this rig any more. As a
    // worker does it: who may not be here any more loses its connections.
    private func changeDoors() {
        connections.shutDown(where: doors.change(Self.readDoors(options.doorsPath)))
    }

    // MARK: Subscribers

    private func subscribed(_ topic: [UInt8]) {
        switch table.subscribe(topic) {
        case .none, .forgotten: break
        case .acknowledge(let topic): publish(topic, Announcement.ack)
        case .wanted: update()
        case .refused(let subscribed, let error): errors.tell(subscribed, error)
        }
    }

    /// Has sets made of what is wanted, of the devices that the rig has now.
    private func update() {
        guard let rig = watch.rig else { return }
        for (rendition, run) in runs
        where !run.isOf(rig) || !table.wanted.contains(where: { $0.rendition == rendition }) {
            run.end()
            runs[rendition] = nil
        }
        for wanted in table.wanted {
            do {
                let run = try runs[wanted.rendition] ?? begin(wanted.rendition, rig)
                run.setTolerance(rig.tolerance)
                run.setTopics(wanted.topics)
            } catch {
                fail("a camera can't be subscribed to: \(error)")
            }
        }
        tellFailures()
    }

    private func begin(_ rendition: Rendition, _ rig: RigWatch.Rig) throws(ZeroMQError) -> SetRun {
        let run = try SetRun(options.set, rig, rendition, context, loop, directory, socket, memory)
        run.onFailures = { [weak self] in self?.tellFailures() }
        run.onFailure = { [weak self] in self?.fail("sets can't be sent: \($0)") }
        runs[rendition] = run
        return run
    }

    private var failures: [ErrorTeller.Refusal] { runs.values.flatMap(\.failures) }

    private func tellFailures() { errors.failures(failures) }

    private func publish(_ topic: [UInt8], _ header: [UInt8]) {
        do {
            try socket.publish(topic: topic, header)
        } catch {
            fail("nothing can be published: \(error)")
        }
    }

    // MARK: Once a second

    private func tick() {
        let last = runs.values.compactMap(\.lastSet).max()
        publish(
            heartbeatTopic,
            JSONValue.object([
                "device": .string(options.set), "stream": .null, "streaming": .bool(!runs.isEmpty),
                "lastFrame": last.map(JSONValue.integer) ?? .null, "monotonic": .integer(MonotonicClock.now()),
                "sets": JSONValue(runs.values.reduce(0) { $0 + $1.sets }),
                "lost": JSONValue(runs.values.reduce(0) { $0 + $1.lost }), "heldBytes": JSONValue(memory.held),
            ]).serialized)
        errors.tell(table.refused + failures)
        socket.relieve(memory, at: MonotonicClock.now())
    }

    // MARK: The end

    private func fail(_ why: String) {
        logger.critical("\(why)")
        end(.failed)
    }

    private func end(_ ending: WorkerEnding) {
        self.ending = self.ending ?? ending
        loop.stop()
    }
}
