import BusProtocol
import BusServer
import JSON
import Logging
import ZeroMQ

/// Reads a rig's devices and tolerance from the bus (`state/rig/<name>/`). The last value is kept for a while without a
/// coordinator.
final class RigReader {
    struct Device: Hashable {
        /// nil: the device is not connected.
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

    /// Called when the rig has changed.
    var onChange: ((Rig) -> Void)?
    /// Called when the rig no longer exists.
    var onGone: (() -> Void)?
    /// Called when no coordinator has published the rig for the whole grace period.
    var onAbandoned: (() -> Void)?

    private static let messagesPerTurn = 32

    /// - Parameter graceMilliseconds: the grace period without a coordinator.
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
            // The next coordinator publishes the rig at once; if it does not know the rig, it publishes nothing.
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
            guard let rig = Rig(value) else {
                logger.error("the rig's published state can't be read and is ignored")
                continue
            }
            loop.cancel(graceTimer)
            guard rig != self.rig else { continue }
            self.rig = rig
            onChange?(rig)
        }
    }
}

extension RigReader.Rig {
    fileprivate init?(_ json: JSONValue) {
        guard let listed = json["devices"]?.array, !listed.isEmpty else { return nil }
        devices = []
        for device in listed {
            guard let uniqueID = device["uniqueID"]?.string else { return nil }
            let id = device["id"]?.string.flatMap { DeviceID.isValid($0) ? $0 : nil }
            devices.append(RigReader.Device(id: id, uniqueID: uniqueID))
        }
        tolerance = json["tolerance"]?.double.flatMap { (0...10_000).contains($0) ? Int64($0 * 1_000_000) : nil }
    }
}
