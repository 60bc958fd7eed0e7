import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO
import Logging

/// Which devices there are, and what is told of them.
extension Coordinator {
    /// Starts a worker for each device that is wanted and there.
    func discoverDevices() {
        guard options.usesHardware, configuration.usesHardware else {
            roster.forgetHardware()
            return setDevices()
        }
        hotplug.listen()
        hotplug.demand()
    }

    func search(removed: Set<String>, _ completion: @escaping (Bool) -> Void) {
        guard !isStopping, options.usesHardware, configuration.usesHardware else { return completion(true) }
        discovery.run { [weak self] survey in
            guard let self else { return }
            // What can't be searched for is not therefore gone.
            if let survey {
                unreadable = (survey.unreadable + survey.unreadableSound).map { "\($0.node): \($0.why)" }
                for node in survey.unreadable + survey.unreadableSound {
                    logger.debug("a node can't be looked at", metadata: ["node": "\(node.node)", "why": "\(node.why)"])
                }
                let configured = configuration.aliases
                roster.found(survey) { [locks, directory] uniqueID, id in
                    let id = configured[uniqueID] ?? id
                    return configured[uniqueID] != nil || books.book[uniqueID]?.alias != nil
                        || locks.table.lock(on: id) != nil || Self.hasWorker(directory.deviceLock(id))
                }
            }
            setDevices(removed: removed)
            completion(survey != nil)
        }
    }

    /// Whether some process is a device's worker, perhaps one that an earlier coordinator started.
    static func hasWorker(_ lockPath: String) -> Bool {
        if case .nobody = LockFile.holder(of: lockPath) { false } else { true }
    }

    /// Those of the command line go first; of two that are called the same, the first is played.
    var replays: [ReplayDescription] {
        let own = Set(options.replays.map(\.uniqueID))
        return options.replays + configuration.replays.filter { !own.contains($0.uniqueID) }
    }

    /// What the configuration and the command line say of devices.
    var wishes: DeviceRegistry.Wishes {
        let profiles = options.virtualProfiles.isEmpty ? configuration.virtualProfiles : options.virtualProfiles
        // Who says what they are like says that they are to be.
        let least = profiles.isEmpty ? (usesDefaultCameras == true ? 2 : 0) : profiles.count
        let cameras = options.virtualCameras ?? configuration.virtualCameras ?? least
        return DeviceRegistry.Wishes(
            aliases: configuration.aliases, positions: configuration.positions, virtualCameras: cameras,
            virtualMicrophones: options.virtualMicrophones ?? configuration.virtualMicrophones ?? min(cameras, 1),
            virtualProfiles: profiles,
            others: replays.map(ManagedDevice.replay)
                + sources.sources.keys.sorted().compactMap { sources.sources[$0].map(ManagedDevice.client) })
    }

    /// Has the fleet know the devices that there are now, under the ids that they have now.
    func setDevices(removed: Set<String> = []) {
        guard !isStopping else { return }
        // Before the first search has succeeded, there may be more.
        let isComplete = roster.hasSearched || !options.usesHardware || !configuration.usesHardware
        // Decided once: a camera that comes or goes later takes no other away, and brings none.
        if usesDefaultCameras == nil, isComplete {
            usesDefaultCameras = roster.hasNoCamera && options.configurationPath == nil && options.replays.isEmpty
        }
        roster.dropExcess { [fleet, locks] uniqueID in
            guard let worker = fleet.worker(of: uniqueID) else { return false }
            return locks.table.lock(on: worker.device.id) != nil || (worker.counters["subscriptions"]?.integer ?? 0) > 0
        }
        fleet.setDevices(roster.devices(wishes), isComplete: isComplete, removed: removed)
        // Before any device is set for a session whose user may not have it any more.
        endUnauthorized()
        if isComplete {
            locks.keepOnly(Set(fleet.deviceIDs))
            sessions.devicesKnown()
        }
        connected = connected.filter { fleet.worker(of: $0.key) != nil }
        rigs.publish()
        let uniqueIDs = Set(fleet.workers.values.map(\.device.identity.uniqueID))
        if isComplete { exposures.keepOnly(uniqueIDs) }
        pressures.keepOnly(uniqueIDs)
        if isComplete { lookForProblems() }
        publishBus()
        openCommands()
        tellReadyWhenWorkersAre()
    }

