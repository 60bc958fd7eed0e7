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
            try MovieOptions.checkIsOfStream(call.params, stream.scheme)
            (url, target) = (stream, MoviePlace.Target(path: "", fileType: .mp4, root: nil))
        } else {
            url = nil
            target = try moviePlace.target(
                name: call.string("name"), path: call.string("path"),
                fileType: call.string("fileType").flatMap(MovieFileType.init), day: day,
                newName: "\(main)-\(time)-\(ids[0].prefix(8))", isOwn: isOwn)
        }
        let wish = try MovieOptions(
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
                let video = RecommendedVideo(camera)
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
}

extension MovieRequest.Device {
    init(_ worker: Worker) {
        let identity = worker.device.identity
        self.init(id: worker.device.id, uniqueID: identity.uniqueID, name: identity.localizedName)
    }
}
