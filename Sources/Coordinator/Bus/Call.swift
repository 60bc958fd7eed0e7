import BusProtocol
import JSON
import LinuxIO
import Sodium

/// Who sent a request, as the kernel says; or for whom a gateway asks (``RemoteUserRegistry/asker(_:_:)``).
struct Caller: Hashable {
    let peer: PeerAddress
    /// libzmq's name of the connection.
    let connection: [UInt8]
    /// The name of a client on another machine; nil: a process of this one.
    var remote: String?
}

/// A request with a key may be sent again: its user and its key.
struct RequestKey: Hashable {
    let uid: UInt32
    let key: String
}

/// What a method is called with. Its params have the shape that the method table declares.
struct Call {
    let caller: Caller
    let params: JSONValue
    let key: RequestKey?

    /// A call that follows from another request.
    init(_ caller: Caller, params: JSONValue, key: RequestKey?) {
        self.caller = caller
        self.params = params
        self.key = key
    }

    init(_ caller: Caller, _ request: Request) {
        self.caller = caller
        params = request.params
        key = request.key.map { RequestKey(uid: caller.peer.uid, key: $0) }
    }

    /// Identifies the same request when it is sent again after a restart; nil without a key.
    var digest: String? {
        key.map { hexadecimal(sha256(Array("\($0.uid) \($0.key)".utf8) + [0] + params.serialized)) }
    }

    func string(_ name: String) -> String? { params[name]?.string }

    /// One or several names: a bare string is one.
    func strings(_ name: String) -> [String] {
        if let one = params[name]?.string { return [one] }
        return params[name]?.array?.compactMap(\.string) ?? []
    }

    /// Milliseconds, in nanoseconds.
    func duration(_ name: String) -> Int64? {
        params[name]?.double.map { Int64(($0 * 1_000_000).rounded()) }
    }
}

/// Takes the result of a call that has no further frames, once.
typealias Responder = (Result<JSONValue, BusError>) -> Void

/// What serves a method.
enum Handler {
    case plain((Call, @escaping Responder) -> Void)
    /// Its replies may have further frames.
    case attaching((Call, @escaping ReplyTaker) -> Void)

    func callAsFunction(_ call: Call, _ respond: @escaping ReplyTaker) {
        switch self {
        case .plain(let serve): serve(call) { respond(CallReply(result: $0)) }
        case .attaching(let serve): serve(call, respond)
        }
    }
}

/// Serves the methods of one concept.
protocol MethodService {
    /// What serves each method, by its name.
    var methods: [String: Handler] { get }
}
