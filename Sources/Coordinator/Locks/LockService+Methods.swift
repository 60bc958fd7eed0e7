import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO

/// `device.lock`, `unlock`, `renew`, `takeOver`, `configure`, `set`
extension Coordinator {
    func lock(_ call: Call, _ respond: @escaping Responder) {
        do {
            var wish = LockService.Wish(devices: try devices(call), holder: holder(call.caller))
            wish.wait = call.duration("wait") ?? 0
            wish.lease = call.duration("lease") ?? lease(of: call.caller)
            wish.note = call.string("note")
            wish.request = call.digest
            let ticket = locks.request(wish) { result in respond(result.map(Self.lockResult).mapError { $0 }) }
            if let key = call.key, locks.isWaiting(ticket) {
                cancellations[key] = { [weak self] in self?.locks.cancel(ticket) }
            }
        } catch {
            respond(.failure(error))
        }
    }

    func takeOver(_ call: Call, _ respond: @escaping Responder) {
        do {
            var wish = LockService.Wish(devices: try devices(call), holder: holder(call.caller))
            wish.lease = call.duration("lease") ?? lease(of: call.caller)
            wish.note = call.string("note")
            locks.request(wish, takingOver: true) { result in respond(result.map(Self.lockResult)) }
        } catch {
            respond(.failure(error))
        }
    }

    func unlock(_ call: Call, _ respond: @escaping Responder) {
        respond(
            Result { () throws(BusError) in
                Self.told(try locks.unlock(token: call.string("lock") ?? ""), [:])
            })
    }

    func listLocks(_ call: Call, _ respond: @escaping Responder) {
        let locks = locks.table.locks.filter { !$0.isTransient }.map(\.json)
        respond(.success(["locks": .array(locks), "waiting": self.locks.waits]))
    }

    func renew(_ call: Call, _ respond: @escaping Responder) {
        respond(
            Result { () throws(BusError) in
                let lock = try locks.renew(token: call.string("lock") ?? "")
                return [
                    "expires": lock.expires.map { JSONValue($0) } ?? .null, "fence": JSONValue(lock.fence),
                    "devices": JSONValue(lock.devices), "holder": lock.holder.json,
                ]
            })
    }

    func configure(_ call: Call, _ respond: @escaping Responder) {
        do throws(BusError) {
            let changes = call.params["changes"]?.array ?? []
            var batch = ConfigurationService.Batch(
                changes: [], mode: call.string("mode").flatMap(ConfigurationMode.init) ?? .exact,
                isDryRun: call.params["dryRun"]?.bool ?? false, fence: 0)
            for (index, change) in changes.enumerated() {
                let path = "changes[\(index)]"
                let name = try ConfigurationChange.parse(change, path: path).device
                for device in try devices(named: name) {
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
                let isKept = tellSessions(of: lock.holder, batch.changes)
                sessions.controlsSet(batch.changes)
                respond(.success(Self.told(isKept, value)))
            }
        } catch {
            respond(.failure(error))
        }
    }

    func set(_ call: Call, _ respond: @escaping Responder) {
        withWorker(call, respond) { [weak self] worker in
            guard let self else { return }
            let change = JSONValue.members(["device": call.params["device"], "controls": call.params["controls"]])
            let batch = ConfigurationService.Batch(
                changes: [(worker.device.id, change, "")], mode: .exact, isDryRun: false, fence: 0)
            carryOut(batch, token: call.string("lock"), call, respond)
        }
    }

    /// Carries out a batch under the lock that the token proves, or under one for just this call.
    func carryOut(
        _ batch: ConfigurationService.Batch, token: String?, _ call: Call, _ respond: @escaping Responder
    ) {
        let respond: Responder = { [weak self, batch] result in
            if let self, !batch.isDryRun, case .success = result { sessions.controlsSet(batch.changes) }
            respond(result)
        }
        guard let token else {
            let devices = batch.changes.map(\.device)
            return locks.withTransientLock(on: devices, for: holder(call.caller), then: respond) {
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

    /// Carries out a batch; what was changed is in the device book, on the disk, before that is said.
    func carryOut(_ batch: ConfigurationService.Batch, _ respond: @escaping Responder) {
        let uniqueIDs = batch.changes.compactMap { fleet.workers[$0.device]?.device.identity.uniqueID }
        desk.run(batch) { [weak self] result in
            guard let self, !batch.isDryRun, case .success(let value) = result else { return respond(result) }
            for worker in uniqueIDs.compactMap(fleet.worker(of:)) { remember(worker) }
            books.save { isKept in respond(.success(Self.told(isKept, value))) }
        }
    }

    // Who chooses a format has chosen it for his session too (inputPriority). False: that could not be written yet.
    func tellSessions(
        of holder: LockHolder, _ changes: [(device: String, change: JSONValue, path: String)]
    ) -> Bool {
        var isKept = true
        for (device, change, path) in changes {
            guard let change = try? ConfigurationChange.parse(change, path: path), change.activeFormat != nil else {
                continue
            }
            isKept = sessions.configured(device, change, by: holder) && isKept
        }
        return isKept
    }

    // MARK: The parts

    func holder(_ caller: Caller) -> LockHolder {
        let peer = caller.peer
        // The start time is that of the process whose connection this is, so that another one under its number can't inherit. It may
        // be among those that have not been counted yet.
        connections.update()
        let startTime =
            connections.peer(pid: peer.pid)?.startTime
            ?? (peer.pid == 0 ? nil : ProcessTable.startTime(of: peer.pid))
        let name =
            caller.remote ?? clientNames[caller.connection] ?? ProcessTable.name(of: peer.pid) ?? "unknown"
        return LockHolder(uid: peer.uid, gid: peer.gid, pid: peer.pid, startTime: startTime, name: name)
    }

    private static func lockResult(_ grant: LockService.Grant) -> JSONValue {
        [
            "lock": .string(grant.token), "fence": JSONValue(grant.lock.fence),
            "devices": JSONValue(grant.lock.devices), "holder": grant.lock.holder.json,
        ]
    }
}
