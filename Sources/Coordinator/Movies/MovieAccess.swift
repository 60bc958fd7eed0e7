import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO

/// What permission and sessions mean for a movie that is being made.
final class MovieAccess {
    private let permission: AuthorizationService
    private let sessions: SessionRegistry
    private let workers: WorkerSupervisor

    init(_ permission: AuthorizationService, _ sessions: SessionRegistry, _ workers: WorkerSupervisor) {
        self.permission = permission
        self.sessions = sessions
        self.workers = workers
    }

    /// Why the movie's user may not record its devices: the error for the first of them without permission.
    func refusal(_ movie: RunningMovie) -> BusError {
        let owner = movie.request.owner
        let needed = [AuthorizationMedia.video, .audio, .libraryAdd].first {
            ($0 == .libraryAdd || movie.real.contains($0)) && !permission.mayKeep(uid: owner.uid, gid: owner.gid, $0)
        }
        return permission.refusal(uid: owner.uid, gid: owner.gid, needed ?? .libraryAdd)
    }

    /// The media for which the movie's user has lost permission, and which are blank from now on; nil: the movie has to
    /// end.
    func withdrawal(from movie: RunningMovie) -> Set<AuthorizationMedia>? {
        let owner = movie.request.owner
        let denied = [AuthorizationMedia.video, .audio, .libraryAdd].filter {
            !permission.mayKeep(uid: owner.uid, gid: owner.gid, $0)
        }
        return denied.contains(.libraryAdd) ? nil : movie.withdrawal(of: Set(denied))
    }

    /// The camera that has replaced the segment's in its session; nil: it is the same one, or the session has none that
    /// can be recorded.
    func sessionCamera(of movie: RunningMovie) -> RecorderOrder.Input? {
        guard movie.note.isSegment, let camera = movie.request.camera,
            let session = movie.request.session.flatMap({ sessions.entries[$0]?.session }), session.run.isWanted,
            let output = session.outputs.first(where: { $0.kind == .movie })
        else { return nil }
        let joined = session.connections(of: output.id).filter(\.isEnabled).compactMap { connection in
            workers[connection.input].map { (connection, $0) }
        }.filter { $0.1.device.identity.mediaType == .video }
        guard !joined.contains(where: { $0.1.device.identity.uniqueID == camera.uniqueID }), joined.count == 1,
            let (connection, worker) = joined.first
        else { return nil }
        let isMirrored = connection.videoMirrored.isOn(position: worker.device.identity.position)
        return RecorderOrder.Input(
            MovieRequest.Device(worker), orientation: connection.videoOrientation.rotationAngle, mirrored: isMirrored)
    }

    /// Why the movie of a session has to end; nil: it continues.
    func sessionEnd(of movie: RunningMovie) -> MovieEndReason? {
        guard let id = movie.request.session else { return nil }
        guard let session = sessions.entries[id]?.session else {
            let owner = movie.request.owner
            let isAlive = movie.note.isDetached || ProcessTable.startTime(of: owner.pid) == owner.startTime
            return isAlive ? .stopped : .ownerGone
        }
        // A device that isn't known yet, or not any more, is the one that was called so.
        func isInput(_ device: MovieRequest.Device) -> Bool {
            session.inputs.contains { input in
                guard let worker = workers[input.device] else { return input.device == device.id }
                return worker.device.identity.uniqueID == device.uniqueID
            }
        }
        let isServed =
            session.run.isWanted && session.outputs.contains { $0.kind == .movie }
            && movie.devices.first.map(isInput) ?? true
        return isServed ? nil : .stopped
    }
}
