import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO
import Logging
import ZeroMQ

/// The coordinator's side of a device's worker: its process, its reports and its orders.
final class WorkerHandle {
    typealias State = WorkerProcess.State

    /// How a worker is started; the same for all but the device.
    struct Launch {
        var program: String
        var runtimeDirectory: RuntimeDirectory
        var group: String?
        var logLevel: String
        var renditions: Int
        var ringMemory: Int?
        var idleCloseMilliseconds: Int
        var silenceLimitMilliseconds: Int
        var maxZoom: Double
        var connectionsPerUser: Int
        var connections: Int
        /// Scripts of faults, by the id or `uniqueID` of a virtual camera.
        var faults: [String: JSONValue]
    }

    /// Progress of a photo.
    struct PhotoReport {
        let job: String
        let progress: PhotoProgress
        /// With `processed`: {photo}.
        let members: JSONValue
    }

    private struct Order {
        let completion: (Result<JSONValue, BusError>) -> Void
        let timer: Loop.Token
    }

    private(set) var device: ManagedDevice
    private let loop: Loop
    private let logger: Logger
    private let launch: Launch
    private let send: (_ connection: [UInt8], _ order: WorkerOrder) -> Bool
    /// Called when ``status`` or ``description`` has changed.
    private let onChange: (WorkerHandle) -> Void
    /// Changes over several devices that the coordinator before left unfinished, and that the process has not settled
    /// yet: what it has committed may still be taken back.
    var doubts = 0 { didSet { if doubts == 0 { onChange(self) } } }
    var isInDoubt: Bool { doubts > 0 }
    /// The zoom ramp that was ended early by order.
    var endedZoom: ZoomRampOwner?
    /// Called when the worker has said hello, before any order is sent to it.
    private let onHello: (WorkerHandle) -> Void
    /// Called when the process has ended, or has connected anew: it has forgotten what it was asked to get ready.
    private let onLoss: (WorkerHandle) -> Void

    /// The users that a new process admits at its sockets.
    var accessList: (() -> AccessList?)?
    /// Returns the ring memory of earlier workers that still counts: an argument of a new process.
    var ringRemainders: (() -> RingRemainders?)?
    /// Called when the process has ended of which users had so many bytes of rings.
    var onRingsLeft: (([UInt32: Int]) -> Void)?
    /// Bytes of rings that the process has given to each user and that count.
    private var ringBytes: [UInt32: Int] = [:]
    /// Called when a user was turned away.
    var onRefused: ((_ uid: UInt32, _ gid: UInt32, _ pid: Int32) -> Void)?
    /// Gets events of the device.
    var onEvent: ((_ event: String, _ members: [String: JSONValue]) -> Void)?

    /// Gets how far a photo is, with its file if that was asked for and is finished.
    var onPhoto: ((PhotoReport, _ file: Message?) -> Void)?

    /// {formats, controls} as last described; nil before.
    private(set) var description: JSONValue? {
        didSet {
            descriptions += 1
            formats = Self.formats(of: description)
        }
    }
    /// The format table as last described; nil before.
    private(set) var formats: [CaptureFormat]?
    /// How often it has described its device.
    private(set) var descriptions = 0
    private(set) var status: [String: JSONValue] = [:]
    /// The format that the device has; nil: its present worker has not opened it yet.
    var activeFormat: JSONValue? { status["activeFormat"].flatMap { $0.isNull ? nil : $0 } }
    /// What it states about its pictures; null: not known, or it is a microphone.
    var formatDescription: JSONValue { status["formatDescription"] ?? .null }
    private(set) var counters: JSONValue = [:]
    private(set) var mediaPath: String?
    /// What was last committed, to be put back into a new process.
    private(set) var committed: JSONValue?
    /// What is set for a photo and not put back yet, likewise.
    private var standIn: JSONValue? { didSet { if standIn != oldValue { onStandIn?(standIn) } } }
    /// Called when something is set for a photo, or has been put back (nil).
    var onStandIn: ((JSONValue?) -> Void)?

