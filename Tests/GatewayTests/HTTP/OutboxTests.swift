import NIOWebSocket
import Testing

@testable import Gateway

/// What waits for a connection: so much, and of media one.
@Suite struct OutboxTests {
    private func outgoing(_ count: Int, isMedia: Bool = false) -> Outgoing {
        Outgoing(.binary, Array(repeating: 1, count: count), isMedia: isMedia)
    }

    @Test func `what waits comes in its order, and then what is put in`() async {
        let outbox = Outbox(maximumBytes: 100, maximumCount: 3)
        #expect(outbox.put(outgoing(1)) && outbox.put(outgoing(2)))
        #expect(await outbox.next()?.bytes == 1)
        #expect(await outbox.next()?.bytes == 2)
        async let third = outbox.next()
        while !outbox.put(outgoing(3)) {}
        #expect(await third?.bytes == 3)
    }

    @Test func `there is so much room`() {
        let byCount = Outbox(maximumBytes: 100, maximumCount: 2)
        #expect(byCount.put(outgoing(1)) && byCount.put(outgoing(1)) && !byCount.put(outgoing(1)))
        let byBytes = Outbox(maximumBytes: 100, maximumCount: 20)
        #expect(byBytes.put(outgoing(99)) && byBytes.put(outgoing(99)) && !byBytes.put(outgoing(1)))
    }

    @Test func `a picture has room once the one before is written`() async throws {
        let outbox = Outbox(maximumBytes: 100, maximumCount: 3)
        #expect(outbox.hasRoomForMedia && outbox.put(outgoing(5, isMedia: true)) && !outbox.hasRoomForMedia)
        let picture = try #require(await outbox.next())
        #expect(!outbox.hasRoomForMedia)
        outbox.wrote(picture)
        #expect(outbox.hasRoomForMedia)
    }

    @Test func `the end is told to who waits, and to who comes later`() async {
        let outbox = Outbox(maximumBytes: 100, maximumCount: 3)
        async let waiting = outbox.next()
        outbox.end()
        #expect(await waiting?.bytes == nil)
        #expect(await outbox.next()?.bytes == nil)
        #expect(!outbox.put(outgoing(1)) && !outbox.hasRoomForMedia)
        let last = Outbox(maximumBytes: 100, maximumCount: 3)
        #expect(last.put(outgoing(7)))
        last.end(dropping: false)
        #expect(await last.next()?.bytes == 7)
        #expect(await last.next()?.bytes == nil)
    }
}
