import BusProtocol
import BusServer
import CaptureCore
import CaptureSources
import JSON
import LinuxIO
import Logging

/// Carries out the coordinator's orders, one after the other, each answered once; the loop never waits for one.
final class OrderDesk {
    private enum Item {
        case order(WorkerOrder)
        /// The coordinator has gone in the midst of a change.
        case abandon(transaction: String)
        /// Something is to be done at the device that is no order: the work calls its argument when it is done.
        case work((@escaping () -> Void) -> Void)
        /// Nothing is left to do before the process ends.
        case end(() -> Void)
    }

    private let device: String
    private let director: DeviceDirector
    private let thread: DeviceThread<DeviceKeeper>
    private let logger: Logger
    private let send: (UInt64, Result<JSONValue, BusError>) -> Void
    /// Called before each answer.
    var beforeReply: (() -> Void)?
    private var queue: [Item] = []
    private var isBusy = false
    /// How often a coordinator has gone: what was begun for one is not answered to the next.
    private var era = 0
    /// A zoom ramp is being begun now.
    private var isBeginningRamp = false
    private var transactions: TransactionLedger<PreparedChange, AppliedChange>
    /// Orders that would change something under a lower fence are refused.
    private(set) var highestFence: UInt64 = 0
    /// The fence of the lock that keeps the device open.
    private(set) var lockFence: UInt64?
    /// A session runs that wants the device's pictures.
    private(set) var isInSession = false
    /// Milliseconds for which they want its pictures to be held.
    private(set) var preRoll = 0
    /// They want to know what the scene wants of a photo.
    private(set) var watchesScene = false
    /// The device is not to stream, whoever wants its pictures: the machine, or it, is under too much pressure.
    private(set) var isHalted = false
    /// That of the last change that was made or taken back.
    private(set) var generation: UInt64
    private(set) var committed: CommittedConfiguration?

    /// Told when ``lockFence``, ``isInSession``, ``preRoll``, ``watchesScene``, ``isHalted``, ``generation`` or ``committed`` has changed.
    var onChange: (() -> Void)?
    /// The camera is there, perhaps in another place, perhaps after it has been away.
    var onPlugged: ((_ camera: CameraFacts, _ isNew: Bool) -> Void)?
    /// Makes the device misbehave, and calls its last argument once.
    var onFault: ((JSONValue, @escaping (Result<JSONValue, BusError>) -> Void) -> Void)?
    /// These may come in from now on.
    var onAdmit: ((DoorList) -> Void)?
    /// The process is to end.
    var onStop: (() -> Void)?
    /// Drives zoom ramps.
    var zoom: ZoomDriver?
    /// Takes photos, and calls its last argument once.
    var onPhoto: ((WorkerOrder.Action, @escaping (Result<JSONValue, BusError>) -> Void) -> Void)?
    /// Told before the device is set by order: whatever stands in there for a moment is to be put back first.
    var onSetting: (() -> Void)?
    /// Looks who uses the device, and calls its argument once.
    var onWho: ((@escaping (Result<JSONValue, BusError>) -> Void) -> Void)?

    private static let maximumQueue = 64

    init(
        device: String, _ director: DeviceDirector, _ thread: DeviceThread<DeviceKeeper>,
        committed: CommittedConfiguration?, logger: Logger,
        reply: @escaping (UInt64, Result<JSONValue, BusError>) -> Void
    ) {
        self.device = device
        self.director = director
        self.thread = thread
        self.committed = committed
        self.logger = logger
        transactions = TransactionLedger(device: device)
        send = reply
        generation = committed?.generation ?? 0
    }

    private func reply(_ order: UInt64, _ result: Result<JSONValue, BusError>) {
        beforeReply?()
        send(order, result)
    }

