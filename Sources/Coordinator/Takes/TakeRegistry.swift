import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO
import Logging

/// The current takes and their segments. Publishes `state/take/<id>/`.
///
/// ``Take`` decides what a take may do; ``MovieRegistry`` records the segments; librarians handle their files.
final class TakeRegistry: MovieProgressObserver {
    typealias Completion<Value> = (Result<Value, BusError>) -> Void

    /// A segment that is to begin.
    private final class Beginning {
        var giveUp: (() -> Void)?
        var isGivenUp = false
    }

    let loop: Loop
    private let events: EventSocket
    let movies: MovieRegistry
    let library: LibrarianSupervisor
    let file: FileStore<TakeTable>
    let logger: Logger
    /// Requests that wait for the end of a segment, by take.
    private var waiting: [String: [Completion<JSONValue>]] = [:]
    /// How the last segment of each take ended.
    var ends: [String: JSONValue] = [:]
    /// Those that are being thrown away, and what waits for the end of their segment.
    var discarding: Set<String> = []
    var afterEnd: [String: () -> Void] = [:]
    /// Takes with a segment of a coordinator before this one, or of a recorder that died. What became of it is being
    /// found out.
    var unsettled: Set<String> = []
    var hasEnded = false

    /// How long the recorders that a coordinator before this one has left may take to say hello, and its librarians to
    /// end, milliseconds.
    private static let greeting: Int64 = 3000
    /// The time between two questions about what is not known yet, milliseconds.
    static let pause: Int64 = 2000
    private static let maximumWaiting = 64
    /// In how many places in a row there may be a file already where a segment is to be.
    private static let maximumMisses = 8

    init(
        _ loop: Loop, events: EventSocket, _ movies: MovieRegistry, _ library: LibrarianSupervisor,
        _ file: FileStore<TakeTable>,
        logger: Logger
    ) {
        self.loop = loop
        self.events = events
        self.movies = movies
        self.library = library
        self.file = file
        self.logger = logger
        movies.takes = self
    }

    /// Continues what the coordinator before this one left.
    func begin() {
        for take in file.table.takes { publish(take.id) }
        for kept in file.table.takes where kept.isDiscarded {
            discarding.insert(kept.id)
            // A recorder that is still there is to be ended first.
            let patience = kept.take.current == nil ? 0 : Self.greeting
            loop.schedule(afterMilliseconds: patience) { [weak self] in self?.removeAll(kept.id) { _ in } }
        }
        for kept in file.table.takes where !kept.isDiscarded {
            let isFinishing = kept.take.state == .finishing
            guard isFinishing || kept.take.current != nil else { continue }
            if !isFinishing { unsettled.insert(kept.id) }
            loop.schedule(afterMilliseconds: Self.greeting) { [weak self] in
                if isFinishing { self?.goOnFinishing(kept.id) } else { self?.settle(kept.id) }
            }
        }
    }

    // MARK: Takes

    /// Those that are not over, in the order in which they were made.
    var takes: [KeptTake] { file.table.takes }

    /// The take of that id.
    ///
    /// - Throws: `takeNotFound`, also of one that is being thrown away.
    func take(_ id: String) throws(BusError) -> KeptTake {
        let take = try file.table.take(id)
        guard !discarding.contains(id) else { return try TakeTable().take(id) }
        return take
    }

    /// Changes a take, publishes it, and writes it. The body is called when it is written; false: when it can't be.
    @discardableResult
    func change<Value>(
        _ id: String, then body: @escaping (Bool) -> Void = { _ in },
        _ change: (inout KeptTake) throws(BusError) -> Value
    ) throws(BusError) -> Value {
        var value: Value?
        try file.change({ table throws(BusError) in value = try table.change(id, change) }, then: body)
        publish(id)
        guard let value else { throw BusError(.internalError, "The take was not changed.") }
        return value
    }

    // MARK: Creation

    /// Adds a take. The body is called when it is on the disk; false: when it can't be.
    ///
    /// - Throws: `limitExceeded`.
    func add(_ take: KeptTake, then body: @escaping (Bool) -> Void) throws(BusError) {
        try file.change({ table throws(BusError) in try table.add(take) }, then: body)
        publish(take.id)
    }

    // MARK: Segments

    /// A segment that has begun; whether the next coordinator will know of it.
    typealias Begun = (movie: RunningMovie, isKept: Bool)

