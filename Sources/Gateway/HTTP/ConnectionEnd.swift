import Glibc
import Synchronization

/// Ends a connection from any thread, at any time. After the close its descriptor may belong to another connection, and
/// is not touched any more.
final class ConnectionEnd: Sendable {
    private struct State {
        var isShutDown = false
        var isClosed = false
    }

    private let descriptor: Int32
    private let state = Mutex(State())

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// Whether it was shut down before it was closed.
    var isShutDown: Bool { state.withLock { $0.isShutDown } }

    /// Nothing more is written.
    func finish() {
        state.withLock { state in
            guard !state.isClosed else { return }
            _ = shutdown(descriptor, Int32(SHUT_WR))
        }
    }

    /// Whoever reads or writes is told that it has ended.
    func shutDown() {
        state.withLock { state in
            guard !state.isClosed else { return }
            state.isShutDown = true
            _ = shutdown(descriptor, Int32(SHUT_RDWR))
        }
    }

    /// Closes it as the body does, once.
    func close(_ body: () -> Void) {
        state.withLock { state in
            guard !state.isClosed else { return }
            state.isClosed = true
            body()
        }
    }
}
