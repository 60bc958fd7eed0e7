import Glibc

/// The ticks of a virtual microphone in samples from -1 to 1, which may have been cut and joined anywhere.
///
/// A tone of 0.1 goes on all the while; a tick has 0.5, lasts 20 ms, and says by its frequency which second it begins.
public enum SoundTicks {
    /// - Returns: where each one begins, and its second's last digit. A tick that is cut to less than 17 ms is none.
    public static func find(in samples: [Double], rate: Int) -> [(index: Int, digit: Int)] {
        let (least, quiet) = (rate / 60, rate / 100)
        var found: [(index: Int, digit: Int)] = []
        var lastLoud = -quiet
        for index in samples.indices where isLoud(samples[index]) {
            defer { lastLoud = index }
            // Before the first sample it may have been loud already. Else it begins where it was quiet, however short
            // a time ago the last one was: they may have been joined.
            guard index > 0, index - lastLoud >= quiet, index + least < samples.count,
                samples[index + rate / 80..<index + least].contains(where: isLoud)
            else { continue }
            let part = samples[index..<index + least]
            let strengths = (0..<10).map { strength(part, Double(2000 + 200 * $0), rate: Double(rate)) }
            found.append((index, strengths.indices.max { strengths[$0] < strengths[$1] } ?? 0))
        }
        return found
    }

    private static func isLoud(_ sample: Double) -> Bool { abs(sample) > 0.3 }

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
