public import JSON

/// Who holds a lock, or waits for one: a process, as the kernel names it.
public struct LockHolder: Hashable, Sendable {
    public var uid: UInt32
    public var gid: UInt32
    /// 0 where the process isn't known on this side (another PID namespace, a remote peer).
    public var pid: Int32
    /// When the process started, in clock ticks after boot (`/proc/<pid>/stat` field 22), against reuse of the number;
    /// nil: unknown.
    public var startTime: UInt64?
    /// What the client calls itself. For people: nothing is decided by it.
    public var name: String

    public init(uid: UInt32, gid: UInt32, pid: Int32, startTime: UInt64? = nil, name: String) {
        self.uid = uid
        self.gid = gid
        self.pid = pid
        self.startTime = startTime
        self.name = name
    }

    /// {uid, gid, pid, name}, as replies and state show it.
    public var json: JSONValue {
        .object(["uid": JSONValue(uid), "gid": JSONValue(gid), "pid": JSONValue(shownPID), "name": .string(name)])
    }

    /// The process as others are told of it; 0 for who is on another machine: its gateway's is not who holds.
    public var shownPID: Int32 { RemoteUser.uids.contains(uid) ? 0 : pid }

    /// Whether both are the same process, whatever it calls itself. A process that isn't known here is nobody else's.
    public func isSameProcess(as other: LockHolder) -> Bool {
        pid > 0 && pid == other.pid && uid == other.uid && startTime == other.startTime
    }

    /// True if that process is this one, as far as is known here: an unknown pid is nobody's, an unknown start time
    /// anybody's.
    func isProcess(_ pid: Int32, startedAt start: UInt64?) -> Bool {
        guard pid > 0, self.pid == pid else { return false }
        guard let start, let startTime else { return true }
        return start == startTime
    }
}

/// The exclusive right to configure some devices: AVFoundation's `lockForConfiguration`, over several devices at once.
public struct Lock: Hashable, Sendable {
    /// Its public name (`state/lock/<id>/`), which gives no right.
    public var id: String
    /// A digest of the token that gives the right. The token itself is never here.
    public var tokenHash: String
    public var devices: [String]
    public var holder: LockHolder
    /// Greater than that of every lock given before.
    public var fence: UInt64
    /// What the holder says it is for.
    public var note: String?
    /// When it was granted.
    public var since: Instant
    /// Nanoseconds that it lasts unless renewed; nil: it lasts as long as its holder.
    public var lease: Int64?
    /// When the lease ends; nil without one.
    public var expires: Instant?
    /// Taken for the length of one request that came without a lock.
    public var isTransient: Bool
    /// A digest of the request that it was given to, by which the same request finds it after a restart; nil: it had no
    /// key.
    public var request: String?

    public init(
        id: String, tokenHash: String, devices: [String], holder: LockHolder, fence: UInt64, note: String? = nil,
        since: Instant, lease: Int64? = nil, expires: Instant? = nil, isTransient: Bool = false, request: String? = nil
    ) {
        self.id = id
        self.tokenHash = tokenHash
        self.devices = devices
        self.holder = holder
        self.fence = fence
        self.note = note
        self.since = since
        self.lease = lease
        self.expires = expires
        self.isTransient = isTransient
        self.request = request
    }
}

/// Somebody's wish for a lock.
public struct LockRequest: Hashable, Sendable {
    /// The caller's own number for it, unique among all that it ever makes; what comes of the request is told under it.
    public var ticket: UInt64
    /// The lock's ``Lock/id``, if it is granted.
    public var lockID: String
    /// The lock's ``Lock/tokenHash``, if it is granted. Unique.
    public var tokenHash: String
    /// All of them or none; at least one, none twice.
    public var devices: [String]
    public var holder: LockHolder
    public var note: String?
    /// Nanoseconds to wait for; 0: not at all.
    public var wait: Int64
    /// Nanoseconds that the lock lasts unless renewed; nil: as long as its holder.
    public var lease: Int64?
    public var isTransient: Bool
    /// The lock's ``Lock/request``, if it is granted.
    public var request: String?

    public init(
        ticket: UInt64, lockID: String, tokenHash: String, devices: [String], holder: LockHolder, note: String? = nil,
        wait: Int64 = 0, lease: Int64? = nil, isTransient: Bool = false, request: String? = nil
    ) {
        self.ticket = ticket
        self.lockID = lockID
        self.tokenHash = tokenHash
        self.devices = devices
        self.holder = holder
        self.note = note
        self.wait = wait
        self.lease = lease
        self.isTransient = isTransient
        self.request = request
    }
}
