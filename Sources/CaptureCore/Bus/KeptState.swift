import BusProtocol
public import JSON

/// What outlives a coordinator, as its successor finds it: the locks, the fence counter, and which changes over several
/// devices were decided and perhaps not yet told to all of them.
public struct KeptState: Hashable, Sendable {
    /// The form that this version writes, and the only one that it reads.
    public static let version: Int64 = 1

    /// `/proc/sys/kernel/random/boot_id`: times and pids of another boot mean nothing.
    public var boot: String
    /// The coordinator's that wrote it.
    public var epoch: String
    /// No lock was ever given a higher one.
    public var fence: UInt64
    public var locks: [Lock]
    /// Ids of transactions that are to be kept on every device that has made them.
    public var decided: [String]
    public var sessions: [CaptureSession] = []
    /// Sorted by device. What can't be read of them is left out.
    public var exposures: [KeptExposure] = []
    /// What is set on devices for photos and not put back yet, as their workers told it, by `uniqueID`.
    public var standIns: [String: JSONValue] = [:]
    /// What stood among the sessions and is none: as far as it can be told apart, its id. The others are good all the
    /// same, as none depends on another.
    public private(set) var unreadableSessions: [String] = []

    public init(boot: String, epoch: String, fence: UInt64, locks: [Lock] = [], decided: [String] = []) {
        self.boot = boot
        self.epoch = epoch
        self.fence = fence
        self.locks = locks
        self.decided = decided
    }

    /// The sessions that are still sessions in that boot, and those that are not.
    ///
    /// - Parameter isAlive: whether the process of that number that started then still lives; asked for those that
    ///   belong to one.
    public func survivingSessions(
        boot: String, isAlive: (LockHolder) -> Bool
    ) -> (kept: [CaptureSession], ended: [CaptureSession]) {
        guard boot == self.boot else { return ([], sessions) }
        var (kept, ended): ([CaptureSession], [CaptureSession]) = ([], [])
        for session in sessions {
            let stays =
                session.isDetached
                || (session.owner.pid > 0 && session.owner.startTime != nil && isAlive(session.owner))
            if stays { kept.append(session) } else { ended.append(session) }
        }
        return (kept, ended)
    }

    /// The locks that are still locks at that time of that boot, and those that are not, with why.
    ///
    /// - Parameter isAlive: whether the process of that number that started then still lives; asked for locks without a
    ///   lease.
    public func survivors(
        boot: String, now: Instant, isAlive: (LockHolder) -> Bool
    ) -> (kept: [Lock], ended: [(lock: Lock, cause: LockTable.EndCause)]) {
        guard boot == self.boot else { return ([], locks.map { ($0, .holderExited) }) }
        var kept: [Lock] = []
        var ended: [(Lock, LockTable.EndCause)] = []
        for var lock in locks {
            if let lease = lock.lease {
                // Never longer than was asked for, whatever the file says.
                let expires = min(lock.expires ?? now, now.advanced(byNanoseconds: max(0, lease)))
                lock.expires = expires
                if expires > now { kept.append(lock) } else { ended.append((lock, .leaseExpired)) }
            } else if lock.holder.pid > 0, lock.holder.startTime != nil, isAlive(lock.holder) {
                kept.append(lock)
            } else {
                ended.append((lock, .holderExited))
            }
        }
        return (kept, ended)
    }

    // MARK: JSON

    /// Why something is no kept state of this version.
    public struct Unreadable: Error, Hashable, CustomStringConvertible {
        public let description: String
    }

    public var json: JSONValue {
        .members([
            "version": .integer(Self.version), "boot": .string(boot), "epoch": .string(epoch),
            "fence": JSONValue(fence), "locks": .array(locks.map(\.keptJSON)), "decided": JSONValue(decided),
            "sessions": .array(sessions.map(\.keptJSON)), "exposures": .array(exposures.map(\.keptJSON)),
            "standIns": standIns.isEmpty ? nil : .object(standIns),
        ])
    }

