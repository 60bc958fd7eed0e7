import Testing

@testable import BusServer

@Suite struct TimerQueueTests {
    private func drain(_ queue: inout TimerQueue<Int>, by time: Int64 = .max) -> [Int] {
        var values: [Int] = []
        while let value = queue.popDue(by: time) { values.append(value) }
        return values
    }

    @Test func `what is earliest comes first, and of one time what was put in first`() {
        var queue = TimerQueue<Int>()
        for (number, time) in [(1, 30), (2, 10), (3, 20), (4, 10), (5, 40)] {
            queue.insert(number, number: UInt64(number), at: Int64(time))
        }
        let first = queue.nextTime()
        let (none, some) = (drain(&queue, by: 9), drain(&queue, by: 20))
        let (second, count) = (queue.nextTime(), queue.count)
        let rest = drain(&queue)
        #expect(first == 10 && none == [] && some == [2, 4, 3])
        #expect(second == 30 && count == 2 && rest == [1, 5])
        let last = queue.nextTime()
        #expect(last == nil && queue.isEmpty)
    }

    @Test func `what is taken back never comes, and takes up no place for long`() {
        var queue = TimerQueue<Int>()
        for number in 0..<1000 { queue.insert(number, number: UInt64(number), at: Int64(1000 - number)) }
        let removed = (0..<990).map { queue.remove(number: UInt64($0)) }
        let again = queue.remove(number: 5) || queue.remove(number: 5000)
        #expect(removed.allSatisfy { $0 } && !again)
        #expect(queue.count == 10 && queue.places < 100)
        let left = drain(&queue)
        #expect(left == Array((990..<1000).reversed()))
    }

    @Test func `what is put in while others have their turn waits for the next`() {
        var queue = TimerQueue<Int>()
        queue.insert(1, number: 1, at: 5)
        let first = queue.popDue(by: 10, upTo: 1)
        queue.insert(2, number: 2, at: 0)
        let (now, next) = (queue.popDue(by: 10, upTo: 1), queue.popDue(by: 10, upTo: 2))
        #expect(first == 1 && now == nil && next == 2)
    }

    @Test func `any mixture comes out in order`() {
        var queue = TimerQueue<Int>()
        var expected: [Int64: [Int]] = [:]
        var number = 0
        for round in 0..<2000 {
            let time = Int64.random(in: 0...50)
            if round % 3 == 2, let (key, values) = expected.randomElement(), let value = values.randomElement() {
                queue.remove(number: UInt64(value))
                expected[key] = values.filter { $0 != value }
            } else {
                queue.insert(number, number: UInt64(number), at: time)
                expected[time, default: []].append(number)
                number += 1
            }
        }
        let values = drain(&queue)
        #expect(values == expected.keys.sorted().flatMap { expected[$0] ?? [] })
    }
}
