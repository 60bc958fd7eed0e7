public import BusProtocol
public import JSON
import LinuxIO
import Synchronization
import ZeroMQ

/// As much of a bus as a client's tests need: real sockets in a directory of its own, answers as the test says.
///
/// It answers `bus.hello`, `bus.ping`, `bus.snapshot`, `device.list` and `device.get` from the state that it was given,
/// unless the test's own answers come first; acknowledges subscriptions as the protocol says; publishes what it is told
/// to.
public final class FakeBus: Sendable {
    public enum Reply: Sendable {
        case result(JSONValue, attachments: [[UInt8]] = [])
        case error(BusError)
        /// No answer.
        case nothing
    }

    /// Answers a request, now or later, once. nil: the usual answer.
    public typealias Answers = @Sendable (_ request: Request, _ respond: @escaping @Sendable (Reply) -> Void) -> Bool

    /// The runtime directory.
    public var path: String { home.path }
    private let home: TemporaryDirectory
    private let core: FakeBusCore
    private let thread = Mutex<NamedThread?>(nil)

    /// - Parameter answers: gets each request first; false: the usual answer is given.
    public init(devices: [String] = ["cam0", "cam1"], answers: @escaping Answers = { _, _ in false }) throws {
        home = try TemporaryDirectory()
        core = try FakeBusCore(path: home.path, devices: devices, answers: answers)
        core.store.withLock { store in
            store.state["state/bus/"] = ["epoch": "e1", "version": "0", "devices": JSONValue(devices), "started": 0]
            for device in devices { store.state["state/device/\(device)/"] = Self.device(device) }
        }
        try PrivateDirectory.make("\(home.path)/media", mode: 0o700)
        try start()
    }

    deinit { stop() }

    /// A device's value, virtual and closed.
    public static func device(_ id: String) -> JSONValue {
        [
            "id": .string(id), "uniqueID": .string("virtual-\(id)"), "name": .string("Virtual camera \(id)"),
            "mediaType": "video", "type": "virtual", "position": "unspecified", "node": .null, "driver": "virtual",
            "bus": "virtual", "connected": true, "isOpen": false, "isStreaming": false, "stream": .null,
            "activeFormat": ["id": "f1", "pixelFormat": "YUYV", "width": 640, "height": 480], "frameDuration": "1/30",
            "frameRate": 30, "generation": 1, "controls": ["brightness": 128], "asOf": 1, "lock": .null,
            "worker": ["pid": 4711, "state": "running", "restarts": 0, "busySince": .null], "error": .null,
        ]
    }

    // MARK: What came

    /// All requests so far.
    public var requests: [Request] { core.store.withLock(\.requests) }

    /// What is subscribed to at this moment, on all sockets, in the order in which it came.
    public var subscriptions: [String] { core.store.withLock(\.subscriptions) }

    // MARK: What it does

    /// Whether subscriptions to `ack/` topics are answered.
    public var acknowledges: Bool {
        get { core.store.withLock(\.acknowledges) }
        set { core.store.withLock { $0.acknowledges = newValue } }
    }

    /// Whether a heartbeat stands before each of these answers: a client that asks whether somebody is there then has
    /// one that is not old, however slow the machine is.
    public var givesSignOfLife: Bool {
        get { core.store.withLock(\.givesSignOfLife) }
        set { core.store.withLock { $0.givesSignOfLife = newValue } }
    }

    /// Changes state and publishes it, unless `isLost`.
    public func setState(_ topic: String, _ value: JSONValue, isLost: Bool = false) {
        let message = core.store.withLock { store in
            store.sequence += 1
            let previous = store.last[topic] ?? 0
            store.last[topic] = store.sequence
            store.state[topic] = value.isNull ? nil : value
            return Announcement.state(
                epoch: store.epoch, sequence: UInt64(store.sequence), previous: UInt64(previous), value: value)
        }
        if !isLost { publish(topic, message) }
    }

    /// Publishes a heartbeat that tells the newest sequence of each state topic.
    public func beat() {
        let message = core.store.withLock { store in
            Announcement.heartbeat(
                epoch: store.epoch, latest: store.last.mapValues { UInt64($0) }, monotonic: MonotonicClock.now())
        }
        publish("heartbeat/", message)
    }

    /// Publishes on the events socket.
    public func publish(_ topic: String, _ message: [UInt8]) {
        core.post { _ = try? $0.events.send(frames: [Array(topic.utf8), message]) }
    }

    /// Publishes on a device's media socket, on the topic `frame/<device>/<rendition>/`; without payload: in place of a
    /// frame.
    public func publishFrame(_ device: String, _ rendition: String, header: [UInt8], payload: [UInt8]?) {
        let frames = [Topic.frame(device, rendition).bytes, header] + (payload.map { [$0] } ?? [])
        core.post { _ = try? $0.media[device]?.send(frames: frames) }
    }

    /// Publishes anything on a device's media socket.
    public func publishMedia(_ device: String, _ topic: String, _ message: [UInt8]) {
        core.post { _ = try? $0.media[device]?.send(frames: [Array(topic.utf8), message]) }
    }

    /// A header as a worker would write it, of a gray picture of 2 by 2.
    public static func header(
        _ device: String, _ rendition: String, stream: String = "s1", sequence: Int64, keyframe: Bool? = nil
    ) -> [UInt8] {
        let optional: [String: JSONValue] = keyframe.map { ["keyframe": .bool($0)] } ?? [:]
        return JSONValue.object(
            optional.merging([
                "v": 1, "device": .string(device), "rendition": .string(rendition), "stream": .string(stream),
                "sequence": .integer(sequence), "captureSequence": .integer(sequence), "generation": 1,
                "timestamp": [
                    "monotonic": .integer(sequence * 33_333_333), "realtime": .integer(1_700_000_000_000_000_000),
                    "source": "endOfFrame",
                ],
                "format": "GREY", "width": 2, "height": 2, "planes": [["offset": 0, "stride": 2, "bytes": 4]],
                "orientation": 0, "mirrored": false, "dropped": 0,
            ]) { $1 }
        ).serialized
    }

    /// Ends it, like a process that dies: connections are gone.
    public func stop() {
        core.post { $0.isStopping = true }
        thread.withLock { thread in
            thread?.join()
            thread = nil
        }
    }

    /// Starts it again after ``stop()``, with a new epoch.
    public func restart() throws {
        core.store.withLock { store in
            store.epoch += "+"
            store.sequence = 0
            store.last = [:]
            store.subscriptions = []
        }
        try start()
    }

    private func start() throws {
        let core = core
        let started = try NamedThread(name: "fake-bus") { core.run() }
        thread.withLock { $0 = started }
        // Until its sockets are bound nobody can connect.
        try core.waitUntilBound()
    }
}
