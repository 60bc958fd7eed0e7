import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO

/// Acts when clients have changed devices.
protocol ConfigurationObserver: AnyObject {
    /// A client has set devices.
    func controlsSet(_ changes: [(device: String, change: JSONValue, path: String)])
    /// A client has set a device's format under its lock.
    ///
    /// - Returns: false: something that follows from that could not be written yet.
    func configured(_ device: String, _ change: ConfigurationChange, by holder: LockHolder) -> Bool
}

/// Carries out atomic batches: all changes are checked on all devices, then all are made, or none.
final class ConfigurationService {
    /// A batch as it was asked for, its lock proved.
    struct Batch {
        /// One change per device, in the order of the request, with the path that errors name: `changes[0]`.
        var changes: [(device: String, change: JSONValue, path: String)]
        var mode: ConfigurationMode
        var isDryRun: Bool
        var fence: UInt64
        /// Its formats stand in for others that there is no room for, and are not kept.
        var isStandIn = false
    }

    private final class Run {
        let id: String
        let batch: Batch
        var transaction: BatchTransaction
        let completion: Responder

        init(id: String, batch: Batch, completion: @escaping Responder) {
            self.id = id
            self.batch = batch
            self.completion = completion
            transaction = BatchTransaction(devices: batch.changes.map(\.device), dryRun: batch.isDryRun)
        }
    }

    weak var observer: (any ConfigurationObserver)?
    let workers: WorkerSupervisor
    let deviceStore: DeviceStore
    let locks: LockService
    let resolver: DeviceResolver
    let clients: ClientRegistry
    private let lifecycle: Lifecycle
    private let store: RestartStore
    /// Devices whose configuration is being changed now.
    private var busy: Set<String> = []
    private var queue: [Run] = []
    private var running: [Run] = []

    /// Batches that may wait for one device, and for all of them: one slow camera must not cost the others their turn.
    private static let maximumQueue = 64
    private static let maximumQueueOfAll = 1024

    /// How long a change waits for a worker that is just starting, or just coming back to a new coordinator,
    /// milliseconds.
    private static let patience: Int64 = 5000

    init(
        _ lifecycle: Lifecycle, _ store: RestartStore, _ workers: WorkerSupervisor, _ deviceStore: DeviceStore,
        _ locks: LockService, _ resolver: DeviceResolver, _ clients: ClientRegistry
    ) {
        self.lifecycle = lifecycle
        self.store = store
        self.workers = workers
        self.deviceStore = deviceStore
        self.locks = locks
        self.resolver = resolver
        self.clients = clients
    }

    /// Whether the device's configuration is being changed now.
    func isBusy(_ device: String) -> Bool { busy.contains(device) }

    func run(_ batch: Batch, completion: @escaping Responder) {
        let devices = Set(batch.changes.map(\.device))
        let ahead = queue.count { !devices.isDisjoint(with: $0.batch.changes.map(\.device)) }
        guard ahead < Self.maximumQueue, queue.count < Self.maximumQueueOfAll else {
            let message = "Too many configurations wait for their devices; wait for their answers."
            return completion(
                .failure(
                    BusError(
                        .limitExceeded, message,
                        ["limit": "waitingConfigurations", "maximum": JSONValue(Self.maximumQueue)])))
        }
        queue.append(Run(id: hexadecimal(randomBytes(8)), batch: batch, completion: completion))
        startThoseThatCan()
    }

    // In order for each device, and those of different devices at the same time.
    private func startThoseThatCan() {
        var claimed = busy
        var started: [Run] = []
        queue.removeAll { run in
            let devices = run.batch.changes.map(\.device)
            defer { claimed.formUnion(devices) }
            guard claimed.isDisjoint(with: devices) else { return false }
            busy.formUnion(devices)
            started.append(run)
            return true
        }
        running += started
        for run in started { perform(run.transaction.start(), run) }
    }

    /// A worker's process has ended: the next one knows nothing of a change that this one has only checked.
    func lost(_ worker: WorkerHandle) {
        for run in running { perform(run.transaction.ended(worker.device.id, worker.crashed), run) }
    }

