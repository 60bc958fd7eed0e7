public import BusProtocol
public import JSON

/// A take as the bus has it: what was recorded, of what, and for whom.
public struct KeptTake: Hashable, Sendable {
    public var take: Take
    /// Of its files, without an ending.
    public let name: String
    /// Who made it: the user counts.
    public let owner: LockHolder
    /// Nanoseconds since 1970, when it was made.
    public let made: Int64
    /// What `take.create` was told that each segment is to be of: {session?, device?, microphone?, orientation?,
    /// mirrored?}.
    public let wish: JSONValue
    /// Segments belong to nobody.
    public let isDetached: Bool
    /// nil: as it was recorded.
    public let exportPreset: ExportPreset?
    /// What it is of; of a session, as the last segment had it.
    public var camera: MovieRequest.Device?
    public var microphone: MovieRequest.Device?
    /// How the segments are stored, as the first one was; null: there was none, or it has none.
    public var video: JSONValue = .null
    public var audio: JSONValue = .null
    /// The number of the next segment's file; none comes twice.
    public var nextPart = 1
    /// It is being thrown away; who comes after a crash goes on with that.
    public var isDiscarded = false

    /// The most segments that a take ever has, also of those that were thrown away.
    public static let maximumPart = 1_000_000

    public init(
        _ take: Take, name: String, owner: LockHolder, made: Int64, wish: JSONValue, isDetached: Bool = false,
        exportPreset: ExportPreset? = nil, camera: MovieRequest.Device? = nil, microphone: MovieRequest.Device? = nil
    ) {
        self.take = take
        self.name = name
        self.owner = owner
        self.made = made
        self.wish = wish
        self.isDetached = isDetached
        self.exportPreset = exportPreset
        self.camera = camera
        self.microphone = microphone
    }

    public var id: String { take.id }
    public var session: String? { wish["session"]?.string }

    /// Lets its user and administrators change it.
    ///
    /// - Throws: `unauthorized` {status, needed, owner, take}.
    public func check(_ editor: Editor) throws(BusError) {
        try editor.check("The take \(id)", of: owner.uid, named: owner.name, ["take": .string(id)])
    }

    /// The name that a client gives it, without the ending that its files get anyway.
    public static func stem(_ name: String) -> String {
        let ending = ".\(MovieFileType.mp4.rawValue)"
        return name.lowercased().hasSuffix(ending) && name.utf8.count > ending.utf8.count
            ? String(name.dropLast(ending.count)) : name
    }

    /// The name of a segment's file.
    public func filename(part: Int) -> String { Self.filename(name, part: part) }

    public static func filename(_ name: String, part: Int) -> String {
        "\(name)-\(part).\(MovieFileType.mp4.rawValue)"
    }

    /// Begins a segment behind the others, with the next number.
    ///
    /// - Throws: as ``Take/record(_:path:)``; `limitExceeded` where all numbers were given.
    public mutating func record(_ segment: String, path: String) throws(BusError) {
        guard nextPart <= Self.maximumPart else {
            throw BusError(
                .limitExceeded, "The take \(id) has had \(Self.maximumPart) segments; finish it.",
                ["limit": "segments", "maximum": JSONValue(Self.maximumPart)])
        }
        _ = try take.record(segment, path: path)
        nextPart += 1
    }

    /// What makes a movie a segment of this take, and like those before it.
    public func shape(_ request: inout MovieRequest) {
        request.take = id
        request.part = nextPart
        request.video.codec = .h264
        request.video.width = video["width"]?.integer.flatMap { Int(exactly: $0) }
        request.video.height = video["height"]?.integer.flatMap { Int(exactly: $0) }
        request.video.isFitted = request.video.width != nil
        if request.microphone != nil {
            request.audio.codec = .aac
            request.audio.rate = audio["rate"]?.integer.flatMap { Int(exactly: $0) }
            request.audio.channels = audio["channels"]?.integer.flatMap { Int(exactly: $0) }
        }
        request.startsWithSound = request.camera != nil && request.microphone != nil
        request.limits.maxDuration = take.remaining
    }

    /// A segment is stored so; the first one counts.
    public mutating func learn(_ progress: MovieProgress) {
        if video.isNull { video = progress.video }
        if audio.isNull { audio = progress.audio }
    }

    /// The value of `state/take/<id>/`.
    public var json: JSONValue {
        var members = take.json.object ?? [:]
        members["name"] = .string(name)
        members["session"] = session.map(JSONValue.string) ?? .null
        members["device"] = camera.map { .string($0.id) } ?? .null
        members["microphone"] = microphone.map { .string($0.id) } ?? .null
        members["owner"] = owner.json
        members["detached"] = .bool(isDetached)
        members["segment"] = take.current.map { .string($0.id) } ?? .null
        members["exportPreset"] = exportPreset.map { .string($0.rawValue) } ?? .null
        (members["video"], members["audio"]) = (video, audio)
        return .object(members)
    }

    // MARK: Kept

    /// What the next coordinator reads.
    public var keptJSON: JSONValue {
        .members([
            "take": take.keptJSON, "name": .string(name), "owner": owner.keptJSON, "made": .integer(made), "wish": wish,
            "detached": .bool(isDetached), "exportPreset": exportPreset.map { .string($0.rawValue) },
            "camera": camera?.json, "microphone": microphone?.json, "video": video, "audio": audio,
            "nextPart": JSONValue(nextPart), "discarded": isDiscarded ? .bool(true) : nil,
        ])
    }

    /// Reads what ``keptJSON`` writes.
    ///
    /// - Throws: `invalidParams` with the member that is missing or wrong.
    public init(id: String, keptJSON json: JSONValue) throws(BusError) {
        var reader = try MemberReader(json, path: "")
        let take = try Take(id: id, keptJSON: try reader.required("take"))
        guard let owner = LockHolder(keptJSON: try reader.required("owner")) else {
            throw .invalidParams("owner", "is not a process id")
        }
        self.init(
            take, name: try reader.string("name"), owner: owner, made: try reader.integer("made"),
            wish: try reader.required("wish"), isDetached: try reader.required("detached").bool ?? false,
            exportPreset: reader.known("exportPreset") == nil ? nil : try reader.word("exportPreset"),
            camera: try reader.known("camera").map { (device) throws(BusError) in
                try MovieRequest.Device(json: device, path: "camera")
            },
            microphone: try reader.known("microphone").map { (device) throws(BusError) in
                try MovieRequest.Device(json: device, path: "microphone")
            })
        isDiscarded = reader.known("discarded")?.bool ?? false
        video = reader.known("video") ?? .null
        audio = reader.known("audio") ?? .null
        nextPart = Int(try reader.integer("nextPart", in: 1...Int64(Self.maximumPart) + 1))
    }
}
