import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO
import Logging
import ZeroMQ

/// `photo.capture`: the current photo requests. Publishes their events.
///
/// ``PhotoQueue`` decides whose turn it is and which event comes when; the workers take and store the photos. This
/// class adds the owners, the locks, and the files on their way to the reply.
final class PhotoService: MethodService {
    /// One request, from the queue to its last event.
    final class Run {
        /// Its cameras may get other names.
        var request: PhotoRequest
        let completion: (CallReply) -> Void
        /// Its cameras are being got ready.
        var hasBegun = false
        /// The files, by their camera's `uniqueID`, their index and their kind.
        var files: [String: Message] = [:]
        var bytes = 0
        /// That all files have at least, as far as that is known before they are made.
        var leastBytes: Int64 = 0
        /// There was no room for them all: the reply has none, and those that go into the library go on.
        var isTooLarge = false
        /// Under which a camera is set for it, by `uniqueID`.
        var fences: [String: UInt64] = [:]
        /// When each camera has its frames, by `uniqueID`.
        var beats: [String: PhotoBeat] = [:]
        /// The ticket with which it waits for a lock on cameras that are free.
        var ticket: UInt64?
        /// Gives back the lock that was taken for it.
        var unlock: (() -> Void)?
        /// When its exposure began, monotonic nanoseconds; nil: it is not taken.
        var moment: Instant?
        /// Of a live photo, when it is made.
        var movie: LivePhotoAnswer?

        init(_ request: PhotoRequest, _ completion: @escaping (CallReply) -> Void) {
            self.request = request
            self.completion = completion
        }
    }

    private let loop: Loop
    private let events: EventSocket
    private let holders: HolderWatcher
    let locks: LockService
    let workers: WorkerSupervisor
    private let logger: Logger
    private let budget = AttachmentBudget(.photos)

    var queue = PhotoQueue()
    private var runs: [String: Run] = [:]
    private var steps: [PhotoStep] = []
    private var isPerforming = false
    private(set) var hasEnded = false
    private var whenEnded: (() -> Void)?

    let access: PhotoAccess
    let live: LivePhotoSupervisor
    let planner: LivePhotoPlanner
    let lifecycle: Lifecycle
    let sessions: SessionRegistry
    let publisher: DevicePublisher
    private let reader: PhotoRequestReader
    private let librarians: LibrarianSupervisor
    private let quota: LibraryQuota
    private let cancellations: CancellationTable
    /// A worker has died that may have left something half stored.
    private var isLeft = false
    /// The last scene that each camera's worker reported, by id.
    var scenes: [String: JSONValue] = [:]

    /// Bytes of the files in one reply.
    let maximumReply: Int
    /// How long photos that are taken may take to be finished when the bus ends, milliseconds.
    private static let lastPatience: Int64 = 5000

    init(
        _ loop: Loop, _ lifecycle: Lifecycle, events: EventSocket, _ holders: HolderWatcher, _ locks: LockService,
        _ workers: WorkerSupervisor, _ sessions: SessionRegistry, _ movies: MovieRegistry, _ publisher: DevicePublisher,
        _ reader: PhotoRequestReader, _ access: PhotoAccess, _ planner: LivePhotoPlanner, _ live: LivePhotoSupervisor,
        _ librarians: LibrarianSupervisor, _ quota: LibraryQuota, _ cancellations: CancellationTable, maximumReply: Int,
        logger: Logger
    ) {
        self.loop = loop
        self.lifecycle = lifecycle
        self.events = events
        self.holders = holders
        self.locks = locks
        self.workers = workers
        self.sessions = sessions
        self.publisher = publisher
        self.reader = reader
        self.access = access
        self.planner = planner
        self.live = live
        self.librarians = librarians
        self.quota = quota
        self.cancellations = cancellations
        self.maximumReply = maximumReply
        self.logger = logger
        holders.whenEnded { [weak self] pid, startTime in self?.ownerEnded(pid: pid, startTime: startTime) }
        workers.onPhoto = { [weak self] in self?.reported($0, $1, $2) }
        live.observer = self
        planner.photos = self
        publisher.photos = self
        sessions.photos = self
        movies.photos = self
    }

    var methods: [String: Handler] { ["photo.capture": .attaching(capture)] }

