import BusProtocol
import CaptureCore
import JSON
import LinuxIO
import MovieFile
import Synchronization

/// The messages between the threads of a recorder: plans and waiting devices from the receiving threads, orders from
/// the loop, figures and results from the writing thread.
final class RecorderMailbox: Sendable {
    /// An order to the writing thread.
    enum Command: Hashable, Sendable {
        /// Monotonic nanoseconds.
        case begin(Instant)
        case pause(Instant)
        case resume(Instant)
    }

    /// Why the movie is to end, or has ended.
    struct End: Hashable, Sendable {
        var reason: MovieEndReason
        var error: BusError?
        /// Nothing of it is to be kept.
        var isCancelled = false
        /// Another file can hold what the devices give now.
        var canContinue = false
    }

    /// When the movie is to end, with all that was taken before and nothing later.
    struct ScheduledEnd: Hashable, Sendable {
        var reason: MovieEndReason
        var time: Instant

        /// Frames from before that time arrive at most so long after it, nanoseconds.
        private static let patience: Int64 = 500_000_000

        var latest: Instant { time + Self.patience }
    }

    /// The movie's progress, as the writing thread reports it.
    struct Figures: Sendable {
        var statistics = MovieStatistics()
        /// Of a server; nil: it goes into a file, or has not begun.
        var connection: SinkConnection?
        /// Nanoseconds that writing has taken so far.
        var busy: Int64 = 0
        /// Of the camera's pictures now, if that has changed.
        var source: Dimensions?
        /// Nanoseconds; nil: nothing is in it.
        var startOffset: Int64?
        var hasStarted = false
        /// Why there is no side-car, or none any more; nil: there is one, or is to be none.
        var sideCarProblem: String?
    }

    /// A camera with which the movie continues, or another form of the pictures of the one that it has.
    struct Input: Hashable, Sendable {
        /// Those that were asked for are counted; the first has 0.
        var number: Int
        /// As ``Sample/form``.
        var form: Int
        var camera: MovieRequest.Device
        var plan: PictureTrackPlan
    }

    /// The result of a request for another camera.
    struct InputAnswer: Hashable, Sendable {
        var number: Int
        /// Why there is none; nil: its pictures are taken.
        var error: BusError?
    }

    /// What is reported to the coordinator.
    struct News: Sendable {
        var events: [MovieEvent] = []
        var input: InputAnswer?
        var result: MovieResult?
    }

    private struct State {
        var picture: PictureTrackPlan?
        var inputs: [Input] = []
        var sound: SoundTrackPlan?
        var video: JSONValue = .null
        var audio: JSONValue = .null
        var commands: [Command] = []
        var scheduledEnd: ScheduledEnd?
        var end: End?
        var figures = Figures()
        var news = News()
        /// Ids of devices that have given samples, and give none now.
        var waiting: Set<String> = []
        var refusal: BusError?
        /// Whose device has delivered.
        var delivering: Set<AuthorizationMedia> = []
    }

    /// Commands that may wait for the writing thread, which may wait for the disk.
    static let maximumCommands = 16

    private let state = Mutex(State())
    private let ended = Atomic<Bool>(false)
    private let overflow = Atomic<UInt64>(0)
    private let urgency = Atomic<Instant>(.min)
    private let isDark = Atomic<Bool>(false)
    private let isSilent = Atomic<Bool>(false)
    /// Wakes the writing thread.
    let work: Semaphore
    /// Wakes a thread that waits to ask a device again.
    let recall = Semaphore()
    /// Readable when there is ``takeNews()``.
    let news: EventDescriptor
    /// Readable from the end on.
    let stop: EventDescriptor
    let turn = CameraSwitch()

    init(work: Semaphore) throws(SystemError) {
        self.work = work
        news = try EventDescriptor()
        stop = try EventDescriptor()
    }

    // MARK: From the receiving threads

    func set(_ plan: PictureTrackPlan) { state.withLock { $0.picture = plan } }
    /// Replaces the input of the same number and form, which has delivered no sample yet.
    func set(_ input: Input) {
        state.withLock { state in
            state.inputs.removeAll { $0.number == input.number && $0.form == input.form }
            state.inputs.append(input)
        }
    }
    func set(_ plan: SoundTrackPlan) { state.withLock { $0.sound = plan } }

    /// A device delivers what is taken now.
    func setDelivering(_ media: AuthorizationMedia) {
        let isNew = state.withLock { $0.delivering.insert(media).inserted }
        if isNew { news.signal() }
    }

    func tell(_ answer: InputAnswer) {
        state.withLock { $0.news.input = answer }
        news.signal()
    }

    /// A device that was there is waited for, or not any more.
    func setWaiting(for device: String, _ isWaiting: Bool) {
        let isNew = state.withLock { state in
            isWaiting ? state.waiting.insert(device).inserted : state.waiting.remove(device) != nil
        }
        if isNew { news.signal() }
    }

