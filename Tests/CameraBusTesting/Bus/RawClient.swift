public import BusProtocol
public import JSON
import LinuxIO
public import ZeroMQ

/// A client that says just what a test tells it to, well-formed or not, and waits with a deadline.
public final class RawClient {
    public struct TimedOut: Error {
        public init() {}
    }

    private let context: Context
    public let socket: Socket
    private var lastID: Int64 = 0

    /// - Parameters:
    ///   - kind: `.dealer` or `.request`, to command.sock; `.subscribe`, to the path given.
    ///   - topics: what to subscribe to before it connects.
    public init(_ kind: Socket.Kind = .dealer, path: String, topics: [String] = []) throws {
        context = try Context()
        socket = try Socket(context, kind)
        if kind == .subscribe { try socket.set(.receiveHighWaterMark, 1000) }
        for topic in topics { try socket.subscribe(topic) }
        try socket.connect("ipc://\(path)")
    }

    public func send(_ frames: [[UInt8]]) throws { try socket.send(frames: frames) }

    /// The next message, within so many seconds, which last longer on a slow machine.
    public func receive(within seconds: Double = 10) throws -> [Message] {
        let deadline = Deadline.after(seconds: seconds)
        while true {
            if let message = try socket.receive() { return message }
            if deadline.hasPassed { throw TimedOut() }
            let set = try PollSet([.socket(socket)])
            try set.wait(timeout: deadline.millisecondsLeft)
        }
    }

    /// Sends one text as a request's body and answers with the reply.
    public func exchange(_ body: [UInt8], within seconds: Double = 10) throws -> Reply {
        try send([[], body])
        return try reply(within: seconds)
    }

    public func exchange(_ body: String, within seconds: Double = 10) throws -> Reply {
        try exchange(Array(body.utf8), within: seconds)
    }

    /// The next reply.
    public func reply(within seconds: Double = 10) throws -> Reply {
        try replyWithFrames(within: seconds).reply
    }

    /// The next reply, with the frames behind its JSON.
    public func replyWithFrames(within seconds: Double = 10) throws -> (reply: Reply, frames: [Message]) {
        let frames = try receive(within: seconds)
        // Behind the envelope, which ends in an empty frame.
        let body = frames.firstIndex { $0.count == 0 }.map { $0 + 1 } ?? 0
        guard body < frames.count else { throw TimedOut() }
        return (try Reply(parsing: frames[body].bytes), Array(frames[(body + 1)...]))
    }

    /// Sends a request and doesn't wait for its reply.
    public func start(_ method: String, _ params: JSONValue = [:], key: String? = nil) throws {
        lastID += 1
        try send([[], Request(id: .integer(lastID), method: method, params: params, key: key).serialized])
    }

    /// Calls a method.
    @discardableResult
    public func call(
        _ method: String, _ params: JSONValue = [:], key: String? = nil, within seconds: Double = 15
    ) throws -> JSONValue {
        try start(method, params, key: key)
        return try reply(within: seconds).result.get()
    }

    /// Calls a method that is to be refused, and answers the refusal; nil when it wasn't.
    public func refusal(_ method: String, _ params: JSONValue = [:], key: String? = nil) throws -> BusError? {
        try start(method, params, key: key)
        if case .failure(let error) = try reply().result { return error }
        return nil
    }
}
