import Testing

@testable import Gateway

@Suite struct RecentMessagesTests {
    @Test func `the newest are kept, and what is missing between is told`() throws {
        var recent = RecentMessages<Int>()
        #expect(recent.next(after: 0)?.number == nil)
        for number in 1...5 { recent.put(number * 10, room: 3) }
        #expect(recent.newest == 5 && recent.next(after: 5)?.number == nil)
        let first = try #require(recent.next(after: 0))
        #expect(first.number == 3 && first.item == 30 && first.hasGap)
        let second = try #require(recent.next(after: 3))
        #expect(second.number == 4 && second.item == 40 && !second.hasGap)
        recent.put(60, room: 1)
        let last = try #require(recent.next(after: 4))
        #expect(last.number == 6 && last.item == 60 && last.hasGap)
    }

    @Test func `so many a second, and some at once`() {
        var bucket = TokenBucket(perSecond: 10, burst: 3, at: 0)
        let second: Int64 = 1_000_000_000
        let taken = [0, 0, 0, 0, second / 10, second / 10, 5 * second, 5 * second, 5 * second, 5 * second].map {
            bucket.take(at: $0)
        }
        #expect(taken == [true, true, true, false, true, false, true, true, true, false])
    }
}
