import Testing

@testable import MovieFile

@Suite struct TimelineTests {
    @Test func timesGoOnBehindACut() {
        var timeline = Timeline()
        #expect(timeline.movieTime(77) == 0, "the first one is the beginning")
        timeline.begin(at: 100)
        timeline.cut(from: 150)
        #expect(timeline.isCut)
        #expect(timeline.movieTime(149) == 49 && timeline.movieTime(150) == nil && timeline.movieTime(.max - 1) == nil)
        timeline.cut(until: 180)
        timeline.cut(until: 190)
        #expect(!timeline.isCut)
        #expect(timeline.movieTime(179) == nil && timeline.movieTime(180) == 50 && timeline.movieTime(90) == -10)
        // It begins where the last one ended, and one of no length is none.
        timeline.cut(from: 170)
        timeline.cut(until: 160)
        #expect(timeline.movieTime(180) == 50)
        timeline.cut(from: 200)
        timeline.cut(until: 1200)
        #expect(timeline.movieTime(199) == 69 && timeline.movieTime(1200) == 70 && timeline.movieTime(149) == 49)
    }

    @Test func whatIsCutOutInFrontOfTheBeginningCountsForNothing() {
        var timeline = Timeline()
        timeline.cut(from: 10)
        #expect(timeline.movieTime(20) == nil)
        timeline.cut(until: 30)
        #expect(timeline.movieTime(30) == 0)
        timeline.begin(at: 40)
        #expect(timeline.movieTime(50) == 10)
    }

    @Test func keepsAFewCutsOnly() {
        var timeline = Timeline()
        timeline.begin(at: 0)
        for number in 0..<Int64(1000) {
            timeline.cut(from: number * 100 + 50)
            timeline.cut(until: number * 100 + 100)
        }
        #expect(timeline.movieTime(100_000) == 50_000)
        #expect(timeline.movieTime(99_949) == 49_999)
        #expect(timeline.movieTime(10) == nil, "that is too long ago")
    }

    /// Each moment of sound is kept exactly if its own time is.
    @Test(arguments: [8000, 44100, 48000]) func keepsTheMomentsWhoseTimeIsKept(_ rate: Int) {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<100 {
            var timeline = Timeline()
            timeline.begin(at: 0)
            var time: Int64 = 0
            for _ in 0..<Int.random(in: 0...4, using: &generator) {
                time += Int64.random(in: 0...9_000_000, using: &generator)
                timeline.cut(from: time)
                if Bool.random(using: &generator) || time < 3_000_000 {
                    time += Int64.random(in: 0...9_000_000, using: &generator)
                    timeline.cut(until: time)
                }
            }
            let (start, count) = (Int64.random(in: 0...20_000_000, using: &generator), 480)
            var found: [Int] = []
            var next = 0
            while let kept = timeline.moments(from: next, of: count, at: start, rate: rate) {
                found += kept
                next = kept.upperBound
            }
            let expected = (0..<count).filter {
                timeline.movieTime(start + Int64($0) * 1_000_000_000 / Int64(rate)) != nil
            }
            #expect(found == expected)
        }
    }
}
