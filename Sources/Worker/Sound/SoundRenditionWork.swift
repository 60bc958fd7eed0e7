import BusProtocol
import CaptureCore
import CaptureSources
import FFmpeg
import JSON

/// Makes a microphone's sound into one rendition, period by period, in memory that it keeps.
final class SoundRenditionWork {
    /// What came of a period.
    struct Piece {
        var firstFrame: UInt64
        var frames: Int
        /// When the first frame was taken; monotonic nanoseconds.
        var monotonic: Int64
        /// Good until the next period.
        var samples: UnsafeRawBufferPointer
    }

    let sampleFormat: SampleFormat
    let rate: Int
    let channels: Int
    private let converter: SoundConverter
    private let source: SoundFormat
    private var timeline: SoundTimeline
    // 24 bits in 32, as libswresample takes them; empty for what it takes as it is.
    private let widened: UnsafeMutableRawBufferPointer

    /// - Throws: `formatUnsupported` {nearest} for what can't be made of sound in that format.
    init(_ rendition: SoundRendition, from source: SoundFormat) throws(BusError) {
        sampleFormat = rendition.encoding == .f32 ? .f32 : .s16
        rate = rendition.rate ?? source.rate
        channels = rendition.channels ?? source.channels
        self.source = source
        timeline = SoundTimeline(inputRate: source.rate, outputRate: rate)
        let needsWidening = source.sampleFormat == .s24 || source.sampleFormat == .s24in32
        let input: AudioFormat.Sample =
            switch source.sampleFormat {
            case .s16: .int16
            case .f32: .float32
            case .s24, .s24in32, .s32: .int32
            }
        let output: AudioFormat.Sample = sampleFormat == .f32 ? .float32 : .int16
        do throws(MediaError) {
            converter = try SoundConverter(
                from: AudioFormat(input, rate: source.rate, channels: source.channels),
                to: AudioFormat(output, rate: rate, channels: channels))
        } catch {
            throw Self.impossible(rendition, source, error)
        }
        widened =
            needsWidening
            ? .allocate(byteCount: source.periodFrames * source.channels * 4, alignment: 16)
            : UnsafeMutableRawBufferPointer(start: nil, count: 0)
    }

    deinit { widened.deallocate() }

    private static func impossible(
        _ rendition: SoundRendition, _ source: SoundFormat, _ error: MediaError
    ) -> BusError {
        let channels = rendition.channels ?? source.channels
        var nearest = SoundRendition(rendition.encoding)
        if channels == source.channels || SoundConverter.mixableChannels.contains(channels),
            SoundConverter.canResample(from: source.rate, to: SoundConverter.rates.clamping(rendition.rate ?? 0))
        {
            nearest.rate = SoundConverter.rates.clamping(rendition.rate ?? 0)
            nearest.channels = channels
        }
        return BusError(
            .formatUnsupported,
            "\(rendition) can't be made from \(source.channels) channels at \(source.rate) Hz; \(nearest) can "
                + "(\(error)).",
            ["nearest": .string(nearest.description)])
    }

    /// Whether the rendition is the sound as it comes.
    static func isPassThrough(_ rendition: SoundRendition, _ format: SoundFormat) -> Bool {
        guard rendition.encoding != .native else { return true }
        return rendition.encoding.rawValue == format.sampleFormat.rawValue
            && (rendition.rate ?? format.rate) == format.rate
            && (rendition.channels ?? format.channels) == format.channels
    }

    /// Converts a period.
    ///
    /// - Returns: nil: nothing has come out yet.
    func convert(_ samples: UnsafeRawBufferPointer, _ period: SoundPeriod) throws(BusError) -> Piece? {
        do throws(MediaError) {
            if period.isDiscontinuous {
                // What was held back belongs to a sound that has no sequel: it is missing with the rest.
                try converter.restart()
                timeline.restart()
            }
            let delay = converter.delay
            let made = try converter.convert(widened.isEmpty ? samples : widen(samples))
            let frames = made.count / converter.output.frameBytes
            let (firstFrame, time) = timeline.place(
                firstFrame: period.firstFrame, time: period.monotonicTime, delay: delay, frames: frames)
            return frames == 0 ? nil : Piece(firstFrame: firstFrame, frames: frames, monotonic: time, samples: made)
        } catch {
            throw BusError(.internalError, "Sound can't be converted: \(error).")
        }
    }

    // Into the upper bits, so that a loud sound stays one.
    private func widen(_ samples: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        let step = source.sampleFormat.bytes
        let count = min(samples.count / step, widened.count / 4)
        for index in 0..<count {
            let at = index * step
            let value = UInt32(samples[at]) | UInt32(samples[at + 1]) << 8 | UInt32(samples[at + 2]) << 16
            widened.storeBytes(of: value << 8, toByteOffset: index * 4, as: UInt32.self)
        }
        return UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(widened).prefix(count * 4))
    }
}

extension ClosedRange where Bound == Int {
    fileprivate func clamping(_ value: Int) -> Int { Swift.min(Swift.max(value, lowerBound), upperBound) }
}
