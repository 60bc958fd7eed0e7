import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO

/// What live photos have to do with sessions, devices and permission.
extension Coordinator {
    func connectLivePhotos() {
        live.begin()
        live.wish = { [weak self] in self?.livePhotoWish($0) }
        live.onChange = { [weak self] session in
            guard let self, !isStopping else { return }
            sessions.publish(session)
        }
        live.onReconfigured = { [weak self] session in
            // Of one that doesn't run, that is said.
            guard let self, sessions.entries[session]?.session.run.state == .running else { return }
            photos.reconfigured(session)
        }
    }

    /// A device, or who may have what, may be otherwise.
    func reviewLivePhotos() {
        live.review(sessions.entries.filter { $0.value.session.photoOutput?.livePhoto.isEnabled == true }.keys)
    }

    /// A session may be otherwise, or gone.
    func sessionChanged(_ id: String) {
        movies.sessionChanged(id)
        live.review(id)
        photos.sessionChanged(id)
    }

    /// Pictures of a session that runs are of another generation when its live photos were set otherwise, as far as its cameras are not
    /// somebody else's.
    func livePhotosConfigured(_ session: CaptureSession, before: LivePhotoOutput?) {
        guard session.run.state == .running, let now = session.photoOutput?.livePhoto,
            now.consequence(since: before ?? LivePhotoOutput()) == .reconfiguration
        else { return }
        for device in photoConnections(of: session).map(\.input) {
            let lock = sessions.held(device).flatMap { $0.id == session.lockID ? $0 : nil }
            sessions.carryOut(["device": .string(device)], of: device, lock) { _ in }
        }
    }

    /// Why a session can take no live photos; nil: it can.
    func livePhotoObstacle(_ session: CaptureSession) -> String? {
        if let obstacle = session.livePhotoObstacle(surroundings.device) { return obstacle }
        // A format that is there while it runs counts, not what it was before.
        guard session.run.state == .running, let camera = photoConnections(of: session).first?.input,
            let format = fleet.workers[camera]?.status["activeFormat"]?["pixelFormat"]?.string.flatMap({
                PixelFormat($0)
            }),
            format.photoCodecs.isEmpty
        else { return nil }
        return "\(camera) gives \(format.name) now, of which there is no JPEG"
    }

    private func livePhotoWish(_ id: String) -> LivePhotoSupervisor.Wish? {
        guard !isStopping, !isFinishing, let session = sessions.entries[id]?.session, let output = session.photoOutput,
            output.livePhoto.isEnabled
        else { return nil }
        if let obstacle = livePhotoObstacle(session) {
            turnOffLivePhotos(id, obstacle)
            return nil
        }
        func may(_ media: AuthorizationMedia) -> Bool {
            permission.mayKeep(uid: session.owner.uid, gid: session.owner.gid, media)
        }
        guard session.run.state == .running, let connection = photoConnections(of: session).first, may(.video),
            let camera = fleet.workers[connection.input]
        else { return nil }
        let microphone = session.inputs.first { $0.mediaType == .audio }.flatMap { fleet.workers[$0.device] }
        let position = camera.device.identity.position
        // What it has for the moment of another photo is not what it goes on with.
        let isBorrowed = photos.isBorrowed(uniqueID: camera.device.identity.uniqueID)
        let format = isBorrowed ? live.wish(of: id)?.format : nil
        var device = MovieRequest.Device(camera)
        device.frameRate = camera.status["frameRate"]?.double
        return LivePhotoSupervisor.Wish(
            camera: device, format: format ?? camera.status["activeFormat"] ?? .null,
            microphone: may(.audio) ? microphone.map(MovieRequest.Device.init) : nil,
            orientation: connection.videoOrientation, isMirrored: connection.videoMirrored.isOn(position: position),
            isAutoTrimming: output.livePhoto.isAutoTrimming, isSuspended: output.livePhoto.isSuspended,
            owner: session.owner)
    }

    // Its camera has become another: nobody has asked for it, and nobody is refused.
    private func turnOffLivePhotos(_ id: String, _ obstacle: String) {
        loop.schedule(at: 0) { [weak self] in
            guard let self, !isStopping else { return }
            _ = try? sessions.change(id, isMade: true) { $0.settleLivePhotos(obstacle) }
        }
    }

    /// Why no live photo can be taken of a request's session; nil: one can.
    func livePhotoRefusal(_ session: CaptureSession?) -> BusError? {
        guard let output = session?.photoOutput else {
            return .invalidParams(
                "settings.livePhoto", "is of a session with a photo output that has livePhotoCaptureEnabled")
        }
        guard output.livePhoto.isEnabled else {
            return .invalidParams(
                "settings.livePhoto",
                "can't be had while livePhotoCaptureEnabled of the session's photo output is false")
        }
        guard !output.livePhoto.isSuspended else {
            return .invalidParams(
                "settings.livePhoto",
                "can't be had while livePhotoCaptureSuspended of the session's photo output is true")
        }
        return nil
    }

    /// What a session's photo output tells of live photos: {livePhotoCaptureSupported, livePhotoPast?}.
    func livePhotoMembers(of session: CaptureSession) -> [String: JSONValue] {
        let obstacle = livePhotoObstacle(session)
        var members: [String: JSONValue] = [
            "livePhotoCaptureSupported": .members([
                "supported": .bool(obstacle == nil), "why": obstacle.map(JSONValue.string),
            ])
        ]
        members["livePhotoPast"] = live.past(of: session.id).map { JSONValue($0) }
        return members
    }

    /// A UUID, random as all of them are.
    static func livePhotoIdentifier() -> LivePhotoIdentifier? {
        var bytes = randomBytes(16)
        (bytes[6], bytes[8]) = (bytes[6] & 0x0F | 0x40, bytes[8] & 0x3F | 0x80)
        return LivePhotoIdentifier(digits: hexadecimal(bytes))
    }
}
