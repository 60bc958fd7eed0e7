import CaptureCore
import Glibc
import JSON
import LinuxIO
import Logging

/// Keeps what must outlive this coordinator: locks, fences, sessions, exposure locks, decisions. Reads what the one
/// before it left.
///
/// If the file is lost, its locks are lost. Fences then protect against clients that still believe in their locks: new
/// fences start at a number that no coordinator can have reached by counting.
final class RestartStore {
    private let file: StateFile
    private let logger: Logger
    private let epoch: String
    /// What the file holds; nil: nothing that we know of.
    private var written: KeptState?
    /// What it is to hold.
    private var wanted: KeptState
    private var hasFailed = false
    /// What was decided before this coordinator's time.
    private(set) var inherited: Set<String>
    /// What the coordinator before this one left, as far as it could be read.
    let found: KeptState
    /// Keeps a reserve of fences, for when the file is lost.
    private let deviceStore: DeviceStore

    /// The most decisions that are kept. Each is needed until its devices have got their orders.
    private static let maximumDecisions = 256
    /// Devices that are set for photos, also those that have gone since.
    private static let maximumStandIns = 256

    /// - Parameter deviceStore: fences up to its own may have been given out, whatever the file says or doesn't.
    init(_ file: StateFile, epoch: String, _ deviceStore: DeviceStore, logger: Logger) throws(SystemError) {
        self.file = file
        self.deviceStore = deviceStore
        self.logger = logger
        self.epoch = epoch
        var found: KeptState
        switch try file.load() {
        case .nothing(hasTraces: false): found = KeptState(boot: file.bootID, epoch: "", fence: 0)
        case .nothing(hasTraces: true):
            logger.warning("the state file is gone; fences go on from the clock")
            found = KeptState(boot: file.bootID, epoch: "", fence: Self.fenceBeyondCounting)
        case .kept(let state):
            found = state
            if !state.unreadableSessions.isEmpty {
                logger.error(
                    "sessions in the state file could not be read, and are lost",
                    metadata: ["sessions": "\(state.unreadableSessions.joined(separator: ", "))"])
            }
        case .damaged(let why, let fence):
            logger.error(
                "the state file could not be used and lies aside; all locks are lost, and fences go on from the clock",
                metadata: ["why": "\(why)"])
            found = KeptState(
                boot: file.bootID, epoch: "", fence: max(fence ?? 0, Self.fenceBeyondCounting))
        }
        found.fence = max(found.fence, deviceStore.table.fence)
        self.found = found
        let isSameBoot = found.boot == file.bootID
        inherited = isSameBoot ? Set(found.decided) : []
        wanted = KeptState(boot: file.bootID, epoch: epoch, fence: found.fence)
        wanted.decided = isSameBoot ? found.decided : []
        wanted.sessions = isSameBoot ? found.sessions : []
        wanted.exposures = isSameBoot ? found.exposures : []
        wanted.standIns = isSameBoot ? found.standIns : [:]
    }

    /// Microseconds since 1970: no bus gives out a million locks a second for long, and JSON numbers go that far.
    private static var fenceBeyondCounting: UInt64 { UInt64(max(0, MonotonicClock.realtime() / 1000)) }

    var bootID: String { file.bootID }

    /// No fence above this one is given out before it is written.
    var savedFence: UInt64 { written?.fence ?? 0 }

    /// The file is not up to date.
    var isBehind: Bool { written != wanted }

    /// Writes locks and fence, unless that is what the file holds.
    func save(_ locks: [Lock], fence: UInt64) -> Bool {
        wanted.locks = locks
        wanted.fence = fence
        guard write() else { return false }
        if deviceStore.table.needsReserve(fence: fence) { deviceStore.change { $0.reserve(fence: fence) } }
        return true
    }

    /// Writes the sessions, unless those are what the file holds.
    func save(_ sessions: [CaptureSession]) -> Bool {
        wanted.sessions = sessions
        return write()
    }

    /// Exposures that are to be locked when they have settled: those of the coordinator before this one, until others
    /// are saved.
    var exposures: [KeptExposure] { wanted.exposures }

    /// Writes the exposures that are to be locked, unless those are what the file holds.
    func save(_ exposures: [KeptExposure]) -> Bool {
        wanted.exposures = exposures
        return write()
    }

    /// What is set on a device for a photo, by `uniqueID`, also by a worker of the coordinator before this one; nil:
    /// nothing.
    func standIn(_ uniqueID: String) -> JSONValue? { wanted.standIns[uniqueID] }

    /// Writes what is set on a device for a photo, unless that is what the file holds. A worker that dies together with
    /// this coordinator puts nothing back, and the next one of that device does.
    ///
    /// - Parameter standIn: nil: nothing any more.
    func save(standIn: JSONValue?, of uniqueID: String) {
        guard wanted.standIns[uniqueID] != standIn else { return }
        guard standIn == nil || wanted.standIns.count < Self.maximumStandIns else { return }
        wanted.standIns[uniqueID] = standIn
        // Where that can't be written it is known as long as this process lives.
        _ = write()
    }

    /// Keeps for good that a transaction over several devices is to stay.
    func decide(_ transaction: String) -> Bool {
        wanted.decided.append(transaction)
        if wanted.decided.count > Self.maximumDecisions { wanted.decided.removeFirst() }
        if write() { return true }
        settle(transaction)
        return false
    }

    /// All devices of the transaction have got their orders. It is forgotten with the next write.
    func settle(_ transaction: String) { wanted.decided.removeAll { $0 == transaction } }

    func isDecided(_ transaction: String) -> Bool { wanted.decided.contains(transaction) }

    /// Forgets what the coordinator before decided: whoever was in doubt has come by now, or will not.
    func settleInherited() {
        wanted.decided.removeAll { inherited.contains($0) }
        inherited = []
    }

    private func write() -> Bool {
        guard isBehind else { return true }
        do {
            try file.save(wanted)
            written = wanted
            hasFailed = false
            return true
        } catch {
            if !hasFailed { logger.error("the state can't be written to the disk", metadata: ["error": "\(error)"]) }
            hasFailed = true
            return false
        }
    }
}
