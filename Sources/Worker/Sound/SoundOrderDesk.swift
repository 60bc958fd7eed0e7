import BusProtocol
import BusServer
import CaptureCore
import CaptureSources
import JSON
import LinuxIO
import Logging

/// Carries out the coordinator's orders to a microphone, one after the other, each answered once; the loop never waits for one.
final class SoundOrderDesk {
    private enum Item {
        case order(WorkerOrder)
        /// The coordinator has gone in the midst of a change.
        case abandon(transaction: String)
        /// Nothing is left to do before the process ends.
        case end(() -> Void)
    }

    typealias Finish = (Result<JSONValue, BusError>) -> Void

    private let device: String
    private let director: MicrophoneDirector
    private let thread: DeviceThread<MicrophoneKeeper>
    private let logger: Logger
    private let send: (UInt64, Result<JSONValue, BusError>) -> Void
    private var queue: [Item] = []
    private var isBusy = false
    /// How often a coordinator has gone: what was begun for one is not answered to the next.
    private var era = 0
    private var transactions: TransactionLedger<PreparedSound, AppliedSound>
    /// Orders that would change something under a lower fence are refused.
    private(set) var highestFence: UInt64 = 0
    /// The fence of the lock that keeps the device open.
    private(set) var lockFence: UInt64?
    /// A session runs that wants the device's sound.
    private(set) var isInSession = false
    /// The machine is under too much pressure.
    private(set) var isHalted = false
    private(set) var generation: UInt64
    private(set) var committed: CommittedSound?

    /// Called before each answer.
    var beforeReply: (() -> Void)?
    /// Told when something of the above has changed.
    var onChange: (() -> Void)?
    /// The microphone is there, perhaps in another place, perhaps after it has been away.
    var onPlugged: ((_ microphone: MicrophoneFacts, _ isNew: Bool) -> Void)?
    /// Makes the device misbehave, and calls its last argument once.
    var onFault: ((JSONValue, @escaping Finish) -> Void)?
    /// These may come in from now on.
    var onAdmit: ((DoorList) -> Void)?
    /// Looks who uses the device, and calls its argument once.
    var onWho: ((@escaping Finish) -> Void)?
    /// The process is to end.
    var onStop: (() -> Void)?

    private static let maximumQueue = 64

