import BusProtocol
import BusServer
import CaptureCore
public import CaptureSources
public import Delivery
import Glibc
import JSON
public import LinuxIO
public import Logging
import ZeroMQ

/// The process that owns one device: everything that it is made of, put together.
public final class Worker {
    private let options: WorkerOptions
    private let logger: Logger
    private let loop: Loop
    private let process: DeliveryProcess
    private let access: AccessControl
    private let subscribers: SubscriberService
    private let pool: RenditionPool
    private let thread: DeviceThread<CameraDevice>
    private let frames: FrameRelay
    private let controller: CameraController
    private let exposure: ExposureController
    private let scene: SceneDetector
    private let link: CoordinatorLink
    private let orders: OrderService
    private let lockMemory: LockExpiry
    private let photos: PhotoPipeline
    private let faults: FaultInjector
    private let users: DeviceUsers
    /// Where the device was found at the start.
    private let node: String?
    private var status: StatusReporter?
    private let heartbeatTopic = Topic.heartbeat.bytes
    private var ending: ProcessEnding?
    /// Why it can't go on.
    private var lastWords: BusError?
    /// Whether readers have been notified that it is halted.
    private var wasHalted = false
    private var reportedDescription: DeviceDescription?

    /// How long an end in order may take, milliseconds.
    private static let endLimit: Int64 = 3000

    // A text of another version, or a damaged one, must not keep the camera from working.
    private static func committed(_ options: WorkerOptions, _ logger: Logger) -> CommittedConfiguration? {
        guard let json = options.configuration else { return nil }
        do {
            return try CommittedConfiguration(json: json)
        } catch {
            logger.error(
                "the committed settings of this device can't be read; it starts with its driver's settings",
                metadata: ["problem": "\(error)"])
            return nil
        }
    }

    private static func standIn(_ options: WorkerOptions, _ logger: Logger) -> StandIn? {
        guard let json = options.standIn else { return nil }
        do {
            return try StandIn(json: json)
        } catch {
            logger.error(
                "the device keeps the settings of a photo: the original ones can't be read",
                metadata: ["problem": "\(error)"])
            return nil
        }
    }

    /// Makes everything ready but touches the device not yet. To be called on the thread that then calls ``run()``.
    ///
    /// - Throws: ``StartError``
    public init(_ options: WorkerOptions, source: any VideoSource, logger: Logger) throws(StartError) {
        self.options = options
        let process = try DeliveryProcess(options, logger: logger)
        self.process = process
        let logger = process.logger
        self.logger = logger
        let (context, directory, mediaPath) = (process.context, process.directory, process.mediaPath)
        loop = process.loop
        access = process.access
        let committed = Self.committed(options, logger)
        let standIn = Self.standIn(options, logger)
        do {
            pool = try RenditionPool(loop)
            let zoom = DigitalZoomState(limit: options.maxZoom)
            frames = FrameRelay(
                device: options.device, process.socket, pool,
                PayloadLender(PayloadMemory(budget: options.payloadBudget ?? PayloadMemory.defaultBudget)), zoom)
            subscribers = try SubscriberService(options, process, frames)
            let clock = CallClock()
            let uniqueID = source.identity.uniqueID
            thread = try DeviceThread(
                loop,
                device: CameraDevice(
                    TimedSource(source, clock), device: options.device, committed: committed,
                    standIn: standIn, zoomLimit: options.maxZoom, zoom: zoom),
                clock: clock)
            controller = CameraController(
                device: options.device, loop, thread, frames, idleMilliseconds: options.idleCloseMilliseconds,
                silenceLimitMilliseconds: options.silenceLimitMilliseconds,
                logger: logger)
            exposure = ExposureController(loop, thread, controller, frames.meter, logger: logger)
            scene = SceneDetector(frames.sceneMeter) { [controller] in
                let seconds = controller.snapshot?.values[CameraControlName.exposureDuration.rawValue]?.double
                return seconds.flatMap { $0 > 0 && $0 < 1e6 ? Int64(($0 * 1e9).rounded()) : nil }
            }
            faults = FaultInjector(loop, logger: logger) { [thread] fault, completion in
                thread.perform { camera throws(SourceError) in
                    try camera.source.injectFault(fault)
                } then: { result in
                    completion(result.mapError { BusError($0, device: options.device) })
                }
            }
            link = try CoordinatorLink(
                context, loop, path: directory.workersSocket,
                hello: { link, inDoubt in
                    .hello(
                        device: options.device, uniqueID: uniqueID, mediaPath: mediaPath, link: link, inDoubt: inDoubt)
                },
                graceMilliseconds: options.coordinatorGraceMilliseconds, logger: logger)
            users = try DeviceUsers(loop)
            node = source.identity.node
            orders = OrderService(
                device: options.device, controller, thread, committed: committed, logger: logger,
                reply: { [link] number, result in link.send(.reply(order: number, result)) })
            lockMemory = LockExpiry(
                loop, milliseconds: options.lockMemoryMilliseconds, known: { [orders] in orders.lockFence },
                forget: { [orders] in orders.forgetLock() })
            photos = try PhotoPipeline(
                device: options.device, loop, controller, frames, orders, budget: options.photoBudget, logger: logger)
        } catch {
            throw .failed("\(error)")
        }
        frames.generation = orders.generation
        controller.cache.standIn = standIn
        status = StatusReporter(loop, read: { [unowned self] in currentStatus.json }, send: { [link] in link.send($0) })
        orders.beforeReply = { [weak self] in self?.status?.report() }
        orders.zoom = ZoomController(loop, thread, controller, logger: logger)
        connect()
    }

