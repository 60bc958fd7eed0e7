public import BusProtocol
public import JSON

/// A photo's kind of file (`AVFileType`).
public enum PhotoFileType: String, Hashable, Sendable, CaseIterable {
    /// JPEG with EXIF.
    case jpeg
    /// The sensor's own pixels (Adobe DNG).
    case dng
    /// Each pixel, without loss, of 16 bits a sample where the camera has more than 8.
    case png, tiff

    /// What its files' names end in, without the dot.
    public var ending: String {
        switch self {
        case .jpeg: "jpg"
        case .dng, .png, .tiff: rawValue
        }
    }

    /// Its media type (RFC 6838).
    public var contentType: String {
        switch self {
        case .jpeg: "image/jpeg"
        case .dng: "image/x-adobe-dng"
        case .png: "image/png"
        case .tiff: "image/tiff"
        }
    }
}

/// Whether there is a flash of light with a photo (`AVCaptureDevice.FlashMode`).
public enum PhotoFlashMode: String, Hashable, Sendable, CaseIterable {
    case off, on
    /// As the scene needs it.
    case auto
}

/// A small picture within a photo's file.
public struct PhotoThumbnail: Hashable, Sendable {
    /// Pixels of its longer side, 16–640.
    public var maximumSide: Int
    /// Of its JPEG, 1–100.
    public var quality: Int

    /// EXIF's usual size.
    public static let usualSide = 160
    public static let usualQuality = 80
    public static let sides: ClosedRange<Int64> = 16...640

    public init(maximumSide: Int = usualSide, quality: Int = usualQuality) {
        self.maximumSide = maximumSide
        self.quality = quality
    }
}

/// Several photos of one scene with an exposure each (`AVCapturePhotoBracketSettings`).
public enum PhotoBracket: Hashable, Sendable {
    /// EV beside what the camera meters.
    case exposureBias([Double])
    /// Nanoseconds.
    case exposureDuration([Int64])

    /// How many may be in one.
    public static let counts = 2...16
    /// What can be said of any camera; what this one takes is in its table.
    public static let biases: ClosedRange<Double> = -20...20
    public static let durations: ClosedRange<Int64> = 1_000...3_600_000_000_000

    public var count: Int {
        switch self {
        case .exposureBias(let steps): steps.count
        case .exposureDuration(let steps): steps.count
        }
    }
}

/// What a client wants of a photo: AVFoundation's `AVCapturePhotoSettings`.
public struct PhotoSettings: Hashable, Sendable {
    /// By which the photo's stages are told; nil: the bus gives one. It is good for one request.
    public var uniqueID: String?
    /// nil: the first that the camera's format allows.
    public var format: PhotoFileType?
    /// A DNG is made of the same frame, too.
    public var withRaw: Bool
    /// Of JPEG, 1–100; nil: as the camera makes it, else ``usualQuality``.
    public var quality: Int?
    public var flash: PhotoFlashMode
    public var redEyeReduction: Bool
    public var stabilization: Bool
    /// At the camera's largest size, while its stream stands still.
    public var highResolution: Bool
    /// At the largest size of the camera with at most that width and height; nil: as it streams.
    public var maxDimensions: Dimensions?
    /// nil: as the session has it, which it always is with ``isLive``, else as the camera sees it.
    public var orientation: CaptureOrientation?
    public var isMirrored: Bool?
    /// The pixels are turned; false: the file says how they are to be turned.
    public var isTurned: Bool
    /// nil: none.
    public var thumbnail: PhotoThumbnail?
    public var bracket: PhotoBracket?
    /// Photos one after the other of each device, 1–100.
    public var burst: Int
    /// Nanoseconds between the photos of a burst; 0: each frame is one.
    public var interval: Int64
    /// Nanoseconds before the request came at which the photo is to have been taken; 0: it is taken when the request
    /// has come.
    public var ago: Int64
    /// With a movie of the seconds around it.
    public var isLive: Bool

    public static let usualQuality = 95
    public static let bursts: ClosedRange<Int64> = 1...100
    /// Nanoseconds from the first photo of a burst to its last.
    public static let longestBurst: Int64 = 60_000_000_000
    /// Milliseconds.
    public static let intervals: ClosedRange<Double> = 0...10_000
    /// Milliseconds.
    public static let pasts: ClosedRange<Double> = 1...Double(PhotoPreRoll.longest)

