import CaptureCore
import Testing

@Suite("The numbers and times of resampled sound")
struct SoundTimelineTests {
    @Test("what comes out begins where what went in began, and follows on itself")
    func follows() {
        var timeline = SoundTimeline(inputRate: 48000, outputRate: 16000)
        // Half a millisecond is held back.
        let first = timeline.place(firstFrame: 4800, time: 100_000_000, delay: 0, frames: 152)
        #expect(first.firstFrame == 1600 && first.time == 100_000_000)
        let second = timeline.place(firstFrame: 5280, time: 110_000_000, delay: 500_000, frames: 160)
        #expect(second.firstFrame == 1752 && second.time == 109_500_000)
        let third = timeline.place(firstFrame: 5760, time: 120_000_000, delay: 500_000, frames: 160)
        #expect(third.firstFrame == 1912)
    }

    @Test("nothing may come out for a while, and is not counted")
    func nothing() {
        var timeline = SoundTimeline(inputRate: 48000, outputRate: 8000)
        _ = timeline.place(firstFrame: 480, time: 0, delay: 0, frames: 0)
        let first = timeline.place(firstFrame: 960, time: 10_000_000, delay: 10_000_000, frames: 100)
        #expect(first.firstFrame == 80 && first.time == 0)
    }

    @Test("after a hole the numbers leave it out, and what was held back with it")
    func hole() {
        var timeline = SoundTimeline(inputRate: 48000, outputRate: 44100)
        _ = timeline.place(firstFrame: 0, time: 0, delay: 0, frames: 425)
        timeline.restart()
        let next = timeline.place(firstFrame: 48480, time: 1_010_000_000, delay: 0, frames: 425)
        #expect(next.firstFrame == 44541 && next.time == 1_010_000_000)
    }

    @Test("numbers never go back, and very high ones don't overflow", arguments: [1, 8000, 384_000])
    func extremes(_ rate: Int) {
        var timeline = SoundTimeline(inputRate: 8000, outputRate: rate)
        let high = timeline.place(firstFrame: .max - 10, time: 0, delay: 0, frames: 100).firstFrame
        timeline.restart()
        #expect(timeline.place(firstFrame: 5, time: 0, delay: 0, frames: 100).firstFrame >= high)
    }

    @Test("a rate of nothing is no reason to end")
    func zero() {
        var timeline = SoundTimeline(inputRate: 0, outputRate: 8000)
        #expect(timeline.place(firstFrame: 7, time: 1, delay: 0, frames: 1).firstFrame == 7)
    }
}
