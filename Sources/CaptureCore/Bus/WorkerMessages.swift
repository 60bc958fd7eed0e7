public import BusProtocol
import Glibc
public import JSON

/// What the coordinator tells a worker to do, over `internal/workers.sock`: one JSON frame.
///
/// Every order is answered once by ``WorkerReport/reply(order:_:)`` with its number.
public struct WorkerOrder: Hashable, Sendable {
    public enum Action: Hashable, Sendable {
        /// Checks a change against the device without making it, and remembers it under the transaction's id.
        /// Answers {activeFormat, frameDuration, controls, adjusted} as it would be.
        ///
        /// `isShared`: other devices change with this one. Once it has applied, only the coordinator can say what is to
        /// become of it. `isStandIn`: the format stands in for one that there is no room for: it holds while the device
        /// is open, and is not kept.
        case prepare(
            transaction: String, change: JSONValue, path: String, mode: ConfigurationMode, isShared: Bool = false,
            isStandIn: Bool = false)
        /// Makes the prepared change; on an error the device is put back first. Answers {generation, activeFormat,
        /// frameDuration, controls, adjusted}.
        case apply(transaction: String)
        /// Puts the device back to what it was before ``apply(transaction:)``.
        case rollBack(transaction: String)
        /// The transaction is over; what was kept for it can go.
        case finish(transaction: String)
        /// Somebody holds the lock with this order's fence: the device stays open.
        case lock
        /// The lock with this order's fence has ended.
        case unlock
        /// Running sessions want the device's pictures, or none does any more.
        ///
        /// `preRoll`: milliseconds for which pictures are held, for photos of a moment that is over.
        /// `watchesScene`: somebody wants to know whether the scene wants a flash, or a picture that is steadied.
        case session(isRunning: Bool, preRoll: Int = 0, watchesScene: Bool = false)
        /// The device is not to stream, whoever wants its pictures, or may again.
        case halt(Bool)
        /// Reads the controls' tables and values anew. Answers {controls: […]} with values.
        case readControls
        /// Answers the same as they were read last, of a device that is not to be opened for it.
        case knownControls
        /// Begins a zoom ramp. Answers {generation, from, to, rate, milliseconds}.
        ///
        /// `by`: for whom, as ``ZoomRampOwner`` tells it; the worker only gives it back, for as long as the ramp runs.
        case rampZoom(ZoomRequest, by: JSONValue = .null)
        /// Ends the zoom ramp that runs or waits to begin, if any, whatever else waits.
        ///
        /// `of`: only one that runs for them, as ``ZoomRampOwner`` tells it; null: whosever it is.
        case cancelZoom(of: JSONValue = .null)
        /// Looks who uses the device. Answers {subscribers: [{uid, pid, name, renditions}], foreign: [{uid, pid,
        /// name}], complete}.
        case who
        /// The camera is there, as these facts say. `isNew`: it has been away, whatever the worker has noticed of that.
        case plugged(CameraFacts, isNew: Bool)
        /// The same of a microphone.
        case pluggedMicrophone(MicrophoneFacts, isNew: Bool)
        /// The users who may connect from now on. The worker reports each refused user once per list.
        case admit(AccessList)
        /// Makes a virtual device misbehave: {fault, …} at once, {script: [{at, fault, …}]} at its times. {list}
        /// answers {script}, {cancel} ends it.
        case fault(JSONValue)
        /// Makes ready for a photo: the device streams, is set as the photo needs it, and has found its exposure, or
        /// has had its time for that. Answers {resolution} (``PhotoResolution``), and then waits for
        /// ``takePhoto(job:at:)`` for ``photoPatience``.
        case preparePhoto(PhotoOrder)
        /// Takes the photo that is ready, with the first frame at or after that time (monotonic nanoseconds; nil: the
        /// next one). Its stages are told by ``WorkerReport/photo(job:stage:members:)``. Answers {photos: […]}
        /// (``PhotoResult``) when all are finished.
        case takePhoto(job: String, at: Instant? = nil)
        /// Stores the picture of a live photo that was made and kept, together with its movie, of which that file is:
        /// both or neither. Answers {photo, movie} (``PhotoResult`` with its path and id; the movie's path in the
        /// library) when both are on the disk. A picture waits for this for ``photoPatience``; whatever the answer is,
        /// it is not kept any longer.
        case publishPhoto(job: String, movie: LivePhotoMovie, file: String)
        /// What is not stored yet of a photo that goes with the reply as well is not stored: it may not be any more.
        /// Answers {}, also when there is none. A live photo's is stored or not by ``publishPhoto(job:movie:file:)``.
        case keepFromLibrary(job: String)
        /// Gives a photo up, however far it is; what was set for it is put back, and a picture that was kept is
        /// forgotten. Answers {} when that is so, also when there is none.
        case dropPhoto(job: String)
        /// Ends the process in order.
        case stop

