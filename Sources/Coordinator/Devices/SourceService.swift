import BusProtocol
import CaptureCore
import JSON

/// `source.create`, `delete`: devices that clients make of their own frames.
final class SourceService: MethodService {
    private let sources: SourceRegistry
    private let updater: DeviceUpdater
    private let registry: DeviceRegistry
    private let workers: WorkerSupervisor
    private let resolver: DeviceResolver
    private let rigs: RigRegistry
    private let clients: ClientRegistry
    private let permission: AuthorizationService
    private let directory: RuntimeDirectory

    init(
        _ sources: SourceRegistry, _ updater: DeviceUpdater, _ registry: DeviceRegistry, _ workers: WorkerSupervisor,
        _ resolver: DeviceResolver, _ rigs: RigRegistry, _ clients: ClientRegistry, _ permission: AuthorizationService,
        _ directory: RuntimeDirectory
    ) {
        self.sources = sources
        self.updater = updater
        self.registry = registry
        self.workers = workers
        self.resolver = resolver
        self.rigs = rigs
        self.clients = clients
        self.permission = permission
        self.directory = directory
    }

    var methods: [String: Handler] { ["source.create": .plain(create), "source.delete": .plain(delete)] }

    private func create(_ call: Call, _ respond: @escaping Responder) {
        let source: ClientSource
        do throws(BusError) {
            source = try sources.add(readSource(call))
        } catch {
            return respond(.failure(error))
        }
        updater.setDevices()
        guard let worker = workers.worker(of: source.uniqueID) else {
            sources.remove(source.uniqueID)
            updater.setDevices()
            return respond(
                .failure(
                    .invalidParams("name", "no device id can be made from '\(source.name)': another device uses it")))
        }
        let path = directory.sourceSocket(of: source)
        worker.whenReady(withinMilliseconds: WorkerHandle.patience) { [weak self] in
            guard let self else { return }
            guard sources.sources[source.uniqueID] == source else {
                return respond(
                    .failure(
                        BusError(
                            .cancelled,
                            "The source was deleted while it was made: its process left the bus, or lost permission.")))
            }
            guard worker.isRunning, worker.description != nil else {
                sources.remove(source.uniqueID)
                updater.setDevices()
                return respond(
                    .failure(
                        BusError(
                            .workerCrashed, "The source could not be set up; try again.",
                            ["device": .string(worker.device.id)])))
            }
            respond(
                .success([
                    "device": .string(worker.device.id), "uniqueID": .string(source.uniqueID), "path": .string(path),
                    "bytes": JSONValue(source.layout?.totalBytes ?? 0),
                ]))
        }
    }

    private func readSource(_ call: Call) throws(BusError) -> ClientSource {
        let name = call.string("name") ?? ""
        let format = call.params["format"]
        let width = Int(clamping: format?["width"]?.integer ?? 0)
        let height = Int(clamping: format?["height"]?.integer ?? 0)
        guard let pixelFormat = format?["pixelFormat"]?.string.flatMap({ PixelFormat($0) }) else {
            throw .invalidParams("format.pixelFormat", "is not a pixel format")
        }
        var description = FormatDescription(
            pixelFormat: pixelFormat, dimensions: Dimensions(width: width, height: height))
        if let flaw = description.take(format ?? .null) { throw .invalidParams("format.\(flaw.member)", flaw.why) }
        description.frameDuration = try call.params["frameRate"].map { (json) throws(BusError) in
            FrameDuration(try FrameRate(json: json, path: "frameRate"))
        }
        let source = ClientSource(name: name, description: description, owner: clients.holder(call.caller))
        guard !source.preferredID.isEmpty else {
            throw .invalidParams("name", "must contain a letter or digit")
        }
        guard !rigs.isRig(source.preferredID) else {
            throw .invalidParams("name", "'\(name)' is the name of a rig")
        }
        guard source.layout != nil else {
            throw BusError(
                .limitExceeded, "A frame may have \(ClientSource.maximumFrameBytes) bytes at most.",
                ["limit": "frameBytes", "maximum": JSONValue(ClientSource.maximumFrameBytes)])
        }
        // One that is there already has an id, whatever was plugged in since.
        if sources.sources[source.uniqueID] == nil,
            let keeper = registry.keeper(of: source.preferredID, updater.wishes)
        {
            throw .invalidParams(
                "name",
                "'\(source.preferredID)' is, or was, the name of \(keeper.name) (\(keeper.uniqueID)), so a client's "
                    + "device cannot take it; choose another name")
        }
        return source
    }

    private func delete(_ call: Call, _ respond: @escaping Responder) {
        resolver.withWorker(call, respond) { [self] worker in
            guard let source = sources.sources[worker.device.identity.uniqueID] else {
                return respond(.failure(.invalidParams("device", "\(worker.device.id) is not a source of a client")))
            }
            let owner = clients.holder(call.caller)
            let isOwner = owner.pid == source.owner.pid && owner.startTime == source.owner.startTime
            guard isOwner || permission.isAdmin(call.caller) else {
                return respond(
                    .failure(
                        BusError(
                            .unauthorized, "Only the process that made it, and administrators, may delete a source.",
                            ["status": "denied", "needed": "owner"])))
            }
            let isKept = sources.remove(source.uniqueID)
            updater.setDevices()
            respond(.success(JSONValue.object([:]).marked(isKept: isKept)))
        }
    }
}