    // MARK: Requests

    private func capture(_ call: Call, _ respond: @escaping ReplyTaker) {
        do throws(BusError) {
            let request = try reader.request(call)
            guard request.isStored else { return cancellations.set(call.key, try start(request, completion: respond)) }
            var isGivenUp = false
            cancellations.set(call.key) {
                isGivenUp = true
                respond(.failure(BusError(.cancelled, "The photo was cancelled.")))
            }
            quota.check(request.owner.uid) { [weak self] refusal in
                guard let self, !isGivenUp else { return }
                do throws(BusError) {
                    if let refusal { throw refusal }
                    cancellations.set(call.key, try start(request, completion: respond))
                } catch {
                    respond(.failure(error))
                }
            }
        } catch {
            respond(.failure(error))
        }
    }

    /// Has photos taken as soon as their cameras are free; the completion is called once, and not before this returns.
    ///
    /// - Returns: how to give them up until then.
    /// - Throws: `limitExceeded`, `cancelled`, `shuttingDown`: then nothing is done.
    private func start(_ request: PhotoRequest, completion: @escaping (CallReply) -> Void) throws(BusError) -> () ->
        Void
    {
        guard !hasEnded else { throw MovieRegistry.shuttingDown }
        guard watch(request.owner) else { throw Self.ownerGone }
        do throws(BusError) {
            let steps = try queue.add(
                request.id, devices: request.devices, owner: request.owner.json, isPast: request.moment != nil,
                isLive: request.settings.isLive)
            runs[request.id] = Run(request, completion)
            loop.schedule(at: 0) { [weak self] in self?.perform(steps) }
        } catch {
            release(request.owner)
            throw error
        }
        publishReadiness(request.devices)
        return { [weak self] in self?.end(request.id, BusError(.cancelled, "The photo was cancelled.")) }
    }

    private static let ownerGone = BusError(.cancelled, "The process that asked for the photo has ended.")

    // A process that can't be watched from here gets its reply while it is connected.
    private func watch(_ owner: LockHolder) -> Bool {
        guard owner.pid > 0, let startTime = owner.startTime else { return true }
        return holders.retain(pid: owner.pid, startTime: startTime)
    }

    private func release(_ owner: LockHolder) {
        guard owner.pid > 0, let startTime = owner.startTime else { return }
        holders.release(pid: owner.pid, startTime: startTime)
    }

    // MARK: Steps

    // In their order, also what follows from one while others are left.
    func perform(_ more: [PhotoStep]) {
        steps += more
        guard !isPerforming else { return }
        isPerforming = true
        var next = 0
        while next < steps.count {
            let step = steps[next]
            next += 1
            perform(step)
        }
        steps = []
        isPerforming = false
    }

    private func perform(_ step: PhotoStep) {
        switch step {
        case .prepare(let id, _):
            // Those of all of its cameras come at once.
            guard let run = runs[id], !run.hasBegun else { return }
            run.hasBegun = true
            begin(run)
        case .take(let id, let devices): if let run = runs[id] { take(run, devices) }
        case .drop(let id, let device):
            guard let run = runs[id] else { return }
            order(.dropPhoto(job: id), device, run) { [weak self] device, _ in
                guard let self else { return }
                perform(queue.dropped(id, device))
            }
        case .record(let id, _): if let run = runs[id] { record(run) }
        case .store(let id, let device): if let run = runs[id] { store(run, device) }
        case .unrecord(let id): live.drop(id)
        case .tell(let id, let stage, let members): if let run = runs[id] { tell(run, stage, members) }
        case .finish(let id, let result): if let run = runs.removeValue(forKey: id) { finish(run, result) }
        }
    }

    // MARK: Reports of workers

    private func reported(_ worker: WorkerHandle, _ report: WorkerHandle.PhotoReport, _ file: Message?) {
        let uniqueID = worker.device.identity.uniqueID
        guard let run = runs[report.job], let camera = run.request.camera(uniqueID) else { return }
        do throws(BusError) {
            var photo: PhotoResult?
            if report.progress == .processed {
                let finished = try PhotoResult(json: report.members["photo"] ?? .null)
                if run.request.isAttached, !run.isTooLarge {
                    try keep(file, Self.key(uniqueID, finished), finished.bytes, run)
                }
                photo = finished
            }
            if report.progress == .didCapture { run.moment = report.members["moment"]?.integer }
            perform(queue.progressed(report.job, camera.device.id, report.progress, photo: photo))
        } catch {
            end(report.job, error)
        }
    }

