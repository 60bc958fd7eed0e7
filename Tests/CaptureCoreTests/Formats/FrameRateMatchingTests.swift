import Testing

@testable import CaptureCore

@Suite struct FrameRateMatchingTests {
    private func match(
        _ request: FrameRateRequest, _ ranges: [FrameRateRange], present: FrameDuration? = nil
    ) -> (FrameDuration?, isExact: Bool) {
        let match = FrameRateMatch(request, in: ranges, present: present)
        return (match.duration, match.distance == 0)
    }

    @Test func aNumberMeansTheRateThatPeopleCallSo() {
        let usb = [FrameRateRange(discrete: duration(333_333, 10_000_000)), rate(15)]
        #expect(match(.rate(30), usb) == (duration(333_333, 10_000_000), true))
        let rounded = [FrameRateRange(discrete: duration(13_332, 100_000))]
        #expect(match(.rate(7.5), rounded).isExact && !match(.rate(7.51), rounded).isExact)
        let both = [rate(30), FrameRateRange(discrete: duration(1001, 30000))]
        #expect(match(.rate(29.97), both) == (duration(1001, 30000), true))
        #expect(match(.rate(30), both) == (duration(1, 30), true))
        #expect(match(.rate(29.97), [rate(30)]) == (duration(1, 30), false))
    }

    @Test func aDurationMeansItselfWithinACamerasUnit() {
        #expect(match(.duration(duration(1, 30)), [FrameRateRange(discrete: duration(333_333, 10_000_000))]).isExact)
        #expect(!match(.duration(duration(1001, 30000)), [rate(30)]).isExact)
        #expect(!match(.duration(duration(1001, 240_000)), [rate(240)]).isExact)
    }

    @Test func stepsAreKept() {
        let range = FrameRateRange(
            minFrameDuration: duration(1, 50), maxFrameDuration: duration(1, 8), step: duration(1, 100))
        #expect(match(.duration(duration(3, 100)), [range]) == (duration(3, 100), true))
        #expect(match(.duration(duration(1, 30)), [range]) == (duration(3, 100), false))
        #expect(match(.duration(duration(124, 1000)), [range]) == (duration(1, 8), false))
        #expect(match(.duration(duration(1, 8)), [range]) == (duration(1, 8), true))
        #expect(match(.rate(100), [range]) == (duration(1, 50), false))
        #expect(match(.rate(1), [range]) == (duration(1, 8), false))
        // The shortest that isn't shorter than asked.
        #expect(match(.range(min: duration(1, 30), max: duration(1, 10)), [range]) == (duration(4, 100), true))
    }

    @Test func withoutStepsAnythingBetweenIsThere() {
        let range = FrameRateRange(minFrameDuration: duration(1, 60), maxFrameDuration: duration(1, 1))
        #expect(match(.duration(duration(1001, 30000)), [range]) == (duration(1001, 30000), true))
        #expect(match(.rate(7.5), [range]) == (duration(2, 15), true))
    }

    @Test func ofARangeThePresentRateElseTheHighest() {
        let rates = [rate(60), rate(30), rate(15), rate(5)]
        let wish = FrameRateRequest.range(min: duration(1, 30), max: duration(1, 10))
        #expect(match(wish, rates, present: duration(1, 15)) == (duration(1, 15), true))
        #expect(match(wish, rates, present: duration(1, 60)) == (duration(1, 30), true))
        #expect(match(wish, rates, present: duration(1, 20)) == (duration(1, 30), true))
        #expect(match(.range(min: nil, max: duration(1, 10)), rates) == (duration(1, 60), true))
        #expect(match(.range(min: duration(1, 10), max: nil), rates) == (duration(1, 5), true))
        #expect(match(.range(min: duration(1, 12), max: duration(1, 10)), rates) == (duration(1, 15), false))
        #expect(match(.range(min: duration(1, 15), max: duration(1, 15)), rates) == (duration(1, 15), true))
    }

    @Test func withoutRatesThereIsNone() {
        #expect(match(.rate(30), []) == (nil, false))
        #expect(match(.range(min: duration(1, 30), max: nil), []) == (nil, false))
    }

    @Test(arguments: seeds) func theNearestIsOneOfTheRange(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        func part(_ bits: Int) -> Int { 1 + Int(random.next() >> UInt64(64 - bits)) }
        for index in 0..<500 {
            let bits = random.pick([4, 10, 31, 40, 62])
            let ends = [duration(part(bits), part(bits)), duration(part(bits), part(bits))].sorted()
            let range = FrameRateRange(
                minFrameDuration: ends[0], maxFrameDuration: ends[1],
                step: random.chance(70) ? duration(part(bits), part(bits)) : nil)
            let wish = duration(part(bits), part(bits))
            let found = range.nearest(to: wish)
            #expect(ends[0] <= found && found <= ends[1], "seed \(seed), \(index)")
            if bits < 31 { #expect(range.nearest(to: found) == found, "seed \(seed), \(index): \(range) \(wish)") }
            if let shortest = range.shortest(from: wish) {
                #expect(shortest <= ends[1] && (wish > ends[1] || shortest >= wish), "seed \(seed), \(index)")
            } else {
                #expect(wish > ends[1], "seed \(seed), \(index)")
            }
        }
    }
}