    private var connection: [UInt8]?
    /// The number that the worker gave the connection.
    private var link: UInt64 = 0
    private lazy var process = WorkerProcess(
        loop, program: launch.program, device: device.id, lockPath: launch.runtimeDirectory.deviceLock(device.id),
        logger: logger, arguments: { [weak self] in self?.arguments ?? [] }, onEnd: { [weak self] in self?.ended() },
        onChange: { [weak self] in if let self { onChange(self) } })
    private var orders: [UInt64: Order] = [:]
    private lazy var readers = ReadyQueue(loop)
    private lazy var controls = SharedOrder { [weak self] in self?.order(.readControls, completion: $0) }
    private lazy var zoomEnds = SharedOrder { [weak self] completion in
        guard let self else { return }
        order(.cancelZoom(), fence: zoomFence, completion: completion)
    }
    /// The highest under which zoom ramps were to be ended.
    private var zoomFence: UInt64 = 0
    private lazy var users = SharedOrder { [weak self] in self?.order(.who, completion: $0) }
    private var lastOrder: UInt64 = 0

    /// Orders that may wait at the same time.
    private static let maximumOrders = 256

    /// - Parameters:
    ///   - committed: what is to be put back at the device, as an earlier worker reported it.
    ///   - standIn: what an earlier worker had set for a photo.
    ///   - former: the worker of the same device under another id.
    init(
        _ device: ManagedDevice, committed: JSONValue?, standIn: JSONValue?, former: WorkerHandle? = nil, _ loop: Loop,
        launch: Launch, logger: Logger,
        send: @escaping (_ connection: [UInt8], _ order: WorkerOrder) -> Bool,
        onHello: @escaping (WorkerHandle) -> Void, onLoss: @escaping (WorkerHandle) -> Void,
        onChange: @escaping (WorkerHandle) -> Void
    ) {
        self.device = device
        self.loop = loop
        self.launch = launch
        self.send = send
        self.onHello = onHello
        self.onLoss = onLoss
        self.onChange = onChange
        var logger = logger
        logger[metadataKey: LogKeys.deviceID] = "\(device.id)"
        self.logger = logger
        self.committed = former?.committed ?? committed
        self.standIn = former?.standIn ?? standIn
        guard let former else { return }
        description = former.description
        // Observers are not called from here.
        formats = former.formats
        status = former.status
        forgetPresence()
    }

    /// The device is elsewhere, or has come or gone.
    ///
    /// - Parameter isNew: it has been away, whatever the worker has noticed of that.
    func update(_ device: ManagedDevice, isNew: Bool) {
        guard device != self.device || isNew else { return }
        self.device = device
        tellPlugged(isNew: isNew)
        onChange(self)
    }

    private func tellPlugged(isNew: Bool) {
        guard state == .running, device.isPlugged else { return }
        switch device.source {
        case .camera(let facts): order(.plugged(facts, isNew: isNew))
        case .microphone(let facts): order(.pluggedMicrophone(facts, isNew: isNew))
        case .virtual, .replay, .client, .virtualMicrophone: break
        }
    }

    /// Whether the device can be used, as far as coordinator and worker know.
    var isConnected: Bool { device.isPlugged && status["error"]?["reason"]?.string != "deviceDisconnected" }

    var state: State { process.state }
    var restarts: Int { process.restarts }
    var pid: Int32? { process.pid }
    /// It has been started at least once.
    var hasBegun: Bool { process.hasBegun }
    var isRunning: Bool { state == .running }
    var isStopped: Bool { state == .stopped }
    /// Its process can't be started, or has ended; one that is still being loaded has not failed.
    var hasFailed: Bool { state == .restarting || isStopped }
    var isGone: Bool { process.isGone }

    // MARK: The process

    func start() { process.start() }

    // A client sends frames when it has some.
    private var silenceLimitMilliseconds: Int {
        switch device.source {
        // A program sends when it has something, and films have pauses.
        case .client, .replay: 0
        default: launch.silenceLimitMilliseconds
        }
    }

