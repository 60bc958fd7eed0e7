import BusProtocol
import BusServer
import CaptureCore
import CaptureSources
import JSON
import LinuxIO
import Logging

/// Serves the coordinator's orders to a microphone, one after the other, each with one reply; the loop never waits for
/// one.
final class SoundOrderService: OrderHandler {
    typealias Finish = OrderQueue.Finish

    private let device: String
    private let controller: MicrophoneController
    private let thread: DeviceThread<MicrophoneDevice>
    private let logger: Logger
    private let line: OrderQueue
    private var transactions: TransactionTable<PreparedSound, AppliedSound>
    /// A session runs that wants the device's sound.
    private(set) var isInSession = false
    /// The machine is under too much pressure.
    private(set) var isHalted = false
    private(set) var generation: UInt64
    private(set) var committed: CommittedSound?

    /// Called when any of the above has changed.
    var onChange: (() -> Void)?
    /// The microphone is there, perhaps in another place, perhaps after it has been away.
    var onPlugged: ((_ microphone: MicrophoneFacts, _ isNew: Bool) -> Void)?
    /// Makes the device misbehave, and calls its last argument once.
    var onFault: ((JSONValue, @escaping Finish) -> Void)?
    /// These may come in from now on.
    var onAdmit: ((AccessList) -> Void)?
    /// Finds the users of the device, and calls its argument once.
    var onWho: ((@escaping Finish) -> Void)?
    /// The process is to end.
    var onStop: (() -> Void)?

    init(
        device: String, _ controller: MicrophoneController, _ thread: DeviceThread<MicrophoneDevice>,
        committed: CommittedSound?, logger: Logger, reply: @escaping (UInt64, Result<JSONValue, BusError>) -> Void
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
                changed(order)
            case .unlock:
                line.fences.unlock(order)
                changed(order)
            case .session(let isRunning, _, _):
                isInSession = isRunning
                changed(order)
            case .halt(let isOn):
                isHalted = isOn
                changed(order)
            case .pluggedMicrophone(let facts, let isNew):
                line.reply(order, .success([:]))
                onPlugged?(facts, isNew)
            case .admit(let accessList):
                // In force by the answer.
                onAdmit?(accessList)
                line.reply(order, .success([:]))
            case .stop:
                line.reply(order, .success([:]))
                onStop?()
            case .knownControls: line.reply(order, knownControls)
            case .who: onWho? { [line] in line.reply(order, $0) }
            case .plugged, .cancelZoom, .keepFromLibrary, .dropPhoto: line.reply(order, .success([:]))
            case .preparePhoto, .takePhoto, .publishPhoto:
                throw BusError(
                    .controlUnsupported, "\(device) is a microphone and takes no photos.", ["control": "photo"])
            case .rampZoom: throw BusError(.controlUnsupported, "\(device) is a microphone.", ["control": "zoomValue"])
            case .prepare, .apply, .rollBack, .finish, .readControls, .fault:
                try line.append(order)
            }
        } catch {
            line.reply(order, .failure(error))
        }
    }

    private func changed(_ order: WorkerOrder) {
        onChange?()
        line.reply(order, .success([:]))
    }

    /// The coordinator has ended: its unfinished changes are taken back. A change that includes other devices stays
    /// unchanged until the next coordinator reports the decision: ``inDoubt``.
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

    /// What something that was no order has left behind.
    func learn(_ report: MicrophoneDevice.Report) {
        generation = report.generation
        committed = report.committed
        onChange?()
    }

    // MARK: One after the other

    func willCarryOut(_ order: WorkerOrder) {}

    func didCarryOut() { onChange?() }

    func carryOut(_ order: WorkerOrder, _ finish: @escaping Finish) throws(BusError) {
        switch order.action {
        case .prepare(let id, let change, let path, let mode, let isShared, _):
            try prepare(id, try ConfigurationChange.parse(change, path: path), path, mode, isShared, finish)
        case .apply(let id): try apply(id, order.fence ?? 0, finish)
        case .rollBack(let id):
            if let fence = transactions.newerFence(than: id) { throw line.fences.lost(to: fence) }
            takeBack(id, finish)
        case .finish(let id):
            transactions.finish(id)
            finish(.success([:]))
        case .readControls: readControls(finish)
        case .fault(let json):
            guard let onFault else {
                return finish(.failure(BusError(.internalError, "Only virtual devices can be made to fail.")))
            }
            onFault(json, finish)
        default: finish(.success([:]))
        }
    }

    private func prepare(
        _ id: String, _ change: ConfigurationChange, _ path: String, _ mode: ConfigurationMode, _ isShared: Bool,
        _ finish: @escaping Finish
    ) throws(BusError) {
        try transactions.checkPreparing(id)
        let begun = line.era
        perform(.open) { microphone throws(BusError) in
            try microphone.prepare(change, path: path, mode: mode)
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
        let needsQuiet = controller.snapshot.map(change.needsQuiet) ?? true
        perform(needsQuiet ? .quiet : .open) { microphone throws(BusError) in
            try microphone.apply(change)
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
            let isSame = controller.snapshot?.configuration.format == change.before.format
            // Also where the device can't be reached any more: what was refused must not come into force when it is
            // back.
            thread.perform { microphone in
                microphone.revoke(change)
                return microphone.report
            } then: { [weak self] (revoked: Result<MicrophoneDevice.Report, Never>) in
                self?.perform(isSame ? .open : .quiet) { microphone throws(BusError) in
                    try microphone.rollBack(change)
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
        perform(.open) { microphone throws(BusError) in
            do throws(SourceError) {
                return try microphone.read()
            } catch {
                throw BusError(error, device: device)
            }
        } then: { result in
            finish(result.map(\.controlsJSON))
        }
    }

    // As they were read last: nothing is opened for it.
    private var knownControls: Result<JSONValue, BusError> {
        if let snapshot = controller.snapshot { return .success(snapshot.controlsJSON) }
        return .failure(
            controller.error
                ?? BusError(
                    .deviceDisconnected,
                    "\(device) has not been opened yet; try again in a "
                        + "moment.", ["device": .string(device)]))
    }

    // Gets the device ready, works on it on its thread, and releases it.
    private func perform<Value>(
        _ hold: DeviceLifecycle.Hold, _ work: @escaping (MicrophoneDevice) throws(BusError) -> Value,
        then body: @escaping (Result<Value, BusError>) -> Void
    ) {
        controller.hold(hold) { [weak self] held in
            guard let self else { return }
            if case .failure(let error) = held { return body(.failure(error)) }
            thread.perform { microphone in
                let result = Result { () throws(BusError) in try work(microphone) }
                return (result, microphone.report)
            } then: { [weak self] finished in
                guard let self else { return }
                let (result, report) = finished.get()
                (generation, committed) = (report.generation, report.committed)
                onChange?()
                controller.release(report)
                body(result)
            }
        }
    }
}
