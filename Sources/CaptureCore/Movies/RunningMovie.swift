public import BusProtocol
public import JSON

/// A movie that is being made, as the coordinator knows it: a value that is told what happens, and answers what
/// follows.
public struct RunningMovie: Hashable, Sendable {
    /// What of a movie only the coordinator has to know, and finds again in what its recorder gives back
    /// (``MovieRequest/note``).
    public struct Note: Hashable, Sendable {
        /// It outlives its process.
        public var isDetached: Bool
        /// A recorder that dies is followed by another.
        public var continuesAfterCrash: Bool
        /// When the recorders before it have died.
        public var crashes: [Instant]
        /// In how many places in a row there was a file already where this part was to be.
        public var misses: Int
        /// When the devices of the movies before it began to deliver what their files could not hold.
        public var changes: [Instant] = []
        /// The movies in whose place it continues, the oldest first.
        public var before: [String] = []
        /// It is a segment of the take that it belongs to.
        public var isSegment: Bool
        /// What its owner may not have is black, or silence.
        public var isBlankWhenDenied = false
        /// Its camera focuses smoothly as long as it is made; its pictures are stabilized.
        public var isSmooth = false
        public var isStabilized = false

        public init(
            isDetached: Bool = false, continuesAfterCrash: Bool = false, crashes: [Instant] = [], misses: Int = 0,
            isSegment: Bool = false
        ) {
            self.isDetached = isDetached
            self.continuesAfterCrash = continuesAfterCrash
            self.crashes = crashes
            self.misses = misses
            self.isSegment = isSegment
        }

        public var json: JSONValue {
            [
                "detached": .bool(isDetached), "continues": .bool(continuesAfterCrash),
                "crashes": .array(crashes.map { .integer($0) }), "misses": JSONValue(misses),
                "changes": .array(changes.map { .integer($0) }), "before": JSONValue(before),
                "segment": .bool(isSegment), "smooth": .bool(isSmooth), "stabilized": .bool(isStabilized),
                "blankWhenDenied": .bool(isBlankWhenDenied),
            ]
        }

        public init(json: JSONValue) {
            isDetached = json["detached"]?.bool ?? false
            continuesAfterCrash = json["continues"]?.bool ?? false
            crashes = json["crashes"]?.array?.compactMap(\.integer) ?? []
            changes = json["changes"]?.array?.compactMap(\.integer) ?? []
            before = json["before"]?.array?.compactMap(\.string) ?? []
            misses = json["misses"]?.integer.map { Int(clamping: $0) } ?? 0
            isSegment = json["segment"]?.bool ?? false
            isBlankWhenDenied = json["blankWhenDenied"]?.bool ?? false
            isSmooth = json["smooth"]?.bool ?? false
            isStabilized = json["stabilized"]?.bool ?? false
        }
    }

    public private(set) var request: MovieRequest
    public let note: Note
    public private(set) var progress: MovieProgress
    /// Its first frame is in the file.
    public private(set) var hasBegun: Bool
    /// Why it was told to end; nil: nobody has told it.
    public private(set) var ending: MovieEndReason?
    /// How it has ended.
    public private(set) var result: MovieResult?
    /// The movie that continues it.
    public private(set) var next: String?
    /// What its recorder was told to make blank.
    private var withdrawn: Set<AuthorizationMedia> = []

    /// A recorder that dies for the third time within so many nanoseconds would die again.
    static let crashWindow: Int64 = 60_000_000_000
    static let maximumCrashes = 2
    /// Devices that change more often in that time would fill a folder with files; and so many parts are enough.
    public static let (maximumChanges, maximumParts) = (8, 200)
    /// Further files that are tried for a part.
    static let maximumMisses = 8

    /// - Parameter progress: as its recorder has it; one that has just been started has none.
    public init(_ request: MovieRequest, progress: MovieProgress = MovieProgress(.starting)) {
        self.request = request
        self.progress = progress
        note = Note(json: request.note)
        hasBegun = progress.stage != .starting
    }

    public var id: String { request.movie }

    /// Clients know of it: it has begun, or was named as what goes on in the place of another.
    public var isTold: Bool { hasBegun || request.part > 1 && !note.isSegment }

    /// What it is of: its camera and its microphone.
    public var devices: [MovieRequest.Device] { [request.camera, request.microphone].compactMap(\.self) }

    /// Lets its user and administrators stop it.
    ///
    /// - Throws: `unauthorized` {status, needed, owner, movie}.
    public func check(_ editor: Editor) throws(BusError) {
        let owner = request.owner
        try editor.check("The movie \(id)", of: owner.uid, named: owner.name, to: "stop it", ["movie": .string(id)])
    }

    /// What is black, or silence, in it.
    public var blank: Set<AuthorizationMedia> { request.blank.media.union(progress.blank).union(withdrawn) }

    /// What of its devices is in it.
    public var real: Set<AuthorizationMedia> {
        let all: [AuthorizationMedia] =
            (request.camera == nil ? [] : [.video]) + (request.microphone == nil ? [] : [.audio])
        return Set(all).subtracting(blank)
    }

    // MARK: What happens