    public init(
        uniqueID: String? = nil, format: PhotoFileType? = nil, withRaw: Bool = false, quality: Int? = nil,
        flash: PhotoFlashMode = .off, redEyeReduction: Bool = false, stabilization: Bool = false,
        highResolution: Bool = false, maxDimensions: Dimensions? = nil, orientation: CaptureOrientation? = nil,
        isMirrored: Bool? = nil,
        isTurned: Bool = false, thumbnail: PhotoThumbnail? = nil, bracket: PhotoBracket? = nil, burst: Int = 1,
        interval: Int64 = 0, ago: Int64 = 0, isLive: Bool = false
    ) {
        self.uniqueID = uniqueID
        self.format = format
        self.withRaw = withRaw
        self.quality = quality
        self.flash = flash
        self.redEyeReduction = redEyeReduction
        self.stabilization = stabilization
        self.highResolution = highResolution
        self.maxDimensions = maxDimensions
        self.orientation = orientation
        self.isMirrored = isMirrored
        self.isTurned = isTurned
        self.thumbnail = thumbnail
        self.bracket = bracket
        self.burst = burst
        self.interval = interval
        self.ago = ago
        self.isLive = isLive
    }

    /// Frames of each device that become photos.
    public var shotsPerDevice: Int { bracket?.count ?? burst }

    /// Files that each frame becomes.
    public var filesPerShot: Int { withRaw ? 2 : 1 }

    /// Files that come of each device.
    public var filesPerDevice: Int { shotsPerDevice * filesPerShot }

    /// Files of a burst whose shots each have a DNG, too.
    static let mostFiles = 2 * bursts.upperBound

    /// The device has to be set for them, and put back: its lock has to be free, or the client's.
    public var changesDevice: Bool { flash != .off || bracket != nil || changesSize }

    /// It may have another size than the camera's stream, which has that size for the moment then.
    public var changesSize: Bool { highResolution || maxDimensions != nil }

    /// Who sees the camera sees it otherwise while they are taken, in another size or with other exposures: it is no
    /// time for a movie.
    public var changesPicture: Bool { changesSize || bracket != nil }

    /// Whether it can be a `uniqueID`: `[A-Za-z0-9-]{1,64}`.
    public static func isUniqueID(_ text: String) -> Bool { PhotoID.isValid(text) }
}

// MARK: In JSON

extension PhotoSettings {
    /// As `photo.capture` takes them; what is as usual is left out.
    public var json: JSONValue {
        .members([
            "uniqueID": uniqueID.map(JSONValue.string), "format": format.map { .string($0.rawValue) },
            "raw": withRaw ? .bool(true) : nil, "quality": quality.map { JSONValue($0) },
            "flash": flash == .off ? nil : .string(flash.rawValue),
            "redEyeReduction": redEyeReduction ? .bool(true) : nil,
            "stabilization": stabilization ? .bool(true) : nil,
            "highResolution": highResolution ? .bool(true) : nil, "maxPhotoDimensions": maxDimensions?.json,
            "orientation": orientation.map { .string($0.rawValue) }, "mirrored": isMirrored.map(JSONValue.bool),
            "turned": isTurned ? .bool(true) : nil, "thumbnail": thumbnail?.json, "bracket": bracket?.json,
            "burst": burst == 1 ? nil : JSONValue(burst),
            "interval": interval == 0 ? nil : .number(Double(interval) / 1e6),
            "ago": ago == 0 ? nil : .number(Double(ago) / 1e6), "livePhoto": isLive ? .bool(true) : nil,
        ])
    }