        /// Takes something back or closes it. There are never more of these than of what they end, or than their givers
        /// share, so they count against no limit.
        public var endsTransaction: Bool {
            switch self {
            case .rollBack, .finish, .unlock, .lock, .session, .halt, .plugged, .pluggedMicrophone, .admit, .cancelZoom,
                .keepFromLibrary, .dropPhoto, .stop:
                true
            default: false
            }
        }
    }

    /// How long an order may wait to be begun, milliseconds: longer than the 10 s after which a worker with a stuck
    /// driver ends itself.
    public static let patience: Int64 = 12_000
    /// How long until its answer in all, milliseconds: one order may set many controls, each as slow as a driver may
    /// be. A worker that is stuck ends long before.
    public static let longest: Int64 = 10 * patience
    /// How long a photo that is ready waits to be taken, milliseconds: longer than any other device may take to get
    /// ready for it.
    public static let photoPatience: Int64 = 3 * longest

    /// How long a device may take to settle once for a photo, milliseconds: the frames that it is given, however long
    /// each lasts.
    ///
    /// - Parameter frame: a frame's time, nanoseconds.
    public static func settling(_ settings: PhotoSettings, frame: Int64) -> Int64 {
        let frame = min(max(frame, 0), 60_000_000_000)
        let exposure: Int64 =
            switch settings.bracket {
            case .exposureDuration(let steps)?: steps.max() ?? 0
            // Doublings of what fits into a frame.
            case .exposureBias(let steps)?: Int64(Double(frame) * exp2(min(max(steps.max() ?? 0, 0), 8)))
            case nil: 0
            }
        return 20_000 + 20 * min(max(frame, exposure), 60_000_000_000) / 1_000_000
    }

    /// How long a device may take to get ready for a photo, milliseconds.
    public static func preparing(_ settings: PhotoSettings, frame: Int64) -> Int64 {
        min(longest + 2 * settling(settings, frame: frame), photoPatience)
    }

    /// How long the photos may take from then on, milliseconds, beside what lies between them.
    public static func taking(_ settings: PhotoSettings, frame: Int64) -> Int64 {
        longest + Int64(settings.bracket?.count ?? 1) * settling(settings, frame: frame)
    }

    public var number: UInt64
    /// The lock's number under which a changing order is given. A worker refuses one that is lower than the highest it
    /// has seen.
    public var fence: UInt64?
    public var action: Action
    /// The worker's hello that this answers to: an order that was given over an earlier connection is not carried out.
    /// nil: any.
    public var link: UInt64?
    /// When it is too late to begin (monotonic nanoseconds): whoever gave it has given it up by then. nil, and for what
    /// ends a transaction: never.
    public var deadline: Instant?

    public init(number: UInt64, fence: UInt64?, action: Action, link: UInt64? = nil, deadline: Instant? = nil) {
        self.number = number
        self.fence = fence
        self.action = action
        self.link = link
        self.deadline = deadline
    }

