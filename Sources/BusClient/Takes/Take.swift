public import JSON

/// A take, from `state/take/<id>/`: segments that are recorded one after the other and joined at the end.
public struct TakeState: Hashable, Sendable {
    /// The value itself, with all its members.
    public let json: JSONValue
    /// The change that was answered with it is on the bus's disk; false: it ends with the bus.
    public let isKept: Bool

    public init(_ json: JSONValue, isKept: Bool = true) {
        self.json = json
        self.isKept = isKept
    }

    public var id: String { json["id"]?.string ?? "" }
    /// What its files in the library are called, without an ending.
    public var name: String { json["name"]?.string ?? "" }
    /// `paused`, `recording`, `ending` (a segment's file is being closed) or `finishing` (the segments are being
    /// joined).
    public var state: String { json["state"]?.string ?? "" }
    /// The camera's id; nil: a session's before its first segment.
    public var device: String? { json["device"]?.string }
    public var microphone: String? { json["microphone"]?.string }
    public var session: String? { json["session"]?.string }
    /// The segment that is recorded, which is a movie of that id; nil: none is.
    public var segment: String? { json["segment"]?.string }
    /// Those that are finished, in their order.
    public var segments: [TakeSegment] { json["segments"]?.array?.map(TakeSegment.init) ?? [] }
    /// Of the segment that is recorded.
    public var duration: Duration { MovieState.duration(json["duration"]) }
    /// Of all segments together.
    public var total: Duration { MovieState.duration(json["total"]) }
    /// How much can be recorded still; nil: as much as you like.
    public var remaining: Duration? { Self.duration(json["remaining"]) }
    /// What all together are to be at least; nil: as short as you like.
    public var minDuration: Duration? { Self.duration(json["minDuration"]) }
    /// What all together are at most; nil: as long as you like.
    public var maxDuration: Duration? { Self.duration(json["maxDuration"]) }

    static func duration(_ milliseconds: JSONValue?) -> Duration? {
        milliseconds?.double == nil ? nil : MovieState.duration(milliseconds)
    }
}

/// A finished segment of a take, in its own file.
public struct TakeSegment: Hashable, Sendable {
    /// The id of the movie that it is.
    public let id: String
    /// As the bus sees it.
    public let path: String
    public let duration: Duration

    init(_ json: JSONValue) {
        id = json["id"]?.string ?? ""
        path = json["path"]?.string ?? ""
        duration = MovieState.duration(json["duration"])
    }
}

/// How a segment ended, and the length of its take.
public struct SegmentEnding: Hashable, Sendable {
    /// The segment's id.
    public let segment: String
    public let path: String
    /// As a movie's: `stopped`, `maximumDurationReached`, `deviceLost`, …
    public let reason: String
    public let isSuccess: Bool
    /// A sentence on what went wrong.
    public let message: String?
    /// There is a file that plays; what is not kept is no segment of the take.
    public let isKept: Bool
    public let duration: Duration
    /// Of all segments together.
    public let total: Duration
    /// How much can be recorded still; nil: as much as you like.
    public let remaining: Duration?
    /// As it was told: the answer, or the event `didEndSegment`.
    public let json: JSONValue

    public init(_ json: JSONValue) throws(ClientError) {
        guard let segment = json["segment"]?.string, let reason = json["reason"]?.string else {
            throw .unreadable("The answer of the bus is invalid: it does not say how the segment ended.")
        }
        self.segment = segment
        self.reason = reason
        path = json["path"]?.string ?? ""
        isSuccess = json["success"]?.bool ?? false
        message = json["error"]?["message"]?.string
        isKept = json["kept"]?.bool ?? true
        duration = MovieState.duration(json["duration"])
        total = MovieState.duration(json["total"])
        remaining = TakeState.duration(json["remaining"])
        self.json = json
    }
}

/// The movie that was joined from a take's segments.
public struct FinishedTake: Hashable, Sendable {
    /// The take's id, which is that of its entry in the capture library, too.
    public let id: String
    /// As the bus sees it.
    public let path: String
    /// Its first frame as JPEG; nil: it is sound alone.
    public let cover: String?
    public let duration: Duration
    /// Bytes.
    public let size: Int64
    /// Picture and sound were encoded anew; false: they are as they were recorded.
    public let isEncoded: Bool
    /// The answer, with all its members.
    public let json: JSONValue

    init(_ json: JSONValue) throws(ClientError) {
        guard let id = json["take"]?.string, let path = json["path"]?.string else {
            throw .unreadable("The answer of the bus is invalid: it contains no finished take.")
        }
        self.id = id
        self.path = path
        cover = json["cover"]?.string
        duration = MovieState.duration(json["duration"])
        size = json["size"]?.integer ?? 0
        isEncoded = json["encoded"]?.bool ?? false
        self.json = json
    }
}
