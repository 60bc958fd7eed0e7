import BusProtocol
import BusServer
import CaptureCore
import Glibc
import JSON
import LinuxIO

/// `movie.start`, `stop`, `pause`, `resume`, `status`, `list`, `recommendedSettings`
extension Coordinator {
    static let movieServices: [String: Service] = [
        "movie.start": { $0.startMovie }, "movie.stop": { $0.stopMovie }, "movie.pause": { $0.pauseMovie },
        "movie.resume": { $0.resumeMovie }, "movie.status": { $0.movieStatus }, "movie.list": { $0.listMovies },
        "movie.recommendedSettings": { $0.recommendSettings },
    ]

    /// How long before the movies of a rig begin, so that all cameras give frames by then, nanoseconds.
    private static let rigLead: Int64 = 1_000_000_000

    /// What a movie, or each of a rig's, is of.
    struct Subject {
        var cameras: [Worker] = []
        var microphone: Worker?
        var rig: String?
        var session: CaptureSession?
        /// As the session's connection has it.
        var orientation: VideoOrientation?
        var isMirrored: Bool?
        var stabilization = VideoStabilizationMode.off
        /// What may not be had is to be blank, as the client or its session wants it.
        var isBlankWhenDenied = false
        /// What of it may not be had, and is to be blank.
        var denied: Set<AuthorizationMedia> = []

        var media: Set<AuthorizationMedia> {
            Set((cameras.isEmpty ? [] : [.video]) + (microphone == nil ? [] : [.audio]) + [.libraryAdd])
        }
    }

    private func startMovie(_ call: Call, _ respond: @escaping Responder) {
        do throws(BusError) {
            var subject = try subject(call)
            if call.params["whenDenied"] == "blank" { subject.isBlankWhenDenied = true }
            try checkMayRecord(call.caller, &subject)
            // What may not be had is not set either.
            let cameras = subject.denied.contains(.video) ? [] : subject.cameras
            let wanted = try loansWanted(call, of: cameras, preferred: subject.stabilization)
            let requests = try requests(call, subject)
            try movies.check(requests)
            var isGivenUp = false
            if let key = call.key {
                cancellations[key] = {
                    isGivenUp = true
                    respond(.failure(BusError(.cancelled, "The movie was given up before it had begun.")))
                }
            }
            lend(wanted, to: requests, lock: subject.session?.lockID) { [weak self] requests in
                if let self, !isGivenUp { begin(requests, subject, call, respond) }
            }
        } catch {
            respond(.failure(error))
        }
    }

    private func begin(
        _ requests: [MovieRequest], _ subject: Subject, _ call: Call, _ respond: @escaping Responder
    ) {
        do throws(BusError) {
            guard !isStopping, !isFinishing else {
                throw BusError(.shuttingDown, "The bus is shutting down; ask again when it is back.")
            }
            // What may have changed while the cameras were set.
            var now = subject
            try checkMayRecord(call.caller, &now)
            guard now.denied == subject.denied,
                subject.session.map({ sessions.entries[$0.id]?.session.run.state == .running }) ?? true
            else { throw BusError(.cancelled, "Permission or session have changed; ask again.") }
            let giveUp = try movies.start(requests) { result in
                respond(
                    result.map { movies in
                        let started = movies.map(\.started)
                        guard let rig = subject.rig else { return started.first ?? [:] }
                        return [
                            "movies": .array(started), "take": .string(requests.first?.take ?? ""), "rig": .string(rig),
                        ]
                    }.mapError { Self.asAsked($0, call) })
            }
            if let key = call.key { cancellations[key] = giveUp }
        } catch {
            respond(.failure(error))
        }
    }

    /// A recorder knows the file by its path, whatever the client has named it by.
    private static func asAsked(_ error: BusError, _ call: Call) -> BusError {
        guard error.reason == .invalidParams, error.data["path"] == "path", call.params["path"] == nil else {
            return error
        }
        return .invalidParams("name", error.data["why"]?.string ?? error.message)
    }

    // MARK: What it is of

