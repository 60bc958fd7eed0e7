import BusProtocol
import Glibc
import LinuxIO
import Sodium
import ZeroMQ

/// Finds the obstacle between this client and a gateway, because libzmq only reports that a connection failed.
struct GatewayProbe {
    private let bus: RemoteBus

    private static let connecting = Duration.seconds(3)
    private static let greeting = Duration.seconds(1)
    private static let answering = Duration.seconds(2)
    /// A gateway leaves who isn't let in without an answer: so long it may take, beyond so many times what connecting
    /// has taken, before that or its being busy is taken for the reason.
    private static let lettingIn = Duration.milliseconds(600)
    private static let waysOfHandshake = 6
    private static let attempts = 3

    init(_ bus: RemoteBus) { self.bus = bus }

    /// Takes seconds at worst: for a thread of its own.
    ///
    /// - Returns: nil: nothing stands there.
    func obstacle() -> GatewayObstacle? {
        let start = ContinuousClock.now
        let connection: InternetConnection
        do throws(InternetConnection.Failure) {
            connection = try connect(.command)
        } catch {
            return Self.obstacle(error)
        }
        let way = ContinuousClock.now - start
        if let found = obstacle(to: connection) { return found }
        let patience = min(Self.lettingIn + way * Self.waysOfHandshake, Self.answering)
        switch isLetIn(as: .dealer, within: patience) {
        case .yes: return nil
        case .turnedAway where isLetIn(as: .subscribe, within: patience) == .yes: return .eventsPort
        case .turnedAway, .unanswered: return .notLetIn(key: bus.publicKey)
        }
    }

    func closedPorts() -> [Int] {
        [TCPAddress.Door.events, .media].filter { (try? connect($0)) == nil }.map { bus.address.port + $0.rawValue }
    }

    private func connect(_ door: TCPAddress.Door) throws(InternetConnection.Failure) -> InternetConnection {
        // Brackets are of the address' spelling, not of the host's.
        let host = bus.address.isIPv6 ? String(bus.address.host.dropFirst().dropLast()) : bus.address.host
        return try InternetConnection(
            host: host, port: bus.address.port + door.rawValue, by: monotonic(after: Self.connecting))
    }

    private func obstacle(to connection: InternetConnection) -> GatewayObstacle? {
        _ = connection.send(Self.ownGreeting)
        var (bytes, hasEnded) = connection.receive(Self.ownGreeting.count, by: monotonic(after: Self.greeting))
        if bytes.isEmpty, !hasEnded {
            // Whoever reads lines waits for the end of one.
            _ = connection.send(Array("\r\n\r\n".utf8))
            (bytes, hasEnded) = connection.receive(1, by: monotonic(after: Self.greeting))
            return bytes.isEmpty && !hasEnded ? .silent : .noGateway
        }
        if bytes.isEmpty { return .closedAtOnce }
        // Signature, version 3, and the mechanism, filled up with zeros.
        guard bytes.count == Self.ownGreeting.count, bytes[0] == 0xFF, bytes[9] == 0x7F, bytes[10] >= 3,
            bytes[12..<32].elementsEqual(Self.ownGreeting[12..<32])
        else { return .noGateway }
        guard let hello = hello(), connection.send(hello) else { return .closedAtOnce }
        let welcome = Array("\u{7}WELCOME".utf8)
        (bytes, hasEnded) = connection.receive(2 + welcome.count, by: monotonic(after: Self.answering))
        // Who can't open what it got says nothing to it.
        if bytes.dropFirst(2).elementsEqual(welcome) { return nil }
        return bytes.isEmpty && !hasEnded ? .silent : .wrongServerKey
    }

    private static func obstacle(_ failure: InternetConnection.Failure) -> GatewayObstacle {
        switch failure {
        case .noAddress(let why): .noAddress(why)
        case .system(let error) where error.code == ECONNREFUSED: .refused
        case .system(let error) where error.code == ETIMEDOUT: .noAnswer
        case .system(let error): .noConnection(String(cString: strerror(error.code)))
        }
    }

    /// Signature, version 3.0, mechanism, not the server, and what is kept for later.
    private static let ownGreeting: [UInt8] =
        [0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0x7F, 3, 0] + Array("CURVE".utf8) + Array(repeating: 0, count: 15 + 1 + 31)

    /// `HELLO`: a key for this connection alone, and 64 zeros that only who has the server's secret key can open.
    private func hello() -> [UInt8]? {
        guard let own = try? CurveKeyPair.make() else { return nil }
        let number: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 1]
        let nonce = Array("CurveZMQHELLO---".utf8) + number
        guard
            let signature = box(
                Array(repeating: 0, count: 64), nonce: nonce, to: bus.serverKey.bytes, from: own.secretKey.bytes)
        else { return nil }
        let version: [UInt8] = [1, 0]
        let body =
            Array("\u{5}HELLO".utf8) + version + Array(repeating: 0, count: 72) + own.publicKey.bytes + number
            + signature
        return [4, UInt8(body.count)] + body
    }

    private enum Entry {
        case yes, turnedAway, unanswered
    }

    private func isLetIn(as kind: Socket.Kind, within patience: Duration) -> Entry {
        do throws(ZeroMQError) {
            let context = try Context()
            let socket = try Socket(context, kind)
            let monitor = try Socket(context, .pair)
            defer { withExtendedLifetime(monitor) { socket.stopMonitor() } }
            let events = "inproc://way"
            try socket.startMonitor(at: events, events: [.handshakeSucceeded, .connectRetried])
            try monitor.connect(events)
            try BusPlace.remote(bus).connect(socket, to: .command)
            let set = try PollSet([.socket(monitor)])
            let deadline = monotonic(after: patience)
            var failures = 0
            while true {
                while let frames = try monitor.receive() {
                    switch MonitorEvent(frames)?.kind {
                    case .handshakeSucceeded: return .yes
                    case .connectRetried: failures += 1
                    default: break
                    }
                }
                if failures >= Self.attempts { return .turnedAway }
                let left = deadline - MonotonicClock.now()
                guard left > 0 else { return .unanswered }
                try set.wait(timeout: Int(left / 1_000_000) + 1)
            }
        } catch {
            return .unanswered
        }
    }
}

extension RemoteBus {
    /// What stands between us and it; nil: nothing does. Takes seconds at worst.
    public func obstacle() async -> GatewayObstacle? {
        await withCheckedContinuation { (continuation: CheckedContinuation<GatewayObstacle?, Never>) in
            examine { continuation.resume(returning: $0) }
        }
    }

    /// Those of the two ports behind that of requests that nobody takes connections at. Takes seconds at worst.
    public func closedPorts() async -> [Int] {
        await withCheckedContinuation { (continuation: CheckedContinuation<[Int], Never>) in
            do throws(SystemError) {
                _ = try NamedThread(name: "camerabus-way") {
                    continuation.resume(returning: GatewayProbe(self).closedPorts())
                }
            } catch {
                continuation.resume(returning: [])
            }
        }
    }

    /// The same for who doesn't wait: told by a thread of its own, or by this one where there can't be another.
    func examine(_ tell: @escaping @Sendable (GatewayObstacle?) -> Void) {
        do throws(SystemError) {
            _ = try NamedThread(name: "camerabus-way") { tell(GatewayProbe(self).obstacle()) }
        } catch {
            tell(nil)
        }
    }
}
