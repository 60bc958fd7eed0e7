import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO

/// `movie.start`, `stop`, `pause`, `resume`, `status`, `list`, `recommendedSettings`
final class MovieService: MethodService {
    let reader: MovieRequestReader
    let sessions: SessionRegistry
    let workers: WorkerSupervisor
    let resolver: DeviceResolver
    private let lifecycle: Lifecycle
    private let movies: MovieRegistry
    private let controls: MovieControls
    private let permission: AuthorizationService
    private let cancellations: CancellationTable

    init(
        _ lifecycle: Lifecycle, _ movies: MovieRegistry, _ controls: MovieControls, _ reader: MovieRequestReader,
        _ sessions: SessionRegistry, _ workers: WorkerSupervisor, _ resolver: DeviceResolver,
        _ permission: AuthorizationService, _ cancellations: CancellationTable
    ) {
        self.lifecycle = lifecycle
        self.movies = movies
        self.controls = controls
        self.reader = reader
        self.sessions = sessions
        self.workers = workers
        self.resolver = resolver
        self.permission = permission
        self.cancellations = cancellations
    }

    var methods: [String: Handler] {
        [
            "movie.start": .plain(start), "movie.stop": .plain(stop), "movie.pause": .plain(pause),
            "movie.resume": .plain(resume), "movie.status": .plain(status), "movie.list": .plain(list),
            "movie.recommendedSettings": .plain(recommendSettings),
        ]
    }

    private func start(_ call: Call, _ respond: @escaping Responder) {
        do throws(BusError) {
            var subject = try reader.subject(call)
            if call.params["whenDenied"] == "blank" { subject.isBlankWhenDenied = true }
            try reader.checkMayRecord(call.caller, &subject)
            // Cameras without permission are not set either.
            let cameras = subject.denied.contains(.video) ? [] : subject.cameras
            let wanted = try controls.wanted(call, of: cameras)
            let requests = try reader.requests(call, subject)
            try movies.check(requests)
            var isGivenUp = false
            cancellations.set(call.key) {
                isGivenUp = true
                respond(.failure(BusError(.cancelled, "The movie was cancelled before it began.")))
            }
            movies.checkRoom(for: requests.first) { [weak self] refusal in
                guard let self, !isGivenUp else { return }
                if let refusal { return respond(.failure(refusal)) }
                controls.turnOn(wanted, for: requests, lock: subject.session?.lockID) { [weak self] requests in
                    if let self, !isGivenUp { begin(requests, subject, call, respond) }
                }
            }
        } catch {
            respond(.failure(error))
        }
    }

    private func begin(
        _ requests: [MovieRequest], _ subject: MovieSubject, _ call: Call, _ respond: @escaping Responder
    ) {
        do throws(BusError) {
            guard !lifecycle.isStopping, !lifecycle.isFinishing else {
                throw BusError(.shuttingDown, "The bus is shutting down; try again when it is back.")
            }
            // Permission and session may have changed while the cameras were set.
            var now = subject
            try reader.checkMayRecord(call.caller, &now)
            guard now.denied == subject.denied,
                subject.session.map({ sessions.entries[$0.id]?.session.run.state == .running }) ?? true
            else { throw BusError(.cancelled, "The permission or the session has changed; try again.") }
            let giveUp = try movies.start(requests) { result in
                respond(
                    result.map { movies in
                        let started = movies.map(\.started)
                        guard subject.isOfEach else { return started.first ?? [:] }
                        var members: [String: JSONValue] = [
                            "movies": .array(started), "take": .string(requests.first?.take ?? ""),
                        ]
                        members["rig"] = subject.rig.map(JSONValue.string)
                        return .object(members)
                    }.mapError { Self.asAsked($0, call) })
            }
            cancellations.set(call.key, giveUp)
        } catch {
            respond(.failure(error))
        }
    }

    /// A recorder reports errors about `path`; the client may have passed `name`.
    private static func asAsked(_ error: BusError, _ call: Call) -> BusError {
        guard error.reason == .invalidParams, error.data["path"] == "path", call.params["path"] == nil else {
            return error
        }
        return .invalidParams("name", error.data["why"]?.string ?? error.message)
    }

    // MARK: Movies that are being made

    private func stop(_ call: Call, _ respond: @escaping Responder) {
        do throws(BusError) {
            let group = try movies.group(call, permission.editor(call.caller))
            group.order(
                { movies.stop($0, at: group.moment, $1) }, reply: { [self] in ending($0) }, respond)
        } catch {
            respond(.failure(error))
        }
    }

    private func ending(_ movie: RunningMovie) -> JSONValue {
        // One that was to continue, and has nothing, says less than the one before it.
        if movie.result?.isKept == false, !movie.hasBegun, let id = movie.request.follows,
            let before = try? movies.movie(id)
        {
            return ending(before)
        }
        return movie.result.map { .object(movie.members(of: $0)) } ?? [:]
    }

    private func pause(_ call: Call, _ respond: @escaping Responder) { order(call, { .pause(at: $0) }, respond) }

    private func resume(_ call: Call, _ respond: @escaping Responder) { order(call, { .resume(at: $0) }, respond) }

    private func order(_ call: Call, _ action: (Instant) -> RecorderOrder.Action, _ respond: @escaping Responder) {
        do throws(BusError) {
            let group = try movies.group(call, permission.editor(call.caller))
            let action = action(group.moment)
            group.order(
                { movies.order($0, action, $1) }, reply: { group.isList ? $0.json : ["movie": $0.json] }, respond)
        } catch {
            respond(.failure(error))
        }
    }

    private func status(_ call: Call, _ respond: @escaping Responder) {
        respond(
            Result { () throws(BusError) in ["movie": try movies.movie(call.string("movie") ?? "").json] })
    }

    private func list(_ call: Call, _ respond: @escaping Responder) {
        respond(.success(["movies": .array(movies.movies.map(\.json))]))
    }
}