    func subject(_ call: Call) throws(BusError) -> Subject {
        let named = ["session", "rig"].filter { call.params[$0] != nil }
        guard named.count < 2, named != ["rig"] || call.params["device"] == nil else {
            throw .invalidParams(named.last ?? "rig", "a movie is of a session, of a device, or of a rig's devices")
        }
        var subject = Subject()
        if let session = call.string("session") {
            try take(session, call, into: &subject)
        } else if let rig = call.string("rig") {
            guard let devices = try rigs.devices(of: rig) else {
                throw BusError(
                    .rigNotFound, "No rig is called '\(rig.prefix(64))'.", ["rig": .string(rig)])
            }
            subject.rig = rig
            for device in devices { subject.cameras.append(try worker(device, "rig", .video)) }
        } else if let device = call.string("device") {
            let worker = try worker(device, "device", nil)
            if worker.device.identity.mediaType == .audio {
                subject.microphone = worker
            } else {
                subject.cameras = [worker]
            }
        } else {
            throw .invalidParams("device", "is missing: name a device, a session or a rig")
        }
        if let microphone = call.string("microphone") {
            guard !subject.cameras.isEmpty else {
                throw .invalidParams("microphone", "the device is a microphone already")
            }
            subject.microphone = try worker(microphone, "microphone", .audio)
        }
        return subject
    }

    func worker(_ id: String, _ path: String, _ media: MediaType?) throws(BusError) -> Worker {
        guard let worker = fleet.workers[id] else { throw .deviceNotFound(id, known: fleet.deviceIDs) }
        guard media == nil || worker.device.identity.mediaType == media else {
            throw .invalidParams(path, "\(id) is no \(media == .audio ? "microphone" : "camera")")
        }
        guard worker.device.isPlugged else { throw Self.notReady(worker) }
        return worker
    }

    /// A session's camera, as the connection to its movie output has it, and its microphone.
    private func take(_ id: String, _ call: Call, into subject: inout Subject) throws(BusError) {
        let session = try sessions.entry(id).session
        guard session.mayBeChanged(by: call.caller.peer.uid, isAdmin: permission.isAdmin(call.caller)) else {
            throw BusError(
                .unauthorized, "The session is another user's; its own user and administrators may record it.",
                ["status": "denied", "needed": "admin", "session": .string(id)])
        }
        guard call.params["detached"] == nil else {
            throw .invalidParams("detached", "the movie of a session ends with the session")
        }
        guard let output = session.outputs.first(where: { $0.kind == .movie }) else {
            throw .invalidParams(
                "session", "it has no movie output: session.configure {addOutput: \"movie\"} adds one")
        }
        guard session.run.state == .running else {
            throw BusError(
                .sessionNotRunning, "The session \(id) is \(session.run.state.rawValue); session.start starts it.",
                ["session": .string(id)])
        }
        let media = { (device: String) in self.fleet.workers[device]?.device.identity.mediaType }
        let joined = session.connections(of: output.id).filter(\.isEnabled)
        let (named, cameras) = (call.string("device"), joined.filter { media($0.input) == .video })
        guard named != nil || cameras.count < 2 else {
            throw .invalidParams("device", "is needed: the session has several cameras")
        }
        if call.params["microphone"] == nil, let microphone = joined.first(where: { media($0.input) == .audio }) {
            subject.microphone = try worker(microphone.input, "session", .audio)
        }
        subject.session = session
        subject.isBlankWhenDenied = output.isBlankWhenDenied
        guard let connection = cameras.first(where: { named == nil || $0.input == named }) else {
            guard named == nil, subject.microphone != nil else {
                throw .invalidParams(named == nil ? "session" : "device", "its movie output has no such camera")
            }
            return
        }
        let camera = try worker(connection.input, "session", .video)
        subject.cameras = [camera]
        subject.orientation = connection.videoOrientation
        subject.stabilization = connection.preferredVideoStabilizationMode
        subject.isMirrored = connection.videoMirrored.isOn(position: camera.device.identity.position)
    }

    /// Who may not yet, is asked about. What may not be had is noted, where black, or silence, is taken in the place of one of the two.
    ///
    /// - Throws: `unauthorized` {status, needed}.
    func checkMayRecord(_ caller: Caller, _ subject: inout Subject) throws(BusError) {
        let (uid, gid) = (caller.peer.uid, caller.peer.gid)
        let media = subject.media
        let missing = AuthorizationMedia.allCases.filter {
            media.contains($0) && permission.authorization(of: caller, $0) != .authorized
        }
        for media in missing {
            permission.tried(uid: uid, gid: gid, pid: caller.peer.pid, media, program: programName(caller))
        }
        let isBlank = subject.isBlankWhenDenied
        if let media = missing.first(where: { !isBlank || $0 == .libraryAdd }) {
            throw permission.refusal(caller, media)
        }
        // Of nothing there is no movie.
        if let media = missing.first, Set(missing) == subject.media.subtracting([.libraryAdd]) {
            throw permission.refusal(caller, media)
        }
        subject.denied = Set(missing)
    }

