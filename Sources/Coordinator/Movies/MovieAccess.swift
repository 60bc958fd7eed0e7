import BusServer
import CaptureCore
import JSON
import LinuxIO

/// What movies have to do with sessions, devices and permission.
extension Coordinator {
    func connectMovies() {
        movies.withdrawal = { [weak self] movie in
            // nil is an answer.
            guard let self else { return [] }
            return withdrawal(from: movie)
        }
        movies.refused = { [permission] movie in
            let owner = movie.request.owner
            let needed = [AuthorizationMedia.video, .audio, .libraryAdd].first {
                ($0 == .libraryAdd || movie.real.contains($0))
                    && !permission.mayKeep(uid: owner.uid, gid: owner.gid, $0)
            }
            return permission.refusal(uid: owner.uid, gid: owner.gid, needed ?? .libraryAdd)
        }
        movies.sessionEnd = { [weak self] in self?.sessionEnd(of: $0) }
        movies.sessionCamera = { [weak self] in self?.sessionCamera(of: $0) }
        movies.starts.trouble = { [weak self] device in
            guard let worker = self?.fleet.worker(of: device.uniqueID) else { return nil }
            let isWell = worker.isRunning && worker.isConnected && worker.status["error"]?.isNull ?? true
            return isWell ? nil : Self.notReady(worker)
        }
        sessions.mayHave = { [weak self] in self?.mayHave($0, of: $1) ?? true }
        movies.onInherited = { [weak self] owner in
            self?.lastConnectionClosed(.init(uid: owner.uid, pid: owner.pid, startTime: owner.startTime))
        }
        sessions.onChange = { [weak self] in self?.sessionChanged($0) }
    }

    /// What of it the movie's user may not have any more, and has to be blank from now on; nil: the movie has to end.
    private func withdrawal(from movie: RunningMovie) -> Set<AuthorizationMedia>? {
        let owner = movie.request.owner
        let denied = [AuthorizationMedia.video, .audio, .libraryAdd].filter {
            !permission.mayKeep(uid: owner.uid, gid: owner.gid, $0)
        }
        return denied.contains(.libraryAdd) ? nil : movie.withdrawal(of: Set(denied))
    }

    /// The camera that a session has got in the place of a segment's; nil: it has the same one, or none that a movie can be of.
    private func sessionCamera(of movie: RunningMovie) -> RecorderOrder.Input? {
        guard movie.note.isSegment, let camera = movie.request.camera,
            let session = movie.request.session.flatMap({ sessions.entries[$0]?.session }), session.run.isWanted,
            let output = session.outputs.first(where: { $0.kind == .movie })
        else { return nil }
        let joined = session.connections(of: output.id).filter(\.isEnabled).compactMap { connection in
            fleet.workers[connection.input].map { (connection, $0) }
        }.filter { $0.1.device.identity.mediaType == .video }
        guard !joined.contains(where: { $0.1.device.identity.uniqueID == camera.uniqueID }), joined.count == 1,
            let (connection, worker) = joined.first
        else { return nil }
        let isMirrored = connection.videoMirrored.isOn(position: worker.device.identity.position)
        return RecorderOrder.Input(
            MovieRequest.Device(worker), orientation: connection.videoOrientation.rotationAngle, mirrored: isMirrored)
    }

    /// Why the movie of a session is to end; nil: it goes on.
    private func sessionEnd(of movie: RunningMovie) -> MovieEndReason? {
        guard let id = movie.request.session else { return nil }
        guard let session = sessions.entries[id]?.session else {
            let owner = movie.request.owner
            let isAlive = movie.note.isDetached || ProcessTable.startTime(of: owner.pid) == owner.startTime
            return isAlive ? .stopped : .ownerGone
        }
        // A device that isn't known yet, or not any more, is the one that was called so.
        func isInput(_ device: MovieRequest.Device) -> Bool {
            session.inputs.contains { input in
                guard let worker = fleet.workers[input.device] else { return input.device == device.id }
                return worker.device.identity.uniqueID == device.uniqueID
            }
        }
        let isServed =
            session.run.isWanted && session.outputs.contains { $0.kind == .movie }
            && movie.devices.first.map(isInput) ?? true
        return isServed ? nil : .stopped
    }
}
