import CFFmpeg

/// A kind of movie that can be written.
public enum MovieContainer: String, Hashable, Sendable, CaseIterable {
    // FFmpeg's names for its muxers.
    case mp4, mov, matroska
    /// For the network: RTSP says by itself what it carries, the others are carried by SRT and RTMP.
    case rtsp, mpegts, flv

    /// Written in fragments that are movies by themselves.
    var isFragmented: Bool { self == .mp4 || self == .mov }
}

/// Video as it is to be written, when no ``VideoEncoder`` makes it.
public enum StoredVideo: Hashable, Sendable {
    case motionJPEG
    /// With start codes (ITU-T H.264, Annex B); the parameter sets (SPS, PPS) likewise.
    case h264(parameterSets: [UInt8])
    /// Lines without padding.
    case raw(ImageFormat)
}

/// Writes a movie to an open file with libavformat, in fragments that are ended on demand: what has been ended and
/// synced is a movie by itself (fragmented MP4 and QuickTime; clusters of Matroska). Or sends it to a URL, where there
/// are no fragments. Used by one thread at a time.
///
/// The times of MP4 and QuickTime are microseconds for video and samples for sound; those of Matroska are milliseconds,
/// since libavformat knows no others.
public final class Muxer {
    /// A track of this movie.
    public struct Track: Hashable, Sendable {
        fileprivate let index: Int
    }

    public let container: MovieContainer
    /// Added to the times of each track: room in front of zero, nanoseconds.
    private var offsets: [Int64] = []

    /// nil: it goes to a URL.
    private let stream: DescriptorStream?
    private let url: String?
    private let deadline: MediaDeadline?
    private var hasFinished = false
    private var format: UnsafeMutablePointer<AVFormatContext>?
    private var packet: UnsafeMutablePointer<AVPacket>?
    /// The last time of each track, in its own time base.
    private var lastStamps: [Int64] = []
    /// What decoders throw away of the beginning of sound lies before zero: all tracks of a file begin so much later,
    /// nanoseconds. What is sent is without it.
    private var padding: Int64 = 0
    private var hasStarted = false
    /// Pictures as Windows has them in memory.
    private var hasBitmaps = false

    /// - Parameter descriptor: of an empty plain file, open for writing as long as this lives; not owned.
    public init(_ container: MovieContainer, to descriptor: Int32) throws(MediaError) {
        FFmpegLog.silence()
        self.container = container
        (url, deadline) = (nil, nil)
        let stream = try DescriptorStream(descriptor, writes: true)
        self.stream = stream
        let format = try open()
        format.pointee.pb = stream.context
        format.pointee.flags |= AVFMT_FLAG_CUSTOM_IO
        // A track that begins later than another does so, and is not stretched to zero. Pictures that are not in the
        // order in which they are shown are decoded earlier than the movie begins.
        if container.isFragmented { format.pointee.avoid_negative_ts = AVFMT_AVOID_NEG_TS_DISABLED }
        // We say when there is something for the disk.
        format.pointee.flags &= ~AVFMT_FLAG_FLUSH_PACKETS
        format.pointee.flush_packets = 0
    }

    /// - Parameters:
    ///   - url: to be reached when it is started.
    ///   - deadline: asked whenever something waits for the network.
    public init(_ container: MovieContainer, url: String, deadline: MediaDeadline) throws(MediaError) {
        FFmpegLog.silence()
        self.container = container
        (self.url, self.deadline, stream) = (url, deadline, nil)
        let format = try open()
        format.pointee.interrupt_callback = deadline.callback
        // Who watches sees it at once.
        format.pointee.flags |= AVFMT_FLAG_FLUSH_PACKETS
        format.pointee.flush_packets = 1
    }

    private func open() throws(MediaError) -> UnsafeMutablePointer<AVFormatContext> {
        try MediaError.check(
            "avformat_alloc_output_context2",
            avformat_alloc_output_context2(&format, nil, container.rawValue, url))
        packet = av_packet_alloc()
        guard let format, packet != nil else { throw MediaError("av_packet_alloc", cffmpeg_no_memory()) }
        return format
    }

