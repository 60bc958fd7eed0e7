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
    let holders: HolderWatch
    let locks: LockDesk
    let fleet: DeviceFleet
    let books: BookKeeper
    let permission: AuthorizationDesk
    let permissionKeeper: AuthorizationKeeper
    let roster: DeviceRoster
    let sources: SourceDesk
    let profiles: BookFile<ProfileTable>
    let rigs: RigDesk
    let matchers: MatcherFleet
    let pressures: PressureDesk
    let recorders: RecorderFleet
    let movies: MovieDesk
    let library: LibraryDesk
    let libraryParts = AttachmentBudget(.libraryParts)
    let takes: TakeDesk
    let photos: PhotoDesk
    let live: LivePhotoDesk
    let loans = MovieLoans()
    var ledger = RequestTable()
    /// How to give up what waits, by the user and the key of the request.
    var cancellations: [RequestKey: () -> Void] = [:]
    /// Those who wait for one request's answer.
    var joined: [RequestKey: [AnswerTaker]] = [:]
    private(set) lazy var keptAnswers = KeptAnswers(loop)
    /// What clients called themselves in `bus.hello`, by connection.
    var clientNames = BoundedDictionary<[UInt8], String>(limit: 1024)
    /// The same by process, which is all that a subscriber is known by.
    var processNames = BoundedDictionary<ConnectionGuard.Peer, String>(limit: 1024)
    /// The names behind the numbers of those on other machines.
    var remoteNames = BoundedDictionary<UInt32, String>(limit: 4096)
    var isStopping = false
    /// Movies are being finished, before all else ends: nothing is begun any more.
    var isFinishing = false

    private(set) lazy var sessions = SessionDesk(
        loop, events: events, keeper: keeper, locks: locks, fleet: fleet, holders: holders, books: books,
        logger: logger, link: { [weak self] in self?.configuration.link(of: $0) },
        halt: { [weak self] in self?.halt($0) }, refusal: { [weak self] in self?.refusal($0) },
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
        loop, locks, keeper,
        set: { [weak self] device, fence, respond in
            self?.setControls(["exposureMode": "locked"], device, fence, respond)
        },
        tell: { [weak self] device, members in
            guard let self, !isStopping else { return }
            events.event("event/device/\(device)", "exposureLockFailed", members)
        })
    let keeper: StateKeeper
    private(set) var commands: CommandSocket?
    private let context: Context
    private let doorkeeper: Doorkeeper
    private let signals: SignalDescriptor
    private let lock: LockFile
    /// What the service manager listens at for us.
    private let inherited: InheritedSockets
    let service: ServiceManager
    let discovery: Discovery
    let hotplug: HotplugWatch
    var hasToldReady = false
    /// Whether there are virtual cameras because there was nothing else at the start.
    var usesDefaultCameras: Bool?
    /// What is wrong with how this is set up.
    var problems: [Problem] = []
    /// Whom the configuration names, and nobody is.
    var unknownUsers: [Problem] = []
    /// Why the configuration was not read again.
    var refusal: Problem?
    /// Nodes that the last search could not look at.
    var unreadable: [String] = []
    /// Which devices were connected when they were published last, by `uniqueID`.
    var connected: [String: Bool] = [:]
    /// What each camera's worker last told of its scene, by id.
    var scenes: [String: JSONValue] = [:]
    private var failure: StartError?
    /// Looks up whom the configuration names when it was read again; from the first time on.
    var lookUp: BackgroundWork<Configuration, (policy: AuthorizationPolicy, unknown: [String])>?
    /// How long requests wait for the first search for cameras, milliseconds.
    static let searchPatience: Int64 = 2000
    /// How long a worker without a coordinator lives at most, with time to spare, milliseconds.
    static let workerGrace: Int64 = 60_000

    /// When processes that have let go of their last connection lose what they hold.
    var graces: [ConnectionGuard.Peer: Loop.Token] = [:]

    /// Takes the runtime directory and opens the sockets.
    public init(_ options: Options, logger: Logger) throws(StartError) {
        self.options = options
        var logger = logger
        let environment = CurrentProcess.environment()
        inherited = InheritedSockets(environment)
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
                    receiveHighWaterMark: 1000, maximumMessageBytes: BusLimits.maxPhotoReplyBytes,
                    authenticationDomain: "workers"))
            let eventServer = try ServerSocket(
                context,
                .init(
                    kind: .extendedPublish, path: directory.eventsSocket, mode: mode, group: group,
                    sendHighWaterMark: 1000, receiveHighWaterMark: 1000, maximumMessageBytes: 1024,
                    authenticationDomain: "events", welcome: Array("welcome/".utf8)), inherited: inherited)
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
            // Before anybody can connect: here one may wait for the name service.
            let (policy, unknown) = AuthorizationPolicy.resolved(configuration, owner: CurrentProcess.uid)
            connections.setUnbounded(policy.gateway)
            var authorizations = AuthorizationTable(policy: policy)
            unknownUsers = unknown.map { .userUnknown($0) }
            permissionKeeper = try AuthorizationKeeper(
                loop, directory: books.directory, bootID: keeper.bootID, &authorizations, logger: logger)
            holders = HolderWatch(loop)
            permission = AuthorizationDesk(
                loop, events: events, authorizations, permissionKeeper, holders, logger: logger)
            locks = LockDesk(loop, events: events, keeper: keeper, holders: holders, logger: logger)
            let program = try StartUp.workerProgram(options)
            fleet = DeviceFleet(
                loop, workers,
                launch: StartUp.launch(program, directory, hasGroup: group != nil, configuration),
                logger: logger)
            discovery = Discovery(loop, program: program, logger: logger)
            hotplug = HotplugWatch(loop, logger: logger)
            roster = DeviceRoster(books)
            sources = SourceDesk(loop, holders, path: directory.sourcesFile, logger: logger)
            profiles = BookFile(loop, directory: books.directory, name: "profiles", logger: logger)
            rigs = RigDesk(
                BookFile(loop, directory: books.directory, name: "rigs", logger: logger), events: events, fleet)
            pressures = try PressureDesk(
                loop,
                root: options.watchesPressure && configuration.watchesPressure ? configuration.pressureRoot : nil,
                logger: logger)
            let recorderServer = try ServerSocket(
                context,
                .init(
                    kind: .router, path: directory.recordersSocket, mode: 0o600, sendHighWaterMark: 1000,
                    receiveHighWaterMark: 1000, maximumMessageBytes: BusLimits.maxPhotoReplyBytes,
                    authenticationDomain: "recorders"))
            recorders = RecorderFleet(
                loop, recorderServer, program: try StartUp.recorderProgram(options), directory: directory,
                logLevel: configuration.logLevel, logger: logger)
            movies = MovieDesk(loop, events: events, holders, recorders, logger: logger)
            library = LibraryDesk(
                loop, program: try StartUp.librarianProgram(options),
                runtimeDirectory: directory, logger: logger)
            takes = TakeDesk(
                loop, events: events, movies, library,
                BookFile(loop, directory: books.directory, name: "takes", logger: logger), logger: logger)
            live = LivePhotoDesk(loop, recorders, directory: directory, logger: logger)
            photos = PhotoDesk(
                loop, events: events, holders, locks, fleet, maximumReply: configuration.photoReply, logger: logger)
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
        fleet.standIn = { [keeper] in keeper.standIn($0) }
        fleet.onStandIn = { [keeper] in keeper.save(standIn: $1, of: $0) }
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
            if let isHalted = pressures.wish(for: worker) { worker.order(.halt(isHalted)) }
            if let lock = locks.table.lock(on: worker.device.id) { worker.order(.lock, fence: lock.fence) }
            sessions.greeted(worker)
        }
        locks.onChange = { [weak self] device, lock, fence in
            guard let self, let worker = fleet.workers[device] else { return }
            worker.order(lock == nil ? .unlock : .lock, fence: fence)
            judgeZoom(worker)
            guard !isStopping else { return }
            publish(worker)
            sessions.deviceChanged(device)
        }
        sources.onChange = { [weak self] in self?.setDevices() }
        books.onProblems = { [weak self] in self?.tellProblems() }
        connectPermission()
        connectPressure()
        // Devices and rigs have sockets of one kind, each by its name.
        fleet.isMatcher = { [weak self] in self?.matchers.hasProcess($0) ?? false }
        fleet.onFree = { [weak self] in self?.matchers.startWaiting() }
        matchers.isWorker = { [weak self] in self?.fleet.hasProcess($0) ?? false }
        matchers.onFree = { [weak self] in self?.fleet.startWaiting() }
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
        connectMovies()
        connectLibrary()
        connectLoans()
        connectPhotos()
        connectLivePhotos()
    }

    /// Serves until SIGTERM, SIGINT or `bus.shutdown`; then everything has ended and been removed.
    public func run() throws(StartError) {
        do {
            pressures.begin()
            awaitHolders()
            library.recover()
            takes.begin()
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
        takes.close()
        permissionKeeper.close()
        if let failure { throw failure }
        logger.info("stopped")
    }

    /// Last of the sockets, when it is known which devices there are: whoever can connect here finds everything else in place.
    func openCommands() {
        guard commands == nil, !isStopping else { return }
        do {
            let server = try ServerSocket(
                context,
                .init(
                    kind: .router, path: directory.commandSocket, mode: group == nil ? 0o600 : 0o660, group: group,
                    sendHighWaterMark: 16, receiveHighWaterMark: 16, maximumMessageBytes: BusLimits.maxMessageBytes,
                    authenticationDomain: "command"), inherited: inherited)
            connections.add(server)
            commands = CommandSocket(loop, server, logger: logger) { [weak self] in self?.handle($0, $1, $2) }
            for path in inherited.closeRest() {
                logger.warning(
                    "the service manager listens at a path that is not this bus's", metadata: ["path": "\(path)"])
            }
        } catch {
            failure = StartError(description: "\(error)")
            stop()
        }
    }

    // MARK: Signals

    private func readSignals() {
        while let signal = signals.next() {
            if signal == SIGHUP { reload() } else { stop() }
        }
    }

    /// Ends everything in order: movies are finished, waits and locks are told, workers end, sockets go.
    func stop() {
        guard !isStopping else { return }
        // Who asks twice does not wait for the movies.
        guard !isFinishing else { return end() }
        isFinishing = true
        logger.info("stopping")
        service.notify("STOPPING=1")
        live.shutDown()
        photos.shutDown { [weak self] in
            guard let self, !isStopping else { return }
            movies.shutDown { [weak self] in self?.end() }
        }
    }

    private func end() {
        guard !isStopping else { return }
        sessions.shutDown()
        exposures.shutDown()
        locks.shutDown()
        permission.shutDown()
        takes.shutDown()
        isStopping = true
        events.end()
        // The last replies get a moment to leave.
        try? commands?.server.socket.set(.linger, 200)
        matchers.stopAll(by: MonotonicClock.now() + 3_000_000_000) { [fleet, discovery, library, loop] in
            fleet.stopAll(by: MonotonicClock.now() + 3_000_000_000) {
                discovery.stop { library.stop { loop.stop() } }
            }
        }
    }
}
