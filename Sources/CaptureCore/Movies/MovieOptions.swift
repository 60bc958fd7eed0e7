public import BusProtocol
public import JSON

/// How a client wants a movie to be recorded: the params of `movie.start` that are the same for one movie and for those
/// of a rig.
public struct MovieOptions: Hashable, Sendable {
    public var video: MovieRequest.Video
    public var audio: MovieRequest.Audio
    /// Milliseconds.
    public var fragmentInterval: Int64
    /// Frames a second, equally far apart; nil: each has its own time.
    public var frameRate: Double?
    private static let frameRates = 0.01...1000.0
    public var limits: MovieRequest.Limits
    /// What it belongs to; nil: something new.
    public var take: String?
    /// A recorder that dies is followed by another.
    public var continuesAfterCrash: Bool
    /// It outlives its process.
    public var isDetached: Bool
    /// nil: as the session has it, else as it comes.
    public var orientation: CaptureOrientation?
    public var isMirrored: Bool?

    /// Reads params that have the shape that the method table says.
    ///
    /// - Parameters:
    ///   - hasSound: there is a microphone.
    ///   - minFreeDiskSpace: bytes that the client can only raise; nil: there is no disk.
    /// - Throws: `invalidParams` for what contradicts itself, and for what such a file can't hold.
    public init(
        _ params: JSONValue, fileType: MovieFileType, hasSound: Bool, minFreeDiskSpace: Int64?
    ) throws(BusError) {
        let codec = params["codec"]?.string.flatMap(MovieRequest.Video.Codec.init)
        video = MovieRequest.Video(codec: codec ?? .automatic)
        audio = MovieRequest.Audio()
        if let settings = params["settings"] {
            let wished = settings.isNull ? JSONValue.null : settings["video"]
            if let wished { video = try Self.video(wished, codec) }
            if let wished = settings.isNull ? JSONValue.null : settings["audio"], hasSound || !wished.isNull {
                audio = Self.audio(wished)
                try Self.check(audio, fileType, path: settings.isNull ? "settings" : "settings.audio")
            }
        }
        if video.codec == .raw || video.codec == .ffv1, fileType == .mp4 {
            let what = video.codec == .raw ? "raw pixels" : "FFV1"
            throw .invalidParams("codec", "an MP4 file can't hold \(what); use mkv or mov")
        }
        fragmentInterval = Self.milliseconds(params["fragmentInterval"]) ?? MovieRequest.usualFragmentInterval
        frameRate = try params["frameRate"].map { (json) throws(BusError) in
            let rate = try FrameRate(json: json, path: "frameRate").framesPerSecond
            guard Self.frameRates.contains(rate) else {
                throw .invalidParams("frameRate", "must be from 0.01 to 1000 frames per second")
            }
            return rate
        }
        limits = MovieRequest.Limits(
            maxDuration: Self.milliseconds(params["maxDuration"]), maxFileSize: params["maxFileSize"]?.integer,
            minFreeDiskSpace: minFreeDiskSpace.map { max($0, params["minFreeDiskSpace"]?.integer ?? 0) })
        take = params["take"]?.string
        guard take?.utf8.allSatisfy(Self.isOfTake) ?? true else {
            throw .invalidParams("take", "may only have ASCII letters, digits, '-' and '_'")
        }
        continuesAfterCrash = params["continueAfterCrash"]?.bool ?? false
        isDetached = params["detached"]?.bool ?? false
        orientation = params["orientation"]?.string.flatMap(CaptureOrientation.init)
        isMirrored = params["mirrored"]?.bool
    }

    /// What a server is not told, or can't be given.
    ///
    /// - Throws: `invalidParams` with the member.
    public static func checkIsOfStream(_ params: JSONValue, _ scheme: StreamURL.Scheme) throws(BusError) {
        for name in [
            "name", "path", "rig", "fileType", "fragmentInterval", "frameRate", "maxFileSize", "minFreeDiskSpace",
            "continueAfterCrash",
        ] where params[name] != nil {
            throw .invalidParams(
                name,
                name == "rig"
                    ? "records a movie of each device, but a URL takes one "
                        + "movie" : "is for a file, not for a url")
        }
        if let codec = params["codec"]?.string, codec == "raw" || codec == "ffv1" {
            throw .invalidParams("codec", "\(codec) can't be sent to a server; use h264")
        }
        guard let settings = params["settings"] else { return }
        let audio = settings.isNull ? JSONValue.null : settings["audio"]
        guard params["microphone"]?.isNull == false || audio?.isNull == false, let audio else { return }
        let codec = audio["codec"]?.string
        let isRTMP = scheme == .rtmp || scheme == .rtmps
        guard codec == "aac" || codec == "opus" && !isRTMP else {
            throw .invalidParams(
                settings.isNull ? "settings" : "settings.audio", "\(codec ?? "pcm") can't be sent by \(scheme.rawValue)"
            )
        }
    }

    /// null: as it comes.
    private static func video(
        _ json: JSONValue, _ codec: MovieRequest.Video.Codec?
    ) throws(BusError) -> MovieRequest.Video {
        guard !json.isNull else {
            guard codec != .h264 else {
                throw .invalidParams(
                    "codec", "is h264, which is encoded, but settings ask for samples without encoding")
            }
            return MovieRequest.Video(codec: codec ?? .passThrough)
        }
        guard (codec ?? .h264) == .h264 else {
            throw .invalidParams("settings.video", "are for h264 only")
        }
        let (width, height) = (json.count("width"), json.count("height"))
        guard (width ?? 0) % 2 == 0, (height ?? 0) % 2 == 0 else {
            throw .invalidParams("settings.video", "must have an even width and height for h264")
        }
        return MovieRequest.Video(
            codec: .h264, width: width, height: height, bitRate: json.count("bitRate"),
            keyFrameInterval: json.count("keyFrameInterval"), preset: json["preset"]?.string)
    }

    /// null: as it comes.
    private static func audio(_ json: JSONValue) -> MovieRequest.Audio {
        guard !json.isNull else { return MovieRequest.Audio(codec: .pcm) }
        return MovieRequest.Audio(
            codec: json["codec"]?.string.flatMap(MovieRequest.Audio.Codec.init), rate: json.count("rate"),
            channels: json.count("channels"), bitRate: json.count("bitRate"))
    }

    private static func check(
        _ audio: MovieRequest.Audio, _ fileType: MovieFileType, path: String
    ) throws(BusError) {
        switch (audio.codec, fileType) {
        case (.pcm, .mp4):
            throw .invalidParams(path, "an MP4 file can't hold uncompressed sound; use mov or mkv")
        case (.opus, .mov): throw .invalidParams(path, "a QuickTime file can't hold Opus; use mp4 or mkv")
        default: break
        }
    }

    // At least one: so is what is rounded to nothing.
    private static func milliseconds(_ value: JSONValue?) -> Int64? {
        value?.double.flatMap { Int64(exactly: max(1, $0.rounded())) }
    }

    private static func isOfTake(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"): true
        default: false
        }
    }
}

extension JSONValue {
    fileprivate func count(_ name: String) -> Int? { self[name]?.integer.flatMap { Int(exactly: $0) } }
}
