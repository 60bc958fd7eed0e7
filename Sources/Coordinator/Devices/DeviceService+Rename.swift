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
                try checkAlias(alias, of: worker.device)
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

    private func checkAlias(_ alias: String?, of device: ManagedDevice) throws(BusError) {
        if let configured = configuration.current.aliases[device.identity.uniqueID] {
            throw .invalidParams(
                "name", "\(device.id) has its name '\(configured)' from the configuration file; change it there")
        }
        guard let alias else { return }
        guard DeviceID.isValid(alias) else {
            throw .invalidParams("name", "must be \(DeviceID.form)")
        }
        guard !rigs.isRig(alias) else { throw .invalidParams("name", "'\(alias)' is the name of a rig") }
        if let owner = registry.owner(of: alias, updater.wishes), owner != device.identity.uniqueID {
            throw .invalidParams("name", "'\(alias)' is the name of another device (\(owner))")
        }
    }

    private func rename(_ uniqueID: String, to alias: String?, _ respond: @escaping Responder) {
        deviceStore.change { table in
            table.update(uniqueID, name: "", at: DeviceStore.now) { $0.alias = alias }
        }
        updater.setDevices()
        deviceStore.save { [weak self] isKept in
            guard let self, let worker = workers.worker(of: uniqueID) else {
                return respond(.failure(BusError(.deviceNotFound, "The device was disconnected while it was renamed.")))
            }
            // The next request with the new id finds it ready.
            worker.whenReady(withinMilliseconds: worker.device.isPlugged ? WorkerHandle.patience : 0) { [weak self] in
                guard let self else { return }
                let result: JSONValue = ["device": publisher.value(of: worker)]
                respond(.success(result.marked(isKept: isKept)))
            }
        }
    }
}