    /// Its owner may not have these any more.
    ///
    /// - Returns: what is to be blank from now on; nil: the movie has to end.
    public func withdrawal(of denied: Set<AuthorizationMedia>) -> Set<AuthorizationMedia>? {
        let lost = real.intersection(denied)
        guard !lost.isEmpty else { return [] }
        return note.isBlankWhenDenied && hasBegun && lost != real ? lost : nil
    }

    /// Its recorder has been told to make that blank.
    public mutating func withdraw(_ media: AuthorizationMedia) { withdrawn.insert(media) }

    /// - Returns: false: nothing is otherwise.
    public mutating func update(_ progress: MovieProgress) -> Bool {
        guard progress != self.progress, result == nil else { return false }
        self.progress = progress
        return true
    }

    /// The first frame is in.
    ///
    /// - Returns: false: that was known.
    public mutating func begin() -> Bool {
        guard !hasBegun, result == nil else { return false }
        hasBegun = true
        if progress.stage == .starting { progress.stage = .recording }
        return true
    }

    /// It goes on with another camera's pictures.
    public mutating func switched(to camera: MovieRequest.Device) { request.camera = camera }

    /// It is to end.
    ///
    /// - Parameter time: what is taken from then on is not in it; nil: what has not come yet.
    /// - Returns: what its recorder is to do; nil: it was told already.
    public mutating func end(for reason: MovieEndReason, at time: Instant? = nil) -> RecorderOrder.Action? {
        guard ending == nil, result == nil else { return nil }
        ending = reason
        return hasBegun ? .stop(reason, at: time) : .cancel
    }

    /// It has ended.
    ///
    /// - Returns: false: that was known.
    public mutating func finish(_ result: MovieResult) -> Bool {
        guard self.result == nil else { return false }
        var result = result
        // It was to end there anyway.
        if result.canContinue, let ending { (result.reason, result.error) = (ending, nil) }
        self.result = result
        return true
    }

    /// Notes the movie that continues it; nil: none does.
    public mutating func setNext(_ next: String?) {
        self.next = next
        // What its own file could not have is in the other one.
        if next != nil, result?.reason == .formatChanged { result?.error = nil }
    }

    /// How it has ended when its recorder has died: with what was on the disk last.
    ///
    /// - Parameter ending: how the process ended, in words; nil: that is not known.
    public func crash(_ ending: String? = nil) -> MovieResult {
        var message = "The recorder of the movie \(id) has died"
        if let ending { message += " (\(ending))" }
        if request.url == nil, progress.fragments > 0 { message += "; its file plays up to its last fragment" }
        var result = MovieResult(
            .recorderCrashed, error: BusError(.workerCrashed, message + ".", ["movie": .string(id)]),
            path: request.path, duration: request.url == nil ? progress.syncedDuration : progress.recordedDuration,
            size: request.url == nil ? progress.syncedFileSize : progress.recordedFileSize,
            frames: progress.frames, dropped: progress.dropped, isKept: progress.fragments > 0)
        result.sideCarProblem = progress.sideCarProblem
        return result
    }

    /// The movie that continues it when its recorder has died; nil: none does.
    ///
    /// - Parameter id: of the next one.
    public func successor(_ id: String, at now: Instant) -> MovieRequest? {
        guard note.continuesAfterCrash, request.url == nil, hasBegun, ending == nil else { return nil }
        let crashes = note.crashes.filter { $0 > now.advanced(byNanoseconds: -Self.crashWindow) }
        guard crashes.count < Self.maximumCrashes else { return nil }
        var note = note
        note.crashes = crashes + [now]
        note.misses = 0
        return rest(of: progress.syncedDuration, behind(id, note))
    }

    // With what is left of its time; nil: it has none left.
    private func rest(of duration: Int64, _ next: MovieRequest) -> MovieRequest? {
        guard let maximum = request.limits.maxDuration else { return next }
        guard maximum > duration else { return nil }
        var next = next
        next.limits.maxDuration = maximum - duration
        return next
    }

    /// The movie that has what its devices deliver now, when this one's file can't hold that; nil: there is to be none.
    private func another(_ id: String, at now: Instant) -> MovieRequest? {
        guard let result, result.canContinue, request.url == nil, !note.isSegment, hasBegun, ending == nil,
            request.part < Self.maximumParts
        else { return nil }
        let changes = note.changes.filter { $0 > now.advanced(byNanoseconds: -Self.crashWindow) }
        guard changes.count < Self.maximumChanges else { return nil }
        var note = note
        note.changes = changes + [now]
        note.misses = 0
        return rest(of: result.duration, behind(id, note))
    }

    /// The part that is tried where this one, which was to go on after a crash, could not have its file; nil: none is.
    private func retry(_ id: String) -> MovieRequest? {
        guard note.continuesAfterCrash || request.follows != nil, request.part > 1, !hasBegun,
            ending == nil, note.misses < Self.maximumMisses,
            let error = result?.error, error.reason == .invalidParams, error.data["path"] == "path"
        else { return nil }
        var note = note
        note.misses += 1
        return behind(id, note)
    }

