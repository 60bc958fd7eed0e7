import BusProtocol
import BusServer
import CaptureCore
import JSON
import LinuxIO

/// Locks exposures that were asked to be locked when they have settled (`device.expose` with `thenLock`).
final class ExposureDesk {
    private final class Wish {
        let caller: LockHolder
        /// Its id when it was asked.
        let device: String
        /// Of the lock that it was asked under.
        let fence: UInt64
        /// The format that it was asked in.
        let format: JSONValue
        var timer: Loop.Token?

        init(caller: LockHolder, device: String, fence: UInt64, format: JSONValue) {
            self.caller = caller
            self.device = device
            self.fence = fence
            self.format = format
        }
    }

    private let loop: Loop
    private let locks: LockDesk
    private let set: (_ device: String, _ fence: UInt64, @escaping Responder) -> Void
    private let tell: (_ device: String, _ members: [String: JSONValue]) -> Void
    /// By the device's `uniqueID`.
    private var wishes: [String: Wish] = [:]

    /// How long a camera that doesn't tell whether it adjusts its exposure is given, milliseconds.
    private static let patience: Int64 = 1000
    /// How long to wait for a lock that lasts for one call only, nanoseconds.
    private static let callWait: Int64 = 2_000_000_000

    /// - Parameters:
    ///   - set: locks a device's exposure under a fence.
    ///   - tell: publishes `exposureLockFailed`.
    init(
        _ loop: Loop, _ locks: LockDesk, set: @escaping (String, UInt64, @escaping Responder) -> Void,
        tell: @escaping (String, [String: JSONValue]) -> Void
    ) {
        self.loop = loop
        self.locks = locks
        self.set = set
        self.tell = tell
    }

    /// The exposure is to be locked when it has settled. Replaces an earlier wish.
    func begin(_ worker: Worker, caller: LockHolder, fence: UInt64) {
        cancel(worker)
        let wish = Wish(
            caller: caller, device: worker.device.id, fence: fence, format: worker.status["activeFormat"] ?? .null)
        wishes[worker.device.identity.uniqueID] = wish
        if worker.status["controls"]?["adjustingExposure"]?.bool == nil {
            wish.timer = loop.schedule(afterMilliseconds: Self.patience) { [weak self, weak worker] in
                guard let self, let worker, isPending(wish, worker) else { return }
                lock(worker, wish)
            }
        }
        changed(worker)
    }

    /// It is not to be locked any more.
    func cancel(_ worker: Worker) {
        loop.cancel(wishes.removeValue(forKey: worker.device.identity.uniqueID)?.timer)
    }

    /// To be called whenever something of a device has changed.
    func changed(_ worker: Worker) {
        guard let wish = wishes[worker.device.identity.uniqueID] else { return }
        let status = worker.status
        let mode = status["controls"]?["exposureMode"]?.string
        guard worker.isRunning, worker.isConnected, status["activeFormat"] == wish.format,
            mode == "continuousAutoExposure"
        else { return cancel(worker) }
        if status["controls"]?["adjustingExposure"]?.bool == false { lock(worker, wish) }
    }

    /// Who may not change a device any more has nothing locked there later on.
    func endUnauthorized(_ isUnauthorized: (_ caller: LockHolder, _ uniqueID: String) -> Bool) {
        for (uniqueID, wish) in wishes where isUnauthorized(wish.caller, uniqueID) {
            loop.cancel(wish.timer)
            wishes[uniqueID] = nil
        }
    }

    /// A device is gone.
    func ended(_ uniqueIDs: Set<String>) {
        for (uniqueID, wish) in wishes where !uniqueIDs.contains(uniqueID) {
            loop.cancel(wish.timer)
            wishes[uniqueID] = nil
        }
    }

    private func isPending(_ wish: Wish, _ worker: Worker) -> Bool {
        wishes[worker.device.identity.uniqueID] === wish
    }

    private func lock(_ worker: Worker, _ wish: Wish) {
        cancel(worker)
        let device = worker.device.id
        let present = locks.table.lock(on: device)
        // Whoever asked for it and has the lock by now is not somebody else, nor is whoever asked under a lock that was handed on.
        if let present, present.holder == wish.caller || present.fence == wish.fence {
            return set(device, present.fence) { [weak self] in self?.told(device, $0) }
        }
        let wait = present?.isTransient ?? false ? Self.callWait : 0
        let told: Responder = { [weak self] in self?.told(device, $0) }
        locks.withTransientLock(on: [device], for: .ourselves, wait: wait, then: told) { [weak self] fence, done in
            self?.set(device, fence, done)
        }
    }

    private func told(_ device: String, _ result: Result<JSONValue, BusError>) {
        if case .failure(let error) = result { failed(device, error) }
    }

    private func failed(_ device: String, _ error: BusError) {
        tell(device, ["reason": .string(error.reason.rawValue), "holder": error.data["holder"] ?? .null])
    }
}
