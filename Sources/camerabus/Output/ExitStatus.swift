import ArgumentParser
import BusClient
import BusProtocol

/// The exit statuses, as the help lists them.
enum ExitStatus {
    static let done: Int32 = 0
    static let refused: Int32 = 1
    static let usage: Int32 = 2
    static let noBus: Int32 = 3
    static let timedOut: Int32 = 4
    // As shells have it (POSIX, "Exit Status for Commands").
    static let cannotExecute: Int32 = 126
    static let commandNotFound: Int32 = 127

    static func of(_ error: any Error) -> Int32 {
        switch error {
        case let error as ClientError: of(error)
        case let error as Failure: error.status
        case is ValidationError: usage
        case let error as ExitCode: error.rawValue
        // Who closed the pipe has what it wanted.
        case is OutputClosed: done
        default: refused
        }
    }

    private static func of(_ error: ClientError) -> Int32 {
        switch error {
        case .noBus, .ended, .connectionLost, .closed, .unreachable: noBus
        case .timedOut, .silent: timedOut
        case .refused(let refusal) where refusal.reason == .lockTimeout: timedOut
        case .invalidRuntimeDirectory: usage
        case .refused, .cancelled, .tooManyCalls, .unreadable, .system: refused
        }
    }
}

/// A failure with the exit status that it deserves.
struct Failure: Error, CustomStringConvertible {
    var status: Int32
    var description: String
}
