import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO

/// `device.list`, `get`, `formats`, `controls`, `rename`, `who`
final class DeviceService: MethodService {
    let workers: WorkerSupervisor
    let resolver: DeviceResolver
    let publisher: DevicePublisher
    let updater: DeviceUpdater
    let registry: DeviceRegistry
    let deviceStore: DeviceStore
    let rigs: RigRegistry
    let configuration: LiveConfiguration
    let configurations: ConfigurationService
    let locks: LockService
    let clients: ClientRegistry
    let recorders: RecorderSupervisor
    let permission: AuthorizationService
    let sources: SourceRegistry

    init(
        _ workers: WorkerSupervisor, _ resolver: DeviceResolver, _ publisher: DevicePublisher, _ updater: DeviceUpdater,
        _ registry: DeviceRegistry, _ deviceStore: DeviceStore, _ rigs: RigRegistry, _ configuration: LiveConfiguration,
        _ configurations: ConfigurationService, _ locks: LockService, _ clients: ClientRegistry,
        _ recorders: RecorderSupervisor, _ permission: AuthorizationService, _ sources: SourceRegistry
    ) {
        self.workers = workers
        self.resolver = resolver
        self.publisher = publisher
        self.updater = updater
        self.registry = registry
        self.deviceStore = deviceStore
        self.rigs = rigs
        self.configuration = configuration
        self.configurations = configurations
        self.locks = locks
        self.clients = clients
        self.recorders = recorders
        self.permission = permission
        self.sources = sources
    }

    var methods: [String: Handler] {
        [
            "device.list": .plain(list), "device.get": .plain(get), "device.formats": .plain(formats),
            "device.controls": .plain(controls), "device.rename": .plain(rename), "device.who": .plain(who),
        ]
    }

    private func list(_ call: Call, _ respond: @escaping Responder) {
        let (media, type, position) = (call.string("media"), call.string("type"), call.string("position"))
        let devices = workers.deviceIDs.compactMap { workers[$0] }.filter { worker in
            let identity = worker.device.identity
            return (media == nil || identity.mediaType.rawValue == media)
                && (type == nil || identity.type.rawValue == type)
                && (position == nil || identity.position.rawValue == position)
        }
        let first = devices.first { $0.isConnected }
        respond(
            .success([
                "devices": .array(devices.map(publisher.value(of:))), "count": JSONValue(devices.count),
                "default": first.map { .string($0.device.id) } ?? .null,
            ]))
    }

    private func get(_ call: Call, _ respond: @escaping Responder) {
        resolver.withWorker(call, respond) { worker in respond(.success(["device": self.publisher.value(of: worker)])) }
    }

    private func formats(_ call: Call, _ respond: @escaping Responder) {
        withDescription(call, respond) { description in
            respond(.success(["formats": description["formats"] ?? []]))
        }
    }

    private func controls(_ call: Call, _ respond: @escaping Responder) {
        resolver.withWorker(call, respond) { worker in
            worker.whenReady(withinMilliseconds: WorkerHandle.patience) {
                guard worker.isRunning else { return respond(.failure(worker.notReady)) }
                // A camera's light must not turn on for a user without permission to see it.
                let media = worker.device.identity.authorizationMedia
                guard self.permission.authorization(of: call.caller, media) == .authorized else {
                    return worker.order(.knownControls, completion: respond)
                }
                worker.readControls(respond)
            }
        }
    }

    private func withDescription(_ call: Call, _ respond: @escaping Responder, _ body: @escaping (JSONValue) -> Void) {
        resolver.withWorker(call, respond) { worker in
            // A device that is not plugged in does not become ready by waiting.
            worker.whenReady(withinMilliseconds: worker.device.isPlugged ? WorkerHandle.patience : 0) {
                guard let description = worker.description else { return respond(.failure(worker.notReady)) }
                body(description)
            }
        }
    }
}
