import BusProtocol
import BusServer
import CameraBusTesting
import LinuxIO
import Logging
import Testing
import ZeroMQ

@testable import Gateway

/// Whose the connections from other machines are, over real ones.
@Suite(.timeLimit(.minutes(5))) struct VisitorsTests {
    /// One port with its door, where all keys are let in.
    private final class Port {
        let loop: Loop
        let visitors: Visitors
        let door: RemoteDoor
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
            let visitors = Visitors(
                loop, total: 256, perAddress: perAddress, look: look,
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            self.visitors = visitors
            var admit: (String) -> Bool = { _ in false }
            door = try RemoteDoor(context, loop) { admit($0) }
            server = try RemoteSocket(
                context, .router, address, .command, secretKey: own.secretKey, waiting: 10, maximumMessageBytes: 4096)
            admit = { [weak self] key in
                guard visitors.admits(key) else { return false }
                self?.admitted += 1
                return true
            }
            visitors.add(server)
            visitors.whenClosed { [weak self] _ in self?.ended += 1 }
            loop.watch(.socket(server.socket)) { [weak self] in self?.read() }
        }

        // What the loop still has of both it may let go of in any order.
        deinit { server.socket.stopMonitor() }

        private func read() {
            while let message = try? server.socket.receive() {
                guard let last = message.last, let connection = last.connection, let key = last.property("User-Id")
                else { continue }
                visitors.update()
                if visitors.seen(connection, key: key, on: server) { heard.append(key) }
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
        #expect(port.visitors.isHere(talker.publicKey.text) && !port.visitors.isHere(other.publicKey.text))
        let isHeard = try port.loop.run {
            // What is said just then may be lost with the connection.
            _ = try? silent.send([1])
            return port.visitors.isHere(other.publicKey.text)
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
        #expect(try port.loop.run { port.heard.count == 2 && port.admitted == 3 && port.visitors.count == 3 })
        port.visitors.shutDown { $0 == revoked.publicKey.text }
        #expect(try port.loop.run { port.ended == 2 })
        #expect(port.visitors.isHere(other.publicKey.text) && !port.visitors.isHere(revoked.publicKey.text))
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
        #expect(try port.loop.run { port.door.refused > 0 })
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
        var newcomers = Newcomers(patience: 10)
        for time in [0, 1, 5] as [Int64] { newcomers.came("desk", at: time) }
        #expect(newcomers.count(of: "desk", at: 5) == 3 && newcomers.count(of: "other", at: 5) == 0)
        #expect(newcomers.count(of: "desk", at: 10) == 2)
        newcomers.spoke("desk")
        newcomers.spoke("other")
        #expect(newcomers.count(of: "desk", at: 5) == 2)
        #expect(newcomers.count(of: "desk", at: 15) == 0)
        newcomers.came("desk", at: 20)
        #expect(newcomers.count(of: "desk", at: 20) == 1)
        for _ in 0..<3 { newcomers.spoke("desk") }
        #expect(newcomers.count(of: "desk", at: 20) == 0)
    }

    @Test func `who comes back has the whole time again when it goes once more`() throws {
        let loop = try Loop()
        let absences = Absences(loop, milliseconds: 200)
        var over: [(key: String, time: Int64)] = []
        absences.onOver = { over.append((key: $0, time: MonotonicClock.now())) }
        absences.began("desk")
        absences.began("gone")
        absences.began("back")
        absences.ended("back")
        absences.ended("never")
        var again: Int64 = 0
        loop.schedule(afterMilliseconds: 100) {
            absences.ended("desk")
            again = MonotonicClock.now()
            absences.began("desk")
        }
        #expect(try loop.run { over.count == 2 })
        #expect(over.map(\.key) == ["gone", "desk"])
        #expect((over.last?.time ?? 0) - again >= 200_000_000)
    }
}
