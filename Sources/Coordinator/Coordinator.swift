import BusProtocol
import BusServer
import CaptureCore
import Glibc
import JSON
import LinuxIO
public import Logging
import ZeroMQ

/// The coordinator: identity, locks, state and supervision. It touches no device and no pixel.
public final class Coordinator {
    /// What the command line says; it goes before the configuration file.
    public struct Options: Sendable {
        /// Read again on SIGHUP; nil: no file.
        public var configurationPath: String?
        public var runtimeDirectory: String?
        public var virtualCameras: Int?
        public var usesHardware = true
        /// The worker's program; nil: `camerabus-worker` beside this one.
        public var workerProgram: String?

        public init() {}
    }

    /// Why it can't start. The text says what to do.
    public struct StartError: Error, CustomStringConvertible, Sendable {
        public var description: String
    }

    static let version = "0.1.0"

    let options: Options
    var configuration: Configuration
    let logger: Logger
    let directory: RuntimeDirectory
    let group: UInt32?
    let loop: Loop
    let epoch = hexadecimal(randomBytes(8))
    let started = MonotonicClock.now()
    let connections: ConnectionGuard
    let events: EventSocket
    let locks: LockDesk
    let fleet: DeviceFleet
    var ledger = RequestLedger()
    /// How to give up what waits, by the user and the key of the request.
    var cancellations: [RequestKey: () -> Void] = [:]
    /// Those who wait for one request's answer.
    var joined: [RequestKey: [Responder]] = [:]
    /// What clients called themselves in `bus.hello`, by connection.
    var clientNames = BoundedDictionary<[UInt8], String>(limit: 1024)
    var isStopping = false

    private(set) lazy var desk = ConfigurationDesk { [weak self] in self?.fleet.workers[$0] }
    private(set) var commands: CommandSocket?
    private let context: Context
    private let doorkeeper: Doorkeeper
    private let signals: SignalDescriptor
    private let lock: LockFile
    private let service: ServiceManager
    private let discovery: Discovery
    private var hasToldReady = false
    /// The cameras that were found last.
    private var knownHardware: [DeviceIdentity] = []
    /// When processes that have let go of their last connection lose what they hold.
    private var graces: [ConnectionGuard.Peer: Loop.Token] = [:]

    /// Takes the runtime directory and opens the sockets.
    public init(_ options: Options, logger: Logger) throws(StartError) {
        self.options = options
        var logger = logger
        let environment = CurrentProcess.environment()
        do {
            configuration = try Self.readConfiguration(options.configurationPath)
            if let level = Logger.Level(rawValue: configuration.logLevel) { logger.logLevel = level }
            self.logger = logger
            directory = try RuntimeDirectory.server(
                flag: options.runtimeDirectory ?? configuration.runtimeDirectory, environment: environment,
                uid: CurrentProcess.uid)
            // The group of the system service: ours to give away as root, or when we are in it ourselves.
            group = CurrentProcess.groupID(named: configuration.group).flatMap { group in
                CurrentProcess.uid == 0 || CurrentProcess.isMember(of: group) ? group : nil
            }
            try Self.makeDirectories(directory, group: group)
            lock = try Self.takeLock(directory)
            signals = try SignalDescriptor([SIGTERM, SIGINT, SIGHUP])
            loop = try Loop()
            CurrentProcess.raiseDescriptorLimit()
            Context.reserveDescriptors(256)
            try PeerAddressTest.run(at: "\(directory.internalDirectory)/test.sock")
            context = try Context()
            // Everybody whom the sockets' modes let through may connect; what is allowed is decided per request.
            doorkeeper = try Doorkeeper(context, loop) { _, _ in .admit }
            service = ServiceManager(environment: CurrentProcess.environment)
            connections = ConnectionGuard(
                loop, perUser: configuration.connectionsPerUser, total: configuration.connections, logger: logger)
            let mode: UInt32 = group == nil ? 0o600 : 0o660
            let workers = try ServerSocket(
                context,
                .init(
                    kind: .router, path: directory.workersSocket, mode: 0o600, sendHighWaterMark: 1000,
                    receiveHighWaterMark: 1000, maximumMessageBytes: BusLimits.maxMessageBytes,
                    authenticationDomain: "workers"))
            let eventServer = try ServerSocket(
                context,
                .init(
                    kind: .extendedPublish, path: directory.eventsSocket, mode: mode, group: group,
                    sendHighWaterMark: 1000, receiveHighWaterMark: 1000, maximumMessageBytes: 1024,
                    authenticationDomain: "events", welcome: Array("welcome/".utf8)))
            // Every unsubscription is told, so that those of a connection can be counted.
            try eventServer.socket.set(.xpubVerboser, 1)
            connections.add(eventServer)
            events = EventSocket(loop, eventServer, epoch: epoch)
            locks = try LockDesk(
                loop, events: events, file: StateFile(path: directory.stateFile), logger: logger)
            let program = try Self.workerProgram(options)
            fleet = DeviceFleet(
                loop, workers,
                launch: Self.launch(program, directory, hasGroup: group != nil, configuration),
                logger: logger)
            discovery = Discovery(loop, program: program, logger: logger)
        } catch let error as StartError {
            throw error
        } catch {
            throw StartError(description: "\(error)")
        }
        connect()
    }