    func handle(_ order: WorkerOrder) {
        do throws(BusError) {
            try checkFence(order)
            switch order.action {
            case .lock:
                guard let fence = order.fence else { throw BusError.invalidParams("fence", "is needed to lock") }
                highestFence = max(highestFence, fence)
                lockFence = fence
                onChange?()
                reply(order.number, .success([:]))
            case .unlock:
                if order.fence == nil || order.fence == lockFence { lockFence = nil }
                onChange?()
                reply(order.number, .success([:]))
            case .session(let isRunning, let preRoll, let watchesScene):
                isInSession = isRunning
                self.preRoll = isRunning ? preRoll : 0
                self.watchesScene = isRunning && watchesScene
                onChange?()
                reply(order.number, .success([:]))
            case .halt(let isOn):
                isHalted = isOn
                onChange?()
                reply(order.number, .success([:]))
            case .plugged(let facts, let isNew):
                reply(order.number, .success([:]))
                onPlugged?(facts, isNew)
            case .admit(let doors):
                // In force by the answer.
                onAdmit?(doors)
                reply(order.number, .success([:]))
            case .stop:
                reply(order.number, .success([:]))
                onStop?()
            case .pluggedMicrophone: reply(order.number, .success([:]))
            case .cancelZoom: cancelZoom(order)
            case .knownControls: reply(order.number, knownControls)
            case .preparePhoto, .takePhoto, .publishPhoto, .keepFromLibrary, .dropPhoto:
                // Beside the others: a photo waits for its frames while the device is set.
                let begun = era
                onPhoto?(order.action) { [weak self] result in
                    if let self, begun == era { reply(order.number, result) }
                }
            case .who:
                // Beside the others: who has a device is asked most when its driver holds everything else up.
                onWho? { [weak self] result in self?.reply(order.number, result) }
            default:
                // What ends a transaction is always taken: refused, it would leave its traces for good.
                guard order.action.endsTransaction || queue.count < Self.maximumQueue else {
                    throw BusError(
                        .limitExceeded, "Too many orders wait for \(device); wait for their answers.",
                        ["limit": "orders", "maximum": JSONValue(Self.maximumQueue)])
                }
                queue.append(.order(order))
                startNext()
            }
        } catch {
            reply(order.number, .failure(error))
        }
    }

    /// The coordinator has gone: what it had begun and not finished is taken back, so that a change is made on all its devices or on
    /// none. One that other devices have part in stays as it is until the next coordinator says what was decided: ``inDoubt``.
    func abandon() {
        era += 1
        queue.removeAll { if case .order = $0 { true } else { false } }
        for id in transactions.abandon() { takeBackAbandoned(id) }
        if !inDoubt.isEmpty { logger.notice("a change over several devices waits for the next coordinator") }
        startNext()
    }

    /// Transactions over several devices that are applied here, or being applied, and whose end was not told.
    var inDoubt: [String] { transactions.inDoubt }

    /// No coordinator will come: takes back what is in doubt, and calls the body when nothing is left to do.
    func giveUp(then body: @escaping () -> Void) {
        for id in inDoubt where transactions.knows(id) { takeBackAbandoned(id) }
        queue.append(.end(body))
        startNext()
    }

    private func takeBackAbandoned(_ id: String) {
        logger.warning("a change is taken back: the coordinator left it unfinished")
        // Before anything that the next coordinator asks for.
        queue.insert(.abandon(transaction: id), at: 0)
    }

    /// The lock that kept the device open is not known any more.
    func forgetLock() {
        lockFence = nil
        onChange?()
    }

    // MARK: Fences

    private func checkFence(_ order: WorkerOrder) throws(BusError) {
        switch order.action {
        // These end what an earlier fence began; the newest change is checked where it is taken back.
        case .finish, .rollBack, .stop, .readControls, .knownControls, .who, .fault, .session, .halt, .plugged,
            .pluggedMicrophone, .admit, .preparePhoto, .takePhoto, .publishPhoto, .keepFromLibrary, .dropPhoto:
            return
        case .apply where order.fence == nil, .rampZoom where order.fence == nil:
            throw BusError(.lockRequired, "\(device) is only changed under a lock; take one with device.lock.")
        case .prepare, .apply, .lock, .unlock, .rampZoom, .cancelZoom:
            guard let fence = order.fence, fence < highestFence else { return }
            throw lockLost(highestFence)
        }
    }

    /// What readers are told while the device is halted.
    var halt: BusError {
        BusError(
            .interrupted,
            "\(device) was stopped, as it is under too much pressure; its pictures come again when that is over.",
            [
                "device": .string(device),
                "interruption": .string(InterruptionReason.videoDeviceNotAvailableDueToSystemPressure.rawValue),
            ])
    }

    private func lockLost(_ fence: UInt64) -> BusError {
        BusError(
            .lockLost, "The lock on \(device) has ended, and there was a newer one; take a new one with device.lock.",
            ["device": .string(device), "fence": JSONValue(fence)])
    }

