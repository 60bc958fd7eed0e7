import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO
import Logging
import Sodium

/// Gives out the exclusive locks, and ends each with its holder.
///
/// ``LockTable`` has the rules. This class adds the clock, the disk, the holders' processes and the events.
final class LockService {
    /// A lock with the secret that proves it. The token appears nowhere but in the reply.
    struct Grant {
        let token: String
        let lock: Lock
    }

    struct Wish {
        var devices: [String]
        var holder: LockHolder
        /// Nanoseconds; 0: not at all.
        var wait: Int64 = 0
        /// Nanoseconds; nil: as long as the process lives.
        var lease: Int64?
        var note: String?
        var isTransient = false
        /// A digest of the request, if it has a key: the same one that is asked again after a restart gets the lock
        /// that it was given.
        var request: String?
    }

    private struct Pending {
        let token: String
        let wish: Wish
        let completion: (Result<Grant, BusError>) -> Void
    }

    private let loop: Loop
    private let events: EventSocket
    private let store: RestartStore
    private let logger: Logger
    private let holders: HolderWatcher
    let resolver: DeviceResolver
    let clients: ClientRegistry
    let cancellations: CancellationTable
    private(set) var table: LockTable
    private var pending: [UInt64: Pending] = [:]
    private var lastTicket: UInt64 = 0
    private var timer: Loop.Token?
    private var saveTimer: Loop.Token?
    /// Locks that the coordinator before this one gave, by id.
    private var inherited: Set<String> = []
    /// Locks that could not be written, and so never began.
    private var unbegun: Set<String> = []
    /// Called for each device whose lock began or ended.
    var onChange: ((_ device: String, _ lock: Lock?, _ fence: UInt64) -> Void)?

    /// A coordinator that starts after a crash gives out higher fences than any that was given out before.
    private static let fencesAhead: UInt64 = 64
    /// How long subscribers need at most to connect again, milliseconds: five tries.
    private static let returnTime: Int64 = 500
    /// How long to wait for a lock that this process has taken itself, nanoseconds.
    private static let ownTime: Int64 = 5_000_000_000
    /// When what could not be written is tried again, milliseconds.
    private static let saveInterval: Int64 = 1000

    /// How long a lock lasts whose holder is a process that can't be watched from here.
    static let leaseOfUnknownProcess: Int64 = 10_000_000_000

    /// Takes over the locks of the coordinator before this one.
    init(
        _ loop: Loop, events: EventSocket, store: RestartStore, holders: HolderWatcher, _ resolver: DeviceResolver,
        _ clients: ClientRegistry, _ cancellations: CancellationTable, logger: Logger
    ) {
        self.resolver = resolver
        self.clients = clients
        self.cancellations = cancellations
        self.loop = loop
        self.events = events
        self.store = store
        self.logger = logger
        table = LockTable(fence: store.found.fence)
        self.holders = holders
        holders.whenEnded { [weak self] pid, startTime in
            self?.holderEnded(pid: pid, startTime: startTime, cause: .holderExited)
        }
        inherit()
    }

    // Each kept lock's process is watched from here on, as if it had just been given.
    private func inherit() {
        let (kept, ended) = store.found.survivors(boot: store.bootID, now: MonotonicClock.now()) { [holders] holder in
            guard let startTime = holder.startTime else { return false }
            return holders.retain(pid: holder.pid, startTime: startTime)
        }
        table = LockTable(fence: store.found.fence, locks: kept)
        inherited = Set(table.locks.map(\.id))
        for lock in kept where !inherited.contains(lock.id) {
            logger.error("a kept lock is at odds with another and is dropped", metadata: [LogKeys.lockID: "\(lock.id)"])
            release(Wish(devices: lock.devices, holder: lock.holder, lease: lock.lease))
        }
        if !table.locks.isEmpty || !ended.isEmpty {
            logger.notice("locks are taken over", metadata: ["kept": "\(inherited.count)", "ended": "\(ended.count)"])
        }
        for lock in table.locks { publish(lock) }
        save()
        arm()
        guard !ended.isEmpty else { return }
        // Subscribers are just connecting again.
        loop.schedule(afterMilliseconds: Self.returnTime) { [weak self] in
            for (lock, cause) in ended { self?.tellEnd(lock, cause, nil) }
        }
    }

