public import BusProtocol
public import JSON

/// What the coordinator tells a recorder to do, over `internal/recorders.sock`: one JSON frame.
///
/// Every order is answered once by ``RecorderReport/reply(order:_:)`` with its number.
public struct RecorderOrder: Hashable, Sendable {
    public enum Action: Hashable, Sendable {
        /// Begins the movie with the first frame that is taken at or after that time
        /// (``MovieRequest/beginsOnOrder``). Answers {} at once.
        case begin(at: Instant)
        /// Leaves out what is taken from that time on until ``resume(at:)``. Answers {} at once, also when it is paused
        /// already.
        case pause(at: Instant)
        case resume(at: Instant)
        /// Puts black, or silence, in the place of what may not be had any more, from now on: nothing that is taken
        /// later is in the movie. Answers {} when that is so, also when it was already. Refused where nothing could
        /// stand for it: H.264 that is stored as it comes; one that has not begun; the last that is not blank.
        case blank(AuthorizationMedia)
        /// Ends the movie for that reason, with all that was taken before that time and nothing later; nil: with what
        /// is there. Answers the members of ``MovieResult`` when the file is closed and on the disk; the recorder then
        /// ends. A movie that has ended by itself meanwhile answers with its own reason.
        case stop(MovieEndReason, at: Instant? = nil)
        /// Ends the movie and removes its files. Answers like ``stop(_:)``.
        case cancel
        /// Goes on with another camera's pictures, in the same file and at its size. Answers {} when the first of them
        /// is taken; after an error the movie goes on with the camera that it has: `cancelled` where it is to go on
        /// with yet another one, `notRecording` where it ends before, `formatUnsupported` and `invalidParams` where one
        /// of the two can't follow on the other, and why the new one gives nothing.
        case input(Input)
        /// Of a recorder of live photos (``MovieRequest/live``): makes the movie of a photo. Answers the members of
        /// ``LivePhotoAnswer`` when the file is closed, with the file's bytes as a further frame of the message where
        /// they are wanted. Errors: `limitExceeded` {limit: "livePhotos"}; `interrupted` {interruption:
        /// "livePhotoMovie"} where not even the photo's own moment is held, or comes, or nothing can be written;
        /// `cancelled` after ``dropLive(_:)``; `invalidParams` while it is suspended.
        case live(LivePhotoOrder)
        /// The photo of that id needs no movie, or the movie has been fetched: gives it up, or removes its file.
        /// Answers {} in any case.
        case dropLive(String)
        /// Nothing of now is to be in any movie of a live photo, or is again. Answers {}.
        case suspend(Bool)
    }

    /// The camera that a movie goes on with.
    public struct Input: Hashable, Sendable {
        public var camera: MovieRequest.Device
        /// As in ``MovieRequest/orientation`` and ``MovieRequest/mirrored``, from now on.
        public var orientation: Int?
        public var mirrored: Bool?

        public init(_ camera: MovieRequest.Device, orientation: Int? = nil, mirrored: Bool? = nil) {
            self.camera = camera
            self.orientation = orientation
            self.mirrored = mirrored
        }

        var members: [String: JSONValue] {
            var members: [String: JSONValue] = ["camera": camera.json]
            members["orientation"] = orientation.map { JSONValue($0) }
            members["mirrored"] = mirrored.map(JSONValue.bool)
            return members
        }

        // nil when it names no camera, or is turned by no quarter turn.
        init?(json: JSONValue) {
            guard let camera = json["camera"].flatMap({ try? MovieRequest.Device(json: $0, path: "camera") }) else {
                return nil
            }
            let orientation = json["orientation"]?.integer.flatMap { Int(exactly: $0) }
            guard [0, 90, 180, 270].contains(orientation ?? 0) else { return nil }
            self.init(camera, orientation: orientation, mirrored: json["mirrored"]?.bool)
        }
    }

    public var number: UInt64
    public var action: Action
    /// The recorder's hello that this answers to: an order that was given over an earlier connection is not carried
    /// out. nil: any.
    public var link: UInt64?

    public init(number: UInt64, action: Action, link: UInt64? = nil) {
        self.number = number
        self.action = action
        self.link = link
    }

    public var json: JSONValue {
        var members: [String: JSONValue] = ["order": JSONValue(number)]
        if let link { members["link"] = JSONValue(link) }
        switch action {
        case .begin(let time): (members["do"], members["at"]) = ("begin", .integer(time))
        case .pause(let time): (members["do"], members["at"]) = ("pause", .integer(time))
        case .resume(let time): (members["do"], members["at"]) = ("resume", .integer(time))
        case .blank(let media):
            members["do"] = "blank"
            members["media"] = .string(media.rawValue)
        case .stop(let reason, let time):
            members["do"] = "stop"
            members["reason"] = .string(reason.rawValue)
            members["at"] = time.map(JSONValue.integer)
        case .cancel: members["do"] = "cancel"
        case .input(let input):
            members["do"] = "input"
            members.merge(input.members) { own, _ in own }
        case .live(let photo):
            members["do"] = "live"
            members.merge(photo.members) { own, _ in own }
        case .dropLive(let job):
            members["do"] = "dropLive"
            members["job"] = .string(job)
        case .suspend(let isSuspended):
            members["do"] = "suspend"
            members["suspended"] = .bool(isSuspended)
        }
        return .object(members)
    }

