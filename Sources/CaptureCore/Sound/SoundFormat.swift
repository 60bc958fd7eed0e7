/// How a sample of sound is written: always interleaved, little-endian and linear.
public enum SampleFormat: String, Hashable, Sendable, CaseIterable {
    /// Signed, two bytes (`SND_PCM_FORMAT_S16_LE`).
    case s16
    /// Signed, in three bytes (`SND_PCM_FORMAT_S24_3LE`).
    case s24
    /// Signed, the low three of four bytes; what the fourth holds doesn't count (`SND_PCM_FORMAT_S24_LE`).
    case s24in32
    /// Signed, four bytes (`SND_PCM_FORMAT_S32_LE`).
    case s32
    /// From -1 to 1, four bytes (`SND_PCM_FORMAT_FLOAT_LE`).
    case f32

    /// Bytes of one sample of one channel.
    public var bytes: Int {
        switch self {
        case .s16: 2
        case .s24: 3
        case .s24in32, .s32, .f32: 4
        }
    }
}

/// What a microphone is set to: what ALSA's hardware parameters are asked for and answer.
public struct SoundFormat: Hashable, Sendable {
    public var sampleFormat: SampleFormat
    /// Frames a second; a frame is one sample of each channel.
    public var rate: Int
    public var channels: Int
    /// Frames that come at once. A wish of 0 stands for 10 ms, or what is next to it.
    public var periodFrames: Int

    public init(sampleFormat: SampleFormat, rate: Int, channels: Int, periodFrames: Int = 0) {
        self.sampleFormat = sampleFormat
        self.rate = rate
        self.channels = channels
        self.periodFrames = periodFrames
    }

    /// Bytes of one sample of each channel.
    public var frameBytes: Int { sampleFormat.bytes * channels }

    /// Bytes that come at once.
    public var periodBytes: Int { frameBytes * periodFrames }

    /// Frames in 10 ms.
    public var defaultPeriodFrames: Int { max(1, rate / 100) }

    /// The time of so many frames, nanoseconds, rounded to the nearest.
    public func nanoseconds(frames: Int64) -> Int64 {
        guard rate > 0 else { return 0 }
        let twice = Int128(frames) * 2_000_000_000 / Int128(rate)
        return Int64(clamping: (twice + (twice < 0 ? -1 : 1)) / 2)
    }

    /// How many frames lie within so many nanoseconds, rounded to the nearest.
    public func frames(nanoseconds: Int64) -> Int64 {
        let twice = Int128(nanoseconds) * Int128(rate) * 2 / 1_000_000_000
        return Int64(clamping: (twice + (twice < 0 ? -1 : 1)) / 2)
    }
}

/// One row of a microphone's format table: a sample format with the numbers of channels and the rates that it takes
/// with it.
public struct MicrophoneFormat: Hashable, Sendable {
    /// `a0`, `a1`, … in the order of the table; stable as long as the table is.
    public var id: String
    public var sampleFormat: SampleFormat
    public var channels: ClosedRange<Int>
    /// The rates in use (``SoundRates/usual``) that it takes, or, of one that takes none of them, its lowest and
    /// highest; Hz, ascending.
    public var rates: [Int]
    /// It takes any rate within these too; nil: none but `rates`.
    public var rateRange: ClosedRange<Int>?
    /// Frames that can come at once, at any of its rates.
    public var periodFrames: ClosedRange<Int>

    public init(
        id: String, sampleFormat: SampleFormat, channels: ClosedRange<Int>, rates: [Int],
        rateRange: ClosedRange<Int>?, periodFrames: ClosedRange<Int>
    ) {
        self.id = id
        self.sampleFormat = sampleFormat
        self.channels = channels
        self.rates = rates
        self.rateRange = rateRange
        self.periodFrames = periodFrames
    }

    /// Whether a selection means this row.
    public func isRow(of format: SoundFormat) -> Bool {
        sampleFormat == format.sampleFormat && channels.contains(format.channels)
            && (rates.contains(format.rate) || rateRange?.contains(format.rate) ?? false)
    }
}

/// The rates that devices of sound are asked for.
public enum SoundRates {
    /// Hz, ascending.
    public static let usual = [
        8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000, 64000, 88200, 96000, 176_400, 192_000, 352_800,
        384_000,
    ]
}