    private var arguments: [String] {
        var arguments = [
            "--runtime-dir=\(launch.runtimeDirectory.path)", "--log-level=\(launch.logLevel)",
            "--renditions=\(launch.renditions)", "--idle-close-ms=\(launch.idleCloseMilliseconds)",
            "--silence-limit-ms=\(silenceLimitMilliseconds)", "--max-zoom=\(launch.maxZoom)",
            "--connections-per-user=\(launch.connectionsPerUser)", "--connections=\(launch.connections)",
        ]
        if let bytes = launch.ringMemory { arguments += ["--ring-memory=\(bytes)"] }
        if let left = ringRemainders?() { arguments += ["--ring-remainders=\(left.json.description)"] }
        if let group = launch.group { arguments += ["--group=\(group)"] }
        switch device.source {
        case .virtual(let number, let profile):
            arguments += ["--virtual=\(number)"]
            if profile != .plain { arguments += ["--virtual-profile=\(profile.rawValue)"] }
        case .camera(let facts):
            arguments += ["--camera=\(facts.json.description)", "--unique-id=\(device.identity.uniqueID)"]
        case .replay(let replay): arguments += ["--replay=\(replay.json.description)"]
        case .client(let source):
            arguments += [
                "--client=\(source.json.description)", "--push=\(launch.runtimeDirectory.sourceSocket(of: source))",
            ]
        case .virtualMicrophone(let number): arguments += ["--virtual-microphone=\(number)"]
        case .microphone(let facts):
            arguments += ["--microphone=\(facts.json.description)", "--unique-id=\(device.identity.uniqueID)"]
        }
        if hasScript,
            let script = launch.faults[device.id] ?? launch.faults[device.identity.uniqueID]
        {
            arguments += ["--faults=\(script.description)"]
        }
        // It knows before it opens them.
        if let accessList = accessList?() { arguments += ["--access-list=\(accessList.json)"] }
        if let committed { arguments += ["--configuration=\(committed.description)"] }
        if let standIn { arguments += ["--stand-in=\(standIn.description)"] }
        return arguments
    }

    // A replay's faults are injected only.
    private var hasScript: Bool {
        switch device.source {
        case .virtual, .virtualMicrophone: true
        case .camera, .replay, .client, .microphone: false
        }
    }

    private func ended() {
        onRingsLeft?(ringBytes)
        ringBytes = [:]
        connection = nil
        mediaPath = nil
        loseOrders()
        forgetPresence()
    }

    private func loseOrders() {
        let failed = orders.values
        orders = [:]
        for order in failed {
            loop.cancel(order.timer)
            order.completion(.failure(crashed))
        }
        onLoss(self)
    }

    private func forgetPresence() {
        for name in ["isOpen", "isStreaming"] { status[name] = false }
        for name in [
            "stream", "memory", "busySince", "asOf", "kernelPriority", "systemPressureState", "subscribers", "zoomRamp",
            "refused", "scene",
        ] {
            status[name] = .null
        }
    }

    private var unanswered: BusError {
        BusError(
            .workerCrashed, "The worker of \(device.id) did not answer in time; the request may still be carried out.",
            ["device": .string(device.id)])
    }

    /// The error of what it was asked and has not done.
    var crashed: BusError {
        BusError(
            .workerCrashed, "The worker of \(device.id) ended before it was done; it is started again. Try again.",
            ["device": .string(device.id)])
    }

    /// Its device has gone, or has another id now.
    var gone: BusError {
        BusError(
            .deviceDisconnected, "\(device.id) is not connected any more, or has another name.",
            ["device": .string(device.id)])
    }

    /// Orders the worker to end, and kills it at the deadline (monotonic).
    ///
    /// - Parameter error: of what it was asked and has not answered.
    func stop(by deadline: Int64, _ error: BusError) {
        process.stop(by: deadline)
        for order in orders.values { loop.cancel(order.timer) }
        let unanswered = orders.values
        orders = [:]
        for order in unanswered {
            order.completion(.failure(error))
        }
        // It does not get ready any more. Not from within: the devices are being changed.
        loop.schedule(at: 0) { [readers] in readers.tell() }
    }

    // MARK: What it says

