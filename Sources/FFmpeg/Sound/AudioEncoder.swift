import CFFmpeg

/// Sound as it lies in memory: the samples of all channels in turn, one moment after the other.
public struct AudioFormat: Hashable, Sendable {
    public enum Sample: Hashable, Sendable, CaseIterable {
        /// Signed, of the machine's byte order.
        case int16, int32
        /// From -1 to 1.
        case float32

        var code: AVSampleFormat {
            switch self {
            case .int16: AV_SAMPLE_FMT_S16
            case .int32: AV_SAMPLE_FMT_S32
            case .float32: AV_SAMPLE_FMT_FLT
            }
        }

        /// Bytes of one.
        public var bytes: Int { self == .int16 ? 2 : 4 }
    }

    public var sample: Sample
    /// Samples a second, of each channel.
    public var rate: Int
    public var channels: Int

    public init(_ sample: Sample, rate: Int, channels: Int) {
        self.sample = sample
        self.rate = rate
        self.channels = channels
    }

    /// Bytes of one moment.
    public var frameBytes: Int { sample.bytes * channels }
}

/// What sound is to be encoded to.
public struct AudioEncoderSettings: Hashable, Sendable {
    public enum Codec: Hashable, Sendable, CaseIterable {
        case aac, opus
        /// Little-endian, in the samples' own format.
        case pcm

        func encoder(of sample: AudioFormat.Sample) -> String {
            switch (self, sample) {
            case (.aac, _): "aac"
            case (.opus, _): "libopus"
            case (.pcm, .int16): "pcm_s16le"
            case (.pcm, .int32): "pcm_s32le"
            case (.pcm, .float32): "pcm_f32le"
            }
        }
    }

    public var codec: Codec
    /// Samples a second.
    public var rate: Int
    public var channels: Int
    /// Bits a second; PCM has its own.
    public var bitRate: Int

    public init(_ codec: Codec, rate: Int, channels: Int, bitRate: Int) {
        self.codec = codec
        self.rate = rate
        self.channels = channels
        self.bitRate = bitRate
    }
}

/// Encodes sound with libavcodec, after libswresample has made of it what the codec takes, in step with the times that
/// come with it: a clock that drifts is followed by resampling, a hole is filled with silence, what comes twice is left
/// out. PCM of the rate and the channels that come is not resampled: its samples are those that come, bit by bit
/// (``SamplePacing``). The sound begins at time zero. Used by one thread at a time.
public final class AudioEncoder {
    public let settings: AudioEncoderSettings
    public let input: AudioFormat
    /// What a decoder throws away of the beginning, nanoseconds; the first packet's time is so much before zero.
    public let padding: Int64
    /// Samples of each channel that have been given to the codec.
    public private(set) var encodedSamples: Int64 = 0

    private var codec: UnsafeMutablePointer<AVCodecContext>?
    private var resampler: OpaquePointer?
    /// Of samples that are not to be resampled; nil: they are.
    private var pacing: SamplePacing?
    private var frame: UnsafeMutablePointer<AVFrame>?
    private var packet: UnsafeMutablePointer<AVPacket>?
    private var planes = [UnsafeMutablePointer<UInt8>?](repeating: nil, count: AudioEncoder.mostChannels)
    private let planeCount: Int
    /// Bytes of a plane for each sample.
    private let sampleBytes: Int
    private let frameSamples: Int
    private var filled = 0
    /// When the sound that has come ends, nanoseconds.
    private var nextTime: Int64 = 0
    private var silence = UnsafeMutableRawBufferPointer(start: nil, count: 0)

    /// Seconds from which on drift is made up for softly, and from which on by silence and by leaving out.
    private static let (softDrift, hardDrift) = (0.001, 0.1)
    /// By so much, at most, the pitch may change.
    private static let softLimit = 0.005
    private static let mostChannels = 8
    /// Nanoseconds: silence is made in pieces once more than that is missing, and there is no sound after a hole of
    /// more than an hour.
    private static let (silenceStep, longestHole): (Int64, Int64) = (1_000_000_000, 3_600_000_000_000)

