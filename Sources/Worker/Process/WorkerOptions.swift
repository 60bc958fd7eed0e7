public import CaptureCore
public import JSON

/// How a worker is started.
public struct WorkerOptions: Sendable {
    /// The device's id, in topics and socket names.
    public var device: String
    public var runtimeDirectory: String
    /// The group that may connect to the media socket; nil: only the worker's own user.
    public var group: String?
    /// Distinct renditions that are made at the same time.
    public var renditions = 8
    /// How long the device stays open when no client wants it any more.
    public var idleCloseMilliseconds = 2000
    /// How long a stream may go without a frame before the device is opened anew; 0: for ever, as a camera that waits
    /// for its trigger does.
    public var silenceLimitMilliseconds = 5000
    /// What `zoomValue` spans at most.
    public var maxZoom: Double = CameraControlMap.defaultMaxZoom
    /// Connections to the media socket, of one user and in all.
    public var connectionsPerUser = 128
    public var connections = 1024
    /// Bytes of frames that slow subscribers may hold together, in addition to the rings; nil: depends on the machine's
    /// memory.
    public var payloadBudget: Int?
    /// Bytes of the rings that one user may have; nil: depends on the memory.
    public var ringBudget: Int?
    /// What users may still have of the rings of workers that have ended.
    public var ringRemainders = RingRemainders()
    /// Bytes that frames for photos under way may have together, and their files as many; nil: as the machine's memory
    /// allows.
    public var photoBudget: Int?
    /// How long the worker runs without a coordinator.
    public var coordinatorGraceMilliseconds: Int64 = 30_000
    /// How long the device is held open for a lock that a new coordinator has not ordered.
    public var lockMemoryMilliseconds: Int64 = 5000
    /// The first access list; the coordinator may order another one. nil: only root and the worker's own user.
    public var accessList: AccessList?
    /// What an earlier process of this device had committed, as reported (`committed` of its status); nil: nothing.
    public var configuration: JSONValue?
    /// What an earlier process of this device had set for a photo and not restored (`standIn` of its status); nil:
    /// nothing.
    public var standIn: JSONValue?
    /// A script of faults ([{at, fault, …}]) that begins with the process; nil: none.
    public var faults: JSONValue?

    public init(device: String, runtimeDirectory: String) {
        self.device = device
        self.runtimeDirectory = runtimeDirectory
    }
}
