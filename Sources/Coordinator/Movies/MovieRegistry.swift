import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO
import Logging

/// Acts on movies of all kinds.
protocol MovieObserver: AnyObject {
    /// A movie of a coordinator before this one continues. Its owner has to connect again.
    func movieAdopted(of owner: LockHolder)
    func movieFinished(_ movie: RunningMovie)
}

/// Follows the progress of movies.
protocol MovieProgressObserver: AnyObject {
    /// A movie has changed, apart from its end.
    func movieProgressed(_ movie: RunningMovie)
}

/// Photos that set cameras for a moment.
protocol MoviePhotoState: AnyObject {
    /// Whether a camera has another format than its own, or other exposures, for the moment of a photo.
    func changesPicture(uniqueID: String) -> Bool
}

/// The current movies, and the last ones. Publishes `state/movie/<id>/`.
///
/// ``RunningMovie`` decides what a movie may be and what follows from events; ``RecorderSupervisor`` runs the
/// recorders.
final class MovieRegistry {
    private let events: EventSocket
    private let holders: HolderWatcher
    private let recorders: RecorderSupervisor
    private let logger: Logger

    private var running: [String: RunningMovie] = [:]
    /// In the order in which they were begun.
    private var order: [String] = []
    /// The last ones, the oldest first.
    private(set) var finished: [RunningMovie] = []
    let starts: MovieStarts
    /// Completions that wait for the end of a movie.
    private var stoppers: [String: [(Result<RunningMovie, BusError>) -> Void]] = [:]
    private(set) var hasEnded = false

    weak var observer: (any MovieObserver)?
    weak var takes: (any MovieProgressObserver)?
    weak var photos: (any MoviePhotoState)?
    private let access: MovieAccess
    private let places: RecordingPlaces
    private let quota: LibraryQuota

    static let maximumMovies = 64
    static let maximumOfUser = 32
    private static let maximumFinished = 64
    private static let maximumStoppers = 64
    /// How long recorders may take to finish when the bus ends, nanoseconds.
    private static let lastPatience: Int64 = 10_000_000_000

    init(
        _ loop: Loop, events: EventSocket, _ holders: HolderWatcher, _ recorders: RecorderSupervisor,
        _ access: MovieAccess, _ places: RecordingPlaces, _ quota: LibraryQuota, _ workers: WorkerSupervisor,
        logger: Logger
    ) {
        self.access = access
        self.places = places
        self.quota = quota
        self.events = events
        self.holders = holders
        self.recorders = recorders
        starts = MovieStarts(loop, workers)
        self.logger = logger
        holders.whenEnded { [weak self] pid, startTime in self?.ownerEnded(pid: pid, startTime: startTime) }
        recorders.onAdopted = { [weak self] in self?.adopt($0, $1, $2) ?? false }
        recorders.onProgress = { [weak self] in self?.progressed($0, $1) }
        recorders.onEvent = { [weak self] in self?.happened($0, $1) }
        recorders.isFinished = { [weak self] in self?.running[$0] == nil }
        recorders.onEnd = { [weak self] in self?.recorderEnded($0, $1) }
        quota.recording = { [weak self] in self?.recorded(by: $0) ?? 0 }
    }

    // MARK: Movies

    /// Those that are being made.
    var movies: [RunningMovie] { order.compactMap { running[$0] } }

    func isBeingMade(_ id: String) -> Bool { running[id] != nil }

    /// A movie that is being made, or one of the last.
    func movie(_ id: String) throws(BusError) -> RunningMovie {
        guard let movie = running[id] ?? finished.last(where: { $0.id == id }) else { throw Self.notThere(id) }
        return movie
    }

    /// The movie of that id or, if it has ended, the running one that continues it.
    func current(_ id: String) throws(BusError) -> RunningMovie {
        if running[id] == nil, let next = running.values.first(where: { $0.note.before.contains(id) }) { return next }
        return try movie(id)
    }

    private static func notThere(_ id: String) -> BusError {
        BusError(
            .notRecording,
            "There is no movie '\(id.prefix(64))', or it has ended; movie.list lists the running recordings.",
            ["movie": .string(id)])
    }