    /// Reads the settings of a request, and what ``json`` writes.
    ///
    /// - Parameter path: where they stand, as errors name it.
    /// - Throws: `invalidParams` {path, why} for what is wrong or contradicts itself.
    public init(json: JSONValue, path: String = "settings") throws(BusError) {
        var reader = try MemberReader(json, path: path)
        uniqueID = try reader.text("uniqueID")
        if let uniqueID, !Self.isUniqueID(uniqueID) {
            throw .invalidParams(
                reader.path(of: "uniqueID"), "must have 1 to 64 characters: ASCII letters, digits and '-'")
        }
        format = reader.known("format") == nil ? nil : try reader.word("format")
        withRaw = try reader.flag("raw") ?? false
        quality = try reader.number("quality", in: 1...100).map { Int($0) }
        flash = reader.known("flash") == nil ? .off : try reader.word("flash")
        redEyeReduction = try reader.flag("redEyeReduction") ?? false
        stabilization = try reader.flag("stabilization") ?? false
        highResolution = try reader.flag("highResolution") ?? false
        maxDimensions = try reader.known("maxPhotoDimensions").map { (value) throws(BusError) in
            var inner = try MemberReader(value, path: reader.path(of: "maxPhotoDimensions"))
            let size = try Dimensions(from: &inner)
            try inner.refuseOthers()
            return size
        }
        orientation = reader.known("orientation") == nil ? nil : try reader.word("orientation")
        isMirrored = try reader.flag("mirrored")
        isTurned = try reader.flag("turned") ?? false
        thumbnail = try reader.known("thumbnail").flatMap { (value) throws(BusError) in
            try PhotoThumbnail(json: value, path: reader.path(of: "thumbnail"))
        }
        bracket = try reader.known("bracket").map { (value) throws(BusError) in
            try PhotoBracket(json: value, path: reader.path(of: "bracket"))
        }
        burst = Int(try reader.number("burst", in: Self.bursts) ?? 1)
        interval =
            try reader.known("interval").map { (value) throws(BusError) in
                guard let milliseconds = value.double, Self.intervals.contains(milliseconds) else {
                    throw .invalidParams(
                        reader.path(of: "interval"),
                        "must be a number of milliseconds, at most \(Int(Self.intervals.upperBound))")
                }
                return Int64((milliseconds * 1e6).rounded())
            } ?? 0
        ago =
            try reader.known("ago").map { (value) throws(BusError) in
                guard let milliseconds = value.double, Self.pasts.contains(milliseconds) else {
                    throw .invalidParams(
                        reader.path(of: "ago"),
                        "must be a number of milliseconds, 1 to \(Int(Self.pasts.upperBound))")
                }
                return Int64((milliseconds * 1e6).rounded())
            } ?? 0
        isLive = try reader.flag("livePhoto") ?? false
        try reader.refuseOthers()
        try check(path)
    }

    private func check(_ path: String) throws(BusError) {
        func refusal(_ name: String, _ why: String) -> BusError {
            .invalidParams(path.isEmpty ? name : "\(path).\(name)", why)
        }
        if format == .png || format == .tiff {
            if quality != nil { throw refusal("quality", "is for JPEG only; PNG and TIFF lose nothing") }
            if thumbnail != nil { throw refusal("thumbnail", "is for JPEG and DNG only") }
        }
        if format == .dng {
            if quality != nil { throw refusal("quality", "is for JPEG only; a DNG has the sensor's own pixels") }
            if isTurned { throw refusal("turned", "is for JPEG only; a DNG states its orientation") }
            if withRaw { throw refusal("raw", "adds a DNG to a jpeg, png or tiff; the format dng is one already") }
        }
        if highResolution, maxDimensions != nil {
            throw refusal("maxPhotoDimensions", "can't be combined with highResolution, which is the largest size")
        }
        if bracket != nil, burst > 1 { throw refusal("burst", "can't be combined with bracket") }
        if interval > 0, burst == 1 { throw refusal("interval", "needs a burst of at least 2 photos") }
        guard Int64(burst - 1) * interval <= Self.longestBurst else {
            throw refusal("interval", "is too long: a burst lasts at most \(Self.longestBurst / 1_000_000_000) s")
        }
        try checkPast(refusal)
        try checkLive(refusal)
        if redEyeReduction, flash == .off { throw refusal("redEyeReduction", "needs a flash: set flash to on or auto") }
    }

