import BusServer
import LinuxIO
import Synchronization
import ZeroMQ

/// Runs actions of connections, which have threads of their own, on the loop, where everything of the bus is.
///
/// It is bounded by its users: each connection waits for the end of its action before it posts another.
final class LoopMailbox: Sendable {
    private let letters = Mutex<[@Sendable () -> Void]>([])
    private let event: EventDescriptor

    init() throws(SystemError) { event = try EventDescriptor() }

    /// Has what comes done on that loop from now on.
    func deliver(on loop: Loop) {
        loop.watch(.descriptor(event.rawValue)) { [self] in
            event.drain()
            let bodies = letters.withLock { letters in
                defer { letters = [] }
                return letters
            }
            for body in bodies { body() }
        }
    }

    /// Has that done soon.
    func post(_ body: @escaping @Sendable () -> Void) {
        let isFirst = letters.withLock { letters in
            letters.append(body)
            return letters.count == 1
        }
        if isFirst { event.signal() }
    }

    /// Has that done, and waits for what it tells, which it has to do once.
    func ask<Answer: Sendable>(
        _ body: @escaping @Sendable (_ tell: @escaping @Sendable (Answer) -> Void) -> Void
    ) async -> Answer {
        await withCheckedContinuation { continuation in post { body { continuation.resume(returning: $0) } } }
    }
}
