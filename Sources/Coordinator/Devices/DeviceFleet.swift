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
    /// Who may come in at a device's doors, for its first moments.
    var doors: ((DeviceIdentity) -> AccessList?)?
    /// Told when somebody came to a device's doors in vain.
    var onRefused: ((DeviceIdentity, _ uid: UInt32, _ gid: UInt32, _ pid: Int32) -> Void)?
    /// Told when somebody came to a rig's door in vain.
    var onSetRefused: ((_ uid: UInt32, _ gid: UInt32, _ pid: Int32) -> Void)?
    /// Told how far a photo is, with its file if that was wanted and is finished.
    var onPhoto: ((Worker, Worker.PhotoReport, _ file: Message?) -> Void)?
    /// Told when a worker has started anew.
    var onHello: ((Worker) -> Void)?
    /// Told of devices that are going to have another id, before anything else is.
    var onRename: (([(device: String, name: String)]) -> Void)?
    /// Whether a rig's matcher still has that name, and with it the socket that a worker would have.
    var isMatcher: ((_ name: String) -> Bool)?
    /// Told when a worker has ended and let go of its name.
    var onFree: (() -> Void)?
    /// What was last committed on a device, for its first worker.
    var committed: ((_ uniqueID: String) -> JSONValue?)?
    /// What an earlier worker had set on a device for a photo, likewise.
    var standIn: ((_ uniqueID: String) -> JSONValue?)?
    /// Told of what is set on a device for a photo; nil: nothing any more.
    var onStandIn: ((_ uniqueID: String, JSONValue?) -> Void)?
    var order = DeviceOrder(configured: [])
    /// Which transactions over several devices are to stay, of those that a worker can't know the end of.
    var isDecided: ((_ transaction: String) -> Bool)?
    /// Told of the highest fence that a worker has seen.
    var onFence: ((UInt64) -> Void)?
    private var whenAllHaveEnded: (() -> Void)?
    /// What workers said before it was known which devices there are: of each connection the last of each kind.
    private var early: [[UInt8]: Early] = [:]
    private var isSettled = false

    private struct Early {
        var pid: Int32
        var hello: WorkerReport
        var status: WorkerReport?
        var description: WorkerReport?
    }

    private static let maximumEarly = 256

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

    /// Whether a worker has that name, or is about to end under it.
    func hasProcess(_ name: String) -> Bool {
        workers[name]?.hasBegun ?? false || leaving.contains { $0.device.id == name }
    }

    /// Starts the workers whose names others had.
    func startWaiting() { for worker in workers.values { startIfFree(worker) } }

    /// Starts workers for devices that are new, ends those of devices that are not among these, and tells the others of what
    /// has changed: a device with another id gets another worker, and keeps everything.
    ///
    /// - Parameters:
    ///   - isComplete: false when there may be more: workers that were left over for others are then neither taken nor ended.
    ///   - removed: nodes that have gone for a while at least, so that whoever had one of them has been away.
    func setDevices(_ devices: [ManagedDevice], isComplete: Bool, removed: Set<String> = []) {
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
            if wish.source.needsNewWorker(after: device.source) {
                remove(id, worker)
            } else if wish.id != id {
                renamed.append((worker, wish))
            } else {
                let wasRemoved = device.identity.node.map(removed.contains) ?? false
                worker.update(wish, isNew: wish.isPlugged && (!device.isPlugged || wasRemoved))
            }
        }
        onRename?(renamed.map { ($0.old.device.id, $0.device.id) })
        // An id that another device takes is not gone, nor is what that one brings along.
        let taken = Set(renamed.map(\.device.id))
        for (old, _) in renamed { remove(old.device.id, old, isTaken: taken.contains(old.device.id)) }
        for (old, device) in renamed { add(device, former: old) }
        for (id, device) in wanted where workers[id] == nil { add(device) }
        if isComplete { isSettled = true }
        hearEarly()
    }

    private func hearEarly() {
        for (connection, said) in early where isSettled || isWanted(said.hello) {
            early[connection] = nil
            received(said.hello, by: said.pid, connection)
            for report in [said.status, said.description].compactMap({ $0 }) {
                received(report, by: said.pid, connection)
            }
        }
    }

    private func isWanted(_ report: WorkerReport) -> Bool {
        guard case .hello(let device, let uniqueID, _, _, _) = report else { return false }
        return workers[device]?.device.identity.uniqueID == uniqueID
    }

    private func add(_ device: ManagedDevice, former: Worker? = nil) {
        let worker = Worker(
            device, committed: committed?(device.identity.uniqueID), standIn: standIn?(device.identity.uniqueID),
            former: former, loop, launch: launch, logger: logger,
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
        worker.onPhoto = { [weak self, weak worker] report, file in
            guard let self, let worker, workers[device.id] === worker else { return }
            onPhoto?(worker, report, file)
        }
        worker.onStandIn = { [weak self] in self?.onStandIn?(device.identity.uniqueID, $0) }
        worker.doors = { [weak self] in self?.doors?(device.identity) }
        worker.onRefused = { [weak self] uid, gid, pid in self?.onRefused?(device.identity, uid, gid, pid) }
        workers[device.id] = worker
        startIfFree(worker)
        if !worker.hasBegun { onChange?(device.id, worker) }
    }

    // Another worker of the device, or another process under its id, has first to let go of it.
    private func startIfFree(_ worker: Worker) {
        guard !worker.hasBegun else { return }
        let device = worker.device
        let isTaken = leaving.contains {
            $0.device.id == device.id || $0.device.identity.uniqueID == device.identity.uniqueID
        }
        if !isTaken, !(isMatcher?(device.id) ?? false) { worker.start() }
    }

    private func remove(_ id: String, _ worker: Worker, isTaken: Bool = false) {
        workers[id] = nil
        leaving.append(worker)
        worker.stop(by: MonotonicClock.now() + 3_000_000_000)
        if worker.isGone { ended(worker) }
        if !isTaken { onChange?(id, nil) }
    }

    private func ended(_ worker: Worker) {
        // A worker that was killed leaves its sockets' files.
        if workers[worker.device.id] == nil || workers[worker.device.id] === worker {
            if worker.hasBegun { File.remove(launch.runtimeDirectory.mediaSocket(worker.device.id)) }
            File.remove(launch.runtimeDirectory.ringSocket(worker.device.id))
            if case .client(let source) = worker.device.source {
                File.remove(launch.runtimeDirectory.sourceSocket(of: source))
            }
        }
        leaving.removeAll { $0 === worker }
        startWaiting()
        onFree?()
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
        for worker in workers.values {
            worker.stop(by: deadline)
            // One that was to be started again in a moment has no end to come.
            if worker.isGone { ended(worker) }
        }
        tellIfAllHaveEnded()
    }

    private func readReports() {
        for _ in 0..<64 {
            guard let frames = try? server.socket.receive() else { return }
            guard frames.count == 2 || frames.count == 3, let address = frames[1].property("Peer-Address"),
                let peer = PeerAddress(zmqPeerAddress: address), peer.uid == CurrentProcess.uid,
                let json = try? JSONValue(parsing: frames[1].bytes), let report = WorkerReport(json: json),
                frames.count == 2 || report.mayHaveFile
            else {
                logger.error("a message on the workers' socket is no report and is ignored")
                continue
            }
            received(report, by: peer.pid, Array(frames[0].bytes), file: frames.count == 3 ? frames[2] : nil)
        }
    }

    private func received(_ report: WorkerReport, by pid: Int32, _ connection: [UInt8], file: Message? = nil) {
        guard case .hello(let device, _, let mediaPath, let link, let inDoubt) = report else {
            if early[connection] != nil { return keepEarly(report, connection) }
            if case .status(let value) = report, let fence = value["fence"]?.integer.flatMap({ UInt64(exactly: $0) }) {
                onFence?(fence)
            }
            guard let worker = workers.values.first(where: { $0.isConnection(connection) }) else {
                // A matcher's, which says nothing else here.
                if case .refused(let uid, let gid, let pid) = report { onSetRefused?(uid, gid, pid) }
                return
            }
            worker.received(report, file: file)
            return
        }
        if isWanted(report), let worker = workers[device] {
            worker.greeted(by: pid, connection: connection, mediaPath: mediaPath, link: link)
            for transaction in inDoubt { settle(transaction, worker) }
        } else if isSettled {
            // Left over from another configuration, perhaps of a coordinator before this one.
            logger.notice("a worker that nobody wants is ended", metadata: [LogKeys.deviceID: "\(device)"])
            for action in inDoubt.map(settlement) + [.stop] {
                let order = WorkerOrder(number: 0, fence: nil, action: action, link: link)
                _ = try? server.socket.send(frames: [connection, order.json.serialized])
            }
        } else if early.count < Self.maximumEarly {
            early[connection] = Early(pid: pid, hello: report)
        }
    }

    private func keepEarly(_ report: WorkerReport, _ connection: [UInt8]) {
        switch report {
        case .description: early[connection]?.description = report
        case .status: early[connection]?.status = report
        case .hello, .reply, .event, .alive, .refused, .photo: break
        }
    }

    // A change over several devices that the coordinator before this one died in.
    private func settle(_ transaction: String, _ worker: Worker) {
        let action = settlement(transaction)
        logger.notice(
            "a change that was left unfinished is settled",
            metadata: [
                LogKeys.deviceID: "\(worker.device.id)", "stays": "\(action == .finish(transaction: transaction))",
            ])
        worker.doubts += 1
        worker.order(action) { [logger] result in
            worker.doubts -= 1
            guard case .failure(let error) = result else { return }
            logger.error(
                "a change that was left unfinished could not be settled",
                metadata: [LogKeys.deviceID: "\(worker.device.id)", "error": "\(error.message)"])
        }
    }

    private func settlement(_ transaction: String) -> WorkerOrder.Action {
        isDecided?(transaction) == true ? .finish(transaction: transaction) : .rollBack(transaction: transaction)
    }
}

extension WorkerReport {
    /// Whether a further frame of its message may be a photo's file.
    fileprivate var mayHaveFile: Bool {
        if case .photo(_, .processed, _) = self { true } else { false }
    }
}
