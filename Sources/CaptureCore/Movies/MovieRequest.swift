public import BusProtocol
public import JSON

/// A movie that is to be recorded, whole: all that its recorder is told, and all that a coordinator that comes later
/// learns of it.
public struct MovieRequest: Hashable, Sendable {
    /// A camera or a microphone.
    public struct Device: Hashable, Sendable {
        /// Its id on the bus, by which its sockets are named.
        public var id: String
        /// Which device that has to be.
        public var uniqueID: String
        /// For people, in the capture library.
        public var name: String

        public init(id: String, uniqueID: String, name: String) {
            self.id = id
            self.uniqueID = uniqueID
            self.name = name
        }
    }

    /// How the picture is stored.
    public struct Video: Hashable, Sendable {
        public enum Codec: String, Hashable, Sendable, CaseIterable {
            /// As ``passThrough`` where the camera gives JPEG or H.264, else as ``h264``.
            case automatic
            /// As it comes from the camera.
            case passThrough
            /// Encoded here.
            case h264
            /// Pixels.
            case raw
            /// Encoded here without loss.
            case ffv1
        }

        public var codec: Codec
        /// Pixels; nil: the camera's.
        public var width: Int?
        public var height: Int?
        /// Bits a second; nil: what goes with the size and the frame rate.
        public var bitRate: Int?
        /// Frames; nil: of two seconds.
        public var keyFrameInterval: Int?
        /// libx264's word; nil: the recorder's choice.
        public var preset: String?
        /// What is encoded keeps its shape in that width and height, with black borders, and is made larger where the
        /// camera's picture is smaller: so that all segments of a take are alike.
        public var isFitted: Bool

        public init(
            codec: Codec = .automatic, width: Int? = nil, height: Int? = nil, bitRate: Int? = nil,
            keyFrameInterval: Int? = nil, preset: String? = nil, isFitted: Bool = false
        ) {
            self.codec = codec
            self.width = width
            self.height = height
            self.bitRate = bitRate
            self.keyFrameInterval = keyFrameInterval
            self.preset = preset
            self.isFitted = isFitted
        }
    }

    /// How the sound is stored.
    public struct Audio: Hashable, Sendable {
        public enum Codec: String, Hashable, Sendable, CaseIterable {
            case aac, opus, pcm
        }

        /// nil: what goes with the file type.
        public var codec: Codec?
        /// Samples a second; nil: the microphone's, as far as the codec has it.
        public var rate: Int?
        /// nil: the microphone's.
        public var channels: Int?
        /// Bits a second; nil: what goes with the rate and the channels.
        public var bitRate: Int?

        public init(codec: Codec? = nil, rate: Int? = nil, channels: Int? = nil, bitRate: Int? = nil) {
            self.codec = codec
            self.rate = rate
            self.channels = channels
            self.bitRate = bitRate
        }
    }

    /// Where the movie ends by itself; nil: nowhere.
    public struct Limits: Hashable, Sendable {
        /// Milliseconds.
        public var maxDuration: Int64?
        /// Bytes.
        public var maxFileSize: Int64?
        /// Bytes.
        public var minFreeDiskSpace: Int64?

        public init(maxDuration: Int64? = nil, maxFileSize: Int64? = nil, minFreeDiskSpace: Int64? = nil) {
            self.maxDuration = maxDuration
            self.maxFileSize = maxFileSize
            self.minFreeDiskSpace = minFreeDiskSpace
        }
    }

    /// That movies of live photos are to be made, of the seconds around each: what comes is held, and written when a
    /// photo is taken.
    public struct Live: Hashable, Sendable {
        /// As in ``RecorderOrder/Action/suspend(_:)``, from the beginning.
        public var isSuspended: Bool
        /// Movies begin when the camera came to rest, and end when it is moved.
        public var isAutoTrimming: Bool

        public init(isSuspended: Bool = false, isAutoTrimming: Bool = true) {
            self.isSuspended = isSuspended
            self.isAutoTrimming = isAutoTrimming
        }
    }

