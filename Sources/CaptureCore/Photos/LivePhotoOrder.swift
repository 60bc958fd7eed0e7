public import BusProtocol
public import JSON

/// What a recorder of live photos is to make a movie of.
public struct LivePhotoOrder: Hashable, Sendable {
    /// The photo's id: no two of the movies that are being made have the same.
    public var job: String
    /// When the photo's exposure began: monotonic nanoseconds.
    public var moment: Instant
    /// By which the movie's file is called, too.
    public var identifier: LivePhotoIdentifier
    /// The file's bytes go with the answer.
    public var attaches: Bool

    public init(job: String, moment: Instant, identifier: LivePhotoIdentifier, attaches: Bool = false) {
        self.job = job
        self.moment = moment
        self.identifier = identifier
        self.attaches = attaches
    }

    var members: [String: JSONValue] {
        [
            "job": .string(job), "moment": .integer(moment), "identifier": .string(identifier.digits),
            "attaches": .bool(attaches),
        ]
    }

    // nil when something is missing.
    init?(json: JSONValue) {
        guard let job = json["job"]?.string, let moment = json["moment"]?.integer,
            let identifier = json["identifier"]?.string.flatMap(LivePhotoIdentifier.init(digits:))
        else { return nil }
        self.init(job: job, moment: moment, identifier: identifier, attaches: json["attaches"]?.bool ?? false)
    }
}

/// What a recorder of live photos answers when a movie is made.
public struct LivePhotoAnswer: Hashable, Sendable {
    public var movie: LivePhotoMovie
    /// Where the file lies until it is dropped (``RecorderOrder/Action/dropLive(_:)``), or the recorder ends: absolute.
    public var file: String

    public init(_ movie: LivePhotoMovie, file: String) {
        self.movie = movie
        self.file = file
    }

    public var json: JSONValue { ["movie": movie.json, "file": .string(file)] }

    /// nil when it is something else.
    public init?(json: JSONValue) {
        guard let file = json["file"]?.string, file.hasPrefix("/"),
            let movie = json["movie"].flatMap({ try? LivePhotoMovie(json: $0) })
        else { return nil }
        self.init(movie, file: file)
    }
}

extension BusError {
    /// A live photo has no movie: `interrupted` {interruption: "livePhotoMovie"}.
    ///
    /// - Parameter why: a clause: "its recorder has ended".
    public static func livePhotoMovie(_ why: String) -> BusError {
        BusError(
            .interrupted, "The live photo has no movie: \(why). Take it again.",
            ["interruption": "livePhotoMovie"])
    }

    /// A live photo has no movie, because its camera does not give the pictures for it: as that error, for this photo.
    public static func livePhotoMovie(refused error: BusError) -> BusError {
        BusError(error.reason, "The live photo has no movie: \(error.message)", error.data)
    }
}
