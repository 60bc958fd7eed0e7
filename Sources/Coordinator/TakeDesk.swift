import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO
import Logging

/// Keeps the takes: of which segments they are, what is done with them, and who is to know of it.
///
/// What a take may do is ``Take``'s affair; that its segments are recorded, ``MovieDesk``'s; their files are the librarian's.
final class TakeDesk {
    typealias Completion<Value> = (Result<Value, BusError>) -> Void

    /// A segment that is to begin.
    private final class Beginning {
        var giveUp: (() -> Void)?
        var isGivenUp = false
    }

    private let loop: Loop
    private let events: EventSocket
    private let movies: MovieDesk
    private let library: LibraryDesk
    private let file: BookFile<TakeBook>
    private let logger: Logger
    /// Who waits for the end of a segment, by take.
    private var waiting: [String: [Completion<JSONValue>]] = [:]
    /// How the last segment of a take has ended.
    private var ends: [String: JSONValue] = [:]
    /// Those that are being thrown away, and what waits for the end of their segment.
    private var discarding: Set<String> = []
    private var afterEnd: [String: () -> Void] = [:]
    /// Segments of a coordinator before this one, and those whose recorder died: what became of them is being found out.
    private var unsettled: Set<String> = []
    private var hasEnded = false

    /// How long the recorders that a coordinator before this one has left may take to say hello, and its librarians to end, milliseconds.
    private static let greeting: Int64 = 3000
    /// How far apart is asked for what can't be told yet, milliseconds.
    private static let pause: Int64 = 2000
    private static let maximumWaiting = 64
    /// In how many places in a row there may be a file already where a segment is to be.
    private static let maximumMisses = 8

    init(
        _ loop: Loop, events: EventSocket, _ movies: MovieDesk, _ library: LibraryDesk, _ file: BookFile<TakeBook>,
        logger: Logger
    ) {
        self.loop = loop
        self.events = events
        self.movies = movies
        self.library = library
        self.file = file
        self.logger = logger
        movies.onProgress = { [weak self] in self?.progressed($0) }
    }

    /// That the book was damaged and begun anew.
    var problem: Problem? { file.problem }

    /// Goes on with what the coordinator before has left.
    func begin() {
        for take in file.book.takes { publish(take.id) }
        for kept in file.book.takes {
            let isFinishing = kept.take.state == .finishing
            guard isFinishing || kept.take.current != nil else { continue }
            if !isFinishing { unsettled.insert(kept.id) }
            loop.schedule(afterMilliseconds: Self.greeting) { [weak self] in
                if isFinishing { self?.findOut(kept.id) } else { self?.settle(kept.id) }
            }
        }
    }

    // MARK: What is so

    /// Those that are not over, in the order in which they were made.
    var takes: [KeptTake] { file.book.takes }

    /// The take of that id.
    ///
    /// - Throws: `takeNotFound`, also of one that is being thrown away.
    func take(_ id: String) throws(BusError) -> KeptTake {
        let take = try file.book.take(id)
        guard !discarding.contains(id) else { return try TakeBook().take(id) }
        return take
    }

    /// Changes a take, tells its state, and has it written; the body is called when it is, or can't be.
    @discardableResult
    private func change<Value>(
        _ id: String, then body: @escaping () -> Void = {}, _ change: (inout KeptTake) throws(BusError) -> Value
    ) throws(BusError) -> Value {
        var value: Value?
        try file.change({ book throws(BusError) in value = try book.change(id, change) }) { _ in body() }
        publish(id)
        guard let value else { throw BusError(.internalError, "The take was not changed.") }
        return value
    }

    // MARK: Made

    /// Takes a new one in; the completion is called when it is on the disk.
    ///
    /// - Throws: `limitExceeded`.
    func add(_ take: KeptTake, completion: @escaping Completion<KeptTake>) throws(BusError) {
        try file.change({ book throws(BusError) in try book.add(take) }) { _ in completion(.success(take)) }
        publish(take.id)
    }

    // MARK: Recorded

