import BusProtocol
import BusServer
import CaptureCore
import CaptureSources
import JSON
import LinuxIO
import Logging

/// Serves the coordinator's orders to a camera, one after the other, each with one reply; the loop never waits for one.
final class OrderService: OrderHandler {
    typealias Finish = OrderQueue.Finish

    private let device: String
    private let controller: CameraController
    private let thread: DeviceThread<CameraDevice>
    private let logger: Logger
    private let line: OrderQueue
    /// A zoom ramp is being begun now.
    private var isBeginningRamp = false
    private var transactions: TransactionTable<PreparedChange, AppliedChange>
    /// A session runs that wants the device's pictures.
    private(set) var isInSession = false
    /// Milliseconds for which they want its pictures to be held.
    private(set) var preRoll = 0
    /// They want to know what the scene wants of a photo.
    private(set) var watchesScene = false
    /// The device must not stream, even if frames are wanted: the machine, or the device, is under too much pressure.
    private(set) var isHalted = false
    /// That of the last change that was made or taken back.
    private(set) var generation: UInt64
    private(set) var committed: CommittedConfiguration?

    /// Called when ``lockFence``, ``isInSession``, ``preRoll``, ``watchesScene``, ``isHalted``, ``generation`` or
    /// ``committed`` has changed.
    var onChange: (() -> Void)?
    /// The camera is there, perhaps in another place, perhaps after it has been away.
    var onPlugged: ((_ camera: CameraFacts, _ isNew: Bool) -> Void)?
    /// Makes the device misbehave, and calls its last argument once.
    var onFault: ((JSONValue, @escaping Finish) -> Void)?
    /// These may come in from now on.
    var onAdmit: ((AccessList) -> Void)?
    /// The process is to end.
    var onStop: (() -> Void)?
    /// Drives zoom ramps.
    var zoom: ZoomController?
    /// Takes photos, and calls its last argument once.
    var onPhoto: ((WorkerOrder.Action, @escaping Finish) -> Void)?
    /// Called before an order sets the device: what was set for a photo is to be restored first.
    var onSetting: (() -> Void)?
    /// Finds the users of the device, and calls its argument once.
    var onWho: ((@escaping Finish) -> Void)?

    init(
        device: String, _ controller: CameraController, _ thread: DeviceThread<CameraDevice>,
        committed: CommittedConfiguration?, logger: Logger,
        reply: @escaping (UInt64, Result<JSONValue, BusError>) -> Void
    ) {
        self.device = device
        self.controller = controller
        self.thread = thread
        self.committed = committed
        self.logger = logger
        transactions = TransactionTable(device: device)
        line = OrderQueue(device: device, logger: logger, send: reply)
        generation = committed?.generation ?? 0
        line.carrier = self
    }

    /// Called before each answer.
    var beforeReply: (() -> Void)? {
        get { line.beforeReply }
        set { line.beforeReply = newValue }
    }

    /// Orders that would change something under a lower fence are refused.
    var highestFence: UInt64 { line.fences.highest }

    /// The fence of the lock that keeps the device open.
    var lockFence: UInt64? { line.fences.ofLock }

    func handle(_ order: WorkerOrder) {
        do throws(BusError) {
            try line.fences.check(order)
            switch order.action {
            case .lock:
                try line.fences.lock(order)
                onChange?()
                line.reply(order, .success([:]))
            case .unlock:
                line.fences.unlock(order)
                onChange?()
                line.reply(order, .success([:]))
            case .session(let isRunning, let preRoll, let watchesScene):
                isInSession = isRunning
                self.preRoll = isRunning ? preRoll : 0
                self.watchesScene = isRunning && watchesScene
                onChange?()
                line.reply(order, .success([:]))
            case .halt(let isOn):
                isHalted = isOn
                onChange?()
                line.reply(order, .success([:]))
            case .plugged(let facts, let isNew):
                line.reply(order, .success([:]))
                onPlugged?(facts, isNew)
            case .admit(let accessList):
                // In force by the answer.
                onAdmit?(accessList)
                line.reply(order, .success([:]))
            case .stop:
                line.reply(order, .success([:]))
                onStop?()
            case .pluggedMicrophone: line.reply(order, .success([:]))
            case .cancelZoom: cancelZoom(order)
            case .knownControls: line.reply(order, knownControls)
            case .preparePhoto, .takePhoto, .publishPhoto, .keepFromLibrary, .dropPhoto:
                // Beside the others: a photo waits for its frames while the device is set.
                onPhoto?(order.action, line.answer(order))
            case .who:
                // Outside of the queue: clients ask for the users of a device mostly when its driver blocks everything
                // else.
                onWho? { [line] in line.reply(order, $0) }
            default:
                try line.append(order)
            }
        } catch {
            line.reply(order, .failure(error))
        }
    }

