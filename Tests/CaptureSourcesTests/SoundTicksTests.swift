import CameraBusTesting
import CaptureCore
import Testing

@testable import CaptureSources

/// The tests' own ears, on what virtual microphones give.
@Suite struct SoundTicksTests {
    private static let rate = 48000

    /// What is heard from some milliseconds after second 8 for some milliseconds.
    private func sound(from start: Int, for length: Int) -> [Double] {
        let format = SoundFormat(sampleFormat: .f32, rate: Self.rate, channels: 1, periodFrames: 480)
        let frames = length * Self.rate / 1000
        var samples = [Float](repeating: 0, count: frames)
        samples.withUnsafeMutableBytes {
            VirtualSound.write(
                frames: frames, of: format, at: Int64(8000 + start) * 1_000_000, step: 1 / Double(Self.rate),
                VirtualHearing(), into: $0)
        }
        return samples.map(Double.init)
    }

    /// Wherever pieces of more than a second are cut and joined, each has a tick, where it is and with its second's digit.
    @Test func eachOfTwoJoinedPiecesHasATick() {
        let (length, step) = (1279, 41)
        let pieces = stride(from: 0, to: 1000, by: step).map { ($0, sound(from: $0, for: length)) }
        for (firstStart, first) in pieces {
            for (secondStart, second) in pieces {
                let ticks = SoundTicks.find(in: first + second, rate: Self.rate)
                let border = first.count
                #expect(
                    ticks.contains { $0.index < border } && ticks.contains { $0.index >= border },
                    "from \(firstStart) ms and \(secondStart) ms: \(ticks)")
                for tick in ticks {
                    let isFirst = tick.index < border
                    let begin = Double(isFirst ? firstStart : secondStart)
                    let index = isFirst ? tick.index : tick.index - border
                    let time = begin + Double(index) * 1000 / Double(Self.rate)
                    let second = (time / 1000).rounded()
                    #expect(abs(time - second * 1000) < 8 && tick.digit == (8 + Int(second)) % 10, "\(tick)")
                }
            }
        }
    }

    @Test func whatIsLeftOfATickIsNone() {
        let end = sound(from: 10, for: 500)
        #expect(SoundTicks.find(in: end, rate: Self.rate).isEmpty)
        #expect(SoundTicks.find(in: sound(from: 500, for: 300) + end, rate: Self.rate).isEmpty)
        #expect(SoundTicks.find(in: sound(from: 500, for: 510) + sound(from: 500, for: 300), rate: Self.rate).isEmpty)
    }
}
