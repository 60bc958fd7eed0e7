public import BusProtocol
import JSON

/// Who may configure which device: exclusive, all or nothing over several devices, first come first served.
///
/// A request never overtakes an earlier one that shares a device with it, so nobody waits for ever behind many small
/// ones; requests that share none with earlier ones go ahead. Each wait has its own limit, so a circle of holders
/// that wait for each other's further devices ends with the first of these limits.
///
/// Time is what the calls say. Every call that changes the table first brings it to its instant: a lease that ran out
/// before that ended then, and a wait whose limit is reached is over, whatever becomes free at that very instant.
public struct LockTable: Sendable, Equatable {
    /// So many may wait for a device.
    public static let maximumWaiters = 64

    /// The highest fence given out; it only rises, also when locks go.
    public private(set) var fence: UInt64
    /// The locks there are, sorted by fence.
    public private(set) var locks: [Lock] = []
    private var waiting: [Wait] = []

    private struct Wait: Sendable, Equatable {
        var request: LockRequest
        var deadline: Instant
    }

    /// A table that goes on from what was kept: the fence rises from the given one or the locks' highest.
    ///
    /// Of kept locks that contradict each other the newest counts.
    public init(fence: UInt64 = 0, locks: [Lock] = []) {
        // Beyond this, fences could not be told in JSON; no bus gets there by counting.
        let highest = UInt64(Int64.max)
        for lock in locks.sorted(by: { $0.fence > $1.fence }) where lock.fence <= highest && !lock.devices.isEmpty {
            let isAtOdds = self.locks.contains {
                $0.fence == lock.fence || $0.tokenHash == lock.tokenHash || $0.shares(lock.devices)
            }
            if !isAtOdds { self.locks.append(lock) }
        }
        self.locks.reverse()
        self.fence = max(min(fence, highest), self.locks.last?.fence ?? 0)
    }

    // MARK: What there is

    /// The lock that covers this device.
    public func lock(on device: String) -> Lock? { locks.first { $0.devices.contains(device) } }

    /// Who waits for this device, the first in the queue first.
    public func waiters(on device: String) -> [LockRequest] {
        waiting.lazy.map(\.request).filter { $0.devices.contains(device) }
    }

    /// The requests that are neither granted nor refused yet, in the order they came.
    public var waitingTickets: [UInt64] { waiting.map(\.request.ticket) }

    /// Who waits for anything, until when, in the order they came.
    public var waits: [(request: LockRequest, deadline: Instant)] { waiting.map { ($0.request, $0.deadline) } }

    /// When ``advance(to:)`` has something to do; nil: never as things are.
    public var nextDeadline: Instant? {
        let leases = locks.lazy.compactMap(\.expires).min()
        let waits = waiting.lazy.map(\.deadline).min()
        guard let leases, let waits else { return leases ?? waits }
        return min(leases, waits)
    }

    /// The lock that this token stands for, if it covers all these devices.
    ///
    /// - Returns: `lockRequired` without a token, or for a device that the lock doesn't cover; `lockLost` {fence} for a
    ///   token that stands for no lock, with the fence of the device's present lock, else the highest given out.
    public func authorize(tokenHash: String?, devices: [String]) -> Result<Lock, BusError> {
        guard let tokenHash else {
            let names = devices.joined(separator: ", ")
            return .failure(
                BusError(
                    .lockRequired,
                    "Lock \(names) first (device.lock), and pass the lock's token with the "
                        + "request."))
        }
        guard let lock = locks.first(where: { $0.tokenHash == tokenHash }) else {
            let present = devices.lazy.compactMap { self.lock(on: $0)?.fence }.max() ?? fence
            return .failure(
                BusError(
                    .lockLost, "This lock has ended; take a new one (device.lock).", ["fence": JSONValue(present)]))
        }
        if let missing = devices.first(where: { !lock.devices.contains($0) }) {
            return .failure(
                BusError(
                    .lockRequired,
                    "The lock that was passed does not cover \(missing); lock all devices in one "
                        + "request.",
                    ["device": .string(missing)]))
        }
        return .success(lock)
    }

    // MARK: Requests

    /// Grants the request at once, queues it, or refuses it.
    ///
    /// Without a wait it is refused when any of the devices is held, or promised to somebody who waited before.
    public mutating func request(_ asked: LockRequest, at now: Instant) -> [Action] {
        var actions = advance(to: now)
        let request = asked.withDistinctDevices
        guard !request.devices.isEmpty else { return actions + [.refuse(ticket: request.ticket, .noDevices)] }
        if let (device, holder) = obstacle(to: request.devices, waitedFor: waiting.count) {
            guard request.wait > 0 else {
                let queue = waiters(on: device).count
                return actions + [.refuse(ticket: request.ticket, .busy(device: device, holder: holder, queue: queue))]
            }
            if let full = request.devices.first(where: { waiters(on: $0).count >= Self.maximumWaiters }) {
                let refusal = Refusal.tooManyWaiting(device: full, limit: Self.maximumWaiters)
                return actions + [.refuse(ticket: request.ticket, refusal)]
            }
            waiting.append(Wait(request: request, deadline: now.advanced(byNanoseconds: request.wait)))
        } else {
            actions.append(grant(request, at: now))
        }
        return actions
    }

