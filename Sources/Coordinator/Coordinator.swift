import BusProtocol
import BusServer
public import CaptureCore
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
        /// Where aliases and settings are kept over reboots; nil: the configuration's, or the usual place.
        public var stateDirectory: String?
        public var virtualCameras: Int?
        /// Beside those of the configuration.
        public var replays: [ReplayDescription] = []
        /// What the virtual cameras are like, in their order; those beyond are plain. Empty: as the configuration says.
        public var virtualProfiles: [VirtualProfile] = []
        public var usesHardware = true
        /// The worker's program; nil: `camerabus-worker` beside this one.
        public var workerProgram: String?
        /// The matcher's program; nil: `camerabus-matcher` beside this one.
        public var matcherProgram: String?

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
    let books: BookKeeper
    let permission: AuthorizationDesk
    private let permissionKeeper: AuthorizationKeeper
    let roster: DeviceRoster
    let sources: SourceDesk
    let profiles: BookFile<ProfileBook>
    let rigs: RigDesk
    let matchers: MatcherFleet
    var ledger = RequestLedger()
    /// How to give up what waits, by the user and the key of the request.
    var cancellations: [RequestKey: () -> Void] = [:]
    /// Those who wait for one request's answer.
    var joined: [RequestKey: [Responder]] = [:]
    /// What clients called themselves in `bus.hello`, by connection.
    var clientNames = BoundedDictionary<[UInt8], String>(limit: 1024)
    /// The same by process, which is all that a subscriber is known by.
    var processNames = BoundedDictionary<ConnectionGuard.Peer, String>(limit: 1024)
    var isStopping = false

    private(set) lazy var sessions = SessionDesk(
        loop, events: events, keeper: keeper, locks: locks, fleet: fleet, logger: logger,
        link: { [weak self] in self?.configuration.link(of: $0) },
        carryOut: { [weak self] batch, respond in self?.carryOut(batch, respond) })

    private(set) lazy var desk: ConfigurationDesk = {
        let desk = ConfigurationDesk(keeper) { [weak self] in self?.fleet.workers[$0] }
        desk.onEnd = { [weak self] device in
            // At the end workers go without taking back what was not decided.
            guard let self, !isStopping, let worker = fleet.workers[device] else { return }
            remember(worker)
        }
        return desk
    }()
    private(set) lazy var exposures = ExposureDesk(
        loop, locks,
        set: { [weak self] device, fence, respond in
            self?.setControls(["exposureMode": "locked"], device, fence, respond)
        },
        tell: { [weak self] device, members in
            guard let self, !isStopping else { return }
            events.event("event/device/\(device)", "exposureLockFailed", members)
        })
    private let keeper: StateKeeper
    private(set) var commands: CommandSocket?
    private let context: Context
    private let doorkeeper: Doorkeeper
    private let signals: SignalDescriptor
    private let lock: LockFile
    private let service: ServiceManager
    private let discovery: Discovery
    private let hotplug: HotplugWatch
    private var hasToldReady = false
    /// Whether there are virtual cameras because there was nothing else at the start.
    private var usesDefaultCameras: Bool?
    /// What is wrong with how this is set up.
    private var problems: [Problem] = []
    /// Whom the configuration names, and nobody is.
    private var unknownUsers: [Problem] = []
    /// Why the configuration was not read again.
    private var refusal: Problem?
    /// Nodes that the last search could not look at.
    private var unreadable: [String] = []
    /// Which devices were connected when they were published last, by `uniqueID`.
    private var connected: [String: Bool] = [:]
    private var failure: StartError?
    /// How long requests wait for the first search for cameras, milliseconds.
    private static let searchPatience: Int64 = 2000
    /// How long a process without a connection keeps what it holds, milliseconds.
    private static let connectionGrace: Int64 = 5000
    /// How long a worker without a coordinator lives at most, with time to spare, milliseconds.
    private static let workerGrace: Int64 = 60_000

    /// When processes that have let go of their last connection lose what they hold.
    private var graces: [ConnectionGuard.Peer: Loop.Token] = [:]

    /// Takes the runtime directory and opens the sockets.
    public init(_ options: Options, logger: Logger) throws(StartError) {
        self.options = options
        var logger = logger
        let environment = CurrentProcess.environment()
        do {
            configuration = try StartUp.readConfiguration(options.configurationPath)
            if let level = Logger.Level(rawValue: configuration.logLevel) { logger.logLevel = level }
            self.logger = logger
            directory = try RuntimeDirectory.server(
                flag: options.runtimeDirectory ?? configuration.runtimeDirectory, environment: environment,
                uid: CurrentProcess.uid)
            // The group of the system service: ours to give away as root, or when we are in it ourselves.
            group = CurrentProcess.groupID(named: configuration.group).flatMap { group in
                CurrentProcess.uid == 0 || CurrentProcess.isMember(of: group) ? group : nil
            }
            try StartUp.makeDirectories(directory, group: group)
            lock = try StartUp.takeLock(directory)
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
            events = EventSocket(loop, eventServer, connections, epoch: epoch)
            let runtime = [
                options.runtimeDirectory, configuration.runtimeDirectory, environment["CAMERABUS_RUNTIME_DIR"],
            ]
            books = try BookKeeper(
                loop,
                StateDirectory.choose(
                    flag: options.stateDirectory, configured: configuration.stateDirectory, runtime: directory,
                    isRuntimeNamed: runtime.contains { !($0 ?? "").isEmpty }, environment: environment,
                    uid: CurrentProcess.uid), logger: logger)
            keeper = try StateKeeper(
                StateFile(path: directory.stateFile), epoch: epoch, floor: books.book.fence, logger: logger)
            keeper.onFence = { [books] fence in
                if books.book.needsReserve(fence: fence) { books.change { $0.reserve(fence: fence) } }
            }
            var unknown: [Problem] = []
            var authorizations = AuthorizationBook(
                policy: AuthorizationPolicy(configuration, owner: CurrentProcess.uid) {
                    unknown.append(.userUnknown($0))
                })
            unknownUsers = unknown
            permissionKeeper = try AuthorizationKeeper(
                loop, directory: books.directory, bootID: keeper.bootID, &authorizations, logger: logger)
            permission = AuthorizationDesk(loop, events: events, authorizations, permissionKeeper, logger: logger)
            locks = LockDesk(loop, events: events, keeper: keeper, logger: logger)
            let program = try StartUp.workerProgram(options)
            fleet = DeviceFleet(
                loop, workers,
                launch: StartUp.launch(program, directory, hasGroup: group != nil, configuration),
                logger: logger)
            discovery = Discovery(loop, program: program, logger: logger)
            hotplug = HotplugWatch(loop, logger: logger)
            roster = DeviceRoster(books)
            sources = SourceDesk(loop, path: directory.sourcesFile, logger: logger)
            profiles = BookFile(loop, directory: books.directory, name: "profiles", logger: logger)
            rigs = RigDesk(
                BookFile(loop, directory: books.directory, name: "rigs", logger: logger), events: events, fleet)
            matchers = MatcherFleet(
                loop, program: try StartUp.matcherProgram(options), launch: { [fleet] in fleet.launch }, logger: logger)
        } catch let error as StartError {
            throw error
        } catch {
            throw StartError(description: "\(error)")
        }
        connect()
    }

    private func connect() {
        fleet.committed = { [books] in books.book[$0]?.committed }
        fleet.onRename = { [weak self] in self?.renamed($0) }
        fleet.order = DeviceOrder(configured: configuration.order)
        hotplug.search = { [weak self] in self?.search(removed: $0, $1) }
        fleet.isDecided = { [keeper] in keeper.isDecided($0) }
        fleet.onFence = { [weak self] in self?.locks.seen(fence: $0) }
        fleet.onChange = { [weak self] device, worker in self?.deviceChanged(device, worker) }
        fleet.onEvent = { [weak self] device, event, members in
            guard let self, !isStopping else { return }
            events.event("event/device/\(device)", event, members)
        }
        fleet.onHello = { [weak self] worker in
            guard let self else { return }
            admit(worker)
            if let lock = locks.table.lock(on: worker.device.id) { worker.order(.lock, fence: lock.fence) }
            sessions.greeted(worker)
        }
        locks.onChange = { [weak self] device, lock, fence in
            guard let self, let worker = fleet.workers[device] else { return }
            worker.order(lock == nil ? .unlock : .lock, fence: fence)
            guard !isStopping else { return }
            publish(worker)
            sessions.deviceChanged(device)
        }
        sources.onChange = { [weak self] in self?.setDevices() }
        books.onProblems = { [weak self] in self?.tellProblems() }
        connectPermission()
        rigs.setConfigured(configuration.rigs)
        rigs.onChange = { [weak self] names in
            guard let self, !isStopping else { return }
            matchers.setRigs(names)
        }
        permissionKeeper.onProblems = { [weak self] in self?.tellProblems() }
        connections.onClosed = { [weak self] in self?.events.closed($0) }
        connections.onLastConnectionClosed = { [weak self] peer in self?.lastConnectionClosed(peer) }
        loop.watch(.descriptor(signals.rawValue)) { [weak self] in self?.readSignals() }
        publishBus()
    }

    /// Serves until SIGTERM, SIGINT or `bus.shutdown`; then everything has ended and been removed.
    public func run() throws(StartError) {
        do {
            awaitHolders()
            discoverDevices()
            // A driver that keeps the search waiting must not keep everybody else waiting.
            loop.schedule(afterMilliseconds: Self.searchPatience) { [weak self] in self?.openCommands() }
            feedWatchdog()
            try loop.run()
        } catch {
            throw StartError(description: "\(error)")
        }
        books.close()
        profiles.close()
        rigs.close()
        permissionKeeper.close()
        if let failure { throw failure }
        logger.info("stopped")
    }

    /// Last of the sockets, when it is known which devices there are: whoever can connect here finds everything else in place.
    private func openCommands() {
        guard commands == nil, !isStopping else { return }
        do {
            let server = try ServerSocket(
                context,
                .init(
                    kind: .router, path: directory.commandSocket, mode: group == nil ? 0o600 : 0o660, group: group,
                    sendHighWaterMark: 16, receiveHighWaterMark: 16, maximumMessageBytes: BusLimits.maxMessageBytes,
                    authenticationDomain: "command"))
            connections.add(server)
            commands = CommandSocket(loop, server, logger: logger) { [weak self] in self?.handle($0, $1, $2) }
        } catch {
            failure = StartError(description: "\(error)")
            stop()
        }
    }

    // MARK: Devices

    /// Starts a worker for each device that is wanted and there.
    private func discoverDevices() {
        guard options.usesHardware, configuration.usesHardware else {
            roster.forgetCameras()
            return setDevices()
        }
        hotplug.listen()
        hotplug.demand()
    }

    private func search(removed: Set<String>, _ completion: @escaping (Bool) -> Void) {
        guard !isStopping, options.usesHardware, configuration.usesHardware else { return completion(true) }
        discovery.run { [weak self] survey in
            guard let self else { return }
            // What can't be searched for is not therefore gone.
            if let survey {
                unreadable = survey.unreadable.map { "\($0.node): \($0.why)" }
                for node in survey.unreadable {
                    logger.debug("a node can't be looked at", metadata: ["node": "\(node.node)", "why": "\(node.why)"])
                }
                let configured = configuration.aliases
                roster.found(survey) { [locks, directory] uniqueID, id in
                    let id = configured[uniqueID] ?? id
                    return configured[uniqueID] != nil || books.book[uniqueID]?.alias != nil
                        || locks.table.lock(on: id) != nil || Self.hasWorker(directory.deviceLock(id))
                }
            }
            setDevices(removed: removed)
            completion(survey != nil)
        }
    }

    /// Whether some process is a device's worker, perhaps one that an earlier coordinator started.
    private static func hasWorker(_ lockPath: String) -> Bool {
        if case .nobody = LockFile.holder(of: lockPath) { false } else { true }
    }

    /// Those of the command line go first; of two that are called the same, the first is played.
    private var replays: [ReplayDescription] {
        let own = Set(options.replays.map(\.uniqueID))
        return options.replays + configuration.replays.filter { !own.contains($0.uniqueID) }
    }

    /// What the configuration and the command line say of devices.
    var wishes: DeviceRoster.Wishes {
        let profiles = options.virtualProfiles.isEmpty ? configuration.virtualProfiles : options.virtualProfiles
        // Who says what they are like says that they are to be.
        let least = profiles.isEmpty ? (usesDefaultCameras == true ? 2 : 0) : profiles.count
        return DeviceRoster.Wishes(
            aliases: configuration.aliases, positions: configuration.positions,
            virtualCameras: options.virtualCameras ?? configuration.virtualCameras ?? least, virtualProfiles: profiles,
            others: replays.map(ManagedDevice.replay)
                + sources.sources.keys.sorted().compactMap { sources.sources[$0].map(ManagedDevice.client) })
    }

    /// Has the fleet know the devices that there are now, under the ids that they have now.
    func setDevices(removed: Set<String> = []) {
        guard !isStopping else { return }
        // Before the first search has succeeded, there may be more.
        let isComplete = roster.hasSearched || !options.usesHardware || !configuration.usesHardware
        // Decided once: a camera that comes or goes later takes no other away, and brings none.
        if usesDefaultCameras == nil, isComplete {
            usesDefaultCameras = roster.isEmpty && options.configurationPath == nil && options.replays.isEmpty
        }
        roster.dropExcess { [fleet, locks] uniqueID in
            guard let worker = fleet.worker(of: uniqueID) else { return false }
            return locks.table.lock(on: worker.device.id) != nil || (worker.counters["subscriptions"]?.integer ?? 0) > 0
        }
        fleet.setDevices(roster.devices(wishes), isComplete: isComplete, removed: removed)
        if isComplete {
            locks.keepOnly(Set(fleet.deviceIDs))
            sessions.devicesKnown()
        }
        endUnauthorizedLocks()
        connected = connected.filter { fleet.worker(of: $0.key) != nil }
        rigs.publish()
        exposures.ended(Set(fleet.workers.values.map(\.device.identity.uniqueID)))
        if isComplete { lookForProblems() }
        publishBus()
        openCommands()
        tellReadyWhenWorkersAre()
    }

    private func lookForProblems() {
        let (wishes, before) = (wishes, problems)
        problems = []
        if fleet.deviceIDs.isEmpty {
            let isSearched = options.usesHardware && configuration.usesHardware
            problems.append(
                .noDevices(
                    searched: isSearched, unreadable: isSearched ? unreadable : [],
                    configurationPath: options.configurationPath))
        }
        for (uniqueID, alias) in wishes.aliases.sorted(by: { $0.value < $1.value })
        where !roster.knows(uniqueID, wishes) {
            problems.append(.aliasUnknown(alias, uniqueID))
        }
        problems += roster.collisions(wishes).map(Problem.idTaken)
        if let refusal { problems.append(refusal) }
        problems += books.problems + rigs.problems { fleet.workers[$0] != nil }
        if let problem = profiles.problem { problems.append(problem) }
        problems += permissionKeeper.problems + unknownUsers
        for problem in problems where !before.contains(problem) {
            logger.warning("\(problem.message)", metadata: ["reason": "\(problem.reason.rawValue)"])
        }
    }

    private func tellProblems() {
        // The first search has them told.
        guard commands != nil, !isStopping else { return }
        lookForProblems()
        publishBus()
    }

    private func renamed(_ names: [(device: String, name: String)]) {
        locks.rename(names)
        sessions.rename(names)
        for (device, name) in names { events.event("event/device/\(device)", "renamed", ["to": .string(name)]) }
    }

    /// Has the device book hold what the worker has committed, unless it may still be taken back.
    func remember(_ worker: Worker) {
        guard let committed = worker.committed, !worker.isInDoubt, !desk.isBusy(worker.device.id) else { return }
        let identity = worker.device.identity
        books.change { book in
            book.update(identity.uniqueID, name: identity.localizedName, at: BookKeeper.now) {
                $0.committed = committed
            }
        }
    }

    private func tellReadyWhenWorkersAre() {
        let expected = fleet.workers.values.filter(\.device.isPlugged)
        var waiting = expected.count
        guard waiting > 0 else { return tellReady() }
        for worker in expected {
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
            remember(worker)
            publish(worker)
            exposures.changed(worker)
        } else {
            locks.deviceEnded(device)
            events.set("state/device/\(device)", nil)
        }
        sessions.deviceChanged(device)
        publishBus()
    }

    private func publish(_ worker: Worker) {
        events.set("state/device/\(worker.device.id)", deviceValue(worker))
        let (uniqueID, isConnected) = (worker.device.identity.uniqueID, worker.isConnected)
        let before = connected.updateValue(isConnected, forKey: uniqueID)
        // What is there at the start has not come just now.
        if before != isConnected { rigs.refresh() }
        guard before != isConnected, before != nil || (hasToldReady && isConnected) else { return }
        events.event(
            "event/device/\(worker.device.id)", isConnected ? "connected" : "disconnected",
            ["uniqueID": .string(uniqueID)])
    }

    private func publishBus() {
        events.set(
            "state/bus",
            [
                "version": .string(Self.version), "epoch": .string(epoch), "started": JSONValue(started),
                "devices": JSONValue(fleet.deviceIDs), "problems": .array(problems.map(\.json)),
            ])
    }

    // MARK: Clients

    // A process that has let go of its last connection can't be told of anything any more; it gets a moment to come back.
    private func lastConnectionClosed(_ peer: ConnectionGuard.Peer) {
        loop.cancel(graces[peer])
        graces[peer] = loop.schedule(afterMilliseconds: Self.connectionGrace) { [weak self] in
            self?.graces[peer] = nil
            guard let self else { return }
            connections.update()
            let isOfUser = graces.contains { $0.key.uid == peer.uid }
            if !isOfUser, !connections.isConnected(uid: peer.uid) { permission.left(uid: peer.uid) }
            guard let startTime = peer.startTime, connections.peer(pid: peer.pid)?.startTime != startTime else {
                return
            }
            locks.holderEnded(pid: peer.pid, startTime: startTime, cause: .connectionLost)
            sources.ended(pid: peer.pid, startTime: startTime)
            sessions.holderEnded(pid: peer.pid, startTime: startTime)
        }
    }

    // Those who hold something since before this coordinator's time have as long to come back, from now on.
    private func awaitHolders() {
        for holder in Set(locks.inheritedHolders + sessions.inheritedOwners) {
            lastConnectionClosed(.init(uid: holder.uid, pid: holder.pid, startTime: holder.startTime))
        }
        for uid in permission.book.onceUsers {
            loop.schedule(afterMilliseconds: Self.connectionGrace) { [weak self] in
                guard let self else { return }
                connections.update()
                if !connections.isConnected(uid: uid) { permission.left(uid: uid) }
            }
        }
        loop.schedule(afterMilliseconds: Self.workerGrace) { [weak self] in self?.keeper.settleInherited() }
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
            configuration = try StartUp.readConfiguration(options.configurationPath)
            fleet.launch = StartUp.launch(fleet.launch.program, directory, hasGroup: group != nil, configuration)
            connections.setLimits(perUser: configuration.connectionsPerUser, total: configuration.connections)
            fleet.order = DeviceOrder(configured: configuration.order)
            rigs.setConfigured(configuration.rigs)
            unknownUsers = []
            permission.setPolicy(
                AuthorizationPolicy(configuration, owner: CurrentProcess.uid) { [self] in
                    unknownUsers.append(.userUnknown($0))
                })
            // The handler's level, where it has one for all.
            var logger = logger
            if let level = Logger.Level(rawValue: configuration.logLevel) { logger.logLevel = level }
            logger.info("configuration read again")
            refusal = nil
            discoverDevices()
        } catch {
            logger.error("the configuration is left as it was", metadata: ["error": "\(error)"])
            refusal = .configurationRefused("\(error)")
            tellProblems()
        }
    }

    /// Ends everything in order: waits and locks are told, workers end, sockets go.
    func stop() {
        guard !isStopping else { return }
        logger.info("stopping")
        service.notify("STOPPING=1")
        sessions.shutDown()
        locks.shutDown()
        permission.shutDown()
        isStopping = true
        events.end()
        // The last replies get a moment to leave.
        try? commands?.server.socket.set(.linger, 200)
        matchers.stopAll(by: MonotonicClock.now() + 3_000_000_000) { [fleet, discovery, loop] in
            fleet.stopAll(by: MonotonicClock.now() + 3_000_000_000) { discovery.stop { loop.stop() } }
        }
    }
}
