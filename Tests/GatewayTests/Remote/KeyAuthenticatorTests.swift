import BusServer
import CameraBusTesting
import LinuxIO
import Testing
import ZeroMQ

@testable import Gateway

/// Who is let in, tried on the library that is linked.
@Suite(.timeLimit(.minutes(5))) struct KeyAuthenticatorTests {
    private let context: Context
    private let loop: Loop

    init() throws {
        context = try Context()
        loop = try Loop()
    }

    private func server(_ kind: Socket.Kind, _ pair: CurveKeyPair) throws -> (socket: Socket, endpoint: String) {
        let socket = try Socket(context, kind)
        try socket.setCurveServer(pair.secretKey)
        try socket.setAuthenticationDomain("test")
        try socket.set(.handshakeInterval, 500)
        if kind == .extendedPublish { try socket.set(.xpubVerboser, 1) }
        let endpoint = try #require(
            (20_000..<30_000).lazy.map { "tcp://127.0.0.1:\($0)" }.first { (try? socket.bind($0)) != nil })
        return (socket, endpoint)
    }

    @Test func `a key that is added later comes in, and every message says whose it is`() throws {
        let (own, client) = (try CurveKeyPair.make(), try CurveKeyPair.make())
        var allowed: Set<String> = []
        let authenticator = try KeyAuthenticator(context, loop) { allowed.contains($0) }
        let (router, requests) = try server(.router, own)
        let (publisher, events) = try server(.extendedPublish, own)
        var seen: [String?] = []
        for socket in [router, publisher] {
            loop.watch(.socket(socket)) {
                while let message = try? socket.receive() { seen.append(message.last?.property("User-Id")) }
            }
        }
        let (dealer, subscriber) = (try Socket(context, .dealer), try Socket(context, .subscribe))
        for socket in [dealer, subscriber] { try socket.setCurveClient(server: own.publicKey, own: client) }
        try subscriber.subscribe("state/")
        // As whoever subscribes does: only who looks at its socket subscribes anew on another connection.
        loop.watch(.socket(subscriber)) { while (try? subscriber.receive()) ?? nil != nil {} }
        try dealer.connect(requests)
        try subscriber.connect(events)
        try dealer.send([1])
        var told: [String] = []
        authenticator.onRefused = { told.append("\($0) \($1 ?? "none")") }
        #expect(try loop.run { authenticator.refused >= 2 })
        #expect(Set(told) == ["127.0.0.1 \(client.publicKey.text)"])
        #expect(seen.isEmpty)
        allowed = [client.publicKey.text]
        #expect(try loop.run { seen.count == 2 })
        #expect(seen == [client.publicKey.text, client.publicKey.text])
        withExtendedLifetime((dealer, subscriber)) {}
    }

    @Test func `a client that tries for ever is told of once a minute, and a crowd of them once a second`() {
        var log = RefusalLog()
        func isTold(_ who: String, _ seconds: Double) -> Bool {
            log.isToBeTold(who, at: Int64(seconds * 1_000_000_000))
        }
        #expect([isTold("a", 0), isTold("b", 0.5), isTold("b", 1), isTold("a", 59)] == [true, false, true, false])
        #expect(isTold("a", 60))
        #expect((0..<1000).allSatisfy { isTold("\($0)", Double(100 + $0)) })
    }

    @Test func `who speaks in the clear is not heard`() throws {
        let authenticator = try KeyAuthenticator(context, loop) { _ in true }
        let (router, requests) = try server(.router, try CurveKeyPair.make())
        try router.startMonitor(
            at: "inproc://refusals",
            events: [.handshakeFailedProtocol, .handshakeFailedNoDetail, .handshakeFailedAuthentication])
        let monitor = try Socket(context, .pair)
        try monitor.connect("inproc://refusals")
        var (refusals, received) = (0, 0)
        loop.watch(.socket(monitor)) { while (try? monitor.receive()) ?? nil != nil { refusals += 1 } }
        loop.watch(.socket(router)) { while (try? router.receive()) ?? nil != nil { received += 1 } }
        let dealer = try Socket(context, .dealer)
        try dealer.connect(requests)
        try dealer.send([1])
        #expect(try loop.run { refusals > 0 })
        #expect(received == 0)
        withExtendedLifetime((authenticator, dealer)) {}
    }
}
