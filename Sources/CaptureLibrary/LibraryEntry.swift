public import JSON
public import LinuxIO

/// A device that took part in something, as it was called then.
public struct LibraryDevice: Hashable, Sendable {
    /// Its id at that time.
    public var device: String
    public var uniqueID: String
    /// What people call it.
    public var name: String?

    public init(device: String, uniqueID: String, name: String? = nil) {
        self.device = device
        self.uniqueID = uniqueID
        self.name = name
    }

    /// {device, uniqueID, name?}
    public var json: JSONValue {
        .members([
            "device": .string(device), "uniqueID": .string(uniqueID), "name": name.map(JSONValue.string),
        ])
    }

    /// nil when it is something else.
    public init?(json: JSONValue) {
        guard let device = json["device"]?.string, let uniqueID = json["uniqueID"]?.string else { return nil }
        self.init(device: device, uniqueID: uniqueID, name: json["name"]?.string)
    }
}

/// Whose something is: the process that asked for it.
public struct LibraryOwner: Hashable, Sendable {
    public var uid: UInt32
    /// 0: unknown.
    public var pid: Int32
    /// What the process called itself.
    public var name: String

    public init(uid: UInt32, pid: Int32, name: String) {
        self.uid = uid
        self.pid = pid
        self.name = name
    }

    /// {uid, pid, name}
    public var json: JSONValue { ["uid": JSONValue(uid), "pid": JSONValue(pid), "name": .string(name)] }

    /// nil when it is something else.
    public init?(json: JSONValue) {
        guard let uid = json["uid"]?.integer.flatMap({ UInt32(exactly: $0) }),
            let pid = json["pid"]?.integer.flatMap({ Int32(exactly: $0) }), let name = json["name"]?.string
        else { return nil }
        self.init(uid: uid, pid: pid, name: name)
    }
}

/// Something that the capture library has.
public struct LibraryEntry: Hashable, Sendable {
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        case movie, take, photo
    }

    /// What is known of its file.
    public enum State: String, Hashable, Sendable, CaseIterable {
        /// It is being made, or whoever made it has died and nobody has looked yet.
        case recording
        /// It is whole, as it was meant to be.
        case finished
        /// Whoever made it died: it has been mended, and plays as far as ``LibraryEntry/duration`` says.
        case recovered
        /// Whoever made it died, and it can't be mended: ``LibraryEntry/problem`` says why. Nothing was removed.
        case damaged
    }

    /// The movie's, take's or photo's: of `[a-z0-9-]{1,32}`, and given once.
    public var id: String
    public var kind: Kind
    /// The file, absolute.
    public var path: String
    /// Which file that is; nil: it was not made, or not by who is known. What lies at the path is then nobody's to
    /// change or remove.
    public var file: FileIdentity?
    /// The file with a line for each frame, absolute.
    public var sideCar: String?
    /// Which file that is; nil as with ``file``.
    public var sideCarFile: FileIdentity?
    /// The picture that stands for it (JPEG), absolute.
    public var cover: String?
    /// Which file that is; nil as with ``file``.
    public var coverFile: FileIdentity?
    /// The movie of a live photo, absolute: both files are one entry, and there are both or neither.
    public var movie: String?
    /// Which file that is; nil as with ``file``.
    public var movieFile: FileIdentity?
    public var state: State
    /// Why it ended (`didFinishRecording`); nil: it hasn't, or nobody knows.
    public var reason: String?
    /// What is wrong with it, for people.
    public var problem: String?
    /// The cameras; the first leads.
    public var devices: [LibraryDevice]
    public var microphone: LibraryDevice?
    /// When it began, or was taken, nanoseconds since 1970 (`CLOCK_REALTIME`).
    public var started: Int64
    /// How long it plays, milliseconds; of a photo 0.
    public var duration: Int64
    /// Bytes of its file.
    public var size: Int64
    /// `mp4`, `mov`, `mkv`, `jpeg`, `dng`.
    public var fileType: String
    /// What its picture is: {codec, width, height, …}.
    public var video: JSONValue?
    /// What its sound is: {codec, rate, channels, …}.
    public var audio: JSONValue?
    /// What the photo is; nil: it is none.
    public var photo: LibraryPhoto?
    /// Frames in it.
    public var frames: UInt64?
    /// Frames that were missed.
    public var dropped: UInt64?
    public var session: String?
    public var rig: String?
    public var take: String?
    /// Which of several files of one recording, from 1.
    public var part: Int?
    public var owner: LibraryOwner
    /// The file that whoever makes it holds with flock(2) for as long as it lives, absolute. nil: the one that its id
    /// stands for.
    public var lock: String?
    /// Its file has its name, or may have had it: one that isn't there is looked for again.
    public var isNamed = true
    /// Members that this version doesn't know, kept as they are.
    public private(set) var others: [String: JSONValue] = [:]

    /// Bytes of its file, and of a live photo's movie: what counts for its owner.
    public var bytes: Int64 {
        let movie = photo?.details["livePhotoMovie"]?["bytes"]?.integer ?? 0
        let sum = size.addingReportingOverflow(max(0, movie))
        return sum.overflow ? .max : sum.partialValue
    }

    /// Something that is about to be made.
    public init(
        id: String, kind: Kind = .movie, path: String, sideCar: String? = nil, devices: [LibraryDevice],
        microphone: LibraryDevice? = nil, started: Int64, fileType: String, video: JSONValue? = nil,
        audio: JSONValue? = nil, photo: LibraryPhoto? = nil, session: String? = nil, rig: String? = nil,
        take: String? = nil, part: Int? = nil, owner: LibraryOwner, lock: String? = nil
    ) {
        self.id = id
        self.kind = kind
        self.path = path
        self.sideCar = sideCar
        state = .recording
        self.devices = devices
        self.microphone = microphone
        self.started = started
        duration = 0
        size = 0
        self.fileType = fileType
        self.video = video
        self.audio = audio
        self.photo = photo
        self.session = session
        self.rig = rig
        self.take = take
        self.part = part
        self.owner = owner
        self.lock = lock
    }
}

