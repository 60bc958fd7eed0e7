import Testing

@testable import Delivery

@Suite("Stalled connections")
struct StallDetectorTests {
    @Test("a peer that reads nothing for two seconds has stalled; one that reads something, however little, has not")
    func stalls() {
        var detector = StallDetector()
        let second: Int64 = 1_000_000_000
        #expect(detector.isDue(at: 0))
        #expect(detector.look([(4, 1000), (5, 1000), (6, 0)], at: 0, isSpent: false).isEmpty)
        #expect(!detector.isDue(at: 1000) && detector.isDue(at: second))
        #expect(detector.look([(4, 1000), (5, 900), (6, 100)], at: second, isSpent: true).isEmpty)
        #expect(detector.look([(4, 1000), (5, 1000), (6, 100)], at: 2 * second, isSpent: false) == [4])
        #expect(detector.look([(5, 1000), (6, 0)], at: 3 * second, isSpent: false).isEmpty)
        detector.rest()
        #expect(detector.look([(5, 1000)], at: 9 * second, isSpent: true).isEmpty)
    }

    @Test("a peer that is too slow for ten seconds counts as stalled when others lose frames by it, and not before")
    func slow() {
        let second: Int64 = 1_000_000_000
        for isSpent in [false, true] {
            var detector = StallDetector()
            for time in 0..<Int64(10) {
                let unread = 1000 + Int(time)
                // The second one has read all of it once.
                #expect(
                    detector.look([(4, unread), (5, time == 3 ? 0 : unread)], at: time * second, isSpent: isSpent) == []
                )
            }
            #expect(detector.look([(4, 9), (5, 9)], at: 10 * second, isSpent: isSpent) == (isSpent ? [4] : []))
        }
    }
}
