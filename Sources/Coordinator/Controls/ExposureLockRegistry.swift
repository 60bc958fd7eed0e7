import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO

/// Locks exposures when they have settled (`device.expose` with `thenLock`).
///
/// A reply has promised the lock, so the next coordinator keeps the promise. When the device's process ends, what it
/// has metered is lost: the exposure is not locked then, and that is published.
final class ExposureLockRegistry {
    private final class Wish {
        let kept: KeptExposure
        /// Asked for before this coordinator's time.
        let isInherited: Bool
        var timer: Loop.Token?
        /// It has settled, and is being locked.
        var isLocking = false

        init(_ kept: KeptExposure, isInherited: Bool = false) {
            self.kept = kept
            self.isInherited = isInherited
        }
    }

    private let loop: Loop
    private let locks: LockService
    private let store: RestartStore
    private let configurations: ConfigurationService
    private let lifecycle: Lifecycle
    private let events: EventSocket
    /// By the device's `uniqueID`.
    private var wishes: [String: Wish] = [:]
    private var saveTimer: Loop.Token?

    /// How long a camera that doesn't tell whether it adjusts its exposure is given, milliseconds.
    private static let patience: Int64 = 1000
    /// How long to wait for a lock that lasts for one call only, nanoseconds.
    private static let callWait: Int64 = 2_000_000_000
    /// How long subscribers need at most to connect again, milliseconds.
    private static let returnTime: Int64 = 500
    /// When what could not be written is tried again, milliseconds.
    private static let saveInterval: Int64 = 1000

    init(
        _ loop: Loop, _ lifecycle: Lifecycle, _ events: EventSocket, _ locks: LockService, _ store: RestartStore,
        _ configurations: ConfigurationService
    ) {
        self.loop = loop
        self.locks = locks
        self.store = store
        self.lifecycle = lifecycle
        self.events = events
        self.configurations = configurations
        for kept in store.exposures { wishes[kept.device] = Wish(kept, isInherited: true) }
    }

    /// The exposure is to be locked when it has settled, from the next ``changed(_:)`` on. Replaces an earlier wish.
    ///
    /// - Returns: false: another coordinator will not know of it.
    func begin(_ worker: WorkerHandle, caller: LockHolder, fence: UInt64) -> Bool {
        let uniqueID = worker.device.identity.uniqueID
        loop.cancel(wishes[uniqueID]?.timer)
        wishes[uniqueID] = Wish(
            KeptExposure(
                device: uniqueID, holder: caller, fence: fence, format: worker.status["activeFormat"] ?? .null,
                worker: worker.pid ?? 0))
        return save()
    }

    /// It is not to be locked any more.
    ///
    /// - Returns: false: another coordinator may do it all the same.
    @discardableResult
    func cancel(_ worker: WorkerHandle) -> Bool { forget([worker.device.identity.uniqueID]) }

    /// To be called whenever something of a device has changed.
    func changed(_ worker: WorkerHandle) {
        guard let wish = wishes[worker.device.identity.uniqueID], !wish.isLocking else { return }
        let status = worker.status
        // One that a coordinator before this one has started says hello in a moment.
        guard worker.state != .starting else { return }
        guard worker.isRunning, worker.pid == wish.kept.worker else {
            cancel(worker)
            return lost(worker.device.id, wish)
        }
        // It has said nothing yet.
        guard let controls = status["controls"] else { return }
        guard worker.isConnected, status["activeFormat"] == wish.kept.format,
            controls["exposureMode"]?.string == "continuousAutoExposure"
        else {
            cancel(worker)
            return
        }
        switch controls["adjustingExposure"]?.bool {
        case true?: break
        case false?: lock(worker, wish)
        case nil where wish.timer == nil:
            wish.timer = loop.schedule(afterMilliseconds: Self.patience) { [weak self, weak worker] in
                guard let self, let worker, isPending(wish, worker), !wish.isLocking else { return }
                lock(worker, wish)
            }
        case nil: break
        }
    }

    /// Who may not change a device any more has nothing locked there later on.
    func endUnauthorized(_ isUnauthorized: (_ caller: LockHolder, _ uniqueID: String) -> Bool) {
        forget(wishes.filter { isUnauthorized($0.value.kept.holder, $0.key) }.map(\.key))
    }

    /// Only these devices are there.
    func keepOnly(_ uniqueIDs: Set<String>) { forget(wishes.keys.filter { !uniqueIDs.contains($0) }) }

    /// The bus ends, and all that it was to do.
    func shutDown() { forget(Array(wishes.keys)) }

    @discardableResult
    private func forget(_ uniqueIDs: [String]) -> Bool {
        let forgotten = uniqueIDs.compactMap { wishes.removeValue(forKey: $0) }
        for wish in forgotten { loop.cancel(wish.timer) }
        return forgotten.isEmpty || save()
    }

    private func isPending(_ wish: Wish, _ worker: WorkerHandle) -> Bool {
        wishes[worker.device.identity.uniqueID] === wish
    }

    private func lock(_ worker: WorkerHandle, _ wish: Wish) {
        wish.isLocking = true
        let device = worker.device.id
        let done: Responder = { [weak self, weak worker] result in
            guard let self else { return }
            // Only now: a coordinator that comes in between has it to do again.
            if let worker, isPending(wish, worker) { cancel(worker) }
            if case .failure(let error) = result { failed(device, error) }
        }
        let present = locks.table.lock(on: device)
        // Whoever asked for it and has the lock by now is not somebody else, nor is whoever asked under a lock that was
        // handed on. A lock for one call is waited for: it may be for what calls this off.
        if let present, !present.isTransient,
            present.holder.isSameProcess(as: wish.kept.holder) || present.fence == wish.kept.fence
        {
            return set(device, present.fence, done)
        }
        let wait = present?.isTransient ?? false ? Self.callWait : 0
        locks.withTransientLock(on: [device], for: .ourselves, wait: wait, then: done) {
            [weak self, weak worker] fence, done in
            guard let self, let worker, isPending(wish, worker) else { return done(.success([:])) }
            set(device, fence, done)
        }
    }

    private func set(_ device: String, _ fence: UInt64, _ respond: @escaping Responder) {
        configurations.setControls(["exposureMode": "locked"], device, fence, respond)
    }

    private func lost(_ device: String, _ wish: Wish) {
        let error = BusError(.workerCrashed, "The device's process ended before its exposure had settled.")
        // Subscribers are just connecting again.
        loop.schedule(afterMilliseconds: wish.isInherited ? Self.returnTime : 0) { [weak self] in
            self?.failed(device, error)
        }
    }

    private func failed(_ device: String, _ error: BusError) {
        guard !lifecycle.isStopping else { return }
        events.event(
            "event/device/\(device)", "exposureLockFailed",
            ["reason": .string(error.reason.rawValue), "holder": error.data["holder"] ?? .null])
    }

    /// Writes what is to be locked; what can't be written is tried again, as what was called off must not come back.
    @discardableResult
    private func save() -> Bool {
        let isSaved = store.save(wishes.values.map(\.kept).sorted { $0.device < $1.device })
        if !isSaved, saveTimer == nil {
            saveTimer = loop.schedule(afterMilliseconds: Self.saveInterval) { [weak self] in
                self?.saveTimer = nil
                self?.save()
            }
        }
        return isSaved
    }
}
