import BusProtocol
import JSON
import Testing

@testable import BusServer

@Suite struct SubscriptionCounterTests {
    private var counter = SubscriptionCounter()

    private func topic(_ number: Int, bytes: Int = 20) -> [UInt8] {
        let text = Array("\u{1}\(number)/".utf8)
        return text + [UInt8](repeating: 0x78, count: bytes - text.count)
    }

    @Test mutating func `beyond the limit subscriptions are refused, and far beyond it the connection ends`() {
        for number in 0..<1024 { #expect(counter.subscribed(5, topic(number)) == .accepted) }
        #expect(counter.refusal(5) == nil)
        #expect(counter.subscribed(5, topic(1024)) == .refused)
        #expect(counter.refusal(5)?.data["limit"] == "subscriptions")
        #expect(counter.subscribed(6, topic(1024)) == .accepted)
        #expect(counter.refusal(6) == nil)
        #expect(counter.unsubscribed(5, topic(0)) == true)
        #expect(counter.refusal(5) == nil)
        for number in 1025..<4097 { #expect(counter.subscribed(5, topic(number)) == .refused) }
        #expect(counter.subscribed(5, topic(4097)) == .excessive)
        #expect(counter.exceeded == 1)
        counter.closed(5)
        #expect(counter.subscribed(5, topic(0)) == .accepted)
    }

    @Test mutating func `long topics count by their bytes`() {
        for number in 0..<128 { #expect(counter.subscribed(5, topic(number, bytes: 1024)) == .accepted) }
        #expect(counter.subscribed(5, topic(128, bytes: 1024)) == .refused)
        for number in 0..<129 { #expect(counter.unsubscribed(5, topic(number, bytes: 1024)) == true) }
        #expect(counter.refusal(5) == nil)
    }

    @Test mutating func `a topic counts once, and its end only if it was subscribed to`() {
        for number in 0..<1024 { #expect(counter.subscribed(5, topic(number)) == .accepted) }
        #expect(counter.subscribed(5, topic(7)) == .accepted)
        #expect(counter.subscribed(5, topic(1024)) == .refused)
        for number in 2000..<2256 { #expect(counter.unsubscribed(5, topic(number)) == true) }
        #expect(counter.refusal(5) != nil)
        #expect(counter.unsubscribed(5, topic(2256)) == false)
        #expect(counter.unsubscribed(5, topic(7)) == true)
        #expect(counter.refusal(5) == nil)
    }
}
