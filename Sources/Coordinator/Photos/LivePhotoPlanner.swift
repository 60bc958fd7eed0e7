import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO

/// Decides what is held for the live photos of each session: what sessions, devices and permission allow.
final class LivePhotoPlanner {
    weak var photos: (any SessionPhotoSource)?
    private let loop: Loop
    private let lifecycle: Lifecycle
    private let sessions: SessionRegistry
    private let workers: WorkerSupervisor
    private let resolver: DeviceResolver
    private let permission: AuthorizationService

    init(
        _ loop: Loop, _ lifecycle: Lifecycle, _ sessions: SessionRegistry, _ workers: WorkerSupervisor,
        _ resolver: DeviceResolver, _ permission: AuthorizationService
    ) {
        self.loop = loop
        self.lifecycle = lifecycle
        self.sessions = sessions
        self.workers = workers
        self.resolver = resolver
        self.permission = permission
    }

    /// Why a session can take no live photos; nil: it can.
    func obstacle(_ session: CaptureSession) -> String? {
        if let obstacle = session.livePhotoObstacle(resolver.surroundings.device) { return obstacle }
        // While the session runs, the format in use counts.
        guard session.run.state == .running, let camera = workers.photoConnections(of: session).first?.input,
            let format = workers[camera]?.status["activeFormat"]?["pixelFormat"]?.string.flatMap({
                PixelFormat($0)
            }),
            format.photoCodecs.isEmpty
        else { return nil }
        return "\(camera) gives \(format.name) now, of which there is no JPEG"
    }

    /// What is to be held for a session now; nil: nothing.
    ///
    /// - Parameter held: what is held for it.
    func wish(_ id: String, held: LivePhotoSupervisor.Wish?) -> LivePhotoSupervisor.Wish? {
        guard !lifecycle.isStopping, !lifecycle.isFinishing, let session = sessions.entries[id]?.session,
            let output = session.photoOutput,
            output.livePhoto.isEnabled
        else { return nil }
        if let obstacle = obstacle(session) {
            turnOff(id, obstacle)
            return nil
        }
        func may(_ media: AuthorizationMedia) -> Bool {
            permission.mayKeep(uid: session.owner.uid, gid: session.owner.gid, media)
        }
        guard session.run.state == .running, let connection = workers.photoConnections(of: session).first, may(.video),
            let camera = workers[connection.input]
        else { return nil }
        let microphone = session.inputs.first { $0.mediaType == .audio }.flatMap { workers[$0.device] }
        let position = camera.device.identity.position
        // The format for the moment of another photo does not count.
        let isBorrowed = photos?.isBorrowed(uniqueID: camera.device.identity.uniqueID) == true
        let format = isBorrowed ? held?.format : nil
        return LivePhotoSupervisor.Wish(
            camera: MovieRequest.Device(camera), format: format ?? camera.status["activeFormat"] ?? .null,
            microphone: may(.audio) ? microphone.map(MovieRequest.Device.init) : nil,
            orientation: connection.videoOrientation, isMirrored: connection.videoMirrored.isOn(position: position),
            isAutoTrimming: output.livePhoto.isAutoTrimming, isSuspended: output.livePhoto.isSuspended,
            owner: session.owner)
    }

    // Its camera was replaced by one without live photos: no request is refused, the setting is turned off.
    private func turnOff(_ id: String, _ obstacle: String) {
        loop.schedule(at: 0) { [weak self] in
            guard let self, !lifecycle.isStopping else { return }
            _ = try? sessions.change(id, isMade: true) { $0.settleLivePhotos(obstacle) }
        }
    }

    /// Why no live photo can be taken of a request's session; nil: one can be taken.
    static func refusal(_ session: CaptureSession?) -> BusError? {
        guard let output = session?.photoOutput else {
            return .invalidParams(
                "settings.livePhoto", "needs a session with a photo output that has livePhotoCaptureEnabled")
        }
        guard output.livePhoto.isEnabled else {
            return .invalidParams(
                "settings.livePhoto",
                "is not available while livePhotoCaptureEnabled of the session's photo output is false")
        }
        guard !output.livePhoto.isSuspended else {
            return .invalidParams(
                "settings.livePhoto",
                "is not available while livePhotoCaptureSuspended of the session's photo output is true")
        }
        return nil
    }
}
