import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO
import Logging

/// Acts when the workers have been set to the devices that there are now.
protocol DeviceUpdateObserver: AnyObject {
    /// - Parameter isComplete: false: before the first search has succeeded, there may be more devices.
    func devicesUpdated(isComplete: Bool)
}

/// Searches for devices, and starts and ends workers for those that there are.
final class DeviceUpdater: ProblemReporter {
    weak var observer: (any DeviceUpdateObserver)?
    private let configuration: LiveConfiguration
    private let lifecycle: Lifecycle
    private let directory: RuntimeDirectory
    private let deviceStore: DeviceStore
    private let registry: DeviceRegistry
    private let sources: SourceRegistry
    private let locks: LockService
    private let workers: WorkerSupervisor
    private let deviceSearch: DeviceSearch
    private let hotplug: HotplugWatcher
    private let logger: Logger
    /// Whether there are virtual cameras because there was nothing else at the start.
    private var usesDefaultCameras: Bool?
    /// Nodes that the last search could not read.
    private var unreadable: [String] = []

    init(
        _ configuration: LiveConfiguration, _ lifecycle: Lifecycle, _ directory: RuntimeDirectory,
        _ deviceStore: DeviceStore,
        _ registry: DeviceRegistry, _ sources: SourceRegistry, _ locks: LockService, _ workers: WorkerSupervisor,
        _ deviceSearch: DeviceSearch, _ hotplug: HotplugWatcher, logger: Logger
    ) {
        self.configuration = configuration
        self.lifecycle = lifecycle
        self.directory = directory
        self.deviceStore = deviceStore
        self.registry = registry
        self.sources = sources
        self.locks = locks
        self.workers = workers
        self.deviceSearch = deviceSearch
        self.hotplug = hotplug
        self.logger = logger
        hotplug.search = { [weak self] in self?.search(removed: $0, $1) }
    }

    /// Searches for devices, and starts a worker for each.
    func discover() {
        guard configuration.usesHardware else {
            registry.forgetHardware()
            setDevices()
            return
        }
        hotplug.listen()
        hotplug.demand()
    }

    private func search(removed: Set<String>, _ completion: @escaping (Bool) -> Void) {
        guard !lifecycle.isStopping, configuration.usesHardware else { return completion(true) }
        deviceSearch.run { [weak self] survey in
            guard let self else { return }
            // A search that fails does not mean that the devices are gone.
            if let survey {
                unreadable = (survey.unreadable + survey.unreadableSound).map { "\($0.node): \($0.why)" }
                for node in survey.unreadable + survey.unreadableSound {
                    logger.debug("a node can't be looked at", metadata: ["node": "\(node.node)", "why": "\(node.why)"])
                }
                let configured = configuration.current.aliases
                registry.found(survey) { [locks, directory] uniqueID, id in
                    let id = configured[uniqueID] ?? id
                    return configured[uniqueID] != nil || deviceStore.table[uniqueID]?.alias != nil
                        || locks.table.lock(on: id) != nil || Self.hasWorker(directory.deviceLock(id))
                }
            }
            setDevices(removed: removed)
            completion(survey != nil)
        }
    }

    /// Whether a device has a worker process, perhaps one that an earlier coordinator started.
    private static func hasWorker(_ lockPath: String) -> Bool {
        if case .nobody = LockFile.holder(of: lockPath) { false } else { true }
    }

    /// What the configuration and the command line say of devices.
    var wishes: DeviceRegistry.Wishes {
        let profiles =
            configuration.options.virtualProfiles.isEmpty
            ? configuration.current.virtualProfiles : configuration.options.virtualProfiles
        // Profiles without a number of cameras ask for one camera each.
        let least = profiles.isEmpty ? (usesDefaultCameras == true ? 2 : 0) : profiles.count
        let cameras = configuration.options.virtualCameras ?? configuration.current.virtualCameras ?? least
        return DeviceRegistry.Wishes(
            aliases: configuration.current.aliases, positions: configuration.current.positions, virtualCameras: cameras,
            virtualMicrophones: configuration.options.virtualMicrophones ?? configuration.current.virtualMicrophones
                ?? min(cameras, 1),
            virtualProfiles: profiles,
            others: configuration.replays.map(ManagedDevice.replay)
                + sources.sources.keys.sorted().compactMap { sources.sources[$0].map(ManagedDevice.client) })
    }

    /// Starts, renames and ends workers, so that they are those of the devices that there are now.
    ///
    /// - Returns: false: what is kept under other ids of the devices could not be written yet.
    @discardableResult
    func setDevices(removed: Set<String> = []) -> Bool {
        guard !lifecycle.isStopping else { return true }
        // Before the first search has succeeded, there may be more.
        let isComplete = registry.hasSearched || !configuration.usesHardware
        // Decided once: a camera that comes or goes later takes no other away, and brings none.
        if usesDefaultCameras == nil, isComplete {
            usesDefaultCameras =
                registry.hasNoCamera && configuration.options.configurationPath == nil
                && configuration.options.replays.isEmpty
        }
        registry.dropExcess { [workers, locks] uniqueID in
            guard let worker = workers.worker(of: uniqueID) else { return false }
            return locks.table.lock(on: worker.device.id) != nil || (worker.counters["subscriptions"]?.integer ?? 0) > 0
        }
        let isKept = workers.setDevices(registry.devices(wishes), isComplete: isComplete, removed: removed)
        observer?.devicesUpdated(isComplete: isComplete)
        return isKept
    }

    /// What a person should know about the devices.
    var problems: [Problem] {
        let wishes = wishes
        var problems: [Problem] = []
        if workers.deviceIDs.isEmpty {
            let isSearched = configuration.usesHardware
            problems.append(
                .noDevices(
                    searched: isSearched, unreadable: isSearched ? unreadable : [],
                    configurationPath: configuration.options.configurationPath))
        }
        for (uniqueID, alias) in wishes.aliases.sorted(by: { $0.value < $1.value })
        where !registry.knows(uniqueID, wishes) {
            problems.append(.aliasUnknown(alias, uniqueID))
        }
        return problems + registry.collisions(wishes).map(Problem.idTaken)
    }
}
