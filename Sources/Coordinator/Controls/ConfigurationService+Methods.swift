import BusProtocol
import BusServer
import CaptureCore
import JSON

/// `device.configure`, `set`, and changes that other services make.
extension ConfigurationService: MethodService {
    var methods: [String: Handler] { ["device.configure": .plain(configure), "device.set": .plain(set)] }

    private func configure(_ call: Call, _ respond: @escaping Responder) {
        do throws(BusError) {
            let changes = call.params["changes"]?.array ?? []
            var batch = Batch(
                changes: [], mode: call.string("mode").flatMap(ConfigurationMode.init) ?? .exact,
                isDryRun: call.params["dryRun"]?.bool ?? false, fence: 0)
            for (index, change) in changes.enumerated() {
                let path = "changes[\(index)]"
                let name = try ConfigurationChange.parse(change, path: path).device
                for device in try resolver.devices(named: name) {
                    guard !batch.changes.contains(where: { $0.device == device }) else {
                        throw BusError.invalidParams(
                            "\(path).device", "\(device) is named twice; put its changes together")
                    }
                    var members = change.object ?? [:]
                    members["device"] = .string(device)
                    batch.changes.append((device, .object(members), path))
                }
            }
            let lock = try locks.authorize(token: call.string("lock"), devices: batch.changes.map(\.device))
            batch.fence = lock.fence
            carryOut(batch) { [weak self, batch] result in
                guard let self, !batch.isDryRun, case .success(let value) = result else { return respond(result) }
                let isKept = noteFormats(of: lock.holder, batch.changes)
                observer?.controlsSet(batch.changes)
                respond(.success(value.marked(isKept: isKept)))
            }
        } catch {
            respond(.failure(error))
        }
    }

    private func set(_ call: Call, _ respond: @escaping Responder) {
        resolver.withWorker(call, respond) { [weak self] worker in
            guard let self else { return }
            let change = JSONValue.members(["device": call.params["device"], "controls": call.params["controls"]])
            let batch = Batch(
                changes: [(worker.device.id, change, "")], mode: .exact, isDryRun: false, fence: 0)
            carryOut(batch, token: call.string("lock"), call, respond)
        }
    }

    /// Carries out a batch under the lock that the token proves, or under a lock for just this call.
    func carryOut(
        _ batch: Batch, token: String?, _ call: Call, _ respond: @escaping Responder
    ) {
        let respond: Responder = { [weak self, batch] result in
            if let self, !batch.isDryRun, case .success = result { observer?.controlsSet(batch.changes) }
            respond(result)
        }
        guard let token else {
            let devices = batch.changes.map(\.device)
            return locks.withTransientLock(on: devices, for: clients.holder(call.caller), then: respond) {
                [weak self] fence, done in
                var batch = batch
                batch.fence = fence
                self?.carryOut(batch, done)
            }
        }
        do throws(BusError) {
            var batch = batch
            batch.fence = try locks.authorize(token: token, devices: batch.changes.map(\.device)).fence
            carryOut(batch, respond)
        } catch {
            respond(.failure(error))
        }
    }

    /// Carries out a batch. The change is in the device table, on the disk, before the reply.
    func carryOut(_ batch: Batch, _ respond: @escaping Responder) {
        let uniqueIDs = batch.changes.compactMap { workers[$0.device]?.device.identity.uniqueID }
        run(batch) { [weak self] result in
            guard let self, !batch.isDryRun, case .success(let value) = result else { return respond(result) }
            for worker in uniqueIDs.compactMap(workers.worker(of:)) { remember(worker) }
            deviceStore.save { isKept in respond(.success(value.marked(isKept: isKept))) }
        }
    }

    /// A client that sets a format sets it for its own session too (inputPriority).
    ///
    /// - Returns: false: a session could not be written yet.
    func noteFormats(
        of holder: LockHolder, _ changes: [(device: String, change: JSONValue, path: String)]
    ) -> Bool {
        var isKept = true
        for (device, change, path) in changes {
            guard let change = try? ConfigurationChange.parse(change, path: path), change.activeFormat != nil else {
                continue
            }
            isKept = (observer?.configured(device, change, by: holder) ?? true) && isKept
        }
        return isKept
    }

    /// Changes controls of a device under a lock's fence.
    func setControls(
        _ controls: [String: JSONValue], _ device: String, _ fence: UInt64, _ respond: @escaping Responder
    ) {
        let change: JSONValue = ["device": .string(device), "controls": .object(controls)]
        carryOut(
            Batch(changes: [(device, change, "")], mode: .exact, isDryRun: false, fence: fence), respond)
    }

    /// Puts what the worker has committed into the device table, unless it may still be taken back.
    func remember(_ worker: WorkerHandle) {
        guard let committed = worker.committed, !worker.isInDoubt, !isBusy(worker.device.id) else { return }
        let identity = worker.device.identity
        deviceStore.change { table in
            table.update(identity.uniqueID, name: identity.localizedName, at: DeviceStore.now) {
                $0.committed = committed
            }
        }
    }
}
