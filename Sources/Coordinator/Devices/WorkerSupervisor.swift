import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO
import Logging
import ZeroMQ

/// Acts on what happens to devices and their workers.
protocol WorkerObserver: AnyObject {
    /// Something of a device has changed; without a worker the device is gone.
    func deviceChanged(_ device: String, _ worker: WorkerHandle?)
    /// A worker process has said hello, or has connected again.
    func workerGreeted(_ worker: WorkerHandle)
    /// A worker process has ended, or has connected again: it has forgotten what it was asked to get ready.
    func workerLost(_ worker: WorkerHandle)
    /// Devices get other ids. Called before anything else changes.
    ///
    /// - Returns: false: what is kept under their ids could not be written yet.
    func devicesRenamed(_ names: [(device: String, name: String)]) -> Bool
    /// A worker has seen this fence.
    func fenceSeen(_ fence: UInt64)
}

/// Processes of another kind, whose sockets have names of the same kind.
protocol SocketNameHolder: AnyObject {
    /// Whether a process has that name, or is about to end under it.
    func hasProcess(_ name: String) -> Bool
    /// Starts the processes whose names were taken.
    func startWaiting()
    /// The process with that pid has reported these counters.
    func heard(by pid: Int32, _ counters: JSONValue)
    /// What each process counts, by its name.
    var counters: [String: JSONValue] { get }
}

/// The devices with their workers: starts and ends the workers, and talks to them over `internal/workers.sock`.
final class WorkerSupervisor {
    private let loop: Loop
    private let server: ServerSocket
    private let logger: Logger
    /// For workers that are started from now on.
    var launch: WorkerHandle.Launch
    private(set) var all: [String: WorkerHandle] = [:]
    /// Workers of devices that were taken away, until they have ended.
    private var leaving: [WorkerHandle] = []
    weak var observer: (any WorkerObserver)?
    /// The matchers: a rig's socket has a name of the same kind.
    weak var matchers: (any SocketNameHolder)?
    private let lifecycle: Lifecycle
    private let events: EventSocket
    private let deviceStore: DeviceStore
    private let store: RestartStore
    private let permission: AuthorizationService
    /// Gets how far a photo is, with its file if that was asked for and is finished.
    var onPhoto: ((WorkerHandle, WorkerHandle.PhotoReport, _ file: Message?) -> Void)?
    var order = DeviceOrder(configured: [])
    private var whenAllHaveEnded: (() -> Void)?
    /// Reports of workers from before the devices were known: the last of each kind for each connection.
    private var early: [[UInt8]: Early] = [:]
    private var isSettled = false
    /// What users may still have of the rings of ended workers, by the device's `uniqueID`.
    private var ringRemainders: [String: RingRemainders] = [:]

    private struct Early {
        var pid: Int32
        var hello: WorkerReport
        var status: WorkerReport?
        var description: WorkerReport?
    }

    private static let maximumEarly = 256

    init(
        _ loop: Loop, _ lifecycle: Lifecycle, _ server: ServerSocket, launch: WorkerHandle.Launch,
        _ events: EventSocket,
        _ deviceStore: DeviceStore, _ store: RestartStore, _ permission: AuthorizationService, logger: Logger
    ) {
        self.loop = loop
        self.lifecycle = lifecycle
        self.events = events
        self.deviceStore = deviceStore
        self.store = store
        self.permission = permission
        self.server = server
        self.launch = launch
        self.logger = logger
        loop.watch(.socket(server.socket)) { [weak self] in self?.readReports() }
    }

    /// The worker of the device with that id.
    subscript(device: String) -> WorkerHandle? { all[device] }

    /// The ids, in the order in which devices are offered: ``order``.
    var deviceIDs: [String] {
        let order = order
        return all.values.map { (id: $0.device.id, $0.device.identity) }
            .sorted { order.precedes($0, $1) }.map(\.id)
    }