    /// Runs until an order or a signal ends the worker, or a failure.
    public func run(signals: SignalDescriptor? = nil) -> ProcessEnding {
        if let signals {
            loop.watch(.descriptor(signals.rawValue)) { [weak self] in
                // A hang-up of the terminal is the coordinator's business.
                while let signal = signals.next() { if signal != SIGHUP { self?.end(.inOrder) } }
            }
        }
        loop.eachSecond { [weak self] in
            self?.tick()
            return self != nil
        }
        controller.begin()
        if let script = options.faults { runFaults(script) }
        do {
            try loop.run()
        } catch {
            logger.critical("the loop has failed", metadata: ["error": "\(error)"])
            ending = .failed
        }
        pool.end()
        photos.endThreads()
        // A thread that sits in a driver ends with the process.
        if !thread.isAtWork { thread.end() }
        return ending ?? .failed
    }

    // What a script of another version says must not keep the camera from working.
    private func runFaults(_ script: JSONValue) {
        do {
            try faults.run(script)
        } catch {
            logger.error("the fault script is ignored", metadata: ["problem": "\(error.message)"])
        }
    }

    // MARK: Connections between the parts

    private func connect() {
        subscribers.obstacle = { [weak self] in self?.obstacle }
        subscribers.currentFormat = { [controller, frames] in
            frames.running?.layout.description ?? controller.formatDescription
        }
        subscribers.onDemandChange = { [weak self] in self?.updateDemand() }
        subscribers.onChange = { [weak self] in self?.status?.touch() }
        subscribers.onFailure = { [weak self] why in self?.fail(.failed, why) }
        access.onRefused = { [link] uid, gid, pid in link.send(.refused(uid: uid, gid: gid, pid: pid)) }
        orders.onAdmit = { [weak self] in
            if self?.subscribers.admit($0) == true { self?.controller.restart() }
        }
        controller.onChange = { [weak self] in
            self?.exposure.update()
            self?.photos.update()
            self?.subscribers.formatChanged()
            self?.subscribers.publishFailures()
            self?.status?.touch()
        }
        exposure.onDemandChange = { [weak self] in self?.updateDemand() }
        scene.onChange = { [weak self] in self?.status?.touch() }
        connectPhotos()
        controller.onReported = { [weak self] in self?.orders.learn($0) }
        controller.onOpened = { [weak self] in
            // What was set for it is not set any more.
            self?.photos.interrupt()
            self?.reportDescription()
        }
        controller.onSourceChanged = { [weak self] in self?.tell("sourceChanged", ["resolution": .bool($0)]) }
        controller.cache.onNews = { [weak self] news, cause in self?.tell("controlsChanged", news.json(cause)) }
        thread.onBusy = { [weak self] in self?.status?.touch() }
        thread.onHang = { [weak self] in self?.fail(.deviceHangs, "the driver has hung in a call for too long") }
        orders.onChange = { [weak self] in
            guard let self else { return }
            frames.generation = orders.generation
            frames.setPreRoll(orders.preRoll)
            scene.set(isWatching: orders.watchesScene)
            updateDemand()
            status?.touch()
        }
        orders.onPlugged = { [weak self] facts, isNew in self?.controller.plugged(facts, isNew: isNew) }
        orders.onStop = { [weak self] in self?.end(.inOrder) }
        orders.onFault = { [weak self] in self?.faults.handle($0, $1) }
        faults.isGone = { [weak self] in self?.controller.error?.reason == .deviceDisconnected }
        faults.onPressure = { [weak self] in self?.status?.touch() }
        faults.onPresence = { [weak self] in self?.controller.look() }
        link.inDoubt = { [weak self] in self?.orders.inDoubt ?? [] }
        orders.onWho = { [weak self] in self?.reportUsers($0) }
        link.onOrder = { [weak self] order in self?.received(order) }
        link.onConnected = { [weak self] in self?.connected() }
        link.onDisconnected = { [weak self] in
            self?.orders.abandon()
            self?.photos.abandon()
        }
        link.onAbandoned = { [weak self] in
            self?.logger.warning("no coordinator has connected for too long")
            self?.orders.giveUp { self?.end(.inOrder) }
        }
    }