    static let shuttingDown = BusError(.shuttingDown, "The bus is shutting down; try again when it is back.")

    private static func over(_ id: String) -> BusError {
        BusError(.notRecording, "The movie \(id) has ended.", ["movie": .string(id)])
    }

    // MARK: The start

    /// Begins these movies together; the completion is called when each has its first frame, or when none has.
    ///
    /// - Returns: how to give them up until then.
    /// - Throws: `recordingInProgress`, `limitExceeded`, `cancelled`, `internalError`, `shuttingDown`: then nothing has
    ///     begun.
    func start(
        _ requests: [MovieRequest], completion: @escaping (Result<[RunningMovie], BusError>) -> Void
    ) throws(BusError) -> () -> Void {
        // It would never be ended.
        guard !hasEnded else { throw Self.shuttingDown }
        try check(requests)
        let start = starts.add(requests, completion)
        do throws(BusError) {
            for request in requests { try begin(request) }
        } catch {
            starts.remove(start)
            for id in start.movies { end(id, for: .stopped) }
            throw error
        }
        starts.limit(start) { [weak self] in self?.late($0) }
        return { [weak self, weak start] in
            guard let self, let start else { return }
            fail(start, BusError(.cancelled, "The movie was cancelled before it began."))
        }
    }

    /// Why a movie can't begin any more: permission or session have changed since the request, or the bus ends; nil: it
    /// can.
    func refusal(_ request: MovieRequest) -> BusError? {
        guard !hasEnded else { return Self.shuttingDown }
        let movie = RunningMovie(request)
        if access.withdrawal(from: movie) != [] { return access.refusal(movie) }
        guard request.session != nil, access.sessionCamera(of: movie) != nil || access.sessionEnd(of: movie) != nil
        else { return nil }
        return BusError(.cancelled, "The session has changed; try again.")
    }

    /// - Throws: `recordingInProgress`, `limitExceeded`, `cancelled`: these movies can't begin now.
    func check(_ requests: [MovieRequest]) throws(BusError) {
        for request in requests {
            if let camera = request.camera, photos?.changesPicture(uniqueID: camera.uniqueID) == true {
                throw BusError(
                    .cancelled,
                    "Photos of \(camera.id) are being taken at another size or with a bracket; try again when they "
                        + "are done."
                )
            }
            try checkIsOnly(request)
        }
        let ofUser = running.values.count { $0.request.owner.uid == requests.first?.owner.uid }
        guard running.count + requests.count <= Self.maximumMovies, ofUser + requests.count <= Self.maximumOfUser else {
            let maximum = ofUser + requests.count <= Self.maximumOfUser ? Self.maximumMovies : Self.maximumOfUser
            throw BusError(
                .limitExceeded, "Too many movies are being recorded; stop one of them.",
                ["limit": "movies", "maximum": JSONValue(maximum)])
        }
    }

    /// Calls the body with why its owner may not record into the library any more (`limitExceeded`); nil: the movie may
    /// begin. At once, as a rule.
    func checkRoom(for request: MovieRequest?, then body: @escaping (BusError?) -> Void) {
        guard let request, request.library != nil else { return body(nil) }
        quota.check(request.owner.uid, then: body)
    }

    // One movie of each device of a session, and one that a process makes of a device.
    private func checkIsOnly(_ request: MovieRequest) throws(BusError) {
        let devices = Set([request.camera, request.microphone].compactMap { $0?.uniqueID })
        let main = request.camera ?? request.microphone
        let other = running.values.first { movie in
            guard movie.request.session == request.session,
                request.session != nil || movie.request.owner.isSameProcess(as: request.owner)
            else { return false }
            return movie.devices.first.map { devices.contains($0.uniqueID) && $0.uniqueID == main?.uniqueID } ?? false
        }
        guard let other else { return }
        let whose = request.session.map { "The session \($0)" } ?? "\(request.owner.name) (pid \(request.owner.pid))"
        throw BusError(
            .recordingInProgress,
            "\(whose) already records \(main?.id ?? "it") (movie \(other.id)); movie.stop ends it.",
            ["movie": .string(other.id)])
    }