    private func connect() {
        fleet.onChange = { [weak self] device, worker in self?.deviceChanged(device, worker) }
        fleet.onEvent = { [weak self] device, event, members in
            guard let self, !isStopping else { return }
            events.event("event/device/\(device)", event, members)
        }
        fleet.onHello = { [weak self] worker in
            guard let self, let lock = locks.table.lock(on: worker.device.id) else { return }
            worker.order(.lock, fence: lock.fence)
        }
        locks.onChange = { [weak self] device, lock, fence in
            guard let self, let worker = fleet.workers[device] else { return }
            worker.order(lock == nil ? .unlock : .lock, fence: fence)
            if !isStopping { publish(worker) }
        }
        connections.onClosed = { [weak self] in self?.events.closed($0) }
        connections.onLastConnectionClosed = { [weak self] peer in self?.lastConnectionClosed(peer) }
        loop.watch(.descriptor(signals.rawValue)) { [weak self] in self?.readSignals() }
        publishBus()
    }

    /// Serves until SIGTERM, SIGINT or `bus.shutdown`; then everything has ended and been removed.
    public func run() throws(StartError) {
        do {
            // Last of the sockets: whoever can connect here finds everything else in place.
            let server = try ServerSocket(
                context,
                .init(
                    kind: .router, path: directory.commandSocket, mode: group == nil ? 0o600 : 0o660, group: group,
                    sendHighWaterMark: 16, receiveHighWaterMark: 16, maximumMessageBytes: BusLimits.maxMessageBytes,
                    authenticationDomain: "command"))
            connections.add(server)
            commands = CommandSocket(
                loop, server, logger: logger, before: { [weak self] in self?.connections.update() },
                handle: { [weak self] in self?.handle($0, $1, $2) })
            discoverDevices()
            feedWatchdog()
            try loop.run()
        } catch {
            throw StartError(description: "\(error)")
        }
        logger.info("stopped")
    }

    // MARK: Start

    private static func launch(
        _ program: String, _ directory: RuntimeDirectory, hasGroup: Bool, _ configuration: Configuration
    ) -> Worker.Launch {
        Worker.Launch(
            program: program, runtimeDirectory: directory, group: hasGroup ? configuration.group : nil,
            logLevel: configuration.logLevel, renditions: configuration.renditions,
            idleCloseMilliseconds: configuration.idleCloseMilliseconds,
            connectionsPerUser: configuration.connectionsPerUser, connections: configuration.connections)
    }

    private static func readConfiguration(_ path: String?) throws(StartError) -> Configuration {
        guard let path else { return Configuration() }
        do {
            let bytes = try File.read(path, limit: 1 << 20)
            guard let text = String(validating: bytes, as: UTF8.self) else {
                throw StartError(description: "\(path) is no UTF-8")
            }
            return try Configuration(toml: text)
        } catch let error as Configuration.ParseError {
            throw StartError(description: "\(path): \(error.description)")
        } catch let error as StartError {
            throw error
        } catch {
            throw StartError(description: "\(error)")
        }
    }

    private static func makeDirectories(_ directory: RuntimeDirectory, group: UInt32?) throws(SystemError) {
        let mode: UInt32 = group == nil ? 0o700 : 0o750
        try PrivateDirectory.make(directory.path, mode: mode, group: group)
        try PrivateDirectory.make(directory.media, mode: mode, group: group)
        try PrivateDirectory.make(directory.internalDirectory, mode: 0o700)
    }

    private static func takeLock(_ directory: RuntimeDirectory) throws(StartError) -> LockFile {
        do {
            return try LockFile(directory.coordinatorLock)
        } catch  where error.isWouldBlock {
            throw StartError(
                description:
                    "another coordinator serves \(directory.path); stop it, or choose another place with --runtime-dir")
        } catch {
            throw StartError(description: "\(error)")
        }
    }

