import BusClient
import BusProtocol
import JSON

/// Sees to a lock that is held for long.
struct LockKeeper: Sendable {
    /// How the lock ended before its time.
    struct Loss: Error, Hashable, Sendable {
        /// One sentence.
        var description: String
        /// Who has the lock's token, which is the command too, has ended it.
        var isWanted = false
    }

    private let client: Client
    private let lock: DeviceLock
    /// The lock ends with a lease that was asked for.
    private let hasLease: Bool
    private let patience: Duration

    /// - Parameter patience: after how much silence of the bus to say so.
    init(_ client: Client, _ lock: DeviceLock, hasLease: Bool, patience: Duration) {
        self.client = client
        self.lock = lock
        self.hasLease = hasLease
        self.patience = patience
    }

    /// Returns when the lock is no longer ours, with why; renews it where it needs that.
    func loss() async throws -> Loss {
        try await withThrowingTaskGroup(of: Loss.self) { group in
            group.addTask { try await isTakenAway() }
            // A process that the bus can't see holds its locks by a lease of 10 s.
            if client.greeting.pid == 0, !hasLease { group.addTask { try await isNotRenewed() } }
            defer { group.cancelAll() }
            return try await group.next() ?? Loss(description: "The connection to the bus is closed.")
        }
    }

    /// A bus that was killed is succeeded by one that knows the lock: its silence is no loss.
    private func isTakenAway() async throws -> Loss {
        var isSilent = false
        while true {
            let observing = await observe()
            if case .success(let observer) = observing {
                isSilent = false
                let end = await end(observer)
                if !end.isSilence { return try end.get() }
            } else if !observing.isSilence {
                _ = try observing.get()
            }
            if !isSilent { Output.note("The bus gives no sign. If it was killed, the next one knows the lock.") }
            isSilent = true
        }
    }

    private func observe() async -> Result<StateObserver, ClientError> {
        do throws(ClientError) {
            return .success(
                try await client.observe(topics + ["event/lock/"], silence: patience, timeout: patience))
        } catch {
            return .failure(error)
        }
    }

    private func end(_ observer: StateObserver) async -> Result<Loss, ClientError> {
        do throws(ClientError) { return .success(try await loss(observer)) } catch { return .failure(error) }
    }

    private var topics: [String] { lock.devices.map { "state/device/\($0)/" } }

    // Why it ended is told before it shows at the devices.
    private func loss(_ observer: StateObserver) async throws(ClientError) -> Loss {
        var id: String?
        while true {
            // A device without its worker says nothing of its lock.
            for (device, topic) in zip(lock.devices, topics) {
                guard let value = observer[topic] else { continue }
                guard value["lock"]?["fence"]?.integer == lock.fence else {
                    let holder = value["lock"]?["holder"]
                    let now = holder.map { " Now \(Describing.holder($0)) has \(device)." } ?? ""
                    return Loss(description: "The lock was taken away, or the bus was started again without it.\(now)")
                }
                id = value["lock"]?["id"]?.string ?? id
            }
            let change = try await observer.next()
            guard case .event(let topic, let event, _) = change, event["event"] == "ended", let id else { continue }
            if topic == "event/lock/\(id)/" { return loss(event) }
        }
    }

    private func loss(_ event: JSONValue) -> Loss {
        let devices = lock.devices.joined(separator: ", ")
        let why =
            switch event["cause"]?.string {
            case "unlocked": "somebody who has its token has unlocked \(devices)"
            case "takenOver": "\(Describing.holder(event["by"])) has taken \(devices) over"
            case "leaseExpired": "its lease has run out"
            case "deviceGone": "one of its devices is gone: \(devices)"
            case "shuttingDown": "the bus was shut down"
            case "holderExited", "connectionLost": "the bus has lost sight of this program"
            default: "the bus has ended it"
            }
        return Loss(description: "The lock has ended: \(why).", isWanted: event["cause"] == "unlocked")
    }

    private func isNotRenewed() async throws -> Loss {
        while true {
            try await Task.sleep(for: .seconds(3))
            do throws(ClientError) {
                try await client.renew(lock)
            } catch {
                // It could not be written: the lock is still there, and so is its lease.
                if error.reason == .internalError { continue }
                guard case .refused(let refusal) = error else { throw error }
                return Loss(description: refusal.message)
            }
        }
    }
}

extension Result where Failure == ClientError {
    fileprivate var isSilence: Bool { if case .failure(.silent) = self { true } else { false } }
}