    /// The movie's id.
    public var movie: String
    /// The file, absolute; there must be none. Empty with a ``url``, and of ``live`` photos.
    public var path: String
    /// The folder by which the file is allowed, on the way from which no link may be followed; nil: it is allowed
    /// wherever it is.
    public var root: String?
    /// The server that the movie is sent to; nil: it is written into the file.
    public var url: StreamURL?
    /// The folder of the capture library; nil: the movie is entered nowhere.
    public var library: String?
    /// Whether the bus's group may read what is made in the library.
    public var isLibraryShared = false
    public var camera: Device?
    public var microphone: Device?
    /// What stands for the camera's picture, or the microphone's sound, where the owner may not have them.
    public var blank = BlankMedia()
    public var fileType: MovieFileType
    public var video: Video
    public var audio: Audio
    /// Milliseconds: ``MovieRequest/usualFragmentInterval`` unless somebody says otherwise.
    public var fragmentInterval: Int64
    /// Frames a second, when they are to be equally far apart; nil: the times are the true ones.
    public var frameRate: Double?
    public var limits: Limits
    /// It begins when ``RecorderOrder/Action/begin(at:)`` says; false: with the first frame that comes.
    public var beginsOnOrder: Bool
    /// Of picture and sound: the first sound is the movie's zero, and the picture before it is left out; a microphone
    /// that gives none ends the movie sooner than one that has gone. false: the first picture that has its sound is.
    public var startsWithSound: Bool
    /// Degrees clockwise that the picture has to be turned to be upright, and whether it is to be mirrored; nil: as the
    /// camera has it.
    public var orientation: Int?
    public var mirrored: Bool?
    /// What belongs together: the parts of one movie, or the movies of one rig.
    public var take: String?
    /// From 1.
    public var part: Int
    /// The movie in whose place this one continues; nil: it does in none's.
    public var follows: String?
    public var session: String?
    public var rig: String?
    /// For whom it is.
    public var owner: LockHolder
    /// nil: one movie is recorded, from now on.
    public var live: Live?
    /// What the coordinator wants to find again after its own end; the recorder only gives it back.
    public var note: JSONValue

    /// AVFoundation's, milliseconds.
    public static let usualFragmentInterval: Int64 = 10_000

    public init(
        movie: String, path: String, url: StreamURL? = nil, library: String? = nil, camera: Device?,
        microphone: Device? = nil,
        fileType: MovieFileType, video: Video = Video(), audio: Audio = Audio(),
        fragmentInterval: Int64 = usualFragmentInterval, frameRate: Double? = nil, limits: Limits = Limits(),
        beginsOnOrder: Bool = false, startsWithSound: Bool = false, orientation: Int? = nil, mirrored: Bool? = nil,
        take: String? = nil, part: Int = 1, session: String? = nil, rig: String? = nil, owner: LockHolder,
        note: JSONValue = .null
    ) {
        self.movie = movie
        self.path = path
        self.url = url
        self.library = library
        self.camera = camera
        self.microphone = microphone
        self.fileType = fileType
        self.video = video
        self.audio = audio
        self.fragmentInterval = fragmentInterval
        self.frameRate = frameRate
        self.limits = limits
        self.beginsOnOrder = beginsOnOrder
        self.startsWithSound = startsWithSound
        self.orientation = orientation
        self.mirrored = mirrored
        self.take = take
        self.part = part
        self.session = session
        self.rig = rig
        self.owner = owner
        self.note = note
    }
}

/// A movie's kind of file (`AVFileType`), by its usual ending.
public enum MovieFileType: String, Hashable, Sendable, CaseIterable {
    case mp4, mov
    /// Matroska.
    case mkv

    /// Files say how pictures have to be turned when they are shown: by the matrix of a track.
    public var tellsTurns: Bool { self != .mkv }
}

// MARK: In JSON

