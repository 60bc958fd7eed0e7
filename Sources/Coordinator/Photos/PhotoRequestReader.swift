import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO

/// `photo.capture`
extension Coordinator {
    static let photoServices: [String: AttachingService] = ["photo.capture": { $0.capturePhoto }]

    /// How long the photos of a burst or a bracket may take, nanoseconds.
    private static let maximumDuration: Int64 = 60_000_000_000

    private func capturePhoto(_ call: Call, _ respond: @escaping ReplyTaker) {
        do throws(BusError) {
            let giveUp = try photos.start(try photoRequest(call), completion: respond)
            if let key = call.key { cancellations[key] = giveUp }
        } catch {
            respond(.failure(error))
        }
    }

    // MARK: What is asked

    private func photoRequest(_ call: Call) throws(BusError) -> PhotoRequest {
        let settings = try PhotoSettings(json: call.params["settings"] ?? [:])
        var request = PhotoRequest(
            id: settings.uniqueID ?? hexadecimal(randomBytes(16)), settings: settings, owner: holder(call.caller))
        // Before all that takes time: of all cameras it is the same one.
        if settings.ago > 0 { request.moment = MonotonicClock.now() - settings.ago }
        guard request.duration <= Self.maximumDuration else {
            let name = settings.bracket == nil ? "interval" : "bracket"
            throw .invalidParams(
                "settings.\(name)", "makes the photos take more than \(Self.maximumDuration / 1_000_000_000) seconds")
        }
        try addCameras(call, to: &request)
        if settings.isLive { try addLivePhoto(to: &request) }
        try checkMayPhotograph(call.caller)
        try addDelivery(call, to: &request)
        try photos.use(request.id)
        if let token = call.string("lock") {
            request.lockID = try locks.authorize(token: token, devices: request.devices).id
        }
        if let error = photoRefusal(request) { throw error }
        return request
    }

    private func addLivePhoto(to request: inout PhotoRequest) throws(BusError) {
        if let error = livePhotoRefusal(request.session.flatMap { sessions.entries[$0]?.session }) { throw error }
        request.settings.format = .jpeg
        request.identifier = Self.livePhotoIdentifier()
    }

