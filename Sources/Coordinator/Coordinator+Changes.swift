import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO
import Logging

/// Passes changes on to the services that they concern, in the order in which clients learn of them.
extension Coordinator: WorkerObserver, DeviceUpdateObserver, SessionObserver, MovieObserver {
    // MARK: Devices

    func deviceChanged(_ device: String, _ worker: WorkerHandle?) {
        guard !lifecycle.isStopping else { return }
        if let worker {
            configurations.remember(worker)
            let change = pressures.update(worker)
            publisher.publish(worker)
            publishPressure(worker, change)
            exposures.changed(worker)
            controls.reviewZoom(worker)
            photos.sceneChanged(device, worker.status["scene"])
        } else {
            photos.forgetScene(device)
            locks.deviceEnded(device)
            events.set("state/device/\(device)", nil)
        }
        pressures.setStreaming(workers.all.values.contains { $0.status["isStreaming"]?.bool ?? false })
        sessions.deviceChanged(device)
        live.reviewAll()
        state.publish()
    }

    func workerLost(_ worker: WorkerHandle) {
        configurations.lost(worker)
        photos.lost(worker)
    }

    func workerGreeted(_ worker: WorkerHandle) {
        admit(worker)
        if let isHalted = pressures.wish(for: worker) { worker.order(.halt(isHalted)) }
        if let lock = locks.table.lock(on: worker.device.id) { worker.order(.lock, fence: lock.fence) }
        sessions.greeted(worker)
    }

    func devicesRenamed(_ names: [(device: String, name: String)]) -> Bool {
        let areKept = [locks.rename(names), sessions.rename(names)]
        photos.rename(names)
        for (device, name) in names { events.event("event/device/\(device)", "renamed", ["to": .string(name)]) }
        return !areKept.contains(false)
    }

    func fenceSeen(_ fence: UInt64) { locks.seen(fence: fence) }

    func devicesUpdated(isComplete: Bool) {
        // Before any device is set for a session whose user has lost permission.
        endUnauthorized()
        if isComplete {
            locks.keepOnly(Set(workers.deviceIDs))
            sessions.devicesKnown()
        }
        publisher.forgetGone()
        rigs.publish()
        let uniqueIDs = Set(workers.all.values.map(\.device.identity.uniqueID))
        if isComplete { exposures.keepOnly(uniqueIDs) }
        pressures.keepOnly(uniqueIDs)
        if isComplete { state.collectProblems() }
        state.publish()
        openCommands()
        reportReadyWhenWorkersAre()
    }

    func lockChanged(_ device: String, _ lock: Lock?, _ fence: UInt64) {
        guard let worker = workers[device] else { return }
        worker.order(lock == nil ? .unlock : .lock, fence: fence)
        controls.reviewZoom(worker)
        guard !lifecycle.isStopping else { return }
        publisher.publish(worker)
        sessions.deviceChanged(device)
    }

    // MARK: Pressure

    func pressureChanged() {
        guard !lifecycle.isStopping else { return }
        state.publish()
        for worker in Array(workers.all.values) { deviceChanged(worker.device.id, worker) }
    }

    /// Publishes a change of a device's pressure. Its state has the change by then.
    private func publishPressure(_ worker: WorkerHandle, _ change: PressureRegistry.Change) {
        let device = worker.device.id
        if let state = change.state {
            events.event("event/device/\(device)", "systemPressureChanged", state.json.object ?? [:])
        }
        guard let isHalted = change.isHalted else { return }
        logger.notice(
            isHalted ? "stopped for system pressure" : "continues after system pressure",
            metadata: [LogKeys.deviceID: "\(device)"])
        worker.order(.halt(isHalted))
        sessions.review(device)
    }

    // MARK: Sessions and movies

    func sessionChanged(_ id: String) {
        movies.sessionChanged(id)
        live.review(id)
        photos.sessionChanged(id)
    }

    func movieAdopted(of owner: LockHolder) { departures.awaitReturn(of: owner) }

    func movieFinished(_ movie: RunningMovie) {
        guard !lifecycle.isStopping else { return }
        movieControls.release(after: movie)
        let isOfTake = takes.finished(movie)
        if movie.result?.reason == .recorderCrashed, !isOfTake { librarians.recover(movie.id) }
    }

    // MARK: Permission

    func permissionChanged() {
        guard !lifecycle.isStopping else { return }
        for worker in workers.all.values { admit(worker) }
        matchers.admit(permission.table.accessList(.video))
        endUnauthorized()
        // Gateways end what they may not pass on any more.
        state.publish()
    }

    /// Sends a worker the list of users that it admits.
    private func admit(_ worker: WorkerHandle) {
        worker.order(.admit(permission.table.accessList(worker.device.identity.authorizationMedia)))
    }

    /// Ends the resources of users without permission to change their devices: locks, waits for locks, sessions,
    /// sources, and whatever they started.
    private func endUnauthorized() {
        locks.endUnauthorized { [access] in access.isUnauthorized($0, $1) }
        sessions.permissionChanged()
        exposures.endUnauthorized { [workers, access] holder, uniqueID in
            workers.worker(of: uniqueID).map { access.isUnauthorized(holder, [$0.device.id]) } ?? false
        }
        for worker in workers.all.values { controls.reviewZoom(worker) }
        movies.review()
        // First photos that may not be taken: they do not fail because of a changed session.
        photos.review()
        live.reviewAll()
        // Photos that were taken before.
        replies.forget { [permission] peer in !permission.mayKeep(uid: peer.uid, gid: peer.gid, .video) }
        sources.deleteUnauthorized { [permission] in !permission.mayChange(uid: $0.uid, gid: $0.gid, .video) }
    }
}