    private func connectPhotos() {
        frames.onDamageChange = { [weak self] in
            self?.photos.update()
            self?.subscribers.publishFailures()
        }
        photos.onDemandChange = { [weak self] in self?.updateDemand() }
        photos.obstacle = { [weak self] in self?.obstacle }
        photos.onProgress = { [link] job, progress, members, file in
            // Without a coordinator, photos for the library are completed and not reported.
            !link.isConnected || link.send(.photo(job: job, stage: progress, members: members), attachment: file)
        }
        photos.onStandIn = { [weak self] in self?.status?.report() }
        orders.onPhoto = { [weak self] in self?.photos.handle($0, $1) }
        orders.onSetting = { [weak self] in self?.photos.interrupt() }
    }

    private func updateDemand() {
        let wantsFrames =
            orders.isInSession || subscribers.wantsFrames || exposure.wantsFrames || photos.wantsFrames
        controller.demand(isLocked: orders.lockFence != nil, wantsFrames: wantsFrames && !orders.isHalted)
        if orders.isHalted != wasHalted {
            wasHalted = orders.isHalted
            photos.update()
            subscribers.publishFailures()
        }
    }

    // Why there are no frames at all, if so.
    private var obstacle: BusError? {
        if orders.isHalted { return orders.halt }
        return controller.stream == nil ? controller.error : nil
    }

    // MARK: The coordinator

    private func connected() {
        access.forgetReported()
        status?.forget()
        reportedDescription = nil
        status?.report()
        reportDescription()
        lockMemory.connected()
    }

    private func received(_ order: WorkerOrder) {
        if case .lock = order.action { lockMemory.told() }
        orders.handle(order)
    }

    private func reportDescription() {
        // Hundreds of rows, mostly the same as at the opening before.
        guard let description = controller.snapshot?.description, description != reportedDescription else { return }
        reportedDescription = description
        // A described device counts as ready: the coordinator must have its status by then.
        status?.report()
        link.send(.description(description.json))
    }

    // The state first: a client that gets the event finds the change in the state.
    private func tell(_ event: String, _ members: [String: JSONValue]) {
        status?.report()
        link.send(.event(event, members))
    }