extension MovieRequest {
    public var json: JSONValue {
        .members([
            "movie": .string(movie), "path": .string(path), "url": url.map { .string($0.text) },
            "root": root.map(JSONValue.string), "library": library.map(JSONValue.string),
            "shared": isLibraryShared ? .bool(true) : nil,
            "camera": camera?.json, "microphone": microphone?.json,
            "blank": blank.isNone ? nil : blank.json, "fileType": .string(fileType.rawValue),
            "video": video.json, "audio": audio.json, "fragmentInterval": .integer(fragmentInterval),
            "frameRate": frameRate.map(JSONValue.number), "limits": limits.json,
            "beginsOnOrder": beginsOnOrder ? .bool(true) : nil, "startsWithSound": startsWithSound ? .bool(true) : nil,
            "orientation": orientation.map { JSONValue($0) },
            "mirrored": mirrored.map(JSONValue.bool), "take": take.map(JSONValue.string), "part": JSONValue(part),
            "follows": follows.map(JSONValue.string),
            "session": session.map(JSONValue.string), "rig": rig.map(JSONValue.string), "owner": owner.keptJSON,
            "live": live?.json,
            "note": note.isNull ? nil : note,
        ])
    }

    /// Reads what ``json`` writes. What it doesn't know is left out: it comes from a newer version.
    ///
    /// - Throws: `invalidParams` with the member that is missing or wrong.
    public init(json: JSONValue) throws(BusError) {
        var reader = try MemberReader(json, path: "")
        movie = try reader.string("movie")
        path = try reader.string("path")
        url = try reader.text("url").map { (text) throws(BusError) in
            guard let url = StreamURL(text) else { throw .invalidParams("url", "is not the URL of a media server") }
            return url
        }
        live = try reader.known("live").map { (value) throws(BusError) in try Live(json: value, path: "live") }
        guard url != nil || live != nil ? path.isEmpty : path.hasPrefix("/") && !path.utf8.contains(0) else {
            throw .invalidParams("path", "must be absolute")
        }
        root = try reader.text("root")
        if let root, !MoviePlace.contains(root, path) {
            throw .invalidParams("root", "must be a parent folder of the path")
        }
        library = try reader.text("library")
        isLibraryShared = try reader.flag("shared") ?? false
        camera = try reader.known("camera").map { (value) throws(BusError) in
            try Device(json: value, path: "camera")
        }
        microphone = try reader.known("microphone").map { (value) throws(BusError) in
            try Device(json: value, path: "microphone")
        }
        blank = try BlankMedia(json: reader.known("blank") ?? [:], path: "blank")
        guard camera != nil || microphone != nil else {
            throw .invalidParams("camera", "is missing; give a camera, a microphone or both")
        }
        fileType = try reader.word("fileType")
        if live != nil {
            guard camera != nil else { throw .invalidParams("camera", "is missing; live photos need a camera") }
            guard url == nil, fileType == .mov else { throw .invalidParams("live", "must be a MOV file") }
        }
        video = try Video(json: reader.known("video") ?? [:], path: "video")
        audio = try Audio(json: reader.known("audio") ?? [:], path: "audio")
        fragmentInterval =
            try reader.number("fragmentInterval", in: 1...86_400_000) ?? Self.usualFragmentInterval
        frameRate = reader.known("frameRate")?.double
        if let frameRate, !(frameRate > 0 && frameRate <= 1000) {
            throw .invalidParams("frameRate", "must be above 0 and at most 1000")
        }
        limits = try Limits(json: reader.known("limits") ?? [:], path: "limits")
        beginsOnOrder = reader.known("beginsOnOrder")?.bool ?? false
        startsWithSound = reader.known("startsWithSound")?.bool ?? false
        orientation = try reader.number("orientation", in: 0...270).map { Int($0) }
        guard (orientation ?? 0) % 90 == 0 else { throw .invalidParams("orientation", "must be a quarter turn") }
        mirrored = reader.known("mirrored")?.bool
        take = try reader.text("take")
        part = Int(try reader.number("part", in: 1...1_000_000) ?? 1)
        follows = try reader.text("follows")
        session = try reader.text("session")
        rig = try reader.text("rig")
        guard let owner = LockHolder(keptJSON: try reader.required("owner")) else {
            throw .invalidParams("owner", "is not a process id")
        }
        self.owner = owner
        note = reader.value("note") ?? .null
    }
}

