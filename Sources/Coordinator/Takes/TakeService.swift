import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO

/// `take.create`, `record`, `pause`, `get`, `list`, `delete`, `finish`, `discard`
final class TakeService: MethodService {
    private let takes: TakeRegistry
    private let reader: MovieRequestReader
    private let places: RecordingPlaces
    private let sessions: SessionRegistry
    private let workers: WorkerSupervisor
    private let permission: AuthorizationService
    private let clients: ClientRegistry
    private let cancellations: CancellationTable

    init(
        _ takes: TakeRegistry, _ reader: MovieRequestReader, _ places: RecordingPlaces, _ sessions: SessionRegistry,
        _ workers: WorkerSupervisor, _ permission: AuthorizationService, _ clients: ClientRegistry,
        _ cancellations: CancellationTable
    ) {
        self.takes = takes
        self.reader = reader
        self.places = places
        self.sessions = sessions
        self.workers = workers
        self.permission = permission
        self.clients = clients
        self.cancellations = cancellations
    }

    var methods: [String: Handler] {
        [
            "take.create": .plain(create), "take.record": .plain(record), "take.pause": .plain(pause),
            "take.get": .plain(get), "take.list": .plain(list), "take.delete": .plain(deleteSegment),
            "take.finish": .plain(finish), "take.discard": .plain(discard),
        ]
    }

    // MARK: Creation

    private func create(_ call: Call, _ respond: @escaping Responder) {
        do throws(BusError) {
            guard places.current.library != nil else {
                throw BusError(
                    .internalError,
                    "There is no place for a capture library: name one with --state-dir, or 'directory' of [library] "
                        + "in camerabus.toml."
                )
            }
            var subject = try subject(call)
            try reader.checkMayRecord(call.caller, &subject)
            let id = hexadecimal(randomBytes(8))
            let main = subject.cameras.first?.worker.device.id ?? subject.microphone?.device.id ?? "take"
            let name = call.string("name").map(KeptTake.stem) ?? "\(main)-\(LocalTime.today().time)-\(id.prefix(8))"
            // Checks everything but the number.
            _ = try places.current.target(
                name: KeptTake.filename(name, part: KeptTake.maximumPart), path: nil, fileType: .mp4,
                day: LocalTime.today().day, newName: "", isOwn: false)
            var wish: [String: JSONValue] = [:]
            for member in ["session", "device", "microphone", "orientation", "mirrored"] {
                wish[member] = call.params[member]
            }
            let isOfSession = subject.session != nil
            let take = KeptTake(
                try Take(
                    id: id, minDuration: call.milliseconds("minDuration"),
                    maxDuration: call.milliseconds("maxDuration")),
                name: name, owner: clients.holder(call.caller), made: MonotonicClock.realtime(), wish: .object(wish),
                isDetached: call.params["detached"]?.bool ?? false,
                exportPreset: call.string("exportPreset").flatMap(ExportPreset.init),
                camera: isOfSession ? nil : subject.cameras.first.map { MovieRequest.Device($0.worker) },
                microphone: isOfSession ? nil : subject.microphone.map(MovieRequest.Device.init))
            try takes.add(take) { isKept in
                let result: JSONValue = ["take": take.json]
                respond(.success(result.marked(isKept: isKept)))
            }
        } catch {
            respond(.failure(error))
        }
    }

    /// The devices of a take. A take of a session names the session alone, which need not run yet.
    private func subject(_ call: Call) throws(BusError) -> MovieSubject {
        guard let id = call.string("session") else { return try reader.subject(call) }
        let session = try sessions.entry(id).session
        try session.check(permission.editor(call.caller), to: "record it")
        guard call.params["detached"] == nil else {
            throw .invalidParams("detached", "can't be used with a session: its segments end with the session")
        }
        guard session.outputs.contains(where: { $0.kind == .movie }) else {
            throw .invalidParams(
                "session", "it has no movie output: session.configure {addOutput: \"movie\"} adds one")
        }
        if let microphone = call.string("microphone"), workers[microphone] == nil {
            throw .deviceNotFound(microphone, known: workers.deviceIDs)
        }
        return MovieSubject(session: session)
    }

    // MARK: Segments

    /// The take, if the caller may do something with it.
    private func ownTake(_ call: Call) throws(BusError) -> KeptTake {
        let take = try takes.take(call.string("take") ?? "")
        try take.check(permission.editor(call.caller))
        return take
    }