    func lookForProblems() {
        let (wishes, before) = (wishes, problems)
        problems = []
        if fleet.deviceIDs.isEmpty {
            let isSearched = options.usesHardware && configuration.usesHardware
            problems.append(
                .noDevices(
                    searched: isSearched, unreadable: isSearched ? unreadable : [],
                    configurationPath: options.configurationPath))
        }
        for (uniqueID, alias) in wishes.aliases.sorted(by: { $0.value < $1.value })
        where !roster.knows(uniqueID, wishes) {
            problems.append(.aliasUnknown(alias, uniqueID))
        }
        problems += roster.collisions(wishes).map(Problem.idTaken)
        if let refusal { problems.append(refusal) }
        problems += books.problems + rigs.problems { fleet.workers[$0] != nil }
        if let problem = profiles.problem { problems.append(problem) }
        if let problem = takes.problem { problems.append(problem) }
        problems += permissionKeeper.problems + unknownUsers
        for problem in problems where !before.contains(problem) {
            logger.warning("\(problem.message)", metadata: ["reason": "\(problem.reason.rawValue)"])
        }
    }

    func tellProblems() {
        // The first search has them told.
        guard commands != nil, !isStopping else { return }
        lookForProblems()
        publishBus()
    }

    func renamed(_ names: [(device: String, name: String)]) {
        locks.rename(names)
        sessions.rename(names)
        photos.rename(names)
        for (device, name) in names { events.event("event/device/\(device)", "renamed", ["to": .string(name)]) }
    }

    /// Has the device book hold what the worker has committed, unless it may still be taken back.
    func remember(_ worker: WorkerHandle) {
        guard let committed = worker.committed, !worker.isInDoubt, !desk.isBusy(worker.device.id) else { return }
        let identity = worker.device.identity
        books.change { book in
            book.update(identity.uniqueID, name: identity.localizedName, at: DeviceStore.now) {
                $0.committed = committed
            }
        }
    }

    func tellReadyWhenWorkersAre() {
        let expected = fleet.workers.values.filter(\.device.isPlugged)
        var waiting = expected.count
        guard waiting > 0 else { return tellReady() }
        for worker in expected {
            worker.whenReady(withinMilliseconds: 5000) { [weak self] in
                waiting -= 1
                if waiting == 0 { self?.tellReady() }
            }
        }
    }

    func tellReady() {
        guard !hasToldReady, !isStopping else { return }
        hasToldReady = true
        logger.info(
            "ready",
            metadata: ["runtime_dir": "\(directory.path)", "devices": "\(fleet.deviceIDs.joined(separator: " "))"])
        service.notify("READY=1\nSTATUS=\(fleet.workers.count) devices")
    }

    func feedWatchdog() {
        guard let interval = service.watchdogInterval else { return }
        service.notify("WATCHDOG=1")
        loop.schedule(at: MonotonicClock.now() + interval) { [weak self] in self?.feedWatchdog() }
    }

    func deviceChanged(_ device: String, _ worker: WorkerHandle?) {
        guard !isStopping else { return }
        if let worker {
            remember(worker)
            let change = pressures.update(worker)
            publish(worker)
            tellPressure(worker, change)
            exposures.changed(worker)
            judgeZoom(worker)
            tellScene(device, worker.status["scene"])
        } else {
            scenes[device] = nil
            locks.deviceEnded(device)
            events.set("state/device/\(device)", nil)
        }
        pressures.setStreaming(fleet.workers.values.contains { $0.status["isStreaming"]?.bool ?? false })
        sessions.deviceChanged(device)
        reviewLivePhotos()
        publishBus()
    }

    func publish(_ worker: WorkerHandle) {
        events.set("state/device/\(worker.device.id)", deviceValue(worker))
        let (uniqueID, isConnected) = (worker.device.identity.uniqueID, worker.isConnected)
        let before = connected.updateValue(isConnected, forKey: uniqueID)
        // What is there at the start has not come just now.
        if before != isConnected { rigs.refresh() }
        guard before != isConnected, before != nil || (hasToldReady && isConnected) else { return }
        events.event(
            "event/device/\(worker.device.id)", isConnected ? "connected" : "disconnected",
            ["uniqueID": .string(uniqueID)])
    }

    func publishBus() {
        events.set(
            "state/bus",
            .members([
                "version": .string(Self.version), "epoch": .string(epoch), "started": JSONValue(started),
                "devices": JSONValue(fleet.deviceIDs), "problems": .array(problems.map(\.json)),
                "systemPressureState": pressures.machine?.json, "systemPressureSources": pressures.sources,
            ]))
    }
}