    /// nil when it is no order that this version knows.
    public init?(json: JSONValue) {
        guard let number = json["order"]?.integer.flatMap({ UInt64(exactly: $0) }) else { return nil }
        switch json["do"]?.string {
        case "begin", "pause", "resume":
            guard let time = json["at"]?.integer else { return nil }
            action =
                switch json["do"] {
                case "begin": .begin(at: time)
                case "pause": .pause(at: time)
                default: .resume(at: time)
                }
        case "blank":
            guard let media = json["media"]?.string.flatMap(AuthorizationMedia.init) else { return nil }
            action = .blank(media)
        case "stop":
            // A reason of a newer version stops it all the same.
            action = .stop(
                json["reason"]?.string.flatMap(MovieEndReason.init) ?? .stopped, at: json["at"]?.integer)
        case "cancel": action = .cancel
        case "input":
            guard let input = Input(json: json) else { return nil }
            action = .input(input)
        case "live":
            guard let photo = LivePhotoOrder(json: json) else { return nil }
            action = .live(photo)
        case "dropLive":
            guard let job = json["job"]?.string else { return nil }
            action = .dropLive(job)
        case "suspend":
            guard let isSuspended = json["suspended"]?.bool else { return nil }
            action = .suspend(isSuspended)
        default: return nil
        }
        self.number = number
        link = json["link"]?.integer.flatMap { UInt64(exactly: $0) }
    }
}

/// What a recorder tells the coordinator, over `internal/recorders.sock`: one JSON frame.
public enum RecorderReport: Hashable, Sendable {
    /// First on each connection: which movie this is, and the connection's number, which orders name. A new coordinator
    /// learns from it all that there is to know.
    case hello(movie: String, pid: Int32, link: UInt64, request: MovieRequest, progress: MovieProgress)
    /// How far it is, whole: at most ten times a second.
    case state(MovieProgress)
    case event(MovieEvent)
    /// The answer to an order; that to ``RecorderOrder/Action/live(_:)`` may have a file as a further frame of its
    /// message.
    case reply(order: UInt64, Result<JSONValue, BusError>)
    /// Once a second.
    case alive

    public var json: JSONValue {
        switch self {
        case .hello(let movie, let pid, let link, let request, let progress):
            [
                "report": "hello", "movie": .string(movie), "pid": JSONValue(pid), "link": JSONValue(link),
                "request": request.json, "state": progress.json,
            ]
        case .state(let progress): ["report": "state", "state": progress.json]
        case .event(let event): ["report": "event", "event": .string(event.name), "members": .object(event.members)]
        case .reply(let order, .success(let result)):
            ["report": "reply", "order": JSONValue(order), "result": result]
        case .reply(let order, .failure(let error)):
            ["report": "reply", "order": JSONValue(order), "error": error.json]
        case .alive: ["report": "alive"]
        }
    }

    /// nil when it is no report that this version knows.
    public init?(json: JSONValue) {
        switch json["report"]?.string {
        case "hello":
            guard let movie = json["movie"]?.string,
                let pid = json["pid"]?.integer.flatMap({ Int32(exactly: $0) }),
                let request = json["request"].flatMap({ try? MovieRequest(json: $0) }),
                let progress = json["state"].flatMap(MovieProgress.init(json:))
            else { return nil }
            self = .hello(
                movie: movie, pid: pid, link: json["link"]?.integer.flatMap { UInt64(exactly: $0) } ?? 0,
                request: request, progress: progress)
        case "state":
            guard let progress = json["state"].flatMap(MovieProgress.init(json:)) else { return nil }
            self = .state(progress)
        case "event":
            guard let name = json["event"]?.string,
                let event = MovieEvent(name: name, members: json["members"] ?? [:])
            else { return nil }
            self = .event(event)
        case "reply":
            guard let order = json["order"]?.integer.flatMap({ UInt64(exactly: $0) }) else { return nil }
            if let error = json["error"] {
                self = .reply(order: order, .failure(BusError(wire: error)))
            } else {
                self = .reply(order: order, .success(json["result"] ?? .null))
            }
        case "alive": self = .alive
        default: return nil
        }
    }
}

extension RecorderReport {
    /// Whether a file may go with it, as a further frame of its message.
    public var mayHaveFile: Bool { if case .reply(_, .success) = self { true } else { false } }
}