    private func record(_ call: Call, _ respond: @escaping Responder) {
        do throws(BusError) {
            let take = try ownTake(call)
            // Before devices and permission are checked.
            var trial = take
            try trial.record("trial", path: "")
            let segment = try Call(call.caller, params: segmentParams(of: take), key: call.key)
            var subject = try reader.subject(segment)
            try reader.checkMayRecord(call.caller, &subject)
            guard var request = try reader.requests(segment, subject).first else {
                throw .invalidParams("take", "has no camera and no microphone to record")
            }
            var note = RunningMovie.Note(json: request.note)
            note.isSegment = true
            request.note = note.json
            var isGivenUp = false
            cancellations.set(call.key) {
                isGivenUp = true
                respond(.failure(BusError(.cancelled, "The segment was cancelled before it began.")))
            }
            takes.movies.checkRoom(for: request) { [weak self] refusal in
                guard let self, !isGivenUp else { return }
                do throws(BusError) {
                    if let refusal { throw refusal }
                    let giveUp = try takes.record(take.id, request) { result in
                        respond(result.map { $0.movie.started.marked(isKept: $0.isKept) })
                    }
                    cancellations.set(call.key, giveUp)
                } catch {
                    respond(.failure(error))
                }
            }
        } catch {
            respond(.failure(error))
        }
    }

    /// The params of `movie.start` for a segment.
    private func segmentParams(of take: KeptTake) throws(BusError) -> JSONValue {
        var params = take.wish.object ?? [:]
        params["name"] = .string(take.filename(part: take.nextPart))
        params["take"] = .string(take.id)
        if let id = take.session {
            // The camera that was named may have been switched for another.
            let session = try sessions.entry(id).session
            if let device = params["device"]?.string, session.input(device) == nil { params["device"] = nil }
            return .object(params)
        }
        if take.isDetached { params["detached"] = true }
        // Devices as they are called now.
        for (name, device) in [("device", take.camera ?? take.microphone), ("microphone", take.microphone)] {
            guard params[name]?.string != nil, let device else { continue }
            params[name] = .string(workers.worker(of: device.uniqueID)?.device.id ?? device.id)
        }
        return .object(params)
    }

    private func pause(_ call: Call, _ respond: @escaping Responder) {
        do throws(BusError) {
            try takes.pause(try ownTake(call).id, completion: respond)
        } catch {
            respond(.failure(error))
        }
    }

    // MARK: State

    private func get(_ call: Call, _ respond: @escaping Responder) {
        respond(Result { () throws(BusError) in ["take": try takes.take(call.string("take") ?? "").json] })
    }

    private func list(_ call: Call, _ respond: @escaping Responder) {
        respond(.success(["takes": .array(takes.takes.map(\.json))]))
    }

    // MARK: The end

    private func deleteSegment(_ call: Call, _ respond: @escaping Responder) {
        do throws(BusError) {
            let id = try ownTake(call).id
            try takes.delete(id, call.string("segment") ?? "") { [weak self] result in
                guard let self else { return }
                respond(
                    Result { () throws(BusError) in
                        let removed = try result.get()
                        let take = try takes.take(id)
                        let members: JSONValue = ["take": take.json, "deleted": .array(removed.files)]
                        return members.marked(isKept: removed.isKept)
                    })
            }
        } catch {
            respond(.failure(error))
        }
    }

    private func finish(_ call: Call, _ respond: @escaping Responder) {
        do throws(BusError) {
            let take = try ownTake(call)
            var saving = MovieSubject()
            try reader.checkMayRecord(call.caller, &saving)
            let target: MoviePlace.Target
            do throws(BusError) {
                let isNamed = call.params["name"] != nil || call.params["path"] != nil
                target = try places.current.target(
                    name: isNamed ? call.string("name") : take.name + ".mp4", path: call.string("path"),
                    fileType: .mp4, day: LocalTime.today().day, newName: take.name,
                    isOwn: call.caller.peer.uid == CurrentProcess.uid)
            } catch {
                guard error.data["path"] == "fileType" else { throw error }
                throw .invalidParams(call.params["path"] == nil ? "name" : "path", "must end in .mp4")
            }
            try places.checkLinks(target)
            try takes.finish(take.id, target) { respond($0.mapError { Self.asNamed($0, call) }) }
        } catch {
            respond(.failure(error))
        }
    }

    /// The librarian reports errors about paths; the client may have passed `name`.
    private static func asNamed(_ error: BusError, _ call: Call) -> BusError {
        guard error.reason == .invalidParams, ["path", "cover"].contains(error.data["path"]) else { return error }
        return .invalidParams(call.params["path"] == nil ? "name" : "path", error.data["why"]?.string ?? error.message)
    }

    private func discard(_ call: Call, _ respond: @escaping Responder) {
        do throws(BusError) {
            let id = try ownTake(call).id
            try takes.discard(id) { result in
                respond(
                    result.map { removed in
                        let members: JSONValue = ["take": .string(id), "deleted": .array(removed.files)]
                        return members.marked(isKept: removed.isKept)
                    })
            }
        } catch {
            respond(.failure(error))
        }
    }
}

extension Call {
    fileprivate func milliseconds(_ name: String) -> Int64? {
        params[name]?.double.flatMap { Int64(exactly: max(1, $0.rounded())) }
    }
}
