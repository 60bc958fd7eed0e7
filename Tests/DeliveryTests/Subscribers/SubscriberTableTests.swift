import Testing

@testable import Worker

@Suite("Who subscribes to what")
struct SubscriberLedgerTests {
    private var ledger = SubscriberLedger()
    private let topic = Array("frame/cam0/native/".utf8)
    private let other = Array("frame/cam0/jpeg/".utf8)

    @Test("the first and the last count")
    mutating func firstAndLast() {
        #expect(ledger.subscribe(topic, by: 5) == .first)
        #expect(ledger.subscribe(topic, by: 5) == .repeated)
        #expect(ledger.subscribe(topic, by: 6) == .further)
        #expect(ledger.unsubscribe(topic, by: 5) == false)
        #expect(ledger.unsubscribe(topic, by: 5) == false)
        #expect(ledger.unsubscribe(topic, by: 6) == true)
    }

    @Test("who never subscribed can't unsubscribe others")
    mutating func stranger() {
        _ = ledger.subscribe(topic, by: 5)
        #expect(ledger.unsubscribe(topic, by: 7) == false)
        #expect(ledger.unsubscribe(other, by: 5) == false)
        #expect(ledger.unsubscribe(topic, by: 5) == true)
    }

    @Test("a connection that ends takes its subscriptions along, once")
    mutating func close() {
        _ = ledger.subscribe(topic, by: 5)
        _ = ledger.subscribe(other, by: 5)
        _ = ledger.subscribe(other, by: 6)
        #expect(ledger.close(5) == [topic])
        #expect(ledger.close(5) == [])
        #expect(ledger.close(6) == [other])
    }

    @Test("a subscription that was read after its connection's end is swept out")
    mutating func sweep() {
        _ = ledger.subscribe(topic, by: 5)
        _ = ledger.subscribe(topic, by: 6)
        _ = ledger.subscribe(other, by: 5)
        #expect(ledger.sweep(topic) { $0 != 5 } == [other])
        #expect(ledger.sweep(topic) { _ in true } == [])
        #expect(ledger.sweep(topic) { _ in false } == [topic])
    }

    @Test("a connection has no more topics than the limit")
    mutating func limit() {
        for number in 0..<300 { _ = ledger.subscribe(Array("t\(number)/".utf8), by: 5) }
        #expect(ledger.ignored == 44)
        #expect(ledger.close(5).count == 256)
        #expect(ledger.subscribe([UInt8](repeating: 65, count: 257), by: 5) == .ignored)
    }
}
