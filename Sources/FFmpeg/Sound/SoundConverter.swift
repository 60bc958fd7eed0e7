import CFFmpeg

/// Makes sound of another rate, sample format or number of channels with libswresample, without ever making it louder
/// than it can be. Used by one thread at a time.
///
/// The first frame that comes out lies on the first that went in; what the resampler needs to look ahead it holds back
/// (``delay``).
public final class SoundConverter {
    public let input: AudioFormat
    public let output: AudioFormat
    private var context: OpaquePointer?
    // Grows to what one call makes, and is used again.
    private var made = UnsafeMutableRawBufferPointer(start: nil, count: 0)

    /// Frames a second that can be made of another rate.
    public static let rates = 4000...384_000
    /// Numbers of channels that can be made of another number.
    public static let mixableChannels = 1...8
    /// Of the filter, which is computed at the start: rates without a common measure that lie far apart would need
    /// millions.
    private static let maximumCoefficients = 400_000

    /// Whether there is a filter from the one rate to the other; one that would be too large is not made.
    public static func canResample(from: Int, to: Int) -> Bool {
        guard from != to else { return true }
        guard from > 0, rates.contains(to) else { return false }
        let phases = min(to / Int(av_gcd(Int64(from), Int64(to))), 1024)
        let length = 32 * max(1, (from + to - 1) / to)
        return phases * length <= maximumCoefficients
    }

    /// - Throws: what libswresample can't make.
    public init(from input: AudioFormat, to output: AudioFormat) throws(MediaError) {
        FFmpegLog.silence()
        self.input = input
        self.output = output
        let mixes = input.channels != output.channels
        guard Self.canResample(from: input.rate, to: output.rate), input.channels > 0,
            !mixes || Self.mixableChannels.contains(input.channels) && Self.mixableChannels.contains(output.channels)
        else {
            throw MediaError(
                "swr_init",
                message: "\(output.channels) channels at \(output.rate) Hz of \(input.channels) at \(input.rate) Hz")
        }
        var (from, to) = (AVChannelLayout(), AVChannelLayout())
        av_channel_layout_default(&from, Int32(input.channels))
        av_channel_layout_default(&to, Int32(output.channels))
        defer {
            av_channel_layout_uninit(&from)
            av_channel_layout_uninit(&to)
        }
        var context: OpaquePointer?
        try MediaError.check(
            "swr_alloc_set_opts2",
            swr_alloc_set_opts2(
                &context, &to, output.sample.code, Int32(output.rate), &from, input.sample.code, Int32(input.rate), 0,
                nil))
        // Without it channels that are mixed into numbers with a point may add up to more than 1.
        var result = av_opt_set_double(UnsafeMutableRawPointer(context), "rematrix_maxval", 1, 0)
        if result >= 0 { result = swr_init(context) }
        guard result >= 0 else {
            swr_free(&context)
            throw MediaError("swr_init", result)
        }
        self.context = context
    }

    deinit {
        made.deallocate()
        swr_free(&context)
    }

    /// How long the sound is that went in and has not come out, nanoseconds: the next frame that comes out lies so much
    /// before the next that goes in.
    public var delay: Int64 { swr_get_delay(context, 1_000_000_000) }

    /// Converts samples, of whole frames.
    ///
    /// - Returns: what came out: of a resampler now and then a frame more or less, and at its start none. Good until
    ///   the next call.
    public func convert(_ samples: UnsafeRawBufferPointer) throws(MediaError) -> UnsafeRawBufferPointer {
        let count = samples.count / input.frameBytes
        let most = swr_get_out_samples(context, Int32(clamping: count))
        try MediaError.check("swr_get_out_samples", most)
        let room = Int(most) * output.frameBytes
        if made.count < room {
            made.deallocate()
            made = .allocate(byteCount: room, alignment: 64)
        }
        var source = samples.baseAddress.map { UnsafePointer($0.assumingMemoryBound(to: UInt8.self)) }
        var target = made.baseAddress?.assumingMemoryBound(to: UInt8.self)
        let frames = swr_convert(context, &target, most, &source, Int32(clamping: count))
        try MediaError.check("swr_convert", frames)
        return UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(made).prefix(Int(frames) * output.frameBytes))
    }

    /// Forgets what was held back: the next sound does not follow on what came before.
    public func restart() throws(MediaError) { try MediaError.check("swr_init", swr_init(context)) }
}
