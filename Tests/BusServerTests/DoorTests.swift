import BusProtocol
import CameraBusTesting
import Glibc
import LinuxIO
import Logging
import Testing
import ZeroMQ

@testable import BusServer

/// What the bus rests on in libzmq, each tried on the library that is linked.
@Suite(.timeLimit(.minutes(5))) final class DoorTests {
    private let scratch: TemporaryDirectory
    private var folder: String { scratch.path }
    let context: Context
    let loop: Loop

    init() throws {
        scratch = try TemporaryDirectory()
        context = try Context()
        loop = try Loop()
    }

    private func server(_ kind: Socket.Kind, _ name: String, domain: String = "test") throws -> ServerSocket {
        try ServerSocket(
            context,
            .init(
                kind: kind, path: "\(folder)/\(name)", mode: 0o600, sendHighWaterMark: 16, receiveHighWaterMark: 16,
                maximumMessageBytes: 1 << 20, authenticationDomain: domain, welcome: nil))
    }

    private func client(_ kind: Socket.Kind, _ name: String) throws -> Socket {
        let socket = try Socket(context, kind)
        if kind == .subscribe { try socket.subscribe("") }
        try socket.connect("ipc://\(folder)/\(name)")
        return socket
    }

    @Test func `the self-test passes, so every message names its sender`() throws {
        try PeerAddressTest.run(at: "\(folder)/test.sock")
        #expect(access("\(folder)/test.sock", F_OK) == -1)
    }

    @Test(arguments: [
        nil, "", "localhost", "127.0.0.1", "localhost:0:0", "localhost:4294967295:4294967295:0",
        "localhost:\(CurrentProcess.uid):\(CurrentProcess.gid):1",
        "localhost:\(CurrentProcess.uid &+ 1):\(CurrentProcess.gid):\(CurrentProcess.pid)",
        "localhost:\(CurrentProcess.uid):\(CurrentProcess.gid &+ 1):\(CurrentProcess.pid)",
    ]) func `a library that reports no sender, or a wrong one, is refused at the start`(_ seen: String?) {
        #expect(throws: ServerError.self) { try PeerAddressTest.judge(seen) }
    }

    @Test func `a client that can't be identified is refused, whatever the policy says`() throws {
        var asked = 0
        let keeper = try Doorkeeper(context, loop) { _, _ in
            asked += 1
            return .admit
        }
        // Over TCP an address has no user in it: as on ipc with a libzmq that doesn't tell.
        let router = try Socket(context, .router)
        try router.setAuthenticationDomain("command")
        try router.set(.handshakeInterval, 500)
        try router.startMonitor(at: "inproc://refusals", events: [.handshakeFailedAuthentication])
        let monitor = try Socket(context, .pair)
        try monitor.connect("inproc://refusals")
        let endpoint = try #require(
            (20_000..<30_000).lazy.map { "tcp://127.0.0.1:\($0)" }.first { (try? router.bind($0)) != nil })
        var refusals = 0
        loop.watch(.socket(monitor)) { while (try? monitor.receive()) ?? nil != nil { refusals += 1 } }
        var received = 0
        loop.watch(.socket(router)) { while (try? router.receive()) ?? nil != nil { received += 1 } }
        let dealer = try Socket(context, .dealer)
        try dealer.connect(endpoint)
        try dealer.send([1])
        #expect(try loop.run { refusals > 0 })
        #expect(asked == 0 && received == 0)
        withExtendedLifetime((keeper, dealer)) {}
    }

    @Test func `the handler sees the peer's address on ipc and lets it in`() throws {
        var seen: [(String, PeerAddress)] = []
        let keeper = try Doorkeeper(context, loop) { domain, peer in
            seen.append((domain, peer))
            return .admit
        }
        let server = try server(.router, "s", domain: "command")
        var received: [Message]?
        loop.watch(.socket(server.socket)) { received = (try? server.socket.receive()) ?? received }
        let dealer = try client(.dealer, "s")
        try dealer.send([1])
        #expect(try loop.run { received != nil })
        #expect(seen.first?.0 == "command")
        #expect(seen.first?.1.pid == CurrentProcess.pid)
        #expect(received?.last?.property("Peer-Address").flatMap(PeerAddress.init(zmqPeerAddress:)) == seen.first?.1)
        withExtendedLifetime(keeper) {}
    }

    @Test func `a peer that is not let in now comes in as soon as it may`() throws {
        var isOpen = false
        var refusals = 0
        let keeper = try Doorkeeper(context, loop) { _, _ in
            if !isOpen { refusals += 1 }
            return isOpen ? .admit : .notNow
        }
        let server = try server(.router, "s")
        var received: [Message]?
        loop.watch(.socket(server.socket)) { received = (try? server.socket.receive()) ?? received }
        let dealer = try client(.dealer, "s")
        try dealer.send([1])
        #expect(try loop.run { refusals > 0 })
        #expect(received == nil)
        isOpen = true
        #expect(try loop.run { received != nil })
        withExtendedLifetime(keeper) {}
    }

    @Test func `shutting a connection's descriptor down ends that peer only`() throws {
        let keeper = try Doorkeeper(context, loop) { _, _ in .admit }
        let server = try server(.extendedPublish, "s")
        let guardian = ConnectionGuard(loop, perUser: 1, total: 10, logger: Logger(label: "test"))
        guardian.add(server)
        var subscriptions = 0
        loop.watch(.socket(server.socket)) { while (try? server.socket.receive()) ?? nil != nil { subscriptions += 1 } }
        let first = try client(.subscribe, "s")
        #expect(try loop.run { subscriptions == 1 && guardian.count == 1 })
        // The second is one too many for its user, and again whenever it comes back.
        let second = try client(.subscribe, "s")
        #expect(try loop.run { guardian.refused > 0 })
        try server.socket.send([7])
        #expect(try loop.run { first.readiness().canReceive })
        #expect(guardian.peer(pid: CurrentProcess.pid)?.startTime == ProcessTable.startTime(of: CurrentProcess.pid))
        withExtendedLifetime((keeper, second)) {}
    }

    @Test func `what a connection has left behind does not count for the next one with the same descriptor`() throws {
        let guardian = ConnectionGuard(loop, perUser: 10, total: 10, logger: Logger(label: "test"))
        let keeper = try Doorkeeper(context, loop, guardian) { _, _ in .admit }
        let server = try server(.extendedPublish, "s")
        try server.socket.set(.xpubVerboser, 1)
        guardian.add(server)
        let incoming = Message()
        var isTried = false
        for _ in 0..<50 where !isTried {
            var first: Socket? = try client(.subscribe, "s")
            #expect(try loop.run { guardian.count == 1 && server.socket.readiness().canReceive })
            let descriptor = guardian.unread.first?.connection
            withExtendedLifetime(first) {}
            first = nil
            #expect(try loop.run { guardian.count == 0 })
            // Its subscription has not been read yet, and the next one comes in.
            let second = try client(.subscribe, "s")
            var late: [Bool] = []
            #expect(
                try loop.run {
                    while (try? server.socket.receive(into: incoming)) == true {
                        guard incoming.bytes.first == 1, let connection = incoming.connection else { continue }
                        guardian.update()
                        late.append(guardian.isLate(incoming, from: connection))
                    }
                    return late.count == 2
                })
            isTried = guardian.unread.first?.connection == descriptor
            if isTried { #expect(late == [true, false]) }
            withExtendedLifetime(second) {}
            // It leaves before the next try.
            guardian.shutDown { _, _ in true }
            try second.set(.reconnectInterval, -1)
        }
        #expect(isTried)
        withExtendedLifetime(keeper) {}
    }

    /// So many peers that have come in, whose connections nobody has been told of, and that don't come again.
    private func crowd(_ count: Int, at server: ServerSocket) throws -> [Socket] {
        CurrentProcess.raiseDescriptorLimit()
        var subscriptions = 0
        let token = loop.watch(.socket(server.socket)) {
            while (try? server.socket.receive()) ?? nil != nil { subscriptions += 1 }
        }
        defer { loop.cancel(token) }
        var peers: [Socket] = []
        while peers.count < count {
            let socket = try Socket(context, .subscribe)
            try socket.set(.reconnectInterval, -1)
            try socket.subscribe("")
            try socket.connect("ipc://\(server.path)")
            peers.append(socket)
            // The kernel keeps so many waiting at the door, and no more.
            if peers.count % 25 == 0 { #expect(try loop.run { subscriptions == peers.count }) }
        }
        return peers
    }

    @Test func `whoever has come in is shut down with the others, however many are told of at once`() throws {
        let keeper = try Doorkeeper(context, loop) { _, _ in .admit }
        let server = try server(.extendedPublish, "s")
        let peers = try crowd(300, at: server)
        let guardian = ConnectionGuard(loop, perUser: 1000, total: 1000, logger: Logger(label: "test"))
        guardian.add(server)
        #expect(guardian.shutDown { uid, _ in uid == CurrentProcess.uid } == 300)
        #expect(try loop.run { guardian.count == 0 })
        // That was for those of that moment.
        var subscriptions = 0
        loop.watch(.socket(server.socket)) {
            while let message = (try? server.socket.receive()) ?? nil {
                if message.first?.bytes.first == 1 { subscriptions += 1 }
            }
        }
        var ended = 0
        let before = Context.connectionsCutOff
        guardian.onClosed = { _ in ended += 1 }
        let next = try client(.subscribe, "s")
        #expect(try loop.run { subscriptions == 1 && guardian.count == 1 })
        try server.socket.send([7])
        let isReceived = try loop.run { next.readiness().canReceive }
        let cuts = Context.connectionsCutOff - before
        #expect(isReceived, "\(ended) ended, \(subscriptions) came in, \(guardian.count) are there, \(cuts) cut off")
        withExtendedLifetime((keeper, peers)) {}
    }

    @Test func `more than can be taken in at once are shut down as they are told of`() throws {
        let keeper = try Doorkeeper(context, loop) { _, _ in .admit }
        let server = try server(.extendedPublish, "s")
        let peers = try crowd(50, at: server)
        let guardian = ConnectionGuard(loop, perUser: 1000, total: 1000, logger: Logger(label: "test"))
        guardian.eventsAtOnce = 10
        guardian.add(server)
        #expect(guardian.shutDown { uid, _ in uid != CurrentProcess.uid } == 0)
        #expect(guardian.count == 10)
        #expect(guardian.shutDown { uid, _ in uid == CurrentProcess.uid } == 20)
        var ended = 0
        guardian.onClosed = { _ in ended += 1 }
        #expect(try loop.run { ended == 50 && guardian.count == 0 })
        withExtendedLifetime((keeper, peers)) {}
    }

    @Test func `a process's last connection is told when it closes`() throws {
        let keeper = try Doorkeeper(context, loop) { _, _ in .admit }
        let server = try server(.router, "s")
        let guardian = ConnectionGuard(loop, perUser: 10, total: 10, logger: Logger(label: "test"))
        guardian.add(server)
        var gone: Int32?
        guardian.onLastConnectionClosed = { gone = $0.pid }
        var first: Socket? = try client(.dealer, "s")
        var second: Socket? = try client(.dealer, "s")
        #expect(try loop.run { guardian.count == 2 })
        first = nil
        #expect(try loop.run { guardian.count == 1 })
        #expect(gone == nil)
        second = nil
        #expect(try loop.run { gone == CurrentProcess.pid })
        withExtendedLifetime((keeper, first, second)) {}
    }

    @Test func `an unsubscription comes for each subscriber that has left, however it left`() throws {
        let keeper = try Doorkeeper(context, loop) { _, _ in .admit }
        let server = try server(.extendedPublish, "s")
        var seen: [UInt8] = []
        loop.watch(.socket(server.socket)) {
            while let frames = (try? server.socket.receive()) ?? nil { seen.append(frames[0].bytes[0]) }
        }
        var first: Socket? = try client(.subscribe, "s")
        #expect(try loop.run { seen == [1] })
        var second: Socket? = try client(.subscribe, "s")
        // Each subscription is reported, so that a new subscriber can be answered.
        #expect(try loop.run { seen == [1, 1] })
        first = nil
        #expect(try loop.run { seen == [1, 1, 0] })
        let third = try client(.subscribe, "s")
        #expect(try loop.run { seen == [1, 1, 0, 1] })
        try third.unsubscribe("")
        #expect(try loop.run { seen == [1, 1, 0, 1, 0] })
        second = nil
        #expect(try loop.run { seen == [1, 1, 0, 1, 0, 0] })
        withExtendedLifetime((keeper, first, second, third)) {}
    }

    @Test func `a subscriber that is killed takes its subscription with it`() throws {
        let keeper = try Doorkeeper(context, loop) { _, _ in .admit }
        let server = try server(.extendedPublish, "s")
        let guardian = ConnectionGuard(loop, perUser: 10, total: 10, logger: Logger(label: "test"))
        guardian.add(server)
        var gone: Int32?
        guardian.onLastConnectionClosed = { gone = $0.pid }
        var seen: [[UInt8]] = []
        loop.watch(.socket(server.socket)) {
            while let frames = (try? server.socket.receive()) ?? nil { seen.append(Array(frames[0].bytes)) }
        }
        // ZMTP 3.0 by hand, so that nothing but Python itself is needed: greeting, READY, a subscription to "x".
        let script = """
            import socket, sys
            peer = socket.socket(socket.AF_UNIX)
            peer.connect(sys.argv[1])
            peer.sendall(b"\\xff" + bytes(8) + b"\\x7f\\x03\\x00NULL" + bytes(48))
            peer.sendall(b"\\x04\\x19\\x05READY\\x0bSocket-Type\\x00\\x00\\x00\\x03SUB")
            heard = b""
            while len(heard) < 66:
                part = peer.recv(4096)
                if not part: break
                heard += part
            peer.sendall(b"\\x00\\x02\\x01x")
            while peer.recv(4096): pass
            """
        let subscriber = try ChildProcess(
            program: "python3", arguments: ["-c", script, server.path], searchesPath: true)
        #expect(try loop.run { seen == [Array("\u{1}x".utf8)] })
        subscriber.process.send(SIGKILL)
        #expect(try loop.run { seen.last == Array("\u{0}x".utf8) && gone == subscriber.process.pid })
        _ = subscriber.reap()
        withExtendedLifetime(keeper) {}
    }

    @Test func `a request that is too large for the socket ends its sender only`() throws {
        let keeper = try Doorkeeper(context, loop) { _, _ in .admit }
        let server = try server(.router, "s")
        let guardian = ConnectionGuard(loop, perUser: 10, total: 10, logger: Logger(label: "test"))
        guardian.add(server)
        var ended = 0
        guardian.onClosed = { _ in ended += 1 }
        var received = 0
        loop.watch(.socket(server.socket)) { while (try? server.socket.receive()) ?? nil != nil { received += 1 } }
        let small = try client(.dealer, "s")
        try small.send([1])
        #expect(try loop.run { received == 1 && guardian.count == 1 })
        let large = try client(.dealer, "s")
        try large.send([UInt8](repeating: 0, count: (1 << 20) + 1))
        #expect(try loop.run { ended == 1 })
        // The other's connection is the same as before, and what was too large is nowhere.
        try small.send([2])
        #expect(try loop.run { received == 2 })
        #expect(ended == 1)
        withExtendedLifetime((keeper, large, small)) {}
    }

    @Test func `closing a door removes its socket file`() throws {
        do {
            let server = try server(.router, "s")
            #expect(access(server.path, F_OK) == 0)
        }
        #expect(access("\(folder)/s", F_OK) == -1)
    }
}
