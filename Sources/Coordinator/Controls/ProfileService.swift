import BusProtocol
import BusServer
import CaptureCore
import JSON

/// `profile.save`, `apply`, `list`, `delete`
final class ProfileService: MethodService {
    private let profiles: FileStore<ProfileTable>
    private let workers: WorkerSupervisor
    private let resolver: DeviceResolver
    private let clients: ClientRegistry
    private let configurations: ConfigurationService
    private let permission: AuthorizationService

    init(
        _ profiles: FileStore<ProfileTable>, _ workers: WorkerSupervisor, _ resolver: DeviceResolver,
        _ clients: ClientRegistry, _ configurations: ConfigurationService, _ permission: AuthorizationService
    ) {
        self.profiles = profiles
        self.workers = workers
        self.resolver = resolver
        self.clients = clients
        self.configurations = configurations
        self.permission = permission
    }

    var methods: [String: Handler] {
        [
            "profile.save": .plain(save), "profile.apply": .plain(apply), "profile.list": .plain(list),
            "profile.delete": .plain(delete),
        ]
    }

    private func save(_ call: Call, _ respond: @escaping Responder) {
        let name = call.string("name") ?? ""
        do throws(BusError) {
            // Check first whether the profile can be kept.
            var trial = profiles.table
            let editor = permission.editor(call.caller)
            try trial.save(Profile(devices: [], saved: 0), as: name, by: editor)
            let devices = try resolver.devices(call)
            try resolver.checkCameras(devices, "a profile")
            let handles = devices.compactMap { workers[$0] }
            readSettings(handles) { [weak self] result in
                guard let self else { return }
                do throws(BusError) {
                    var profile = Profile(devices: try result.get(), saved: DeviceStore.now)
                    try profiles.change { table throws(BusError) in
                        profile = try table.save(profile, as: name, by: editor)
                    } then: {
                        [weak self] isKept in
                        guard let self else { return }
                        let result: JSONValue = ["profile": value(of: profile, name)]
                        respond(.success(result.marked(isKept: isKept)))
                    }
                } catch {
                    respond(.failure(error))
                }
            }
        } catch {
            respond(.failure(error))
        }
    }

    /// Reads the settings of all devices at the same time.
    private func readSettings(
        _ handles: [WorkerHandle], _ completion: @escaping (Result<[DeviceSettings], BusError>) -> Void
    ) {
        var answers: [Int: DeviceSettings] = [:]
        var awaited = handles.count
        var refusal: BusError?
        for (index, worker) in handles.enumerated() {
            read(worker) { result in
                switch result {
                case .success(let settings): answers[index] = settings
                case .failure(let error): refusal = refusal ?? error
                }
                awaited -= 1
                guard awaited == 0 else { return }
                completion(refusal.map { .failure($0) } ?? .success(handles.indices.compactMap { answers[$0] }))
            }
        }
    }

    private func read(_ worker: WorkerHandle, _ completion: @escaping (Result<DeviceSettings, BusError>) -> Void) {
        worker.whenReady(withinMilliseconds: worker.device.isPlugged ? WorkerHandle.patience : 0) {
            guard worker.isRunning, worker.isConnected else { return completion(.failure(worker.notReady)) }
            worker.readControls { result in
                completion(
                    result.map { answer in
                        let identity = worker.device.identity
                        var settings = DeviceSettings(
                            uniqueID: identity.uniqueID, name: identity.localizedName, driver: identity.driver)
                        settings.controls = DeviceSettings.settable(answer["controls"]?.array ?? [])
                        let setting = worker.setting
                        settings.format = setting?.format
                        settings.format?.variant = worker.formats?.first { $0.id == setting?.formatID }?.variant
                        settings.frameDuration = setting?.frameDuration
                        return settings
                    })
            }
        }
    }

