public import JSON

/// What the coordinator asks `camerabus-librarian` about the capture library: one question for each process.
public struct LibrarianRequest: Hashable, Sendable {
    public enum Action: Hashable, Sendable {
        /// Answers {entries, more}: the newest first, and whether there are more.
        case list(Filter)
        /// Answers {entry}.
        case get(String)
        /// Writes a part of a file of an entry to its standard input, which is open for that. Answers {id, file, name,
        /// size, offset, revision, state, bytes}: as `library.read` does, and how many bytes were written.
        case read(Part)
        /// Removes the files of an entry, and then the entry. Answers {id, deleted: [paths]}.
        case delete(String)
        /// Mends what is being made by nobody any more; of one entry, or of all. Answers {entries, failed: [{id, why}],
        /// recording}: those that were looked at, as they are now, those that could not be, and how many are being
        /// made.
        case recover(String?)
        /// Answers {ids}: what is to be recovered, the newest first. No movie is looked at.
        case left
        /// Takes an entry whose recovery has ended the librarian for damaged. Answers as recover does.
        case giveUp(String)
        /// Makes one movie of a take's segments, and enters it. Answers {id, path, cover, duration, size, encoded,
        /// entry}: milliseconds, bytes, whether it was encoded anew, and the entry as clients see it. The segments are
        /// not changed. After an error, or when the librarian was ended and ``recover(_:)`` was asked for, nothing else
        /// is there. `entryNotFound` names a segment that isn't there.
        case join(Join)
        /// Gives files and folders the modes that new ones get. Answers {changed, foreign}: how many have changed, and
        /// how many could not because they are another user's.
        case applyAccess
        /// Answers {users: [{uid, bytes}]}: how much the entries of each user have.
        case usage
    }

    /// A part of a file.
    public struct Part: Hashable, Sendable {
        /// Of the entry.
        public var id: String
        /// The member of the entry that names the file.
        public var file: String
        /// Bytes in front of it.
        public var offset: Int64
        /// Bytes, as far as there are any.
        public var length: Int

        public init(id: String, file: String = "path", offset: Int64 = 0, length: Int) {
            self.id = id
            self.file = file
            self.offset = offset
            self.length = length
        }

        var members: [String: JSONValue] {
            [
                "id": .string(id), "file": .string(file), "offset": .integer(offset),
                "length": JSONValue(length),
            ]
        }

        // nil when something is missing or wrong.
        init?(json: JSONValue) {
            guard let id = json["id"]?.string, let file = json["file"]?.string,
                let offset = json["offset"]?.integer, offset >= 0,
                let length = json["length"]?.integer.flatMap({ Int(exactly: $0) }), length >= 0
            else { return nil }
            self.init(id: id, file: file, offset: offset, length: length)
        }
    }

    /// What a take is to become.
    public struct Join: Hashable, Sendable {
        /// The take's id, which its entry has, too.
        public var take: String
        /// Ids of the entries of its segments, in their order.
        public var segments: [String]
        /// Of the movie, absolute (`….mp4`); there must be none.
        public var path: String
        /// Of its first frame (JPEG), likewise; nil: it is in the movie alone.
        public var cover: String?
        /// The picture is to be no larger, and stored as H.264 and AAC; nil: it stays as it is stored, where all
        /// segments are alike.
        public var preset: ExportPreset?
        /// The folder by which these paths are allowed, and which they have to be in when links are followed; nil:
        /// wherever they are.
        public var root: String?

        public init(
            take: String, segments: [String], path: String, cover: String? = nil, preset: ExportPreset? = nil,
            root: String? = nil
        ) {
            self.take = take
            self.segments = segments
            self.path = path
            self.cover = cover
            self.preset = preset
            self.root = root
        }

        var members: [String: JSONValue] {
            var members: [String: JSONValue] = [
                "take": .string(take), "segments": JSONValue(segments), "path": .string(path),
            ]
            members["cover"] = cover.map(JSONValue.string)
            members["preset"] = preset.map { .string($0.rawValue) }
            members["root"] = root.map(JSONValue.string)
            return members
        }

        // nil when something is missing or wrong.
        init?(json: JSONValue) {
            guard let take = json["take"]?.string, let listed = json["segments"]?.array,
                let path = json["path"]?.string, path.hasPrefix("/"),
                json["cover"].map({ $0.string?.hasPrefix("/") == true }) ?? true
            else { return nil }
            let segments = listed.compactMap(\.string)
            guard segments.count == listed.count else { return nil }
            self.init(
                take: take, segments: segments, path: path, cover: json["cover"]?.string, root: json["root"]?.string)
            if let preset = json["preset"] {
                guard let known = preset.string.flatMap(ExportPreset.init) else { return nil }
                self.preset = known
            }
        }
    }

