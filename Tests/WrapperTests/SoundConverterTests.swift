import FFmpeg
import Glibc
import Testing

/// What libswresample makes of sound, measured.
@Suite struct SoundConverterTests {
    /// A sine of 16 bits, the same in all channels.
    private func tone(_ frequency: Double, _ amplitude: Double, _ format: AudioFormat, from first: Int, _ frames: Int)
        -> [Int16]
    {
        (first..<first + frames).flatMap { frame in
            let value = amplitude * sin(2 * .pi * frequency * Double(frame) / Double(format.rate))
            return [Int16](repeating: Int16((value * 32767).rounded()), count: format.channels)
        }
    }

    /// All that comes of a second of a tone, given in pieces of 10 ms, as numbers from -1 to 1; how long before each
    /// piece was what was held back.
    private func convert(
        _ converter: SoundConverter, _ frequency: Double, _ amplitude: Double
    ) throws -> (samples: [Double], delays: [Int64]) {
        var (samples, delays): ([Double], [Int64]) = ([], [])
        let input = converter.input
        let period = input.rate / 100
        for index in 0..<100 {
            delays.append(converter.delay)
            let piece = tone(frequency, amplitude, input, from: index * period, period)
            let made = try piece.withUnsafeBytes { try converter.convert($0) }
            if converter.output.sample == .float32 {
                samples += made.bindMemory(to: Float.self).map(Double.init)
            } else {
                samples += made.bindMemory(to: Int16.self).map { Double($0) / 32768 }
            }
        }
        return (samples, delays)
    }

    /// The amplitude and the phase (of a sine) of a frequency.
    private func measure(_ samples: ArraySlice<Double>, _ frequency: Double, _ rate: Int) -> (
        amplitude: Double, phase: Double
    ) {
        let step = 2 * Double.pi * frequency / Double(rate)
        var (real, imaginary) = (0.0, 0.0)
        for (index, sample) in zip(samples.indices, samples) {
            real += sample * sin(step * Double(index))
            imaginary += sample * cos(step * Double(index))
        }
        return (2 * hypot(real, imaginary) / Double(samples.count), atan2(imaginary, real))
    }

    @Test(
        "a tone keeps its frequency, its level and its place in time",
        arguments: [(48000, 16000), (48000, 44100), (44100, 48000), (8000, 48000), (48000, 8000), (48000, 48000)],
        [AudioFormat.Sample.int16, .float32])
    func tone(_ rates: (Int, Int), _ sample: AudioFormat.Sample) throws {
        let converter = try SoundConverter(
            from: AudioFormat(.int16, rate: rates.0, channels: 1), to: AudioFormat(sample, rate: rates.1, channels: 1))
        let (samples, delays) = try convert(converter, 440, 0.25)
        // What is missing at the end is what is held back: the first that came out lies on the first that went in.
        let held = Double(rates.1) * Double(converter.delay) / 1_000_000_000
        #expect(abs(Double(samples.count) + held - Double(rates.1)) <= 1, "\(samples.count) and \(held)")
        let middle = samples[(samples.count / 10)..<(samples.count * 9 / 10)]
        let (amplitude, phase) = measure(middle, 440, rates.1)
        #expect(abs(amplitude - 0.25) < 0.003, "\(amplitude)")
        // A tenth of a frame.
        #expect(abs(phase) < 2 * .pi * 440 / Double(rates.1) / 10, "\(phase)")
        #expect(measure(middle, 660, rates.1).amplitude < 0.002)
        // Once it runs, it holds back the same, to within a frame that did not come out yet.
        let steady = delays.dropFirst(10)
        let frame = 1_000_000_000 / Int64(rates.1)
        #expect((steady.max() ?? 0) - (steady.min() ?? 0) <= frame, "\(steady)")
        #expect((0..<10_000_000).contains(steady.max() ?? -1))
    }

    @Test("channels are mixed, and never louder than they can be", arguments: [AudioFormat.Sample.int16, .float32])
    func mixing(_ sample: AudioFormat.Sample) throws {
        for (from, to, expected) in [(2, 1, 0.9), (1, 2, 0.9 * 0.5.squareRoot()), (2, 2, 0.9)] {
            let converter = try SoundConverter(
                from: AudioFormat(.int16, rate: 48000, channels: from),
                to: AudioFormat(sample, rate: 48000, channels: to))
            let (samples, _) = try convert(converter, 440, 0.9)
            #expect(samples.count == 48000 * to)
            let left = stride(from: 0, to: samples.count, by: to).map { samples[$0] }
            let level = measure(left[...], 440, 48000).amplitude
            #expect(abs(level - expected) < 0.003, "\(from) to \(to): \(level)")
        }
        let many = try SoundConverter(
            from: AudioFormat(.int16, rate: 48000, channels: 8), to: AudioFormat(sample, rate: 48000, channels: 1))
        #expect(try convert(many, 440, 1).samples.allSatisfy { abs($0) <= 1 })
    }

    @Test("more channels than have places pass as they are")
    func manyChannels() throws {
        let converter = try SoundConverter(
            from: AudioFormat(.int16, rate: 48000, channels: 12),
            to: AudioFormat(.float32, rate: 16000, channels: 12))
        let (samples, _) = try convert(converter, 440, 0.25)
        let last = stride(from: 11, to: samples.count, by: 12).map { samples[$0] }
        #expect(abs(measure(last[1000...], 440, 16000).amplitude - 0.25) < 0.003)
    }

    @Test("started again, it begins with what goes in next")
    func restart() throws {
        let converter = try SoundConverter(
            from: AudioFormat(.int16, rate: 48000, channels: 1), to: AudioFormat(.float32, rate: 16000, channels: 1))
        let loud = [Int16](repeating: 30000, count: 480)
        let quiet = [Int16](repeating: 0, count: 960)
        _ = try loud.withUnsafeBytes { try converter.convert($0) }
        #expect(converter.delay > 0)
        try converter.restart()
        #expect(converter.delay == 0)
        let made = try quiet.withUnsafeBytes { try converter.convert($0).bindMemory(to: Float.self).map { $0 } }
        #expect(!made.isEmpty && made.allSatisfy { $0 == 0 })
    }

    @Test("what can't be made is refused, and what would need too large a filter")
    func refused() {
        for (rate, channels) in [(3999, 2), (384_001, 2), (48000, 9), (48000, 0), (0, 2), (-1, 2)] {
            #expect(throws: MediaError.self, "\(rate) \(channels)") {
                try SoundConverter(
                    from: AudioFormat(.int16, rate: 48000, channels: 2),
                    to: AudioFormat(.int16, rate: rate, channels: channels))
            }
        }
        #expect(!SoundConverter.canResample(from: 384_000, to: 4001) && !SoundConverter.canResample(from: 0, to: 8000))
        for from in [8000, 44100, 48000, 192_000, 384_000] {
            for to in [8000, 11025, 16000, 22050, 44100, 48000, 96000] {
                #expect(SoundConverter.canResample(from: from, to: to), "\(from) \(to)")
            }
        }
    }
}