    // Whoever gave it has told its client by then that nothing came of it.
    private func checkDeadline(_ order: WorkerOrder) throws(BusError) {
        guard let deadline = order.deadline, !order.action.endsTransaction, MonotonicClock.now() > deadline else {
            return
        }
        throw BusError(
            .limitExceeded, "\(device) was busy with other work for too long, and nothing was done; ask again.",
            ["device": .string(device), "limit": "orderWait", "maximum": JSONValue(WorkerOrder.patience)])
    }

    // MARK: One after the other

    private func startNext() {
        if !isBusy, case .order(let order)? = queue.first, order.action.setsDevice { onSetting?() }
        guard !isBusy, !queue.isEmpty else { return }
        isBusy = true
        switch queue.removeFirst() {
        case .abandon(let id): takeBack(id) { [weak self] _ in self?.done() }
        case .work(let body): body { [weak self] in self?.done() }
        case .end(let body):
            body()
            done()
        case .order(let order):
            let begun = era
            let finish: (Result<JSONValue, BusError>) -> Void = { [weak self] result in
                guard let self else { return }
                // Another coordinator counts its orders anew.
                if begun == era { reply(order.number, result) }
                done()
            }
            do throws(BusError) {
                try checkDeadline(order)
                // While it waited, a newer lock may have come.
                try checkFence(order)
                try carryOut(order, finish)
            } catch {
                finish(.failure(error))
            }
        }
    }

    private func done() {
        isBusy = false
        onChange?()
        startNext()
    }

    private func carryOut(
        _ order: WorkerOrder, _ finish: @escaping (Result<JSONValue, BusError>) -> Void
    ) throws(BusError) {
        switch order.action {
        case .prepare(let id, let change, let path, let mode, let isShared, let isStandIn):
            try prepare(id, change, path, mode, isShared, isStandIn, finish)
        case .apply(let id): try apply(id, order.fence ?? 0, finish)
        case .rollBack(let id):
            if let fence = transactions.newerFence(than: id) { throw lockLost(fence) }
            takeBack(id, finish)
        case .finish(let id):
            transactions.finish(id)
            finish(.success([:]))
        case .readControls: readControls(finish)
        case .rampZoom(let wish, let owner): rampZoom(wish, by: owner, order.fence ?? 0, finish)
        case .cancelZoom: endZoom(order, finish)
        case .fault(let json):
            guard let onFault else { return finish(.failure(BusError(.internalError, "\(device) has no faults."))) }
            onFault(json, finish)
        case .lock, .unlock, .session, .halt, .stop, .knownControls, .who, .plugged, .pluggedMicrophone, .admit,
            .preparePhoto, .takePhoto, .publishPhoto, .keepFromLibrary, .dropPhoto:
            finish(.success([:]))
        }
    }

    private func prepare(
        _ id: String, _ change: JSONValue, _ path: String, _ mode: ConfigurationMode, _ isShared: Bool,
        _ isStandIn: Bool, _ finish: @escaping (Result<JSONValue, BusError>) -> Void
    ) throws(BusError) {
        try transactions.checkPreparing(id)
        let begun = era
        perform(.open) { keeper throws(BusError) in
            try keeper.prepare(change, path: path, mode: mode, isStandIn: isStandIn)
        } then: { [weak self] result in
            // One that was left meanwhile is not known any more.
            if let self, begun == era, case .success(let prepared) = result {
                transactions.prepared(id, prepared, isShared: isShared)
            }
            finish(result.map(\.json))
        }
    }

    private func apply(
        _ id: String, _ fence: UInt64, _ finish: @escaping (Result<JSONValue, BusError>) -> Void
    ) throws(BusError) {
        let (change, isShared) = try transactions.beginApplying(id)
        highestFence = max(highestFence, fence)
        let begun = era
        if let format = change.plan.format, format != director.snapshot?.configuration.format { zoom?.end() }
        let needsQuiet = director.snapshot.map(change.needsQuiet) ?? true
        perform(needsQuiet ? .quiet : .open, sets: change.plan) { keeper throws(BusError) in
            try keeper.apply(change)
        } then: { [weak self] result in
            guard let self else { return }
            let applied = try? result.get()
            transactions.applied(id, applied, fence: fence, isShared: isShared)
            if applied != nil, begun != era, !isShared { takeBackAbandoned(id) }
            finish(result.map(\.json))
        }
    }