    private func perform(_ actions: [BatchTransaction.Action], _ run: Run) {
        for action in actions {
            switch action {
            case .prepare(let device):
                guard let change = run.batch.changes.first(where: { $0.device == device }) else { continue }
                order(
                    run, device,
                    .prepare(
                        transaction: run.id, change: change.change, path: change.path, mode: run.batch.mode,
                        isShared: run.batch.changes.count > 1, isStandIn: run.batch.isStandIn)
                ) { [weak self] result in
                    self?.answered(run, device, result) { $0.prepared(device, result) }
                }
            case .apply(let device):
                order(run, device, .apply(transaction: run.id)) { [weak self] result in
                    self?.answered(run, device, result) { $0.applied(device, result) }
                }
            case .rollBack(let device):
                order(run, device, .rollBack(transaction: run.id)) { [weak self] result in
                    self?.answered(run, device, result) { $0.rolledBack(device, result.map { _ in () }) }
                }
            case .decide: decide(run)
            case .finish(let outcome): finish(run, outcome)
            }
        }
    }

    // A worker that has died can't report what it had done by then. That is not a refusal.
    private func answered(
        _ run: Run, _ device: String, _ result: Result<JSONValue, BusError>,
        _ step: (inout BatchTransaction) -> [BatchTransaction.Action]
    ) {
        if case .failure(let error) = result, error.reason == .workerCrashed {
            perform(run.transaction.lost(device, error), run)
        } else {
            perform(step(&run.transaction), run)
        }
    }

    private func order(
        _ run: Run, _ device: String, _ action: WorkerOrder.Action,
        completion: @escaping (Result<JSONValue, BusError>) -> Void
    ) {
        guard let worker = workers[device] else {
            return completion(.failure(.deviceNotFound(device, known: workers.deviceIDs)))
        }
        let give = { worker.order(action, fence: run.batch.fence, completion: completion) }
        guard case .prepare = action else { return give() }
        // What is prepared after the end of its change, which another device may have refused, would never be over.
        let prepare = { if !run.transaction.isFinished { give() } }
        if worker.state == .starting {
            worker.whenReady(withinMilliseconds: Self.patience, prepare)
        } else {
            prepare()
        }
    }

    // From here on the change stays on all of its devices, whoever dies.
    private func decide(_ run: Run) {
        let isKept = store.decide(run.id)
        let message = "The change could not be kept on the disk and was taken back; see the coordinator's log."
        perform(run.transaction.decided(isKept ? .success(()) : .failure(BusError(.internalError, message))), run)
    }

    // A worker would still take back a change if this process ended now. So each worker confirms before the reply.
    private func finish(_ run: Run, _ outcome: BatchTransaction.Outcome) {
        var awaited = run.batch.changes.count
        for change in run.batch.changes {
            order(run, change.device, .finish(transaction: run.id)) { [weak self] _ in
                awaited -= 1
                if awaited == 0 { self?.end(run, outcome) }
            }
        }
    }

    private func end(_ run: Run, _ outcome: BatchTransaction.Outcome) {
        store.settle(run.id)
        running.removeAll { $0 === run }
        for change in run.batch.changes { busy.remove(change.device) }
        // At the bus's end workers go without taking back what was not decided.
        for change in run.batch.changes where !lifecycle.isStopping {
            if let worker = workers[change.device] { remember(worker) }
        }
        switch outcome {
        case .success(let results): run.completion(.success(reply(run.batch, results)))
        case .failure(let error, _, _, _): run.completion(.failure(outcome.error ?? error))
        }
        startThoseThatCan()
    }

    private func reply(_ batch: Batch, _ results: [String: JSONValue]) -> JSONValue {
        var adjusted: [JSONValue] = []
        var applied: [String: JSONValue] = [:]
        var generation: [String: JSONValue] = [:]
        for change in batch.changes {
            guard var result = results[change.device]?.object else { continue }
            adjusted += result.removeValue(forKey: "adjusted")?.array ?? []
            // After a dry run the device's generation is what it was.
            generation[change.device] =
                result.removeValue(forKey: "generation") ?? workers[change.device]?.status["generation"] ?? 0
            applied[change.device] = .object(result)
        }
        return [
            "verdict": .string(adjusted.isEmpty ? "valid" : "adjusted"), "generation": .object(generation),
            "applied": .object(applied), "adjusted": .array(adjusted),
        ]
    }
}
