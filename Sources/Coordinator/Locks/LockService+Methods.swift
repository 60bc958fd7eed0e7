import BusProtocol
import BusServer
import CaptureCore
import JSON

/// `device.lock`, `unlock`, `renew`, `takeOver`, `locks`
extension LockService: MethodService {
    var methods: [String: Handler] {
        [
            "device.lock": .plain(lock), "device.unlock": .plain(unlock), "device.renew": .plain(renew),
            "device.takeOver": .plain(takeOver), "device.locks": .plain(listLocks),
        ]
    }

    /// How long a lock lasts without a lease in the request; nil: as long as its holder's process.
    private static func lease(of caller: Caller) -> Int64? { caller.remote == nil ? nil : leaseOfUnknownProcess }

    private func lock(_ call: Call, _ respond: @escaping Responder) {
        do {
            var wish = Wish(devices: try resolver.devices(call), holder: clients.holder(call.caller))
            wish.wait = call.duration("wait") ?? 0
            wish.lease = call.duration("lease") ?? Self.lease(of: call.caller)
            wish.note = call.string("note")
            wish.request = call.digest
            let ticket = request(wish) { result in respond(result.map(Self.lockResult)) }
            if isWaiting(ticket) { cancellations.set(call.key) { [weak self] in self?.cancel(ticket) } }
        } catch {
            respond(.failure(error))
        }
    }

    private func takeOver(_ call: Call, _ respond: @escaping Responder) {
        do {
            var wish = Wish(devices: try resolver.devices(call), holder: clients.holder(call.caller))
            wish.lease = call.duration("lease") ?? Self.lease(of: call.caller)
            wish.note = call.string("note")
            request(wish, takingOver: true) { result in respond(result.map(Self.lockResult)) }
        } catch {
            respond(.failure(error))
        }
    }

    private func unlock(_ call: Call, _ respond: @escaping Responder) {
        respond(
            Result { () throws(BusError) in
                JSONValue.object([:]).marked(isKept: try unlock(token: call.string("lock") ?? ""))
            })
    }

    private func listLocks(_ call: Call, _ respond: @escaping Responder) {
        let locks = table.locks.filter { !$0.isTransient }.map(\.json)
        respond(.success(["locks": .array(locks), "waiting": waits]))
    }

    private func renew(_ call: Call, _ respond: @escaping Responder) {
        respond(
            Result { () throws(BusError) in
                let lock = try renew(token: call.string("lock") ?? "")
                return [
                    "expires": lock.expires.map { JSONValue($0) } ?? .null, "fence": JSONValue(lock.fence),
                    "devices": JSONValue(lock.devices), "holder": lock.holder.json,
                ]
            })
    }

    private static func lockResult(_ grant: Grant) -> JSONValue {
        [
            "lock": .string(grant.token), "fence": JSONValue(grant.lock.fence),
            "devices": JSONValue(grant.lock.devices), "holder": grant.lock.holder.json,
        ]
    }
}