    private func addCameras(_ call: Call, to request: inout PhotoRequest) throws(BusError) {
        let named = ["devices", "rig", "session", "device"].filter { call.params[$0] != nil }
        guard named.count == 1 || named == ["session", "device"] else {
            throw .invalidParams(
                named.first ?? "device", "a photo is of a device, of several, of a session's camera, or of a rig's")
        }
        if let session = call.string("session") { return try addCameras(of: session, call, to: &request) }
        var devices = call.string("device").map { [$0] } ?? []
        if let rig = call.string("rig") {
            guard let members = try rigs.devices(of: rig) else {
                throw BusError(.rigNotFound, "No rig is called '\(rig.prefix(64))'.", ["rig": .string(rig)])
            }
            (request.rig, devices) = (rig, members)
        } else if named == ["devices"] {
            devices = try self.devices(call)
        }
        try checkCount(devices, named.first ?? "device")
        for device in devices {
            let worker = try worker(device, named.first ?? "device", .video)
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
                path, "\(BusLimits.maxDevicesPerPhoto) cameras can take a photo together, these are more")
        }
    }

    /// A session's cameras, or the one that is named, as the connection to its photo output has them.
    private func addCameras(of id: String, _ call: Call, to request: inout PhotoRequest) throws(BusError) {
        let session = try sessions.entry(id).session
        guard session.mayBeChanged(by: call.caller.peer.uid, isAdmin: permission.isAdmin(call.caller)) else {
            throw BusError(
                .unauthorized, "The session is another user's; its own user and administrators may take its photos.",
                ["status": "denied", "needed": "admin", "session": .string(id)])
        }
        guard session.outputs.contains(where: { $0.kind == .photo }) else {
            throw .invalidParams(
                "session", "it has no photo output: session.configure {addOutput: \"photo\"} adds one")
        }
        let named = call.string("device")
        let connections = photoConnections(of: session).filter { named == nil || $0.input == named }
        guard !connections.isEmpty else {
            throw .invalidParams(named == nil ? "session" : "device", "its photo output has no such camera")
        }
        try checkCount(connections.map(\.input), "session")
        request.session = id
        request.lockID = session.lockID
        for connection in connections {
            let worker = try worker(connection.input, "session", .video)
            let isMirrored = connection.videoMirrored.isOn(position: worker.device.identity.position)
            request.cameras.append(
                PhotoRequest.Camera(
                    device: PhotoPlace.Device(worker),
                    orientation: request.settings.orientation ?? connection.videoOrientation,
                    isMirrored: request.settings.isMirrored ?? isMirrored))
        }
    }

    /// What joins a session's cameras to its photo output.
    func photoConnections(of session: CaptureSession) -> [SessionConnection] {
        guard let output = session.outputs.first(where: { $0.kind == .photo }) else { return [] }
        return session.connections(of: output.id).filter {
            $0.isEnabled && fleet.workers[$0.input]?.device.identity.mediaType == .video
        }
    }

    /// Who may not yet, is asked about.
    ///
    /// - Throws: `unauthorized` {status, needed}.
    private func checkMayPhotograph(_ caller: Caller) throws(BusError) {
        guard permission.authorization(of: caller, .video) != .authorized else { return }
        tried(caller, .video)
        throw permission.refusal(caller, .video)
    }

    private func tried(_ caller: Caller, _ media: AuthorizationMedia) {
        let peer = caller.peer
        permission.tried(uid: peer.uid, gid: peer.gid, pid: peer.pid, media, program: programName(caller))
    }

    /// Where the photos go. Who may not put them into the library, and wants them in the reply as well, gets them there alone.
    private func addDelivery(_ call: Call, to request: inout PhotoRequest) throws(BusError) {
        let named = call.params["deliver"] == nil ? nil : call.strings("deliver")
        request.isStored = named?.contains("library") ?? (moviePlace.library != nil)
        request.isAttached = named?.contains("reply") ?? !request.isStored
        request.name = call.string("name")
        guard request.isStored || request.isAttached else { throw .invalidParams("deliver", "names nothing") }
        // A name that can't be is the client's mistake, and told at once.
        _ = try request.stem(of: request.devices.first ?? "", time: "")
        guard request.isStored else { return }
        guard moviePlace.library != nil else {
            throw .invalidParams(
                "deliver", "this bus has no library ([library] in camerabus.toml, or --state-dir)")
        }
        guard permission.authorization(of: call.caller, .libraryAdd) != .authorized else { return }
        tried(call.caller, .libraryAdd)
        let refusal = permission.refusal(call.caller, .libraryAdd)
        guard request.isAttached else { throw refusal }
        (request.isStored, request.notStored) = (false, refusal)
    }

    // MARK: What may be

    func connectPhotos() {
        photos.refusal = { [weak self] in self?.photoRefusal($0) }
        photos.libraryRefusal = { [weak self] in self?.libraryRefusal($0) }
        photos.place = { [weak self] in self?.photoPlace($0, $1, day: $2, time: $3) }
        photos.onLeft = { [weak self] in
            guard let self, !isStopping else { return }
            library.recover()
        }
        photos.onReadiness = { [weak self] in self?.tellReadiness($0) }
        photos.onReturned = { [weak self] in self?.sessions.deviceChanged($0) }
        photos.live = live
        sessions.isBorrowed = { [weak self] in self?.photos.isBorrowed(uniqueID: $0) ?? false }
        movies.isSetForPhoto = { [weak self] in self?.photos.changesPicture(uniqueID: $0) ?? false }
        sessions.photoMembers = { [weak self] in self?.photoMembers(of: $0) ?? [:] }
    }

    /// Why these photos may not go into the library (any more); nil: they may.
    private func libraryRefusal(_ request: PhotoRequest) -> BusError? { refusal(of: request.owner, .libraryAdd) }

    private func refusal(of owner: LockHolder, _ media: AuthorizationMedia) -> BusError? {
        permission.mayKeep(uid: owner.uid, gid: owner.gid, media)
            ? nil : permission.refusal(uid: owner.uid, gid: owner.gid, media)
    }

    /// Why these photos can't be taken (any more); nil: they can.
    private func photoRefusal(_ request: PhotoRequest) -> BusError? {
        let owner = request.owner
        if let error = refusal(of: owner, .video) { return error }
        // What goes with the reply as well is taken without it.
        if request.isStored, !request.isAttached, let error = refusal(of: owner, .libraryAdd) { return error }
        // Who may only look changes nothing.
        if request.settings.changesDevice, !permission.mayChange(uid: owner.uid, gid: owner.gid, .video) {
            return permission.refusal(uid: owner.uid, gid: owner.gid, .video)
        }
        if let id = request.session {
            guard let session = sessions.entries[id]?.session, session.run.state == .running else {
                let state = sessions.entries[id]?.session.run.state.rawValue ?? "gone"
                return BusError(
                    .sessionNotRunning, "The session \(id) is \(state); session.start starts it.",
                    ["session": .string(id)])
            }
            let cameras = photoConnections(of: session).map(\.input)
            guard request.devices.allSatisfy(cameras.contains) else {
                return BusError(.cancelled, "The session has another camera now; ask again.", ["session": .string(id)])
            }
            if request.settings.isLive, let error = livePhotoRefusal(session) { return error }
        }
        guard request.settings.changesPicture else { return nil }
        let uniqueIDs = request.cameras.map(\.device.uniqueID)
        let movie = movies.movies.first { movie in
            movie.ending == nil && movie.request.camera.map { uniqueIDs.contains($0.uniqueID) } ?? false
        }
        return movie.map { movie in
            let what =
                request.settings.highResolution
                ? "which can't change its size; take the photo without highResolution"
                : "which would have the exposures of a bracket; take the photo without it"
            return BusError(
                .recordingInProgress,
                "A movie of \(movie.request.camera?.id ?? "the camera") is being made, \(what), or end the movie.",
                ["movie": .string(movie.id)])
        }
    }

    private func photoPlace(
        _ request: PhotoRequest, _ camera: PhotoRequest.Camera, day: String, time: String
    ) -> PhotoPlace? {
        guard let library = moviePlace.library, let stem = try? request.stem(of: camera.device.id, time: time) else {
            return nil
        }
        return PhotoPlace(
            library: library, directory: "\(library)/\(day)", stem: stem,
            ids: (0..<request.settings.photosPerDevice).map { _ in hexadecimal(randomBytes(8)) },
            owner: request.owner, session: request.session, rig: request.rig, device: camera.device,
            minFree: configuration.libraryMinFree)
    }

    // MARK: Readiness

    private func tellReadiness(_ devices: [String]) {
        guard !isStopping else { return }
        for device in devices {
            if let worker = fleet.workers[device] { publish(worker) }
            for (id, entry) in sessions.entries where entry.session.input(device) != nil {
                if entry.session.outputs.contains(where: { $0.kind == .photo }) { sessions.publish(id) }
            }
        }
    }

    /// Tells whom it concerns what a camera's scene wants of a photo, if that has changed.
    func tellScene(_ device: String, _ scene: JSONValue?) {
        guard scenes[device] ?? .null != scene ?? .null else { return }
        scenes[device] = scene
        for (id, entry) in sessions.entries where entry.session.watchesScene(of: device) { sessions.publish(id) }
    }

    /// What the scene wants, of the photos that a session's photo output is to take; of several cameras, what any of them sees.
    private func sceneMembers(_ session: CaptureSession, _ workers: [WorkerHandle]) -> [String: JSONValue] {
        let settings = session.outputs.first { $0.kind == .photo }?.sceneMonitoring ?? SceneMonitor.Settings()
        func sees(_ name: String) -> Bool { workers.contains { $0.status["scene"]?[name] == true } }
        let isFlashScene = settings.flash == .on || settings.flash == .auto && sees("flash")
        return [
            "isFlashScene": .bool(isFlashScene),
            "isStillImageStabilizationScene": .bool(settings.stabilization && sees("stabilization")),
        ]
    }

    /// `photo` of `state/device/<id>/`: {readiness, waiting, owner?}.
    func photoMember(_ worker: WorkerHandle) -> JSONValue {
        let (readiness, waiting) = photos.readiness(of: worker)
        return .members([
            "readiness": .string(readiness.rawValue), "waiting": JSONValue(waiting),
            "owner": photos.holder(of: worker.device.id),
        ])
    }

    /// What a session's photo output can do now: {availablePhotoCodecTypes, availableRawPhotoPixelFormatTypes, readiness,
    /// isFlashScene, isStillImageStabilizationScene, livePhotoCaptureSupported, livePhotoPast?}. Of several cameras, what all of them can.
    func photoMembers(of session: CaptureSession) -> [String: JSONValue] {
        let workers = photoConnections(of: session).compactMap { fleet.workers[$0.input] }
        let formats = workers.map { worker in
            (worker.status["activeFormat"]?["pixelFormat"]?.string).flatMap { PixelFormat($0) }
        }
        func common<Value: Hashable>(_ lists: [[Value]]) -> [Value] {
            guard let first = lists.first else { return [] }
            return first.filter { value in lists.allSatisfy { $0.contains(value) } }
        }
        let codecs = common(formats.map { $0?.photoCodecs ?? [] })
        let raws = common(formats.map { $0?.rawPhotoFormats ?? [] })
        let order: [PhotoReadiness] = [.notReady, .waitingForCapture, .waitingForProcessing, .notRunning, .ready]
        let readiness = Set(workers.map { photos.readiness(of: $0).readiness })
        let least = session.run.state == .running ? order.first(where: readiness.contains) : nil
        let members: [String: JSONValue] = [
            "availablePhotoCodecTypes": JSONValue(codecs.map(\.rawValue)),
            "availableRawPhotoPixelFormatTypes": JSONValue(raws.map(\.name)),
            "readiness": .string((least ?? .notRunning).rawValue),
        ]
        return members.merging(sceneMembers(session, workers)) { $1 }.merging(livePhotoMembers(of: session)) { $1 }
    }
}

extension PhotoPlace.Device {
    init(_ worker: WorkerHandle) {
        let identity = worker.device.identity
        self.init(id: worker.device.id, uniqueID: identity.uniqueID, name: identity.localizedName)
    }
}