    deinit {
        if url != nil {
            // Else the connection of RTSP would be kept.
            if hasStarted, !hasFinished { av_write_trailer(format) }
            if let format, format.pointee.oformat.pointee.flags & AVFMT_NOFILE == 0 { avio_closep(&format.pointee.pb) }
        }
        av_packet_free(&packet)
        avformat_free_context(format)
    }

    /// So far the file reaches, bytes; what waits for the end of its fragment is not in it.
    public var fileSize: Int64 { stream?.end ?? 0 }

    /// The system's error number (`errno`) of the first write that failed; nothing more can be written then.
    public var writeFailure: Int32? { stream?.failure }

    // MARK: Tracks

    /// Adds video as it is stored.
    ///
    /// - Parameter frameRate: frames a second that the track states; nil: it states none.
    public func addVideo(
        _ video: StoredVideo, width: Int, height: Int, frameRate: Double?, color: ColorTags,
        pixelShape: PixelShape, turn: PictureTurn = .none
    ) throws(MediaError) -> Track {
        guard (1...16384).contains(width), (1...16384).contains(height) else {
            throw MediaError("avformat_new_stream", message: "a size of \(width)x\(height)")
        }
        let track = try newStream()
        guard let parameters = track.pointee.codecpar else {
            throw MediaError("avformat_new_stream", cffmpeg_no_memory())
        }
        parameters.pointee.codec_type = AVMEDIA_TYPE_VIDEO
        parameters.pointee.width = Int32(width)
        parameters.pointee.height = Int32(height)
        color.write(to: parameters)
        parameters.pointee.sample_aspect_ratio = pixelShape.ratio
        track.pointee.sample_aspect_ratio = pixelShape.ratio
        try turn.write(to: track, width: width, height: height)
        switch video {
        case .motionJPEG:
            parameters.pointee.codec_id = AV_CODEC_ID_MJPEG
            parameters.pointee.format = AV_PIX_FMT_YUVJ422P.rawValue
        case .h264(let sets):
            parameters.pointee.codec_id = AV_CODEC_ID_H264
            parameters.pointee.format = AV_PIX_FMT_YUV420P.rawValue
            guard !sets.isEmpty, sets.count < 65536,
                let copy = av_mallocz(sets.count + Int(AV_INPUT_BUFFER_PADDING_SIZE))
            else { throw MediaError("avformat_write_header", message: "H.264 without its parameter sets") }
            sets.withUnsafeBytes {
                copy.copyMemory(from: $0.baseAddress ?? UnsafeRawPointer(copy), byteCount: $0.count)
            }
            parameters.pointee.extradata = copy.assumingMemoryBound(to: UInt8.self)
            parameters.pointee.extradata_size = Int32(sets.count)
        case .raw(let pixels):
            parameters.pointee.codec_id = AV_CODEC_ID_RAWVIDEO
            parameters.pointee.format = pixels.code.rawValue
            if container == .matroska, pixels == .bgr24 {
                // It has no name of its own there, only that of Windows' bitmaps.
                parameters.pointee.bits_per_coded_sample = 24
                hasBitmaps = true
            } else if container == .matroska {
                parameters.pointee.codec_tag = avcodec_pix_fmt_to_codec_tag(pixels.code)
            }
        }
        return videoTrack(track, frameRate)
    }

    /// Adds what an encoder makes.
    ///
    /// - Parameter frameRate: as of stored video.
    public func addTrack(
        _ encoder: VideoEncoder, frameRate: Double?, turn: PictureTurn = .none
    ) throws(MediaError) -> Track {
        let track = try newStream()
        try encoder.describe(track.pointee.codecpar)
        try turn.write(to: track, width: encoder.settings.width, height: encoder.settings.height)
        track.pointee.sample_aspect_ratio = encoder.settings.pixelShape.ratio
        return videoTrack(track, frameRate)
    }

    /// Adds what an encoder makes.
    public func addTrack(_ encoder: AudioEncoder) throws(MediaError) -> Track {
        let track = try newStream()
        try encoder.describe(track.pointee.codecpar)
        track.pointee.time_base = AVRational(num: 1, den: Int32(encoder.settings.rate))
        let index = Int(track.pointee.index)
        if container == .matroska, encoder.settings.codec == .opus {
            // Players take off what the file calls the codec's delay; from some version on libavformat adds it by
            // itself.
            offsets[index] = avformat_version() >> 16 < 60 ? encoder.padding : 0
        } else if url == nil {
            padding = max(padding, encoder.padding)
        }
        return Track(index: index)
    }