    private static func workerProgram(_ options: Options) throws(StartError) -> String {
        if let program = options.workerProgram { return program }
        guard let own = CurrentProcess.executablePath, let slash = own.lastIndex(of: "/") else {
            throw StartError(description: "camerabus-worker can't be found; name it with --worker")
        }
        return "\(own[..<slash])/camerabus-worker"
    }

    // MARK: Devices

    /// Starts a worker for each device that is wanted and there.
    private func discoverDevices() {
        guard options.usesHardware, configuration.usesHardware else { return setDevices(hardware: []) }
        discovery.run { [weak self] found in
            guard let self else { return }
            // What can't be searched for is not therefore gone.
            if let found { knownHardware = found }
            setDevices(hardware: knownHardware)
        }
    }

    private func setDevices(hardware: [DeviceIdentity]) {
        guard !isStopping else { return }
        let found = hardware.compactMap { ManagedDevice.hardware($0, aliases: configuration.aliases) }
        let isUnconfigured = options.configurationPath == nil
        let count = options.virtualCameras ?? configuration.virtualCameras ?? (found.isEmpty && isUnconfigured ? 2 : 0)
        let virtual = (0..<count).map { ManagedDevice.virtual($0, aliases: configuration.aliases) }
        fleet.setDevices(found + virtual)
        publishBus()
        tellReadyWhenWorkersAre()
    }

    private func tellReadyWhenWorkersAre() {
        var waiting = fleet.workers.count
        guard waiting > 0 else { return tellReady() }
        for worker in fleet.workers.values {
            worker.whenReady(withinMilliseconds: 5000) { [weak self] in
                waiting -= 1
                if waiting == 0 { self?.tellReady() }
            }
        }
    }

    private func tellReady() {
        guard !hasToldReady, !isStopping else { return }
        hasToldReady = true
        logger.info(
            "ready",
            metadata: ["runtime_dir": "\(directory.path)", "devices": "\(fleet.deviceIDs.joined(separator: " "))"])
        service.notify("READY=1\nSTATUS=\(fleet.workers.count) devices")
    }

    private func feedWatchdog() {
        guard let interval = service.watchdogInterval else { return }
        service.notify("WATCHDOG=1")
        loop.schedule(at: MonotonicClock.now() + interval) { [weak self] in self?.feedWatchdog() }
    }

    private func deviceChanged(_ device: String, _ worker: Worker?) {
        guard !isStopping else { return }
        if let worker {
            publish(worker)
        } else {
            locks.deviceEnded(device)
            events.set("state/device/\(device)", nil)
        }
        publishBus()
    }

    private func publish(_ worker: Worker) {
        events.set("state/device/\(worker.device.id)", deviceValue(worker))
    }

    private func publishBus() {
        events.set(
            "state/bus",
            [
                "version": .string(Self.version), "epoch": .string(epoch), "started": JSONValue(started),
                "devices": JSONValue(fleet.deviceIDs),
            ])
    }

    // MARK: Clients

    // A process that has let go of its last connection can't be told of anything any more; it gets a moment to come back.
    private func lastConnectionClosed(_ peer: ConnectionGuard.Peer) {
        loop.cancel(graces[peer])
        graces[peer] = loop.schedule(afterMilliseconds: 5000) { [weak self] in
            self?.graces[peer] = nil
            guard let self, let startTime = peer.startTime, connections.peer(pid: peer.pid)?.startTime != startTime
            else {
                return
            }
            locks.holderEnded(pid: peer.pid, startTime: startTime, cause: .connectionLost)
        }
    }

    // MARK: Signals

    private func readSignals() {
        while let signal = signals.next() {
            if signal == SIGHUP { reload() } else { stop() }
        }
    }

    /// Reads the configuration again. A file that can't be read or is wrong changes nothing.
    private func reload() {
        service.notify("RELOADING=1")
        defer { service.notify("READY=1") }
        do {
            configuration = try Self.readConfiguration(options.configurationPath)
            fleet.launch = Self.launch(fleet.launch.program, directory, hasGroup: group != nil, configuration)
            connections.setLimits(perUser: configuration.connectionsPerUser, total: configuration.connections)
            logger.info("configuration read again")
            discoverDevices()
        } catch {
            logger.error("the configuration is left as it was", metadata: ["error": "\(error)"])
        }
    }

    /// Ends everything in order: waits and locks are told, workers end, sockets go.
    func stop() {
        guard !isStopping else { return }
        logger.info("stopping")
        service.notify("STOPPING=1")
        locks.shutDown()
        isStopping = true
        // The last replies get a moment to leave.
        try? commands?.server.socket.set(.linger, 200)
        fleet.stopAll(by: MonotonicClock.now() + 3_000_000_000) { [weak self] in self?.loop.stop() }
    }
}