extension MovieRequest.Device {
    public var json: JSONValue {
        .members([
            "device": .string(id), "uniqueID": .string(uniqueID), "name": .string(name),
        ])
    }

    init(json: JSONValue, path: String) throws(BusError) {
        var reader = try MemberReader(json, path: path)
        id = try reader.string("device")
        guard DeviceID.isValid(id) else { throw .invalidParams(reader.path(of: "device"), "is not a device id") }
        uniqueID = try reader.string("uniqueID")
        name = reader.known("name")?.string ?? id
    }
}

extension MovieRequest.Video {
    public var json: JSONValue {
        .members([
            "codec": .string(codec.rawValue), "width": width.map { JSONValue($0) },
            "height": height.map { JSONValue($0) }, "bitRate": bitRate.map { JSONValue($0) },
            "keyFrameInterval": keyFrameInterval.map { JSONValue($0) }, "preset": preset.map(JSONValue.string),
            "fitted": isFitted ? .bool(true) : nil,
        ])
    }

    init(json: JSONValue, path: String) throws(BusError) {
        var reader = try MemberReader(json, path: path)
        codec = json["codec"] == nil ? .automatic : try reader.word("codec")
        width = try reader.number("width", in: 2...16384).map { Int($0) }
        height = try reader.number("height", in: 2...16384).map { Int($0) }
        bitRate = try reader.number("bitRate", in: 1000...1_000_000_000).map { Int($0) }
        keyFrameInterval = try reader.number("keyFrameInterval", in: 1...100_000).map { Int($0) }
        preset = reader.known("preset")?.string
        isFitted = reader.known("fitted")?.bool ?? false
    }
}

extension MovieRequest.Audio {
    public var json: JSONValue {
        .members([
            "codec": codec.map { .string($0.rawValue) }, "rate": rate.map { JSONValue($0) },
            "channels": channels.map { JSONValue($0) }, "bitRate": bitRate.map { JSONValue($0) },
        ])
    }

    init(json: JSONValue, path: String) throws(BusError) {
        var reader = try MemberReader(json, path: path)
        codec = reader.known("codec") == nil ? nil : try reader.word("codec")
        rate = try reader.number("rate", in: 4000...384_000).map { Int($0) }
        channels = try reader.number("channels", in: 1...8).map { Int($0) }
        bitRate = try reader.number("bitRate", in: 1000...100_000_000).map { Int($0) }
    }
}

extension MovieRequest.Live {
    public var json: JSONValue { ["suspended": .bool(isSuspended), "autoTrimming": .bool(isAutoTrimming)] }

    init(json: JSONValue, path: String) throws(BusError) {
        var reader = try MemberReader(json, path: path)
        isSuspended = try reader.flag("suspended") ?? false
        isAutoTrimming = try reader.flag("autoTrimming") ?? true
    }
}

extension MovieRequest.Limits {
    public var json: JSONValue {
        .members([
            "maxDuration": maxDuration.map(JSONValue.integer), "maxFileSize": maxFileSize.map(JSONValue.integer),
            "minFreeDiskSpace": minFreeDiskSpace.map(JSONValue.integer),
        ])
    }

    init(json: JSONValue, path: String) throws(BusError) {
        var reader = try MemberReader(json, path: path)
        // A thousand years, so that it can be told in nanoseconds.
        maxDuration = try reader.number("maxDuration", in: 1...9_000_000_000_000)
        maxFileSize = try reader.number("maxFileSize", in: 1 ... .max)
        minFreeDiskSpace = try reader.number("minFreeDiskSpace", in: 0 ... .max)
    }
}
