import CFFmpeg

/// Puts movies one behind the other into one MP4 file as they are stored, with libavformat. Used by one thread at a time.
public final class MovieCopier {
    /// The picture that stands for a movie where it is not played.
    public struct Cover: Sendable {
        /// JPEG.
        public var bytes: [UInt8]
        public var width: Int
        public var height: Int

        public init(bytes: [UInt8], width: Int, height: Int) {
            self.bytes = bytes
            self.width = width
            self.height = height
        }
    }

    private let stream: DescriptorStream
    private var output: UnsafeMutablePointer<AVFormatContext>?
    private var packet: UnsafeMutablePointer<AVPacket>?
    /// Of each track: the last time in its own time base.
    private var lastStamps: [Int64] = []
    /// Nanoseconds: where the next movie begins.
    private var end: Int64 = 0

    /// Whether the tracks of all of them are alike, and MP4 can hold them, so that they can be put one behind the other.
    ///
    /// - Parameter paths: of plain files.
    public static func canJoin(_ paths: [String]) throws(MediaError) -> Bool {
        guard let path = paths.first else { return false }
        let first = try Tracks(path)
        guard first.video != nil || first.sound != nil, first.isHeld else { return false }
        for path in paths.dropFirst() where try !first.isLike(Tracks(path)) { return false }
        return true
    }

    /// - Parameter descriptor: of an empty plain file, open for writing as long as this lives; not owned.
    public init(to descriptor: Int32) throws(MediaError) {
        FFmpegLog.silence()
        stream = try DescriptorStream(descriptor, writes: true)
        try MediaError.check(
            "avformat_alloc_output_context2", avformat_alloc_output_context2(&output, nil, "mp4", nil))
        packet = av_packet_alloc()
        guard let output, packet != nil else { throw MediaError("av_packet_alloc", cffmpeg_no_memory()) }
        output.pointee.pb = stream.context
        output.pointee.flags |= AVFMT_FLAG_CUSTOM_IO
    }

    deinit {
        av_packet_free(&packet)
        avformat_free_context(output)
    }

    /// How long what was copied is, nanoseconds.
    public var duration: Int64 { end }

    /// Copies the movies, and ends the file.
    ///
    /// - Parameters:
    ///   - paths: of plain files that can be joined.
    ///   - progress: told how much has been copied, nanoseconds; returns false to end.
    /// - Returns: false if it was to end; the file is of no use then.
    public func copy(
        _ paths: [String], cover: Cover?, progress: (Int64) -> Bool
    ) throws(MediaError) -> Bool {
        for (number, path) in paths.enumerated() {
            let tracks = try Tracks(path)
            if number == 0 { try begin(tracks, cover) }
            guard try copy(tracks, progress) else { return false }
        }
        try check("av_write_trailer", av_write_trailer(output))
        avio_flush(stream.context)
        try check("avio_flush", 0)
        return true
    }

    private func begin(_ tracks: Tracks, _ cover: Cover?) throws(MediaError) {
        for track in tracks.all {
            let copy = try newStream(track.pointee.codecpar)
            copy.pointee.time_base = track.pointee.time_base
            copy.pointee.avg_frame_rate = track.pointee.avg_frame_rate
        }
        if let cover { try addCover(cover) }
        var options: OpaquePointer?
        defer { av_dict_free(&options) }
        av_dict_set(&options, "write_tmcd", "0", 0)
        try check("avformat_write_header", avformat_write_header(output, &options))
        guard let cover, let packet, let count = Int32(exactly: cover.bytes.count) else { return }
        let result = cover.bytes.withUnsafeBytes { bytes in
            av_packet_unref(packet)
            packet.pointee.data = UnsafeMutablePointer(mutating: bytes.assumingMemoryBound(to: UInt8.self).baseAddress)
            packet.pointee.size = count
            packet.pointee.flags = AV_PKT_FLAG_KEY
            (packet.pointee.pts, packet.pointee.dts) = (0, 0)
            packet.pointee.stream_index = Int32(tracks.all.count)
            return av_write_frame(output, packet)
        }
        try check("av_write_frame", result)
    }

    private func addCover(_ cover: Cover) throws(MediaError) {
        let picture = try newStream(nil)
        picture.pointee.disposition = AV_DISPOSITION_ATTACHED_PIC
        guard let parameters = picture.pointee.codecpar else { return }
        parameters.pointee.codec_type = AVMEDIA_TYPE_VIDEO
        parameters.pointee.codec_id = AV_CODEC_ID_MJPEG
        parameters.pointee.width = Int32(clamping: cover.width)
        parameters.pointee.height = Int32(clamping: cover.height)
    }

