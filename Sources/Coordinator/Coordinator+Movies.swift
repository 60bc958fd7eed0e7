import BusServer
import CaptureCore
import JSON

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
                    && permission.book.status(uid: owner.uid, groups: [owner.gid], media: $0) != .authorized
            }
            return permission.refusal(uid: owner.uid, gid: owner.gid, needed ?? .libraryAdd)
        }
        movies.sessionEnd = { [weak self] in self?.sessionEnd(of: $0) }
        movies.sessionCamera = { [weak self] in self?.sessionCamera(of: $0) }
        movies.trouble = { [weak self] device in
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
}
