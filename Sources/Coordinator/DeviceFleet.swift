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
    /// Told when a worker has started anew.
    var onHello: ((Worker) -> Void)?
    /// Told of devices that are going to have another id, before anything else is.
    var onRename: (([(device: String, name: String)]) -> Void)?
    /// What was last committed on a device, for its first worker.
    var committed: ((_ uniqueID: String) -> JSONValue?)?
    var order = DeviceOrder(configured: [])
    private var whenAllHaveEnded: (() -> Void)?

    init(_ loop: Loop, _ server: ServerSocket, launch: Worker.Launch, logger: Logger) {
        self.loop = loop
        self.server = server
        self.launch = launch
        self.logger = logger
        loop.watch(.socket(server.socket)) { [weak self] in self?.readReports() }
    }

    /// The ids, in the order in which devices are offered: ``order``.
    var deviceIDs: [String] {
        let order = order
        return workers.values.map { (id: $0.device.id, $0.device.identity) }
            .sorted { order.precedes($0, $1) }.map(\.id)
    }

    /// The worker of the device with that `uniqueID`.
    func worker(of uniqueID: String) -> Worker? { workers.values.first { $0.device.identity.uniqueID == uniqueID } }

    /// Starts workers for devices that are new, ends those of devices that are not among these, and tells the others of what
    /// has changed: a device with another id gets another worker, and keeps everything.
    ///
    /// - Parameter removed: nodes that have gone for a while at least, so that whoever had one of them has been away.
    func setDevices(_ devices: [ManagedDevice], removed: Set<String> = []) {
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
        let unique = Dictionary(wanted.values.map { ($0.identity.uniqueID, $0) }) { first, _ in first }
        var renamed: [(old: Worker, device: ManagedDevice)] = []
        for (id, worker) in workers {
            let device = worker.device
            guard let wish = unique[device.identity.uniqueID] else {
                remove(id, worker)
                continue
            }
            if wish.id != id {
                renamed.append((worker, wish))
            } else {
                let wasRemoved = device.identity.node.map(removed.contains) ?? false
                worker.update(wish, isNew: wish.isPlugged && (!device.isPlugged || wasRemoved))
            }
        }
        onRename?(renamed.map { ($0.old.device.id, $0.device.id) })
        for (old, _) in renamed { remove(old.device.id, old) }
        for (old, device) in renamed { add(device, former: old) }
        for (id, device) in wanted where workers[id] == nil { add(device) }
    }

    private func add(_ device: ManagedDevice, former: Worker? = nil) {
        let worker = Worker(
            device, committed: committed?(device.identity.uniqueID), former: former, loop, launch: launch,
            logger: logger,
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
        workers[device.id] = worker
        startIfFree(worker)
        if !worker.hasBegun { onChange?(device.id, worker) }
    }

    // Another worker of the device, or under its id, has first to let go of it.
    private func startIfFree(_ worker: Worker) {
        let device = worker.device
        let isTaken = leaving.contains {
            $0.device.id == device.id || $0.device.identity.uniqueID == device.identity.uniqueID
        }
        if !worker.hasBegun, !isTaken { worker.start() }
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
        for waiting in workers.values { startIfFree(waiting) }
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