    /// Begins a segment: the completion is called when its first frame is in the file, or with why there is none.
    ///
    /// - Parameter request: as of a movie of the same; what makes it a segment is added here.
    /// - Returns: how to give it up until then.
    /// - Throws: as ``Take/record(_:path:)``: then nothing has begun.
    func record(
        _ id: String, _ request: MovieRequest, completion: @escaping Completion<RunningMovie>
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
        _ completion: @escaping Completion<RunningMovie>
    ) throws(BusError) {
        var request = request
        let start = { [weak self] (request: MovieRequest) in
            self?.start(id, request, misses, beginning, completion)
            return
        }
        // What is being begun has to be known to who comes after a crash.
        var begun: MovieRequest?
        try change(id, then: { if let begun { start(begun) } }) { kept throws(BusError) in
            _ = try kept.take.record(request.movie, path: request.path)
            kept.shape(&request)
            kept.nextPart += 1
            (kept.camera, kept.microphone) = (request.camera, request.microphone)
            begun = request
        }
    }

    private func start(
        _ id: String, _ request: MovieRequest, _ misses: Int, _ beginning: Beginning,
        _ completion: @escaping Completion<RunningMovie>
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
            return failed(BusError(.cancelled, "The segment was given up before it had begun."))
        }
        guard file.book[id]?.take.current?.id == request.movie, file.book[id]?.take.state == .recording else {
            return failed(BusError(.cancelled, "The segment was ended before it had begun."))
        }
        do throws(BusError) {
            beginning.giveUp = try movies.start([request]) { [weak self] result in
                switch result {
                case .success(let begun):
                    guard let movie = begun.first else { return }
                    self?.began(id, movie)
                    completion(.success(movie))
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

    /// How far a movie is, and of which camera it is: of a segment, what its take tells.
    private func progressed(_ movie: RunningMovie) {
        guard let id = movie.request.take, movie.hasBegun, let kept = file.book[id],
            kept.take.current?.id == movie.id, !hasEnded
        else { return }
        if unsettled.contains(id) { settle(id) }
        var (hasGrown, isOther) = (false, false)
        // Ten times a second: that it is not written is what the movie's own file is for.
        file.amend { book in
            _ = try? book.change(id) { kept throws(BusError) in
                hasGrown = kept.take.progressed(movie.id, to: movie.progress.recordedDuration)
                isOther = kept.camera != movie.request.camera
                kept.camera = movie.request.camera
                kept.learn(movie.progress)
            }
        }
        guard hasGrown || isOther, let take = file.book[id]?.take else { return }
        publish(id)
        guard hasGrown else { return }
        tell(
            id, "recordProgress",
            Self.sums(take, with: ["segment": .string(movie.id), "duration": .integer(take.duration)]))
    }

    private static func sums(_ take: Take, with members: [String: JSONValue]) -> [String: JSONValue] {
        var members = members
        members["total"] = .integer(take.total)
        members["remaining"] = take.remaining.map(JSONValue.integer) ?? .null
        return members
    }

    // MARK: Ended

    /// Ends the segment that is recorded; the completion is called when its file is closed, with how it ended, and at once where the last one
    /// has ended already.
    ///
    /// - Throws: `takeNotFound`, `notRecording`, `limitExceeded`.
    func pause(_ id: String, completion: @escaping Completion<JSONValue>) throws(BusError) {
        let kept = try take(id)
        if kept.take.current == nil, kept.take.state == .paused, let end = ends[id] { return completion(.success(end)) }
        guard waiting[id, default: []].count < Self.maximumWaiting else {
            throw BusError(
                .limitExceeded, "Too many wait for the end of this segment.",
                ["limit": "takePauses", "maximum": JSONValue(Self.maximumWaiting)])
        }
        let action = try change(id) { kept throws(BusError) in try kept.take.pause() }
        waiting[id, default: []].append(completion)
        // Else it is known soon what became of it.
        guard case .stop(let segment)? = action, movies.isBeingMade(segment) else { return }
        stop(segment, of: id)
    }

    private func stop(_ segment: String, of id: String) {
        movies.stop(segment) { [weak self] result in
            // The end itself is told when it comes.
            if case .failure(let error) = result { self?.answerWaiting(id, .failure(error)) }
        }
    }

    private func answerWaiting(_ id: String, _ result: Result<JSONValue, BusError>) {
        for completion in waiting.removeValue(forKey: id) ?? [] { completion(result) }
    }

    /// A movie has ended, also one that is no segment.
    func finished(_ movie: RunningMovie) {
        guard let id = movie.request.take, file.book[id]?.take.current?.id == movie.id, movie.hasBegun,
            let result = movie.result
        else { return }
        if let next = afterEnd.removeValue(forKey: id) { return next() }
        guard result.reason != .recorderCrashed else {
            // What can be played of it is known when it was mended.
            _ = try? change(id) { kept throws(BusError) in try kept.take.pause() }
            unsettled.insert(id)
            return settle(id, movie)
        }
        ended(id, movie.id, result.reason, movie.members(of: result)["error"] ?? .null, result.duration, result.isKept)
    }

    private func ended(
        _ id: String, _ segment: String, _ reason: MovieEndReason, _ error: JSONValue, _ duration: Int64,
        _ isKept: Bool
    ) {
        unsettled.remove(id)
        let path = file.book[id]?.take.current?.path ?? ""
        var event: Take.Event?
        _ = try? change(id) { kept in
            event = kept.take.ended(
                segment, duration: duration, isKept: isKept, isFull: reason == .maximumDurationReached)
        }
        guard let take = file.book[id]?.take else { return }
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

    // MARK: Found again

    /// What became of a segment that no recorder makes any more, as far as is known here.
    private func settle(_ id: String, _ movie: RunningMovie? = nil) {
        guard !hasEnded, unsettled.contains(id), let segment = file.book[id]?.take.current else { return }
        // Its recorder has said hello; it may have been told to end meanwhile, or before.
        guard !movies.isBeingMade(segment.id) else {
            unsettled.remove(id)
            if file.book[id]?.take.state == .ending { stop(segment.id, of: id) }
            return
        }
        library.recover(segment.id) { [weak self] _ in
            guard let self, !hasEnded else { return }
            library.ask(LibrarianRequest(.get(segment.id)), by: nil) { [weak self] result in
                self?.settled(id, segment, result, movie)
            }
        }
    }

    private func settled(
        _ id: String, _ segment: Take.Segment, _ result: Result<JSONValue, BusError>, _ movie: RunningMovie?
    ) {
        guard !hasEnded, unsettled.contains(id), file.book[id]?.take.current?.id == segment.id,
            !movies.isBeingMade(segment.id)
        else { return }
        let entry: JSONValue
        switch result {
        case .success(let answer): entry = answer["entry"] ?? .null
        case .failure(let error) where error.reason == .entryNotFound: entry = .null
        case .failure:
            loop.schedule(afterMilliseconds: Self.pause) { [weak self] in self?.settle(id, movie) }
            return
        }
        let state = entry["state"]?.string
        // A recorder that has not come yet, or ends just now.
        guard state != "recording" else {
            loop.schedule(afterMilliseconds: Self.pause) { [weak self] in self?.settle(id, movie) }
            return
        }
        let reason = entry["reason"]?.string.flatMap(MovieEndReason.init) ?? .recorderCrashed
        let error = movie.flatMap { movie in movie.result.flatMap { movie.members(of: $0)["error"] } } ?? .null
        let duration = entry["duration"]?.double.flatMap { Int64(exactly: $0.rounded()) } ?? 0
        ended(
            id, segment.id, movie?.result?.reason ?? reason, error, duration,
            state == "finished" || state == "recovered")
    }

    /// Whether a take that was being finished when the coordinator before ended is a movie now.
    private func findOut(_ id: String) {
        library.recover(id, tellsOfFinished: false) { [weak self] _ in
            guard let self, !hasEnded else { return }
            library.ask(LibrarianRequest(.get(id)), by: nil) { [weak self] result in
                guard let self, !hasEnded, let kept = file.book[id], kept.take.state == .finishing else { return }
                switch result {
                case .success(let answer):
                    guard let entry = answer["entry"], entry["state"]?.string != "recording" else { break }
                    let isDone = entry["state"]?.string == "finished"
                    return isDone ? over(id, removing: kept.take.segments) : goOn(id)
                case .failure(let error):
                    if error.reason == .entryNotFound { return goOn(id) }
                }
                loop.schedule(afterMilliseconds: Self.pause) { [weak self] in self?.findOut(id) }
            }
        }
    }

    /// It is not finished, and as it was before.
    private func goOn(_ id: String) { _ = try? change(id) { $0.take.joined(false) } }

    /// It is finished, and its segments are not needed any more.
    private func over(
        _ id: String, removing segments: [Take.Segment], then body: @escaping () -> Void = {}
    ) {
        remove(segments.map(\.id)[...]) { [weak self] _ in self?.forget(id, then: body) }
    }

    private func forget(_ id: String, then body: @escaping () -> Void) {
        do throws(BusError) {
            try file.change({ book throws(BusError) in book.remove(id) }) { _ in body() }
        } catch {
            body()
        }
        ends[id] = nil
        discarding.remove(id)
        unsettled.remove(id)
        publish(id)
    }

    // MARK: Thrown away

    /// Removes a segment, and then its files; the completion gets those that were there.
    ///
    /// - Throws: as ``Take/delete(_:)``, and `takeNotFound`.
    func delete(_ id: String, _ segment: String, completion: @escaping Completion<[JSONValue]>) throws(BusError) {
        _ = try take(id)
        let removed = { [weak self] in
            self?.library.ask(LibrarianRequest(.delete(segment)), by: nil) { result in completion(Self.deleted(result)) }
            return
        }
        try change(id, then: removed) { kept throws(BusError) in _ = try kept.take.delete(segment) }
        tellDeleted(id, segment)
    }

    /// Somebody has removed the files of a movie; of a segment, its take is without it.
    func isGone(_ movie: String) {
        guard let id = takes.first(where: { $0.take.segments.contains { $0.id == movie } })?.id else { return }
        // While it is finished that fails by itself.
        guard (try? change(id, { kept throws(BusError) in try kept.take.delete(movie) })) != nil else { return }
        tellDeleted(id, movie)
    }

    private func tellDeleted(_ id: String, _ segment: String) {
        guard let take = file.book[id]?.take else { return }
        tell(id, "didDeleteSegment", Self.sums(take, with: ["segment": .string(segment)]))
    }

    // What isn't there any more is no error.
    private static func deleted(_ result: Result<JSONValue, BusError>) -> Result<[JSONValue], BusError> {
        switch result {
        case .success(let answer): .success(answer["deleted"]?.array ?? [])
        case .failure(let error): error.reason == .entryNotFound ? .success([]) : .failure(error)
        }
    }

    /// One after the other, whatever becomes of each; the completion gets the files that were there, and the first error.
    private func remove(
        _ segments: ArraySlice<String>, _ done: [JSONValue] = [], _ failure: BusError? = nil,
        then completion: @escaping Completion<[JSONValue]>
    ) {
        guard let segment = segments.first else {
            return completion(failure.map(Result.failure) ?? .success(done))
        }
        library.ask(LibrarianRequest(.delete(segment)), by: nil) { [weak self] result in
            let deleted = Self.deleted(result)
            if case .failure(let error) = deleted {
                self?.logger.warning(
                    "a segment can't be removed", metadata: ["movie": "\(segment)", "error": "\(error.message)"])
                self?.remove(segments.dropFirst(), done, failure ?? error, then: completion)
            } else {
                self?.remove(segments.dropFirst(), done + ((try? deleted.get()) ?? []), failure, then: completion)
            }
        }
    }

    /// Throws a take away, with what is recorded of it; the completion gets the files that were there.
    ///
    /// - Throws: `takeNotFound`, `recordingInProgress` while it is being finished, or found again.
    func discard(_ id: String, completion: @escaping Completion<[JSONValue]>) throws(BusError) {
        let kept = try take(id)
        guard kept.take.state != .finishing, !unsettled.contains(id) else {
            let why = kept.take.state == .finishing ? "is being finished" : "has a segment that is being looked for"
            throw BusError(
                .recordingInProgress, "The take \(id) \(why); try again when that is done.", ["take": .string(id)])
        }
        var all = kept.take.segments.map(\.id)
        if let current = kept.take.current { all.append(current.id) }
        let removeAll = { [weak self] in
            self?.remove(all[...]) { [weak self] result in
                self?.forget(id) { [weak self] in
                    self?.tell(id, "didDiscardTake")
                    completion(result)
                }
            }
            return
        }
        discarding.insert(id)
        guard let current = kept.take.current else { return removeAll() }
        afterEnd[id] = removeAll
        answerWaiting(id, .failure(BusError(.cancelled, "The take was thrown away.")))
        // One that has not begun yet is not begun, or fails.
        if movies.isBeingMade(current.id) {
            movies.discard(current.id)
        } else {
            _ = try? change(id) { kept throws(BusError) in try kept.take.pause() }
        }
    }

    // MARK: Finished

    /// Has a take's segments joined; the completion is called when the movie is on the disk, and the segments are not.
    ///
    /// - Throws: as ``Take/finish()``, and `takeNotFound`.
    func finish(
        _ id: String, _ target: MoviePlace.Target, completion: @escaping Completion<JSONValue>
    ) throws(BusError) {
        let kept = try take(id)
        let dot = target.path.lastIndex(of: ".") ?? target.path.endIndex
        let join = LibrarianRequest.Join(
            take: id, segments: kept.take.segments.map(\.id), path: target.path,
            cover: kept.camera == nil ? nil : "\(target.path[..<dot]).jpg", preset: kept.exportPreset,
            root: target.root)
        let ask = { [weak self] in
            self?.library.ask(
                LibrarianRequest(.join(join)), by: nil,
                progress: { [weak self] in self?.tell(id, "exportProgress", ["progress": .number($0)]) },
                completion: { [weak self] in self?.joined(id, $0, completion) })
            return
        }
        try change(id, then: ask) { kept throws(BusError) in _ = try kept.take.finish() }
    }

    private func joined(_ id: String, _ result: Result<JSONValue, BusError>, _ completion: @escaping Completion<JSONValue>) {
        switch result {
        case .success(let answer):
            var members: [String: JSONValue] = ["take": .string(id)]
            for name in ["path", "cover", "duration", "size", "encoded"] { members[name] = answer[name] ?? .null }
            over(id, removing: file.book[id]?.take.segments ?? []) { [weak self] in
                self?.tell(id, "didFinishTake", members.merging(["success": true, "error": .null]) { own, _ in own })
                completion(.success(.object(members)))
            }
        case .failure(let error):
            // A bus that ends finds out later what became of it.
            guard !hasEnded, error.reason != .shuttingDown else { return completion(.failure(error)) }
            goOn(id)
            tell(
                id, "didFinishTake",
                [
                    "take": .string(id), "success": false,
                    "error": .object(
                        error.data.merging([
                            "reason": .string(error.reason.rawValue), "message": .string(error.message),
                        ]) { $1 }),
                ])
            // Of a librarian that has died something may be left.
            if error.reason == .internalError { library.recover(id, tellsOfFinished: false) }
            completion(.failure(error))
        }
    }

    // MARK: What is told

    /// Nothing is told any more: the bus ends.
    func shutDown() { hasEnded = true }

    /// Waits until all is written.
    func close() { file.close() }

    private func publish(_ id: String) {
        guard !hasEnded else { return }
        events.set("state/take/\(id)", file.book[id]?.json)
    }

    private func tell(_ id: String, _ event: String, _ members: [String: JSONValue] = [:]) {
        guard !hasEnded else { return }
        events.event("event/take/\(id)", event, members)
    }
}