    private func begin(_ request: MovieRequest) throws(BusError) {
        let movie = RunningMovie(request)
        guard watch(movie) else {
            throw BusError(.cancelled, "The process that asked for the movie has ended.")
        }
        do {
            try recorders.start(request)
        } catch {
            release(movie)
            logger.error("a recorder can't be started", metadata: ["error": "\(error)"])
            throw BusError(.internalError, "The recorder could not be started; see the coordinator's log.")
        }
        add(movie)
    }

    private func add(_ movie: RunningMovie) {
        running[movie.id] = movie
        order.append(movie.id)
        publish(movie)
        logger.info("movie", metadata: ["movie": "\(movie.id)", "owner": "\(movie.request.owner.name)"])
    }

    private func fail(_ start: MovieStarts.Start, _ error: BusError) {
        guard starts.remove(start) else { return }
        // None of them is to be, also those that have begun.
        for id in start.movies { discard(id) }
        start.completion(.failure(error))
    }

    private func late(_ start: MovieStarts.Start) {
        let waiting = start.movies.filter(start.waiting.contains).compactMap { running[$0] }
        fail(start, starts.late(waiting.flatMap(\.devices), refusal: waiting.compactMap(\.progress.refusal).first))
    }

    // MARK: The end

    /// Ends a movie; the completion is called when its file is closed, or has been.
    ///
    /// - Parameter time: what is taken from then on is not in it.
    func stop(
        _ id: String, at time: Instant = MonotonicClock.now(),
        _ completion: @escaping (Result<RunningMovie, BusError>) -> Void
    ) {
        guard running[id] != nil else {
            return completion(Result { () throws(BusError) in try movie(id) })
        }
        guard stoppers[id, default: []].count < Self.maximumStoppers else {
            return completion(
                .failure(
                    BusError(
                        .limitExceeded, "Too many requests wait for the end of this movie.",
                        ["limit": "movieStops", "maximum": JSONValue(Self.maximumStoppers)])))
        }
        stoppers[id, default: []].append(completion)
        end(id, for: .stopped, at: time)
    }

    /// Ends it for that reason.
    private func end(_ id: String, for reason: MovieEndReason, at time: Instant? = nil) {
        guard let action = running[id]?.end(for: reason, at: time) else { return }
        carryOut(action, id)
        if let movie = running[id] { publish(movie) }
    }

    /// Ends it, and removes its file.
    func discard(_ id: String) {
        guard running[id] != nil else { return }
        _ = running[id]?.end(for: .stopped)
        carryOut(.cancel, id)
    }

    private func carryOut(_ action: RecorderOrder.Action, _ id: String) {
        guard let recorder = recorders[id] else { return }
        recorder.order(action) { [weak self] result in
            guard let self else { return }
            switch result {
            case .success(let json): if let result = MovieResult(json: json) { finished(id, result) }
            case .failure(let error):
                // Requests that wait for the end fail. The end is published when it comes.
                for completion in stoppers.removeValue(forKey: id) ?? [] { completion(.failure(error)) }
            }
        }
    }

    /// Pauses or resumes it; the completion is called when its recorder does.
    func order(
        _ id: String, _ action: RecorderOrder.Action, _ completion: @escaping (Result<RunningMovie, BusError>) -> Void
    ) {
        guard let movie = running[id], movie.ending == nil, let recorder = recorders[id] else {
            return completion(.failure(running[id] == nil && !isKnown(id) ? Self.notThere(id) : Self.over(id)))
        }
        recorder.order(action) { [weak self] result in
            completion(
                Result { () throws(BusError) in
                    _ = try result.get()
                    guard let movie = self?.running[id] else { throw Self.over(id) }
                    return movie
                })
        }
    }

    private func isKnown(_ id: String) -> Bool { finished.contains { $0.id == id } }

    // MARK: Reports of recorders

