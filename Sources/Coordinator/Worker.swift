import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO
import Logging
import ZeroMQ

/// A device's worker process as the coordinator sees it: started, watched, given orders, started again.
final class Worker {
    enum State: String {
        case starting, running, restarting, stopped
    }

    /// How a worker is started; the same for all but the device.
    struct Launch {
        var program: String
        var runtimeDirectory: RuntimeDirectory
        var group: String?
        var logLevel: String
        var renditions: Int
        var idleCloseMilliseconds: Int
        var connectionsPerUser: Int
        var connections: Int
    }

    private struct Order {
        let completion: (Result<JSONValue, BusError>) -> Void
        let timer: Loop.Token
    }

    let device: ManagedDevice
    private let loop: Loop
    private let logger: Logger
    private let launch: Launch
    private let send: (_ connection: [UInt8], _ order: WorkerOrder) -> Bool
    /// Told of every change of what ``statusMembers`` and ``description`` say.
    private let onChange: (Worker) -> Void
    /// Told when the worker has said hello, before anything else is sent to it.
    private let onHello: (Worker) -> Void

    /// Told of what happens to the device.
    var onEvent: ((_ event: String, _ members: [String: JSONValue]) -> Void)?

    private(set) var state = State.starting
    private(set) var restarts = 0
    /// {formats, controls} as last described; nil before.
    private(set) var description: JSONValue?
    private(set) var status: [String: JSONValue] = [:]
    private(set) var counters: JSONValue = [:]
    private(set) var mediaPath: String?
    /// What was last committed, to be put back into a new process.
    private(set) var committed: JSONValue?

    private var child: ChildProcess?
    private var childToken: Loop.Token?
    /// The process that said hello: our child, or one that outlived an earlier coordinator.
    private var process: ProcessDescriptor?
    private var processToken: Loop.Token?
    private var connection: [UInt8]?
    private var policy = RestartPolicy()
    private var restartTimer: Loop.Token?
    private var silenceTimer: Loop.Token?
    private var orders: [UInt64: Order] = [:]
    private var readiness: [UInt64: (timer: Loop.Token, body: () -> Void)] = [:]
    private var lastWaiter: UInt64 = 0
    private var controlReaders: [(Result<JSONValue, BusError>) -> Void] = []
    private var isReadingControls = false
    private var lastOrder: UInt64 = 0

    /// A worker that has said nothing for so long hangs, and is killed. A driver may hold its device thread for 10 s, but never its loop.
    private static let silenceLimit: Int64 = 10_000
    /// Orders that may wait at the same time.
    private static let maximumOrders = 256
    /// Requests that may wait for the worker to be ready, and for the controls to be read.
    private static let maximumReaders = 64
    /// How long an order may take, milliseconds: longer than the 10 s after which a worker with a stuck driver ends itself.
    private static let orderLimit: Int64 = 12_000

    init(
        _ device: ManagedDevice, _ loop: Loop, launch: Launch, logger: Logger,
        send: @escaping (_ connection: [UInt8], _ order: WorkerOrder) -> Bool, onHello: @escaping (Worker) -> Void,
        onChange: @escaping (Worker) -> Void
    ) {
        self.device = device
        self.loop = loop
        self.launch = launch
        self.send = send
        self.onHello = onHello
        self.onChange = onChange
        var logger = logger
        logger[metadataKey: LogKeys.deviceID] = "\(device.id)"
        self.logger = logger
    }

    var pid: Int32? { process?.pid ?? child?.process.pid }
    var isRunning: Bool { state == .running }
    var isStopped: Bool { state == .stopped }
    var isGone: Bool { child == nil && process == nil }

    // MARK: The process

    func start() {
        restartTimer = nil
        guard state != .stopped, isGone else { return }
        do {
            let child = try ChildProcess(program: launch.program, arguments: arguments)
            self.child = child
            childToken = loop.watch(.descriptor(child.process.rawValue)) { [weak self] in self?.childEnded() }
            logger.debug("worker started", metadata: [LogKeys.workerPID: "\(child.process.pid)"])
            watchForSilence()
        } catch {
            logger.error("worker can't be started", metadata: ["error": "\(error)"])
            startAgain()
        }
        onChange(self)
    }

