package import ALSA
package import CaptureCore

/// A microphone's formats, as its PCM tells them.
package enum ALSAFormatTable {
    /// Channels beyond which nobody looks: ALSA's plugins that only pretend take any number.
    private static let maxChannels = 64

    /// Reads the table: what goes together with what is asked for one by one, since a driver need not take each rate
    /// with each number of channels.
    package static func read(_ space: PCMSpace) throws(ALSAError) -> [MicrophoneFormat] {
        var rows: [MicrophoneFormat] = []
        for sampleFormat in SampleFormat.allCases where space.takes(format: PCMFormat(sampleFormat)) {
            let first = rows.count
            let formats = try space.with(format: PCMFormat(sampleFormat))
            let range = try formats.channels()
            for channels in range.lowerBound...max(range.lowerBound, min(range.upperBound, maxChannels))
            where formats.takes(channels: channels) {
                let row = try row(sampleFormat, channels, try formats.with(channels: channels), "a\(rows.count)")
                if rows.count > first, let joined = joined(rows[rows.count - 1], row) {
                    rows[rows.count - 1] = joined
                } else {
                    rows.append(row)
                }
            }
        }
        return rows
    }

    private static func row(
        _ sampleFormat: SampleFormat, _ channels: Int, _ space: PCMSpace, _ id: String
    ) throws(ALSAError) -> MicrophoneFormat {
        let range = try space.rates()
        var rates = SoundRates.usual.filter { range.contains($0) && space.takes(rate: $0) }
        if rates.isEmpty { rates = Set([range.lowerBound, range.upperBound]).sorted() }
        // Rates that no crystal is made for are taken by those alone that take any.
        let isContinuous =
            range.upperBound - range.lowerBound > 2 && space.takes(rate: range.lowerBound + 1)
            && space.takes(rate: range.upperBound - 1)
        return MicrophoneFormat(
            id: id, sampleFormat: sampleFormat, channels: channels...channels, rates: rates,
            rateRange: isContinuous ? range : nil, periodFrames: try space.periodFrames())
    }

    /// A row with the channels of the one before it too; nil when they differ in more.
    private static func joined(_ row: MicrophoneFormat, _ next: MicrophoneFormat) -> MicrophoneFormat? {
        let shortest = max(row.periodFrames.lowerBound, next.periodFrames.lowerBound)
        let longest = min(row.periodFrames.upperBound, next.periodFrames.upperBound)
        guard row.channels.upperBound + 1 == next.channels.lowerBound, row.rates == next.rates,
            row.rateRange == next.rateRange, shortest <= longest
        else { return nil }
        var joined = row
        joined.channels = row.channels.lowerBound...next.channels.upperBound
        joined.periodFrames = shortest...longest
        return joined
    }
}

extension PCMFormat {
    package init(_ format: SampleFormat) {
        switch format {
        case .s16: self = .signed16
        case .s24: self = .signed24Packed
        case .s24in32: self = .signed24
        case .s32: self = .signed32
        case .f32: self = .float32
        }
    }
}

extension SampleFormat {
    package init(_ format: PCMFormat) {
        switch format {
        case .signed16: self = .s16
        case .signed24Packed: self = .s24
        case .signed24: self = .s24in32
        case .signed32: self = .s32
        case .float32: self = .f32
        }
    }

    /// Those to take in its place where a device doesn't have it, the best first: what keeps as much of a sample, and
    /// then what keeps more than the others.
    package var substitutes: [SampleFormat] {
        switch self {
        case .s16: [.s16, .s24, .s24in32, .s32, .f32]
        case .s24: [.s24, .s24in32, .s32, .f32, .s16]
        case .s24in32: [.s24in32, .s24, .s32, .f32, .s16]
        case .s32: [.s32, .s24in32, .s24, .f32, .s16]
        case .f32: [.f32, .s32, .s24in32, .s24, .s16]
        }
    }
}
