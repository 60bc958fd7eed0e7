import BusProtocol
import BusServer
import CaptureCore
import JSON

/// `rig.set`, `delete`, `list`
final class RigService: MethodService {
    private let rigs: RigRegistry
    private let resolver: DeviceResolver
    private let registry: DeviceRegistry
    private let updater: DeviceUpdater
    private let workers: WorkerSupervisor
    private let permission: AuthorizationService

    init(
        _ rigs: RigRegistry, _ resolver: DeviceResolver, _ registry: DeviceRegistry, _ updater: DeviceUpdater,
        _ workers: WorkerSupervisor, _ permission: AuthorizationService
    ) {
        self.rigs = rigs
        self.resolver = resolver
        self.registry = registry
        self.updater = updater
        self.workers = workers
        self.permission = permission
    }

    var methods: [String: Handler] {
        ["rig.set": .plain(set), "rig.delete": .plain(delete), "rig.list": .plain(list)]
    }

    private func set(_ call: Call, _ respond: @escaping Responder) {
        do throws(BusError) {
            let name = call.string("name") ?? ""
            if DeviceID.isValid(name), let owner = registry.owner(of: name, updater.wishes) {
                throw .invalidParams("name", "'\(name)' is the name of a device (\(owner))")
            }
            let editor = permission.editor(call.caller)
            if !editor.isAdmin, !rigs.isRig(name), let keeper = registry.keeper(of: name, updater.wishes) {
                throw .invalidParams(
                    "name",
                    "'\(name)' was the name of \(keeper.name) (\(keeper.uniqueID)); only administrators may give it to "
                        + "a rig")
            }
            // Kept by their uniqueIDs: a device may get another id.
            let devices = try resolver.devices(call, exceptRig: name)
            try resolver.checkCameras(devices, "a rig")
            let members = devices.compactMap { workers[$0]?.device.identity.uniqueID }
            let rig = Rig(devices: members, tolerance: call.duration("tolerance"))
            try rigs.set(rig, as: name, by: editor) { [rigs] isKept in
                let result: JSONValue = ["rig": rigs.value(of: name) ?? .null]
                respond(.success(result.marked(isKept: isKept)))
            }
        } catch {
            respond(.failure(error))
        }
    }

    private func delete(_ call: Call, _ respond: @escaping Responder) {
        do throws(BusError) {
            try rigs.delete(call.string("name") ?? "", by: permission.editor(call.caller)) { isKept in
                respond(.success(JSONValue.object([:]).marked(isKept: isKept)))
            }
        } catch {
            respond(.failure(error))
        }
    }

    private func list(_ call: Call, _ respond: @escaping Responder) {
        respond(.success(["rigs": .array(rigs.names.compactMap(rigs.value(of:)))]))
    }
}
