public import BusProtocol
public import JSON

/// Why a movie ended.
public enum MovieEndReason: String, Hashable, Sendable, CaseIterable {
    case stopped, maximumDurationReached, maximumFileSizeReached, minimumFreeDiskSpaceReached, libraryQuotaReached
    case ownerGone, shuttingDown
    case diskFull, deviceLost, formatChanged, unauthorized, recorderCrashed, writeFailed

    /// The movie is what was asked for, if there is no error.
    public var isSuccess: Bool {
        switch self {
        case .stopped, .maximumDurationReached, .maximumFileSizeReached, .minimumFreeDiskSpaceReached,
            .libraryQuotaReached, .ownerGone, .shuttingDown, .formatChanged:
            true
        case .diskFull, .deviceLost, .unauthorized, .recorderCrashed, .writeFailed: false
        }
    }
}

/// How far a movie is: what of its state its recorder alone knows.
public struct MovieProgress: Hashable, Sendable {
    public enum Stage: String, Hashable, Sendable, CaseIterable {
        /// No frame is in it yet.
        case starting
        case recording, paused
        /// What is left is being written.
        case finishing
    }

    public var stage: Stage
    /// How picture and sound are stored, complete: {codec, width, height, bitRate?, keyFrameInterval?, preset?,
    /// frameRate} and {codec, rate, channels, bitRate}. null: there is none, or it isn't known yet.
    public var video: JSONValue = .null
    public var audio: JSONValue = .null
    /// Milliseconds; also those that are on the disk. Of a recorder of live photos: how much of the past is held that a
    /// movie could begin with now, at most ``LivePhotoWindow/reach``; it is told at once when it comes to that, or
    /// falls.
    public var recordedDuration: Int64 = 0
    public var syncedDuration: Int64 = 0
    /// Bytes; also those that are on the disk.
    public var recordedFileSize: Int64 = 0
    public var syncedFileSize: Int64 = 0
    public var frames: UInt64 = 0
    /// Frames that are missing in it, wherever they were lost.
    public var dropped: UInt64 = 0
    /// On the disk.
    public var fragments: UInt64 = 0
    /// From 0 to 1: which part of the time the writer works.
    public var encoderLoad: Double = 0
    /// Its devices deliver, and it could begin: of one that waits for the order to do so.
    public var isReady = false
    /// Milliseconds from the time in ``RecorderOrder/Action/begin(at:)`` to the first frame; nil without one, or
    /// without the other.
    public var startOffset: Double?
    /// Of what is sent to a server: whether that has it, and how often it was connected to again; nil of a file.
    public var connected: Bool?
    public var reconnects: UInt64?
    /// Of the camera's pictures, which the movie scales; nil: it is what it was when the movie began.
    public var source: Dimensions?
    /// What stands as black, or silence, in the movie now.
    public var blank: Set<AuthorizationMedia> = []
    /// Why it has no side-car, or none any more, in a sentence; nil: it has one, or is to have none.
    public var sideCarProblem: String?
    /// Ids of devices that have given something, and give nothing now.
    public var waitingFor: [String] = []
    /// Why the camera does not give it the rendition that it needs: a limit, or too little memory; nil: it does, or
    /// other things keep it from that.
    public var refusal: BusError?

    public init(_ stage: Stage) { self.stage = stage }

    public var json: JSONValue {
        .members([
            "state": .string(stage.rawValue), "video": video, "audio": audio,
            "recordedDuration": .integer(recordedDuration), "syncedDuration": .integer(syncedDuration),
            "recordedFileSize": .integer(recordedFileSize), "syncedFileSize": .integer(syncedFileSize),
            "frames": JSONValue(frames), "dropped": JSONValue(dropped), "fragments": JSONValue(fragments),
            "encoderLoad": .number(encoderLoad), "ready": isReady ? true : nil,
            "startOffset": startOffset.map(JSONValue.number),
            "connected": connected.map(JSONValue.bool), "reconnects": reconnects.map { JSONValue($0) },
            "source": source?.json,
            "blank": blank.isEmpty ? nil : JSONValue(blank.map(\.rawValue).sorted()),
            "sideCarProblem": sideCarProblem.map(JSONValue.string),
            "waitingFor": waitingFor.isEmpty ? nil : JSONValue(waitingFor), "refusal": refusal?.json,
        ])
    }

    /// nil when it is something else.
    public init?(json: JSONValue) {
        func count(_ name: String) -> UInt64? { json[name]?.integer.flatMap { UInt64(exactly: $0) } }
        guard let stage = json["state"]?.string.flatMap(Stage.init), let video = json["video"],
            let audio = json["audio"], let recordedDuration = json["recordedDuration"]?.integer,
            let syncedDuration = json["syncedDuration"]?.integer,
            let recordedFileSize = json["recordedFileSize"]?.integer,
            let syncedFileSize = json["syncedFileSize"]?.integer, let frames = count("frames"),
            let dropped = count("dropped"), let fragments = count("fragments"),
            let encoderLoad = json["encoderLoad"]?.double
        else { return nil }
        self.stage = stage
        self.video = video
        self.audio = audio
        self.recordedDuration = recordedDuration
        self.syncedDuration = syncedDuration
        self.recordedFileSize = recordedFileSize
        self.syncedFileSize = syncedFileSize
        self.frames = frames
        self.dropped = dropped
        self.fragments = fragments
        self.encoderLoad = encoderLoad
        isReady = json["ready"]?.bool ?? false
        startOffset = json["startOffset"]?.double
        connected = json["connected"]?.bool
        reconnects = count("reconnects")
        source = json["source"].flatMap(Dimensions.init(json:))
        blank = Set(json["blank"]?.array?.compactMap { $0.string.flatMap(AuthorizationMedia.init) } ?? [])
        sideCarProblem = json["sideCarProblem"]?.string
        waitingFor = json["waitingFor"]?.array?.compactMap(\.string) ?? []
        refusal = json["refusal"].map { BusError(wire: $0) }
    }
}

