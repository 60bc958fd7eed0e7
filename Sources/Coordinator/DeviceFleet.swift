import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO
import Logging
import ZeroMQ

/// All devices with their workers: who there is, and the conversation over `internal/workers.sock`.
final class DeviceFleet {
    private let loop: Loop
    private let server: ServerSocket
    private let logger: Logger
    /// For workers that are started from now on.
    var launch: Worker.Launch
    private(set) var workers: [String: Worker] = [:]
    /// Workers of devices that were taken away, until they have ended.
    private var leaving: [Worker] = []
    /// Told of every change of a device; the worker is nil when it is gone.
    var onChange: ((_ device: String, Worker?) -> Void)?
    /// Told of what happens to a device.
    var onEvent: ((_ device: String, _ event: String, _ members: [String: JSONValue]) -> Void)?
    /// Told when a worker has started anew.
    var onHello: ((Worker) -> Void)?
    private var whenAllHaveEnded: (() -> Void)?

    init(_ loop: Loop, _ server: ServerSocket, launch: Worker.Launch, logger: Logger) {
        self.loop = loop
        self.server = server
        self.launch = launch
        self.logger = logger
        loop.watch(.socket(server.socket)) { [weak self] in self?.readReports() }
    }

    /// The ids, in the order of the table that people see: sorted as text, numbers by value (`cam2` before `cam10`).
    var deviceIDs: [String] {
        workers.keys.sorted { left, right in (left.utf8.count, left) < (right.utf8.count, right) }
    }

    /// Starts workers for devices that are new, and ends those of devices that are not among these.
    func setDevices(_ devices: [ManagedDevice]) {
        var wanted: [String: ManagedDevice] = [:]
        for device in devices {
            if let other = wanted[device.id] {
                logger.error(
                    "two devices have one id; give one of them an alias",
                    metadata: [
                        LogKeys.deviceID: "\(device.id)",
                        "uniqueIDs": "\(other.identity.uniqueID), \(device.identity.uniqueID)",
                    ])
                continue
            }
            wanted[device.id] = device
        }
        for (id, worker) in workers where wanted[id] != worker.device { remove(id, worker) }
        for (id, device) in wanted where workers[id] == nil { add(device) }
    }

    private func add(_ device: ManagedDevice) {
        let worker = Worker(
            device, loop, launch: launch, logger: logger,
            send: { [weak self] connection, order in
                (try? self?.server.socket.send(frames: [connection, order.json.serialized])) ?? false
            },
            onHello: { [weak self] worker in self?.onHello?(worker) },
            onChange: { [weak self] worker in
                guard let self else { return }
                if workers[device.id] === worker { onChange?(device.id, worker) }
                worker.tellIfReady()
                if worker.isGone, worker.isStopped { ended(worker) }
            })
        worker.onEvent = { [weak self, weak worker] event, members in
            guard let self, let worker, workers[device.id] === worker else { return }
            onEvent?(device.id, event, members)
        }
        workers[device.id] = worker
        worker.start()
    }

    private func remove(_ id: String, _ worker: Worker) {
        workers[id] = nil
        leaving.append(worker)
        worker.stop(by: MonotonicClock.now() + 3_000_000_000)
        if worker.isGone { ended(worker) }
        onChange?(id, nil)
    }

    private func ended(_ worker: Worker) {
        // A worker that was killed leaves its socket's file.
        if workers[worker.device.id] == nil || workers[worker.device.id] === worker {
            File.remove(launch.runtimeDirectory.mediaSocket(worker.device.id))
        }
        leaving.removeAll { $0 === worker }
        tellIfAllHaveEnded()
    }

    private func tellIfAllHaveEnded() {
        guard let body = whenAllHaveEnded, leaving.isEmpty, workers.values.allSatisfy(\.isGone) else { return }
        whenAllHaveEnded = nil
        body()
    }

    /// Ends all workers; the body is called when the last one has ended, which the kill at the deadline makes sure.
    func stopAll(by deadline: Int64, then body: @escaping () -> Void) {
        whenAllHaveEnded = body
        for worker in workers.values { worker.stop(by: deadline) }
        tellIfAllHaveEnded()
    }

    private func readReports() {
        for _ in 0..<64 {
            guard let frames = try? server.socket.receive() else { return }
            guard frames.count == 2, let address = frames[1].property("Peer-Address"),
                let peer = PeerAddress(zmqPeerAddress: address), peer.uid == CurrentProcess.uid,
                let json = try? JSONValue(parsing: frames[1].bytes), let report = WorkerReport(json: json)
            else {
                logger.error("a message on the workers' socket is no report and is ignored")
                continue
            }
            let connection = Array(frames[0].bytes)
            if case .hello(let device, let uniqueID, let mediaPath) = report {
                guard let worker = workers[device], worker.device.identity.uniqueID == uniqueID else {
                    // Left over from another configuration, perhaps of a coordinator before this one.
                    logger.notice("a worker that nobody wants is ended", metadata: [LogKeys.deviceID: "\(device)"])
                    _ = try? server.socket.send(
                        frames: [connection, WorkerOrder(number: 0, fence: nil, action: .stop).json.serialized])
                    continue
                }
                worker.greeted(by: peer.pid, connection: connection, mediaPath: mediaPath)
            } else {
                workers.values.first { $0.isConnection(connection) }?.received(report)
            }
        }
    }
}
