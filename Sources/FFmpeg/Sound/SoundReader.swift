import CFFmpeg

/// Reads the sound of a plain file from its beginning to its end, decoded. Used by one thread at a time.
public final class SoundReader {
    /// What is read.
    public let format: AudioFormat

    private let input: InputFile
    private let index: Int32
    private let timeBase: AVRational
    private var codec: UnsafeMutablePointer<AVCodecContext>?
    private var resampler: OpaquePointer?
    /// What the resampler takes; nil: there is none yet.
    private var decoded: Decoded?
    private var packet: UnsafeMutablePointer<AVPacket>?
    private var frame: UnsafeMutablePointer<AVFrame>?
    private var samples = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private var isDraining = false
    /// When the sound that has come ends, nanoseconds on the file's own clock.
    private var end: Int64 = 0

    private struct Decoded: Hashable {
        var sample: Int32
        var rate: Int32
        var channels: Int32
    }

    /// Pieces without sound in a row after which a file is of no use.
    private static let patience = 5000

    /// The rate and channels of a file's sound; nil: it has none.
    ///
    /// - Parameter path: of a plain file.
    public static func contents(_ path: String) throws(MediaError) -> (rate: Int, channels: Int)? {
        let input = try InputFile(path)
        return withExtendedLifetime(input) {
            guard let parameters = input.choose(AVMEDIA_TYPE_AUDIO)?.pointee.codecpar?.pointee else { return nil }
            return (Int(parameters.sample_rate), Int(parameters.ch_layout.nb_channels))
        }
    }

    /// - Parameters:
    ///   - path: of a plain file that has sound.
    ///   - format: that it is converted to.
    public init(_ path: String, as format: AudioFormat) throws(MediaError) {
        self.format = format
        input = try InputFile(path)
        guard let stream = input.choose(AVMEDIA_TYPE_AUDIO), let parameters = stream.pointee.codecpar,
            let decoder = avcodec_find_decoder(parameters.pointee.codec_id)
        else { throw MediaError("avcodec_find_decoder", message: "no sound, or no decoder for it") }
        input.read(only: [stream])
        (index, timeBase) = (stream.pointee.index, stream.pointee.time_base)
        codec = avcodec_alloc_context3(decoder)
        packet = av_packet_alloc()
        frame = av_frame_alloc()
        guard let codec, packet != nil, frame != nil else { throw MediaError("av_packet_alloc", cffmpeg_no_memory()) }
        try MediaError.check("avcodec_parameters_to_context", avcodec_parameters_to_context(codec, parameters))
        codec.pointee.pkt_timebase = timeBase
        codec.pointee.thread_count = 1
        try MediaError.check("avcodec_open2", avcodec_open2(codec, decoder, nil))
    }

    // A resampler for such frames. What a file says at its beginning need not be what it goes on with: one that takes
    // two channels would look for the second in a frame that has one.
    private func prepare(for frame: UnsafeMutablePointer<AVFrame>) throws(MediaError) {
        let decoded = Decoded(
            sample: frame.pointee.format, rate: frame.pointee.sample_rate,
            channels: frame.pointee.ch_layout.nb_channels)
        guard decoded != self.decoded else { return }
        self.decoded = nil
        swr_free(&resampler)
        var layout = AVChannelLayout()
        av_channel_layout_default(&layout, Int32(clamping: format.channels))
        defer { av_channel_layout_uninit(&layout) }
        try MediaError.check(
            "swr_alloc_set_opts2",
            swr_alloc_set_opts2(
                &resampler, &layout, format.sample.code, Int32(clamping: format.rate), &frame.pointee.ch_layout,
                AVSampleFormat(decoded.sample), decoded.rate, 0, nil))
        try MediaError.check("swr_init", swr_init(resampler))
        self.decoded = decoded
    }

    deinit {
        samples.deallocate()
        swr_free(&resampler)
        avcodec_free_context(&codec)
        av_packet_free(&packet)
        av_frame_free(&frame)
    }

    /// Goes on to the next piece; nil at the end.
    ///
    /// - Returns: the time of its first moment, nanoseconds on the file's own clock (about a hundred years of them at
    ///   most), and its bytes, valid until the next call.
    public func next() throws(MediaError) -> (time: Int64, samples: UnsafeRawBufferPointer)? {
        guard let codec, let packet, let frame else { return nil }
        for _ in 0..<Self.patience {
            let result = avcodec_receive_frame(codec, frame)
            if result == cffmpeg_end_of_file() { return nil }
            if result == 0 {
                if let piece = try convert(frame) { return piece }
                continue
            }
            guard result == cffmpeg_again() else { continue }
            if try !read(packet) { isDraining = true }
            // What is damaged gives no sound, and the next ones may be whole.
            if avcodec_send_packet(codec, isDraining ? nil : packet) == cffmpeg_end_of_file() { return nil }
        }
        throw MediaError("avcodec_receive_frame", message: "too many packets that can't be decoded")
    }

    // False at the end.
    private func read(_ packet: UnsafeMutablePointer<AVPacket>) throws(MediaError) -> Bool {
        while try input.next(packet) {
            if packet.pointee.stream_index == index, packet.pointee.size > 0 { return true }
        }
        return false
    }

    private func convert(
        _ frame: UnsafeMutablePointer<AVFrame>
    ) throws(MediaError) -> (time: Int64, samples: UnsafeRawBufferPointer)? {
        try prepare(for: frame)
        // Where the file doesn't say, it follows on what came before.
        let start = FileTime.nanoseconds(frame.pointee.best_effort_timestamp, timeBase) ?? end
        let time = start - swr_get_delay(resampler, 1_000_000_000)
        let length = Int64(max(0, frame.pointee.nb_samples)) * 1_000_000_000
        end = start + length / Int64(max(1, frame.pointee.sample_rate))
        let most = swr_get_out_samples(resampler, frame.pointee.nb_samples)
        guard most > 0 else { return nil }
        if samples.count < Int(most) * format.frameBytes {
            samples.deallocate()
            samples = .allocate(byteCount: Int(most) * format.frameBytes * 3 / 2, alignment: 64)
        }
        var target = samples.baseAddress?.assumingMemoryBound(to: UInt8.self)
        let made = withUnsafeMutablePointer(to: &target) { target in
            UnsafeMutableRawPointer(frame.pointee.extended_data)?.withMemoryRebound(
                to: UnsafePointer<UInt8>?.self, capacity: 8
            ) { swr_convert(resampler, target, most, $0, frame.pointee.nb_samples) } ?? 0
        }
        try MediaError.check("swr_convert", made)
        guard made > 0 else { return nil }
        return (time, UnsafeRawBufferPointer(rebasing: samples[..<(Int(made) * format.frameBytes)]))
    }
}