    /// The coordinator has ended: its unfinished changes are taken back, so that a change is made on all its devices or
    /// on none. A change that includes other devices stays unchanged until the next coordinator reports the decision:
    /// ``inDoubt``.
    func abandon() {
        line.abandon(transactions.abandon())
        if !inDoubt.isEmpty { logger.notice("a change over several devices waits for the next coordinator") }
    }

    /// Transactions over several devices that are applied here, or being applied, and whose end was not ordered.
    var inDoubt: [String] { transactions.inDoubt }

    /// No coordinator will come: takes back what is in doubt, and calls the body when nothing is left to do.
    func giveUp(then body: @escaping () -> Void) {
        line.giveUp(inDoubt.filter { transactions.knows($0) }, then: body)
    }

    /// The lock that kept the device open is not known any more.
    func forgetLock() {
        line.fences.forgetLock()
        onChange?()
    }

    /// The error that readers get while the device is halted.
    var halt: BusError {
        BusError(
            .interrupted,
            "\(device) was stopped because the system pressure is too high; it starts again when the pressure falls.",
            [
                "device": .string(device),
                "interruption": .string(InterruptionReason.videoDeviceNotAvailableDueToSystemPressure.rawValue),
            ])
    }

    // MARK: One after the other

    func willCarryOut(_ order: WorkerOrder) {
        if order.action.setsDevice { onSetting?() }
    }

    func didCarryOut() { onChange?() }

    func carryOut(_ order: WorkerOrder, _ finish: @escaping Finish) throws(BusError) {
        switch order.action {
        case .prepare(let id, let change, let path, let mode, let isShared, let isStandIn):
            try prepare(id, change, path, mode, isShared, isStandIn, finish)
        case .apply(let id): try apply(id, order.fence ?? 0, finish)
        case .rollBack(let id):
            if let fence = transactions.newerFence(than: id) { throw line.fences.lost(to: fence) }
            takeBack(id, finish)
        case .finish(let id):
            transactions.finish(id)
            finish(.success([:]))
        case .readControls: readControls(finish)
        case .rampZoom(let wish, let owner): rampZoom(wish, by: owner, order.fence ?? 0, finish)
        case .cancelZoom: endZoom(order, finish)
        case .fault(let json):
            guard let onFault else {
                return finish(.failure(BusError(.internalError, "Only virtual devices can be made to fail.")))
            }
            onFault(json, finish)
        case .lock, .unlock, .session, .halt, .stop, .knownControls, .who, .plugged, .pluggedMicrophone, .admit,
            .preparePhoto, .takePhoto, .publishPhoto, .keepFromLibrary, .dropPhoto:
            finish(.success([:]))
        }
    }

    private func prepare(
        _ id: String, _ change: JSONValue, _ path: String, _ mode: ConfigurationMode, _ isShared: Bool,
        _ isStandIn: Bool, _ finish: @escaping Finish
    ) throws(BusError) {
        try transactions.checkPreparing(id)
        let begun = line.era
        perform(.open) { camera throws(BusError) in
            try camera.prepare(change, path: path, mode: mode, isStandIn: isStandIn)
        } then: { [weak self] result in
            // One that was left meanwhile is not known any more.
            if let self, begun == line.era, case .success(let prepared) = result {
                transactions.prepared(id, prepared, isShared: isShared)
            }
            finish(result.map(\.json))
        }
    }

    private func apply(_ id: String, _ fence: UInt64, _ finish: @escaping Finish) throws(BusError) {
        let (change, isShared) = try transactions.beginApplying(id)
        line.fences.raise(to: fence)
        let begun = line.era
        if let format = change.plan.format, format != controller.snapshot?.configuration.format { zoom?.end() }
        let needsQuiet = controller.snapshot.map(change.needsQuiet) ?? true
        perform(needsQuiet ? .quiet : .open, sets: change.plan) { camera throws(BusError) in
            try camera.apply(change)
        } then: { [weak self] result in
            guard let self else { return }
            let applied = try? result.get()
            transactions.applied(id, applied, fence: fence, isShared: isShared)
            if applied != nil, begun != line.era, !isShared { line.takeBack(id) }
            finish(result.map(\.json))
        }
    }

    func takeBack(_ id: String, _ finish: @escaping Finish) {
        switch transactions.takeBack(id) {
        case .unknown: finish(.failure(transactions.unknown))
        case .nothing: finish(.success([:]))
        case .undo(let change):
            let present = controller.snapshot?.configuration
            let isSame =
                present?.format == change.before.format && present?.frameDuration == change.before.frameDuration
            // Also where the device can't be reached any more: what was refused must not come into force when it is
            // back.
            thread.perform { camera in
                camera.revoke(change)
                return (camera.generation, camera.committed)
            } then: { [weak self] (revoked: Result<(UInt64, CommittedConfiguration?), Never>) in
                self?.perform(isSame ? .open : .quiet, sets: change.plan) { camera throws(BusError) in
                    try camera.rollBack(change)
                } then: { [weak self] result in
                    // The frames until now were of the change.
                    if let self { (generation, committed) = revoked.get() }
                    finish(result.map { $0.configuration.json })
                }
            }
        }
    }