    private func newStream(
        _ parameters: UnsafeMutablePointer<AVCodecParameters>?
    ) throws(MediaError) -> UnsafeMutablePointer<AVStream> {
        guard let stream = avformat_new_stream(output, nil) else {
            throw MediaError("avformat_new_stream", cffmpeg_no_memory())
        }
        if let parameters {
            try check("avcodec_parameters_copy", avcodec_parameters_copy(stream.pointee.codecpar, parameters))
            // Each container has its own.
            stream.pointee.codecpar.pointee.codec_tag = 0
        }
        lastStamps.append(.min)
        return stream
    }

    private func copy(_ tracks: Tracks, _ progress: (Int64) -> Bool) throws(MediaError) -> Bool {
        guard let packet, let output else { return false }
        let second = AVRational(num: 1, den: 1_000_000_000)
        let start = end
        // Per track: how long its last piece lasted, where no duration is told.
        var steps = [Int64](repeating: 0, count: tracks.all.count)
        while true {
            av_packet_unref(packet)
            let result = av_read_frame(tracks.input.format, packet)
            if result == cffmpeg_end_of_file() { return true }
            try MediaError.check("av_read_frame", result)
            guard let number = tracks.all.firstIndex(where: { $0.pointee.index == packet.pointee.stream_index }),
                packet.pointee.size > 0, let target = output.pointee.streams[number]
            else { continue }
            let (from, to) = (tracks.all[number].pointee.time_base, target.pointee.time_base)
            let offset = av_rescale_q(start - tracks.start, second, to)
            if packet.pointee.dts == cffmpeg_no_time() { packet.pointee.dts = packet.pointee.pts }
            guard packet.pointee.dts != cffmpeg_no_time() else { continue }
            av_packet_rescale_ts(packet, from, to)
            let stamp = packet.pointee.dts + offset
            let delay = packet.pointee.pts == cffmpeg_no_time() ? 0 : max(0, packet.pointee.pts - packet.pointee.dts)
            let last = lastStamps[number]
            packet.pointee.dts = last == .min ? max(0, stamp) : max(stamp, last + 1)
            packet.pointee.pts = packet.pointee.dts + delay
            if last != .min { steps[number] = packet.pointee.dts - last }
            lastStamps[number] = packet.pointee.dts
            let lasts = packet.pointee.duration > 0 ? packet.pointee.duration : steps[number]
            end = max(end, av_rescale_q(packet.pointee.pts + lasts, to, second))
            packet.pointee.stream_index = Int32(number)
            packet.pointee.pos = -1
            try check("av_write_frame", av_write_frame(output, packet))
            guard progress(end) else { return false }
        }
    }

    private func check(_ operation: String, _ result: Int32) throws(MediaError) {
        if let failure = stream.failure { throw MediaError(operation, cffmpeg_error(failure)) }
        try MediaError.check(operation, result)
    }
}

/// What of a file is copied.
private struct Tracks {
    let input: InputFile
    let video: UnsafeMutablePointer<AVStream>?
    let sound: UnsafeMutablePointer<AVStream>?

    init(_ path: String) throws(MediaError) {
        input = try InputFile(path)
        video = input.choose(AVMEDIA_TYPE_VIDEO)
        sound = input.choose(AVMEDIA_TYPE_AUDIO)
        input.read(only: all)
    }

    var all: [UnsafeMutablePointer<AVStream>] { [video, sound].compactMap { $0 } }

    /// Nanoseconds on the file's own clock.
    var start: Int64 {
        let start = input.format.pointee.start_time
        return start == cffmpeg_no_time() ? 0 : start * 1000
    }

    /// MP4 can hold it.
    var isHeld: Bool {
        let codec = video?.pointee.codecpar?.pointee.codec_id
        let soundCodec = sound?.pointee.codecpar?.pointee.codec_id
        return (codec == nil || codec == AV_CODEC_ID_H264 || codec == AV_CODEC_ID_MJPEG)
            && (soundCodec == nil || soundCodec == AV_CODEC_ID_AAC || soundCodec == AV_CODEC_ID_OPUS)
    }

    func isLike(_ other: Tracks) -> Bool { Self.isLike(video, other.video) && Self.isLike(sound, other.sound) }

    private static func isLike(_ one: UnsafeMutablePointer<AVStream>?, _ other: UnsafeMutablePointer<AVStream>?) -> Bool
    {
        guard let one = one?.pointee.codecpar?.pointee, let other = other?.pointee.codecpar?.pointee else {
            return one == nil && other == nil
        }
        func extra(_ parameters: AVCodecParameters) -> UnsafeBufferPointer<UInt8> {
            UnsafeBufferPointer(start: parameters.extradata, count: Int(max(0, parameters.extradata_size)))
        }
        return one.codec_id == other.codec_id && one.width == other.width && one.height == other.height
            && one.sample_rate == other.sample_rate && one.ch_layout.nb_channels == other.ch_layout.nb_channels
            && extra(one).elementsEqual(extra(other))
    }
}
