import BusProtocol
import BusServer
import CaptureCore
import JSON

/// Movies that are about to begin, together or not at all: the requests that wait for that, and why a movie could not
/// begin.
final class MovieStarts {
    final class Start {
        let movies: [String]
        /// Those without a first frame.
        fileprivate(set) var waiting: Set<String>
        /// Those that begin on order, and whose devices don't deliver yet.
        fileprivate var unready: Set<String>
        let completion: (Result<[RunningMovie], BusError>) -> Void
        fileprivate var timer: Loop.Token?

        fileprivate init(_ requests: [MovieRequest], _ completion: @escaping (Result<[RunningMovie], BusError>) -> Void)
        {
            movies = requests.map(\.movie)
            waiting = Set(movies)
            unready = Set(requests.filter(\.beginsOnOrder).map(\.movie))
            self.completion = completion
        }
    }

    private let loop: Loop
    private(set) var all: [Start] = []
    private let workers: WorkerSupervisor

    /// How long the first frame may take, milliseconds.
    private static let patience: Int64 = 10_000

    init(_ loop: Loop, _ workers: WorkerSupervisor) {
        self.loop = loop
        self.workers = workers
    }

    /// The one that a movie belongs to.
    subscript(movie: String) -> Start? { all.first { $0.movies.contains(movie) } }

    func add(
        _ requests: [MovieRequest], _ completion: @escaping (Result<[RunningMovie], BusError>) -> Void
    ) -> Start {
        let start = Start(requests, completion)
        all.append(start)
        return start
    }

    /// Calls the body if its movies have not begun in time.
    func limit(_ start: Start, onLate: @escaping (Start) -> Void) {
        start.timer = loop.schedule(afterMilliseconds: Self.patience) { [weak start] in
            if let start { onLate(start) }
        }
    }

    /// It is over, however that came.
    ///
    /// - Returns: whether it wasn't yet.
    @discardableResult
    func remove(_ start: Start) -> Bool {
        guard all.contains(where: { $0 === start }) else { return false }
        all.removeAll { $0 === start }
        loop.cancel(start.timer)
        return true
    }

    /// A movie that begins on order could begin.
    ///
    /// - Returns: the movies to begin now, because it was the last of them.
    func ready(_ movie: String) -> [String] {
        guard let start = all.first(where: { $0.unready.contains(movie) }) else { return [] }
        start.unready.remove(movie)
        return start.unready.isEmpty ? start.movies : []
    }

    /// A movie has its first frame.
    ///
    /// - Returns: the start that is over with it, as it was the last one.
    func begun(_ movie: String) -> Start? {
        guard let start = all.first(where: { $0.waiting.contains(movie) }) else { return nil }
        start.waiting.remove(movie)
        guard start.waiting.isEmpty else { return nil }
        remove(start)
        return start
    }

    // MARK: Why one could not begin

    /// Nothing has come of these devices.
    ///
    /// - Parameter refusal: why one of them does not give what its recorder needs.
    func late(_ devices: [MovieRequest.Device], refusal: BusError?) -> BusError {
        for device in devices { if let error = trouble(device) { return error } }
        if let refusal { return refusal }
        return BusError(
            .interrupted, "No picture arrived within \(Self.patience / 1000) seconds; try again.",
            ["interruption": "noFrames", "device": devices.first.map { .string($0.id) } ?? .null])
    }

    /// Why a movie could not be begun.
    func why(_ movie: RunningMovie, _ result: MovieResult) -> BusError {
        let needed = movie.request.limits.minFreeDiskSpace.map { JSONValue($0) } ?? .null
        if var error = result.error, result.reason != .recorderCrashed {
            if error.reason == .diskFull { error.data.merge(["free": .null, "needed": needed]) { own, _ in own } }
            return error
        }
        switch result.reason {
        case .diskFull, .minimumFreeDiskSpaceReached:
            return BusError(
                .diskFull, "The disk has no space for a movie at \(result.path).", ["free": .null, "needed": needed])
        case .deviceLost, .formatChanged:
            for device in movie.devices { if let error = trouble(device) { return error } }
            return BusError(
                .interrupted, "\(movie.devices.first?.id ?? "The device") delivered no pictures; try again.",
                ["interruption": "noFrames"])
        case .libraryQuotaReached:
            return BusError(
                .limitExceeded, "Your other movies have taken the room that you may have in the library.",
                ["limit": "libraryQuota"])
        case .maximumFileSizeReached:
            return .invalidParams("maxFileSize", "is too small for the first frame of the movie")
        case .ownerGone, .stopped:
            return BusError(.cancelled, "The movie was cancelled before it began.")
        case .shuttingDown:
            return MovieRegistry.shuttingDown
        default:
            return result.error
                ?? BusError(.internalError, "The movie could not be started (\(result.reason.rawValue)); see the log.")
        }
    }

    /// Why a device gives no pictures or sound.
    private func trouble(_ device: MovieRequest.Device) -> BusError? {
        guard let worker = workers.worker(of: device.uniqueID) else { return nil }
        let isWell = worker.isRunning && worker.isConnected && worker.status["error"]?.isNull ?? true
        return isWell ? nil : worker.notReady
    }
}
