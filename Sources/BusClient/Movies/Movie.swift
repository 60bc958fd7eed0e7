public import JSON

/// A movie that the bus records: its id and the answer to its start.
public struct ClientMovie: Hashable, Sendable {
    public let id: String
    /// Where it is written, as the bus sees it; empty: a server gets it.
    public let path: String
    /// The server that gets it, without a password; nil: it is written into a file.
    public let url: String?
    /// Which file of its take it is, from 1 on: a recorder that died is succeeded by another one's file, where that was
    /// asked for.
    public let part: Int
    /// The answer: {movie, path, part, take, devices, microphone, fileType, video, audio, …}.
    public let json: JSONValue

    /// The ids of what it is of, as they were when it began: a camera, a microphone, or both.
    public var devices: [String] { json["devices"]?.array?.compactMap(\.string) ?? [] }
    /// `video` is black in it, or `audio` silence, as this user may not have it.
    public var blank: [String] { json["blank"]?.array?.compactMap(\.string) ?? [] }
    /// Why it has no side-car, in a sentence; nil: nothing is wrong with it.
    public var sideCarProblem: String? { json["sideCarProblem"]?.string }
    /// The microphone's.
    public var microphone: String? { json["microphone"]?.string }
    /// `mp4`, `mov` or `mkv`; empty: a server gets it.
    public var fileType: String { json["fileType"]?.string ?? "" }
    /// What the movies of a rig, and the files of a recording that outlived its recorder, have in common.
    public var take: String? { json["take"]?.string }

    init(_ json: JSONValue) throws(ClientError) {
        (url, path) = (json["url"]?.string, json["path"]?.string ?? "")
        guard let id = json["movie"]?.string, url != nil || !path.isEmpty else {
            throw .unreadable("The answer of the bus is invalid: it contains no movie.")
        }
        self.id = id
        part = json["part"]?.integer.flatMap { Int(exactly: $0) } ?? 1
        self.json = json
    }
}

/// The progress of a movie, from `state/movie/<id>/`: ten times a second at most.
public struct MovieState: Hashable, Sendable {
    /// The value itself, with all its members.
    public let json: JSONValue

    public init(_ json: JSONValue) { self.json = json }

    public var id: String { json["id"]?.string ?? "" }
    /// Empty: a server gets it.
    public var path: String { json["path"]?.string ?? "" }
    /// The server that gets it, without a password; nil: it is written into a file.
    public var url: String? { json["url"]?.string }
    /// Whether the server is there; nil: it is written into a file.
    public var isConnected: Bool? { json["connected"]?.bool }
    /// How often the server was connected to again.
    public var reconnects: Int64 { json["reconnects"]?.integer ?? 0 }
    /// `starting`, `recording`, `paused`, `finishing` or `finished`.
    public var state: String { json["state"]?.string ?? "" }
    /// From the beginning to the end of the last frame or sound, without pauses.
    public var recordedDuration: Duration { Self.duration(json["recordedDuration"]) }
    /// Bytes, with those that wait for the end of their fragment.
    public var recordedFileSize: Int64 { json["recordedFileSize"]?.integer ?? 0 }
    /// What of it outlives a power cut.
    public var syncedDuration: Duration { Self.duration(json["syncedDuration"]) }
    /// Frames that are in it.
    public var frames: Int64 { json["frames"]?.integer ?? 0 }
    /// Frames that should be: lost before they came to the recorder, or left out since it could not keep up.
    public var dropped: Int64 { json["dropped"]?.integer ?? 0 }
    /// What part of the time the encoder works, from 0 to 1: above it frames are left out.
    public var encoderLoad: Double { json["encoderLoad"]?.double ?? 0 }

    /// What its camera was set to for it; nil: it has none.
    public var isSmoothAutoFocusEnabled: Bool? { json["smoothAutoFocus"]?.bool }
    public var stabilization: String? { json["stabilization"]?.string }
    /// `video` is black in it, or `audio` silence, as its user may not have it.
    public var blank: [String] { json["blank"]?.array?.compactMap(\.string) ?? [] }
    /// Why it has no side-car, or none any more, in a sentence; nil: nothing is wrong with it.
    public var sideCarProblem: String? { json["sideCarProblem"]?.string }
    /// Pixels of the camera's pictures now, which the movie scales; nil: that has not changed since it began.
    public var source: (width: Int, height: Int)? {
        guard let width = json["source"]?["width"]?.integer, let height = json["source"]?["height"]?.integer else {
            return nil
        }
        return (Int(clamping: width), Int(clamping: height))
    }
    /// The movie in whose place it continues; nil: it does in none's.
    public var follows: String? { json["follows"]?.string }
    /// Ids of its devices that have given something and give nothing now: the movie waits for them, and ends when they
    /// stay away.
    public var waitingFor: [String] { json["waitingFor"]?.array?.compactMap(\.string) ?? [] }