    /// Processes that hold an inherited lock without a lease: they have to connect again.
    var inheritedHolders: [LockHolder] {
        Array(Set(table.locks.filter { inherited.contains($0.id) && $0.lease == nil }.map(\.holder)))
    }

    /// Ends the locks on devices that there are not.
    func keepOnly(_ devices: Set<String>) {
        for device in Set(table.locks.flatMap(\.devices)).subtracting(devices) { deviceEnded(device) }
    }

    /// A worker has seen this fence.
    func seen(fence: UInt64) {
        guard fence > table.fence else { return }
        table.raise(fence: fence)
        save()
    }

    /// Asks for a lock; the completion is called once, perhaps at once.
    ///
    /// - Returns: the ticket to ``cancel(_:)`` with while it waits.
    @discardableResult
    func request(
        _ wish: Wish, takingOver: Bool = false, completion: @escaping (Result<Grant, BusError>) -> Void
    ) -> UInt64 {
        lastTicket += 1
        let ticket = lastTicket
        var wish = wish
        if !takingOver, let lock = inheritedLock(for: wish) {
            completion(reissue(lock))
            return ticket
        }
        if wish.lease == nil, wish.holder.pid == 0 || wish.holder.startTime == nil {
            wish.lease = Self.leaseOfUnknownProcess
        }
        if let (pid, startTime) = watchedProcess(wish), !holders.retain(pid: pid, startTime: startTime) {
            completion(.failure(LockTable.Refusal.holderEnded.error()))
            return ticket
        }
        // This process holds a lock of its own for a moment only: clients wait for it and are not refused.
        let isOurs = wish.devices.contains { device in
            table.lock(on: device).map { $0.isTransient && $0.holder.pid == CurrentProcess.pid } ?? false
        }
        if isOurs { wish.wait = max(wish.wait, Self.ownTime) }
        let token = hexadecimal(randomBytes(16))
        let request = LockRequest(
            ticket: ticket, lockID: hexadecimal(randomBytes(4)), tokenHash: Self.hash(token), devices: wish.devices,
            holder: wish.holder, note: wish.note, wait: wish.wait, lease: wish.lease, isTransient: wish.isTransient,
            request: wish.request)
        pending[ticket] = Pending(token: token, wish: wish, completion: completion)
        let now = MonotonicClock.now()
        perform(takingOver ? table.takeOver(request, at: now) : table.request(request, at: now))
        return ticket
    }

    // Its reply was lost with the coordinator before this one: a request with the same key gets the same lock.
    private func inheritedLock(for wish: Wish) -> Lock? {
        guard let request = wish.request else { return nil }
        perform(table.advance(to: MonotonicClock.now()))
        return table.locks.first { lock in
            lock.request == request && inherited.contains(lock.id) && lock.holder.uid == wish.holder.uid
                && (lock.lease != nil
                    || (lock.holder.pid == wish.holder.pid && lock.holder.startTime == wish.holder.startTime))
        }
    }

    private func reissue(_ lock: Lock) -> Result<Grant, BusError> {
        let token = hexadecimal(randomBytes(16))
        guard let renewed = table.reissue(id: lock.id, tokenHash: Self.hash(token)), save() else {
            _ = table.reissue(id: lock.id, tokenHash: lock.tokenHash)
            return .failure(Self.notWritten)
        }
        return .success(Grant(token: token, lock: renewed))
    }

    func isWaiting(_ ticket: UInt64) -> Bool { pending[ticket] != nil }

    /// Gives up a request that waits. Does nothing for any other ticket.
    func cancel(_ ticket: UInt64) { perform(table.cancel(ticket: ticket, at: MonotonicClock.now())) }

    /// Ends a lock, which nothing can keep it from.
    ///
    /// - Returns: whether that is on the disk.
    @discardableResult
    func unlock(token: String) throws(BusError) -> Bool {
        guard let actions = table.unlock(tokenHash: Self.hash(token), at: MonotonicClock.now()) else { throw lost() }
        return perform(actions)
    }

