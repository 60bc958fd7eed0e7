public import BusProtocol
import JSON

/// Why something did not work between a client and the bus.
public enum ClientError: Error, Hashable, Sendable {
    /// The bus, or the worker of the device, refused the request.
    case refused(BusError)
    /// No bus runs in any of the searched directories.
    case noBus(lookedAt: [Place])
    /// The named runtime directory is not valid.
    case invalidRuntimeDirectory(String)
    /// The bus did not answer in time. It may have carried out the request.
    case timedOut(method: String, milliseconds: Int64)
    /// The connection ended before the answer arrived. The bus may have carried out the request.
    case connectionLost(method: String)
    /// The bus of this runtime directory was shut down, and no other one runs there.
    case ended(directory: String)
    /// The gateway of a bus on another machine can't be reached, or refuses this client.
    case unreachable(address: String, GatewayObstacle)
    /// A subscription received nothing for too long; the sentence says what is known about the cause.
    case silent(String)
    /// The task that waited was cancelled.
    case cancelled
    /// ``Client/close()`` was called.
    case closed
    /// More requests are waiting for an answer than a client may have (``Client/maximumPendingCalls``).
    case tooManyCalls
    /// A message that a CameraBus does not send.
    case unreadable(String)
    /// The system, or libzmq, refused a socket, a thread or a descriptor.
    case system(String)

    /// A searched directory, and what was found there.
    public struct Place: Hashable, Sendable, CustomStringConvertible {
        /// The runtime directory.
        public var directory: String
        /// Why there is no bus: a few words.
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
    /// One or two sentences for people, with what to do next.
    public var description: String {
        switch self {
        case .refused(let error): "\(error.word): \(error.message)"
        case .noBus(let places):
            "No CameraBus runs here. Start one with 'camerabusd' (in a clone of the project: 'make run'), or name its "
                + "runtime directory with --runtime-dir or $CAMERABUS_RUNTIME_DIR. Searched: "
                + places.map(\.description).joined(separator: ", ") + "."
        case .invalidRuntimeDirectory(let why): why
        case .timedOut(let method, let milliseconds):
            "The bus did not answer \(method) within \(Self.seconds(milliseconds)) s."
        case .connectionLost(let method): "The bus ended before it answered \(method)."
        case .ended(let directory): "The bus in \(directory) has ended."
        case .unreachable(let address, let obstacle): obstacle.sentence(address)
        case .silent(let why): why
        case .cancelled: "Cancelled."
        case .closed: "The connection to the bus is closed."
        case .tooManyCalls:
            "This client already has \(Client.maximumPendingCalls) requests without an answer. Wait for some of them "
                + "first."
        case .unreadable(let why): why
        case .system(let why): why
        }
    }

    static func seconds(_ milliseconds: Int64) -> String {
        milliseconds % 1000 == 0 ? String(milliseconds / 1000) : String(Double(milliseconds) / 1000)
    }
}

extension BusError {
    /// The protocol's word for the reason; also one of a later version that this library does not know.
    public var word: String { data["reason"]?.string ?? reason.rawValue }
}
