import CaptureCore
import Glibc

/// What a virtual microphone is set to hear.
struct VirtualHearing: Hashable {
    /// Where it listens: the index in ``VirtualSound/sources``.
    var source = 0
    /// Hundredths of a decibel.
    var gain: Int64 = 0
    var isMuted = false

    /// What samples are multiplied by.
    var factor: Double { isMuted ? 0 : pow(10, Double(gain) / 2000) }
}

/// What there is to hear at virtual microphones: a tone, by which channels and data sources are told apart, and a tick
/// at each full second of CLOCK_MONOTONIC, the clock that virtual cameras write into their pictures.
///
/// The tick of second n begins with that second, lasts 20 ms, has an amplitude of 0.5 and a frequency of 2000 + 200 (n
/// mod 10) Hz, so that it tells which of ten it is. The tone has an amplitude of 0.1 (-20 dBFS at its peaks) and 440 Hz
/// in front, 660 Hz at the back; in the second channel twice as much. Both are of the time alone: any two microphones
/// hear the same at the same time.
enum VirtualSound {
    /// The data sources, by index.
    static let sources = [
        SoundDataSource(id: "front", name: "Front", orientation: .front),
        SoundDataSource(id: "back", name: "Back", orientation: .back),
    ]

    static let toneAmplitude = 0.1
    static let tickAmplitude = 0.5
    /// Seconds.
    static let tickLength = 0.02

    /// Hz; whole, so that it goes through each full second as if there were none.
    static func toneFrequency(source: Int, channel: Int) -> Double {
        (source == 0 ? 440 : 660) * (channel == 0 ? 1 : 2)
    }

    /// Hz.
    static func tickFrequency(second: Int64) -> Double { 2000 + 200 * Double(second % 10) }

    /// Writes frames from the beginning of the memory.
    ///
    /// - Parameters:
    ///   - time: when the first one is taken, CLOCK_MONOTONIC, nanoseconds.
    ///   - step: seconds from one to the next.
    static func write(
        frames: Int, of format: SoundFormat, at time: Int64, step: Double, _ hearing: VirtualHearing,
        into memory: UnsafeMutableRawBufferPointer
    ) {
        let factor = hearing.factor
        var second = time / 1_000_000_000
        var base = Double(time % 1_000_000_000) / 1_000_000_000
        var first = 0
        for frame in 0..<frames {
            var instant = base + Double(frame - first) * step
            if instant >= 1 {
                second += 1
                instant -= 1
                (base, first) = (instant, frame)
            }
            var tick = 0.0
            if instant < tickLength {
                tick = tickAmplitude * sin(2 * .pi * tickFrequency(second: second) * instant)
            }
            for channel in 0..<format.channels {
                let frequency = toneFrequency(source: hearing.source, channel: channel)
                let tone = toneAmplitude * sin(2 * .pi * frequency * instant)
                store(factor * (tone + tick), frame * format.channels + channel, format.sampleFormat, memory)
            }
        }
    }

    // A converter that is given more than it can take gives all it can.
    private static func store(
        _ value: Double, _ index: Int, _ format: SampleFormat, _ memory: UnsafeMutableRawBufferPointer
    ) {
        let clipped = min(max(value, -1), 1)
        let offset = index * format.bytes
        switch format {
        case .s16:
            memory.storeBytes(of: Int16((clipped * 32767).rounded()).littleEndian, toByteOffset: offset, as: Int16.self)
        case .f32:
            memory.storeBytes(
                of: Float(clipped).bitPattern.littleEndian, toByteOffset: offset, as: UInt32.self)
        case .s24, .s24in32, .s32:
            // Not among what virtual microphones offer.
            for byte in 0..<format.bytes { memory[offset + byte] = 0 }
        }
    }
}