    /// Ends every lock that touches the devices, each as a whole, and grants the request at once, ahead of the queue.
    public mutating func takeOver(_ asked: LockRequest, at now: Instant) -> [Action] {
        let request = asked.withDistinctDevices
        var actions = advance(to: now)
        guard !request.devices.isEmpty else { return actions + [.refuse(ticket: request.ticket, .noDevices)] }
        actions += end(.takenOver, by: request.holder) { $0.shares(request.devices) }
        actions.append(grant(request, at: now))
        return actions + serveQueue(at: now)
    }

    /// Gives up a request that waits. One that doesn't (any more) is left as it is.
    public mutating func cancel(ticket: UInt64, at now: Instant) -> [Action] {
        let actions = advance(to: now)
        return actions + refuse(.cancelled) { $0.ticket == ticket } + serveQueue(at: now)
    }

    // MARK: Locks

    /// Ends the lock of this token; nil when there is none (`lockLost`), or its lease has run out.
    public mutating func unlock(tokenHash: String, at now: Instant) -> [Action]? {
        guard index(of: tokenHash, at: now) != nil else { return nil }
        let actions = advance(to: now)
        return actions + end(.unlocked) { $0.tokenHash == tokenHash } + serveQueue(at: now)
    }

    /// Starts the lease anew; a lock without one stays as it is. nil when there is no such lock, or its lease has run
    /// out.
    public mutating func renew(tokenHash: String, at now: Instant) -> Lock? {
        guard let index = index(of: tokenHash, at: now) else { return nil }
        if let lease = locks[index].lease { locks[index].expires = now.advanced(byNanoseconds: lease) }
        return locks[index]
    }

    /// Has a lock's lease end when it did before ``renew(tokenHash:at:)``: what could not be kept was not renewed.
    public mutating func takeBackRenewal(of lock: Lock) {
        guard let index = locks.firstIndex(where: { $0.id == lock.id }) else { return }
        locks[index].expires = lock.expires
    }

    /// Ends what belongs to a process that is gone: its locks, but those with a lease, and all its waits.
    ///
    /// - Parameters:
    ///   - startTime: when that process started, if it is known; another one of the same number keeps what it has.
    ///   - uid: only what is of that user, where the process asks for several; nil: of whomever. Where nothing else is
    ///     known of the process, the user alone says whose it is.
    public mutating func endHolder(
        pid: Int32, startTime: UInt64?, uid: UInt32? = nil, cause: EndCause, at now: Instant
    ) -> [Action] {
        func isMeant(_ holder: LockHolder) -> Bool {
            guard let uid else { return holder.isProcess(pid, startedAt: startTime) }
            let isUnseen = startTime == nil && holder.startTime == nil && holder.pid == pid
            return holder.uid == uid && (isUnseen || holder.isProcess(pid, startedAt: startTime))
        }
        var actions = advance(to: now)
        actions += refuse(.holderEnded) { isMeant($0.holder) }
        actions += end(cause) { $0.lease == nil && isMeant($0.holder) }
        return actions + serveQueue(at: now)
    }

    /// Ends the lock that covers this device, as a whole, and refuses all that wait for it.
    public mutating func endDevice(_ device: String, at now: Instant) -> [Action] {
        var actions = advance(to: now)
        actions += refuse(.deviceGone(device)) { $0.devices.contains(device) }
        actions += end(.deviceGone) { $0.devices.contains(device) }
        return actions + serveQueue(at: now)
    }

    /// Ends locks and waits of those who may not have them any more.
    public mutating func endUnauthorized(
        at now: Instant, where isRefused: (_ holder: LockHolder, _ devices: [String]) -> Bool
    ) -> [Action] {
        var actions = advance(to: now)
        actions += refuse(.permissionTaken) { isRefused($0.holder, $0.devices) }
        actions += end(.permissionTaken) { isRefused($0.holder, $0.devices) }
        return actions + serveQueue(at: now)
    }

    /// Ends every lock and refuses every wait.
    public mutating func shutDown(at now: Instant) -> [Action] {
        let actions = advance(to: now)
        return actions + refuse(.shuttingDown) { _ in true } + end(.shuttingDown) { _ in true }
    }

