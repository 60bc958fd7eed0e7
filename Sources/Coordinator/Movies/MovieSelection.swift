import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO

/// The movies that `movie.stop`, `pause` or `resume` names: one, or all of a take or rig, which act at one moment.
struct MovieSelection {
    typealias Completion = (Result<RunningMovie, BusError>) -> Void

    let movies: [RunningMovie]
    /// The request names a take or rig, and the reply lists its movies.
    let isList: Bool
    /// Monotonic nanoseconds: what is taken from then on is not in the movies, or is again.
    let moment: Instant

    /// Several recorders have an order so long before it is to be carried out, nanoseconds.
    static let lead: Int64 = 100_000_000

    fileprivate init(_ movies: [RunningMovie], isList: Bool) {
        (self.movies, self.isList) = (movies, isList)
        moment = MonotonicClock.now() + (movies.count > 1 ? Self.lead : 0)
    }

    /// Gives the order for each movie, and responds when all have been answered: with the one reply, or with {movies}.
    ///
    /// A movie of several that had ended before is left out of `movies`.
    func order(
        _ order: (_ movie: String, _ completion: @escaping Completion) -> Void,
        reply: @escaping (RunningMovie) -> JSONValue, _ respond: @escaping Responder
    ) {
        guard isList else {
            if let movie = movies.first { order(movie.id) { respond($0.map(reply)) } }
            return
        }
        var results: [String: Result<JSONValue, BusError>] = [:]
        for movie in movies {
            order(movie.id) { [movies] result in
                results[movie.id] = result.map(reply)
                if results.count == movies.count { respond(Self.joined(movies.compactMap { results[$0.id] })) }
            }
        }
    }

    private static func joined(_ results: [Result<JSONValue, BusError>]) -> Result<JSONValue, BusError> {
        var replies: [JSONValue] = []
        var errors: [BusError] = []
        for result in results {
            switch result {
            case .success(let reply): replies.append(reply)
            case .failure(let error): errors.append(error)
            }
        }
        let isOver = { (error: BusError) in error.reason == .notRecording }
        guard let error = errors.first(where: { !isOver($0) }) ?? (replies.isEmpty ? errors.first : nil) else {
            return .success(["movies": .array(replies)])
        }
        return .failure(error)
    }
}

extension MovieRegistry {
    /// The movies that a request names by `movie`, `take` or `rig`. One that has ended is the one that continues in its
    /// place. Of a take or rig these are the running ones and those with the same take that have ended; without a
    /// running one, those of the take that ended last.
    ///
    /// - Throws: `invalidParams` unless exactly one is named; `notRecording` {movie, take, rig}; `unauthorized` if the
    ///   editor may end none of them.
    func group(_ call: Call, _ editor: Editor) throws(BusError) -> MovieSelection {
        let named = ["movie", "take", "rig"].filter { call.params[$0] != nil }
        guard named.count == 1, let kind = named.first, let name = call.string(kind) else {
            throw .invalidParams(named.last ?? "movie", "needs exactly one of movie, take and rig")
        }
        if kind == "movie" {
            let movie = try current(name)
            try movie.check(editor)
            return MovieSelection([movie], isList: false)
        }
        let isOfRig = kind == "rig"
        let belongs = { (movie: RunningMovie) in (isOfRig ? movie.request.rig : movie.request.take) == name }
        let running = movies.filter(belongs)
        // Those of the same take that have ended by themselves, too: a camera that was lost is reported.
        let takes = Set(
            (running.isEmpty ? finished.last(where: belongs).map { [$0] } ?? [] : running).map(\.request.take))
        let found = finished.filter { belongs($0) && takes.contains($0.request.take) && $0.next == nil } + running
        guard let first = found.first else {
            throw BusError(
                .notRecording,
                "No movie of the \(kind) '\(name.prefix(64))' is being recorded; movie.list lists the running "
                    + "recordings.", [kind: .string(name)])
        }
        let own = found.filter { $0.belongs(to: editor) }
        if own.isEmpty { try first.check(editor) }
        return MovieSelection(own, isList: true)
    }
}

extension RunningMovie {
    fileprivate func belongs(to editor: Editor) -> Bool {
        do throws(BusError) {
            try check(editor)
            return true
        } catch {
            return false
        }
    }
}
