import Glibc

/// The ticks of a virtual microphone in samples from -1 to 1, which may have been cut and joined anywhere.
///
/// A tone of 0.1 goes on all the while; a tick has 0.5, lasts 20 ms, and says by its frequency which second it begins.
public enum SoundTicks {
    /// Where each one begins, and its second's last digit. One that was cut in front is found where it goes on, if
    /// there are 12.5 ms of it still.
    public static func find(in samples: [Double], rate: Int) -> [(index: Int, digit: Int)] {
        let (quiet, least, half) = (rate / 100, rate / 60, rate / 120)
        var found: [(index: Int, digit: Int)] = []
        // Before the first sample it may have been loud already.
        var lastLoud = -1
        for index in samples.indices where isLoud(samples[index]) {
            defer { lastLoud = index }
            // It begins where it was quiet, however short a time ago the last one was: they may have been joined.
            guard index - lastLoud >= quiet, index + least < samples.count,
                samples[index + rate / 80..<index + least].contains(where: isLoud)
            else { continue }
            // Two that were cut and joined have two digits.
            let digit = digit(samples[index..<index + half], rate)
            if digit == self.digit(samples[index + half..<index + least], rate) { found.append((index, digit)) }
        }
        return found
    }

    private static func isLoud(_ sample: Double) -> Bool { abs(sample) > 0.3 }

    private static func digit(_ samples: ArraySlice<Double>, _ rate: Int) -> Int {
        let strengths = (0..<10).map { strength(samples, Double(2000 + 200 * $0), rate: Double(rate)) }
        return strengths.indices.max { strengths[$0] < strengths[$1] } ?? 0
    }

    private static func strength(_ samples: ArraySlice<Double>, _ frequency: Double, rate: Double) -> Double {
        let step = 2 * Double.pi * frequency / rate
        var (real, imaginary) = (0.0, 0.0)
        for (index, sample) in samples.enumerated() {
            real += sample * cos(step * Double(index))
            imaginary += sample * sin(step * Double(index))
        }
        return real * real + imaginary * imaginary
    }
}