    /// Does what is due by then: leases that ran out end, waits whose limit is reached are refused.
    ///
    /// A call that comes late does it in the order in which it was due. What is granted so is granted from `now`.
    public mutating func advance(to now: Instant) -> [Action] {
        var actions: [Action] = []
        while let due = nextDeadline, due <= now {
            let late = waiting.filter { $0.deadline <= due }
            for wait in late {
                let (device, holder) = whatHolds(wait.request)
                let queue = waiters(on: device).count
                actions.append(
                    .refuse(ticket: wait.request.ticket, .timeout(device: device, holder: holder, queue: queue - 1)))
                waiting.removeAll { $0 == wait }
            }
            actions += end(.leaseExpired) { $0.expires.map { $0 <= due } ?? false }
            actions += serveQueue(at: now)
        }
        return actions
    }

    /// Gives a device its new name in locks and waits. Nothing happens if the new name is in use.
    public mutating func rename(device: String, to name: String) {
        guard device != name, lock(on: name) == nil, waiters(on: name).isEmpty else { return }
        for index in locks.indices { locks[index].devices.replace(device, by: name) }
        for index in waiting.indices { waiting[index].request.devices.replace(device, by: name) }
    }

    // MARK: After a restart

    /// Fences up to that one are known to have been given out.
    public mutating func raise(fence seen: UInt64) {
        if seen < UInt64(Int64.max) { fence = max(fence, seen) }
    }

    /// Gives the lock another token: the one that it had gives no right any more. nil when there is no such lock.
    public mutating func reissue(id: String, tokenHash: String) -> Lock? {
        guard let index = locks.firstIndex(where: { $0.id == id }) else { return nil }
        locks[index].tokenHash = tokenHash
        return locks[index]
    }

    // MARK: The parts

    private func index(of tokenHash: String, at now: Instant) -> Int? {
        locks.firstIndex { lock in lock.tokenHash == tokenHash && lock.expires.map { $0 > now } ?? true }
    }

    /// What keeps a request from these devices when `count` requests wait before it: a held device, else a promised
    /// one.
    private func obstacle(to devices: [String], waitedFor count: Int) -> (device: String, holder: LockHolder)? {
        for device in devices {
            if let lock = lock(on: device) { return (device, lock.holder) }
        }
        for wait in waiting.prefix(count) {
            if let shared = wait.request.devices.first(where: devices.contains) { return (shared, wait.request.holder) }
        }
        return nil
    }

    private func whatHolds(_ request: LockRequest) -> (device: String, holder: LockHolder?) {
        let before = waiting.firstIndex { $0.request == request } ?? 0
        if let (device, holder) = obstacle(to: request.devices, waitedFor: before) { return (device, holder) }
        return (request.devices.first ?? "", nil)
    }

    private mutating func grant(_ request: LockRequest, at now: Instant) -> Action {
        fence += 1
        let lease = request.lease.map { max(0, $0) }
        let lock = Lock(
            id: request.lockID, tokenHash: request.tokenHash, devices: request.devices, holder: request.holder,
            fence: fence, note: request.note, since: now, lease: lease,
            expires: lease.map { now.advanced(byNanoseconds: $0) }, isTransient: request.isTransient,
            request: request.request)
        locks.append(lock)
        return .grant(ticket: request.ticket, lock)
    }

    private mutating func end(_ cause: EndCause, by: LockHolder? = nil, where ends: (Lock) -> Bool) -> [Action] {
        let ended = locks.filter(ends)
        if !ended.isEmpty { locks.removeAll(where: ends) }
        return ended.map { .end($0, cause, by: by) }
    }

    private mutating func refuse(_ refusal: Refusal, where matches: (LockRequest) -> Bool) -> [Action] {
        let refused = waiting.filter { matches($0.request) }
        if !refused.isEmpty { waiting.removeAll { matches($0.request) } }
        return refused.map { .refuse(ticket: $0.request.ticket, refusal) }
    }

    /// Grants, in the order they came, all waiting requests that nothing stands in the way of.
    private mutating func serveQueue(at now: Instant) -> [Action] {
        var actions: [Action] = []
        var taken = Set(locks.lazy.flatMap(\.devices))
        var left: [Wait] = []
        for wait in waiting {
            if taken.isDisjoint(with: wait.request.devices) {
                actions.append(grant(wait.request, at: now))
            } else {
                left.append(wait)
            }
            // Held from now on, or promised: either way not for those behind.
            taken.formUnion(wait.request.devices)
        }
        waiting = left
        return actions
    }
}

extension Lock {
    fileprivate func shares(_ devices: [String]) -> Bool { self.devices.contains(where: devices.contains) }
}

extension LockRequest {
    fileprivate var withDistinctDevices: LockRequest {
        var request = self
        var seen: Set<String> = []
        request.devices = devices.filter { seen.insert($0).inserted }
        return request
    }
}

extension [String] {
    fileprivate mutating func replace(_ old: String, by new: String) {
        for index in indices where self[index] == old { self[index] = new }
    }
}
