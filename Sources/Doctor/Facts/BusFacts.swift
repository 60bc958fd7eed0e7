public import JSON

/// The report of the bus.
public struct BusReport: Hashable, Sendable {
    public enum State: Hashable, Sendable {
        case answered
        /// Nobody answers anywhere.
        case absent
        /// Somebody is there and does not answer, or something else than a bus; the text says what came of it.
        case unusable(String)
    }

    public var state = State.absent
    /// The runtime directory where it was asked.
    public var directory: String?
    /// The process behind its command socket; 0: one that can't be seen from here.
    public var pid: Int32?
    public var version: String?
    /// As `device.list` describes them.
    public var devices: [JSONValue] = []
    /// As `rig.list` describes them.
    public var rigs: [JSONValue] = []
    /// As `device.who` answers of them.
    public var usages: [JSONValue] = []
    /// What this user may do with cameras; nil: the bus knows no permission.
    public var videoPermission: String?
    /// Requests for permission that wait for an answer, as far as this user may know.
    public var waitingRequests = 0
    /// The machine's pressure, {level, factors}; nil: the bus doesn't watch it.
    public var pressure: JSONValue?
    /// By factor, how the bus learns of it: `trigger`, `reading` or `none`.
    public var pressureSources: [String: String] = [:]

    public init(state: State = .absent) { self.state = state }

    var isAnswering: Bool { state == .answered }

    /// The ids of devices that are no virtual ones.
    var hardware: [JSONValue] { devices.filter { $0["type"]?.string != "virtual" } }
    /// The processes of its own that have devices open.
    var workers: Set<Int32> {
        Set(devices.compactMap { $0["worker"]?["pid"]?.integer.flatMap { Int32(exactly: $0) } })
    }
}

/// A directory where a bus is, or could be.
public struct DirectoryFact: Hashable, Sendable {
    public enum Kind: Hashable, Sendable {
        case missing, directory, link, other
        /// Its parents don't let us look.
        case hidden
    }

    public var path: String
    public var kind: Kind
    public var mode: UInt32
    public var uid: UInt32
    public var gid: UInt32
    /// `command.sock` in it.
    public var socket: Socket
    /// The process that holds the coordinator's lock file; nil: nobody, or not to be seen.
    public var lockHolder: Int32?

    public enum Socket: Hashable, Sendable {
        case missing
        /// Somebody accepts connections.
        case live
        /// The file is there, and nobody behind it.
        case dead
        /// We may not connect, or not look.
        case forbidden
    }

    public init(
        path: String, kind: Kind = .directory, mode: UInt32 = 0o700, uid: UInt32 = 0, gid: UInt32 = 0,
        socket: Socket = .missing, lockHolder: Int32? = nil
    ) {
        self.path = path
        self.kind = kind
        self.mode = mode
        self.uid = uid
        self.gid = gid
        self.socket = socket
        self.lockHolder = lockHolder
    }

    /// The one of the system service.
    var isSystem: Bool { path == "/run/camerabus" }
}

/// The system service.
public struct ServiceFacts: Hashable, Sendable {
    /// Where its unit is installed.
    public var unit: String?
    /// systemd runs the machine.
    public var hasSystemd = false
    /// Its user's number; nil: there is no such user.
    public var uid: UInt32?

    public init(unit: String? = nil, hasSystemd: Bool = false) {
        self.unit = unit
        self.hasSystemd = hasSystemd
    }
}

/// What the bus, or who would start one, may use.
public struct LimitFacts: Hashable, Sendable {
    /// Descriptors that may be open, after they have been raised as far as possible; nil: unlimited or unknown.
    public var descriptors: UInt64?
    /// Bytes of address space; nil: unlimited or unknown.
    public var addressSpace: UInt64?
    /// Bytes of memory that are free or can be freed; nil: unknown.
    public var memoryAvailable: UInt64?
    /// Bytes of memory that the control group may have, by its path; nil: unlimited or unknown.
    public var memoryLimit: UInt64?
    public var memoryLimitGroup: String?
    /// Whether that is of the bus's process, or of this one.
    public var areOfBus = false

    public init() {}
}

/// Room on a file system.
public struct SpaceFact: Hashable, Sendable {
    public var path: String
    /// Bytes that an ordinary user can still write.
    public var free: UInt64
    /// Files that can still be made; nil: the file system has no such limit.
    public var freeFiles: UInt64?

    public init(path: String, free: UInt64, freeFiles: UInt64? = nil) {
        self.path = path
        self.free = free
        self.freeFiles = freeFiles
    }
}