    private func progressed(_ id: String, _ progress: MovieProgress) {
        guard running[id]?.update(progress) ?? false, let movie = running[id] else { return }
        publish(movie)
        takes?.movieProgressed(movie)
        if progress.isReady {
            let time = MonotonicClock.now() + MovieSelection.lead
            for id in starts.ready(id) {
                recorders[id]?.order(.begin(at: time)) { [weak self] result in
                    if case .failure(let error) = result, let self, let start = starts[id] { fail(start, error) }
                }
            }
        }
        // One that has not begun would be given up, not ended.
        guard movie.hasBegun, movie.request.library != nil else { return }
        quota.whenReached(by: movie.request.owner.uid) { [weak self] in self?.end(id, for: .libraryQuotaReached) }
    }

    /// Bytes of the movies of a user that are being recorded into the library.
    private func recorded(by uid: UInt32) -> Int64 {
        running.values.reduce(0) { sum, movie in
            guard movie.request.owner.uid == uid, movie.request.library != nil else { return sum }
            return sum &+ movie.progress.recordedFileSize
        }
    }

    private func happened(_ id: String, _ event: MovieEvent) {
        guard let movie = running[id] else { return }
        switch event {
        case .didStartRecording: begun(id)
        case .didPauseRecording, .didResumeRecording, .didDropFrames, .didChangeSize, .didDisconnect, .didReconnect:
            tell(movie, event)
        case .didFinishRecording(let result): finished(id, result)
        }
    }

    private func begun(_ id: String) {
        guard running[id]?.begin() ?? false, let movie = running[id] else { return }
        publish(movie)
        tell(movie, .didStartRecording)
        guard let start = starts.begun(id) else { return }
        start.completion(.success(start.movies.compactMap { id in try? self.movie(id) }))
    }

    private func recorderEnded(_ id: String, _ ending: String?) {
        guard let movie = running[id] else { return }
        finished(id, movie.crash(ending))
    }

    private func finished(_ id: String, _ result: MovieResult) {
        guard running[id]?.finish(result) ?? false, var movie = running.removeValue(forKey: id) else { return }
        order.removeAll { $0 == id }
        movie.setNext(succeed(movie))
        ended(movie, movie.result ?? result)
    }

    private func ended(_ movie: RunningMovie, _ result: MovieResult) {
        let id = movie.id
        if result.isKept, movie.request.library != nil { quota.add(result.size, of: movie.request.owner.uid) }
        release(movie)
        events.set("state/movie/\(id)", nil)
        logger.info(
            "movie ended",
            metadata: ["movie": "\(id)", "reason": "\(result.reason.rawValue)", "frames": "\(result.frames)"])
        if movie.isTold {
            finished.append(movie)
            finished.removeFirst(max(0, finished.count - Self.maximumFinished))
            events.event("event/movie/\(id)", "didFinishRecording", movie.members(of: result))
        }
        observer?.movieFinished(movie)
        for completion in stoppers.removeValue(forKey: id) ?? [] {
            completion(movie.isTold ? .success(movie) : .failure(Self.over(id)))
        }
        // One of a rig may have reached its limit before the others have begun.
        if let start = starts[id], !movie.hasBegun || !result.isSuccess {
            fail(start, starts.why(movie, result))
        }
    }

    /// Another recorder continues after one that died, that found an existing file, or whose file could not hold what
    /// its devices deliver now.
    private func succeed(_ movie: RunningMovie) -> String? {
        guard !hasEnded, starts[movie.id] == nil,
            var next = movie.follower(hexadecimal(randomBytes(8)), at: MonotonicClock.now())
        else { return nil }
        // The configuration may have changed since the movie began.
        next.isLibraryShared = places.isShared
        do {
            try begin(next)
            return next.movie
        } catch {
            logger.error("a movie does not go on", metadata: ["movie": "\(movie.id)", "error": "\(error.message)"])
            return nil
        }
    }

    // MARK: Owners

    private func watch(_ movie: RunningMovie) -> Bool {
        let owner = movie.request.owner
        guard !movie.note.isDetached else { return true }
        guard owner.pid > 0, let startTime = owner.startTime else { return false }
        return holders.retain(pid: owner.pid, startTime: startTime)
    }