    /// What of it the movie's user may not have any more, and has to be blank from now on; nil: the movie has to end.
    func withdrawal(from movie: RunningMovie) -> Set<AuthorizationMedia>? {
        let owner = movie.request.owner
        let denied = [AuthorizationMedia.video, .audio, .libraryAdd].filter {
            permission.book.status(uid: owner.uid, groups: [owner.gid], media: $0) != .authorized
        }
        return denied.contains(.libraryAdd) ? nil : movie.withdrawal(of: Set(denied))
    }

    /// The camera that a session has got in the place of a segment's; nil: it has the same one, or none that a movie can be of.
    func sessionCamera(of movie: RunningMovie) -> RecorderOrder.Input? {
        guard movie.note.isSegment, let camera = movie.request.camera,
            let session = movie.request.session.flatMap({ sessions.entries[$0]?.session }), session.run.isWanted,
            let output = session.outputs.first(where: { $0.kind == .movie })
        else { return nil }
        let joined = session.connections(of: output.id).filter(\.isEnabled).compactMap { connection in
            fleet.workers[connection.input].map { (connection, $0) }
        }.filter { $0.1.device.identity.mediaType == .video }
        guard !joined.contains(where: { $0.1.device.identity.uniqueID == camera.uniqueID }), joined.count == 1,
            let (connection, worker) = joined.first
        else { return nil }
        let isMirrored = connection.videoMirrored.isOn(position: worker.device.identity.position)
        return RecorderOrder.Input(
            MovieRequest.Device(worker), orientation: connection.videoOrientation.rotationAngle, mirrored: isMirrored)
    }

    /// Why the movie of a session is to end; nil: it goes on.
    func sessionEnd(of movie: RunningMovie) -> MovieEndReason? {
        guard let id = movie.request.session else { return nil }
        guard let session = sessions.entries[id]?.session else {
            let owner = movie.request.owner
            let isAlive = movie.note.isDetached || ProcessTable.startTime(of: owner.pid) == owner.startTime
            return isAlive ? .stopped : .ownerGone
        }
        // A device that isn't known yet, or not any more, is the one that was called so.
        func isInput(_ device: MovieRequest.Device) -> Bool {
            session.inputs.contains { input in
                guard let worker = fleet.workers[input.device] else { return input.device == device.id }
                return worker.device.identity.uniqueID == device.uniqueID
            }
        }
        let isServed =
            session.run.isWanted && session.outputs.contains { $0.kind == .movie }
            && movie.devices.first.map(isInput) ?? true
        return isServed ? nil : .stopped
    }

    // MARK: The requests

