import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO

/// `take.create`, `record`, `pause`, `get`, `list`, `delete`, `finish`, `discard`
extension Coordinator {
    static let takeServices: [String: Service] = [
        "take.create": { $0.createTake }, "take.record": { $0.recordTake }, "take.pause": { $0.pauseTake },
        "take.get": { $0.getTake }, "take.list": { $0.listTakes }, "take.delete": { $0.deleteSegment },
        "take.finish": { $0.finishTake }, "take.discard": { $0.discardTake },
    ]

    // MARK: Made

    private func createTake(_ call: Call, _ respond: @escaping Responder) {
        do throws(BusError) {
            guard moviePlace.library != nil else {
                throw BusError(
                    .internalError,
                    "There is no place for a capture library: name one with --state-dir, or 'directory' of [library] in camerabus.toml."
                )
            }
            var subject = try takeSubject(call)
            try checkMayRecord(call.caller, &subject)
            let id = hexadecimal(randomBytes(8))
            let main = subject.cameras.first?.device.id ?? subject.microphone?.device.id ?? "take"
            let name = call.string("name").map(KeptTake.stem) ?? "\(main)-\(Self.today().time)-\(id.prefix(8))"
            // As far as anything but the number can be wrong.
            _ = try moviePlace.target(
                name: KeptTake.filename(name, part: KeptTake.maximumPart), path: nil, fileType: .mp4,
                day: Self.today().day, newName: "", isOwn: false)
            var wish: [String: JSONValue] = [:]
            for member in ["session", "device", "microphone", "orientation", "mirrored"] {
                wish[member] = call.params[member]
            }
            let isOfSession = subject.session != nil
            let take = KeptTake(
                try Take(
                    id: id, minDuration: call.milliseconds("minDuration"),
                    maxDuration: call.milliseconds("maxDuration")),
                name: name, owner: holder(call.caller), made: MonotonicClock.realtime(), wish: .object(wish),
                isDetached: call.params["detached"]?.bool ?? false,
                exportPreset: call.string("exportPreset").flatMap(ExportPreset.init),
                camera: isOfSession ? nil : subject.cameras.first.map(MovieRequest.Device.init),
                microphone: isOfSession ? nil : subject.microphone.map(MovieRequest.Device.init))
            try takes.add(take) { respond($0.map { ["take": $0.json] }) }
        } catch {
            respond(.failure(error))
        }
    }

    /// What a take is to be of: of a session, which need not run yet, nothing but that.
    private func takeSubject(_ call: Call) throws(BusError) -> Subject {
        guard let id = call.string("session") else { return try subject(call) }
        let session = try sessions.entry(id).session
        guard session.mayBeChanged(by: call.caller.peer.uid, isAdmin: permission.isAdmin(call.caller)) else {
            throw BusError(
                .unauthorized, "The session is another user's; its own user and administrators may record it.",
                ["status": "denied", "needed": "admin", "session": .string(id)])
        }
        guard call.params["detached"] == nil else {
            throw .invalidParams("detached", "the segments of a session end with the session")
        }
        guard session.outputs.contains(where: { $0.kind == .movie }) else {
            throw .invalidParams(
                "session", "it has no movie output: session.configure {addOutput: \"movie\"} adds one")
        }
        if let microphone = call.string("microphone"), fleet.workers[microphone] == nil {
            throw .deviceNotFound(microphone, known: fleet.deviceIDs)
        }
        return Subject(session: session)
    }

    // MARK: Recorded

    /// The take, if the caller may do something with it.
    private func ownTake(_ call: Call) throws(BusError) -> KeptTake {
        let take = try takes.take(call.string("take") ?? "")
        guard take.mayBeChanged(by: call.caller.peer.uid, isAdmin: permission.isAdmin(call.caller)) else {
            throw BusError(
                .unauthorized, "The take is another user's; its own user and administrators may change it.",
                ["status": "denied", "needed": "admin", "take": .string(take.id)])
        }
        return take
    }

    private func recordTake(_ call: Call, _ respond: @escaping Responder) {
        do throws(BusError) {
            let take = try ownTake(call)
            // Before anything is asked of its devices, and of its user.
            var trial = take
            try trial.record("trial", path: "")
            let segment = try Call(call.caller, params: segmentParams(of: take), key: call.key)
            var subject = try subject(segment)
            try checkMayRecord(call.caller, &subject)
            guard var request = try requests(segment, subject).first else {
                throw .invalidParams("take", "there is nothing to be recorded")
            }
            var note = RunningMovie.Note(json: request.note)
            note.isSegment = true
            request.note = note.json
            let giveUp = try takes.record(take.id, request) { respond($0.map(\.started)) }
            if let key = call.key { cancellations[key] = giveUp }
        } catch {
            respond(.failure(error))
        }
    }

    /// A segment as `movie.start` would be told of it.
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
            params[name] = .string(fleet.worker(of: device.uniqueID)?.device.id ?? device.id)
        }
        return .object(params)
    }

    private func pauseTake(_ call: Call, _ respond: @escaping Responder) {
        do throws(BusError) {
            try takes.pause(try ownTake(call).id, completion: respond)
        } catch {
            respond(.failure(error))
        }
    }

    // MARK: What is so

    private func getTake(_ call: Call, _ respond: @escaping Responder) {
        respond(Result { () throws(BusError) in ["take": try takes.take(call.string("take") ?? "").json] })
    }

    private func listTakes(_ call: Call, _ respond: @escaping Responder) {
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
                        let deleted = try result.get()
                        let take = try takes.take(id)
                        return ["take": take.json, "deleted": .array(deleted)]
                    })
            }
        } catch {
            respond(.failure(error))
        }
    }

    private func finishTake(_ call: Call, _ respond: @escaping Responder) {
        do throws(BusError) {
            let take = try ownTake(call)
            var saving = Subject()
            try checkMayRecord(call.caller, &saving)
            let target: MoviePlace.Target
            do throws(BusError) {
                let isNamed = call.params["name"] != nil || call.params["path"] != nil
                target = try moviePlace.target(
                    name: isNamed ? call.string("name") : take.name + ".mp4", path: call.string("path"),
                    fileType: .mp4, day: Self.today().day, newName: take.name,
                    isOwn: call.caller.peer.uid == CurrentProcess.uid)
            } catch {
                guard error.data["path"] == "fileType" else { throw error }
                throw .invalidParams(call.params["path"] == nil ? "name" : "path", "has to end in .mp4")
            }
            try checkLinks(target)
            try takes.finish(take.id, target) { respond($0.mapError { Self.asNamed($0, call) }) }
        } catch {
            respond(.failure(error))
        }
    }

    /// The librarian knows files by their paths, whatever the client has named them by.
    private static func asNamed(_ error: BusError, _ call: Call) -> BusError {
        guard error.reason == .invalidParams, ["path", "cover"].contains(error.data["path"]) else { return error }
        return .invalidParams(call.params["path"] == nil ? "name" : "path", error.data["why"]?.string ?? error.message)
    }

    private func discardTake(_ call: Call, _ respond: @escaping Responder) {
        do throws(BusError) {
            let id = try ownTake(call).id
            try takes.discard(id) { result in
                respond(result.map { ["take": .string(id), "deleted": .array($0)] })
            }
        } catch {
            respond(.failure(error))
        }
    }
}

extension Coordinator.Call {
    fileprivate func milliseconds(_ name: String) -> Int64? {
        params[name]?.double.flatMap { Int64(exactly: max(1, $0.rounded())) }
    }
}
