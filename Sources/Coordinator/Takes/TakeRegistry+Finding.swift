import BusProtocol
import BusServer
import CaptureCore
import JSON

/// What became of segments, and of takes that were being finished, while no coordinator was there.
extension TakeRegistry {
    /// What became of a segment that no recorder makes any more, as far as is known here.
    func settle(_ id: String, _ movie: RunningMovie? = nil) {
        guard !hasEnded, unsettled.contains(id), let segment = file.table[id]?.take.current else { return }
        // Its recorder has said hello. It may have got an order to end.
        guard !movies.isBeingMade(segment.id) else {
            unsettled.remove(id)
            if file.table[id]?.take.state == .ending { stop(segment.id, of: id) }
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
        guard !hasEnded, unsettled.contains(id), file.table[id]?.take.current?.id == segment.id,
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

    /// Continues a take that was being finished when the coordinator before this one ended.
    func goOnFinishing(_ id: String) {
        findOut(id) { [weak self] result in
            guard let self, let entry = try? result.get() else { return }
            if entry.isNull { goOn(id) } else { over(id, removing: file.table[id]?.take.segments ?? []) }
        }
    }

    /// Whether a take that was being finished is a movie now; the completion gets the movie's entry when that is known,
    /// null if it has no entry, and `shuttingDown` when the bus ends before.
    func findOut(_ id: String, completion: @escaping Completion<JSONValue>) {
        library.recover(id, tellsOfFinished: false) { [weak self] _ in
            guard let self, !hasEnded else { return completion(.failure(MovieRegistry.shuttingDown)) }
            library.ask(LibrarianRequest(.get(id)), by: nil) { [weak self] result in
                guard let self, !hasEnded, file.table[id]?.take.state == .finishing else {
                    return completion(.failure(MovieRegistry.shuttingDown))
                }
                switch result {
                case .success(let answer):
                    guard let entry = answer["entry"], entry["state"]?.string != "recording" else { break }
                    return completion(.success(entry["state"]?.string == "finished" ? entry : .null))
                case .failure(let error):
                    if error.reason == .entryNotFound { return completion(.success(.null)) }
                }
                loop.schedule(afterMilliseconds: Self.pause) { [weak self] in
                    self?.findOut(id, completion: completion)
                }
            }
        }
    }

    /// It is not finished, and as it was before.
    func goOn(_ id: String) { _ = try? change(id) { $0.take.joined(false) } }

    /// It is finished, and its segments are not needed any more.
    func over(
        _ id: String, removing segments: [Take.Segment], then body: @escaping (Bool) -> Void = { _ in }
    ) {
        remove(segments.map(\.id)[...]) { [weak self] _ in self?.forget(id, then: body) }
    }

    /// The body is called when that is on the disk; false: when it can't be.
    func forget(_ id: String, then body: @escaping (Bool) -> Void) {
        do throws(BusError) {
            try file.change({ table throws(BusError) in table.remove(id) }, then: body)
        } catch {
            body(true)
        }
        ends[id] = nil
        discarding.remove(id)
        unsettled.remove(id)
        publish(id)
    }
}
