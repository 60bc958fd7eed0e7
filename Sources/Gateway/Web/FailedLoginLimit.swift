import NIOCore
import Synchronization

/// Bounds how many answers to invalid tokens of an address wait at a time. Each of them comes late, so that a
/// connection can guess only so often; where too many wait, the next one comes at once and costs the guesser its
/// connection.
final class FailedLoginLimit: Sendable {
    private let waiting = Mutex<[String: Int]>([:])

    /// How long such an answer waits.
    static let delay = TimeAmount.seconds(1)
    /// Of one address.
    static let maximum = 16

    /// One more waits.
    ///
    /// - Parameter address: of IPv6 the network.
    /// - Returns: false: too many do.
    func enter(_ address: String) -> Bool {
        waiting.withLock { waiting in
            guard waiting[address, default: 0] < Self.maximum else { return false }
            waiting[address, default: 0] += 1
            return true
        }
    }

    /// One of those is answered.
    func leave(_ address: String) {
        waiting.withLock { waiting in
            let left = waiting[address, default: 1] - 1
            waiting[address] = left > 0 ? left : nil
        }
    }
}
