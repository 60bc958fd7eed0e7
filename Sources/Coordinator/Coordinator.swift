import BusProtocol
import BusServer
import CaptureCore
import Glibc
import JSON
import LinuxIO
public import Logging
import ZeroMQ

/// Makes the services and connects them; starts and ends the bus. It touches no device and no pixel.
public final class Coordinator: BusLifetime {
    let configuration: LiveConfiguration
    let lifecycle = Lifecycle()
    let logger: Logger
    let directory: RuntimeDirectory
    let group: UInt32?
    let loop: Loop
    let service: ServiceManager
    let connections: ConnectionGuard
    let events: EventSocket
    let state: BusState
    let replies: ReplyCache
    let departures: ClientDepartures
    let permission: AuthorizationService
    let access: DeviceAccess
    let deviceStore: DeviceStore
    let sources: SourceRegistry
    let workers: WorkerSupervisor
    let updater: DeviceUpdater
    let publisher: DevicePublisher
    let pressures: PressureRegistry
    let locks: LockService
    let configurations: ConfigurationService
    let exposures: ExposureLockRegistry
    let controls: ControlService
    let rigs: RigRegistry
    let matchers: MatcherSupervisor
    let sessions: SessionRegistry
    let recorders: RecorderSupervisor
    let librarians: LibrarianSupervisor
    let quota: LibraryQuota
    let places: RecordingPlaces
    let movies: MovieRegistry
    let movieControls: MovieControls
    let takes: TakeRegistry
    let live: LivePhotoSupervisor
    let photos: PhotoService
    /// Looks up the users and groups of a configuration that was read again; from the first time on.
    var lookUp: BackgroundWork<Configuration, (policy: AuthorizationPolicy, unknown: [String])>?
    private let permissions: AuthorizationStore
    private let profiles: FileStore<ProfileTable>
    private let deviceSearch: DeviceSearch
    private let counters = CommandCounters()
    private let bus: BusService
    private let router: RequestRouter
    private var commands: CommandSocket?
    private let context: Context
    private let doorkeeper: Doorkeeper
    private let signals: SignalDescriptor
    private let lock: LockFile
    /// Sockets on which the service manager listens for this process.
    private let inherited: InheritedSockets
    private var failure: CoordinatorStartError?

    /// Descriptors that connections may not take: those are for processes, files and internal sockets.
    private static let reservedDescriptors = 256
    /// With fewer descriptors than twice the reserve, clients could not connect.
    private static let neededDescriptors = 2 * reservedDescriptors
    /// How long requests wait for the first search for cameras, milliseconds.
    private static let searchPatience: Int64 = 2000