    private var arguments: [String] {
        var arguments = [
            "--device", device.id, "--runtime-dir", launch.runtimeDirectory.path, "--log-level", launch.logLevel,
            "--renditions", "\(launch.renditions)", "--idle-close-ms", "\(launch.idleCloseMilliseconds)",
            "--connections-per-user", "\(launch.connectionsPerUser)", "--connections", "\(launch.connections)",
        ]
        if let group = launch.group { arguments += ["--group", group] }
        switch device.source {
        case .virtual(let number): arguments += ["--virtual", "\(number)"]
        case .node(let node): arguments += ["--node", node, "--unique-id", device.identity.uniqueID]
        }
        if let committed { arguments += ["--configuration", committed.description] }
        return arguments
    }

    private func childEnded() {
        guard let child, let ending = child.reap() else { return }
        loop.cancel(childToken)
        childToken = nil
        self.child = nil
        let isKnown = process.map { $0.pid != child.process.pid } ?? false
        if state != .stopped {
            logger.warning(
                "worker ended", metadata: [LogKeys.workerPID: "\(child.process.pid)", "ending": "\(ending)"])
        }
        // Another process serves the device: this child found it taken, and nothing was lost.
        if !isKnown { processEnded() }
    }

    private func processEnded() {
        loop.cancel(processToken)
        processToken = nil
        process = nil
        connection = nil
        mediaPath = nil
        loop.cancel(silenceTimer)
        silenceTimer = nil
        let failed = orders.values
        orders = [:]
        for order in failed {
            loop.cancel(order.timer)
            order.completion(.failure(crashed))
        }
        for name in ["isOpen", "isStreaming"] { status[name] = false }
        for name in ["stream", "busySince", "asOf", "kernelPriority"] { status[name] = .null }
        if state != .stopped { startAgain() }
        onChange(self)
    }

    private func startAgain() {
        state = .restarting
        restarts += 1
        let now = MonotonicClock.now()
        restartTimer = loop.schedule(at: policy.restart(at: now)) { [weak self] in self?.start() }
    }

    private var crashed: BusError {
        BusError(
            .workerCrashed, "The worker of \(device.id) ended before it answered; it is started again. Ask again.",
            ["device": .string(device.id)])
    }

    /// Ends the worker in order: it is told to, and killed at the deadline (monotonic).
    func stop(by deadline: Int64) {
        state = .stopped
        loop.cancel(restartTimer)
        loop.cancel(silenceTimer)
        for order in orders.values { loop.cancel(order.timer) }
        let unanswered = orders.values
        orders = [:]
        for order in unanswered {
            order.completion(.failure(BusError(.shuttingDown, "The bus is shutting down; ask again when it is back.")))
        }
        process?.send(15)
        child?.process.send(15)
        loop.schedule(at: deadline) { [weak self] in
            self?.process?.send(9)
            self?.child?.process.send(9)
        }
    }

    // A hang of the worker's own loop shows as silence; a signal that can't be ignored ends it.
    private func watchForSilence() {
        loop.cancel(silenceTimer)
        silenceTimer = loop.schedule(afterMilliseconds: Self.silenceLimit) { [weak self] in
            guard let self else { return }
            logger.error("worker is silent and is killed", metadata: [LogKeys.workerPID: "\(pid ?? 0)"])
            process?.send(9)
            child?.process.send(9)
        }
    }

    // MARK: What it says

    /// A process that holds the device's lock file says hello: it is the worker, whoever started it.
    func greeted(by pid: Int32, connection: [UInt8], mediaPath: String) {
        if process?.pid != pid {
            guard let process = try? ProcessDescriptor(pid: pid) else { return }
            loop.cancel(processToken)
            self.process = process
            // Our own child is watched, and reaped, as such.
            if child?.process.pid != pid {
                processToken = loop.watch(.descriptor(process.rawValue)) { [weak self] in self?.processEnded() }
            }
        }
        self.connection = connection
        self.mediaPath = mediaPath
        policy.started(at: MonotonicClock.now())
        if state != .stopped { state = .running }
        watchForSilence()
        onHello(self)
        onChange(self)
    }

