import BusProtocol
import BusServer
import CaptureCore
import JSON

/// `device.rename`
extension DeviceService {
    func rename(_ call: Call, _ respond: @escaping Responder) {
        resolver.withWorker(call, respond) { [weak self] worker in
            guard let self else { return }
            let alias = call.string("name").flatMap { $0.isEmpty ? nil : $0 }
            let uniqueID = worker.device.identity.uniqueID
            do throws(BusError) {
                try checkAlias(alias, of: worker.device, for: call.caller)
                if let token = call.string("lock") {
                    let lock = try locks.authorize(token: token, devices: [worker.device.id])
                    if configurations.isBusy(worker.device.id) {
                        throw LockTable.Refusal.busy(device: worker.device.id, holder: lock.holder, queue: 0).error()
                    }
                    return rename(uniqueID, to: alias, respond)
                }
            } catch {
                return respond(.failure(error))
            }
            locks.withTransientLock(on: [worker.device.id], for: clients.holder(call.caller), then: respond) {
                [weak self] _, done in
                self?.rename(uniqueID, to: alias, done)
            }
        }
    }

    private func checkAlias(
        _ alias: String?, of device: ManagedDevice, for caller: Caller
    ) throws(BusError) {
        let uniqueID = device.identity.uniqueID
        if let configured = configuration.current.aliases[uniqueID] {
            throw .invalidParams(
                "name", "\(device.id) has its name '\(configured)' from the configuration file; change it there")
        }
        guard let alias else { return }
        guard DeviceID.isValid(alias) else {
            throw .invalidParams("name", "must be \(DeviceID.form)")
        }
        guard !rigs.isRig(alias) else { throw .invalidParams("name", "'\(alias)' is the name of a rig") }
        let wishes = updater.wishes
        guard !ClientSource.isSource(uniqueID) else {
            if let keeper = registry.keeper(of: alias, wishes) {
                throw .invalidParams(
                    "name",
                    "'\(alias)' is, or was, the name of \(keeper.name) (\(keeper.uniqueID)), so a client's device "
                        + "cannot take it; choose another name")
            }
            return try checkFree(alias, for: uniqueID, wishes)
        }
        if let owner = registry.owner(of: alias, wishes), ClientSource.isSource(owner),
            !wishes.aliases.values.contains(alias)
        {
            // It gets another id. Whose one was that has gone is not known.
            let source = sources.sources[owner]
            if source?.owner.uid != caller.peer.uid, !permission.isAdmin(caller) {
                let whose = source.map { "is the name of a device of \($0.owner.name) (pid \($0.owner.pid))" }
                throw .invalidParams(
                    "name",
                    "'\(alias)' \(whose ?? "was the name of a client's device"); an administrator can give it to "
                        + device.id)
            }
        } else {
            try checkFree(alias, for: uniqueID, wishes)
        }
        let ids = deviceStore.table[uniqueID]?.ids ?? []
        guard ids.contains(alias) || ids.count < DeviceTable.maximumIDs || permission.isAdmin(caller) else {
            throw BusError(
                .limitExceeded,
                "\(device.id) has had \(ids.count) names, which are kept for it; choose one of these, or ask an "
                    + "administrator to rename it.",
                ["limit": "names", "maximum": JSONValue(DeviceTable.maximumIDs)])
        }
    }

    private func checkFree(
        _ alias: String, for uniqueID: String, _ wishes: DeviceRegistry.Wishes
    ) throws(BusError) {
        if let owner = registry.owner(of: alias, wishes), owner != uniqueID {
            throw .invalidParams("name", "'\(alias)' is the name of another device (\(owner))")
        }
    }

    private func rename(_ uniqueID: String, to alias: String?, _ respond: @escaping Responder) {
        deviceStore.change { table in
            table.update(uniqueID, name: "", at: DeviceStore.now) { $0.alias = alias }
        }
        let areUsersKept = updater.setDevices()
        deviceStore.save { [weak self] isNameKept in
            let isKept = isNameKept && areUsersKept
            guard let self, let worker = workers.worker(of: uniqueID) else {
                return respond(.failure(BusError(.deviceNotFound, "The device was disconnected while it was renamed.")))
            }
            // The next request with the new id finds it ready, unless the new process takes long to load.
            worker.whenReady(withinMilliseconds: worker.device.isPlugged ? WorkerHandle.patience : 0) { [weak self] in
                guard let self else { return }
                // The name is kept, but nothing serves the device under it, as where the runtime directory is full.
                if worker.device.isPlugged, worker.hasFailed { return respond(.failure(worker.notReady)) }
                let result: JSONValue = ["device": publisher.value(of: worker)]
                respond(.success(result.marked(isKept: isKept)))
            }
        }
    }
}
