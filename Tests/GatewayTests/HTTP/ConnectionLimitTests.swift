import Testing

@testable import Gateway

/// Which connections are accepted, and which ones wait for others to end.
@Suite struct ConnectionLimitTests {
    @Test func `each address has so many, and some are kept for this machine`() {
        let connectionLimit = ConnectionLimit(total: 8, perAddress: 4)
        #expect((0..<4).allSatisfy { _ in connectionLimit.enter("192.0.2.1") } && !connectionLimit.enter("192.0.2.1"))
        #expect((0..<2).allSatisfy { _ in connectionLimit.enter("192.0.2.2") } && !connectionLimit.enter("192.0.2.2"))
        #expect(
            connectionLimit.enter("127.0.0.1") && connectionLimit.enter("::1") && !connectionLimit.enter("127.0.0.1"))
        // Who sits here takes nothing from others by that than what is more than kept.
        connectionLimit.leave("192.0.2.1")
        #expect(!connectionLimit.enter("192.0.2.3"))
        connectionLimit.leave("127.0.0.1")
        connectionLimit.leave("192.0.2.1")
        #expect(connectionLimit.enter("192.0.2.3") && !connectionLimit.enter("192.0.2.3"))
    }

    @Test func `who waits is told when one has gone, or that nobody is in`() async {
        let connectionLimit = ConnectionLimit(total: 8, perAddress: 4)
        #expect(await !connectionLimit.someoneLeft())
        #expect(connectionLimit.enter("192.0.2.1") && connectionLimit.enter("192.0.2.1"))
        connectionLimit.leave("192.0.2.1")
        // That was before it was asked, and counts once.
        #expect(await connectionLimit.someoneLeft())
        async let told = connectionLimit.someoneLeft()
        connectionLimit.leave("192.0.2.1")
        #expect(await told)
    }

    @Test func `who waits for somebody to leave can be called off`() async {
        let connectionLimit = ConnectionLimit(total: 8, perAddress: 4)
        #expect(connectionLimit.enter("127.0.0.1"))
        let waiting = Task { await connectionLimit.someoneLeft() }
        waiting.cancel()
        #expect(await !waiting.value)
        connectionLimit.leave("127.0.0.1")
        #expect(await connectionLimit.someoneLeft())
    }
}
