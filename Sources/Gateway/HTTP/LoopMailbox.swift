import BusServer
import LinuxIO
import Synchronization
import ZeroMQ

/// How connections, which are served on threads of their own, have something done on the loop, where all of the bus is.
///
/// Bounded by who writes: each connection waits for the end of what it has asked for before it asks for more.
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