    /// A process that holds the device's lock file says hello: it is the worker, whoever started it.
    func greeted(by pid: Int32, connection: [UInt8], mediaPath: String, link: UInt64) {
        guard process.greeted(by: pid) else { return }
        // What was asked over an earlier connection is not answered any more.
        if self.connection != nil { loseOrders() }
        self.connection = connection
        self.link = link
        self.mediaPath = mediaPath
        onHello(self)
        // It may have been started, or left over, before the device went elsewhere.
        tellPlugged(isNew: false)
        onChange(self)
    }

    func isConnection(_ connection: [UInt8]) -> Bool { self.connection == connection }

    /// - Parameter file: a photo's, where it goes with a reply.
    func received(_ report: WorkerReport, file: Message? = nil) {
        process.heard()
        switch report {
        case .hello: break
        case .description(let value):
            description = value
            onChange(self)
        case .status(let value):
            status = value.object ?? [:]
            if let configuration = status["committed"], !configuration.isNull { committed = configuration }
            standIn = status["standIn"].flatMap { $0.isNull ? nil : $0 }
            keepRings(report)
            onChange(self)
        case .event(let name, let members): onEvent?(name, members)
        case .refused(let uid, let gid, let pid): onRefused?(uid, gid, pid)
        case .photo(let job, let progress, let members):
            onPhoto?(PhotoReport(job: job, progress: progress, members: members), file)
        case .alive(let value): counters = value
        case .reply(let number, let result):
            guard let order = orders.removeValue(forKey: number) else { return }
            loop.cancel(order.timer)
            order.completion(result)
        }
    }

    /// Takes from a report only what counts after the process has ended: it is ending.
    func keepRings(_ report: WorkerReport) {
        if case .status(let value) = report { ringBytes = WorkerReport.ringBytes(of: value) }
    }

    // MARK: Orders

    /// Gives an order; the completion is called once.
    ///
    /// - Parameter limit: how long it may take in all, milliseconds.
    func order(
        _ action: WorkerOrder.Action, fence: UInt64? = nil, withinMilliseconds limit: Int64 = WorkerOrder.longest,
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
        let deadline = MonotonicClock.now() + WorkerOrder.patience * 1_000_000
        let order = WorkerOrder(
            number: number, fence: fence, action: action, link: link,
            deadline: action.endsTransaction ? nil : deadline)
        guard send(connection, order) else { return completion(.failure(crashed)) }
        // The worker itself refuses what it can't begin in time; so this is for one that began and doesn't come back.
        let timer = loop.schedule(afterMilliseconds: limit) { [weak self] in
            guard let self, let order = orders.removeValue(forKey: number) else { return }
            order.completion(.failure(unanswered))
        }
        orders[number] = Order(completion: completion, timer: timer)
    }

    /// Reads the controls. Calls during a reading share the next one.
    func readControls(_ completion: @escaping SharedOrder.Completion) {
        if !controls.ask(completion) { completion(.failure(tooMany("controlReaders"))) }
    }

    /// Ends a zoom ramp. Calls during such an order share the next one, so that they count against no limit of orders.
    func cancelZoom(fence: UInt64, _ completion: @escaping SharedOrder.Completion) {
        zoomFence = max(zoomFence, fence)
        if !zoomEnds.ask(completion) { completion(.failure(tooMany("zoomEnds"))) }
    }

    /// Reads the users of the device, likewise.
    func readUsers(_ completion: @escaping SharedOrder.Completion) {
        if !users.ask(completion) { completion(.failure(tooMany("userReaders"))) }
    }

    private func tooMany(_ limit: String) -> BusError {
        BusError(
            .limitExceeded, "Too many commands wait for \(device.id); wait for their answers.",
            ["limit": .string(limit), "maximum": JSONValue(SharedOrder.maximumWaiting)])
    }

    /// Calls the body when the worker runs and has described its device, when the device is taken away, or after so
    /// many milliseconds in any case.
    func whenReady(withinMilliseconds limit: Int64, _ body: @escaping () -> Void) {
        // A call that can't wait gets the worker's present state.
        if isReady || isStopped { body() } else { readers.wait(milliseconds: limit, body) }
    }

    /// To be called after each change: calls the bodies that wait for the worker to be ready.
    func tellIfReady() {
        if isReady { readers.tell() }
    }

    private var isReady: Bool { state == .running && description != nil }
}