    private func newStream() throws(MediaError) -> UnsafeMutablePointer<AVStream> {
        guard !hasStarted, let track = avformat_new_stream(format, nil) else {
            throw MediaError("avformat_new_stream", cffmpeg_no_memory())
        }
        lastStamps.append(.min)
        offsets.append(0)
        return track
    }

    private func videoTrack(_ track: UnsafeMutablePointer<AVStream>, _ frameRate: Double?) -> Track {
        track.pointee.time_base = AVRational(num: 1, den: VideoEncoder.timeScale)
        if let frameRate { track.pointee.avg_frame_rate = av_d2q(frameRate, 1_000_000) }
        return Track(index: Int(track.pointee.index))
    }

    // MARK: Writing

    /// Writes the beginning of the file, or connects; all tracks are there.
    ///
    /// - Parameters:
    ///   - creationDate: nanoseconds since 1970; nil: the file doesn't say.
    ///   - tags: the file's own metadata, by QuickTime's names (`com.apple.quicktime.…`); of
    ///     QuickTime only.
    /// - Throws: also what the container can't hold.
    public func start(creationDate: Int64? = nil, tags: [String: String] = [:]) throws(MediaError) {
        guard let format else { return }
        var tags = container == .mov ? tags : [:]
        if let creationDate {
            let date = CreationDate(creationDate)
            tags.merge(date.tags(container)) { $1 }
            date.write(to: format)
        }
        var options: OpaquePointer?
        defer { av_dict_free(&options) }
        if let url { try connect(url) }
        // Frames in several datagrams are lost too easily.
        if container == .rtsp { av_dict_set(&options, "rtsp_transport", "tcp", 0) }
        // There is no going back to write them.
        if container == .flv { av_dict_set(&options, "flvflags", "no_duration_filesize", 0) }
        if hasBitmaps { av_dict_set(&options, "allow_raw_vfw", "1", 0) }
        for (name, value) in tags.sorted(by: { $0.key < $1.key }) {
            av_dict_set(&format.pointee.metadata, name, value, 0)
        }
        if container.isFragmented {
            // With the last, times are kept as they are, also where a track begins later than another; for one
            // fragment.
            var flags = "frag_custom+empty_moov+default_base_moof+frag_discont+negative_cts_offsets"
            if container == .mov, !tags.isEmpty { flags += "+" + Self.tagFlag }
            av_dict_set(&options, "movflags", flags, 0)
            av_dict_set(&options, "use_editlist", "0", 0)
            av_dict_set(&options, "write_tmcd", "0", 0)
        }
        try check("avformat_write_header", avformat_write_header(format, &options))
        hasStarted = true
        if let stream { avio_flush(stream.context) }
        try check("avio_flush", 0)
    }

    /// libavformat leaves names out that it doesn't know, unless told so.
    static let tagFlag = "use_metadata_tags"

    private func connect(_ url: String) throws(MediaError) {
        guard let format, let deadline, format.pointee.oformat.pointee.flags & AVFMT_NOFILE == 0 else { return }
        var callback = deadline.callback
        var options: OpaquePointer?
        defer { av_dict_free(&options) }
        // Seconds: SRT would throw away what has not arrived when it is closed.
        if container == .mpegts { av_dict_set(&options, "linger", "2", 0) }
        try check("avio_open2", avio_open2(&format.pointee.pb, url, AVIO_FLAG_WRITE, &callback, &options))
    }

