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

/// The process that owns one microphone: everything that it is made of, put together. What ``Worker`` is for a camera.
public final class MicrophoneWorker {
    private let options: WorkerOptions
    private let process: DeliveryProcess
    private let logger: Logger
    private let loop: Loop
    private let socket: MediaSocket
    private let rings: RingSocket<SoundRendition>
    private let errors: ErrorPublisher
    private let thread: DeviceThread<MicrophoneDevice>
    private let controller: MicrophoneController
    private let orders: SoundOrderService
    private let lockMemory: LockExpiry
    private let faults: FaultInjector
    private let link: CoordinatorLink
    private let users: DeviceUsers
    private let node: String?
    private var status: StatusReporter?
    private var table: SoundSubscriptionTable
    private let heartbeatTopic = Topic.heartbeat.bytes
    private var ending: ProcessEnding?
    /// Why it can't go on.
    private var lastWords: BusError?
    private var reportedDescription: JSONValue?
    private var overruns: OverrunReporter?
    /// Whether readers have been notified that it is halted.
    private var wasHalted = false

    /// Messages that wait for a slow subscriber: of sound nothing is to be lost for a moment's pause, and a second of
    /// it is little.
    private static let waitingMessages = 100
    /// How long an end in order may take, milliseconds.
    private static let endLimit: Int64 = 3000

    /// Makes everything ready but touches the microphone not yet. To be called on the thread that then calls
    /// ``run(signals:)``.
    ///
    /// - Throws: ``StartError``
    public init(_ options: WorkerOptions, source: any AudioSource, logger: Logger) throws(StartError) {
        self.options = options
        let process = try DeliveryProcess(options, waitingMessages: Self.waitingMessages, logger: logger)
        self.process = process
        let logger = process.logger
        self.logger = logger
        let (device, loop, mediaPath) = (options.device, process.loop, process.mediaPath)
        self.loop = loop
        socket = process.socket
        errors = process.errors
        table = SoundSubscriptionTable(device: device, maximumRenditions: options.renditions)
        let committed = Self.committed(options, logger)
        let identity = source.identity
        node = identity.node
        do {
            rings = try RingSocket(
                loop, path: process.directory.ringSocket(device), mode: process.mode, group: process.group,
                perUser: options.connectionsPerUser, total: options.connections, budget: options.ringBudget,
                options.ringRemainders,
                unauthorized: BusError(
                    .unauthorized,
                    "This user has no permission for this microphone. authorization.status says why; 'camerabus ask "
                        + "audio --reason TEXT' requests it.",
                    ["status": "denied", "needed": "audio"]))
            let clock = CallClock()
            let thread = try DeviceThread(
                loop, device: MicrophoneDevice(TimedAudioSource(source, clock), device: device, committed: committed),
                clock: clock)
            self.thread = thread
            controller = MicrophoneController(options, loop, thread, socket, logger: logger)
            faults = FaultInjector(loop, logger: logger) { fault, completion in
                thread.perform { microphone throws(SourceError) in
                    try microphone.source.injectFault(fault)
                } then: { result in
                    completion(result.mapError { BusError($0, device: device) })
                }
            }
            let link = try CoordinatorLink(
                process.context, loop, path: process.directory.workersSocket,
                hello: { link, inDoubt in
                    .hello(
                        device: device, uniqueID: identity.uniqueID, mediaPath: mediaPath, link: link,
                        inDoubt: inDoubt)
                },
                graceMilliseconds: options.coordinatorGraceMilliseconds, logger: logger)
            self.link = link
            users = try DeviceUsers(loop)
            orders = SoundOrderService(
                device: device, controller, thread, committed: committed, logger: logger,
                reply: { number, result in link.send(.reply(order: number, result)) })
            lockMemory = LockExpiry(
                loop, milliseconds: options.lockMemoryMilliseconds, known: { [orders] in orders.lockFence },
                forget: { [orders] in orders.forgetLock() })
        } catch {
            throw .failed("\(error)")
        }
        controller.generation = orders.generation
        status = StatusReporter(loop, read: { [unowned self] in currentStatus }, send: { [link] in link.send($0) })
        overruns = OverrunReporter(
            loop, count: { [controller] in controller.counts.overruns }, tell: { [weak self] in self?.reportOverrun() })
        orders.beforeReply = { [weak self] in self?.status?.report() }
        connect()
    }

