import BusProtocol
import BusServer
import JSON
import Logging
import ZeroMQ

/// What a rig is, as the bus tells it (`state/rig/<name>/`). It outlives the coordinator, for a while.
final class RigWatch {
    struct Device: Hashable {
        /// nil: the device is not there.
        var id: String?
        var uniqueID: String

        var title: String { id ?? uniqueID }
    }

    struct Rig: Hashable {
        /// The lead first.
        var devices: [Device]
        /// Nanoseconds; nil: half of the lead's interval.
        var tolerance: Int64?
    }

    private let loop: Loop
    private let socket: Socket
    private let monitor: Socket
    private let logger: Logger
    private let topic: [UInt8]
    private let grace: Int64
    private var graceTimer: Loop.Token?
    private(set) var rig: Rig?

    /// The rig is another now.
    var onChange: ((Rig) -> Void)?
    /// There is no such rig any more.
    var onGone: (() -> Void)?
    /// Nobody has told of the rig for so long that nobody will.
    var onAbandoned: (() -> Void)?

    private static let messagesPerTurn = 32

    /// - Parameter graceMilliseconds: how long this goes on without a coordinator.
    init(
        _ context: Context, _ loop: Loop, _ directory: RuntimeDirectory, rig name: String, graceMilliseconds: Int64,
        logger: Logger
    ) throws(ZeroMQError) {
        self.loop = loop
        self.logger = logger
        grace = graceMilliseconds
        let topic = Topic.state(.rig(name)).text
        self.topic = Array(topic.utf8)
        socket = try Socket(context, .subscribe)
        try socket.set(.receiveHighWaterMark, 1000)
        try socket.set(.reconnectInterval, 100)
        try socket.setMaximumMessageBytes(BusLimits.maxMessageBytes)
        try socket.subscribe(topic)
        let endpoint = "inproc://monitor/events"
        try socket.startMonitor(at: endpoint, events: [.disconnected])
        monitor = try Socket(context, .pair)
        try monitor.connect(endpoint)
        loop.watch(.socket(monitor)) { [weak self] in self?.readMonitor() }
        loop.watch(.socket(socket)) { [weak self] in self?.read() }
        try socket.connect(RuntimeDirectory.endpoint(directory.eventsSocket))
        startGrace()
    }

    private func readMonitor() {
        while let frames = try? monitor.receive() {
            // The next one tells of the rig first thing; if it knows of none, it says nothing at all.
            if MonitorEvent(frames)?.kind == .disconnected { startGrace() }
        }
    }

    private func startGrace() {
        loop.cancel(graceTimer)
        graceTimer = loop.schedule(afterMilliseconds: grace) { [weak self] in self?.onAbandoned?() }
    }

    private func read() {
        for _ in 0..<Self.messagesPerTurn {
            guard let frames = try? socket.receive() else { return }
            guard frames.count == 2, frames[0].bytes.elementsEqual(topic),
                let value = (try? JSONValue(parsing: frames[1].bytes))?["value"]
            else { continue }
            guard !value.isNull else {
                onGone?()
                return
            }
            guard let told = Rig(value) else {
                logger.error("what the bus says of the rig can't be read and is ignored")
                continue
            }
            loop.cancel(graceTimer)
            guard told != rig else { continue }
            rig = told
            onChange?(told)
        }
    }
}

extension RigWatch.Rig {
    fileprivate init?(_ json: JSONValue) {
        guard let listed = json["devices"]?.array, !listed.isEmpty else { return nil }
        devices = []
        for device in listed {
            guard let uniqueID = device["uniqueID"]?.string else { return nil }
            let id = device["id"]?.string.flatMap { DeviceID.isValid($0) ? $0 : nil }
            devices.append(RigWatch.Device(id: id, uniqueID: uniqueID))
        }
        tolerance = json["tolerance"]?.double.flatMap { (0...10_000).contains($0) ? Int64($0 * 1_000_000) : nil }
    }
}
