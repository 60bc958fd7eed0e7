public import BusProtocol
public import JSON

/// A photo that a worker is to take of its device, whole.
public struct PhotoOrder: Hashable, Sendable {
    /// The job's `uniqueID`, by which all devices that take part call it.
    public var job: String
    /// With orientation and mirroring as the session has them.
    public var settings: PhotoSettings
    /// The finished file comes with the report, for the reply.
    public var attaches: Bool
    /// Where it is stored; nil: nowhere.
    public var place: PhotoPlace?
    /// When it is to have been taken, where that is over (`ago`): monotonic nanoseconds; nil: when it is ordered.
    public var moment: Instant?
    /// What its movie has as well: it is a live photo's picture. Where it has a place it is kept, and stored together
    /// with the movie (``WorkerOrder/Action/publishPhoto(job:movie:file:)``). nil: it has no movie.
    public var identifier: LivePhotoIdentifier?

    public init(
        job: String, settings: PhotoSettings, attaches: Bool, place: PhotoPlace? = nil, moment: Instant? = nil,
        identifier: LivePhotoIdentifier? = nil
    ) {
        self.job = job
        self.settings = settings
        self.attaches = attaches
        self.place = place
        self.moment = moment
        self.identifier = identifier
    }

    /// Its picture is not stored when it is made, but when its movie is whole as well.
    public var isHeldBack: Bool { identifier != nil && place != nil }
}

/// Where in the capture library a device's photos go, and what is entered there with them.
public struct PhotoPlace: Hashable, Sendable {
    /// The camera, as it is called now.
    public struct Device: Hashable, Sendable {
        /// Its id on the bus.
        public var id: String
        public var uniqueID: String
        /// For people.
        public var name: String

        public init(id: String, uniqueID: String, name: String) {
            self.id = id
            self.uniqueID = uniqueID
            self.name = name
        }
    }

    /// The library's folder, absolute.
    public var library: String
    /// Today's folder, absolute and below it.
    public var directory: String
    /// The files' name, without ``PhotoName``'s marks and ending.
    public var stem: String
    /// The entries' ids, in the order of the files: as many as are expected of this device.
    public var ids: [String]
    /// For whom they are.
    public var owner: LockHolder
    public var session: String?
    public var rig: String?
    public var device: Device
    /// Bytes that have to stay free on the disk.
    public var minFree: Int64
    /// Whether the bus's group may read the files.
    public var isShared: Bool

    public init(
        library: String, directory: String, stem: String, ids: [String], owner: LockHolder, session: String? = nil,
        rig: String? = nil, device: Device, minFree: Int64 = 0, isShared: Bool = false
    ) {
        self.library = library
        self.directory = directory
        self.stem = stem
        self.ids = ids
        self.owner = owner
        self.session = session
        self.rig = rig
        self.device = device
        self.minFree = minFree
        self.isShared = isShared
    }
}

// MARK: In JSON

extension PhotoOrder {
    public var json: JSONValue {
        .members([
            "job": .string(job), "settings": settings.json, "attaches": attaches ? .bool(true) : nil,
            "place": place?.json, "moment": moment.map(JSONValue.integer),
            "livePhoto": identifier.map { JSONValue.string($0.digits) },
        ])
    }

    /// Reads what ``json`` writes. What it doesn't know is left out: it comes from a newer version.
    ///
    /// - Throws: `invalidParams` with the member that is missing or wrong.
    public init(json: JSONValue) throws(BusError) {
        var reader = try MemberReader(json, path: "")
        job = try reader.string("job")
        guard PhotoSettings.isUniqueID(job) else { throw .invalidParams("job", "is not a uniqueID") }
        settings = try PhotoSettings(json: try reader.required("settings"))
        attaches = try reader.flag("attaches") ?? false
        place = try reader.known("place").map { (value) throws(BusError) in
            try PhotoPlace(json: value, path: "place")
        }
        moment = try reader.number("moment", in: .min ... .max)
        if let digits = try reader.text("livePhoto") {
            guard let known = LivePhotoIdentifier(digits: digits) else {
                throw .invalidParams("livePhoto", "must have 32 hexadecimal digits")
            }
            identifier = known
        }
    }
}

extension PhotoPlace {
    public var json: JSONValue {
        .members([
            "library": .string(library), "directory": .string(directory), "stem": .string(stem),
            "ids": JSONValue(ids), "owner": owner.keptJSON, "session": session.map(JSONValue.string),
            "rig": rig.map(JSONValue.string),
            "device": [
                "device": .string(device.id), "uniqueID": .string(device.uniqueID), "name": .string(device.name),
            ],
            "minFree": minFree == 0 ? nil : .integer(minFree), "shared": isShared ? .bool(true) : nil,
        ])
    }

    /// - Throws: `invalidParams` with the member that is missing or wrong.
    public init(json: JSONValue, path: String) throws(BusError) {
        var reader = try MemberReader(json, path: path)
        library = try reader.string("library")
        directory = try reader.string("directory")
        guard library.hasPrefix("/"), MoviePlace.contains(library, directory), !directory.utf8.contains(0) else {
            throw .invalidParams(reader.path(of: "directory"), "must be below the library")
        }
        stem = try reader.string("stem")
        guard PhotoName.isStem(stem) else { throw .invalidParams(reader.path(of: "stem"), "is not a file name") }
        let listed = try reader.array("ids")
        ids = listed.compactMap(\.string)
        guard ids.count == listed.count, !ids.isEmpty, ids.count <= Int(PhotoSettings.mostFiles) else {
            throw .invalidParams(
                reader.path(of: "ids"), "must be the ids of 1 to \(PhotoSettings.mostFiles) entries")
        }
        guard let owner = LockHolder(keptJSON: try reader.required("owner")) else {
            throw .invalidParams(reader.path(of: "owner"), "is not a process id")
        }
        self.owner = owner
        session = try reader.text("session")
        rig = try reader.text("rig")
        var inner = try MemberReader(try reader.required("device"), path: reader.path(of: "device"))
        device = Device(
            id: try inner.string("device"), uniqueID: try inner.string("uniqueID"), name: try inner.string("name"))
        guard DeviceID.isValid(device.id) else { throw .invalidParams(inner.path(of: "device"), "is not a device id") }
        minFree = try reader.number("minFree", in: 0 ... .max) ?? 0
        isShared = try reader.flag("shared") ?? false
    }
}
