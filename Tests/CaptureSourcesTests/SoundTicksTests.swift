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

    /// Wherever pieces of more than a second are cut and joined, each has a tick, where it is and with its second's
    /// digit.
    ///
    /// - Parameter starts: of the pieces behind second 8, in milliseconds.
    @Test(arguments: [
        stride(from: 0, to: 1000, by: 91), stride(from: 0, to: 22, by: 3), stride(from: 719, to: 744, by: 3),
    ])
    func eachOfTwoJoinedPiecesHasATick(_ starts: StrideTo<Int>) {
        // Those that start at 719 ms end just before a tick, and those behind it in one.
        let pieces = starts.map { ($0, sound(from: $0, for: 1281)) }
        let others = stride(from: 0, to: 1000, by: 91).map { ($0, sound(from: $0, for: 1281)) }
        for (firstStart, first) in pieces {
            for (secondStart, second) in pieces + others {
                let ticks = SoundTicks.find(in: first + second, rate: Self.rate)
                let border = first.count
                #expect(
                    ticks.contains { $0.index < border } && ticks.contains { $0.index >= border },
                    "from \(firstStart) ms and \(secondStart) ms: \(ticks)")
                // Where both were cut in a tick, or just before one, there is one for both.
                for tick in ticks where abs(tick.index - border) > Self.rate / 200 {
                    let isFirst = tick.index < border
                    let begin = Double(isFirst ? firstStart : secondStart)
                    let index = isFirst ? tick.index : tick.index - border
                    let time = begin + Double(index) * 1000 / Double(Self.rate)
                    let second = (time / 1000).rounded()
                    #expect(
                        abs(time - second * 1000) < 8 && tick.digit == (8 + Int(second)) % 10,
                        "\(tick) from \(firstStart) ms and \(secondStart) ms")
                }
            }
        }
    }

    /// What was loud before the first sample, nobody knows.
    @Test(arguments: 1..<20) func aSoundThatBeginsInATickHasNone(_ start: Int) {
        #expect(SoundTicks.find(in: sound(from: start, for: 900), rate: Self.rate).isEmpty)
    }

    @Test func whatIsLeftOfATickIsNone() {
        let end = sound(from: 10, for: 500)
        #expect(SoundTicks.find(in: end, rate: Self.rate).isEmpty)
        #expect(SoundTicks.find(in: sound(from: 500, for: 300) + end, rate: Self.rate).isEmpty)
        #expect(SoundTicks.find(in: sound(from: 500, for: 510) + sound(from: 500, for: 300), rate: Self.rate).isEmpty)
    }
}
