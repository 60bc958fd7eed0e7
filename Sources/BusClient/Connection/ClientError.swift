public import BusProtocol
import JSON

/// Why something did not work between a client and the bus.
public enum ClientError: Error, Hashable, Sendable {
    /// The bus, or the device's worker, said no.
    case refused(BusError)
    /// No bus runs at any of the places where it was looked for.
    case noBus(lookedAt: [Place])
    /// The runtime directory that was named can't be one.
    case invalidRuntimeDirectory(String)
    /// The bus did not answer in time. It may have done what it was asked.
    case timedOut(method: String, milliseconds: Int64)
    /// The connection ended before the answer was there. The bus may have done what it was asked.
    case connectionLost(method: String)
    /// The bus that was in that runtime directory was ended in order; none is there now.
    case ended(directory: String)
    /// The gateway of a bus on another machine can't be reached, or doesn't let us in.
    case unreachable(address: String, GatewayObstacle)
    /// Nothing came on a subscription for that long; the sentence tells what is known of why.
    case silent(String)
    /// The task that waited was cancelled.
    case cancelled
    /// ``Client/close()`` was called.
    case closed
    /// More requests wait for an answer than a client keeps (``Client/maximumPendingCalls``).
    case tooManyCalls
    /// What came is not what a CameraBus sends.
    case unreadable(String)
    /// The system, or libzmq, refused a socket, a thread or a descriptor.
    case system(String)

    /// Where a bus was looked for, and what was found there.
    public struct Place: Hashable, Sendable, CustomStringConvertible {
        /// The runtime directory.
        public var directory: String
        /// Why it isn't there: a few words.
        public var why: String

        public init(directory: String, why: String) {
            self.directory = directory
            self.why = why
        }

        public var description: String { "\(directory) (\(why))" }
    }

    /// The refusal's reason, if it is one.
    public var reason: BusError.Reason? {
        guard case .refused(let error) = self else { return nil }
        return error.reason
    }
}

extension ClientError: CustomStringConvertible {
    /// One sentence or two that tell a person what to do.
    public var description: String {
        switch self {
        case .refused(let error): "\(error.word): \(error.message)"
        case .noBus(let places):
            "No CameraBus runs here. Start one with 'camerabusd' (in a clone of the project: 'make run'), or name its "
                + "runtime directory with --runtime-dir or $CAMERABUS_RUNTIME_DIR. Looked at: "
                + places.map(\.description).joined(separator: ", ") + "."
        case .invalidRuntimeDirectory(let why): why
        case .timedOut(let method, let milliseconds):
            "The bus has not answered \(method) within \(Self.seconds(milliseconds)) s."
        case .connectionLost(let method): "The bus ended before it answered \(method)."
        case .ended(let directory): "The bus in \(directory) has ended."
        case .unreachable(let address, let obstacle): obstacle.sentence(address)
        case .silent(let why): why
        case .cancelled: "Cancelled."
        case .closed: "The connection to the bus is closed."
        case .tooManyCalls: "\(Client.maximumPendingCalls) requests wait for an answer already."
        case .unreadable(let why): why
        case .system(let why): why
        }
    }

    static func seconds(_ milliseconds: Int64) -> String {
        milliseconds % 1000 == 0 ? String(milliseconds / 1000) : String(Double(milliseconds) / 1000)
    }
}

extension BusError {
    /// The contract's word for why, also one of a later version that this library doesn't know.
    public var word: String { data["reason"]?.string ?? reason.rawValue }
}