    /// Begins a segment: the completion is called when its first frame is in the file, or with why there is none.
    ///
    /// - Parameter request: as of a movie of the same; what makes it a segment is added here.
    /// - Returns: how to give it up until then.
    /// - Throws: as ``Take/record(_:path:)``: then nothing has begun.
    func record(
        _ id: String, _ request: MovieRequest, completion: @escaping Completion<Begun>
    ) throws(BusError) -> () -> Void {
        let beginning = Beginning()
        try record(id, request, Self.maximumMisses, beginning, completion)
        return {
            beginning.isGivenUp = true
            beginning.giveUp?()
        }
    }

    private func record(
        _ id: String, _ request: MovieRequest, _ misses: Int, _ beginning: Beginning,
        _ completion: @escaping Completion<Begun>
    ) throws(BusError) {
        var request = request
        var begun: MovieRequest?
        let start = { [weak self] (isKept: Bool) in
            guard let begun else { return }
            self?.start(id, begun, isKept: isKept, misses, beginning, completion)
        }
        // The next coordinator must know of the segment after a crash.
        try change(id, then: start) { kept throws(BusError) in
            kept.shape(&request)
            try kept.record(request.movie, path: request.path)
            (kept.camera, kept.microphone) = (request.camera, request.microphone)
            begun = request
        }
    }

    private func start(
        _ id: String, _ request: MovieRequest, isKept: Bool, _ misses: Int, _ beginning: Beginning,
        _ completion: @escaping Completion<Begun>
    ) {
        let failed = { [weak self] (error: BusError) in
            guard let self else { return }
            _ = try? change(id) { $0.take.ended(request.movie, duration: 0, isKept: false) }
            answerWaiting(id, .failure(error))
            afterEnd.removeValue(forKey: id)?()
            guard error.reason == .invalidParams, error.data["path"] == "path", misses > 0, !beginning.isGivenUp,
                let kept = try? take(id)
            else { return completion(.failure(error)) }
            var next = request
            next.movie = hexadecimal(randomBytes(8))
            next.path = Self.sibling(request.path, kept.filename(part: kept.nextPart))
            do throws(BusError) {
                try record(id, next, misses - 1, beginning, completion)
            } catch {
                completion(.failure(error))
            }
        }
        guard !beginning.isGivenUp else {
            return failed(BusError(.cancelled, "The segment was cancelled before it began."))
        }
        guard file.table[id]?.take.current?.id == request.movie, file.table[id]?.take.state == .recording,
            !discarding.contains(id)
        else {
            return failed(BusError(.cancelled, "The segment was ended before it began."))
        }
        // What may have changed while the table was written.
        if let refusal = movies.refusal(request) { return failed(refusal) }
        do throws(BusError) {
            beginning.giveUp = try movies.start([request]) { [weak self] result in
                switch result {
                case .success(let begun):
                    guard let movie = begun.first else { return }
                    self?.began(id, movie)
                    completion(.success((movie, isKept)))
                case .failure(let error): failed(error)
                }
            }
        } catch {
            failed(error)
        }
    }

    private static func sibling(_ path: String, _ name: String) -> String {
        path.lastIndex(of: "/").map { "\(path[...$0])\(name)" } ?? name
    }

    private func began(_ id: String, _ movie: RunningMovie) {
        _ = try? change(id) { $0.learn(movie.progress) }
        tell(
            id, "didStartSegment",
            [
                "segment": .string(movie.id), "path": .string(movie.request.path),
                "part": JSONValue(movie.request.part),
            ])
    }

    /// Publishes the progress of a segment and its camera in its take.
    func movieProgressed(_ movie: RunningMovie) {
        guard let id = movie.request.take, movie.hasBegun, let kept = file.table[id],
            kept.take.current?.id == movie.id, !hasEnded
        else { return }
        if unsettled.contains(id) { settle(id) }
        var (hasGrown, isOther) = (false, false)
        // Ten times a second: that it is not written is what the movie's own file is for.
        file.amend { table in
            _ = try? table.change(id) { kept throws(BusError) in
                hasGrown = kept.take.progressed(movie.id, to: movie.progress.recordedDuration)
                isOther = kept.camera != movie.request.camera
                kept.camera = movie.request.camera
                kept.learn(movie.progress)
            }
        }
        guard hasGrown || isOther, let take = file.table[id]?.take else { return }
        publish(id)
        guard hasGrown else { return }
        tell(
            id, "recordProgress",
            Self.sums(take, with: ["segment": .string(movie.id), "duration": .integer(take.duration)]))
    }

