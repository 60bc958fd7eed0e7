import CameraBusTesting
import LinuxIO
import Synchronization
import Testing
import ZeroMQ

@testable import BusServer

/// What waits to be read is bounded (``Socket/limitMessages(of:to:kind:)``).
@Suite(.serialized, .timeLimit(.minutes(5))) final class MessageLimitTests {
    private let scratch: TemporaryDirectory
    private let context: Context
    private let loop: Loop
    private let keeper: Doorkeeper
    private let before = Context.connectionsCutOff
    private var cut: Int { Context.connectionsCutOff - before }

    init() throws {
        scratch = try TemporaryDirectory()
        context = try Context()
        loop = try Loop()
        keeper = try Doorkeeper(context, loop) { _, _ in .admit }
    }

    private func server(_ kind: Socket.Kind) throws -> ServerSocket {
        try ServerSocket(
            context,
            .init(
                kind: kind, path: "\(scratch.path)/s", mode: 0o600, sendHighWaterMark: 16, receiveHighWaterMark: 16,
                maximumMessageBytes: 1 << 20, authenticationDomain: "test", welcome: nil))
    }

    /// Connections, one after the other, that send this and leave when all of it has been received.
    ///
    /// - Parameter type: of their sockets; nil: they don't begin as they should.
    /// - Returns: how many messages were read meanwhile.
    @discardableResult
    private func visit(
        _ server: ServerSocket, count: Int = 1, as type: String? = "SUB", _ bytes: [UInt8], reading: Bool = false
    ) throws -> Int {
        let visits = Visits()
        let path = server.path
        Task.detached {
            for _ in 0..<count {
                if let connection = try? RawConnection(path: path) {
                    if let type { connection.open(as: type) }
                    connection.send(bytes)
                    connection.finish()
                    while !connection.receive().isEmpty {}
                }
                visits.number.add(1, ordering: .relaxed)
            }
        }
        // libzmq takes what comes, also when nobody reads it.
        var read = 0
        let token = loop.watch(.socket(server.socket)) {
            while reading, (try? server.socket.receive()) ?? nil != nil { read += 1 }
        }
        defer { loop.cancel(token) }
        #expect(try loop.run { visits.number.load(ordering: .relaxed) == count })
        return read
    }

    private final class Visits: Sendable {
        let number = Atomic<Int>(0)
    }

    private func readAll(_ server: ServerSocket) throws -> Int {
        var count = 0
        while try server.socket.receive() != nil { count += 1 }
        return count
    }

    private func unsubscriptions(_ count: Int) -> [UInt8] {
        Array(repeatElement(RawConnection.message([0]), count: count).joined())
    }

    @Test func `what has been read does not count`() throws {
        let server = try server(.router)
        let dealer = try Socket(context, .dealer)
        try dealer.connect("ipc://\(server.path)")
        var (sent, received) = (0, 0)
        loop.watch(.socket(server.socket)) { while (try? server.socket.receive()) ?? nil != nil { received += 1 } }
        // They cost more than a user may have waiting.
        let total = 70_000
        while received < total {
            let goal = min(total, received + 500)
            while sent < goal, try dealer.send([1]) { sent += 1 }
            #expect(try loop.run { received == sent })
        }
        #expect(cut == 0)
        withExtendedLifetime(dealer) {}
    }

    @Test func `a connection with too many messages that nobody reads is ended`() throws {
        let server = try server(.extendedPublish)
        try visit(server, unsubscriptions(8000))
        #expect(cut == 0)
        try visit(server, unsubscriptions(12_000))
        #expect(cut == 1)
        #expect(Context.lastConnectionCutOff?.excess == .waiting)
        #expect(Context.lastConnectionCutOff?.uid == CurrentProcess.uid)
        #expect(Context.lastConnectionCutOff?.pid == CurrentProcess.pid)
    }

    @Test func `messages count for their user until they are read, also when their connections have ended`() throws {
        let server = try server(.extendedPublish)
        try visit(server, count: 10, unsubscriptions(8000))
        #expect(cut == 2)
        #expect(Context.lastConnectionCutOff?.excess == .user)
        #expect(try readAll(server) >= 64_000)
        try visit(server, count: 7, unsubscriptions(8000))
        #expect(cut == 2)
        #expect(try readAll(server) == 56_000)
    }

    @Test func `what libzmq drops after an error counts no longer when everything has been read`() throws {
        let server = try server(.extendedPublish)
        // Messages behind something else than READY.
        let broken = RawConnection.greeting + [4, 6, 5] + Array("BOGUS".utf8) + unsubscriptions(2000)
        for _ in 0..<4 {
            try visit(server, count: 10, as: nil, broken)
            #expect(try readAll(server) == 0)
        }
        #expect(cut == 0)
    }

    @Test func `subscriptions by command count as what is read of them`() throws {
        let server = try server(.extendedPublish)
        let bodies: [[UInt8]] = [[9] + Array("SUBSCRIBEx".utf8), [6] + Array("CANCELx".utf8)]
        let commands: [UInt8] = bodies.flatMap { [4, UInt8($0.count)] + $0 }
        // They cost more than a user may have waiting.
        let read = try visit(server, Array(repeatElement(commands, count: 35_000).joined()), reading: true)
        #expect(try read + readAll(server) == 70_000)
        #expect(cut == 0)
    }

    @Test func `a message that is too large ends its connection also where all of it comes at once`() throws {
        let server = try server(.router)
        // libzmq may keep a receive buffer for each frame, so they count more than their bytes.
        let frame = [UInt8](repeating: 120, count: 34)
        let frames = Array(repeatElement([1, UInt8(frame.count)] + frame, count: 200).joined()) + [0, 1, 120]
        try visit(server, as: "DEALER", frames)
        #expect(cut == 1 && Context.lastConnectionCutOff?.excess == .message)
        #expect(try readAll(server) == 0)
    }

    private static let command: [UInt8] = [11, 9] + Array("SUBSCRIBEx".utf8)
    // A subscription that goes on, by command and as a message; and a command that a router has no use for.
    private static let misplaced: [(Socket.Kind, [UInt8])] = [
        (.extendedPublish, [5] + command), (.extendedPublish, [1, 2, 1, 120]), (.router, [5] + command),
        (.router, [4] + command),
    ]

    @Test(arguments: misplaced) func `frames that do not belong there end the connection`(
        _ kind: Socket.Kind, _ bytes: [UInt8]
    ) throws {
        let server = try server(kind)
        try visit(server, as: kind == .router ? "DEALER" : "SUB", bytes)
        #expect(cut == 1)
        #expect(Context.lastConnectionCutOff?.excess == .frames)
        #expect(try readAll(server) == 0)
    }
}