    /// How it ended; nil: it has not.
    public var ending: MovieEnding? { json["end"].flatMap { try? MovieEnding($0, of: id) } }

    static func duration(_ milliseconds: JSONValue?) -> Duration {
        .milliseconds(Int64(min(max(milliseconds?.double ?? 0, 0), 1e15)))
    }
}

/// How a movie ended, and its file.
public struct MovieEnding: Hashable, Sendable {
    /// The movie's id.
    public let id: String
    /// `stopped`, `maximumDurationReached`, `diskFull`, `deviceLost`, …
    public let reason: String
    /// The file is what was asked for. If it is not, what was written until then plays all the same, unless ``isKept``
    /// says otherwise.
    public let isSuccess: Bool
    /// A sentence on what went wrong.
    public let message: String?
    /// Empty: a server had it.
    public let path: String
    /// The server that had it, without a password; nil: it was written into a file.
    public let url: String?
    public let duration: Duration
    /// Bytes.
    public let size: Int64
    public let frames: Int64
    public let dropped: Int64
    /// There is a file.
    public let isKept: Bool
    /// The movie that continues the take in another file. There is one if the camera's pictures changed and are stored
    /// unchanged, or if a recorder died and that was asked for. ``Client/stopMovie(_:)`` of this one ends it.
    public let next: String?
    /// Why it has no side-car, or one that is not whole, in a sentence; nil: nothing is wrong with it.
    public var sideCarProblem: String? { json["sideCarProblem"]?.string }
    /// As it was told: the answer, or the event.
    public let json: JSONValue

    init(_ json: JSONValue, of id: String) throws(ClientError) {
        guard let reason = json["reason"]?.string else {
            throw .unreadable("The answer of the bus is invalid: it does not say how the movie \(id) ended.")
        }
        // The one that continues in its place may have been ended for it.
        self.id = json["movie"]?.string ?? id
        self.reason = reason
        isSuccess = json["success"]?.bool ?? false
        message = json["error"]?["message"]?.string
        path = json["path"]?.string ?? ""
        url = json["url"]?.string
        duration = MovieState.duration(json["duration"])
        size = json["size"]?.integer ?? 0
        frames = json["frames"]?.integer ?? 0
        dropped = json["dropped"]?.integer ?? 0
        isKept = json["kept"]?.bool ?? true
        next = json["next"]?.string
        self.json = json
    }
    /// As the capture library tells it.
    init(entry: JSONValue, of id: String) throws(ClientError) {
        let state = entry["state"]?.string
        let reason = entry["reason"]?.string ?? "recorderCrashed"
        var members: [String: JSONValue] = ["movie": .string(id), "reason": .string(reason)]
        for name in ["path", "duration", "size", "frames", "dropped"] { members[name] = entry[name] }
        members["success"] = .bool(state == "finished" && Self.successes.contains(reason))
        members["kept"] = .bool(state == "finished" || state == "recovered")
        if let problem = entry["problem"] { members["error"] = ["reason": .string(reason), "message": problem] }
        try self.init(.object(members), of: id)
    }

    private static let successes: Set = [
        "stopped", "maximumDurationReached", "maximumFileSizeReached", "minimumFreeDiskSpaceReached",
        "libraryQuotaReached", "ownerGone", "shuttingDown",
    ]
}

/// Movies that are stopped, paused and resumed by one request.
public enum MovieGroup: Hashable, Sendable {
    /// Those with that ``ClientMovie/take``.
    case take(String)
    /// Those that were begun of the rig of that name.
    case rig(String)

    var params: JSONValue {
        switch self {
        case .take(let take): ["take": .string(take)]
        case .rig(let rig): ["rig": .string(rig)]
        }
    }
}