    private func takeBack(_ id: String, _ finish: @escaping (Result<JSONValue, BusError>) -> Void) {
        switch transactions.takeBack(id) {
        case .unknown: finish(.failure(.invalidParams("transaction", "this worker knows no '\(id)'")))
        case .nothing: finish(.success([:]))
        case .undo(let change):
            let present = director.snapshot?.configuration
            let isSame =
                present?.format == change.before.format && present?.frameDuration == change.before.frameDuration
            // Also where the device can't be reached any more: what was refused must not come into force when it is back.
            thread.perform { keeper in
                keeper.revoke(change)
                return (keeper.generation, keeper.committed)
            } then: { [weak self] (revoked: Result<(UInt64, CommittedConfiguration?), Never>) in
                self?.perform(isSame ? .open : .quiet, sets: change.plan) { keeper throws(BusError) in
                    try keeper.rollBack(change)
                } then: { [weak self] result in
                    // The frames until now were of the change.
                    if let self { (generation, committed) = revoked.get() }
                    finish(result.map { $0.configuration.json })
                }
            }
        }
    }

    private func readControls(_ finish: @escaping (Result<JSONValue, BusError>) -> Void) {
        let device = device
        perform(.open) { keeper throws(BusError) in
            do throws(SourceError) {
                return try keeper.read()
            } catch {
                throw BusError(error, device: device)
            }
        } then: { result in
            finish(result.map(Self.controls))
        }
    }

    // As they were read last: nothing is opened for it.
    private var knownControls: Result<JSONValue, BusError> {
        if let snapshot = director.snapshot { return .success(Self.controls(snapshot)) }
        return .failure(
            director.error
                ?? BusError(
                    .deviceDisconnected, "\(device) has not been looked at yet.", ["device": .string(device)]))
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
        _ wish: ZoomWish, by owner: JSONValue, _ fence: UInt64,
        _ finish: @escaping (Result<JSONValue, BusError>) -> Void
    ) {
        highestFence = max(highestFence, fence)
        isBeginningRamp = true
        perform(.open) { keeper throws(BusError) in
            try keeper.beginZoom(wish, at: MonotonicClock.now())
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

    // Beside the others, as it needs no room and has no time: only ramps that were asked for before it go first, as it ends them.
    private func cancelZoom(_ order: WorkerOrder) {
        let last = queue.lastIndex {
            if case .order(let other) = $0, case .rampZoom = other.action { true } else { false }
        }
        if let last {
            queue.insert(.order(order), at: last + 1)
        } else if isBeginningRamp {
            queue.insert(.order(order), at: 0)
        } else {
            let begun = era
            endZoom(order) { [weak self] result in
                if let self, begun == era { reply(order.number, result) }
            }
        }
    }

    private func endZoom(_ order: WorkerOrder, _ finish: @escaping (Result<JSONValue, BusError>) -> Void) {
        highestFence = max(highestFence, order.fence ?? 0)
        guard let zoom else { return finish(.success([:])) }
        if case .cancelZoom(let owner) = order.action, !owner.isNull, owner != zoom.ramp {
            return finish(.success([:]))
        }
        zoom.end { finish(.success([:])) }
    }

    /// What something that was no order has left behind.
    func learn(_ report: DeviceKeeper.Report) {
        generation = report.generation
        committed = report.committed
        onChange?()
    }

    // MARK: On the device

    /// Has something done at the device that is no order, before all that waits.
    ///
    /// - Parameter sets: what it is to set.
    func work<Value>(
        _ hold: DeviceLife.Hold, sets plan: ConfigurationPlan? = nil,
        _ work: @escaping (DeviceKeeper) throws(BusError) -> Value,
        then body: @escaping (Result<Value, BusError>) -> Void
    ) {
        let item = Item.work { [weak self] done in
            self?.perform(hold, sets: plan, work) { result in
                body(result)
                done()
            }
        }
        queue.insert(item, at: 0)
        startNext()
    }

    // Gets the device ready, works on it on its thread, and lets go of it.
    private func perform<Value>(
        _ hold: DeviceLife.Hold, sets plan: ConfigurationPlan? = nil,
        _ work: @escaping (DeviceKeeper) throws(BusError) -> Value,
        then body: @escaping (Result<Value, BusError>) -> Void
    ) {
        director.hold(hold) { [weak self] held in
            guard let self else { return }
            if case .failure(let error) = held { return body(.failure(error)) }
            thread.perform { keeper in
                let result = Result { () throws(BusError) in try work(keeper) }
                return (result, keeper.report())
            } then: { [weak self] finished in
                guard let self else { return }
                let (result, report) = finished.get()
                generation = report.generation
                committed = report.committed
                onChange?()
                director.release(report, configured: Set(plan?.controls.map(\.name) ?? []))
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