    public var json: JSONValue {
        var members: [String: JSONValue] = ["order": JSONValue(number)]
        if let fence { members["fence"] = JSONValue(fence) }
        if let link { members["link"] = JSONValue(link) }
        if let deadline { members["deadline"] = .integer(deadline) }
        switch action {
        case .prepare(let transaction, let change, let path, let mode, let isShared, let isStandIn):
            members["do"] = "prepare"
            members["transaction"] = .string(transaction)
            members["change"] = change
            members["path"] = .string(path)
            members["mode"] = .string(mode.rawValue)
            if isShared { members["shared"] = true }
            if isStandIn { members["standIn"] = true }
        case .apply(let transaction):
            members["do"] = "apply"
            members["transaction"] = .string(transaction)
        case .rollBack(let transaction):
            members["do"] = "rollBack"
            members["transaction"] = .string(transaction)
        case .finish(let transaction):
            members["do"] = "finish"
            members["transaction"] = .string(transaction)
        case .lock: members["do"] = "lock"
        case .unlock: members["do"] = "unlock"
        case .session(let isRunning, let preRoll, let watchesScene):
            members["do"] = "session"
            members["running"] = .bool(isRunning)
            if preRoll > 0 { members["preRoll"] = JSONValue(preRoll) }
            if watchesScene { members["scene"] = true }
        case .halt(let isOn):
            members["do"] = "halt"
            members["on"] = .bool(isOn)
        case .readControls: members["do"] = "readControls"
        case .knownControls: members["do"] = "knownControls"
        case .rampZoom(let wish, let owner):
            members["do"] = "rampZoom"
            if !owner.isNull { members["by"] = owner }
            members["rate"] = .number(wish.rate)
            switch wish.target {
            case .factor(let factor): members["factor"] = .number(factor)
            case .value(let value): members["value"] = .number(value)
            }
        case .cancelZoom(let owner):
            members["do"] = "cancelZoom"
            if !owner.isNull { members["of"] = owner }
        case .who: members["do"] = "who"
        case .plugged(let facts, let isNew):
            members["do"] = "plugged"
            members["camera"] = facts.json
            members["new"] = .bool(isNew)
        case .pluggedMicrophone(let facts, let isNew):
            members["do"] = "plugged"
            members["microphone"] = facts.json
            members["new"] = .bool(isNew)
        case .admit(let accessList):
            members["do"] = "admit"
            members["accessList"] = accessList.json
        case .fault(let fault):
            members["do"] = "fault"
            members["fault"] = fault
        case .preparePhoto(let photo):
            members["do"] = "preparePhoto"
            members["photo"] = photo.json
        case .takePhoto(let job, let time):
            members["do"] = "takePhoto"
            members["job"] = .string(job)
            if let time { members["at"] = .integer(time) }
        case .publishPhoto(let job, let movie, let file):
            members["do"] = "publishPhoto"
            members["job"] = .string(job)
            members["movie"] = movie.json
            members["file"] = .string(file)
        case .keepFromLibrary(let job):
            members["do"] = "keepFromLibrary"
            members["job"] = .string(job)
        case .dropPhoto(let job):
            members["do"] = "dropPhoto"
            members["job"] = .string(job)
        case .stop: members["do"] = "stop"
        }
        return .object(members)
    }