    private func behind(_ id: String, _ note: Note) -> MovieRequest {
        var (next, note) = (request, note)
        next.movie = id
        next.follows = hasBegun ? self.id : request.follows
        note.before.append(self.id)
        next.path = MoviePlace.next(request.path, part: request.part)
        next.part += 1
        next.beginsOnOrder = false
        next.blank = blankMedia
        if next.blank.picture != nil, next.video.codec == .passThrough { next.video.codec = .automatic }
        next.note = note.json
        return next
    }

    // With what was given to this one.
    private var blankMedia: BlankMedia {
        var media = request.blank
        func number(_ value: JSONValue, _ name: String) -> Int? { value[name]?.integer.flatMap { Int(exactly: $0) } }
        if blank.contains(.video), media.picture == nil {
            media.picture = Dimensions(
                width: number(progress.video, "width") ?? 640, height: number(progress.video, "height") ?? 480)
        }
        if blank.contains(.audio), media.sound == nil {
            media.sound = BlankMedia.Sound(
                rate: number(progress.audio, "rate") ?? 48000, channels: number(progress.audio, "channels") ?? 2)
        }
        return media
    }

    /// The movie that continues this one, which has ended: its recorder has died, its devices deliver what its file
    /// can't hold, or it was to continue another one and its file was there already. nil: none does.
    ///
    /// - Parameter id: of the next one.
    public func follower(_ id: String, at now: Instant) -> MovieRequest? {
        switch result?.reason {
        case .recorderCrashed: successor(id, at: now)
        case .formatChanged: another(id, at: now)
        default: retry(id)
        }
    }

    // MARK: What is told

    /// The value of `state/movie/<id>/`, and what `movie.status` answers.
    public var json: JSONValue {
        let state = result != nil ? "finished" : ending != nil && hasBegun ? "finishing" : progress.stage.rawValue
        var members: [String: JSONValue] = [
            "id": .string(id), "path": path, "name": .string(name), "state": .string(state),
            "device": request.camera.map { .string($0.id) } ?? .null,
            "microphone": request.microphone.map { .string($0.id) } ?? .null,
            "session": request.session.map(JSONValue.string) ?? .null,
            "rig": request.rig.map(JSONValue.string) ?? .null, "take": .string(request.take ?? id),
            "part": JSONValue(request.part), "owner": request.owner.json, "detached": .bool(note.isDetached),
            "fileType": fileType, "fragmentInterval": .integer(request.fragmentInterval),
            "end": result.map { .object(self.members(of: $0)) } ?? .null,
        ]
        if let url = request.url { members["url"] = .string(url.shown) }
        if let follows = request.follows { members["follows"] = .string(follows) }
        members.merge(care) { $1 }
        for (name, value) in progress.json.object ?? [:] where members[name] == nil && name != "ready" {
            members[name] = value
        }
        return .object(members)
    }

    /// What `movie.start` answers.
    public var started: JSONValue {
        let members: [String: JSONValue?] = [
            "movie": .string(id), "path": path, "url": request.url.map { .string($0.shown) },
            "take": .string(request.take ?? id), "part": JSONValue(request.part),
            "devices": JSONValue(devices.map(\.id)),
            "microphone": request.microphone.map { .string($0.id) } ?? .null,
            "fileType": fileType, "video": progress.video, "audio": progress.audio,
            "sideCarProblem": progress.sideCarProblem.map(JSONValue.string),
        ]
        return .object(members.compactMapValues(\.self).merging(care) { $1 })
    }

    /// What its camera is set to for it, of one with a camera, and what is blank.
    private var care: [String: JSONValue] {
        let blank: [String: JSONValue] = blank.isEmpty ? [:] : ["blank": JSONValue(blank.map(\.rawValue).sorted())]
        guard request.camera != nil else { return blank }
        return blank.merging([
            "smoothAutoFocus": .bool(note.isSmooth),
            "stabilization": .string((note.isStabilized ? VideoStabilizationMode.standard : .off).rawValue),
        ]) { $1 }
    }

    /// How it ended, as `didFinishRecording` and `movie.stop` tell it.
    public func members(of result: MovieResult) -> [String: JSONValue] {
        var members = result.members
        members["movie"] = .string(id)
        members["canContinue"] = nil
        if let url = request.url { members["url"] = .string(url.shown) }
        members["error"] =
            result.error.map {
                .object(
                    $0.data.merging(["reason": .string($0.reason.rawValue), "message": .string($0.message)]) { $1 })
            } ?? .null
        members["next"] = next.map(JSONValue.string) ?? .null
        return members
    }

    /// Which file it is, or which server has it, as each of its events says.
    public var place: [String: JSONValue] {
        request.url.map { ["path": .null, "url": .string($0.shown)] } ?? ["path": path]
    }

    private var path: JSONValue { request.url == nil ? .string(request.path) : .null }
    private var fileType: JSONValue { request.url == nil ? .string(request.fileType.rawValue) : .null }

    private var name: String {
        if let url = request.url { return url.path.last ?? url.host }
        return filename
    }

    private var filename: String {
        request.path.lastIndex(of: "/").map { String(request.path[request.path.index(after: $0)...]) } ?? request.path
    }
}