    /// Takes the runtime directory and opens the sockets.
    public init(_ options: CoordinatorOptions, logger: Logger) throws(CoordinatorStartError) {
        var logger = logger
        let environment = CurrentProcess.environment()
        inherited = InheritedSockets(environment)
        do {
            try CurrentProcess.requireDescriptors(Self.neededDescriptors, for: "camerabusd")
            configuration = try LiveConfiguration(options)
            let current = configuration.current
            if let level = Logger.Level(rawValue: current.logLevel) { logger.logLevel = level }
            self.logger = logger
            directory = try RuntimeDirectory.server(
                flag: options.runtimeDirectory ?? current.runtimeDirectory, environment: environment,
                uid: CurrentProcess.uid)
            // The group of the system service. Root, and members of the group, may give files to it.
            group = CurrentProcess.groupID(named: current.group).flatMap { group in
                CurrentProcess.uid == 0 || CurrentProcess.isMember(of: group) ? group : nil
            }
            try StartUp.makeDirectories(directory, group: group)
            lock = try StartUp.takeLock(directory)
            signals = try SignalDescriptor([SIGTERM, SIGINT, SIGHUP])
            loop = try Loop()
            Context.reserveDescriptors(Self.reservedDescriptors)
            try PeerAddressTest.run(at: "\(directory.internalDirectory)/test.sock")
            context = try Context()
            // The modes of the sockets decide which users connect. What a client may do is decided for each request.
            service = ServiceManager(environment: CurrentProcess.environment)
            connections = ConnectionGuard(
                loop, perUser: current.connectionsPerUser, total: current.connections, logger: logger)
            doorkeeper = try Doorkeeper(context, loop, connections) { _, _ in .admit }
            let sockets = SocketMaker(context, directory, group, inherited)
            let workerServer = try sockets.internalServer(directory.workersSocket, domain: "workers")
            let eventServer = try sockets.eventServer()
            connections.add(eventServer)
            let epoch = hexadecimal(randomBytes(8))
            events = EventSocket(loop, eventServer, connections, epoch: epoch)
            deviceStore = try DeviceStore(
                loop, StartUp.stateDirectory(options, current, directory, environment), logger: logger)
            let store = try RestartStore(
                StateFile(path: directory.stateFile), epoch: epoch, deviceStore, logger: logger)
            let clients = ClientRegistry(connections)
            let cancellations = CancellationTable()
            replies = ReplyCache(loop)

            // Before anybody can connect: this may wait for the name service.
            let (policy, unknown) = AuthorizationPolicy.resolved(current, owner: CurrentProcess.uid)
            connections.setUnbounded(policy.gateway)
            var authorizations = AuthorizationTable(policy: policy)
            permissions = try AuthorizationStore(
                loop, directory: deviceStore.directory, bootID: store.bootID, &authorizations, logger: logger)
            let holders = HolderWatcher(loop)
            permission = AuthorizationService(
                loop, events: events, authorizations, permissions, unknown: unknown, holders, clients, cancellations,
                logger: logger)
            let remotes = RemoteUserRegistry(permission)

            let workerProgram = try StartUp.workerProgram(options)
            workers = WorkerSupervisor(
                loop, lifecycle, workerServer,
                launch: StartUp.launch(workerProgram, directory, hasGroup: group != nil, current), events, deviceStore,
                store,
                permission, logger: logger)
            access = DeviceAccess(workers, permission)
            rigs = RigRegistry(
                FileStore(loop, directory: deviceStore.directory, name: "rigs", logger: logger), events: events, workers
            )
            let resolver = DeviceResolver(workers, rigs)
            locks = LockService(
                loop, events: events, store: store, holders: holders, resolver, clients, cancellations, logger: logger
            )
            deviceSearch = DeviceSearch(loop, program: workerProgram, logger: logger)
            let hotplug = HotplugWatcher(loop, logger: logger)
            let registry = DeviceRegistry(deviceStore)
            sources = SourceRegistry(loop, holders, path: directory.sourcesFile, logger: logger)
            updater = DeviceUpdater(
                configuration, lifecycle, directory, deviceStore, registry, sources, locks, workers, deviceSearch,
                hotplug,
                logger: logger)
            profiles = FileStore(loop, directory: deviceStore.directory, name: "profiles", logger: logger)
            pressures = try PressureRegistry(
                loop, root: options.watchesPressure && current.watchesPressure ? current.pressureRoot : nil,
                logger: logger)
            publisher = DevicePublisher(lifecycle, events, workers, locks, pressures, rigs)
            configurations = ConfigurationService(lifecycle, store, workers, deviceStore, locks, resolver, clients)
            exposures = ExposureLockRegistry(loop, lifecycle, events, locks, store, configurations)
            controls = ControlService(resolver, clients, locks, configurations, exposures, access, deviceStore)
            matchers = MatcherSupervisor(
                loop, program: try StartUp.matcherProgram(options), sockets.door, workers, logger: logger)

            let sessionAccess = SessionAccess(permission, clients)
            sessions = SessionRegistry(
                loop, events: events, store: store, locks: locks, workers: workers, holders: holders,
                deviceStore: deviceStore,
                configuration, pressures, sessionAccess, configurations, logger: logger)

            recorders = RecorderSupervisor(
                loop, try sockets.internalServer(directory.recordersSocket, domain: "recorders"),
                program: try StartUp.recorderProgram(options), directory: directory, logLevel: current.logLevel,
                logger: logger)
            librarians = LibrarianSupervisor(
                loop, program: try StartUp.librarianProgram(options), runtimeDirectory: directory, logger: logger)
            places = RecordingPlaces(configuration, stateDirectory: deviceStore.directory)
            quota = LibraryQuota(librarians, logger: logger)
            movies = MovieRegistry(
                loop, events: events, holders, recorders, MovieAccess(permission, sessions, workers), places, quota,
                workers, logger: logger)
            movieControls = MovieControls(loop, lifecycle, directory, workers, recorders, movies, sessions, resolver)
            let reader = MovieRequestReader(resolver, rigs, sessions, workers, permission, clients, places)
            let takeFile = FileStore<TakeTable>(loop, directory: deviceStore.directory, name: "takes", logger: logger)
            takes = TakeRegistry(loop, events: events, movies, librarians, takeFile, logger: logger)

            let planner = LivePhotoPlanner(loop, lifecycle, sessions, workers, resolver, permission)
            live = LivePhotoSupervisor(
                loop, lifecycle, recorders, sessions, planner, directory: directory, logger: logger)
            let photoAccess = PhotoAccess(permission, clients, sessions, workers, movies, places)
            photos = PhotoService(
                loop, lifecycle, events: events, holders, locks, workers, sessions, movies, publisher,
                PhotoRequestReader(
                    resolver, rigs, sessions, workers, locks, permission, clients, photoAccess, places),
                photoAccess, planner, live, librarians, quota, cancellations, maximumReply: current.photoReply,
                logger: logger)
            // After movies and photos: of a process that has ended, these end first.
            holders.whenEnded { [weak sessions] pid, startTime in
                sessions?.holderEnded(pid: pid, startTime: startTime)
            }

            state = BusState(
                epoch: epoch, lifecycle, events, workers, pressures, permission,
                [updater, configuration, deviceStore, rigs, profiles, takeFile, permission], logger: logger)
            departures = ClientDepartures(
                loop, connections, clients, store, permission, locks, sources, movies, photos, sessions)
            bus = BusService(
                state, clients, connections, permission, configuration, directory, events, workers, locks,
                cancellations, counters, departures)
            let services: [any MethodService] = [
                bus,
                DeviceService(
                    workers, resolver, publisher, updater, registry, deviceStore, rigs, configuration, configurations,
                    locks,
                    clients, recorders, permission, sources),
                locks, configurations, controls,
                ProfileService(profiles, workers, resolver, clients, configurations, permission),
                RigService(rigs, resolver, registry, updater, workers, permission),
                SessionService(
                    sessions, sessionAccess, permission, clients, resolver, workers, locks, pressures),
                MovieService(
                    lifecycle, movies, movieControls, reader, sessions, workers, resolver, permission, cancellations),
                TakeService(takes, reader, places, sessions, workers, permission, clients, cancellations), photos,
                LibraryService(librarians, permission, clients, takes), FaultService(resolver),
                SourceService(sources, updater, registry, workers, resolver, rigs, clients, permission, directory),
                permission,
            ]
            router = try RequestRouter(services, lifecycle, permission, access, remotes, cancellations, replies)
        } catch let error as CoordinatorStartError {
            throw error
        } catch {
            throw CoordinatorStartError(description: "\(error)")
        }
        connect()
    }

