import LinuxIO
import Synchronization

/// Passes signals to a command, also those that arrive before the command has started.
final class SignalRelay: Sendable {
    private struct State {
        var isStarting = false
        var process: ProcessDescriptor?
        var early: [Int32] = []
    }

    private let state = Mutex(State())

    func take(_ signal: Int32, isFromTerminal: Bool) {
        let process: ProcessDescriptor? = state.withLock { state in
            // A key pressed on the terminal reaches the command by itself, from its first moment.
            if isFromTerminal, state.isStarting { return nil }
            if state.process == nil { state.early.append(signal) }
            return state.process
        }
        process?.send(signal)
    }

    /// Starts the command by the body, and hands on what came before.
    func start<Failure: Error>(_ body: () throws(Failure) -> ChildProcess) throws(Failure) -> ChildProcess {
        state.withLock { $0.isStarting = true }
        let child = try body()
        let early = state.withLock { state in
            state.process = child.process
            return state.early
        }
        for signal in early { child.process.send(signal) }
        return child
    }
}