    func isConnection(_ connection: [UInt8]) -> Bool { self.connection == connection }

    func received(_ report: WorkerReport) {
        if state == .running { watchForSilence() }
        switch report {
        case .hello: break
        case .description(let value):
            description = value
            onChange(self)
        case .status(let value):
            status = value.object ?? [:]
            if let configuration = status["committed"], !configuration.isNull { committed = configuration }
            onChange(self)
        case .event(let name, let members): onEvent?(name, members)
        case .alive(let value): counters = value
        case .reply(let number, let result):
            guard let order = orders.removeValue(forKey: number) else { return }
            loop.cancel(order.timer)
            order.completion(result)
        }
    }

    // MARK: Orders

    /// Gives an order; the completion is called once.
    func order(
        _ action: WorkerOrder.Action, fence: UInt64? = nil,
        completion: @escaping (Result<JSONValue, BusError>) -> Void = { _ in }
    ) {
        guard state == .running, let connection else { return completion(.failure(crashed)) }
        guard action.endsTransaction || orders.count < Self.maximumOrders else {
            return completion(
                .failure(
                    BusError(
                        .limitExceeded, "Too many commands wait for \(device.id); wait for their answers.",
                        ["limit": "ordersPerDevice", "maximum": JSONValue(Self.maximumOrders)])))
        }
        lastOrder += 1
        let number = lastOrder
        guard send(connection, WorkerOrder(number: number, fence: fence, action: action)) else {
            return completion(.failure(crashed))
        }
        let timer = loop.schedule(afterMilliseconds: Self.orderLimit) { [weak self] in
            guard let self, let order = orders.removeValue(forKey: number) else { return }
            order.completion(.failure(crashed))
        }
        orders[number] = Order(completion: completion, timer: timer)
    }

    /// Reads the controls; those who ask while they are being read share the next reading.
    func readControls(_ completion: @escaping (Result<JSONValue, BusError>) -> Void) {
        guard controlReaders.count < Self.maximumReaders else { return completion(.failure(tooMany("controlReaders"))) }
        controlReaders.append(completion)
        readControlsIfIdle()
    }

    private func readControlsIfIdle() {
        guard !isReadingControls, !controlReaders.isEmpty else { return }
        isReadingControls = true
        let readers = controlReaders
        controlReaders = []
        order(.readControls) { [weak self] result in
            self?.isReadingControls = false
            for reader in readers { reader(result) }
            self?.readControlsIfIdle()
        }
    }

    private func tooMany(_ limit: String) -> BusError {
        BusError(
            .limitExceeded, "Too many commands wait for \(device.id); wait for their answers.",
            ["limit": .string(limit), "maximum": JSONValue(Self.maximumReaders)])
    }

    /// Calls the body when the worker runs and has described its device, or after so many milliseconds in any case.
    func whenReady(withinMilliseconds limit: Int64, _ body: @escaping () -> Void) {
        // Beyond the limit nobody waits: the body finds the worker as it is.
        guard state != .running || description == nil, readiness.count < Self.maximumReaders else { return body() }
        lastWaiter += 1
        let number = lastWaiter
        let timer = loop.schedule(afterMilliseconds: limit) { [weak self] in
            self?.readiness.removeValue(forKey: number)?.body()
        }
        readiness[number] = (timer, body)
    }

    /// To be called after each change: lets those go on who wait for the worker to be ready.
    func tellIfReady() {
        guard state == .running, description != nil, !readiness.isEmpty else { return }
        let waiting = readiness
        readiness = [:]
        for number in waiting.keys.sorted() {
            loop.cancel(waiting[number]?.timer)
            waiting[number]?.body()
        }
    }
}
