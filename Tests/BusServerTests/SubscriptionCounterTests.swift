import BusProtocol
import JSON
import Testing

@testable import BusServer

@Suite struct SubscriptionCounterTests {
    private var counter = SubscriptionCounter()

    @Test mutating func `beyond the limit subscriptions are refused, and far beyond it the connection ends`() {
        for _ in 0..<1024 { #expect(counter.subscribed(5, bytes: 20) == .accepted) }
        #expect(counter.refusal(5) == nil)
        #expect(counter.subscribed(5, bytes: 20) == .refused)
        #expect(counter.refusal(5)?.data["limit"] == "subscriptions")
        #expect(counter.subscribed(6, bytes: 20) == .accepted)
        #expect(counter.refusal(6) == nil)
        counter.unsubscribed(5, bytes: 20)
        #expect(counter.refusal(5) == nil)
        for _ in 1024..<4096 { #expect(counter.subscribed(5, bytes: 20) == .refused) }
        #expect(counter.subscribed(5, bytes: 20) == .excessive)
        #expect(counter.exceeded == 1)
        counter.closed(5)
        #expect(counter.subscribed(5, bytes: 20) == .accepted)
    }

    @Test mutating func `long topics count by their bytes`() {
        for _ in 0..<128 { #expect(counter.subscribed(5, bytes: 1024) == .accepted) }
        #expect(counter.subscribed(5, bytes: 1024) == .refused)
        for _ in 0..<129 { counter.unsubscribed(5, bytes: 1024) }
        #expect(counter.refusal(5) == nil)
    }
}