    // A text of another version, or a damaged one, must not keep the microphone from working.
    private static func committed(_ options: WorkerOptions, _ logger: Logger) -> CommittedSound? {
        guard let json = options.configuration else { return nil }
        do {
            return try CommittedSound(json: json)
        } catch {
            logger.error(
                "the committed settings of this device can't be read; it starts with its driver's settings",
                metadata: ["problem": "\(error)"])
            return nil
        }
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
        // A thread that sits in a driver ends with the process.
        if !thread.isAtWork { thread.end() }
        return ending ?? .failed
    }

    // What a script of another version says must not keep the microphone from working.
    private func runFaults(_ script: JSONValue) {
        do {
            try faults.run(script)
        } catch {
            logger.error("the fault script is ignored", metadata: ["problem": "\(error.message)"])
        }
    }

    // MARK: Connections between the parts

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
        errors.onFailure = { [weak self] in self?.fail(.failed, "errors can't be sent: \($0)") }
        process.access.onRefused = { [link] uid, gid, pid in link.send(.refused(uid: uid, gid: gid, pid: pid)) }
        orders.onAdmit = { [weak self] list in
            guard let self else { return }
            // Users that lost permission lose their connections, and keep the memory that they have.
            process.connections.shutDown(where: process.access.change(list))
            let access = process.access
            for (rendition, ring) in rings.expel(unless: { access.admits(uid: $0, gid: $1) }) {
                controller.stream?.remakeRing(rendition, ring)
            }
        }
        connectRings()
        connectDirector()
        connectDesk()
        link.inDoubt = { [weak self] in self?.orders.inDoubt ?? [] }
        link.onOrder = { [weak self] in self?.received($0) }
        link.onConnected = { [weak self] in self?.connected() }
        link.onDisconnected = { [weak self] in self?.orders.abandon() }
        link.onAbandoned = { [weak self] in
            self?.logger.warning("no coordinator has connected for too long")
            self?.orders.giveUp { self?.end(.inOrder) }
        }
    }

    private func connectRings() {
        rings.admits = { [access = process.access] peer in access.admit(uid: peer.uid, gid: peer.gid, pid: peer.pid) }
        rings.form = { text throws(BusError) in try SoundRendition(parsing: text) }
        rings.onRequest = { [weak self] rendition, client in
            guard let self else { return }
            handle(table.wantRing(rendition, by: client))
            rings.setFailures(ringFailures)
        }
        rings.onUse = { [weak self] in self?.status?.touch() }
        rings.onLeave = { [weak self] rendition, client in
            guard let self else { return }
            handle(table.unwantRing(rendition, by: client))
        }
        controller.onRing = { [weak self] rendition, ring in
            if let ring { self?.rings.offer(rendition, ring) } else { self?.rings.withdraw(rendition) }
        }
    }

    private func connectDirector() {
        controller.onChange = { [weak self] in
            self?.publishFailures()
            self?.status?.touch()
        }
        controller.onReported = { [weak self] in self?.orders.learn($0) }
        controller.onOpened = { [weak self] in self?.reportDescription() }
        controller.onControls = { [weak self] news in
            let controls = news.mapValues { values -> JSONValue in
                ["old": values.old?.json ?? .null, "new": values.new?.json ?? .null]
            }
            self?.tell("controlsChanged", ["cause": "external", "controls": .object(controls)])
        }
        controller.onOverrun = { [weak self] _, _ in self?.overruns?.note() }
        controller.onFailure = { [weak self] in self?.fail(.failed, $0) }
        thread.onBusy = { [weak self] in self?.status?.touch() }
        thread.onHang = { [weak self] in self?.fail(.deviceHangs, "the driver has hung in a call for too long") }
    }

    private func connectDesk() {
        orders.onChange = { [weak self] in
            guard let self else { return }
            controller.generation = orders.generation
            updateDemand()
            status?.touch()
        }
        orders.onPlugged = { [weak self] facts, isNew in self?.controller.plugged(facts, isNew: isNew) }
        orders.onStop = { [weak self] in self?.end(.inOrder) }
        orders.onFault = { [weak self] in self?.faults.handle($0, $1) }
        orders.onWho = { [weak self] in self?.reportUsers($0) }
        faults.isGone = { [weak self] in self?.controller.error?.reason == .deviceDisconnected }
        faults.onPressure = { [weak self] in self?.status?.touch() }
        faults.onPresence = { [weak self] in self?.controller.look() }
    }

    private func updateDemand() {
        let wantsSound = orders.isInSession || !table.isEmpty
        controller.demand(isLocked: orders.lockFence != nil, wantsSound: wantsSound && !orders.isHalted, table)
        if orders.isHalted != wasHalted {
            wasHalted = orders.isHalted
            publishFailures()
        }
    }

    // MARK: Subscribers

    private func subscribed(_ topic: [UInt8], _ client: RenditionClient, _ isFirst: Bool) {
        let before = table.refusal(of: topic)
        handle(table.subscribe(topic, by: client))
        guard !isFirst else { return }
        status?.touch()
        guard let refused = table.refusal(of: topic) else { return errors.publishAgain(topic) }
        if before != nil { errors.publish(refused.topic, refused.error) }
    }

    private func handle(_ change: SubscriptionChange) {
        if change == .wanted { changeWanted() }
        let refusals = table.takeRefusals()
        guard !refusals.isEmpty else { return }
        for (topic, error) in refusals { errors.publish(topic, error) }
        status?.touch()
    }

    private func changeWanted() {
        updateDemand()
        publishFailures()
        status?.touch()
    }

    // Why there is no sound at all, if so.
    private var obstacle: BusError? {
        let halt = BusError(
            .interrupted,
            "\(options.device) was stopped because the system pressure is too high; it starts again when the pressure "
                + "falls.",
            [
                "device": .string(options.device),
                "interruption": .string(InterruptionReason.videoDeviceNotAvailableDueToSystemPressure.rawValue),
            ])
        return orders.isHalted ? halt : controller.stream == nil ? controller.error : nil
    }

    // Why there is none, or not in the form in which it is wanted, if so.
    private var failures: [ErrorPublisher.Refusal] {
        guard let obstacle else { return controller.stream?.failures ?? [] }
        return table.wanted.map { ($0, obstacle) }
    }

    private var ringFailures: [(rendition: SoundRendition, error: BusError)] {
        guard let obstacle else { return table.refusedRings + (controller.stream?.ringFailures ?? []) }
        return table.refusedRings + table.rings.map { ($0, obstacle) }
    }

    private func publishFailures() {
        errors.setFailures(failures)
        rings.setFailures(ringFailures)
    }

    private func publish(_ topic: [UInt8], _ header: [UInt8]) {
        do {
            try socket.publish(topic: topic, header)
        } catch {
            fail(.failed, "nothing can be published: \(error)")
        }
    }

    // MARK: The coordinator

    private func connected() {
        process.access.forgetReported()
        status?.forget()
        reportedDescription = nil
        reportDescription()
        status?.touch()
        lockMemory.connected()
    }

    private func received(_ order: WorkerOrder) {
        if case .lock = order.action { lockMemory.told() }
        orders.handle(order)
    }

    private func reportDescription() {
        guard let description = controller.snapshot?.description.json, description != reportedDescription else {
            return
        }
        reportedDescription = description
        // A described device counts as ready: the coordinator must have its status by then.
        status?.report()
        link.send(.description(description))
    }

    // The state first: a client that gets the event finds the change in the state.
    private func tell(_ event: String, _ members: [String: JSONValue]) {
        status?.report()
        link.send(.event(event, members))
    }

    private func reportOverrun() {
        let counts = controller.counts
        logger.warning(
            "sound was lost: it was not read in time",
            metadata: ["overruns": "\(counts.overruns)", "frames": "\(counts.lostFrames)"])
        tell(
            "overrun",
            [
                "stream": controller.stream.map { .string($0.id) } ?? .null,
                "overruns": JSONValue(controller.stream?.overruns ?? 0),
                "lostFrames": JSONValue(controller.stream?.lostFrames ?? 0),
            ])
    }

    private var currentStatus: JSONValue {
        let snapshot = controller.snapshot
        return [
            "isOpen": .bool(controller.isOpen), "isStreaming": .bool(controller.stream != nil),
            "stream": (controller.stream?.id).map(JSONValue.string) ?? .null, "memory": .null,
            "activeFormat": snapshot?.activeFormat ?? .null, "frameDuration": .null, "frameRate": .null,
            "generation": JSONValue(orders.generation),
            "controls": .object(snapshot?.configuration.controls.mapValues(\.json) ?? [:]), "supports": [:],
            "dataSources": .array(snapshot?.description.dataSources.map(\.json) ?? []),
            "asOf": (snapshot?.asOf).map(JSONValue.integer) ?? .null,
            "busySince": thread.busySince.map(JSONValue.integer) ?? .null,
            "error": (lastWords ?? controller.error)?.headerJSON ?? .null,
            "committed": orders.committed?.json ?? .null, "fence": JSONValue(orders.highestFence),
            "kernelPriority": controller.isOpen ? "unsupported" : .null,
            "notRestored": .array(controller.notRestored.map(\.json)), "systemPressureState": faults.pressure.json,
            "isHalted": .bool(orders.isHalted), "zoomRamp": .null, "subscribers": [:],
            "rings": WorkerReport.rings(rings.used),
            "refused": .object(
                Dictionary(table.refusedRenditions.map { ($0.rendition.description, .string($0.error.message)) }) {
                    first, _ in
                    first
                }),
        ]
    }

    private func reportUsers(_ answer: @escaping (Result<JSONValue, BusError>) -> Void) {
        let device = options.device
        let subscribers = DeviceUsers.subscribers(
            socket.subscriptions, readers: rings.readers, device: device)
        let node = controller.snapshot?.description.identity.node ?? node
        guard !users.look(node: node, subscribers: subscribers, { answer(.success($0)) }) else { return }
        answer(
            .failure(
                BusError(
                    .limitExceeded, "Too many requests ask who uses \(device); try again in a moment.",
                    ["limit": "userReaders"])))
    }

    // MARK: Once a second

    private func tick() {
        let (stream, counts) = (controller.stream, controller.counts)
        publish(
            heartbeatTopic,
            JSONValue.object([
                "device": .string(options.device), "stream": (stream?.id).map(JSONValue.string) ?? .null,
                "streaming": .bool(stream != nil),
                "lastFrame": (stream?.lastPeriod).map(JSONValue.integer) ?? .null,
                "monotonic": .integer(MonotonicClock.now()), "frames": JSONValue(counts.frames),
                "overruns": JSONValue(counts.overruns), "lostFrames": JSONValue(counts.lostFrames),
            ]).serialized)
        errors.publishAll(table.refused + failures)
        controller.stream?.retryRings()
        rings.setFailures(ringFailures)
        rings.sweep()
        link.sendBacklog()
        link.send(.alive(counters))
        status?.touch()
    }

    private var counters: JSONValue {
        let counts = controller.counts
        return [
            "frames": JSONValue(counts.frames), "dropped": 0, "lost": JSONValue(counts.lostFrames),
            "overruns": JSONValue(counts.overruns), "subscriptions": JSONValue(table.count),
            "ignoredSubscriptions": JSONValue(table.ignored + socket.ignored),
            "connections": JSONValue(process.connections.count),
            "connectionsCutOff": JSONValue(Context.connectionsCutOff), "reportsDelayed": JSONValue(link.delayed),
            "reportsLost": JSONValue(link.lost), "staleOrders": JSONValue(link.stale),
            "readers": JSONValue(
                DeviceUsers.readers(socket.subscriptions, readers: rings.readers, device: options.device)),
            "refused": JSONValue(process.access.refused), "ringReaders": JSONValue(rings.count),
            "ringReadersCut": JSONValue(rings.cutCount), "time": .integer(MonotonicClock.now()),
            "processorTime": JSONValue(ProcessUsage.processorTime),
            "residentBytes": ProcessUsage.residentBytes.map { JSONValue($0) } ?? .null,
        ]
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
        controller.end { [weak self] in self?.loop.stop() }
    }
}