    private func release(_ movie: RunningMovie) {
        guard !movie.note.isDetached, let startTime = movie.request.owner.startTime else { return }
        holders.release(pid: movie.request.owner.pid, startTime: startTime)
    }

    // A movie of a coordinator before this one continues if it still may, and so does a part of a movie. A movie that
    // had not begun is ended: its reply was lost with that coordinator.
    private func adopt(_ recorder: RecorderHandle, _ request: MovieRequest, _ progress: MovieProgress) -> Bool {
        let movie = RunningMovie(request, progress: progress)
        guard !hasEnded, movie.isTold else { return false }
        let hasOwner = watch(movie)
        add(movie)
        // Like any movie whose process ends, it is published until its file is closed.
        guard hasOwner else {
            end(movie.id, for: .ownerGone)
            return true
        }
        if !movie.note.isDetached { observer?.movieAdopted(of: request.owner) }
        takes?.movieProgressed(movie)
        review(movie)
        return true
    }

    /// A process has ended, or has been without a connection for too long.
    func ownerEnded(pid: Int32, startTime: UInt64?, uid: UInt32? = nil) {
        for movie in movies where !movie.note.isDetached && movie.request.owner.pid == pid {
            let owner = movie.request.owner
            if owner.startTime == startTime, uid == nil || owner.uid == uid { end(movie.id, for: .ownerGone) }
        }
    }

    /// Permission may have changed.
    func review() { for movie in movies { review(movie) } }

    /// A session may have changed, or is gone.
    func sessionChanged(_ id: String) { for movie in movies where movie.request.session == id { review(movie) } }

    private func review(_ movie: RunningMovie) {
        guard movie.ending == nil else { return }
        guard let lost = access.withdrawal(from: movie) else { return end(movie.id, for: .unauthorized) }
        for media in lost.sorted(by: { $0.rawValue < $1.rawValue }) { blank(movie.id, media) }
        if movie.request.session != nil, let input = access.sessionCamera(of: movie) {
            goOn(movie.id, with: input)
        } else if movie.request.session != nil, let reason = access.sessionEnd(of: movie) {
            end(movie.id, for: reason)
        }
    }

    /// Has a segment go on with another camera, in the same file; where that can't be, it ends.
    private func goOn(_ id: String, with input: RecorderOrder.Input) {
        guard let movie = running[id], movie.ending == nil, let recorder = recorders[id] else { return }
        running[id]?.switched(to: input.camera)
        if let movie = running[id] {
            publish(movie)
            takes?.movieProgressed(movie)
        }
        recorder.order(.input(input)) { [weak self] result in
            // Another camera may be the session's by now.
            guard case .failure(let error) = result, let self, running[id]?.request.camera == input.camera else {
                return
            }
            logger.warning(
                "a segment can't go on with another camera", metadata: ["movie": "\(id)", "error": "\(error.message)"])
            end(id, for: .stopped)
        }
    }

    private func blank(_ id: String, _ media: AuthorizationMedia) {
        guard let recorder = recorders[id] else { return }
        running[id]?.withdraw(media)
        recorder.order(.blank(media)) { [weak self] result in
            // Where nothing can stand for it, there is no movie any more.
            if case .failure = result { self?.end(id, for: .unauthorized) }
        }
        if let movie = running[id] { publish(movie) }
    }

    /// Has all finish; the body is called when they have, or when that takes too long.
    func shutDown(then body: @escaping () -> Void) {
        hasEnded = true
        for start in starts.all { fail(start, Self.shuttingDown) }
        for movie in movies { self.end(movie.id, for: .shuttingDown) }
        recorders.finishAll(by: MonotonicClock.now() + Self.lastPatience, then: body)
    }

    // MARK: State

    private func publish(_ movie: RunningMovie) { events.set("state/movie/\(movie.id)", movie.json) }

    private func tell(_ movie: RunningMovie, _ event: MovieEvent) {
        events.event(
            "event/movie/\(movie.id)", event.name, event.members.merging(movie.place) { $1 })
    }
}
