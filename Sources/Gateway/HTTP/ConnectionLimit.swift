import Synchronization

/// Counts connections, in total and by address. It accepts or refuses new ones.
final class ConnectionLimit: Sendable {
    private struct State {
        var addresses: [String: Int] = [:]
        var count = 0
        /// Since that was last waited for.
        var hasLeft = false
        var waiting: CheckedContinuation<Bool, Never>?
    }

    private let state = Mutex(State())
    private let total: Int
    private let perAddress: Int
    /// Of all, those that only this machine may have: whoever fills the rest keeps nobody out who sits at it.
    private let kept: Int

    private static let keptConnections = 16

    init(total: Int, perAddress: Int) {
        self.total = total
        self.perAddress = perAddress
        kept = min(Self.keptConnections, total / 4)
    }

    /// - Returns: false: there are too many.
    func enter(_ address: String) -> Bool {
        state.withLock { state in
            let room = WebAuthorization.isLoopback(address) ? total : total - kept
            guard state.count < room, state.addresses[address, default: 0] < perAddress else { return false }
            state.addresses[address, default: 0] += 1
            state.count += 1
            return true
        }
    }

    /// One that came in has gone, and its descriptor with it.
    func leave(_ address: String) {
        let waiting = state.withLock { state in
            let left = state.addresses[address, default: 1] - 1
            state.addresses[address] = left > 0 ? left : nil
            state.count -= 1
            let waiting = state.waiting.take()
            state.hasLeft = waiting == nil
            return waiting
        }
        waiting?.resume(returning: true)
    }

    /// Waits until one has gone since this was last asked.
    ///
    /// - Returns: false: nobody is in who could go, or the task was cancelled.
    func someoneLeft() async -> Bool {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let now = state.withLock { state -> Bool? in
                    if state.hasLeft {
                        state.hasLeft = false
                        return true
                    }
                    // Cancelled before it waits, nobody would wake it any more.
                    if state.count == 0 || Task.isCancelled { return false }
                    state.waiting = continuation
                    return nil
                }
                if let now { continuation.resume(returning: now) }
            }
        } onCancel: {
            state.withLock { $0.waiting.take() }?.resume(returning: false)
        }
    }
}