extension LibraryEntry {
    /// Why something is no entry that this version reads.
    public struct Unreadable: Error, Hashable, Sendable, CustomStringConvertible {
        public var description: String

        init(_ description: String) { self.description = description }
    }

    /// All of it.
    public var json: JSONValue {
        var members = others
        members["id"] = .string(id)
        members["kind"] = .string(kind.rawValue)
        members["path"] = .string(path)
        members["file"] = file?.json
        members["sideCar"] = sideCar.map(JSONValue.string)
        members["sideCarFile"] = sideCarFile?.json
        members["cover"] = cover.map(JSONValue.string)
        members["coverFile"] = coverFile?.json
        members["movie"] = movie.map(JSONValue.string)
        members["movieFile"] = movieFile?.json
        members["state"] = .string(state.rawValue)
        members["reason"] = reason.map(JSONValue.string)
        members["problem"] = problem.map(JSONValue.string)
        members["devices"] = .array(devices.map(\.json))
        members["microphone"] = microphone?.json
        members["started"] = .integer(started)
        members["duration"] = .integer(duration)
        members["size"] = .integer(size)
        members["fileType"] = .string(fileType)
        members["video"] = video
        members["audio"] = audio
        members["photo"] = photo?.json
        members["frames"] = frames.map { JSONValue($0) }
        members["dropped"] = dropped.map { JSONValue($0) }
        members["session"] = session.map(JSONValue.string)
        members["rig"] = rig.map(JSONValue.string)
        members["take"] = take.map(JSONValue.string)
        members["part"] = part.map { JSONValue($0) }
        members["owner"] = owner.json
        members["lock"] = lock.map(JSONValue.string)
        if !isNamed { members["named"] = false }
        return .object(members)
    }