    func requests(_ call: Call, _ subject: Subject) throws(BusError) -> [MovieRequest] {
        let owner = subject.session?.owner ?? holder(call.caller)
        let isOwn = call.caller.peer.uid == CurrentProcess.uid
        let (day, time) = Self.today()
        let main = subject.rig ?? subject.cameras.first?.device.id ?? subject.microphone?.device.id ?? "movie"
        let ids = (0..<max(1, subject.cameras.count)).map { _ in hexadecimal(randomBytes(8)) }
        let url: StreamURL?
        let target: MoviePlace.Target
        if let text = call.string("url") {
            let stream = try moviePlace.stream(text)
            try MovieWish.checkIsOfStream(call.params, stream.scheme)
            (url, target) = (stream, MoviePlace.Target(path: "", fileType: .mp4, root: nil))
        } else {
            url = nil
            target = try moviePlace.target(
                name: call.string("name"), path: call.string("path"),
                fileType: call.string("fileType").flatMap(MovieFileType.init), day: day,
                newName: "\(main)-\(time)-\(ids[0].prefix(8))", isOwn: isOwn)
        }
        let wish = try MovieWish(
            call.params, fileType: target.fileType, hasSound: subject.microphone != nil,
            minFreeDiskSpace: url == nil ? configuration.libraryMinFree : nil)
        let isDetached = subject.session?.isDetached ?? wish.isDetached
        guard isDetached || (owner.pid > 0 && owner.startTime != nil) else {
            throw .invalidParams(
                "detached", "must be true for a process that the bus can't see (pid 0 in bus.hello)")
        }
        var note = RunningMovie.Note(isDetached: isDetached, continuesAfterCrash: wish.continuesAfterCrash)
        note.isBlankWhenDenied = subject.isBlankWhenDenied
        let take = wish.take ?? hexadecimal(randomBytes(4))
        // Of a rig, each begins with the first frame that its camera takes from then on.
        let notBefore = subject.rig == nil ? nil : MonotonicClock.now() + Self.rigLead
        let cameras: [Worker?] = subject.cameras.isEmpty ? [nil] : subject.cameras
        return zip(ids, cameras).map { id, camera in
            let file = subject.rig == nil ? target : target.marked(camera?.device.id ?? "sound")
            var request = MovieRequest(
                movie: id, path: file.path, url: url, library: url == nil ? moviePlace.library : nil,
                camera: camera.map(MovieRequest.Device.init),
                microphone: subject.microphone.map(MovieRequest.Device.init), fileType: target.fileType,
                video: wish.video, audio: wish.audio, fragmentInterval: wish.fragmentInterval,
                frameRate: wish.frameRate, limits: wish.limits, notBefore: notBefore,
                orientation: (wish.orientation ?? subject.orientation)?.rotationAngle,
                mirrored: wish.isMirrored ?? subject.isMirrored, take: take, session: subject.session?.id,
                rig: subject.rig, owner: owner, note: note.json)
            request.root = file.root
            if subject.denied.contains(.video), let camera {
                let video = Self.recommendedVideo(camera)
                let (width, height) = (video?.width ?? 640, video?.height ?? 480)
                let isUpright = (request.orientation ?? 0) % 180 == 0
                request.blank.picture = Dimensions(
                    width: isUpright ? width : height, height: isUpright ? height : width)
                request.camera?.frameRate = camera.status["frameRate"]?.double
            }
            if subject.denied.contains(.audio), let microphone = subject.microphone {
                // Also of one of which nothing is known yet.
                let format = microphone.status["activeFormat"] ?? microphone.committed?["activeFormat"]
                request.blank.sound = BlankMedia.Sound(
                    rate: min(384_000, max(4000, Int(clamping: format?["rate"]?.integer ?? 48000))),
                    channels: min(8, max(1, Int(clamping: format?["channels"]?.integer ?? 2))))
            }
            return request
        }
    }

    /// Where movies may be, as the configuration is now.
    var moviePlace: MoviePlace {
        MoviePlace(
            library: configuration.libraryDirectory ?? books.directory.map { "\($0)/library" },
            roots: configuration.libraryRoots, destinations: configuration.libraryDestinations)
    }

    // Who may write in an allowed folder must not lead the bus out of it.
    func checkLinks(_ target: MoviePlace.Target) throws(BusError) {
        guard let root = target.root, let slash = target.path.lastIndex(of: "/") else { return }
        guard let real = File.realPath(ofNearest: root),
            let folder = File.realPath(ofNearest: String(target.path[..<slash])),
            MoviePlace.contains(real, "\(folder)/")
        else { throw moviePlace.refusal(target.path) }
    }

    static func today() -> (day: String, time: String) {
        var (now, parts) = (time(nil), tm())
        localtime_r(&now, &parts)
        func digits(_ value: Int32, _ count: Int) -> String {
            let text = String(value)
            return String(repeating: "0", count: max(0, count - text.utf8.count)) + text
        }
        let day = "\(digits(parts.tm_year + 1900, 4))-\(digits(parts.tm_mon + 1, 2))-\(digits(parts.tm_mday, 2))"
        return (day, "\(digits(parts.tm_hour, 2))\(digits(parts.tm_min, 2))\(digits(parts.tm_sec, 2))")
    }

    // MARK: The end, and what is so

    /// The movie, if the caller may end it.
    private func ownMovie(_ call: Call) throws(BusError) -> RunningMovie {
        let movie = try movies.movie(call.string("movie") ?? "")
        guard movie.mayBeEnded(by: call.caller.peer.uid, isAdmin: permission.isAdmin(call.caller)) else {
            throw BusError(
                .unauthorized, "The movie is another user's; its own user and administrators may stop it.",
                ["status": "denied", "needed": "admin", "movie": .string(movie.id)])
        }
        return movie
    }

    private func stopMovie(_ call: Call, _ respond: @escaping Responder) {
        do throws(BusError) {
            movies.stop(try ownMovie(call).id) { result in
                respond(result.map { movie in movie.result.map { .object(movie.members(of: $0)) } ?? [:] })
            }
        } catch {
            respond(.failure(error))
        }
    }