    /// - Throws: ``Unreadable`` unless every member is as this version writes it.
    public init(json: JSONValue) throws(Unreadable) {
        guard let version = json["version"]?.integer else { throw Unreadable(description: "it has no version") }
        guard version == Self.version else {
            throw Unreadable(description: "it has version \(version); this program supports \(Self.version)")
        }
        guard let boot = json["boot"]?.string, let epoch = json["epoch"]?.string, let fence = Self.fence(of: json),
            let entries = json["locks"]?.array
        else { throw Unreadable(description: "a member is missing") }
        self.boot = boot
        self.epoch = epoch
        self.fence = fence
        locks = []
        for entry in entries {
            guard let lock = Lock(keptJSON: entry) else { throw Unreadable(description: "one of its locks is invalid") }
            locks.append(lock)
        }
        // Not there in files of versions that decided nothing.
        decided = json["decided"]?.array?.compactMap(\.string) ?? []
        exposures = json["exposures"]?.array?.compactMap(KeptExposure.init(keptJSON:)) ?? []
        standIns = (json["standIns"]?.object ?? [:]).filter { $0.value.object != nil }
        for entry in json["sessions"]?.array ?? [] {
            if let session = CaptureSession(keptJSON: entry) {
                sessions.append(session)
            } else {
                unreadableSessions.append(entry["id"]?.string.flatMap { DeviceID.isValid($0) ? $0 : nil } ?? "unknown")
            }
        }
    }

    /// The fence counter of a file, also of one that is otherwise not readable.
    public static func fence(of json: JSONValue) -> UInt64? { json["fence"]?.integer.flatMap { UInt64(exactly: $0) } }
}

extension Lock {
    fileprivate var keptJSON: JSONValue {
        .members([
            "id": .string(id), "token": .string(tokenHash), "devices": JSONValue(devices), "fence": JSONValue(fence),
            "note": note.map(JSONValue.string), "since": JSONValue(since), "lease": lease.map { JSONValue($0) },
            "expires": expires.map { JSONValue($0) }, "request": request.map(JSONValue.string),
            "holder": holder.keptJSON,
        ])
    }

    fileprivate init?(keptJSON json: JSONValue) {
        guard let id = json["id"]?.string, let tokenHash = json["token"]?.string, !tokenHash.isEmpty,
            let devices = json["devices"]?.array?.compactMap(\.string), !devices.isEmpty,
            devices.count == json["devices"]?.array?.count, let fence = KeptState.fence(of: json),
            let since = json["since"]?.integer, let holder = json["holder"].flatMap(LockHolder.init(keptJSON:))
        else { return nil }
        let lease = json["lease"]?.integer
        let expires = json["expires"]?.integer
        guard (lease == nil) == (expires == nil) else { return nil }
        self.init(
            id: id, tokenHash: tokenHash, devices: devices, holder: holder, fence: fence, note: json["note"]?.string,
            since: since, lease: lease, expires: expires, request: json["request"]?.string)
    }
}

extension LockHolder {
    /// {uid, gid, pid, startTime?, name}, for a coordinator that comes after this one.
    public var keptJSON: JSONValue {
        .members([
            "uid": JSONValue(uid), "gid": JSONValue(gid), "pid": JSONValue(pid),
            "startTime": startTime.map { JSONValue($0) }, "name": .string(name),
        ])
    }

    /// Reads what ``keptJSON`` writes; nil when it is something else.
    public init?(keptJSON json: JSONValue) {
        guard let uid = json["uid"]?.integer.flatMap({ UInt32(exactly: $0) }),
            let gid = json["gid"]?.integer.flatMap({ UInt32(exactly: $0) }),
            let pid = json["pid"]?.integer.flatMap({ Int32(exactly: $0) }), let name = json["name"]?.string
        else { return nil }
        let startTime = json["startTime"]?.integer.flatMap { UInt64(exactly: $0) }
        self.init(uid: uid, gid: gid, pid: pid, startTime: startTime, name: name)
    }
}