    private var currentStatus: DeviceStatus {
        DeviceStatus(
            isOpen: controller.isOpen, stream: controller.stream?.id, memory: controller.stream?.memory,
            snapshot: controller.snapshot, formatDescription: controller.formatDescription,
            generation: orders.generation, busySince: thread.busySince,
            error: lastWords ?? controller.error,
            committed: orders.committed,
            fence: orders.highestFence, priority: controller.cache.priority,
            notRestored: controller.cache.notRestored, standIn: photos.standIn, pressure: faults.pressure,
            isHalted: orders.isHalted,
            zoomRamp: orders.zoom?.ramp ?? .null, scene: scene.json, subscribers: subscribers.counts,
            refused: subscribers.refused, ringBytes: subscribers.ringBytes)
    }

    private func reportUsers(_ answer: @escaping (Result<JSONValue, BusError>) -> Void) {
        let identity = controller.snapshot?.description.identity
        if !users.look(node: identity?.node ?? node, subscribers: subscribers.processes, { answer(.success($0)) }) {
            answer(
                .failure(
                    BusError(
                        .limitExceeded, "Too many requests ask who uses \(options.device); try again in a moment.",
                        ["limit": "userReaders"])))
        }
    }

    // MARK: Once a second

    private func tick() {
        let stream = controller.stream
        subscribers.publish(
            heartbeatTopic,
            JSONValue.object([
                "device": .string(options.device), "stream": (stream?.id).map(JSONValue.string) ?? .null,
                "streaming": .bool(stream != nil), "lastFrame": frames.lastFrame.map(JSONValue.integer) ?? .null,
                "monotonic": .integer(MonotonicClock.now()), "frames": JSONValue(frames.frames),
                "dropped": JSONValue(frames.dropped), "damaged": JSONValue(frames.damaged),
            ]).serialized)
        link.sendBacklog()
        subscribers.remind()
        link.send(.alive(counters))
        subscribers.recount()
    }

    private var counters: JSONValue {
        var renditions: [String: JSONValue] = [:]
        for counter in frames.counters {
            renditions[counter.rendition.description] = [
                "frames": JSONValue(counter.published), "dropped": JSONValue(counter.dropped),
            ]
        }
        let own: [String: JSONValue] = [
            "frames": JSONValue(frames.frames), "dropped": JSONValue(frames.dropped),
            "damaged": JSONValue(frames.damaged), "lost": JSONValue(controller.lost),
            "reportsDelayed": JSONValue(link.delayed), "reportsLost": JSONValue(link.lost),
            "staleOrders": JSONValue(link.stale), "preRollLeftOut": JSONValue(frames.past.leftOut),
            "heldBytes": JSONValue(frames.heldBytes), "time": .integer(MonotonicClock.now()),
            "processorTime": JSONValue(ProcessUsage.processorTime),
            "residentBytes": ProcessUsage.residentBytes.map { JSONValue($0) } ?? .null,
            "renditions": .object(renditions),
        ]
        return .object(own.merging(subscribers.counters) { own, _ in own })
    }

    // MARK: The end

    // Its last words: in the log, and to the coordinator.
    private func fail(_ ending: ProcessEnding, _ why: String) {
        logger.critical("\(why)")
        lastWords = BusError(.workerCrashed, "The worker of \(options.device) ends: \(why).")
        status?.report()
        end(ending, now: true)
    }

    private func end(_ ending: ProcessEnding, now: Bool = false) {
        guard self.ending == nil || now else { return }
        self.ending = ending
        if now { return loop.stop() }
        logger.debug("ending")
        // What is left of the rings counts after the end.
        status?.report()
        loop.schedule(afterMilliseconds: Self.endLimit) { [weak self] in
            self?.logger.error("the device can't be closed in time")
            self?.loop.stop()
        }
        photos.end { [weak self] in
            self?.controller.end { [weak self] in self?.loop.stop() }
        }
    }
}