    private func readControls(_ finish: @escaping Finish) {
        let device = device
        perform(.open) { camera throws(BusError) in
            do throws(SourceError) {
                return try camera.read()
            } catch {
                throw BusError(error, device: device)
            }
        } then: { result in
            finish(result.map(Self.controls))
        }
    }

    // As they were read last: nothing is opened for it.
    private var knownControls: Result<JSONValue, BusError> {
        if let snapshot = controller.snapshot { return .success(Self.controls(snapshot)) }
        return .failure(
            controller.error
                ?? BusError(
                    .deviceDisconnected,
                    "\(device) has not been opened yet; try again in a "
                        + "moment.", ["device": .string(device)]))
    }

    private static func controls(_ snapshot: DeviceSnapshot) -> JSONValue {
        let values = snapshot.configuration.controls
        let camera = snapshot.values
        return [
            "controls": .array(snapshot.description.controls.map { $0.json(value: values[$0.name]) }),
            "cameraControls": .array(
                snapshot.cameraControls.controls.map { $0.json(value: camera[$0.name.rawValue]) }),
            "supports": snapshot.cameraControls.supports, "asOf": .integer(snapshot.asOf),
        ]
    }

    private func rampZoom(
        _ wish: ZoomRequest, by owner: JSONValue, _ fence: UInt64,
        _ finish: @escaping Finish
    ) {
        line.fences.raise(to: fence)
        isBeginningRamp = true
        perform(.open) { camera throws(BusError) in
            try camera.beginZoom(wish, at: MonotonicClock.now())
        } then: { [weak self] result in
            self?.isBeginningRamp = false
            guard case .success(let course) = result else { return finish(result.map { _ in [:] }) }
            self?.transactions.raiseFence(to: fence)
            self?.zoom?.begin(course, by: owner)
            finish(
                .success([
                    "generation": JSONValue(course.generation), "from": JSONValue(course.ramp.from),
                    "to": JSONValue(course.ramp.to), "rate": JSONValue(course.ramp.rate),
                    "milliseconds": JSONValue(course.ramp.duration / 1_000_000),
                ]))
        }
    }

    // Beside the others, as it needs no room and has no time: only ramps that were asked for before it go first, as it
    // ends them.
    private func cancelZoom(_ order: WorkerOrder) {
        let isAmongThem = line.insert(order, behindLast: { if case .rampZoom = $0 { true } else { false } })
        guard !isAmongThem else { return }
        if isBeginningRamp { line.insertNext(order) } else { endZoom(order, line.answer(order)) }
    }

    private func endZoom(_ order: WorkerOrder, _ finish: @escaping Finish) {
        line.fences.raise(to: order.fence ?? 0)
        guard let zoom else { return finish(.success([:])) }
        if case .cancelZoom(let owner) = order.action, !owner.isNull, owner != zoom.ramp {
            return finish(.success([:]))
        }
        zoom.end { finish(.success([:])) }
    }

    /// What something that was no order has left behind.
    func learn(_ report: CameraDevice.Report) {
        generation = report.generation
        committed = report.committed
        onChange?()
    }

    // MARK: On the device

    /// Has something done at the device that is no order, before all that waits.
    ///
    /// - Parameter sets: what it is to set.
    func work<Value>(
        _ hold: DeviceLifecycle.Hold, sets plan: ConfigurationPlan? = nil,
        _ work: @escaping (CameraDevice) throws(BusError) -> Value,
        then body: @escaping (Result<Value, BusError>) -> Void
    ) {
        line.work { [weak self] done in
            self?.perform(hold, sets: plan, work) { result in
                body(result)
                done()
            }
        }
    }

    // Gets the device ready, works on it on its thread, and releases it.
    private func perform<Value>(
        _ hold: DeviceLifecycle.Hold, sets plan: ConfigurationPlan? = nil,
        _ work: @escaping (CameraDevice) throws(BusError) -> Value,
        then body: @escaping (Result<Value, BusError>) -> Void
    ) {
        controller.hold(hold) { [weak self] held in
            guard let self else { return }
            if case .failure(let error) = held { return body(.failure(error)) }
            thread.perform { camera in
                let result = Result { () throws(BusError) in try work(camera) }
                return (result, camera.report())
            } then: { [weak self] finished in
                guard let self else { return }
                let (result, report) = finished.get()
                generation = report.generation
                committed = report.committed
                onChange?()
                controller.release(report, configured: Set(plan?.controls.map(\.name) ?? []))
                body(result)
            }
        }
    }
}

extension WorkerOrder.Action {
    /// It sets the device, or is about to: what it finds set is what it goes by.
    fileprivate var setsDevice: Bool {
        switch self {
        case .prepare, .apply, .rollBack, .rampZoom: true
        default: false
        }
    }
}