    private func connect() {
        workers.order = DeviceOrder(configured: configuration.current.order)
        bus.lifetime = self
        workers.observer = self
        updater.observer = self
        sessions.observer = self
        recorders.onExpectedEnd = { [weak librarians] in librarians?.recover($0, tellsOfFinished: false) }
        movies.observer = self
        locks.onChange = { [weak self] in self?.lockChanged($0, $1, $2) }
        sources.onChange = { [weak self] in self?.updater.setDevices() }
        pressures.onChange = { [weak self] in self?.pressureChanged() }
        permission.observe { [weak self] in self?.permissionChanged() }
        deviceStore.onProblems = { [weak self] in self?.state.problemsChanged() }
        permissions.onProblems = { [weak self] in self?.state.problemsChanged() }
        connections.onClosed = { [weak self] in self?.events.closed($0) }
        loop.watch(.descriptor(signals.rawValue)) { [weak self] in self?.readSignals() }
        // Before any matcher is started.
        matchers.admit(permission.table.accessList(.video))
        rigs.setConfigured(configuration.current.rigs)
        rigs.onChange = { [weak self] names in
            guard let self, !lifecycle.isStopping else { return }
            matchers.setRigs(names)
        }
        state.publish()
        librarians.use(places.current.library, isShared: places.isShared)
        quota.use(configuration.current.libraryQuota)
        live.begin()
    }