    /// The camera does not give the rendition that is asked for, because of a limit or for lack of memory; nil: it
    /// does, or other things keep it from that.
    func setRefusal(_ error: BusError?) {
        let isNew = state.withLock { state in
            defer { state.refusal = error }
            return state.refusal != error
        }
        if isNew { news.signal() }
    }

    /// The writing thread is woken at once for samples taken from that time on, and in batches for earlier ones
    /// (``WakePacer``).
    var urgent: Instant {
        get { urgency.load(ordering: .relaxed) }
        set { urgency.store(newValue, ordering: .relaxed) }
    }

    /// A frame found no room.
    func countOverflow() { overflow.add(1, ordering: .relaxed) }

    // MARK: From all threads

    /// The movie is to end; what it ended for first counts.
    ///
    /// - Returns: false if it was ending already.
    @discardableResult
    func end(
        _ reason: MovieEndReason, _ error: BusError? = nil, isCancelled: Bool = false, canContinue: Bool = false
    ) -> Bool {
        let isFirst = state.withLock { state in
            guard state.end == nil else { return false }
            state.end = End(reason: reason, error: error, isCancelled: isCancelled, canContinue: canContinue)
            return true
        }
        guard isFirst else { return false }
        ended.store(true, ordering: .releasing)
        stop.signal()
        recall.signal()
        work.signal()
        news.signal()
        return true
    }

    var isEnding: Bool { ended.load(ordering: .acquiring) }

    /// It is ending, or there is a time for that.
    var isToEnd: Bool { isEnding || scheduledEnd != nil }

    /// Nothing of that medium is taken in any more.
    func withdraw(_ media: AuthorizationMedia) {
        switch media {
        case .video: isDark.store(true, ordering: .releasing)
        case .audio: isSilent.store(true, ordering: .releasing)
        case .libraryAdd, .library: return
        }
        recall.signal()
        work.signal()
    }

    func isWithdrawn(_ media: AuthorizationMedia) -> Bool {
        switch media {
        case .video: isDark.load(ordering: .acquiring)
        case .audio: isSilent.load(ordering: .acquiring)
        case .libraryAdd, .library: false
        }
    }

    // MARK: For the writing thread

    var picture: PictureTrackPlan? { state.withLock { $0.picture } }
    var refusal: BusError? { state.withLock { $0.refusal } }
    /// What that sample is of; those before it are forgotten.
    func input(of sample: Sample) -> Input? {
        state.withLock { state in
            let place = (sample.input, sample.form)
            state.inputs.removeAll { ($0.number, $0.form) < place }
            return state.inputs.first { ($0.number, $0.form) == place }
        }
    }

    var sound: SoundTrackPlan? { state.withLock { $0.sound } }
    var scheduledEnd: ScheduledEnd? { state.withLock { $0.scheduledEnd } }
    var end: End? { state.withLock { $0.end } }

    func takeCommand() -> Command? {
        state.withLock { $0.commands.isEmpty ? nil : $0.commands.removeFirst() }
    }

    func tell(_ figures: Figures) { state.withLock { $0.figures = figures } }

    func tell(video: JSONValue, audio: JSONValue) { state.withLock { ($0.video, $0.audio) = (video, audio) } }

    func tell(_ event: MovieEvent) {
        state.withLock { $0.news.events.append(event) }
        news.signal()
    }

    func tell(_ result: MovieResult) {
        state.withLock { $0.news.result = result }
        news.signal()
    }

    // MARK: For the loop

    /// The movie is to end then; the first such time counts.
    ///
    /// - Returns: false: there was one, or it is ending already.
    func end(_ scheduledEnd: ScheduledEnd) -> Bool {
        let isFirst = state.withLock { state in
            guard state.end == nil, state.scheduledEnd == nil else { return false }
            state.scheduledEnd = scheduledEnd
            return true
        }
        if isFirst { work.signal() }
        return isFirst
    }

    /// - Returns: false: too many wait already, and this one does not.
    func order(_ command: Command) -> Bool {
        let isTaken = state.withLock { state in
            guard state.commands.count < Self.maximumCommands else { return false }
            state.commands.append(command)
            return true
        }
        if isTaken { work.signal() }
        return isTaken
    }

    func takeNews() -> News {
        state.withLock { state in
            defer { (state.news.events, state.news.input) = ([], nil) }
            return state.news
        }
    }

    var figures: Figures { state.withLock { $0.figures } }
    func isDelivering(_ media: AuthorizationMedia) -> Bool { state.withLock { $0.delivering.contains(media) } }
    /// Ids of devices that are waited for.
    var waiting: [String] { state.withLock { $0.waiting.sorted() } }
    var stored: (video: JSONValue, audio: JSONValue) { state.withLock { ($0.video, $0.audio) } }
    /// Frames that found no room so far.
    var overflows: UInt64 { overflow.load(ordering: .relaxed) }
}
