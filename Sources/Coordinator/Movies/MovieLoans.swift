import BusProtocol
import BusServer
import CaptureCore
import Glibc
import JSON
import LinuxIO

/// What cameras are set to for the movies that are made of them, and only as long as they are made.
///
/// Which movie it is for, its recorder keeps (``RunningMovie/Note``); that it is owed to the camera, the device book. Neither the end of a
/// recorder nor that of this process leaves it on.
final class MovieLoans {
    /// Loans that are under way for movies that have not begun, by `uniqueID` of the camera.
    fileprivate var pending: [ControlLoan: [String: Int]] = [:]
    /// Movies of a coordinator before this one, whose recorders have not said hello yet.
    fileprivate var awaited: Set<String> = []
    /// How long those have for it, milliseconds.
    fileprivate static let patience: Int64 = 5000
    /// How long a movie waits for its camera to be set, milliseconds.
    fileprivate static let delay: Int64 = 2000

    fileprivate func begin(_ loan: ControlLoan, _ uniqueID: String) {
        pending[loan, default: [:]][uniqueID, default: 0] += 1
    }

    fileprivate func end(_ loan: ControlLoan, _ uniqueID: String) {
        let left = (pending[loan]?[uniqueID] ?? 1) - 1
        pending[loan]?[uniqueID] = left > 0 ? left : nil
    }
}

extension Coordinator {
    func connectLoans() {
        sessions.isLent = { [weak self] loan, device in self?.isLent(loan, device) ?? false }
        loans.awaited = livingRecorders
        guard !loans.awaited.isEmpty else { return }
        loop.schedule(afterMilliseconds: MovieLoans.patience) { [weak self] in
            guard let self, !isStopping else { return }
            loans.awaited = []
            for device in fleet.deviceIDs { returnLoans(device) }
        }
    }

    private var livingRecorders: Set<String> {
        guard let folder = opendir(directory.internalDirectory) else { return [] }
        defer { closedir(folder) }
        var movies: Set<String> = []
        while let entry = readdir(folder) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            guard name.hasSuffix(".movie.lock") else { continue }
            guard case .somebody = LockFile.holder(of: "\(directory.internalDirectory)/\(name)") else { continue }
            movies.insert(String(name.dropLast(".movie.lock".count)))
        }
        return movies
    }

    private func isLent(_ loan: ControlLoan, _ device: String) -> Bool {
        loans.awaited = loans.awaited.filter { recorders[$0] == nil }
        guard loans.awaited.isEmpty, let uniqueID = fleet.workers[device]?.device.identity.uniqueID else { return true }
        if loans.pending[loan]?[uniqueID] != nil { return true }
        return movies.movies.contains { movie in
            let isWanted = loan == .stabilization ? movie.note.isStabilized : movie.note.isSmooth
            return isWanted && movie.request.camera?.uniqueID == uniqueID
        }
    }

    /// What a client wants its cameras to be set to.
    ///
    /// - Parameter preferred: by the session's connection.
    /// - Throws: `controlUnsupported` {device, control, supported}: the format of one of them hasn't got that stabilization.
    func loansWanted(
        _ call: Call, of cameras: [WorkerHandle], preferred: VideoStabilizationMode
    ) throws(BusError) -> Set<ControlLoan> {
        var wanted: Set<ControlLoan> = call.params["smoothAutoFocus"]?.bool ?? true ? [.smoothFocus] : []
        let mode = call.string("stabilization").flatMap(VideoStabilizationMode.init) ?? preferred
        guard mode != .off else { return wanted }
        for camera in cameras {
            let id = camera.device.id
            let format = (camera.status["activeFormat"] ?? camera.committed?["activeFormat"])?["id"]?.string
            guard let supported = surroundings.device(id)?.stabilizationModes(formatID: format),
                !supported.contains(mode.rawValue)
            else { continue }
            throw BusError(
                .controlUnsupported,
                "\(id)'s pictures can't be stabilized as \(mode.rawValue) in this format; it has \(supported.joined(separator: ", ")).",
                ["device": .string(id), "control": "stabilization", "supported": JSONValue(supported)])
        }
        wanted.insert(.stabilization)
        return wanted
    }

    /// Has cameras set for movies that are to be made of them, as far as nobody else has locked them.
    ///
    /// - Parameters:
    ///   - requests: of cameras that their owner may have.
    ///   - lock: the session's own.
    ///   - body: told the movies with what was done for them; called at once if there is nothing to do.
    func lend(
        _ wanted: Set<ControlLoan>, to requests: [MovieRequest], lock lockID: String?,
        then body: @escaping ([MovieRequest]) -> Void
    ) {
        var requests = requests
        var left = 1
        var isOver = false
        var notes = requests.map { RunningMovie.Note(json: $0.note) }
        let finish = { [weak self] in
            guard !isOver else { return }
            isOver = true
            for index in requests.indices { requests[index].note = notes[index].json }
            body(requests)
            // The movies have it now, or nobody.
            for request in requests where request.blank.picture == nil {
                guard let uniqueID = request.camera?.uniqueID else { continue }
                for loan in wanted { self?.loans.end(loan, uniqueID) }
                self?.returnLoans(of: RunningMovie(request))
            }
        }
        let done = {
            left -= 1
            if left == 0 { finish() }
        }
        for (index, request) in requests.enumerated() where request.blank.picture == nil {
            guard let camera = request.camera else { continue }
            let lock = sessions.held(camera.id).flatMap {
                $0.id == lockID || $0.holder.isSameProcess(as: request.owner) ? $0 : nil
            }
            for loan in wanted {
                loans.begin(loan, camera.uniqueID)
                left += 1
                let desk = loan == .stabilization ? sessions.stabilization : sessions.smoothFocus
                desk.turnOn(camera.id, lock: lock) { isOn in
                    if loan == .stabilization {
                        notes[index].isStabilized = isOn
                    } else {
                        notes[index].isSmooth = isOn
                    }
                    done()
                }
            }
        }
        done()
        // A driver that takes its time must not cost the movie its beginning.
        if !isOver { loop.schedule(afterMilliseconds: MovieLoans.delay) { finish() } }
    }

    /// A movie has ended: its camera is as it was before, unless another movie or a session has it so.
    func returnLoans(of movie: RunningMovie) {
        guard let camera = movie.request.camera, let worker = fleet.worker(of: camera.uniqueID) else { return }
        returnLoans(worker.device.id)
    }

    private func returnLoans(_ device: String) {
        sessions.returnLoans(device)
        if sessions.stabilization.isOwed(device) { sessions.review(device) }
    }
}