    /// - Parameter size: bytes that it has, also where it doesn't come: it is too large for itself then.
    func keep(_ file: Message?, _ key: String, _ size: Int, _ run: Run) throws(BusError) {
        let (bytes, isTooMany) = run.bytes.addingReportingOverflow(size)
        run.bytes = isTooMany ? .max : bytes
        do throws(BusError) {
            guard run.bytes <= maximumReply else { throw tooLarge }
            guard let file else { throw Self.notGiven }
            run.files[key] = try budget.count(file, for: run.request.owner.uid)
        } catch {
            run.files = [:]
            guard run.request.isStored else { throw error }
            run.isTooLarge = true
            queue.fail(run.request.id, error)
        }
    }

    var tooLarge: BusError {
        BusError(
            .limitExceeded,
            "The photos are too large for a reply; have them delivered to the library, or request fewer.",
            ["limit": "photoReply", "maximum": JSONValue(maximumReply)])
    }

    private static let notGiven = BusError(.internalError, "A camera's worker did not deliver its photo; try again.")

    private static func key(_ uniqueID: String, _ photo: PhotoResult) -> String {
        "\(uniqueID)/\(photo.index)/\(photo.fileType)"
    }

    // MARK: Events

    private func tell(_ run: Run, _ stage: PhotoJobStage, _ members: JSONValue) {
        var members = members.object ?? [:]
        if let photo = members["photo"] { members["photo"] = run.request.told(photo) }
        if let known = members["resolved"] { members["resolved"] = resolved(known, run) }
        events.event("event/photo/\(run.request.id)", stage.rawValue, members)
        // What was set for it the workers put back now, before anything else is set.
        if stage == .didCapturePhoto { unlock(run) }
        publishReadiness(run.request.devices)
    }

    private func unlock(_ run: Run) {
        let unlock = run.unlock
        run.unlock = nil
        unlock?()
    }

    private func finish(_ run: Run, _ result: Result<PhotoOutcome, BusError>) {
        let request = run.request
        release(request.owner)
        unlock(run)
        if let ticket = run.ticket { locks.cancel(ticket) }
        switch result {
        case .success(let outcome):
            for photo in outcome.photos where photo.path != nil { quota.add(Int64(photo.bytes), of: request.owner.uid) }
            if let movie = outcome.movie, movie.path != nil { quota.add(Int64(movie.bytes), of: request.owner.uid) }
            let cameras = request.cameras.map(\.device)
            var files = outcome.photos.compactMap { photo in
                cameras.first { $0.id == photo.device }.flatMap { run.files[Self.key($0.uniqueID, photo)] }
            }
            if outcome.movie != nil, let movie = movieFile(run) { files.append(movie) }
            logger.info("photo", metadata: ["photo": "\(request.id)", "photos": "\(outcome.photos.count)"])
            let count = outcome.photos.count + (outcome.movie == nil ? 0 : 1)
            let isWhole = !request.isAttached || files.count == count
            run.completion(isWhole ? request.answer(outcome, files: files) : .failure(Self.notGiven))
        case .failure(let error):
            for photo in error.data["photos"]?.array ?? [] where photo["path"]?.string != nil {
                quota.add(photo["bytes"]?.integer ?? 0, of: request.owner.uid)
            }
            logger.notice("photo failed", metadata: ["photo": "\(request.id)", "error": "\(error.message)"])
            run.completion(.failure(request.told(error)))
        }
        publishReadiness(request.devices)
        if request.settings.changesSize, run.hasBegun {
            for device in request.devices { sessions.deviceChanged(device) }
        }
        if runs.isEmpty { tellEnded() }
    }

    /// Whether a camera has another format than its own, for the moment of a photo of another size.
    func isBorrowed(uniqueID: String) -> Bool { isSet(uniqueID) { $0.changesSize } }

