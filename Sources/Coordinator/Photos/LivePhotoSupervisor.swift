import BusProtocol
import BusServer
import CaptureCore
import Glibc
import JSON
import LinuxIO
import Logging
import ZeroMQ

/// Acts when the live photos of a session were set otherwise.
protocol LivePhotoObserver: AnyObject {
    /// Photos of the session that are not taken yet are not as requested any more.
    func livePhotosReconfigured(_ session: String)
}

/// Runs one recorder for each session that takes live photos, and has their movies made.
///
/// The recorder holds frames while the session runs. ``LivePhotoPlanner`` decides what is held, the recorder what
/// belongs into a movie. No recorder outlives the coordinator that started it.
final class LivePhotoSupervisor {
    /// What is to be held for a session.
    struct Wish: Equatable {
        var camera: MovieRequest.Device
        /// The camera's format: of another one nothing fits to what is held.
        var format: JSONValue
        var microphone: MovieRequest.Device?
        var orientation: CaptureOrientation
        var isMirrored: Bool
        var isAutoTrimming: Bool
        var isSuspended: Bool
        var owner: LockHolder

        /// What needs a new recorder when it changes; the recorder gets the rest by orders, or does not need it.
        fileprivate var lasting: Wish {
            var lasting = self
            lasting.isSuspended = false
            return lasting
        }

        /// What clients have set of that; the rest changes by itself.
        fileprivate var asked: Wish {
            var asked = lasting
            asked.format = .null
            return asked
        }
    }

    /// A session that takes live photos.
    private final class Line {
        let session: String
        var wish: Wish
        /// Of its recorder; nil: it has none now.
        var movie: String?
        var started: Instant = 0
        /// The recorder before ended by itself, and was not replaced.
        var hasDied = false
        var progress: MovieProgress?
        /// Milliseconds of the past that were published last.
        var told = 0
        var policy = RestartPolicy()
        var retry: Loop.Token?
        /// Photos that wait until something is held.
        var waiting: [(timer: Loop.Token, body: () -> Void)] = []

        init(_ session: String, _ wish: Wish) {
            self.session = session
            self.wish = wish
        }

        /// There is a picture that a movie can begin with.
        var isReady: Bool { progress.map { $0.recordedDuration > 0 } ?? false }
        /// Why none comes, if it does not come by itself soon.
        var refusal: BusError? { isReady ? nil : progress?.refusal.map { .livePhotoMovie(refused: $0) } }
    }

    /// A movie that is being made, or is made and not fetched.
    private struct Job {
        var movie: String
        var identifier: LivePhotoIdentifier
        var isMade = false
    }

    private let loop: Loop
    private let recorders: RecorderSupervisor
    private let directory: RuntimeDirectory
    private let logger: Logger
    private var lines: [String: Line] = [:]
    private var jobs: [String: Job] = [:]
    private var hasEnded = false

    weak var observer: (any LivePhotoObserver)?
    private let lifecycle: Lifecycle
    private let sessions: SessionRegistry
    private let planner: LivePhotoPlanner

    /// Milliseconds of the past that a movie has.
    static let reach = Int(LivePhotoWindow.reach / 1_000_000)
    /// How long a photo waits for the first picture that is held, milliseconds.
    private static let patience: Int64 = 5000

    init(
        _ loop: Loop, _ lifecycle: Lifecycle, _ recorders: RecorderSupervisor, _ sessions: SessionRegistry,
        _ planner: LivePhotoPlanner, directory: RuntimeDirectory, logger: Logger
    ) {
        self.lifecycle = lifecycle
        self.sessions = sessions
        self.planner = planner
        self.loop = loop
        self.recorders = recorders
        self.directory = directory
        self.logger = logger
    }

