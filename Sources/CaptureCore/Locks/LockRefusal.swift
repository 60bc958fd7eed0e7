public import BusProtocol
import JSON

extension LockTable {
    /// Why a request for a lock got none.
    public enum Refusal: Hashable, Sendable {
        /// Held by that one, or free and promised to that one, who waited before; `queue` wait for the device already.
        case busy(device: String, holder: LockHolder, queue: Int)
        /// The request's own time limit passed. The holder is as for `busy`; nil if there is none any more.
        case timeout(device: String, holder: LockHolder?, queue: Int)
        /// Given up by who asked.
        case cancelled
        /// The process that asked is gone.
        case holderEnded
        /// One of the devices is gone.
        case deviceGone(String)
        /// So many wait for the device that no more may.
        case tooManyWaiting(device: String, limit: Int)
        /// The request names no device.
        case noDevices
        /// Who asked may not change the device any more.
        case permissionTaken
        /// The bus is going down.
        case shuttingDown

        /// The refusal as the contract has it.
        public func error() -> BusError {
            switch self {
            case .busy(let device, let holder, let queue):
                return BusError(
                    .deviceBusy,
                    "\(device) is locked by \(holder.told); device.lock with wait queues for it.",
                    ["device": .string(device), "holder": holder.json, "queue": JSONValue(queue)])
            case .timeout(let device, let holder, let queue):
                let whose = holder.map { "is still locked by \($0.told)" } ?? "was not released in time"
                return BusError(
                    .lockTimeout, "\(device) \(whose); try again with a longer wait.",
                    ["device": .string(device), "holder": holder?.json ?? .null, "queue": JSONValue(queue)])
            case .cancelled:
                return BusError(.cancelled, "The wait for the lock was cancelled.")
            case .holderEnded:
                return BusError(.cancelled, "The process that waited for the lock has ended.")
            case .deviceGone(let device):
                return BusError(
                    .deviceDisconnected, "\(device) was disconnected; lock it again when it is back.",
                    ["device": .string(device)])
            case .tooManyWaiting(let device, let limit):
                return BusError(
                    .limitExceeded, "\(limit) clients wait for \(device) already; try again later.",
                    ["limit": "lockWaiters", "maximum": JSONValue(limit), "device": .string(device)])
            case .noDevices:
                return .invalidParams("devices", "must name at least one device")
            case .permissionTaken:
                return BusError(
                    .unauthorized,
                    "The permission to change the device was revoked while the request waited for the "
                        + "lock.",
                    ["status": "denied", "needed": "control"])
            case .shuttingDown:
                return BusError(.shuttingDown, "The bus is shutting down; try again when it is back.")
            }
        }
    }

    /// Why a lock ended.
    public enum EndCause: String, Hashable, Sendable, CaseIterable {
        case unlocked, holderExited, connectionLost, leaseExpired, takenOver, deviceGone, permissionTaken, shuttingDown
    }

    /// What is to be done, in this order: each request is answered once, by a grant or a refusal.
    public enum Action: Hashable, Sendable {
        /// The request of that ticket has its lock.
        case grant(ticket: UInt64, Lock)
        /// The request of that ticket gets none.
        case refuse(ticket: UInt64, Refusal)
        /// A lock is over: its token gives no right any more. `by` is who took it over.
        case end(Lock, EndCause, by: LockHolder?)
    }
}

extension LockHolder {
    fileprivate var told: String {
        let process = pid > 0 ? "pid \(pid)" : "uid \(uid)"
        return name.isEmpty ? process : "\(name) (\(process))"
    }
}
