import Testing

@testable import CaptureCore

@Suite struct FrameDecimatorTests {
    private let second: Int64 = 1_000_000_000

    /// Timestamps of a camera at that rate, each off by up to so many per cent of its interval.
    private func camera(
        _ rate: Double, frames: Int, jitter percent: Int64 = 0, from start: Int64 = 1_234_567, seed: UInt64 = 1
    ) -> [Int64] {
        var random = SeededGenerator(seed: seed)
        let interval = 1e9 / rate
        let spread = Int64(interval) * percent / 100
        return (0..<frames).map { index in
            start + Int64(Double(index) * interval)
                + (spread > 0 ? Int64.random(in: -spread...spread, using: &random) : 0)
        }
    }

    private func admitted(_ times: [Int64], _ rateMillionths: Int) -> [Int64] {
        var decimator = FrameDecimator(rateMillionths: rateMillionths)
        return times.filter { decimator.admits($0) }
    }

    @Test func everyNthFrameOfAWholeFraction() {
        for (rate, asked, step) in [(30.0, 10, 3), (60.0, 30, 2), (240.0, 1, 240), (30.0, 30, 1)] {
            let times = camera(rate, frames: 1000)
            #expect(admitted(times, asked * 1_000_000) == stride(from: 0, to: 1000, by: step).map { times[$0] })
        }
    }

    @Test func aHigherRateThanTheCamerasIsTheCameras() {
        let times = camera(30, frames: 3000, jitter: 30)
        #expect(admitted(times, 60_000_000) == times)
    }

    @Test func jitterCostsNoFrames() {
        let times = camera(60, frames: 6000, jitter: 20)
        #expect(admitted(times, 60_000_000).count >= 5998)
        let half = admitted(times, 30_000_000)
        #expect((2999...3001).contains(half.count))
        for (earlier, later) in zip(half, half.dropFirst()) { #expect(later - earlier > 20_000_000) }
    }

    /// A camera whose clock is a little off glides past the due times: that may cost the one frame too many, not a
    /// crowd.
    @Test func aCameraNearlyAtTheAskedRateGlidesThrough() {
        let slow = camera(29.997, frames: 60_000, jitter: 5)
        #expect(admitted(slow, 30_000_000).count == slow.count)
        let fast = camera(30.003, frames: 60_000, jitter: 5)
        #expect((59_993...59_995).contains(admitted(fast, 30_000_000).count))
    }

    @Test func nothingDriftsInADay() {
        var decimator = FrameDecimator(rateMillionths: 29_970_000)
        var count = 0
        // 24 hours at 50 frames a second.
        for index in 0..<(50 * 86_400) where decimator.admits(Int64(index) * 20_000_000) { count += 1 }
        #expect((2_589_407...2_589_409).contains(count))
    }

    @Test func aDurationIsKeptExactly() {
        var decimator = FrameDecimator(interval: duration(1001, 30000))
        var count = 0
        for index in 0..<(60 * 1001) where decimator.admits(Int64(index) * second / 60) { count += 1 }
        #expect((29_999...30_001).contains(count))
    }

    @Test func partsOfANanosecondAreKept() {
        // 700 million frames a second, one every ten sevenths of a nanosecond.
        #expect(admitted(Array(0..<100_000), 700_000_000_000_000).count == 70_000)
    }

    @Test func aGapIsNotMadeUpFor() {
        let times = camera(60, frames: 60) + camera(60, frames: 60, from: 10 * second)
        let after = admitted(times, 20_000_000).filter { $0 >= 10 * second }
        #expect(after.count == 20)
        #expect(zip(after, after.dropFirst()).allSatisfy { $1 - $0 >= 25_000_000 })
    }

    @Test func aClockThatGoesBackBeginsAnew() {
        let times = [
            100 * second, 100 * second - 1_000_000, 5 * second, 5 * second + 10_000_000, 5 * second + 100_000_000,
        ]
        #expect(admitted(times, 10_000_000) == [times[0], times[2], times[4]])
        // Nor does a step back make the next frame look early by more than half an interval.
        let back = [second, second - 95_000_000, second + 45_000_000, second + 100_000_000]
        #expect(admitted(back, 10_000_000) == [back[0], back[3]])
    }

    @Test func nonsenseIsNoTrap() {
        for asked in [Int.min, -1, 0, 1, 1_000_000_007, .max] {
            var decimator = FrameDecimator(rateMillionths: asked)
            for time in [Int64.min, .max, 0, -1, .max, .max - 1, .min, 5] { _ = decimator.admits(time) }
            for index in 0..<20_000 { _ = decimator.admits(Int64(index)) }
        }
        for interval in [duration(.max, 1), duration(1, .max), duration(.max, .max - 1), duration(.max - 1, .max)] {
            var decimator = FrameDecimator(interval: interval)
            for time in [Int64.min, .max, 0, -1, .max, .max - 1, .min, 5] { _ = decimator.admits(time) }
            for index in 0..<20_000 { _ = decimator.admits(Int64(index)) }
        }
    }

    @Test(arguments: seeds) func neverMoreThanAskedAndOnAverageJustThat(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for round in 0..<40 {
            let asked = Int.random(in: 500_000...120_000_000, using: &random)
            let rate = Double.random(in: 1...240, using: &random)
            let times = camera(rate, frames: 1500, jitter: Int64(random.below(30)), seed: random.next())
            let taken = admitted(times, asked)
            let comment: Comment = "seed \(seed), round \(round): \(rate) to \(asked) millionths"
            #expect(taken.first == times.first, comment)
            let interval = 1e15 / Double(asked)
            // From any frame to any other there are at most so many; it is enough to look from each as far as some.
            for first in stride(from: 0, to: taken.count, by: 7) {
                for next in first..<min(taken.count, first + 40) {
                    let due = Double(taken[next] - taken[first]) / interval
                    #expect(Double(next - first) <= due + 1.51, comment)
                }
            }
            if rate > Double(asked) / 1e6 * 1.7 {
                let due = Double((times.last ?? 0) - (times.first ?? 0)) / interval
                #expect(abs(Double(taken.count - 1) - due) <= 1.5, comment)
            }
        }
    }
}
