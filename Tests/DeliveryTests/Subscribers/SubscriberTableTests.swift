import Testing

@testable import Delivery

@Suite("Who subscribes to what")
struct SubscriberTableTests {
    private var table = SubscriberTable()
    private let topic = Array("frame/cam0/native/".utf8)
    private let other = Array("frame/cam0/jpeg/".utf8)

    @Test("each connection counts once")
    mutating func once() {
        #expect(table.subscribe(topic, by: 5) == .first)
        #expect(table.subscribe(topic, by: 5) == .repeated)
        #expect(table.subscribe(topic, by: 6) == .further)
        #expect(table.unsubscribe(topic, by: 5) == true)
        #expect(table.unsubscribe(topic, by: 5) == false)
        #expect(table.unsubscribe(topic, by: 6) == true)
        #expect(table.subscribe(topic, by: 5) == .first)
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
        #expect(Set(table.close(5)) == [topic, other])
        #expect(table.close(5) == [])
        #expect(table.close(6) == [other])
    }

    @Test("a subscription that was read after its connection's end is swept out")
    mutating func sweep() {
        _ = table.subscribe(topic, by: 5)
        _ = table.subscribe(topic, by: 6)
        _ = table.subscribe(other, by: 5)
        #expect(table.sweep(topic) { $0 != 5 }.map { Set($0.topics) } == [[topic, other]])
        #expect(table.sweep(topic) { _ in true }.isEmpty)
        #expect(table.sweep(topic) { _ in false }.map(\.connection) == [6])
    }

    @Test("an overlong topic is ignored")
    mutating func overlong() {
        #expect(table.subscribe([UInt8](repeating: 65, count: 257), by: 5) == .ignored)
        #expect(table.ignored == 1 && table.close(5).isEmpty)
    }
}