/// What became of a movie.
public struct MovieResult: Hashable, Sendable {
    public var reason: MovieEndReason
    /// What went wrong; nil: nothing did.
    public var error: BusError?
    /// Empty: it was sent to a server.
    public var path: String
    /// Milliseconds.
    public var duration: Int64
    /// Bytes.
    public var size: Int64
    public var frames: UInt64
    public var dropped: UInt64
    /// There is a file, and it plays.
    public var isKept: Bool
    /// Why it has no side-car, or one that is not whole, in a sentence; nil: nothing is wrong with it.
    public var sideCarProblem: String?
    /// Of ``MovieEndReason/formatChanged``: another file can hold what the devices give now.
    public var canContinue = false

    public init(
        _ reason: MovieEndReason, error: BusError? = nil, path: String, duration: Int64 = 0, size: Int64 = 0,
        frames: UInt64 = 0, dropped: UInt64 = 0, isKept: Bool
    ) {
        self.reason = reason
        self.error = error
        self.path = path
        self.duration = duration
        self.size = size
        self.frames = frames
        self.dropped = dropped
        self.isKept = isKept
    }

    public var isSuccess: Bool { reason.isSuccess && error == nil }

    /// {reason, success, error?, path (null: a server had it), duration, size, frames, dropped, kept, sideCarProblem?,
    /// canContinue?}
    public var members: [String: JSONValue] {
        var members: [String: JSONValue] = [
            "reason": .string(reason.rawValue), "success": .bool(isSuccess),
            "path": path.isEmpty ? .null : .string(path),
            "duration": .integer(duration), "size": .integer(size), "frames": JSONValue(frames),
            "dropped": JSONValue(dropped), "kept": .bool(isKept),
        ]
        if let error { members["error"] = error.json }
        if let sideCarProblem { members["sideCarProblem"] = .string(sideCarProblem) }
        if canContinue { members["canContinue"] = true }
        return members
    }

    /// nil when it is something else.
    public init?(json: JSONValue) {
        guard let reason = json["reason"]?.string.flatMap(MovieEndReason.init),
            let duration = json["duration"]?.integer, let size = json["size"]?.integer,
            let frames = json["frames"]?.integer.flatMap({ UInt64(exactly: $0) }),
            let dropped = json["dropped"]?.integer.flatMap({ UInt64(exactly: $0) }), let isKept = json["kept"]?.bool
        else { return nil }
        self.init(
            reason, error: json["error"].map { BusError(wire: $0) }, path: json["path"]?.string ?? "",
            duration: duration, size: size, frames: frames, dropped: dropped, isKept: isKept)
        sideCarProblem = json["sideCarProblem"]?.string
        canContinue = json["canContinue"]?.bool ?? false
    }
}

/// What happens to a movie, as `event/movie/<id>/` tells it.
public enum MovieEvent: Hashable, Sendable {
    /// The first frame, or the first sound, is in it.
    case didStartRecording
    case didPauseRecording
    case didResumeRecording
    /// The recorder couldn't keep up: so many frames more are missing. At most once a second.
    case didDropFrames(UInt64)
    /// The camera's pictures have another size from now on, and are scaled.
    case didChangeSize(Dimensions)
    /// The server that it is sent to has gone; why. It is looked for until the movie ends.
    case didDisconnect(String)
    /// The server is back.
    case didReconnect
    /// The last.
    case didFinishRecording(MovieResult)

    public var name: String {
        switch self {
        case .didStartRecording: "didStartRecording"
        case .didPauseRecording: "didPauseRecording"
        case .didResumeRecording: "didResumeRecording"
        case .didDropFrames: "didDropFrames"
        case .didChangeSize: "didChangeSize"
        case .didDisconnect: "didDisconnect"
        case .didReconnect: "didReconnect"
        case .didFinishRecording: "didFinishRecording"
        }
    }

    /// Those beside its name.
    public var members: [String: JSONValue] {
        switch self {
        case .didStartRecording, .didPauseRecording, .didResumeRecording, .didReconnect: [:]
        case .didChangeSize(let size): ["source": size.json]
        case .didDisconnect(let why): ["message": .string(why)]
        case .didDropFrames(let count): ["frames": JSONValue(count)]
        case .didFinishRecording(let result): result.members
        }
    }

    /// nil when it is none that this version knows.
    public init?(name: String, members: JSONValue) {
        switch name {
        case "didStartRecording": self = .didStartRecording
        case "didPauseRecording": self = .didPauseRecording
        case "didResumeRecording": self = .didResumeRecording
        case "didDropFrames":
            guard let count = members["frames"]?.integer.flatMap({ UInt64(exactly: $0) }) else { return nil }
            self = .didDropFrames(count)
        case "didChangeSize":
            guard let size = members["source"].flatMap(Dimensions.init(json:)) else { return nil }
            self = .didChangeSize(size)
        case "didDisconnect": self = .didDisconnect(members["message"]?.string ?? "")
        case "didReconnect": self = .didReconnect
        case "didFinishRecording":
            guard let result = MovieResult(json: members) else { return nil }
            self = .didFinishRecording(result)
        default: return nil
        }
    }
}
