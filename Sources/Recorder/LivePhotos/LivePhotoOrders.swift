import BusProtocol
import CaptureCore
import JSON
import LinuxIO
import Synchronization

/// What the loop orders of the thread that makes the movies of live photos, and what that answers.
final class LivePhotoOrders: Sendable {
    enum Command: Hashable, Sendable {
        case make(order: UInt64, LivePhotoOrder)
        case drop(order: UInt64, job: String)
        case suspend(order: UInt64, Bool, at: Instant)
        /// The camera has gone: what comes next is not what came before.
        case restart(at: Instant)
    }

    struct Answer: Sendable {
        var order: UInt64
        var result: Result<JSONValue, BusError>
        /// The movie, where it goes with the answer.
        var file: [UInt8]?
    }

    private struct State {
        var commands: [Command] = []
        var answers: [Answer] = []
        var isClosed = false
    }

    private let state = Mutex(State())
    /// Wakes the thread, and tells the loop that there is ``takeAnswers()``.
    private let mailbox: RecorderMailbox

    /// Commands that may wait for the thread: more than the coordinator gives at a time.
    private static let maximumCommands = 128

    init(_ mailbox: RecorderMailbox) { self.mailbox = mailbox }

    // MARK: For the loop

    /// - Returns: false: nobody takes it any more, or too many wait.
    func give(_ command: Command) -> Bool {
        let isTaken = state.withLock { state in
            guard !state.isClosed, state.commands.count < Self.maximumCommands else { return false }
            state.commands.append(command)
            return true
        }
        if isTaken { mailbox.work.signal() }
        return isTaken
    }

    func takeAnswers() -> [Answer] {
        state.withLock { state in
            defer { state.answers = [] }
            return state.answers
        }
    }

    // MARK: For the thread

    func takeCommands() -> [Command] {
        state.withLock { state in
            defer { state.commands = [] }
            return state.commands
        }
    }

    func answer(_ order: UInt64, _ result: Result<JSONValue, BusError>, file: [UInt8]? = nil) {
        state.withLock { $0.answers.append(Answer(order: order, result: result, file: file)) }
        mailbox.news.signal()
    }

    /// Takes no more; what is in is still to be taken.
    func close() { state.withLock { $0.isClosed = true } }
}
