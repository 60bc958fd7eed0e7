import Glibc

/// Measures how loud sound is, channel by channel, from one reading to the next: its mean power and its loudest sample,
/// in decibels below full scale (dBFS).
///
/// Full scale is the greatest amplitude that the format can hold: a square wave of that amplitude has an average of 0
/// dBFS, a sine -3.01 dBFS, and both a peak of 0. Adding allocates nothing.
public struct SoundLevelMeter: Sendable {
    /// What was measured; minus infinity for silence.
    public struct Reading: Hashable, Sendable {
        /// dBFS of the mean power, by channel.
        public var average: [Double]
        /// dBFS of the loudest sample, by channel.
        public var peak: [Double]
    }

    public let format: SoundFormat
    /// Frames since the last reading.
    public private(set) var frames = 0

    /// Of amplitudes from 0 to 1, by channel: the sum of their squares, and the greatest.
    private var sums: [Double]
    private var peaks: [Double]

    public init(_ format: SoundFormat) {
        self.format = format
        sums = Array(repeating: 0, count: max(0, format.channels))
        peaks = sums
    }

    /// Takes in whole frames; what follows the last whole one is left out.
    public mutating func add(_ samples: UnsafeRawBufferPointer) {
        guard format.frameBytes > 0 else { return }
        let count = samples.count / format.frameBytes
        frames += count
        for channel in sums.indices {
            let (sum, peak) = measure(samples, channel, count)
            sums[channel] += sum
            peaks[channel] = max(peaks[channel], peak)
        }
    }

    /// What has been measured since the last time; it begins anew.
    public mutating func take() -> Reading {
        let reading = Reading(
            average: sums.map { frames > 0 ? 10 * log10($0 / Double(frames)) : -.infinity },
            peak: peaks.map { 20 * log10($0) })
        frames = 0
        for channel in sums.indices {
            sums[channel] = 0
            peaks[channel] = 0
        }
        return reading
    }

    // A loop for each format, so that none asks for each sample what it is.
    private func measure(_ samples: UnsafeRawBufferPointer, _ channel: Int, _ count: Int) -> (Double, Double) {
        switch format.sampleFormat {
        case .s16:
            return measure(samples, channel, count) { bytes, offset in
                Double(Int16(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Int16.self))) / 0x8000
            }
        case .s24:
            return measure(samples, channel, count) { bytes, offset in
                let value =
                    Int32(bytes[offset]) | Int32(bytes[offset + 1]) << 8
                    | Int32(Int8(bitPattern: bytes[offset + 2])) << 16
                return Double(value) / 0x80_0000
            }
        case .s24in32:
            return measure(samples, channel, count) { bytes, offset in
                let word = Int32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Int32.self))
                return Double((word << 8) >> 8) / 0x80_0000
            }
        case .s32:
            return measure(samples, channel, count) { bytes, offset in
                Double(Int32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Int32.self))) / 0x8000_0000
            }
        case .f32:
            return measure(samples, channel, count) { bytes, offset in
                let bits = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
                let value = Double(Float(bitPattern: bits))
                return value.isFinite ? value : 0
            }
        }
    }

    @inline(__always)
    private func measure(
        _ samples: UnsafeRawBufferPointer, _ channel: Int, _ count: Int,
        _ value: (UnsafeRawBufferPointer, Int) -> Double
    ) -> (Double, Double) {
        var (sum, peak) = (0.0, 0.0)
        var offset = channel * format.sampleFormat.bytes
        for _ in 0..<count {
            let amplitude = abs(value(samples, offset))
            sum += amplitude * amplitude
            peak = max(peak, amplitude)
            offset += format.frameBytes
        }
        return (sum, peak)
    }
}
