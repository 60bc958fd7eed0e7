import Testing

@testable import Delivery

@Suite("Who subscribes to what")
struct SubscriberTableTests {
    private var table = SubscriberTable()
    private let topic = Array("frame/cam0/native/".utf8)
    private let other = Array("frame/cam0/jpeg/".utf8)

    @Test("the first and the last count")
    mutating func firstAndLast() {
        #expect(table.subscribe(topic, by: 5) == .first)
        #expect(table.subscribe(topic, by: 5) == .repeated)
        #expect(table.subscribe(topic, by: 6) == .further)
        #expect(table.unsubscribe(topic, by: 5) == false)
        #expect(table.unsubscribe(topic, by: 5) == false)
        #expect(table.unsubscribe(topic, by: 6) == true)
    }

    @Test("who never subscribed can't unsubscribe others")
    mutating func stranger() {
        _ = table.subscribe(topic, by: 5)
        #expect(table.unsubscribe(topic, by: 7) == false)
        #expect(table.unsubscribe(other, by: 5) == false)
        #expect(table.unsubscribe(topic, by: 5) == true)
    }

    @Test("a connection that ends takes its subscriptions along, once")
    mutating func close() {
        _ = table.subscribe(topic, by: 5)
        _ = table.subscribe(other, by: 5)
        _ = table.subscribe(other, by: 6)
        #expect(table.close(5) == [topic])
        #expect(table.close(5) == [])
        #expect(table.close(6) == [other])
    }

    @Test("a subscription that was read after its connection's end is swept out")
    mutating func sweep() {
        _ = table.subscribe(topic, by: 5)
        _ = table.subscribe(topic, by: 6)
        _ = table.subscribe(other, by: 5)
        #expect(table.sweep(topic) { $0 != 5 } == [other])
        #expect(table.sweep(topic) { _ in true } == [])
        #expect(table.sweep(topic) { _ in false } == [topic])
    }

    @Test("a connection has no more topics than the limit")
    mutating func limit() {
        for number in 0..<300 { _ = table.subscribe(Array("t\(number)/".utf8), by: 5) }
        #expect(table.ignored == 44)
        #expect(table.close(5).count == 256)
        #expect(table.subscribe([UInt8](repeating: 65, count: 257), by: 5) == .ignored)
    }
}