    /// Writes a piece of a track. Its bytes are copied.
    ///
    /// - Parameters:
    ///   - time: nanoseconds: when it is decoded. One that is not later than the last of its track becomes the next
    ///     that can be told.
    ///   - presentationDelay: nanoseconds from then to when it is shown, which is not below zero.
    ///   - duration: nanoseconds, as far as it is known; of the last one.
    public func write(
        _ bytes: UnsafeRawBufferPointer, to track: Track, at time: Int64, presentationDelay: Int64 = 0,
        duration: Int64, isKeyFrame: Bool
    ) throws(MediaError) {
        guard let packet, let base = bytes.baseAddress, let count = Int32(exactly: bytes.count), count > 0 else {
            throw MediaError("av_write_frame", message: "a packet of \(bytes.count) bytes")
        }
        av_packet_unref(packet)
        // libavformat only reads what it doesn't own.
        packet.pointee.data = UnsafeMutablePointer(mutating: base.assumingMemoryBound(to: UInt8.self))
        packet.pointee.size = count
        (packet.pointee.dts, packet.pointee.pts) = (time, time &+ max(0, presentationDelay))
        packet.pointee.duration = max(0, duration)
        packet.pointee.flags = isKeyFrame ? AV_PKT_FLAG_KEY : 0
        try write(packet, track, AVRational(num: 1, den: 1_000_000_000))
    }

    /// Writes what an encoder has made.
    ///
    /// - Parameter duration: nanoseconds; nil: as the encoder says.
    public func write(_ encoded: EncodedPacket, to track: Track, duration: Int64? = nil) throws(MediaError) {
        guard let packet else { return }
        av_packet_unref(packet)
        packet.pointee.data = encoded.packet.pointee.data
        packet.pointee.size = encoded.packet.pointee.size
        (packet.pointee.dts, packet.pointee.pts) = (encoded.packet.pointee.pts, encoded.packet.pointee.pts)
        packet.pointee.flags = encoded.packet.pointee.flags
        let given = duration.map { av_rescale_q($0, AVRational(num: 1, den: 1_000_000_000), encoded.timeBase) }
        packet.pointee.duration = given ?? encoded.packet.pointee.duration
        try write(packet, track, encoded.timeBase)
    }

    private func write(
        _ packet: UnsafeMutablePointer<AVPacket>, _ track: Track, _ timeBase: AVRational
    ) throws(MediaError) {
        guard hasStarted, let stream = format?.pointee.streams?[track.index] else {
            throw MediaError("av_write_frame", message: "the movie has not been started")
        }
        if url != nil, packet.pointee.pts < 0 { return }
        let offset = av_rescale_q(
            padding + offsets[track.index], AVRational(num: 1, den: 1_000_000_000), stream.pointee.time_base)
        av_packet_rescale_ts(packet, timeBase, stream.pointee.time_base)
        let last = lastStamps[track.index]
        let isReordered = packet.pointee.pts > packet.pointee.dts
        let stamp = max(packet.pointee.dts + offset, last != .min ? last + 1 : isReordered ? .min : 0)
        lastStamps[track.index] = stamp
        if container.isFragmented, stream.pointee.codecpar.pointee.codec_type == AVMEDIA_TYPE_VIDEO {
            // How long a frame is shown is told by the next one. A fragment's last frame must not reach beyond that, or
            // it would be moved.
            packet.pointee.duration = 1
        }
        packet.pointee.pts = max(packet.pointee.pts + offset, stamp)
        packet.pointee.dts = stamp
        packet.pointee.stream_index = Int32(track.index)
        try check("av_write_frame", av_write_frame(format, packet))
    }

    /// Ends the fragment: all that was written so far is in the file, though not yet on the disk (`fsync(2)`).
    public func endFragment() throws(MediaError) {
        guard let stream else { return }
        try check("av_write_frame", av_write_frame(format, nil))
        avio_flush(stream.context)
        try check("avio_flush", 0)
        // Else the next one would begin where this one's last frame was thought to end.
        if container.isFragmented { av_opt_set(format?.pointee.priv_data, "movflags", "+frag_discont", 0) }
    }

    /// Writes the end of the file, after the last fragment's.
    public func finish() throws(MediaError) {
        hasFinished = true
        try check("av_write_trailer", av_write_trailer(format))
        if let stream { avio_flush(stream.context) }
        try check("avio_flush", 0)
    }

    // The system's own word for a failed write goes before what libavformat makes of it.
    private func check(_ operation: String, _ result: Int32) throws(MediaError) {
        if let failure = stream?.failure { throw MediaError(operation, cffmpeg_error(failure)) }
        try MediaError.check(operation, result)
    }
}