    /// The worker of the device with that `uniqueID`.
    func worker(of uniqueID: String) -> WorkerHandle? {
        all.values.first { $0.device.identity.uniqueID == uniqueID }
    }

    /// Whether a worker has that name, or is about to end under it.
    func hasProcess(_ name: String) -> Bool {
        all[name]?.hasBegun ?? false || leaving.contains { $0.device.id == name }
    }

    /// Starts the workers whose names were taken.
    func startWaiting() { for worker in all.values { startIfFree(worker) } }

    /// Starts workers for new devices, ends those of devices that are not among these, and updates the others. A device
    /// with another id gets another worker, and keeps everything.
    ///
    /// - Parameters:
    ///   - isComplete: false when there may be more: workers that were left over for others are then neither taken nor
    ///       ended.
    ///   - removed: nodes that have gone for a while at least, so that whoever had one of them has been away.
    /// - Returns: false: what is kept under other ids of the devices could not be written yet.
    func setDevices(_ devices: [ManagedDevice], isComplete: Bool, removed: Set<String> = []) -> Bool {
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
        var renamed: [(old: WorkerHandle, device: ManagedDevice)] = []
        for (id, worker) in all {
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
        let isKept = observer?.devicesRenamed(renamed.map { ($0.old.device.id, $0.device.id) }) ?? true
        // An id that another device takes is not gone, nor is what that one brings along.
        let taken = Set(renamed.map(\.device.id))
        for (old, _) in renamed { remove(old.device.id, old, isTaken: taken.contains(old.device.id)) }
        for (old, device) in renamed { add(device, former: old) }
        for (id, device) in wanted where all[id] == nil { add(device) }
        if isComplete { isSettled = true }
        hearEarly()
        return isKept
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
        return all[device]?.device.identity.uniqueID == uniqueID
    }

    private func add(_ device: ManagedDevice, former: WorkerHandle? = nil) {
        let worker = WorkerHandle(
            device, committed: deviceStore.table[device.identity.uniqueID]?.committed,
            standIn: store.standIn(device.identity.uniqueID),
            former: former, loop, launch: launch, logger: logger,
            send: { [weak self] connection, order in
                (try? self?.server.socket.send(frames: [connection, order.json.serialized])) ?? false
            },
            onHello: { [weak self] worker in self?.observer?.workerGreeted(worker) },
            onLoss: { [weak self] worker in
                if let self, all[worker.device.id] === worker { observer?.workerLost(worker) }
            },
            onChange: { [weak self] worker in
                guard let self else { return }
                if all[device.id] === worker { observer?.deviceChanged(device.id, worker) }
                worker.tellIfReady()
                if worker.isGone, worker.isStopped { ended(worker) }
            })
        worker.onEvent = { [weak self, weak worker] event, members in
            guard let self, let worker, all[device.id] === worker, !lifecycle.isStopping else { return }
            events.event("event/device/\(device.id)", event, members)
        }
        worker.onPhoto = { [weak self, weak worker] report, file in
            guard let self, let worker, all[device.id] === worker else { return }
            onPhoto?(worker, report, file)
        }
        worker.onStandIn = { [weak store] in store?.save(standIn: $0, of: device.identity.uniqueID) }
        worker.accessList = { [weak permission] in permission?.table.accessList(device.identity.authorizationMedia) }
        worker.onRefused = { [weak permission] uid, gid, pid in
            permission?.refused(uid: uid, gid: gid, pid: pid, device.identity.authorizationMedia)
        }
        let uniqueID = device.identity.uniqueID
        worker.ringRemainders = { [weak self] in self?.ringRemainders(of: uniqueID) }
        worker.onRingsLeft = { [weak self] used in self?.keepRings(used, of: uniqueID) }
        all[device.id] = worker
        startIfFree(worker)
        if !worker.hasBegun { observer?.deviceChanged(device.id, worker) }
    }

    // Of the same device, under any id, and of deleted devices of clients: a user who creates and deletes devices gets
    // no more memory than a reader of one. A camera that was unplugged counts at its own next worker only.
    private func ringRemainders(of uniqueID: String) -> RingRemainders? {
        var sum = RingRemainders()
        for (device, left) in ringRemainders
        where device == uniqueID || (ClientSource.isSource(device) && worker(of: device) == nil) {
            sum.add(left)
        }
        return sum.isOver(at: MonotonicClock.now()) ? nil : sum
    }

    private func keepRings(_ used: [UInt32: Int], of uniqueID: String) {
        let now = MonotonicClock.now()
        ringRemainders = ringRemainders.filter { !$0.value.isOver(at: now) }
        if !used.isEmpty { ringRemainders[uniqueID, default: RingRemainders()].add(used, at: now) }
    }

    // Another worker of the device, or another process under its id, has first to let go of it.
    private func startIfFree(_ worker: WorkerHandle) {
        guard !worker.hasBegun else { return }
        let device = worker.device
        let isTaken = leaving.contains {
            $0.device.id == device.id || $0.device.identity.uniqueID == device.identity.uniqueID
        }
        if !isTaken, !(matchers?.hasProcess(device.id) ?? false) { worker.start() }
    }

    private func remove(_ id: String, _ worker: WorkerHandle, isTaken: Bool = false) {
        all[id] = nil
        leaving.append(worker)
        worker.stop(by: MonotonicClock.now() + 3_000_000_000, worker.gone)
        if worker.isGone { ended(worker) }
        if !isTaken { observer?.deviceChanged(id, nil) }
    }

    private func ended(_ worker: WorkerHandle) {
        // A worker that was killed leaves its sockets' files.
        if all[worker.device.id] == nil || all[worker.device.id] === worker {
            if worker.hasBegun { File.remove(launch.runtimeDirectory.mediaSocket(worker.device.id)) }
            File.remove(launch.runtimeDirectory.ringSocket(worker.device.id))
            if case .client(let source) = worker.device.source {
                File.remove(launch.runtimeDirectory.sourceSocket(of: source))
            }
        }
        leaving.removeAll { $0 === worker }
        startWaiting()
        matchers?.startWaiting()
        tellIfAllHaveEnded()
    }

    private func tellIfAllHaveEnded() {
        guard let body = whenAllHaveEnded, leaving.isEmpty, all.values.allSatisfy(\.isGone) else { return }
        whenAllHaveEnded = nil
        body()
    }

    /// Ends all workers; the body is called when the last one has ended, which the kill at the deadline makes sure.
    func stopAll(by deadline: Int64, then body: @escaping () -> Void) {
        whenAllHaveEnded = body
        for worker in all.values {
            worker.stop(by: deadline, MovieRegistry.shuttingDown)
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
                observer?.fenceSeen(fence)
            }
            guard let worker = all.values.first(where: { $0.isConnection(connection) }) else {
                leaving.first { $0.isConnection(connection) }?.keepRings(report)
                // A matcher's.
                switch report {
                case .refused(let uid, let gid, let pid): permission.refused(uid: uid, gid: gid, pid: pid, .video)
                case .alive(let counters): matchers?.heard(by: pid, counters)
                default: break
                }
                return
            }
            worker.received(report, file: file)
            return
        }
        if isWanted(report), let worker = all[device] {
            worker.greeted(by: pid, connection: connection, mediaPath: mediaPath, link: link)
            for transaction in inDoubt { settle(transaction, worker) }
        } else if isSettled {
            // Left over from another configuration, perhaps of a coordinator before this one.
            logger.notice("a worker without a device is ended", metadata: [LogKeys.deviceID: "\(device)"])
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
    private func settle(_ transaction: String, _ worker: WorkerHandle) {
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
        store.isDecided(transaction) ? .finish(transaction: transaction) : .rollBack(transaction: transaction)
    }
}

extension WorkerReport {
    /// Whether a further frame of its message may be a photo's file.
    fileprivate var mayHaveFile: Bool {
        if case .photo(_, .processed, _) = self { true } else { false }
    }
}