    private func apply(_ call: Call, _ respond: @escaping Responder) {
        do throws(BusError) {
            let profile = try profiles.table.profile(call.string("name") ?? "")
            var batch = ConfigurationService.Batch(
                changes: [], mode: call.string("mode").flatMap(ConfigurationMode.init) ?? .exact,
                isDryRun: call.params["dryRun"]?.bool ?? false, fence: 0)
            var leftOut: [Adjustment] = []
            for (worker, settings) in try targets(of: profile, call) {
                let device = worker.device.id
                let (change, missed) = settings.change(
                    device: device, formats: worker.formats,
                    controls: batch.mode == .nearest ? Self.controls(of: worker) : nil,
                    mode: batch.mode, path: device)
                batch.changes.append((device, change, device))
                leftOut += missed
            }
            let holder = clients.holder(call.caller)
            configurations.carryOut(batch, token: call.string("lock"), call) { [weak self, batch] result in
                let result = result.map { Self.adjusted($0, leftOut) }
                guard let self, !batch.isDryRun, case .success(let value) = result else { return respond(result) }
                respond(.success(value.marked(isKept: configurations.noteFormats(of: holder, batch.changes))))
            }
        } catch {
            respond(.failure(error))
        }
    }

    /// The devices that are to be set, and with what.
    private func targets(
        of profile: Profile, _ call: Call
    ) throws(BusError) -> [(worker: WorkerHandle, settings: DeviceSettings)] {
        guard call.params["devices"] != nil else {
            return try profile.devices.map { settings throws(BusError) in
                guard let worker = workers.worker(of: settings.uniqueID) else {
                    throw BusError(
                        .deviceNotFound,
                        "The profile is from \(settings.name) (\(settings.uniqueID)), which is not connected; name the "
                            + "devices to set.", ["device": .string(settings.uniqueID)])
                }
                return (worker, settings)
            }
        }
        return try resolver.devices(call).compactMap { workers[$0] }.map { worker throws(BusError) in
            let identity = worker.device.identity
            guard
                let settings = profile.settings(
                    uniqueID: identity.uniqueID, name: identity.localizedName, driver: identity.driver)
            else {
                throw .invalidParams(
                    "devices",
                    "the profile has no device that matches \(worker.device.id)")
            }
            return (worker, settings)
        }
    }

    private static func controls(of worker: WorkerHandle) -> [CaptureControl]? {
        worker.description?["controls"]?.array?.compactMap { try? CaptureControl(json: $0) }
    }

    /// The result with the settings that were left out, as adjustments.
    private static func adjusted(_ result: JSONValue, _ leftOut: [Adjustment]) -> JSONValue {
        guard !leftOut.isEmpty, var members = result.object else { return result }
        members["verdict"] = "adjusted"
        members["adjusted"] = .array(leftOut.map(\.json) + (members["adjusted"]?.array ?? []))
        return .object(members)
    }

    private func list(_ call: Call, _ respond: @escaping Responder) {
        let table = profiles.table
        respond(
            .success(["profiles": .array(table.names.compactMap { name in table[name].map { value(of: $0, name) } })]))
    }

    private func value(of profile: Profile, _ name: String) -> JSONValue {
        let devices = profile.devices.map { settings -> JSONValue in
            var members = settings.json.object ?? [:]
            members["device"] = workers.worker(of: settings.uniqueID).map { .string($0.device.id) } ?? .null
            return .object(members)
        }
        return [
            "name": .string(name), "saved": JSONValue(profile.saved), "devices": .array(devices),
            "owner": profile.owner.map { JSONValue($0) } ?? .null,
        ]
    }

    private func delete(_ call: Call, _ respond: @escaping Responder) {
        do throws(BusError) {
            let name = call.string("name") ?? ""
            try profiles.change { table throws(BusError) in
                try table.delete(name, by: permission.editor(call.caller))
            } then: { isKept in
                respond(.success(JSONValue.object([:]).marked(isKept: isKept)))
            }
        } catch {
            respond(.failure(error))
        }
    }
}