    // MARK: Start

    /// Serves until SIGTERM, SIGINT or `bus.shutdown`; then everything has ended and been removed.
    public func run() throws(CoordinatorStartError) {
        do {
            pressures.begin()
            departures.awaitHolders()
            librarians.recover()
            recorders.expectLeftovers()
            takes.begin()
            updater.discover()
            // A driver that keeps the search waiting must not keep everybody else waiting.
            loop.schedule(afterMilliseconds: Self.searchPatience) { [weak self] in self?.openCommands() }
            feedWatchdog()
            try loop.run()
        } catch {
            throw CoordinatorStartError(description: "\(error)")
        }
        deviceStore.close()
        profiles.close()
        rigs.close()
        takes.close()
        permissions.close()
        if let failure { throw failure }
        logger.info("stopped")
    }

    /// The last socket, opened when the devices are known: a client that can connect here finds everything else ready.
    func openCommands() {
        guard commands == nil, !lifecycle.isStopping else { return }
        do {
            let server = try SocketMaker(context, directory, group, inherited).commandServer()
            connections.add(server)
            commands = CommandSocket(loop, server, counters, logger: logger) { [weak self] in
                self?.router.handle($0, $1, $2)
            }
            lifecycle.isServing = true
            for path in inherited.closeRest() {
                logger.warning(
                    "the service manager listens at a path that is not this bus's", metadata: ["path": "\(path)"])
            }
        } catch {
            failure = CoordinatorStartError(description: "\(error)")
            stop()
        }
    }

    private func feedWatchdog() {
        guard let interval = service.watchdogInterval else { return }
        service.notify("WATCHDOG=1")
        loop.schedule(at: MonotonicClock.now() + interval) { [weak self] in self?.feedWatchdog() }
    }

    func reportReadyWhenWorkersAre() {
        let expected = workers.all.values.filter(\.device.isPlugged)
        var waiting = expected.count
        guard waiting > 0 else { return reportReady() }
        for worker in expected {
            worker.whenReady(withinMilliseconds: WorkerHandle.patience) { [weak self] in
                waiting -= 1
                if waiting == 0 { self?.reportReady() }
            }
        }
    }

    private func reportReady() {
        guard !lifecycle.isReady, !lifecycle.isStopping else { return }
        lifecycle.isReady = true
        logger.info(
            "ready",
            metadata: ["runtime_dir": "\(directory.path)", "devices": "\(workers.deviceIDs.joined(separator: " "))"])
        service.notify("READY=1\nSTATUS=\(workers.all.count) devices")
    }

    // MARK: End

    private func readSignals() {
        while let signal = signals.next() {
            if signal == SIGHUP { reload() } else { stop() }
        }
    }

    /// Ends everything in order: photos and movies are finished, waits and locks end, workers end, sockets go.
    func stop() {
        guard !lifecycle.isStopping else { return }
        // A second request does not wait for the movies.
        guard !lifecycle.isFinishing else { return end() }
        lifecycle.isFinishing = true
        logger.info("stopping")
        service.notify("STOPPING=1")
        live.shutDown()
        photos.shutDown { [weak self] in
            guard let self, !lifecycle.isStopping else { return }
            movies.shutDown { [weak self] in self?.end() }
        }
    }

    private func end() {
        guard !lifecycle.isStopping else { return }
        sessions.shutDown()
        exposures.shutDown()
        locks.shutDown()
        permission.shutDown()
        takes.shutDown()
        lifecycle.isStopping = true
        events.end()
        // The last replies get a moment to leave.
        try? commands?.server.socket.set(.linger, 200)
        matchers.stopAll(by: MonotonicClock.now() + 3_000_000_000) { [workers, deviceSearch, librarians, loop] in
            workers.stopAll(by: MonotonicClock.now() + 3_000_000_000) {
                deviceSearch.stop { librarians.stop { loop.stop() } }
            }
        }
    }
}