    /// nil when it is no order that this version knows.
    public init?(json: JSONValue) {
        guard let number = json["order"]?.integer.flatMap({ UInt64(exactly: $0) }), let word = json["do"]?.string else {
            return nil
        }
        let transaction = json["transaction"]?.string
        switch (word, transaction) {
        case ("prepare", let transaction?):
            guard let change = json["change"], let path = json["path"]?.string,
                let mode = json["mode"]?.string.flatMap(ConfigurationMode.init)
            else { return nil }
            action = .prepare(
                transaction: transaction, change: change, path: path, mode: mode,
                isShared: json["shared"]?.bool ?? false, isStandIn: json["standIn"]?.bool ?? false)
        case ("apply", let transaction?): action = .apply(transaction: transaction)
        case ("rollBack", let transaction?): action = .rollBack(transaction: transaction)
        case ("finish", let transaction?): action = .finish(transaction: transaction)
        case ("lock", _): action = .lock
        case ("unlock", _): action = .unlock
        case ("session", _):
            guard let isRunning = json["running"]?.bool else { return nil }
            let preRoll = min(max(json["preRoll"]?.integer ?? 0, 0), PhotoPreRoll.lengths.upperBound)
            action = .session(
                isRunning: isRunning, preRoll: Int(preRoll), watchesScene: json["scene"]?.bool ?? false)
        case ("halt", _):
            guard let isOn = json["on"]?.bool else { return nil }
            action = .halt(isOn)
        case ("readControls", _): action = .readControls
        case ("knownControls", _): action = .knownControls
        case ("rampZoom", _):
            guard let rate = json["rate"]?.double else { return nil }
            let owner = json["by"] ?? .null
            if let factor = json["factor"]?.double {
                action = .rampZoom(ZoomRequest(target: .factor(factor), rate: rate), by: owner)
            } else if let value = json["value"]?.double {
                action = .rampZoom(ZoomRequest(target: .value(value), rate: rate), by: owner)
            } else {
                return nil
            }
        case ("cancelZoom", _): action = .cancelZoom(of: json["of"] ?? .null)
        case ("who", _): action = .who
        case ("plugged", _):
            guard let isNew = json["new"]?.bool else { return nil }
            if let facts = json["camera"].flatMap(CameraFacts.init(json:)) {
                action = .plugged(facts, isNew: isNew)
            } else if let facts = json["microphone"].flatMap(MicrophoneFacts.init(json:)) {
                action = .pluggedMicrophone(facts, isNew: isNew)
            } else {
                return nil
            }
        case ("admit", _):
            guard let accessList = json["accessList"].flatMap(AccessList.init(json:)) else { return nil }
            action = .admit(accessList)
        case ("fault", _):
            guard let fault = json["fault"] else { return nil }
            action = .fault(fault)
        case ("preparePhoto", _):
            guard let photo = json["photo"].flatMap({ try? PhotoOrder(json: $0) }) else { return nil }
            action = .preparePhoto(photo)
        case ("takePhoto", _):
            guard let job = json["job"]?.string else { return nil }
            action = .takePhoto(job: job, at: json["at"]?.integer)
        case ("publishPhoto", _):
            guard let job = json["job"]?.string, let file = json["file"]?.string,
                let movie = json["movie"].flatMap({ try? LivePhotoMovie(json: $0) })
            else { return nil }
            action = .publishPhoto(job: job, movie: movie, file: file)
        case ("keepFromLibrary", _):
            guard let job = json["job"]?.string else { return nil }
            action = .keepFromLibrary(job: job)
        case ("dropPhoto", _):
            guard let job = json["job"]?.string else { return nil }
            action = .dropPhoto(job: job)
        case ("stop", _): action = .stop
        default: return nil
        }
        self.number = number
        fence = json["fence"]?.integer.flatMap { UInt64(exactly: $0) }
        link = json["link"]?.integer.flatMap { UInt64(exactly: $0) }
        deadline = json["deadline"]?.integer
    }
}

/// What a worker tells the coordinator, over `internal/workers.sock`: one JSON frame.
public enum WorkerReport: Hashable, Sendable {
    /// First on each connection: who this is, and the connection's number, which orders name. Its media socket is bound
    /// by then.
    ///
    /// `inDoubt`: transactions over several devices that this one has applied, or is applying, and was not told the end
    /// of.
    case hello(device: String, uniqueID: String, mediaPath: String, link: UInt64 = 0, inDoubt: [String] = [])
    /// What the device can do: {identity…, formats: […], controls: […]}, after each opening.
    case description(JSONValue)
    /// How the device is, whole: the members of its state that the worker knows (isOpen, isStreaming, stream, memory,
    /// activeFormat, frameDuration, frameRate, generation, controls, asOf, busySince, error, kernelPriority,
    /// notRestored, systemPressureState), and for the coordinator alone what it has to know of it, such as `zoomRamp`
    /// (``ZoomRampOwner``) and `rings` (``rings(_:)``).
    case status(JSONValue)
    /// The answer to an order.
    case reply(order: UInt64, Result<JSONValue, BusError>)
    /// Something happened to the device that is to be told as `event/device/<id>/`: its name and further members.
    case event(String, [String: JSONValue])
    /// This user was turned away at a door, for the first time since the last order about them.
    case refused(uid: UInt32, gid: UInt32, pid: Int32)
    /// A photo has come so far. With `didCapture`, `members` has {moment}: the time of the first frame as its header
    /// has it, monotonic nanoseconds. With `processed` they are {photo} (``PhotoResult``), and a further frame of the
    /// message is its file where the order wanted it and it is no larger than any reply
    /// (``BusLimits/maxPhotoReplyBytes``).
    case photo(job: String, stage: PhotoProgress, members: JSONValue = [:])
    /// Once a second, with the counters since the start: {frames, dropped, subscriptions, renditions: {…}, …}. A
    /// matcher's has none.
    case alive(JSONValue)

