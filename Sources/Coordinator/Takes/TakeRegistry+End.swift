import BusProtocol
import CaptureCore
import JSON
import Logging

/// Ends of takes: discarded or finished.
extension TakeRegistry {
    /// The files that were there; whether the next coordinator will know that they are gone.
    typealias Removed = (files: [JSONValue], isKept: Bool)

    /// Removes a segment, and then its files; the completion gets those that were there.
    ///
    /// - Throws: as ``Take/delete(_:)``, and `takeNotFound`.
    func delete(_ id: String, _ segment: String, completion: @escaping Completion<Removed>) throws(BusError) {
        _ = try take(id)
        let removed = { [weak self] (isKept: Bool) in
            self?.library.ask(LibrarianRequest(.delete(segment)), by: nil) { result in
                completion(Self.deleted(result).map { ($0, isKept) })
            }
            return
        }
        try change(id, then: removed) { kept throws(BusError) in _ = try kept.take.delete(segment) }
        tellDeleted(id, segment)
    }

    /// A client has removed the files of a movie. If it was a segment, its take loses it.
    func isGone(_ movie: String) {
        guard let id = takes.first(where: { $0.take.segments.contains { $0.id == movie } })?.id else { return }
        // While it is finished that fails by itself.
        guard (try? change(id, { kept throws(BusError) in try kept.take.delete(movie) })) != nil else { return }
        tellDeleted(id, movie)
    }

    private func tellDeleted(_ id: String, _ segment: String) {
        guard let take = file.table[id]?.take else { return }
        tell(id, "didDeleteSegment", Self.sums(take, with: ["segment": .string(segment)]))
    }

    // What isn't there any more is no error.
    private static func deleted(_ result: Result<JSONValue, BusError>) -> Result<[JSONValue], BusError> {
        switch result {
        case .success(let answer): .success(answer["deleted"]?.array ?? [])
        case .failure(let error): error.reason == .entryNotFound ? .success([]) : .failure(error)
        }
    }

    /// One after the other, whatever becomes of each; the completion gets the files that were there, and the first
    /// error.
    func remove(
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
    func discard(_ id: String, completion: @escaping Completion<Removed>) throws(BusError) {
        let kept = try take(id)
        guard kept.take.state != .finishing, !unsettled.contains(id) else {
            let why = kept.take.state == .finishing ? "is being finished" : "has a segment that is being looked for"
            throw BusError(
                .recordingInProgress, "The take \(id) \(why); try again when that is done.", ["take": .string(id)])
        }
        // Before anything is removed: a crash must not leave a take without its files.
        let remove = { [weak self] (_: Bool) in
            guard let self else { return }
            removeAll(id, completion: completion)
        }
        discarding.insert(id)
        try change(id, then: remove) { kept throws(BusError) in kept.isDiscarded = true }
        answerWaiting(id, .failure(BusError(.cancelled, "The take was discarded.")))
    }

    /// Continues to throw away a take: ends what is being recorded, and then removes everything.
    func removeAll(_ id: String, completion: @escaping Completion<Removed>) {
        // The next bus continues.
        guard !hasEnded, let take = file.table[id]?.take else {
            return completion(.failure(MovieRegistry.shuttingDown))
        }
        let all = take.segments.map(\.id) + (take.current.map { [$0.id] } ?? [])
        let body = { [weak self] in
            self?.remove(all[...]) { [weak self] result in
                self?.forget(id) { [weak self] isKept in
                    self?.tell(id, "didDiscardTake")
                    completion(result.map { ($0, isKept) })
                }
            }
            return
        }
        // One that has not begun yet was not begun.
        guard let current = take.current, movies.isBeingMade(current.id) else { return body() }
        afterEnd[id] = body
        movies.discard(current.id)
    }

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
        let ask = { [weak self] (_: Bool) in
            guard let self else { return }
            // The next bus finds that it is not finished.
            guard !hasEnded, !movies.hasEnded else { return completion(.failure(MovieRegistry.shuttingDown)) }
            library.ask(
                LibrarianRequest(.join(join)), by: nil,
                progress: { [weak self] in self?.tell(id, "exportProgress", ["progress": .number($0)]) },
                completion: { [weak self] in self?.joined(id, $0, completion) })
        }
        try change(id, then: ask) { kept throws(BusError) in _ = try kept.take.finish() }
    }

    private func joined(
        _ id: String, _ result: Result<JSONValue, BusError>, _ completion: @escaping Completion<JSONValue>
    ) {
        switch result {
        case .success(let answer): tellFinished(id, answer, completion)
        case .failure(let error):
            // A bus that ends finds out later what became of it.
            guard !hasEnded, error.reason != .shuttingDown else { return completion(.failure(error)) }
            guard error.reason == .internalError else { return tellUnfinished(id, error, completion) }
            // A librarian that has died, or was given up, may have finished it before, or left something.
            findOut(id) { [weak self] result in
                switch result {
                case .success(.null): self?.tellUnfinished(id, error, completion)
                case .success(let entry): self?.tellFinished(id, entry, completion)
                case .failure(let end): completion(.failure(end))
                }
            }
        }
    }

    /// - Parameter movie: as the librarian answers it, or its entry.
    private func tellFinished(_ id: String, _ movie: JSONValue, _ completion: @escaping Completion<JSONValue>) {
        var members: [String: JSONValue] = ["take": .string(id)]
        for name in ["path", "cover", "duration", "size"] { members[name] = movie[name] ?? .null }
        // An entry doesn't have it.
        members["encoded"] = movie["encoded"] ?? .bool(false)
        over(id, removing: file.table[id]?.take.segments ?? []) { [weak self] isKept in
            self?.tell(id, "didFinishTake", members.merging(["success": true, "error": .null]) { own, _ in own })
            completion(.success(JSONValue.object(members).marked(isKept: isKept)))
        }
    }

    private func tellUnfinished(_ id: String, _ error: BusError, _ completion: Completion<JSONValue>) {
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
        completion(.failure(error))
    }
}