    /// Removes what a coordinator before this one has left.
    func begin() {
        guard let folder = opendir(directory.livePhotos) else { return }
        defer { closedir(folder) }
        while let entry = readdir(folder) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { File.remove("\(directory.livePhotos)/\(name)") }
        }
    }

    // MARK: Which sessions

    /// Milliseconds of the past that a live photo of that session would have now; nil: it takes none.
    func past(of session: String) -> Int? {
        guard let line = lines[session] else { return nil }
        guard !line.wish.isSuspended, let progress = line.progress else { return 0 }
        return min(max(0, Int(clamping: progress.recordedDuration)), Self.reach)
    }

    /// Pixels of a movie that would be made of that session now; nil: not known.
    func dimensions(of session: String) -> Dimensions? {
        guard let video = lines[session]?.progress?.video, let width = video["width"]?.integer,
            let height = video["height"]?.integer, width > 0, height > 0
        else { return nil }
        return Dimensions(width: Int(clamping: width), height: Int(clamping: height))
    }

    /// A session may have changed, or is gone.
    func review(_ session: String) {
        guard !hasEnded else { return }
        let (line, wanted) = (lines[session], planner.wish(session, held: lines[session]?.wish))
        guard let line else {
            guard let wanted else { return }
            let line = Line(session, wanted)
            lines[session] = line
            start(line)
            return tell(session)
        }
        let before = line.wish
        guard let wanted else {
            lines[session] = nil
            end(line)
            observer?.livePhotosReconfigured(session)
            return tell(session)
        }
        line.wish = wanted
        if wanted.lasting != before.lasting {
            end(line)
            line.hasDied = false
            start(line)
            if wanted.asked != before.asked { observer?.livePhotosReconfigured(session) }
            tell(session)
        } else if wanted.isSuspended != before.isSuspended {
            line.movie.flatMap { recorders[$0] }?.order(.suspend(wanted.isSuspended))
        }
    }

    /// A device or permission has changed, which may concern any session.
    func reviewAll() {
        let enabled = sessions.entries.filter { $0.value.session.photoOutput?.livePhoto.isEnabled == true }.keys
        for session in Set(enabled).union(lines.keys) { review(session) }
    }

    // Later: publishing may lead here again.
    private func tell(_ session: String) {
        loop.schedule(at: 0) { [weak self] in
            guard let self else { return }
            lines[session]?.told = past(of: session) ?? 0
            if !lifecycle.isStopping { sessions.publish(session) }
        }
    }

    // MARK: Their recorders

    private func start(_ line: Line) {
        let wish = line.wish
        var request = MovieRequest(
            movie: hexadecimal(randomBytes(8)), path: "", camera: wish.camera, microphone: wish.microphone,
            fileType: .mov, orientation: wish.orientation.rotationAngle, mirrored: wish.isMirrored,
            session: line.session, owner: wish.owner)
        request.live = MovieRequest.Live(isSuspended: wish.isSuspended, isAutoTrimming: wish.isAutoTrimming)
        let movie = request.movie
        do {
            try recorders.start(
                request,
                listener: RecorderSupervisor.Listener(
                    onProgress: { [weak self, weak line] progress in
                        guard let self, let line, line.movie == movie else { return }
                        progressed(line, progress)
                    },
                    onEnd: { [weak self, weak line] in
                        guard let self, let line, line.movie == movie else { return }
                        ended(line)
                    }))
            line.movie = movie
            line.started = MonotonicClock.now()
            line.policy.started(at: line.started)
        } catch {
            logger.error("a recorder can't be started", metadata: ["session": "\(line.session)", "error": "\(error)"])
            startLater(line)
        }
    }

    private func progressed(_ line: Line, _ progress: MovieProgress) {
        line.progress = progress
        if line.isReady || line.refusal != nil { settle(line) }
        let past = past(of: line.session) ?? 0
        guard past != line.told, past == Self.reach || past < line.told else { return }
        line.told = past
        tell(line.session)
    }

    // It has died, or had nothing to do any more; what it held is gone.
    private func ended(_ line: Line) {
        (line.movie, line.progress) = (nil, nil)
        line.hasDied = true
        guard lines[line.session] === line, !hasEnded else { return }
        logger.warning("the recorder of live photos has ended", metadata: ["session": "\(line.session)"])
        startLater(line)
        tell(line.session)
    }

    private func startLater(_ line: Line) {
        let now = MonotonicClock.now()
        loop.cancel(line.retry)
        line.retry = loop.schedule(at: max(now, line.policy.restart(at: now))) { [weak self, weak line] in
            guard let self, let line else { return }
            line.retry = nil
            guard lines[line.session] === line, line.movie == nil, !hasEnded else { return }
            start(line)
        }
    }

    // What is in progress ends with what there is; it answers that, and then ends.
    private func end(_ line: Line) {
        loop.cancel(line.retry)
        line.retry = nil
        line.movie.flatMap { recorders[$0] }?.order(.stop(.stopped))
        (line.movie, line.progress) = (nil, nil)
        settle(line)
    }

    private func settle(_ line: Line) {
        let waiting = line.waiting
        line.waiting = []
        for (timer, body) in waiting {
            loop.cancel(timer)
            body()
        }
    }

    // MARK: Their movies

    /// Why no movie can be made of a session now; nil: one can, or that is not known yet.
    func refusal(_ session: String) -> BusError? { lines[session]?.refusal }

    /// Calls the body when a picture is held for a session, or can't be.
    func whenReady(_ session: String, _ body: @escaping () -> Void) {
        guard let line = lines[session], !line.isReady, line.refusal == nil else { return body() }
        let timer = loop.schedule(afterMilliseconds: Self.patience) { [weak self, weak line] in
            guard let self, let line else { return }
            settle(line)
        }
        line.waiting.append((timer, body))
    }

    /// Has a movie made of what a session's recorder holds, and of what is to come; the completion is called once, with
    /// the file's bytes where they are wanted. Until ``finish(_:)`` or ``drop(_:)`` the file stays.
    func record(
        _ photo: LivePhotoOrder, of session: String,
        then completion: @escaping (Result<LivePhotoAnswer, BusError>, Message?) -> Void
    ) {
        guard let line = lines[session], let movie = line.movie, let recorder = recorders[movie] else {
            return completion(.failure(.livePhotoMovie("its session has no recorder")), nil)
        }
        guard line.started <= photo.moment else {
            let error = line.hasDied ? BusError.livePhotoMovie("its recorder has died") : Self.reconfigured
            return completion(.failure(error), nil)
        }
        jobs[photo.job] = Job(movie: movie, identifier: photo.identifier)
        recorder.order(.live(photo)) { [weak self] result, file in
            guard let self else { return }
            guard jobs[photo.job]?.movie == movie else {
                // It was given up meanwhile.
                remove(photo.identifier)
                return completion(.failure(BusError(.cancelled, "The photo was cancelled.")), nil)
            }
            do throws(BusError) {
                guard let answer = LivePhotoAnswer(json: try result.get()) else { throw .livePhotoMovie("it failed") }
                jobs[photo.job]?.isMade = true
                completion(.success(answer), file)
            } catch {
                jobs[photo.job] = nil
                // One that only didn't answer in time is about it still.
                if error.reason == .workerCrashed { recorders[movie]?.order(.dropLive(photo.job)) }
                remove(photo.identifier)
                completion(.failure(Self.told(error)), nil)
            }
        }
    }

    /// The movie is where it is to be.
    func finish(_ job: String) {
        guard let job = jobs.removeValue(forKey: job) else { return }
        remove(job.identifier)
    }

    /// A photo needs no movie any more.
    func drop(_ id: String) {
        guard let job = jobs.removeValue(forKey: id) else { return }
        if !job.isMade { recorders[job.movie]?.order(.dropLive(id)) }
        remove(job.identifier)
    }

    private func remove(_ identifier: LivePhotoIdentifier) {
        File.remove(directory.livePhotoFile(identifier.digits))
    }

    /// Nothing is held any more: what is in progress ends with what there is.
    func shutDown() {
        hasEnded = true
        for line in lines.values { end(line) }
        lines = [:]
    }

    // MARK: Refusals

    private static func told(_ error: BusError) -> BusError {
        error.reason == .workerCrashed ? .livePhotoMovie("its recorder has ended") : error
    }

    /// A client has changed the session.
    static let reconfigured = BusError(
        .interrupted, "The session was changed before the live photo was taken; take it again.",
        ["interruption": "reconfiguration"])
}
