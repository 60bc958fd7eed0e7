import BusProtocol
import Testing

@testable import Delivery

@Suite struct ErrorQueueTests {
    private let error = BusError(.limitExceeded, "too many")

    private func topic(_ text: String) -> SubscribedTopic { SubscribedTopic(topic: Array(text.utf8), text: text) }

    private func rest(_ queue: inout ErrorQueue) -> [String] {
        var texts: [String] = []
        while let next = queue.next() { texts.append(next.topic.text) }
        return texts
    }

    @Test func `users take turns, and each one's oldest error comes first`() {
        var queue = ErrorQueue()
        for number in 0..<3 { queue.add(topic("many\(number)"), error, of: 1000) }
        queue.add(topic("one"), error, of: 1001)
        #expect(queue.users == [1000, 1001])
        #expect(rest(&queue) == ["many0", "one", "many1", "many2"])
        #expect(queue.isEmpty && queue.users.isEmpty)
    }

    @Test func `one user's errors fill nobody else's queue`() {
        var queue = ErrorQueue()
        for number in 0..<10_000 { queue.add(topic("many\(number)"), error, of: 1000) }
        queue.add(topic("one"), error, of: 1001)
        #expect(queue.next()?.topic.text == "many0")
        #expect(queue.next()?.topic.text == "one")
        #expect(rest(&queue).count == ErrorQueue.maximumOfUser - 1)
    }

    @Test func `a topic waits once, with its last error, and not when it is gone`() {
        var queue = ErrorQueue()
        queue.add(topic("a"), error, of: 1000)
        queue.add(topic("a"), BusError(.interrupted, "later"), of: 1001)
        queue.add(topic("b"), error, of: 1000)
        queue.add(topic("c"), error, of: 1001)
        queue.remove(topic("b"))
        queue.remove(Array("c".utf8))
        #expect(queue.next()?.error.reason == .interrupted)
        #expect(queue.next() == nil)
    }

    @Test func `a topic of several users goes to the one with the fewest errors`() {
        var queue = ErrorQueue()
        for number in 0..<3 { queue.add(topic("many\(number)"), error, of: 1000) }
        #expect(queue.first(of: [1000, 1001]) == 1001)
        #expect(queue.first(of: [1000]) == 1000)
        #expect(queue.first(of: []) == .max)
    }
}