    public init(_ settings: AudioEncoderSettings, from input: AudioFormat) throws(MediaError) {
        FFmpegLog.silence()
        self.settings = settings
        self.input = input
        for (rate, channels) in [(input.rate, input.channels), (settings.rate, settings.channels)] {
            guard (4000...384_000).contains(rate), (1...Self.mostChannels).contains(channels) else {
                throw MediaError(
                    "avcodec_open2",
                    message:
                        "\(channels) channels at \(rate) samples a second are not possible: at most "
                        + "\(Self.mostChannels) channels at 4000 to 384000")
            }
        }
        let codec = try Self.open(settings, of: input.sample)
        self.codec = codec
        let format = codec.pointee.sample_fmt
        padding = av_rescale(Int64(codec.pointee.initial_padding), 1_000_000_000, Int64(settings.rate))
        let isPlanar = av_sample_fmt_is_planar(format) != 0
        planeCount = isPlanar ? settings.channels : 1
        sampleBytes = Int(av_get_bytes_per_sample(format)) * (isPlanar ? 1 : settings.channels)
        frameSamples = codec.pointee.frame_size > 0 ? Int(codec.pointee.frame_size) : 1024
        frame = av_frame_alloc()
        packet = av_packet_alloc()
        guard let frame, packet != nil else { throw MediaError("av_frame_alloc", cffmpeg_no_memory()) }
        frame.pointee.format = format.rawValue
        frame.pointee.nb_samples = Int32(frameSamples)
        frame.pointee.sample_rate = Int32(settings.rate)
        try MediaError.check(
            "av_channel_layout_copy", av_channel_layout_copy(&frame.pointee.ch_layout, &codec.pointee.ch_layout))
        try MediaError.check("av_frame_get_buffer", av_frame_get_buffer(frame, 0))
        let isExact = settings.codec == .pcm && settings.rate == input.rate && settings.channels == input.channels
        if isExact, format == input.sample.code {
            pacing = SamplePacing(rate: settings.rate)
        } else {
            resampler = try Self.resampler(from: input, to: codec)
        }
    }

    deinit {
        silence.deallocate()
        swr_free(&resampler)
        avcodec_free_context(&codec)
        av_frame_free(&frame)
        av_packet_free(&packet)
    }

    private static func open(
        _ settings: AudioEncoderSettings, of sample: AudioFormat.Sample
    ) throws(MediaError) -> UnsafeMutablePointer<AVCodecContext> {
        let name = settings.codec.encoder(of: sample)
        guard let encoder = avcodec_find_encoder_by_name(name) else {
            throw MediaError("avcodec_find_encoder_by_name", message: "this FFmpeg has no \(name)")
        }
        var context = avcodec_alloc_context3(encoder)
        guard let codec = context else { throw MediaError("avcodec_alloc_context3", cffmpeg_no_memory()) }
        codec.pointee.sample_fmt = encoder.pointee.sample_fmts?.pointee ?? AV_SAMPLE_FMT_S16
        codec.pointee.sample_rate = Int32(settings.rate)
        codec.pointee.bit_rate = Int64(max(0, settings.bitRate))
        codec.pointee.time_base = AVRational(num: 1, den: Int32(settings.rate))
        codec.pointee.flags |= AV_CODEC_FLAG_GLOBAL_HEADER
        av_channel_layout_default(&codec.pointee.ch_layout, Int32(settings.channels))
        let result = avcodec_open2(codec, encoder, nil)
        guard result >= 0 else {
            avcodec_free_context(&context)
            throw MediaError("avcodec_open2 \(name)", result)
        }
        return codec
    }

    private static func resampler(
        from input: AudioFormat, to codec: UnsafeMutablePointer<AVCodecContext>
    ) throws(MediaError) -> OpaquePointer? {
        var layout = AVChannelLayout()
        av_channel_layout_default(&layout, Int32(input.channels))
        defer { av_channel_layout_uninit(&layout) }
        var context: OpaquePointer?
        try MediaError.check(
            "swr_alloc_set_opts2",
            swr_alloc_set_opts2(
                &context, &codec.pointee.ch_layout, codec.pointee.sample_fmt, codec.pointee.sample_rate, &layout,
                input.sample.code, Int32(input.rate), 0, nil))
        let options = UnsafeMutableRawPointer(context)
        var result = av_opt_set_int(options, "flags", Int64(SWR_FLAG_RESAMPLE), 0)
        if result >= 0 { result = av_opt_set_int(options, "first_pts", 0, 0) }
        for (name, value) in [
            ("min_comp", softDrift), ("min_hard_comp", hardDrift), ("comp_duration", 1), ("max_soft_comp", softLimit),
        ] where result >= 0 { result = av_opt_set_double(options, name, value, 0) }
        if result >= 0 { result = swr_init(context) }
        guard result >= 0 else {
            swr_free(&context)
            throw MediaError("swr_init", result)
        }
        return context
    }

    // MARK: Encoding

    /// Encodes samples, of whole moments.
    ///
    /// - Parameters:
    ///   - time: of the first one, nanoseconds; what lies before zero is left out.
    ///   - body: takes what came out.
    public func encode(
        _ samples: UnsafeRawBufferPointer, at time: Int64, _ body: (EncodedPacket) throws(MediaError) -> Void
    ) throws(MediaError) {
        let count = samples.count / input.frameBytes
        let end = time + av_rescale(Int64(count), 1_000_000_000, Int64(input.rate))
        guard count > 0, end > 0 else { return }
        guard time - nextTime <= Self.longestHole else {
            throw MediaError("swr_next_pts", message: "a gap of \((time - nextTime) / 1_000_000_000) s")
        }
        // The resampler would keep all of a long silence in memory.
        while time - nextTime > Self.silenceStep {
            let samples = input.rate / 10
            if silence.isEmpty {
                silence = .allocate(byteCount: samples * input.frameBytes, alignment: 16)
                silence.initializeMemory(as: UInt8.self, repeating: 0)
            }
            try take(UnsafeRawBufferPointer(silence), samples, at: nextTime, body)
            nextTime += av_rescale(Int64(samples), 1_000_000_000, Int64(input.rate))
        }
        try take(samples, count, at: time, body)
        nextTime = max(nextTime, end)
    }