    /// Begins a lease anew, on the disk when this returns. A lock that is bound to a process does not change.
    func renew(token: String) throws(BusError) -> Lock {
        let hash = Self.hash(token)
        let before = table.locks.first { $0.tokenHash == hash }
        guard let lock = table.renew(tokenHash: hash, at: MonotonicClock.now()) else { throw lost() }
        guard let before, lock != before else { return lock }
        guard save() else {
            table.takeBackRenewal(of: before)
            throw Self.notWritten
        }
        publish(lock)
        arm()
        return lock
    }

    /// The lock that the token proves, if it covers these devices.
    func authorize(token: String?, devices: [String]) throws(BusError) -> Lock {
        // A lease that ran out counts as ended also when its timer is late.
        perform(table.advance(to: MonotonicClock.now()))
        return try table.authorize(tokenHash: token.map(Self.hash), devices: devices).get()
    }

    /// - Parameter uid: only what is of that user; nil: of whomever.
    func holderEnded(pid: Int32, startTime: UInt64?, uid: UInt32? = nil, cause: LockTable.EndCause) {
        perform(table.endHolder(pid: pid, startTime: startTime, uid: uid, cause: cause, at: MonotonicClock.now()))
    }

    func deviceEnded(_ device: String) { perform(table.endDevice(device, at: MonotonicClock.now())) }

    /// Ends locks, and waits for locks, of users without permission.
    func endUnauthorized(where isRefused: (_ holder: LockHolder, _ devices: [String]) -> Bool) {
        perform(table.endUnauthorized(at: MonotonicClock.now(), where: isRefused))
    }

    /// Gives devices other names, all at once, in locks and in waiting requests.
    ///
    /// - Returns: false: that could not be written yet.
    func rename(_ names: [(device: String, name: String)]) -> Bool {
        guard !names.isEmpty else { return true }
        // By way of names that no device can have: two may swap theirs.
        for (index, entry) in names.enumerated() { table.rename(device: entry.device, to: "/\(index)") }
        for (index, entry) in names.enumerated() { table.rename(device: "/\(index)", to: entry.name) }
        let isKept = save()
        let changed = Set(names.map(\.name))
        for lock in table.locks where !changed.isDisjoint(with: lock.devices) { publish(lock) }
        return isKept
    }

    func shutDown() { perform(table.shutDown(at: MonotonicClock.now())) }

    // MARK: What the table decides

    /// - Returns: whether what they have changed is on the disk.
    @discardableResult
    private func perform(_ actions: [LockTable.Action]) -> Bool {
        defer { arm() }
        guard !actions.isEmpty else { return true }
        let isSaved = save()
        for action in actions {
            switch action {
            case .grant(let ticket, let lock):
                guard let request = pending.removeValue(forKey: ticket) else { continue }
                // What can't be kept must not be promised, and no fence may be given out twice.
                guard isSaved || (lock.isTransient && lock.fence <= store.savedFence) else {
                    unbegun.insert(lock.id)
                    perform(table.unlock(tokenHash: lock.tokenHash, at: MonotonicClock.now()) ?? [])
                    request.completion(.failure(Self.notWritten))
                    continue
                }
                publish(lock)
                if !lock.isTransient { logBegin(lock) }
                for device in lock.devices { onChange?(device, lock, lock.fence) }
                request.completion(.success(Grant(token: request.token, lock: lock)))
            case .refuse(let ticket, let refusal):
                guard let request = pending.removeValue(forKey: ticket) else { continue }
                release(request.wish)
                request.completion(.failure(refusal.error()))
            case .end(let lock, let cause, let by):
                release(Wish(devices: lock.devices, holder: lock.holder, lease: lock.lease))
                if unbegun.remove(lock.id) == nil { ended(lock, cause, by) }
            }
        }
        return isSaved
    }

