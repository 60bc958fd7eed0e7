import Testing

@testable import Gateway

/// Who may come in, and who waits for whom to go.
@Suite struct TurnstileTests {
    @Test func `each address has so many, and some are kept for this machine`() {
        let turnstile = Turnstile(total: 8, perAddress: 4)
        #expect((0..<4).allSatisfy { _ in turnstile.enter("192.0.2.1") } && !turnstile.enter("192.0.2.1"))
        #expect((0..<2).allSatisfy { _ in turnstile.enter("192.0.2.2") } && !turnstile.enter("192.0.2.2"))
        #expect(turnstile.enter("127.0.0.1") && turnstile.enter("::1") && !turnstile.enter("127.0.0.1"))
        // Who sits here takes nothing from others by that than what is more than kept.
        turnstile.leave("192.0.2.1")
        #expect(!turnstile.enter("192.0.2.3"))
        turnstile.leave("127.0.0.1")
        turnstile.leave("192.0.2.1")
        #expect(turnstile.enter("192.0.2.3") && !turnstile.enter("192.0.2.3"))
    }

    @Test func `who waits is told when one has gone, or that nobody is in`() async {
        let turnstile = Turnstile(total: 8, perAddress: 4)
        #expect(await !turnstile.someoneLeft())
        #expect(turnstile.enter("192.0.2.1") && turnstile.enter("192.0.2.1"))
        turnstile.leave("192.0.2.1")
        // That was before it was asked, and counts once.
        #expect(await turnstile.someoneLeft())
        async let told = turnstile.someoneLeft()
        turnstile.leave("192.0.2.1")
        #expect(await told)
    }

    @Test func `who waits for somebody to leave can be called off`() async {
        let turnstile = Turnstile(total: 8, perAddress: 4)
        #expect(turnstile.enter("127.0.0.1"))
        let waiting = Task { await turnstile.someoneLeft() }
        waiting.cancel()
        #expect(await !waiting.value)
        turnstile.leave("127.0.0.1")
        #expect(await turnstile.someoneLeft())
    }
}