    init(
        device: String, _ director: MicrophoneDirector, _ thread: DeviceThread<MicrophoneKeeper>,
        committed: CommittedSound?, logger: Logger, reply: @escaping (UInt64, Result<JSONValue, BusError>) -> Void
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
                changed(order)
            case .unlock:
                if order.fence == nil || order.fence == lockFence { lockFence = nil }
                changed(order)
            case .session(let isRunning, _, _):
                isInSession = isRunning
                changed(order)
            case .halt(let isOn):
                isHalted = isOn
                changed(order)
            case .pluggedMicrophone(let facts, let isNew):
                reply(order.number, .success([:]))
                onPlugged?(facts, isNew)
            case .admit(let doors):
                // In force by the answer.
                onAdmit?(doors)
                reply(order.number, .success([:]))
            case .stop:
                reply(order.number, .success([:]))
                onStop?()
            case .knownControls: reply(order.number, knownControls)
            case .who: onWho? { [weak self] result in self?.reply(order.number, result) }
            case .plugged, .cancelZoom, .keepFromLibrary, .dropPhoto: reply(order.number, .success([:]))
            case .preparePhoto, .takePhoto, .publishPhoto:
                throw BusError(
                    .controlUnsupported, "\(device) is a microphone and takes no photos.", ["control": "photo"])
            case .rampZoom: throw BusError(.controlUnsupported, "\(device) is a microphone.", ["control": "zoomValue"])
            case .prepare, .apply, .rollBack, .finish, .readControls, .fault:
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

    private func changed(_ order: WorkerOrder) {
        onChange?()
        reply(order.number, .success([:]))
    }

    /// The coordinator has gone: what it had begun and not finished is taken back; what other devices have part in stays as it is until
    /// the next one says what was decided: ``inDoubt``.
    func abandon() {
        era += 1
        queue.removeAll { if case .order = $0 { true } else { false } }
        for id in transactions.abandon() { queue.insert(.abandon(transaction: id), at: 0) }
        startNext()
    }

    /// Transactions over several devices that are applied here, or being applied, and whose end was not told.
    var inDoubt: [String] { transactions.inDoubt }

    /// No coordinator will come: takes back what is in doubt, and calls the body when nothing is left to do.
    func giveUp(then body: @escaping () -> Void) {
        for id in inDoubt where transactions.knows(id) { queue.insert(.abandon(transaction: id), at: 0) }
        queue.append(.end(body))
        startNext()
    }

    /// The lock that kept the device open is not known any more.
    func forgetLock() {
        lockFence = nil
        onChange?()
    }

    /// What something that was no order has left behind.
    func learn(_ report: MicrophoneKeeper.Report) {
        generation = report.generation
        committed = report.committed
        onChange?()
    }

    // MARK: Fences

    private func checkFence(_ order: WorkerOrder) throws(BusError) {
        switch order.action {
        case .apply where order.fence == nil:
            throw BusError(.lockRequired, "\(device) is only changed under a lock; take one with device.lock.")
        case .prepare, .apply, .lock, .unlock:
            guard let fence = order.fence, fence < highestFence else { return }
            throw lockLost(highestFence)
        default: return
        }
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
        guard !isBusy, !queue.isEmpty else { return }
        isBusy = true
        switch queue.removeFirst() {
        case .abandon(let id):
            logger.warning("a change is taken back: the coordinator left it unfinished")
            takeBack(id) { [weak self] _ in self?.done() }
        case .end(let body):
            body()
            done()
        case .order(let order):
            let begun = era
            let finish: Finish = { [weak self] result in
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

    private func carryOut(_ order: WorkerOrder, _ finish: @escaping Finish) throws(BusError) {
        switch order.action {
        case .prepare(let id, let change, let path, let mode, let isShared, _):
            try prepare(id, try ConfigurationChange.parse(change, path: path), path, mode, isShared, finish)
        case .apply(let id): try apply(id, order.fence ?? 0, finish)
        case .rollBack(let id):
            if let fence = transactions.newerFence(than: id) { throw lockLost(fence) }
            takeBack(id, finish)
        case .finish(let id):
            transactions.finish(id)
            finish(.success([:]))
        case .readControls: readControls(finish)
        case .fault(let json):
            guard let onFault else { return finish(.failure(BusError(.internalError, "\(device) has no faults."))) }
            onFault(json, finish)
        default: finish(.success([:]))
        }
    }

    private func prepare(
        _ id: String, _ change: ConfigurationChange, _ path: String, _ mode: ConfigurationMode, _ isShared: Bool,
        _ finish: @escaping Finish
    ) throws(BusError) {
        try transactions.checkPreparing(id)
        let begun = era
        perform(.open) { keeper throws(BusError) in
            try keeper.prepare(change, path: path, mode: mode)
        } then: { [weak self] result in
            // One that was left meanwhile is not known any more.
            if let self, begun == era, case .success(let prepared) = result {
                transactions.prepared(id, prepared, isShared: isShared)
            }
            finish(result.map(\.json))
        }
    }

    private func apply(_ id: String, _ fence: UInt64, _ finish: @escaping Finish) throws(BusError) {
        let (change, isShared) = try transactions.beginApplying(id)
        highestFence = max(highestFence, fence)
        let begun = era
        let needsQuiet = director.snapshot.map(change.needsQuiet) ?? true
        perform(needsQuiet ? .quiet : .open) { keeper throws(BusError) in
            try keeper.apply(change)
        } then: { [weak self] result in
            guard let self else { return }
            let applied = try? result.get()
            transactions.applied(id, applied, fence: fence, isShared: isShared)
            if applied != nil, begun != era, !isShared { queue.insert(.abandon(transaction: id), at: 0) }
            finish(result.map(\.json))
        }
    }

    private func takeBack(_ id: String, _ finish: @escaping Finish) {
        switch transactions.takeBack(id) {
        case .unknown: finish(.failure(.invalidParams("transaction", "this worker knows no '\(id)'")))
        case .nothing: finish(.success([:]))
        case .undo(let change):
            let isSame = director.snapshot?.configuration.format == change.before.format
            // Also where the device can't be reached any more: what was refused must not come into force when it is back.
            thread.perform { keeper in
                keeper.revoke(change)
                return keeper.report
            } then: { [weak self] (revoked: Result<MicrophoneKeeper.Report, Never>) in
                self?.perform(isSame ? .open : .quiet) { keeper throws(BusError) in
                    try keeper.rollBack(change)
                } then: { [weak self] result in
                    if let self, case .failure = result {
                        (generation, committed) = (revoked.get().generation, revoked.get().committed)
                    }
                    finish(result.map { ["activeFormat": $0.activeFormat] })
                }
            }
        }
    }

    private func readControls(_ finish: @escaping Finish) {
        let device = device
        perform(.open) { keeper throws(BusError) in
            do throws(SourceError) {
                return try keeper.read()
            } catch {
                throw BusError(error, device: device)
            }
        } then: { result in
            finish(result.map(\.controlsJSON))
        }
    }

    // As they were read last: nothing is opened for it.
    private var knownControls: Result<JSONValue, BusError> {
        if let snapshot = director.snapshot { return .success(snapshot.controlsJSON) }
        return .failure(
            director.error
                ?? BusError(
                    .deviceDisconnected, "\(device) has not been looked at yet.", ["device": .string(device)]))
    }

    // Gets the device ready, works on it on its thread, and lets go of it.
    private func perform<Value>(
        _ hold: DeviceLife.Hold, _ work: @escaping (MicrophoneKeeper) throws(BusError) -> Value,
        then body: @escaping (Result<Value, BusError>) -> Void
    ) {
        director.hold(hold) { [weak self] held in
            guard let self else { return }
            if case .failure(let error) = held { return body(.failure(error)) }
            thread.perform { keeper in
                let result = Result { () throws(BusError) in try work(keeper) }
                return (result, keeper.report)
            } then: { [weak self] finished in
                guard let self else { return }
                let (result, report) = finished.get()
                (generation, committed) = (report.generation, report.committed)
                onChange?()
                director.release(report)
                body(result)
            }
        }
    }
}