    // What has been can't be set otherwise any more, and is held as the bus has it.
    private func checkPast(_ refusal: (String, String) -> BusError) throws(BusError) {
        guard ago > 0 else { return }
        let others = [
            ("flash", flash != .off), ("bracket", bracket != nil), ("burst", burst > 1),
            ("highResolution", highResolution), ("stabilization", stabilization), ("raw", withRaw),
            ("maxPhotoDimensions", maxDimensions != nil),
        ]
        if let (name, _) = others.first(where: \.1) {
            throw refusal(name, "can't be combined with a past moment (ago)")
        }
        if format ?? .jpeg != .jpeg {
            throw refusal("format", "must be jpeg for a past moment (ago): only JPEG is kept")
        }
    }

    private func checkLive(_ refusal: (String, String) -> BusError) throws(BusError) {
        guard isLive else { return }
        let others = [
            ("bracket", bracket != nil), ("burst", burst > 1), ("ago", ago > 0), ("highResolution", highResolution),
            ("raw", withRaw), ("maxPhotoDimensions", maxDimensions != nil),
        ]
        if let (name, _) = others.first(where: \.1) {
            throw refusal(name, "can't be combined with livePhoto: a live photo is one photo from the running stream")
        }
        if format ?? .jpeg != .jpeg { throw refusal("format", "must be jpeg for a live photo") }
        // Its movie began before it was asked for: both files lie as that does.
        if let (name, _) = [("orientation", orientation != nil), ("mirrored", isMirrored != nil)].first(where: \.1) {
            throw refusal(name, "can't be combined with livePhoto: the session's connection decides it")
        }
    }
}

extension PhotoThumbnail {
    /// {maxSize, quality}
    public var json: JSONValue { ["maxSize": JSONValue(maximumSide), "quality": JSONValue(quality)] }

    /// nil for false: none.
    init?(json: JSONValue, path: String) throws(BusError) {
        if let isWanted = json.bool {
            guard isWanted else { return nil }
            self.init()
            return
        }
        var reader = try MemberReader(json, path: path)
        let side = try reader.number("maxSize", in: Self.sides) ?? Int64(Self.usualSide)
        let quality = try reader.number("quality", in: 1...100) ?? Int64(Self.usualQuality)
        try reader.refuseOthers()
        self.init(maximumSide: Int(side), quality: Int(quality))
    }
}

extension PhotoBracket {
    /// {exposureBias: [EV]} or {exposureDuration: [seconds]}
    public var json: JSONValue {
        switch self {
        case .exposureBias(let steps): ["exposureBias": .array(steps.map(JSONValue.number))]
        case .exposureDuration(let steps):
            ["exposureDuration": .array(steps.map { .number(Double($0) / 1e9) })]
        }
    }

    /// - Throws: `invalidParams` with the step that is wrong.
    public init(json: JSONValue, path: String) throws(BusError) {
        var reader = try MemberReader(json, path: path)
        let (isOfBias, isOfDuration) = (
            reader.value("exposureBias") != nil, reader.value("exposureDuration") != nil
        )
        try reader.refuseOthers()
        guard isOfBias != isOfDuration else {
            throw .invalidParams(path, "must have exposureBias or exposureDuration, not both")
        }
        let name = isOfBias ? "exposureBias" : "exposureDuration"
        let steps = try reader.array(name)
        guard Self.counts.contains(steps.count) else {
            throw .invalidParams(
                reader.path(of: name), "must have \(Self.counts.lowerBound) to \(Self.counts.upperBound) steps")
        }
        let place = reader.path(of: name)
        if isOfBias {
            var biases: [Double] = []
            for (index, step) in steps.enumerated() {
                guard let bias = step.double, Self.biases.contains(bias) else {
                    throw .invalidParams("\(place)[\(index)]", "must be a number of EV between -20 and 20")
                }
                biases.append(bias)
            }
            self = .exposureBias(biases)
        } else {
            var durations: [Int64] = []
            for (index, step) in steps.enumerated() {
                guard let duration = Self.nanoseconds(step), Self.durations.contains(duration) else {
                    throw .invalidParams(
                        "\(place)[\(index)]",
                        "must be seconds between 0.000001 and 3600, or a fraction of them such as \"1/125\"")
                }
                durations.append(duration)
            }
            self = .exposureDuration(durations)
        }
    }

    private static func nanoseconds(_ value: JSONValue) -> Int64? {
        if let text = value.string { return FrameDuration(text)?.nanoseconds }
        return value.double.flatMap { Int64(exactly: ($0 * 1e9).rounded()) }
    }
}
