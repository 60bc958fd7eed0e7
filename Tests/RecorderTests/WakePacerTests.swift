import Testing

@testable import Recorder

@Suite("When the thread that writes is woken") struct WakePacerTests {
    @Test("frames are told of in batches, none of them later than it may be", arguments: [15, 30, 60, 120] as [Int64])
    func batches(_ rate: Int64) {
        var pacer = WakePacer()
        var waiting: [Int64] = []
        var wakes = 0
        for number in 0..<(rate * 10) {
            let time = number * 1_000_000_000 / rate
            waiting.append(time)
            guard pacer.put(time, urgent: .max) else { continue }
            #expect(waiting.allSatisfy { time - $0 <= WakePacer.longest })
            #expect(!pacer.hasUntold)
            waiting = []
            wakes += 1
        }
        #expect(wakes <= 100, "\(wakes)")
    }

    @Test("what is urgent is told of at once, with what waits")
    func urgent() {
        var pacer = WakePacer()
        let first = [pacer.put(0, urgent: .min), pacer.put(10_000_000, urgent: 30_000_000)]
        #expect(first == [true, false] && pacer.hasUntold)
        let second = [pacer.put(20_000_000, urgent: 30_000_000), pacer.put(30_000_000, urgent: 30_000_000)]
        #expect(second == [false, true] && !pacer.hasUntold)
        let last = pacer.put(40_000_000, urgent: .max)
        #expect(!last && pacer.hasUntold)
        pacer.told()
        #expect(!pacer.hasUntold)
    }

    @Test("a time of long ago, or of none, is told of at once")
    func clockThatJumps() {
        var pacer = WakePacer()
        let outcomes = [
            pacer.put(1_000_000_000, urgent: .max), pacer.put(5, urgent: .max), pacer.put(.max, urgent: .max),
            pacer.put(.min, urgent: .max),
        ]
        #expect(outcomes[1] && outcomes[2])
    }
}
