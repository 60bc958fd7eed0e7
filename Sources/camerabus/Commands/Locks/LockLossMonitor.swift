import BusClient
import BusProtocol
import JSON

/// Waits until a lock is lost.
struct LockLossMonitor: Sendable {
    /// How the lock ended before its time.
    struct Loss: Error, Hashable, Sendable {
        /// One sentence.
        var description: String
        /// A holder of the lock's token has unlocked it; this may be the command.
        var isWanted = false
    }

    private let client: Client
    private let lock: DeviceLock
    private let patience: Duration

    /// The pause before the next attempt to find a bus, while the lock is renewed.
    private static let pause = Duration.seconds(3)

    /// - Parameter patience: the silence of the bus after which a note is printed.
    init(_ client: Client, _ lock: DeviceLock, patience: Duration) {
        self.client = client
        self.lock = lock
        self.patience = patience
    }

    /// Returns the cause when the lock is lost.
    func loss() async throws -> Loss {
        try await withThrowingTaskGroup(of: Loss?.self) { group in
            group.addTask { try await isTakenAway() }
            if lock.isRenewed { group.addTask { await isNotRenewed() } }
            defer { group.cancelAll() }
            // A client that unlocked the lock itself may still get a loss.
            for try await case let loss? in group { return loss }
            return Loss(description: "The connection to the bus is closed.")
        }
    }

    /// The silence of a bus is no loss: if it was killed, the next bus knows the lock.
    private func isTakenAway() async throws -> Loss {
        var isSilent = false
        while true {
            let observing = await observe()
            // The renewal shows whether the lock still exists.
            if lock.isRenewed, case .failure(let error) = observing, !error.isOwn {
                try await Task.sleep(for: Self.pause)
                continue
            }
            if case .success(let observer) = observing {
                isSilent = false
                let end = await end(observer)
                if lock.isRenewed, case .failure(let error) = end, !error.isOwn { continue }
                if !end.isSilence { return try end.get() }
            } else if !observing.isSilence {
                _ = try observing.get()
            }
            if !isSilent { Output.note("The bus does not respond. If it was killed, the next bus keeps the lock.") }
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

    // The event with the cause arrives before the state of the devices changes.
    private func loss(_ observer: StateObserver) async throws(ClientError) -> Loss {
        var id: String?
        while true {
            // A device without a worker does not publish its lock.
            for (device, topic) in zip(lock.devices, topics) {
                guard let value = observer[topic] else { continue }
                guard value["lock"]?["fence"]?.integer == lock.fence else {
                    let holder = value["lock"]?["holder"]
                    let now = holder.map { " \(device) is now locked by \(ValueText.holder($0))." } ?? ""
                    return Loss(description: "The lock was taken away, or the bus was restarted without it.\(now)")
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
            case "unlocked": "a process with its token has unlocked \(devices)"
            case "takenOver": "\(ValueText.holder(event["by"])) has taken \(devices) over"
            case "leaseExpired": "its lease has expired"
            case "deviceGone": "one of its devices is no longer connected: \(devices)"
            case "shuttingDown": "the bus was shut down"
            case "holderExited", "connectionLost": "the bus has lost the connection to this program"
            default: "the bus has ended it"
            }
        return Loss(description: "The lock has ended: \(why).", isWanted: event["cause"] == "unlocked")
    }

    private func isNotRenewed() async -> Loss? {
        switch await lock.lost() {
        case nil: nil
        case .ended(let refusal)?: Loss(description: refusal.message)
        case .notRenewed(let lease, let error)?:
            Loss(
                description:
                    "The lock has ended: its lease of \(ValueText.rate(Self.seconds(lease))) s has expired, "
                    + "because it could not be renewed. "
                    + ErrorText(command: "lock").text(error))
        }
    }

    private static func seconds(_ duration: Duration) -> Double {
        let (whole, parts) = duration.components
        return Double(whole) + Double(parts) / 1e18
    }
}

extension ClientError {
    /// The error was caused on this side, not by a missing bus.
    fileprivate var isOwn: Bool {
        switch self {
        case .cancelled, .closed, .system: true
        default: false
        }
    }
}

extension Result where Failure == ClientError {
    fileprivate var isSilence: Bool { if case .failure(.silent) = self { true } else { false } }
}
