public import BusProtocol
import Glibc
public import JSON
import LinuxIO
public import ZeroMQ

/// A gateway beside a bus, on ports of this machine, with keys of its own.
public final class RemoteGateway {
    public let port: Int
    public let program: RunningProgram
    /// The file of keys that are let in.
    public let keysPath: String
    /// Its public key.
    public let serverKey: CurveKey
    private var keys = RemoteUserList()

    /// Starts it, and returns when it listens.
    ///
    /// - Parameters:
    ///   - settings: further lines of `[tcp]`.
    ///   - host: the address where it listens.
    public init(_ bus: BusHarness, settings: String = "", host: String = "127.0.0.1") async throws {
        let port = try LocalPort.free(inARow: 3)
        self.port = port
        let state = "\(bus.scratchPath)/gateway"
        mkdir(state, 0o700)
        keysPath = try bus.write("", to: "gateway/keys")
        let configuration = try bus.write(
            "[tcp]\nlisten = \"tcp://\(host):\(port)\"\nkeys = \"\(keysPath)\"\n\(settings)\n[web]\nlisten = "
                + "\"none\"\n",
            to: "gateway.toml")
        let program = try bus.start(
            "camerabus-gateway", ["--config", configuration, "--runtime-dir", bus.directory.path],
            environment: ["STATE_DIRECTORY": state])
        self.program = program
        try await eventually { LocalPort.isListening(port + 2) }
        let file = String(decoding: try File.read("\(state)/server.pub", limit: 1 << 16), as: UTF8.self)
        guard let key = KeyFile.keys(in: file).publicKey.flatMap({ CurveKey($0) }) else {
            throw TestingError("the gateway has no public key: \(program.standardError)")
        }
        serverKey = key
    }

    /// Lets a new key in.
    public func add(_ name: String, _ role: Request.Principal.Role) throws -> CurveKeyPair {
        let pair = try CurveKeyPair.make()
        try add(name, role, pair)
        return pair
    }

    /// Lets a key in.
    public func add(_ name: String, _ role: Request.Principal.Role, _ pair: CurveKeyPair) throws {
        try keys.add(RemoteUserList.Entry(role: role, key: pair.publicKey.text, name: name))
        try write()
    }

    /// Lets a key in no more.
    public func revoke(_ name: String) throws {
        _ = keys.remove(name)
        try write()
    }

    private func write() throws { try File.replace(keysPath, with: Array(keys.text.utf8), mode: 0o600) }

    /// A client's socket at one of the ports.
    ///
    /// - Parameter source: the address that it comes from.
    public func socket(
        _ kind: Socket.Kind, _ door: TCPAddress.Door, _ pair: CurveKeyPair, in context: Context, topics: [String] = [],
        from source: String = "127.0.0.1"
    ) throws -> Socket {
        let socket = try Socket(context, kind)
        try socket.setCurveClient(server: serverKey, own: pair)
        for topic in topics { try socket.subscribe(topic) }
        try socket.connect("tcp://\(source):0;127.0.0.1:\(port + door.rawValue)")
        return socket
    }
}

/// A client on another machine that says just what a test tells it to, and waits with a deadline.
public final class RemoteProbe {
    private let context: Context
    public let requests: Socket
    private let gateway: RemoteGateway
    private let pair: CurveKeyPair
    private var lastID: Int64 = 0

    public init(_ gateway: RemoteGateway, _ pair: CurveKeyPair) throws {
        self.gateway = gateway
        self.pair = pair
        context = try Context()
        requests = try gateway.socket(.dealer, .command, pair, in: context)
    }

    /// A further socket.
    public func socket(_ kind: Socket.Kind, _ door: TCPAddress.Door, topics: [String] = []) throws -> Socket {
        try gateway.socket(kind, door, pair, in: context, topics: topics)
    }

    /// The next message, within so many seconds; nil: none came.
    public func receive(_ socket: Socket, within seconds: Double = 15) throws -> [Message]? {
        let deadline = Deadline.after(seconds: seconds)
        while true {
            if let message = try socket.receive() { return message }
            if deadline.hasPassed { return nil }
            let set = try PollSet([.socket(socket)])
            try set.wait(timeout: deadline.millisecondsLeft)
        }
    }

    /// Asks, and answers what came of it; nil: nothing.
    public func ask(
        _ method: String, _ params: JSONValue = [:], within seconds: Double = 15
    ) throws -> Result<JSONValue, BusError>? {
        lastID += 1
        try requests.send(
            frames: [[], Request(id: .integer(lastID), method: method, params: params).serialized])
        while let frames = try receive(requests, within: seconds) {
            guard frames.count > 1, let reply = try? Reply(parsing: frames[1].bytes) else { continue }
            if reply.id == .integer(lastID) { return reply.result }
        }
        return nil
    }

    /// Asks what is to be answered.
    public func call(_ method: String, _ params: JSONValue = [:]) throws -> JSONValue {
        guard let result = try ask(method, params) else { throw TestingError("\(method) was not answered") }
        return try result.get()
    }

    /// The reason of what is to be refused; nil: it wasn't.
    public func refusal(_ method: String, _ params: JSONValue = [:]) throws -> BusError? {
        guard case .failure(let error)? = try ask(method, params) else { return nil }
        return error
    }
}