    /// Whether a camera has another format than its own, or other exposures, for a moment.
    func changesPicture(uniqueID: String) -> Bool { isSet(uniqueID) { $0.changesPicture } }

    private func isSet(_ uniqueID: String, _ isMeant: (PhotoSettings) -> Bool) -> Bool {
        runs.values.contains { $0.hasBegun && isMeant($0.request.settings) && $0.request.camera(uniqueID) != nil }
    }

    /// A worker's process has ended: the next one knows nothing of a photo that this one was ready for, or held.
    func lost(_ worker: WorkerHandle) { perform(queue.lost(worker.device.id, worker.crashed)) }

    // One that dies had a part in several photos.
    func tellLeft() {
        guard !isLeft else { return }
        isLeft = true
        loop.schedule(at: 0) { [weak self] in
            self?.isLeft = false
            guard let self, !self.lifecycle.isStopping else { return }
            librarians.recover()
        }
    }

    // MARK: Ends

    func end(_ id: String, _ error: BusError, keepsCaptured: Bool = false) {
        perform(queue.end(id, error, keepsCaptured: keepsCaptured))
    }

    /// A process has ended, or has been without a connection for too long: photos that are taken by then are finished.
    func ownerEnded(pid: Int32, startTime: UInt64?, uid: UInt32? = nil) {
        endAll { request in
            let owner = request.owner
            return owner.pid == pid && owner.startTime == startTime && (uid == nil || owner.uid == uid)
                ? Self.ownerGone : nil
        }
    }

    /// Permission or movies may have changed.
    func review() {
        endAll { [access] in access.refusal($0) }
        for run in runs.values where run.hasBegun && run.request.isStored && run.request.isAttached {
            // Both files of a live photo are stored in one moment.
            guard !run.request.settings.isLive, run.request.notStored == nil,
                let refusal = access.libraryRefusal(run.request)
            else { continue }
            run.request.notStored = refusal
            for device in run.request.devices {
                order(.keepFromLibrary(job: run.request.id), device, run) { _, _ in }
            }
        }
    }

    /// A session may have changed, or is gone.
    func sessionChanged(_ id: String) { endAll { [access] in $0.session == id ? access.refusal($0) : nil } }

    // The last first: none gets its turn that is to be given up as well.
    func endAll(_ why: (PhotoRequest) -> BusError?) {
        guard !runs.isEmpty else { return }
        for id in queue.ids.reversed() {
            guard let run = runs[id], let error = why(run.request) else { continue }
            end(id, error, keepsCaptured: true)
        }
    }

    /// Devices get other names. Orders to their workers fail, as other workers replace these.
    func rename(_ names: [(device: String, name: String)]) {
        let names = Dictionary(names.map { ($0.device, $0.name) }) { first, _ in first }
        queue.rename(names)
        for run in runs.values {
            for index in run.request.cameras.indices {
                let id = run.request.cameras[index].device.id
                run.request.cameras[index].device.id = names[id] ?? id
            }
        }
    }

    /// Gives up what is not taken yet; the body is called when the rest is finished, or when that takes too long.
    func shutDown(then body: @escaping () -> Void) {
        hasEnded = true
        endAll { _ in MovieRegistry.shuttingDown }
        guard !runs.isEmpty else { return body() }
        whenEnded = body
        loop.schedule(afterMilliseconds: Self.lastPatience) { [weak self] in
            guard let self else { return }
            // Each request gets its reply and its last event, also where its worker doesn't answer.
            perform(queue.abandon(MovieRegistry.shuttingDown))
            tellEnded()
        }
    }

    private func tellEnded() {
        guard let body = whenEnded else { return }
        whenEnded = nil
        // Not from within: the last reply is to go first.
        loop.schedule(at: 0, body)
    }

    // MARK: Readiness

    /// The user for whom photos are being taken of a camera; nil: none.
    func holder(of device: String) -> JSONValue? { queue.holder(of: device) }

    /// How ready a camera is, and how many requests wait for it.
    func readiness(of worker: WorkerHandle) -> (readiness: PhotoReadiness, waiting: Int) {
        queue.readiness(
            of: worker.device.id, isThere: !hasEnded && worker.isRunning && worker.isConnected,
            isStreaming: worker.status["isStreaming"]?.bool ?? false)
    }
}
