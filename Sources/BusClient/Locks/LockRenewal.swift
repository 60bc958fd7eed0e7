public import BusProtocol
import JSON
import Synchronization

/// How a renewed lock ended, if not by its own client.
public enum LockLoss: Error, Hashable, Sendable {
    /// The bus says that it is over; its words.
    case ended(BusError)
    /// Its lease, of that length, has run out, as it could not be renewed; why the last attempt failed.
    case notRenewed(Duration, ClientError)
}

extension LockLoss: CustomStringConvertible {
    /// One sentence or two.
    public var description: String {
        switch self {
        case .ended(let error): error.message
        case .notRenewed(let lease, let error): "\(LockRenewal.runOut(lease)) \(error)"
        }
    }
}

/// Renews the lock of a process that the bus can't see, three times per lease, until it is unlocked or lost, or the
/// client is closed.
final class LockRenewal: Sendable {
    private struct State {
        var isOver = false
        var loss: LockLoss?
        var waiting: [Int64: CheckedContinuation<LockLoss?, Never>] = [:]
        var lastWaiter: Int64 = 0
        var task: Task<Void, Never>?
    }

    private let line: ClientConnection
    private let token: String
    private let state = Mutex(State())

    /// How long a lock lasts of a process that the bus can't see, unless it says otherwise.
    private static let usualLease = Duration.seconds(10)

    /// - Parameter asked: when the lock was asked for.
    init(_ line: ClientConnection, token: String, fence: Int64, asked: ContinuousClock.Instant) {
        self.line = line
        self.token = token
        let task = Task { [self] in end(await run(fence: fence, asked: asked)) }
        let isOver = state.withLock { state in
            state.task = task
            return state.isOver
        }
        if isOver { task.cancel() }
    }

    /// Its loss; nil: none is known.
    var loss: LockLoss? { state.withLock(\.loss) }

    /// Ends the renewing without a loss.
    func end() { end(nil) }

    /// Returns when it is lost; nil: it was unlocked, the client was closed, or the task that waits was cancelled.
    func wait() async -> LockLoss? {
        let number = state.withLock { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<LockLoss?, Never>) in
                let isOver = state.withLock { state in
                    // In the same breath, so that what the cancellation handler does comes later.
                    if state.isOver || Task.isCancelled { return true }
                    state.waiting[number] = continuation
                    return false
                }
                if isOver { continuation.resume(returning: loss) }
            }
        } onCancel: {
            state.withLock { $0.waiting.removeValue(forKey: number) }?.resume(returning: nil)
        }
    }

    private func end(_ loss: LockLoss?) {
        let (waiting, task) = state.withLock { state in
            defer { (state.waiting, state.task) = ([:], nil) }
            guard !state.isOver else { return (state.waiting, state.task) }
            (state.isOver, state.loss) = (true, loss)
            return (state.waiting, state.task)
        }
        task?.cancel()
        for continuation in waiting.values { continuation.resume(returning: loss) }
    }

    private func run(fence: Int64, asked: ContinuousClock.Instant) async -> LockLoss? {
        // The time goes on while this machine sleeps, as it does at the bus.
        let answer = await locks()
        let lease = lease(fence: fence, in: answer)
        var renewed = asked
        // An answer that took long, as by a queue, doesn't say since when it holds.
        let isLate = ContinuousClock.now - asked > lease / 3
        if isLate { renewed = .now }
        // Whose end is a reason to ask at once, and then now and then; nil: it has ended.
        var connection = answer?.connection
        var isDue = isLate || answer == nil
        while true {
            if !isDue { await timeToRenew(lease / 3, connection) }
            if Task.isCancelled { return nil }
            let now = ContinuousClock.now
            do throws(ClientError) {
                // Who comes late, as after this machine has slept, asks all the same: the bus knows whether it is over.
                connection = try await line.ask(
                    "device.renew", ["lock": .string(token)], timeout: max(lease / 10, renewed + lease - now)
                ).connection
                (renewed, isDue) = (now, false)
            } catch {
                connection = nil
                // The next attempt waits for the connection, and is sent as soon as there is one.
                isDue = false
                switch error {
                case .cancelled, .closed: return nil
                // With another role of its key what a client had has ended, and with this one it may hold no lock.
                case .refused(let refusal) where [.lockLost, .unauthorized].contains(refusal.reason):
                    return .ended(refusal)
                case .connectionLost: isDue = true
                default: break
                }
                if ContinuousClock.now - renewed >= lease { return .notRenewed(lease, error) }
            }
        }
    }

    private func timeToRenew(_ interval: Duration, _ connection: Int?) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await Task.sleep(for: interval) }
            if let connection { group.addTask { await self.line.waitUntilCut(connection) } }
            await group.next()
            group.cancelAll()
        }
    }

    private func locks() async -> Answer? { try? await line.ask("device.locks", [:], timeout: Self.usualLease / 3) }

    private func lease(fence: Int64, in answer: Answer?) -> Duration {
        let own = answer?.result["locks"]?.array?.first { $0["fence"]?.integer == fence }
        return own?["lease"]?.integer.map { .milliseconds($0) } ?? Self.usualLease
    }

    static func runOut(_ lease: Duration) -> String {
        "The lock has ended: its lease of \(ClientError.seconds(lease.clampedMilliseconds)) s has expired, "
            + "because it could not be renewed."
    }
}