    /// Reads what ``json`` writes, and what other versions add to it.
    public init(json: JSONValue) throws(Unreadable) {
        guard var members = json.object else { throw Unreadable("it is \(json.typeName), and no object") }
        func missing(_ name: String) -> Unreadable { Unreadable("its \(name) is missing or none") }
        func text(_ name: String) -> String? { members.removeValue(forKey: name)?.string }
        func number(_ name: String) -> Int64? { members.removeValue(forKey: name)?.integer }
        func word<Word: RawRepresentable>(_ name: String) throws(Unreadable) -> Word where Word.RawValue == String {
            guard let text = text(name) else { throw missing(name) }
            guard let word = Word(rawValue: text) else { throw Unreadable("its \(name) is '\(text)'") }
            return word
        }
        guard let id = text("id") else { throw missing("id") }
        self.id = id
        kind = try word("kind")
        state = try word("state")
        guard let path = text("path"), !path.isEmpty, !path.utf8.contains(0) else { throw missing("path") }
        self.path = path
        file = members.removeValue(forKey: "file").flatMap(FileIdentity.init(json:))
        sideCarFile = members.removeValue(forKey: "sideCarFile").flatMap(FileIdentity.init(json:))
        sideCar = text("sideCar")
        if sideCar?.utf8.contains(0) == true { throw missing("sideCar") }
        coverFile = members.removeValue(forKey: "coverFile").flatMap(FileIdentity.init(json:))
        cover = text("cover")
        if cover?.utf8.contains(0) == true { throw missing("cover") }
        movieFile = members.removeValue(forKey: "movieFile").flatMap(FileIdentity.init(json:))
        movie = text("movie")
        if movie?.utf8.contains(0) == true { throw missing("movie") }
        reason = text("reason")
        problem = text("problem")
        let listed = members.removeValue(forKey: "devices")?.array ?? []
        devices = listed.compactMap(LibraryDevice.init(json:))
        guard devices.count == listed.count else { throw missing("devices") }
        microphone = members.removeValue(forKey: "microphone").flatMap(LibraryDevice.init(json:))
        guard let started = number("started") else { throw missing("started") }
        self.started = started
        guard let duration = number("duration"), duration >= 0 else { throw missing("duration") }
        self.duration = duration
        guard let size = number("size"), size >= 0 else { throw missing("size") }
        self.size = size
        guard let fileType = text("fileType") else { throw missing("fileType") }
        self.fileType = fileType
        video = members.removeValue(forKey: "video")
        audio = members.removeValue(forKey: "audio")
        if let photo = members.removeValue(forKey: "photo") {
            guard let known = LibraryPhoto(json: photo) else { throw missing("photo") }
            self.photo = known
        }
        frames = number("frames").flatMap { UInt64(exactly: $0) }
        dropped = number("dropped").flatMap { UInt64(exactly: $0) }
        session = text("session")
        rig = text("rig")
        take = text("take")
        part = number("part").flatMap { Int(exactly: $0) }
        guard let owner = members.removeValue(forKey: "owner").flatMap(LibraryOwner.init(json:)) else {
            throw missing("owner")
        }
        self.owner = owner
        lock = text("lock")
        isNamed = members.removeValue(forKey: "named")?.bool ?? true
        others = members
    }
}

extension LibraryEntry {
    /// What the file of an entry is called in its folder until it has its name, where the file system has no files
    /// without a name.
    public static func temporary(_ id: String) -> String { ".\(id).part" }

    /// The same of a live photo's movie.
    public static func temporaryMovie(_ id: String) -> String { ".\(id).movie.part" }

    /// The same of a movie's side-car.
    public static func temporarySideCar(_ id: String) -> String { ".\(id).frames.part" }
}

extension FileIdentity {
    /// {device, inode, born?}
    fileprivate var json: JSONValue {
        var members: [String: JSONValue] = ["device": .integer(device), "inode": .integer(inode)]
        members["born"] = born.map(JSONValue.integer)
        return .object(members)
    }

    /// nil when it is something else.
    fileprivate init?(json: JSONValue) {
        guard let device = json["device"]?.integer, let inode = json["inode"]?.integer else { return nil }
        self.init(device: device, inode: inode, born: json["born"]?.integer)
    }
}
