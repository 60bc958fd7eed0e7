import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO

/// From the params of `photo.capture` to a checked request.
final class PhotoRequestReader {
    private let resolver: DeviceResolver
    private let rigs: RigRegistry
    private let sessions: SessionRegistry
    private let workers: WorkerSupervisor
    private let locks: LockService
    private let permission: AuthorizationService
    private let clients: ClientRegistry
    private let access: PhotoAccess
    private let places: RecordingPlaces
    private var used = PhotoIDTable()

    /// How long the photos of a burst or a bracket may take, nanoseconds.
    private static let maximumDuration: Int64 = 60_000_000_000

    init(
        _ resolver: DeviceResolver, _ rigs: RigRegistry, _ sessions: SessionRegistry, _ workers: WorkerSupervisor,
        _ locks: LockService, _ permission: AuthorizationService, _ clients: ClientRegistry, _ access: PhotoAccess,
        _ places: RecordingPlaces
    ) {
        self.resolver = resolver
        self.rigs = rigs
        self.sessions = sessions
        self.workers = workers
        self.locks = locks
        self.permission = permission
        self.clients = clients
        self.access = access
        self.places = places
    }

    /// - Throws: also `photoSettingsReused` {uniqueID}: each `uniqueID` is good for one request.
    func request(_ call: Call) throws(BusError) -> PhotoRequest {
        let settings = try PhotoSettings(json: call.params["settings"] ?? [:])
        var request = PhotoRequest(
            id: settings.uniqueID ?? hexadecimal(randomBytes(16)), settings: settings,
            owner: clients.holder(call.caller))
        // Before anything that takes time, so that all cameras have the same moment.
        if settings.ago > 0 { request.moment = MonotonicClock.now() - settings.ago }
        guard request.duration <= Self.maximumDuration else {
            let name = settings.bracket == nil ? "interval" : "bracket"
            throw .invalidParams(
                "settings.\(name)", "makes the photos last more than \(Self.maximumDuration / 1_000_000_000) seconds")
        }
        try addCameras(call, to: &request)
        if settings.isLive { try addLivePhoto(to: &request) }
        try access.checkMayPhotograph(call.caller)
        try addDelivery(call, to: &request)
        try used.use(request.id)
        if let token = call.string("lock") {
            request.lockID = try locks.authorize(token: token, devices: request.devices).id
        }
        if let error = access.refusal(request) { throw error }
        return request
    }

    private func addLivePhoto(to request: inout PhotoRequest) throws(BusError) {
        if let error = LivePhotoPlanner.refusal(request.session.flatMap { sessions.entries[$0]?.session }) {
            throw error
        }
        request.settings.format = .jpeg
        request.identifier = Self.identifier()
    }

    private func addCameras(_ call: Call, to request: inout PhotoRequest) throws(BusError) {
        let named = ["devices", "rig", "session", "device"].filter { call.params[$0] != nil }
        guard named.count == 1 || named == ["session", "device"] else {
            throw .invalidParams(
                named.first ?? "device", "name one of: devices, a session, a rig")
        }
        if let session = call.string("session") { return try addCameras(of: session, call, to: &request) }
        var devices = call.string("device").map { [$0] } ?? []
        if let rig = call.string("rig") {
            guard let members = try rigs.devices(of: rig) else {
                throw BusError(.rigNotFound, "No rig is called '\(rig.prefix(64))'.", ["rig": .string(rig)])
            }
            (request.rig, devices) = (rig, members)
        } else if named == ["devices"] {
            devices = try resolver.devices(call)
        }
        try checkCount(devices, named.first ?? "device")
        for device in devices {
            let worker = try resolver.worker(device, named.first ?? "device", .video)
            request.cameras.append(
                PhotoRequest.Camera(
                    device: PhotoPlace.Device(worker),
                    orientation: request.settings.orientation ?? .landscapeRight,
                    isMirrored: request.settings.isMirrored ?? false))
        }
    }

    private func checkCount(_ devices: [String], _ path: String) throws(BusError) {
        guard devices.count <= BusLimits.maxDevicesPerPhoto else {
            throw .invalidParams(
                path, "\(BusLimits.maxDevicesPerPhoto) cameras at most can take a photo together")
        }
    }

    /// A session's cameras, or the one that is named, as the connection to its photo output has them.
    private func addCameras(of id: String, _ call: Call, to request: inout PhotoRequest) throws(BusError) {
        let session = try sessions.entry(id).session
        try session.check(permission.editor(call.caller), to: "take its photos")
        guard session.outputs.contains(where: { $0.kind == .photo }) else {
            throw .invalidParams(
                "session", "it has no photo output: session.configure {addOutput: \"photo\"} adds one")
        }
        let named = call.string("device")
        let connections = workers.photoConnections(of: session).filter { named == nil || $0.input == named }
        guard !connections.isEmpty else {
            throw .invalidParams(named == nil ? "session" : "device", "its photo output has no such camera")
        }
        try checkCount(connections.map(\.input), "session")
        request.session = id
        request.lockID = session.lockID
        for connection in connections {
            let worker = try resolver.worker(connection.input, "session", .video)
            let isMirrored = connection.videoMirrored.isOn(position: worker.device.identity.position)
            request.cameras.append(
                PhotoRequest.Camera(
                    device: PhotoPlace.Device(worker),
                    orientation: request.settings.orientation ?? connection.videoOrientation,
                    isMirrored: request.settings.isMirrored ?? isMirrored))
        }
    }

    /// Where the photos go. A caller without permission for the library gets photos for both library and reply in the
    /// reply alone.
    private func addDelivery(_ call: Call, to request: inout PhotoRequest) throws(BusError) {
        let named = call.params["deliver"] == nil ? nil : call.strings("deliver")
        request.isStored = named?.contains("library") ?? (places.current.library != nil)
        request.isAttached = named?.contains("reply") ?? !request.isStored
        request.name = call.string("name")
        guard request.isStored || request.isAttached else {
            throw .invalidParams("deliver", "must not be empty; use \"library\", \"reply\" or both")
        }
        // An invalid name is the client's mistake and refused at once.
        _ = try request.stem(of: request.devices.first ?? "", time: "")
        guard request.isStored else { return }
        guard places.current.library != nil else {
            throw .invalidParams(
                "deliver", "this bus has no library ([library] in camerabus.toml, or --state-dir)")
        }
        guard permission.authorization(of: call.caller, .libraryAdd) != .authorized else { return }
        access.tried(call.caller, .libraryAdd)
        let refusal = permission.refusal(call.caller, .libraryAdd)
        guard request.isAttached else { throw refusal }
        (request.isStored, request.notStored) = (false, refusal)
    }

    /// A random UUID.
    private static func identifier() -> LivePhotoIdentifier? {
        var bytes = randomBytes(16)
        (bytes[6], bytes[8]) = (bytes[6] & 0x0F | 0x40, bytes[8] & 0x3F | 0x80)
        return LivePhotoIdentifier(digits: hexadecimal(bytes))
    }
}

extension WorkerSupervisor {
    /// The connections of a session's cameras to its photo output.
    func photoConnections(of session: CaptureSession) -> [SessionConnection] {
        guard let output = session.outputs.first(where: { $0.kind == .photo }) else { return [] }
        return session.connections(of: output.id).filter {
            $0.isEnabled && self[$0.input]?.device.identity.mediaType == .video
        }
    }
}

extension PhotoPlace.Device {
    init(_ worker: WorkerHandle) {
        let identity = worker.device.identity
        self.init(id: worker.device.id, uniqueID: identity.uniqueID, name: identity.localizedName)
    }
}
