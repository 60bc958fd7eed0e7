import BusProtocol
import BusServer
import CaptureCore
import Glibc
import JSON
import LinuxIO

/// Automatic controls that are on for movies, and only as long as these are made.
///
/// The recorder keeps which movie a control is on for (``RunningMovie/Note``), the device table that it has to be
/// turned off. So neither the end of a recorder nor that of this process leaves it on.
final class MovieControls: AutomaticControlUser {
    private let loop: Loop
    private let lifecycle: Lifecycle
    private let directory: RuntimeDirectory
    private let workers: WorkerSupervisor
    private let recorders: RecorderSupervisor
    private let movies: MovieRegistry
    private let sessions: SessionRegistry
    private let resolver: DeviceResolver
    /// Movies that have not begun and need a control, by `uniqueID` of the camera.
    private var pending: [AutomaticControl: [String: Int]] = [:]
    /// Movies of a coordinator before this one, whose recorders have not said hello yet.
    private var awaited: Set<String> = []
    /// How long those have for it, milliseconds.
    private static let patience: Int64 = 5000
    /// How long a movie waits for its camera to be set, milliseconds.
    private static let delay: Int64 = 2000

    init(
        _ loop: Loop, _ lifecycle: Lifecycle, _ directory: RuntimeDirectory, _ workers: WorkerSupervisor,
        _ recorders: RecorderSupervisor, _ movies: MovieRegistry, _ sessions: SessionRegistry,
        _ resolver: DeviceResolver
    ) {
        self.loop = loop
        self.lifecycle = lifecycle
        self.directory = directory
        self.workers = workers
        self.recorders = recorders
        self.movies = movies
        self.sessions = sessions
        self.resolver = resolver
        sessions.movies = self
        awaited = livingRecorders
        guard !awaited.isEmpty else { return }
        loop.schedule(afterMilliseconds: Self.patience) { [weak self] in self?.recordersAwaited() }
    }

    // Recorders that have not said hello by now are gone.
    private func recordersAwaited() {
        guard !lifecycle.isStopping else { return }
        awaited = []
        for device in workers.deviceIDs { release(device) }
    }

    private func begin(_ control: AutomaticControl, _ uniqueID: String) {
        pending[control, default: [:]][uniqueID, default: 0] += 1
    }

    private func end(_ control: AutomaticControl, _ uniqueID: String) {
        let left = (pending[control]?[uniqueID] ?? 1) - 1
        pending[control]?[uniqueID] = left > 0 ? left : nil
    }

    /// Movies whose recorders run, also those of a coordinator before this one.
    private var livingRecorders: Set<String> {
        Set(LockFile.held(in: directory.internalDirectory, ending: RuntimeDirectory.movieLockEnding).keys)
    }

    func isNeeded(_ control: AutomaticControl, _ device: String) -> Bool {
        awaited = awaited.filter { recorders[$0] == nil }
        guard awaited.isEmpty, let uniqueID = workers[device]?.device.identity.uniqueID else { return true }
        if pending[control]?[uniqueID] != nil { return true }
        return movies.movies.contains { movie in
            let isWanted = control == .stabilization ? movie.note.isStabilized : movie.note.isSmooth
            return isWanted && movie.request.camera?.uniqueID == uniqueID
        }
    }

    /// The controls that a movie of each camera needs, by the camera's `uniqueID`.
    ///
    /// - Throws: `controlUnsupported` {device, control, supported}: the format of one of them has no such
    ///     stabilization.
    func wanted(
        _ call: Call, of cameras: [MovieSubject.Camera]
    ) throws(BusError) -> [String: Set<AutomaticControl>] {
        let always: Set<AutomaticControl> = call.params["smoothAutoFocus"]?.bool ?? true ? [.smoothFocus] : []
        let named = call.string("stabilization").flatMap(VideoStabilizationMode.init)
        var wanted: [String: Set<AutomaticControl>] = [:]
        for camera in cameras {
            let (worker, mode) = (camera.worker, named ?? camera.stabilization)
            let id = worker.device.id
            wanted[worker.device.identity.uniqueID] = mode == .off ? always : always.union([.stabilization])
            let format = (worker.activeFormat ?? worker.committed?["activeFormat"])?["id"]?.string
            guard mode != .off, let supported = resolver.surroundings.device(id)?.stabilizationModes(formatID: format),
                !supported.contains(mode.rawValue)
            else { continue }
            throw BusError(
                .controlUnsupported,
                "\(id)'s pictures can't be stabilized as \(mode.rawValue) in this format; it has "
                    + "\(supported.joined(separator: ", ")).",
                ["device": .string(id), "control": "stabilization", "supported": JSONValue(supported)])
        }
        return wanted
    }

    /// Turns controls on for movies of cameras that nobody else has locked.
    ///
    /// - Parameters:
    ///   - requests: of cameras for which their owner has permission.
    ///   - lock: the session's.
    ///   - body: gets the requests with what was turned on for them; called at once if there is nothing to do.
    func turnOn(
        _ wanted: [String: Set<AutomaticControl>], for requests: [MovieRequest], lock lockID: String?,
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
            // By now the movies need it, or nobody.
            for request in requests where request.blank.picture == nil {
                guard let uniqueID = request.camera?.uniqueID else { continue }
                for control in wanted[uniqueID] ?? [] { self?.end(control, uniqueID) }
                self?.release(after: RunningMovie(request))
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
            for control in wanted[camera.uniqueID] ?? [] {
                begin(control, camera.uniqueID)
                left += 1
                let automatic = control == .stabilization ? sessions.stabilization : sessions.smoothFocus
                automatic.turnOn(camera.id, lock: lock) { isOn in
                    if control == .stabilization {
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
        if !isOver { loop.schedule(afterMilliseconds: Self.delay) { finish() } }
    }

    /// A movie has ended: what was turned on for it is turned off, unless another movie or a session needs it.
    func release(after movie: RunningMovie) {
        guard let camera = movie.request.camera, let worker = workers.worker(of: camera.uniqueID) else { return }
        release(worker.device.id)
    }

    private func release(_ device: String) {
        sessions.releaseControls(device)
        if sessions.stabilization.isOwed(device) { sessions.review(device) }
    }
}
