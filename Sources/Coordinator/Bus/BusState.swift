import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO
import Logging

/// Publishes `state/bus/`: the bus, its devices, its problems and the machine's pressure.
final class BusState {
    static let version = "0.1.0"

    let epoch: String
    private let started = MonotonicClock.now()
    private let lifecycle: Lifecycle
    private let events: EventSocket
    private let workers: WorkerSupervisor
    private let pressures: PressureRegistry
    private let permission: AuthorizationService
    private let logger: Logger
    /// In the order in which their problems are published.
    private let reporters: [any ProblemReporter]
    private var problems: [Problem] = []

    init(
        epoch: String, _ lifecycle: Lifecycle, _ events: EventSocket, _ workers: WorkerSupervisor,
        _ pressures: PressureRegistry, _ permission: AuthorizationService, _ reporters: [any ProblemReporter],
        logger: Logger
    ) {
        self.epoch = epoch
        self.lifecycle = lifecycle
        self.events = events
        self.workers = workers
        self.pressures = pressures
        self.permission = permission
        self.reporters = reporters
        self.logger = logger
    }

    /// Collects the problems, and logs those that are new.
    func collectProblems() {
        let before = problems
        problems = reporters.flatMap(\.problems)
        for problem in problems where !before.contains(problem) {
            logger.warning("\(problem.message)", metadata: ["reason": "\(problem.reason.rawValue)"])
        }
    }

    /// Some problems may have changed.
    func problemsChanged() {
        // Problems are published first when the first search has ended.
        guard lifecycle.isServing, !lifecycle.isStopping else { return }
        collectProblems()
        publish()
    }

    func publish() {
        events.set(
            "state/bus",
            .members([
                "version": .string(Self.version), "epoch": .string(epoch), "started": JSONValue(started),
                "devices": JSONValue(workers.deviceIDs), "problems": .array(problems.map(\.json)),
                "remote": permission.remotePermission.json, "systemPressureState": pressures.machine?.json,
                "systemPressureSources": pressures.sources,
            ]))
    }
}
