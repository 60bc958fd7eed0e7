import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO

/// Whether photos may be taken (still), and where they are stored.
final class PhotoAccess {
    private let permission: AuthorizationService
    private let clients: ClientRegistry
    private let sessions: SessionRegistry
    private let workers: WorkerSupervisor
    private let movies: MovieRegistry
    private let places: RecordingPlaces

    init(
        _ permission: AuthorizationService, _ clients: ClientRegistry, _ sessions: SessionRegistry,
        _ workers: WorkerSupervisor, _ movies: MovieRegistry, _ places: RecordingPlaces
    ) {
        self.permission = permission
        self.clients = clients
        self.sessions = sessions
        self.workers = workers
        self.movies = movies
        self.places = places
    }

    /// Checks permission for cameras, and asks the administrators where there is no decision.
    ///
    /// - Throws: `unauthorized` {status, needed}.
    func checkMayPhotograph(_ caller: Caller) throws(BusError) {
        guard permission.authorization(of: caller, .video) != .authorized else { return }
        tried(caller, .video)
        throw permission.refusal(caller, .video)
    }

    /// The caller has tried something without permission.
    func tried(_ caller: Caller, _ media: AuthorizationMedia) {
        let peer = caller.peer
        permission.tried(uid: peer.uid, gid: peer.gid, pid: peer.pid, media, program: clients.programName(caller))
    }

    /// Why these photos may not go into the library (any more); nil: they may.
    func libraryRefusal(_ request: PhotoRequest) -> BusError? { refusal(of: request.owner, .libraryAdd) }

    private func refusal(of owner: LockHolder, _ media: AuthorizationMedia) -> BusError? {
        permission.mayKeep(uid: owner.uid, gid: owner.gid, media)
            ? nil : permission.refusal(uid: owner.uid, gid: owner.gid, media)
    }

    /// Why these photos can't be taken (any more); nil: they can.
    func refusal(_ request: PhotoRequest) -> BusError? {
        let owner = request.owner
        if let error = refusal(of: owner, .video) { return error }
        // Photos that go with the reply as well are taken without the library.
        if request.isStored, !request.isAttached, let error = refusal(of: owner, .libraryAdd) { return error }
        // A user with permission only to see cameras changes nothing.
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
            let cameras = workers.photoConnections(of: session).map(\.input)
            guard request.devices.allSatisfy(cameras.contains) else {
                return BusError(.cancelled, "The session has another camera now; try again.", ["session": .string(id)])
            }
            if request.settings.isLive, let error = LivePhotoPlanner.refusal(session) { return error }
        }
        guard request.settings.changesPicture else { return nil }
        let uniqueIDs = request.cameras.map(\.device.uniqueID)
        let movie = movies.movies.first { movie in
            movie.ending == nil && movie.request.camera.map { uniqueIDs.contains($0.uniqueID) } ?? false
        }
        return movie.map { movie in
            let what =
                request.settings.changesSize
                ? "can't change its size; take the photo without highResolution and maxPhotoDimensions"
                : "would show the exposures of a bracket; take the photo without a bracket"
            return BusError(
                .recordingInProgress,
                "The running movie of \(movie.request.camera?.id ?? "the camera") \(what), or end the movie.",
                ["movie": .string(movie.id)])
        }
    }

    /// Where a camera's photos go, whose turn came at that time of that day; nil: nowhere.
    func place(
        _ request: PhotoRequest, _ camera: PhotoRequest.Camera, day: String, time: String
    ) -> PhotoPlace? {
        guard let library = places.current.library, let stem = try? request.stem(of: camera.device.id, time: time)
        else {
            return nil
        }
        return PhotoPlace(
            library: library, directory: "\(library)/\(day)", stem: stem,
            ids: (0..<request.settings.filesPerDevice).map { _ in hexadecimal(randomBytes(8)) },
            owner: request.owner, session: request.session, rig: request.rig, device: camera.device,
            minFree: places.minimumFree, isShared: places.isShared)
    }
}
