import BusProtocol
import BusServer
import CameraBusTesting
import LinuxIO
import Logging
import Testing
import ZeroMQ

@testable import Gateway

/// Whose the connections from other machines are, over real ones.
@Suite(.timeLimit(.minutes(5))) struct ConnectionRegistryTests {
    /// One port with its door, where all keys are let in.
    private final class Port {
        let loop: Loop
        let registry: ConnectionRegistry
        let authenticator: KeyAuthenticator
        private let context: Context
        private let address: TCPAddress
        private let own: CurveKeyPair
        private let server: RemoteSocket
        /// Whose messages have come.
        private(set) var heard: [String] = []
        /// Connections that have ended, and keys that were let in.
        private(set) var ended = 0
        private(set) var admitted = 0

        init(perAddress: Int = 64, look: Int64 = 60_000) throws {
            context = try Context()
            loop = try Loop()
            own = try CurveKeyPair.make()
            let port = try LocalPort.free()
            address = try #require(TCPAddress("tcp://127.0.0.1:\(port)"))
            let registry = ConnectionRegistry(
                loop, total: 256, perAddress: perAddress, look: look,
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            self.registry = registry
            var admit: (String) -> Bool = { _ in false }
            authenticator = try KeyAuthenticator(context, loop) { admit($0) }
            server = try RemoteSocket(
                context, .router, address, .command, secretKey: own.secretKey, waiting: 10, maximumMessageBytes: 4096)
            admit = { [weak self] key in
                guard registry.admits(key) else { return false }
                self?.admitted += 1
                return true
            }
            registry.add(server)
            registry.whenClosed { [weak self] _ in self?.ended += 1 }
            loop.watch(.socket(server.socket)) { [weak self] in self?.read() }
        }

        // What the loop still has of both it may let go of in any order.
        deinit { server.socket.stopMonitor() }

        private func read() {
            while let message = try? server.socket.receive() {
                guard let last = message.last, let connection = last.connection, let key = last.property("User-Id")
                else { continue }
                registry.update()
                if registry.seen(connection, key: key, on: server) { heard.append(key) }
            }
        }

        /// - Parameter source: the address that it comes from.
        func client(_ pair: CurveKeyPair, from source: String = "127.0.0.1") throws -> Socket {
            let socket = try Socket(context, .dealer)
            try socket.setCurveClient(server: own.publicKey, own: pair)
            try socket.connect("tcp://\(source):0;127.0.0.1:\(address.port)")
            return socket
        }
    }

    @Test func `a connection over which nothing is said is ended, and comes again when there is something`() throws {
        let port = try Port(look: 200)
        let (talker, other) = (try CurveKeyPair.make(), try CurveKeyPair.make())
        let talking = try port.client(talker)
        try talking.send([1])
        #expect(try port.loop.run { port.heard == [talker.publicKey.text] })
        let silent = try port.client(other)
        #expect(try port.loop.run { port.ended > 0 })
        #expect(port.registry.isHere(talker.publicKey.text) && !port.registry.isHere(other.publicKey.text))
        let isHeard = try port.loop.run {
            // What is said just then may be lost with the connection.
            _ = try? silent.send([1])
            return port.registry.isHere(other.publicKey.text)
        }
        #expect(isHeard)
        withExtendedLifetime((talking, silent)) {}
    }

    @Test func `with a key those end, too, of which it isn't known whose they are`() throws {
        let port = try Port()
        let (revoked, other) = (try CurveKeyPair.make(), try CurveKeyPair.make())
        let talking = [try port.client(revoked), try port.client(other)]
        for socket in talking { try socket.send([1]) }
        let silent = try port.client(revoked)
        #expect(try port.loop.run { port.heard.count == 2 && port.admitted == 3 && port.registry.count == 3 })
        port.registry.shutDown { $0 == revoked.publicKey.text }
        #expect(try port.loop.run { port.ended == 2 })
        #expect(port.registry.isHere(other.publicKey.text) && !port.registry.isHere(revoked.publicKey.text))
        withExtendedLifetime((talking, silent)) {}
    }

    @Test func `who says nothing counts for its key all the same`() throws {
        let port = try Port(perAddress: 3)
        let (pair, other) = (try CurveKeyPair.make(), try CurveKeyPair.make())
        let silent = [try port.client(pair, from: "127.0.0.2"), try port.client(pair, from: "127.0.0.3")]
        #expect(try port.loop.run { port.admitted == 2 })
        var talking: Socket? = try port.client(pair, from: "127.0.0.4")
        try talking?.send([1])
        #expect(try port.loop.run { port.heard.count == 1 })
        let late = try port.client(pair, from: "127.0.0.5")
        try late.send([1])
        #expect(try port.loop.run { port.authenticator.refused > 0 })
        #expect(port.heard.count == 1)
        // Others have their own.
        let stranger = try port.client(other, from: "127.0.0.6")
        try stranger.send([1])
        #expect(try port.loop.run { port.heard.last == other.publicKey.text })
        talking = nil
        #expect(try port.loop.run { port.heard.count == 3 })
        #expect(port.heard.last == pair.publicKey.text)
        withExtendedLifetime((silent, talking, late, stranger)) {}
    }

    @Test func `who was let in counts until it is heard, or has said nothing for long`() {
        var pending = PendingConnections(patience: 10)
        for time in [0, 1, 5] as [Int64] { pending.came("desk", at: time) }
        #expect(pending.count(of: "desk", at: 5) == 3 && pending.count(of: "other", at: 5) == 0)
        #expect(pending.count(of: "desk", at: 10) == 2)
        pending.spoke("desk")
        pending.spoke("other")
        #expect(pending.count(of: "desk", at: 5) == 2)
        #expect(pending.count(of: "desk", at: 15) == 0)
        pending.came("desk", at: 20)
        #expect(pending.count(of: "desk", at: 20) == 1)
        for _ in 0..<3 { pending.spoke("desk") }
        #expect(pending.count(of: "desk", at: 20) == 0)
    }

    @Test func `who comes back has the whole time again when it goes once more`() throws {
        let loop = try Loop()
        let grace = DisconnectGrace(loop, milliseconds: 200)
        var over: [(key: String, time: Int64)] = []
        grace.onOver = { over.append((key: $0, time: MonotonicClock.now())) }
        grace.began("desk")
        grace.began("gone")
        grace.began("back")
        grace.ended("back")
        grace.ended("never")
        var again: Int64 = 0
        loop.schedule(afterMilliseconds: 100) {
            grace.ended("desk")
            again = MonotonicClock.now()
            grace.began("desk")
        }
        #expect(try loop.run { over.count == 2 })
        #expect(over.map(\.key) == ["gone", "desk"])
        #expect((over.last?.time ?? 0) - again >= 200_000_000)
    }
}