    static func sums(_ take: Take, with members: [String: JSONValue]) -> [String: JSONValue] {
        var members = members
        members["total"] = .integer(take.total)
        members["remaining"] = take.remaining.map(JSONValue.integer) ?? .null
        return members
    }

    // MARK: Ends of segments

    /// Ends the segment that is recorded; the completion is called when its file is closed, with how it ended, and at
    /// once where the last one has ended already.
    ///
    /// - Throws: `takeNotFound`, `notRecording`, `limitExceeded`.
    func pause(_ id: String, completion: @escaping Completion<JSONValue>) throws(BusError) {
        let kept = try take(id)
        if kept.take.current == nil, kept.take.state == .paused, let end = ends[id] { return completion(.success(end)) }
        guard waiting[id, default: []].count < Self.maximumWaiting else {
            throw BusError(
                .limitExceeded, "Too many requests wait for the end of this segment.",
                ["limit": "takePauses", "maximum": JSONValue(Self.maximumWaiting)])
        }
        let action = try change(id) { kept throws(BusError) in try kept.take.pause() }
        waiting[id, default: []].append(completion)
        // Else it is known soon what became of it.
        guard case .stop(let segment)? = action, movies.isBeingMade(segment) else { return }
        stop(segment, of: id)
    }

    func stop(_ segment: String, of id: String) {
        movies.stop(segment) { [weak self] result in
            // The end is published when it comes.
            if case .failure(let error) = result { self?.answerWaiting(id, .failure(error)) }
        }
    }

    func answerWaiting(_ id: String, _ result: Result<JSONValue, BusError>) {
        for completion in waiting.removeValue(forKey: id) ?? [] { completion(result) }
    }

    /// A movie has ended, also one that is no segment.
    ///
    /// - Returns: whether what has become of it is found out here; not of what had not begun, or is no segment of a
    ///     take.
    func finished(_ movie: RunningMovie) -> Bool {
        guard let id = movie.request.take, file.table[id]?.take.current?.id == movie.id, movie.hasBegun,
            let result = movie.result
        else { return false }
        if let next = afterEnd.removeValue(forKey: id) {
            next()
            return true
        }
        guard result.reason != .recorderCrashed else {
            // What can be played of it is known when it was mended.
            _ = try? change(id) { kept throws(BusError) in try kept.take.pause() }
            unsettled.insert(id)
            settle(id, movie)
            return true
        }
        ended(id, movie.id, result.reason, movie.members(of: result)["error"] ?? .null, result.duration, result.isKept)
        return true
    }

    func ended(
        _ id: String, _ segment: String, _ reason: MovieEndReason, _ error: JSONValue, _ duration: Int64,
        _ isKept: Bool
    ) {
        unsettled.remove(id)
        let path = file.table[id]?.take.current?.path ?? ""
        var event: Take.Event?
        _ = try? change(id) { kept in
            event = kept.take.ended(
                segment, duration: duration, isKept: isKept, isFull: reason == .maximumDurationReached)
        }
        guard let take = file.table[id]?.take else { return }
        let end = Self.sums(
            take,
            with: [
                "segment": .string(segment), "path": .string(path), "reason": .string(reason.rawValue),
                "success": .bool(reason.isSuccess && error.isNull), "error": error,
                "kept": .bool(take.segments.contains { $0.id == segment }), "duration": .integer(duration),
            ])
        ends[id] = .object(end)
        tell(id, "didEndSegment", end)
        switch event {
        case .recordDurationLessMinRecordDuration?:
            tell(
                id, "recordDurationLessMinRecordDuration",
                ["total": .integer(take.total), "minDuration": .integer(take.minDuration ?? 0)])
        case .recordDurationLargerEqualMaxRecordDuration?:
            tell(
                id, "recordDurationLargerEqualMaxRecordDuration",
                ["total": .integer(take.total), "maxDuration": .integer(take.maxDuration ?? 0)])
        case nil: break
        }
        answerWaiting(id, .success(.object(end)))
    }

    // MARK: State

    /// The bus ends: nothing is published any more.
    func shutDown() { hasEnded = true }

    /// Waits until all is written.
    func close() { file.close() }

    func publish(_ id: String) {
        guard !hasEnded else { return }
        events.set("state/take/\(id)", file.table[id]?.json)
    }

    func tell(_ id: String, _ event: String, _ members: [String: JSONValue] = [:]) {
        guard !hasEnded else { return }
        events.event("event/take/\(id)", event, members)
    }
}
