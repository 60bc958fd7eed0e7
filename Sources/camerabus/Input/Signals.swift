import Glibc
import Synchronization

/// SIGINT, SIGTERM and SIGHUP: by default the first one cancels what runs, and a second one ends the program at once.
enum Signals {
    /// - Parameter isFromTerminal: a key was pressed, so that every process of the foreground got it.
    typealias Handler = @Sendable (_ signal: Int32, _ isFromTerminal: Bool) -> Void

    private struct State {
        var handler: Handler?
        var interruption: Int32?
    }

    private static let state = Mutex(State())
    private static let all = [SIGINT, SIGTERM, SIGHUP]

    /// The signal that has cancelled what ran.
    static var interruption: Int32? { state.withLock(\.interruption) }

    /// Keeps them for ``serve(interrupting:)``. To be called first, so that all threads inherit it.
    static func block() {
        var set = Self.set
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// Takes signals until the program ends.
    static func serve(interrupting cancel: () -> Void) -> Never {
        var set = Self.set
        var info = siginfo_t()
        while true {
            let signal = sigwaitinfo(&set, &info)
            guard signal > 0 else { continue }
            if let handler = state.withLock(\.handler) {
                handler(signal, info.si_code == SI_KERNEL)
            } else if interruption == nil {
                state.withLock { $0.interruption = signal }
                cancel()
            } else {
                AtomicFile.abandon(exiting: 128 + signal)
            }
        }
    }

    /// Gives them to the handler while the body runs.
    static func handled<Result>(by handler: @escaping Handler, _ body: () async throws -> Result) async rethrows
        -> Result
    {
        state.withLock { $0.handler = handler }
        defer { state.withLock { $0.handler = nil } }
        return try await body()
    }

    private static var set: sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for signal in all { sigaddset(&set, signal) }
        return set
    }
}