    /// Which entries are wanted; nil: whatever it is.
    public struct Filter: Hashable, Sendable {
        /// Nanoseconds since 1970: those that began then or later.
        public var since: Int64?
        public var kind: String?
        /// A camera's or the microphone's id of then, or its `uniqueID`.
        public var device: String?
        /// As it is shown: also `missing`.
        public var state: String?
        /// What belongs together.
        public var take: String?
        /// Photos of one request: its `uniqueID`.
        public var photo: String?
        /// What the ids begin with.
        public var prefix: String?
        /// How many at most.
        public var limit: Int

        public init(
            since: Int64? = nil, kind: String? = nil, device: String? = nil, state: String? = nil,
            take: String? = nil, photo: String? = nil, prefix: String? = nil, limit: Int = usualLimit
        ) {
            self.since = since
            self.kind = kind
            self.device = device
            self.state = state
            self.take = take
            self.photo = photo
            self.prefix = prefix
            self.limit = limit
        }

        public static let usualLimit = 100
        /// The highest that can be asked for.
        public static let maximumLimit = 1000
    }

    public var action: Action
    /// Only what is this user's is there; nil: everything.
    public var uid: UInt32?

    public init(_ action: Action, uid: UInt32? = nil) {
        self.action = action
        self.uid = uid
    }

    public var json: JSONValue {
        var members: [String: JSONValue] = [:]
        members["uid"] = uid.map { JSONValue($0) }
        switch action {
        case .list(let filter):
            members["do"] = "list"
            members["since"] = filter.since.map(JSONValue.integer)
            members["kind"] = filter.kind.map(JSONValue.string)
            members["device"] = filter.device.map(JSONValue.string)
            members["state"] = filter.state.map(JSONValue.string)
            members["take"] = filter.take.map(JSONValue.string)
            members["photo"] = filter.photo.map(JSONValue.string)
            members["prefix"] = filter.prefix.map(JSONValue.string)
            members["limit"] = JSONValue(filter.limit)
        case .get(let id): (members["do"], members["id"]) = ("get", .string(id))
        case .read(let part):
            members["do"] = "read"
            members.merge(part.members) { own, _ in own }
        case .delete(let id): (members["do"], members["id"]) = ("delete", .string(id))
        case .recover(let id): (members["do"], members["id"]) = ("recover", id.map(JSONValue.string))
        case .left: members["do"] = "left"
        case .giveUp(let id): (members["do"], members["id"]) = ("giveUp", .string(id))
        case .join(let join):
            members["do"] = "join"
            members.merge(join.members) { own, _ in own }
        case .applyAccess: members["do"] = "applyAccess"
        case .usage: members["do"] = "usage"
        }
        return .object(members)
    }

    /// nil when it is no question that this version knows.
    public init?(json: JSONValue) {
        let id = json["id"]?.string
        switch (json["do"]?.string, id) {
        case ("list", _):
            let limit = json["limit"]?.integer ?? Int64(Filter.usualLimit)
            guard (0...Int64(Filter.maximumLimit)).contains(limit) else { return nil }
            action = .list(
                Filter(
                    since: json["since"]?.integer, kind: json["kind"]?.string, device: json["device"]?.string,
                    state: json["state"]?.string, take: json["take"]?.string, photo: json["photo"]?.string,
                    prefix: json["prefix"]?.string, limit: Int(limit)))
        case ("get", let id?): action = .get(id)
        case ("read", _):
            guard let part = Part(json: json) else { return nil }
            action = .read(part)
        case ("delete", let id?): action = .delete(id)
        case ("recover", _): action = .recover(id)
        case ("left", _): action = .left
        case ("giveUp", let id?): action = .giveUp(id)
        case ("join", _):
            guard let join = Join(json: json) else { return nil }
            action = .join(join)
        case ("applyAccess", _): action = .applyAccess
        case ("usage", _): action = .usage
        default: return nil
        }
        if let uid = json["uid"] {
            // Whom it is for can't be guessed.
            guard let number = uid.integer.flatMap({ UInt32(exactly: $0) }) else { return nil }
            self.uid = number
        }
    }
}