    public var json: JSONValue {
        switch self {
        case .hello(let device, let uniqueID, let mediaPath, let link, let inDoubt):
            [
                "report": "hello", "device": .string(device), "uniqueID": .string(uniqueID),
                "mediaPath": .string(mediaPath), "link": JSONValue(link), "inDoubt": JSONValue(inDoubt),
            ]
        case .description(let value): ["report": "description", "value": value]
        case .status(let value): ["report": "status", "value": value]
        case .reply(let order, .success(let result)):
            ["report": "reply", "order": JSONValue(order), "result": result]
        case .reply(let order, .failure(let error)):
            ["report": "reply", "order": JSONValue(order), "error": error.json]
        case .event(let name, let members):
            ["report": "event", "event": .string(name), "members": .object(members)]
        case .refused(let uid, let gid, let pid):
            ["report": "refused", "uid": JSONValue(uid), "gid": JSONValue(gid), "pid": JSONValue(pid)]
        case .photo(let job, let stage, let members):
            ["report": "photo", "job": .string(job), "stage": .string(stage.rawValue), "members": members]
        case .alive(let value): ["report": "alive", "value": value]
        }
    }

    /// nil when it is no report that this version knows.
    public init?(json: JSONValue) {
        switch json["report"]?.string {
        case "hello":
            guard let device = json["device"]?.string, let uniqueID = json["uniqueID"]?.string,
                let mediaPath = json["mediaPath"]?.string
            else { return nil }
            self = .hello(
                device: device, uniqueID: uniqueID, mediaPath: mediaPath,
                link: json["link"]?.integer.flatMap { UInt64(exactly: $0) } ?? 0,
                inDoubt: json["inDoubt"]?.array?.compactMap(\.string) ?? [])
        case "description": self = .description(json["value"] ?? .null)
        case "status": self = .status(json["value"] ?? .null)
        case "alive": self = .alive(json["value"] ?? .null)
        case "event":
            guard let name = json["event"]?.string, let members = json["members"]?.object else { return nil }
            self = .event(name, members)
        case "refused":
            guard let uid = json["uid"]?.integer.flatMap({ UInt32(exactly: $0) }),
                let gid = json["gid"]?.integer.flatMap({ UInt32(exactly: $0) }),
                let pid = json["pid"]?.integer.flatMap({ Int32(exactly: $0) })
            else { return nil }
            self = .refused(uid: uid, gid: gid, pid: pid)
        case "photo":
            guard let job = json["job"]?.string, let stage = json["stage"]?.string.flatMap(PhotoProgress.init) else {
                return nil
            }
            self = .photo(job: job, stage: stage, members: json["members"] ?? [:])
        case "reply":
            guard let order = json["order"]?.integer.flatMap({ UInt64(exactly: $0) }) else { return nil }
            if let error = json["error"] {
                self = .reply(order: order, .failure(BusError(wire: error)))
            } else {
                self = .reply(order: order, .success(json["result"] ?? .null))
            }
        default: return nil
        }
    }
}

/// How far a worker is with a photo.
public enum PhotoProgress: String, Hashable, Sendable, CaseIterable {
    /// The first frame that counts is being exposed.
    case willCapture
    /// The last one has come: the device is free for the next photo.
    case didCapture
    /// One of them is finished, and on the disk if it goes there, but for a live photo's, which waits for its movie.
    case processed
}