    private func logBegin(_ lock: Lock) {
        logger.info(
            "lock begun",
            metadata: [
                LogKeys.lockID: "\(lock.id)", LogKeys.lockFence: "\(lock.fence)",
                "devices": "\(lock.devices.joined(separator: " "))", LogKeys.peerPID: "\(lock.holder.pid)",
                LogKeys.peerUID: "\(lock.holder.uid)", "holder": "\(lock.holder.name)",
            ])
    }

    private static let notWritten = BusError(
        .internalError, "The lock could not be written to the disk; see the coordinator's log.")

    private func ended(_ lock: Lock, _ cause: LockTable.EndCause, _ by: LockHolder?) {
        inherited.remove(lock.id)
        tellEnd(lock, cause, by)
        for device in lock.devices where table.lock(on: device) == nil { onChange?(device, nil, lock.fence) }
    }

    private func tellEnd(_ lock: Lock, _ cause: LockTable.EndCause, _ by: LockHolder?) {
        if !lock.isTransient {
            logger.info(
                "lock ended",
                metadata: [
                    LogKeys.lockID: "\(lock.id)", LogKeys.lockFence: "\(lock.fence)", "cause": "\(cause.rawValue)",
                ])
            events.set("state/lock/\(lock.id)", nil)
            events.event(
                "event/lock/\(lock.id)", "ended",
                ["cause": .string(cause.rawValue), "by": by?.json ?? .null, "devices": JSONValue(lock.devices)])
        }
    }

    private func publish(_ lock: Lock) {
        guard !lock.isTransient else { return }
        events.set("state/lock/\(lock.id)", lock.json)
    }

    /// Writes what has changed; what only lasts for a call needs no writing, since fences are set aside ahead.
    @discardableResult
    private func save() -> Bool {
        let lasting = table.locks.filter { !$0.isTransient }
        let ahead = table.fence < store.savedFence ? store.savedFence : table.fence + Self.fencesAhead
        let isSaved = store.save(lasting, fence: ahead)
        if !isSaved, saveTimer == nil {
            // What has ended must not come back with the next coordinator.
            saveTimer = loop.schedule(afterMilliseconds: Self.saveInterval) { [weak self] in
                self?.saveTimer = nil
                self?.save()
            }
        }
        return isSaved
    }

    private func arm() {
        loop.cancel(timer)
        timer = table.nextDeadline.map { deadline in
            loop.schedule(at: deadline) { [weak self] in
                guard let self else { return }
                timer = nil
                perform(table.advance(to: MonotonicClock.now()))
            }
        }
    }

    // A lock with a lease outlives its process on purpose; everything else is bound to it.
    private func watchedProcess(_ wish: Wish) -> (pid: Int32, startTime: UInt64)? {
        guard wish.lease == nil, let startTime = wish.holder.startTime else { return nil }
        return (wish.holder.pid, startTime)
    }

    private func release(_ wish: Wish) {
        if let (pid, startTime) = watchedProcess(wish) { holders.release(pid: pid, startTime: startTime) }
    }

    private func lost() -> BusError {
        BusError(
            .lockLost, "This lock has ended or never existed; take a new one with device.lock.",
            ["fence": JSONValue(table.fence)])
    }

    private static func hash(_ token: String) -> String { hexadecimal(sha256(Array(token.utf8))) }
}

extension LockService {
    /// The waiters, in the order of the queue.
    var waits: JSONValue {
        .array(
            table.waits.map { request, deadline in
                [
                    "devices": JSONValue(request.devices), "holder": request.holder.json,
                    "note": request.note.map(JSONValue.string) ?? .null, "until": JSONValue(deadline),
                ]
            })
    }
}

extension Lock {
    /// The value of `state/lock/<id>/`. It holds no secret: the id gives no right.
    var json: JSONValue {
        .object([
            "id": .string(id), "devices": JSONValue(devices), "holder": holder.json, "fence": JSONValue(fence),
            "note": note.map(JSONValue.string) ?? .null, "since": JSONValue(since),
            "lease": lease.map { JSONValue($0 / 1_000_000) } ?? .null,
            "expires": expires.map { JSONValue($0) } ?? .null,
        ])
    }
}
