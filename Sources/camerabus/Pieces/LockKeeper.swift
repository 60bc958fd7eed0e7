import BusClient
import BusProtocol
import JSON

/// Sees to a lock that is held for long.
struct LockKeeper: Sendable {
    private let client: Client
    private let lock: DeviceLock

    init(_ client: Client, _ lock: DeviceLock) {
        self.client = client
        self.lock = lock
    }

    /// Returns when the lock is no longer ours, with why; renews it where it needs that.
    func loss() async throws -> ClientError {
        try await withThrowingTaskGroup(of: ClientError.self) { group in
            group.addTask { try await isTakenAway() }
            // A process that the bus can't see holds its locks by a lease of 10 s.
            if client.greeting.pid == 0 { group.addTask { try await isNotRenewed() } }
            defer { group.cancelAll() }
            return try await group.next() ?? .closed
        }
    }

    private func isTakenAway() async throws -> ClientError {
        let topics = lock.devices.map { "state/device/\($0)/" }
        let observer = try await client.observe(topics)
        while true {
            // A device without its worker says nothing of its lock.
            for topic in topics {
                guard let value = observer[topic], value["lock"]?["fence"]?.integer != lock.fence else { continue }
                let message = "The lock was taken away, or the bus was started again without it."
                return .refused(BusError(.lockLost, message))
            }
            _ = try await observer.next()
        }
    }

    private func isNotRenewed() async throws -> ClientError {
        while true {
            try await Task.sleep(for: .seconds(3))
            do throws(ClientError) {
                try await client.renew(lock)
            } catch {
                guard error.reason != nil else { throw error }
                return error
            }
        }
    }
}