    private func take(
        _ samples: UnsafeRawBufferPointer, _ count: Int, at time: Int64,
        _ body: (EncodedPacket) throws(MediaError) -> Void
    ) throws(MediaError) {
        if let step = pacing?.place(count, at: time) { return try copy(samples, count, step, body) }
        guard let resampler else { return }
        _ = swr_next_pts(resampler, av_rescale(time, Int64(input.rate) * Int64(settings.rate), 1_000_000_000))
        try convert(samples.baseAddress?.assumingMemoryBound(to: UInt8.self), count, body)
    }

    /// Takes what is left; nothing can be encoded afterwards.
    public func finish(_ body: (EncodedPacket) throws(MediaError) -> Void) throws(MediaError) {
        guard let codec, let packet else { return }
        // Without input the resampler gives what it held back.
        if resampler != nil { try convert(nil, 0, body) }
        if filled > 0 { try send(body) }
        try MediaError.check("avcodec_send_frame", avcodec_send_frame(codec, nil))
        try drain(codec, packet, body)
    }

    // MARK: As they are

    private func copy(
        _ samples: UnsafeRawBufferPointer, _ count: Int, _ step: SamplePacing.Step,
        _ body: (EncodedPacket) throws(MediaError) -> Void
    ) throws(MediaError) {
        guard let base = samples.baseAddress else { return }
        try append(nil, step.silence, body)
        let kept = count - step.skipped + min(0, step.repeated)
        try append(base + step.skipped * input.frameBytes, Int64(kept), body)
        if step.repeated > 0 {
            try append(base + (count - step.repeated) * input.frameBytes, Int64(step.repeated), body)
        }
    }

    // Without a source it is silence.
    private func append(
        _ source: UnsafeRawPointer?, _ count: Int64, _ body: (EncodedPacket) throws(MediaError) -> Void
    ) throws(MediaError) {
        guard let frame else { return }
        var (source, left) = (source, count)
        while left > 0 {
            if filled == 0 {
                frame.pointee.nb_samples = Int32(frameSamples)
                try MediaError.check("av_frame_make_writable", av_frame_make_writable(frame))
            }
            guard let plane = frame.pointee.extended_data?[0] else { return }
            let some = Int(min(left, Int64(frameSamples - filled)))
            let target = UnsafeMutableRawPointer(plane) + filled * sampleBytes
            if let from = source {
                target.copyMemory(from: from, byteCount: some * sampleBytes)
                source = from + some * sampleBytes
            } else {
                target.initializeMemory(as: UInt8.self, repeating: 0, count: some * sampleBytes)
            }
            filled += some
            left -= Int64(some)
            if filled == frameSamples { try send(body) }
        }
    }

    // MARK: Resampled

    private func convert(
        _ samples: UnsafePointer<UInt8>?, _ count: Int, _ body: (EncodedPacket) throws(MediaError) -> Void
    ) throws(MediaError) {
        guard let resampler, let frame else { return }
        var (source, left) = (samples, Int32(clamping: count))
        // With no more room than a frame at a time, what doesn't fit waits in the resampler; a call that gives less has
        // emptied it.
        while true {
            if filled == 0 {
                frame.pointee.nb_samples = Int32(frameSamples)
                try MediaError.check("av_frame_make_writable", av_frame_make_writable(frame))
            }
            for plane in 0..<planeCount {
                planes[plane] = frame.pointee.extended_data?[plane].map { $0 + filled * sampleBytes }
            }
            let room = frameSamples - filled
            let made =
                samples == nil
                ? swr_convert(resampler, &planes, Int32(room), nil, 0)
                : swr_convert(resampler, &planes, Int32(room), &source, left)
            try MediaError.check("swr_convert", made)
            filled += Int(made)
            if filled == frameSamples { try send(body) }
            if Int(made) < room { return }
            // A count of zero with a source takes what is there, and does not end the stream as a call without one
            // would.
            left = 0
        }
    }

    private func send(_ body: (EncodedPacket) throws(MediaError) -> Void) throws(MediaError) {
        guard let codec, let frame, let packet else { return }
        frame.pointee.nb_samples = Int32(filled)
        frame.pointee.pts = encodedSamples
        encodedSamples += Int64(filled)
        filled = 0
        try MediaError.check("avcodec_send_frame", avcodec_send_frame(codec, frame))
        try drain(codec, packet, body)
    }

    func describe(_ parameters: UnsafeMutablePointer<AVCodecParameters>) throws(MediaError) {
        try MediaError.check(
            "avcodec_parameters_from_context", avcodec_parameters_from_context(parameters, codec))
    }
}