    private func pauseMovie(_ call: Call, _ respond: @escaping Responder) { order(call, .pause, respond) }

    private func resumeMovie(_ call: Call, _ respond: @escaping Responder) { order(call, .resume, respond) }

    private func order(_ call: Call, _ action: RecorderOrder.Action, _ respond: @escaping Responder) {
        do throws(BusError) {
            movies.order(try ownMovie(call).id, action) { result in respond(result.map { ["movie": $0.json] }) }
        } catch {
            respond(.failure(error))
        }
    }

    private func movieStatus(_ call: Call, _ respond: @escaping Responder) {
        respond(
            Result { () throws(BusError) in ["movie": try movies.movie(call.string("movie") ?? "").json] })
    }

    private func listMovies(_ call: Call, _ respond: @escaping Responder) {
        respond(.success(["movies": .array(movies.movies.map(\.json))]))
    }

    // MARK: Recommended settings

    private func recommendSettings(_ call: Call, _ respond: @escaping Responder) {
        do throws(BusError) {
            let fileType = call.string("fileType").flatMap(MovieFileType.init) ?? .mp4
            let subject = try settingsSubject(call)
            let all = subject.cameras + (subject.microphone.map { [$0] } ?? [])
            whenReady(all[...]) { error in
                if let error { return respond(.failure(error)) }
                respond(
                    .success([
                        "video": subject.cameras.first.flatMap(Self.recommendedVideo)?.json ?? .null,
                        "audio": subject.microphone.flatMap { Self.recommendedAudio($0, fileType) }?.json ?? .null,
                    ]))
            }
        } catch {
            respond(.failure(error))
        }
    }

    private func settingsSubject(_ call: Call) throws(BusError) -> Subject {
        guard let id = call.string("session") else { return try subject(call) }
        // Of a session that may not run yet, too, and whoever asks.
        let session = try sessions.entry(id).session
        let inputs = session.inputs.compactMap { fleet.workers[$0.device] }
        let named = call.string("device")
        let camera = inputs.first {
            $0.device.identity.mediaType == .video && (named == nil || $0.device.id == named)
        }
        guard let camera else {
            throw .invalidParams(named == nil ? "session" : "device", "the session has no such camera")
        }
        var subject = Subject(cameras: [camera], session: session)
        if let microphone = call.string("microphone") {
            subject.microphone = try worker(microphone, "microphone", .audio)
        } else if call.params["microphone"] == nil {
            subject.microphone = inputs.first { $0.device.identity.mediaType == .audio }
        }
        return subject
    }

    /// Calls the body when each has described its device, or with why one has not.
    private func whenReady(_ workers: ArraySlice<Worker>, _ body: @escaping (BusError?) -> Void) {
        guard let worker = workers.first else { return body(nil) }
        worker.whenReady(withinMilliseconds: Self.patience) { [weak self] in
            guard worker.description != nil else { return body(Self.notReady(worker)) }
            self?.whenReady(workers.dropFirst(), body)
        }
    }

    // As it is; while that isn't known, as it was set, or else as the first row of its table has it.
    private static func recommendedVideo(_ worker: Worker) -> RecommendedVideo? {
        let known = [worker.status["activeFormat"], worker.committed?["activeFormat"]].compactMap(\.self)
        let sizes = known.compactMap { format -> Dimensions? in
            guard let width = format["width"]?.integer, let height = format["height"]?.integer else { return nil }
            return Dimensions(width: Int(clamping: width), height: Int(clamping: height))
        }
        guard let size = sizes.first ?? worker.formats?.first?.dimensions else { return nil }
        return RecommendedVideo(size, frameRate: worker.status["frameRate"]?.double ?? 30)
    }

    private static func recommendedAudio(_ worker: Worker, _ fileType: MovieFileType) -> RecommendedAudio? {
        let format = worker.status["activeFormat"] ?? worker.committed?["activeFormat"]
        let rate = format?["rate"]?.integer ?? 48000
        let channels = format?["channels"]?.integer ?? 2
        return RecommendedAudio(fileType, rate: Int(clamping: rate), channels: Int(clamping: channels))
    }
}

extension MovieRequest.Device {
    init(_ worker: Worker) {
        let identity = worker.device.identity
        self.init(id: worker.device.id, uniqueID: identity.uniqueID, name: identity.localizedName)
    }
}
