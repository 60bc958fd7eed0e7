import CFFmpeg

/// Puts movies one behind the other into one MP4 file as they are stored, with libavformat. Used by one thread at a
/// time.
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
    /// Nanoseconds: when what was copied ends, and when its last picture is shown.
    private var end: Int64 = 0
    private var lastPicture: Int64 = -1
    /// Samples of each channel in a piece of sound; 0: that isn't known.
    private var pieceSamples: Int64 = 0
    /// A piece of AAC in which nothing is heard; nil: none was needed yet; empty: there is none that fits.
    private var silence: UnsafeMutableRawBufferPointer?

    /// Bytes: a slow disk takes seconds for them, and whoever waits is told how far it is after each.
    private static let syncInterval: Int64 = 32 << 20

    /// What movies have in common that can be put one behind the other.
    public struct Likeness: Hashable, Sendable {
        /// Pixels of the picture; 0: there is none.
        public var width: Int
        public var height: Int
        /// Picture and sound, as far as there are any, are H.264 and AAC.
        public var isUsual: Bool
    }

    /// What they have in common, if the tracks of all of them are alike and MP4 can hold them, so that they can be put
    /// one behind the other.
    ///
    /// - Parameter paths: of plain files.
    public static func likeness(of paths: [String]) throws(MediaError) -> Likeness? {
        guard let path = paths.first else { return nil }
        let first = try Tracks(path)
        guard first.video != nil || first.sound != nil, first.isHeld else { return nil }
        for path in paths.dropFirst() where try !first.isLike(Tracks(path)) { return nil }
        return first.likeness
    }

    /// - Parameter descriptor: of an empty plain file, open for writing as long as this lives; not owned.
    public init(to descriptor: Int32) throws(MediaError) {
        FFmpegLog.silence()
        stream = try DescriptorStream(descriptor, writes: true, syncsEvery: Self.syncInterval)
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
        silence?.deallocate()
    }

    /// How long what was copied is, nanoseconds.
    public var duration: Int64 { end }

    /// Copies the movies, and ends the file. Its date is that of the first. Each movie begins when those before it have
    /// lasted, at most half a piece of sound (AAC) earlier or later, also behind many.
    ///
    /// - Parameters:
    ///   - paths: of plain files that can be joined.
    ///   - durations: how long they last, as far as that is known, nanoseconds.
    ///   - progress: told how much has been copied, nanoseconds; returns false to end.
    /// - Returns: false if it was to end; the file is of no use then.
    public func copy(
        _ paths: [String], durations: [Int64] = [], cover: Cover?, progress: (Int64) -> Bool
    ) throws(MediaError) -> Bool {
        var start: Int64 = 0
        for (number, path) in paths.enumerated() {
            let tracks = try Tracks(path)
            if number == 0 { try begin(tracks, cover) }
            let length = tracks.span.length(noted: number < durations.count ? durations[number] : nil)
            let next = length.map { start + min($0, FileTime.longest) }
            guard start < FileTime.longest else {
                throw MediaError("av_read_frame", message: "a time outside of the range of movies")
            }
            guard try copy(tracks, from: start, to: next, progress) else { return false }
            start = max(next ?? end, lastPicture + Self.leastDuration)
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
            PixelShape.copy(from: track, to: copy)
            try PictureTurn.copy(from: track, to: copy)
        }
        if let cover { try addCover(cover) }
        if let output { CreationDate(of: tracks.input.format)?.write(to: output) }
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
            MovieIndex.tellPixels(stream.pointee.codecpar)
            // Each container has its own.
            stream.pointee.codecpar.pointee.codec_tag = 0
        }
        lastStamps.append(.min)
        return stream
    }

    private static let second = AVRational(num: 1, den: 1_000_000_000)

    /// Nanoseconds: each movie's last picture is shown at least as long.
    private static let leastDuration: Int64 = 1_000_000

    // - Parameter next: where the next movie begins: no piece of sound that is mostly behind it is copied.
    private func copy(
        _ tracks: Tracks, from exact: Int64, to next: Int64?, _ progress: (Int64) -> Bool
    ) throws(MediaError) -> Bool {
        guard let packet, let output else { return false }
        let (start, beginning) = (try bridge(to: tracks, at: exact), tracks.span.beginning)
        // Per track: how long its last piece lasted, where no duration is told.
        var steps = tracks.all.enumerated().map { number, track -> Int64 in
            guard let target = output.pointee.streams[number], let rate = track.pointee.rate else { return 0 }
            return av_rescale_q(1, AVRational(num: rate.den, den: rate.num), target.pointee.time_base)
        }
        var reordering = tracks.all.map { PacketReordering(of: $0) }
        while try tracks.input.next(packet) {
            guard let number = tracks.all.firstIndex(where: { $0.pointee.index == packet.pointee.stream_index }),
                packet.pointee.size > 0, let target = output.pointee.streams[number]
            else { continue }
            guard packet.pointee.flags & AV_PKT_FLAG_CORRUPT == 0 else {
                try tracks.input.checkDisk()
                throw MediaError("av_read_frame", message: "a piece of the movie is damaged")
            }
            let (from, to) = (tracks.all[number].pointee.time_base, target.pointee.time_base)
            let offset = av_rescale_q(start - beginning, Self.second, to)
            if let time = reordering[number]?.decodingTime(packet.pointee.pts, packet.pointee.dts) {
                packet.pointee.dts = time
            }
            if packet.pointee.dts == cffmpeg_no_time() { packet.pointee.dts = packet.pointee.pts }
            guard packet.pointee.dts != cffmpeg_no_time() else { continue }
            try Self.check(packet, from, after: beginning, since: start)
            av_packet_rescale_ts(packet, from, to)
            let hasTime = packet.pointee.pts != cffmpeg_no_time()
            let shown = (hasTime ? packet.pointee.pts : packet.pointee.dts) + offset
            let (stamp, last) = (packet.pointee.dts + offset, lastStamps[number])
            let isSound = tracks.all[number] == tracks.sound
            if isSound, isLeftOut(stamp, packet.pointee.duration, after: last, before: next, to) { continue }
            // Pictures that are not in the order in which they are shown are decoded before the movie begins, and so is
            // a piece of sound that is not heard.
            packet.pointee.dts = max(stamp, last != .min ? last + 1 : isSound || shown > stamp ? .min : 0)
            packet.pointee.pts = max(shown, packet.pointee.dts)
            if last != .min { steps[number] = packet.pointee.dts - last }
            let lasts = packet.pointee.duration > 0 ? packet.pointee.duration : steps[number]
            if isSound { pieceSamples = max(pieceSamples, packet.pointee.duration) }
            if !isSound { lastPicture = max(lastPicture, av_rescale_q(packet.pointee.pts, to, Self.second)) }
            try write(packet, to: number, lasts)
            guard progress(end) else { return false }
        }
        return true
    }

    // Its place is taken by the movie before, or belongs to the next one.
    private func isLeftOut(
        _ stamp: Int64, _ duration: Int64, after last: Int64, before next: Int64?, _ timeBase: AVRational
    ) -> Bool {
        if last != .min, stamp <= last { return true }
        guard let next else { return false }
        return stamp + duration / 2 >= av_rescale_q(next, Self.second, timeBase)
    }

    private func write(
        _ packet: UnsafeMutablePointer<AVPacket>, to number: Int, _ lasts: Int64
    ) throws(MediaError) {
        guard let target = output?.pointee.streams[number] else { return }
        lastStamps[number] = packet.pointee.dts
        end = max(end, av_rescale_q(packet.pointee.pts + lasts, target.pointee.time_base, Self.second))
        packet.pointee.stream_index = Int32(number)
        packet.pointee.pos = -1
        try check("av_write_frame", av_write_frame(output, packet))
    }

    // Where a movie begins, nanoseconds. Players that count samples would hear the sound too early behind a hole in it.
    // So holes are filled with silence. Because sound comes in whole packets, the movie begins where its packets follow
    // without a hole.
    private func bridge(to tracks: Tracks, at exact: Int64) throws(MediaError) -> Int64 {
        guard exact > 0, let packet, let source = tracks.sound, let number = tracks.all.firstIndex(of: source),
            let target = output?.pointee.streams[number], lastStamps[number] != .min,
            let parameters = source.pointee.codecpar, pieceSamples > 0,
            let begun = FileTime.nanoseconds(source.pointee.start_time, source.pointee.time_base)
        else { return exact }
        let timeBase = target.pointee.time_base
        guard timeBase.num == 1, timeBase.den == parameters.pointee.sample_rate else { return exact }
        let (last, piece) = (lastStamps[number], pieceSamples)
        // So much later than the movie its sound begins; earlier by a piece that is not heard.
        let delay = av_rescale_q(begun - tracks.span.beginning, Self.second, timeBase)
        let distance = av_rescale_q(exact, Self.second, timeBase) + delay - last
        // What a damaged file says may be anything.
        guard (-piece...Self.longestBridge * Int64(timeBase.den)).contains(distance) else { return exact }
        let pieces = Int64((Double(distance) / Double(piece)).rounded())
        if pieces > 1, silence == nil { silence = try Self.silence(parameters) }
        let count = Int32(clamping: silence?.count ?? 0)
        guard pieces <= 1 || count > 0 else { return exact }
        for place in 1..<max(1, pieces) {
            let next = last + place * piece
            av_packet_unref(packet)
            packet.pointee.data = silence?.baseAddress?.assumingMemoryBound(to: UInt8.self)
            packet.pointee.size = count
            packet.pointee.flags = AV_PKT_FLAG_KEY
            (packet.pointee.pts, packet.pointee.dts, packet.pointee.duration) = (next, next, piece)
            try write(packet, to: number, piece)
        }
        return av_rescale_q(last + pieces * piece - delay, timeBase, Self.second)
    }

    /// Seconds of silence, at most, between two movies.
    private static let longestBridge: Int64 = 3600

    // Empty when the sound was made by another kind of encoder, or is no AAC.
    private static func silence(
        _ parameters: UnsafeMutablePointer<AVCodecParameters>
    ) throws(MediaError) -> UnsafeMutableRawBufferPointer {
        let none = UnsafeMutableRawBufferPointer.allocate(byteCount: 0, alignment: 16)
        guard parameters.pointee.codec_id == AV_CODEC_ID_AAC else { return none }
        let (rate, channels) = (Int(parameters.pointee.sample_rate), Int(parameters.pointee.ch_layout.nb_channels))
        let bitRate = Int(parameters.pointee.bit_rate)
        let encoder = try AudioEncoder(
            AudioEncoderSettings(.aac, rate: rate, channels: channels, bitRate: bitRate > 0 ? bitRate : 64000),
            from: AudioFormat(.int16, rate: rate, channels: channels))
        var described = avcodec_parameters_alloc()
        defer { avcodec_parameters_free(&described) }
        guard let description = described else { throw MediaError("avcodec_parameters_alloc", cffmpeg_no_memory()) }
        try encoder.describe(description)
        guard Tracks.extra(description.pointee).elementsEqual(Tracks.extra(parameters.pointee)) else { return none }
        // The first pieces are of what comes before the sound.
        let zeros = UnsafeMutableRawBufferPointer.allocate(
            byteCount: 8 * Int(FileSpan.aacPieceSamples) * encoder.input.frameBytes, alignment: 16)
        defer { zeros.deallocate() }
        zeros.initializeMemory(as: UInt8.self, repeating: 0)
        var last = none
        try encoder.encode(UnsafeRawBufferPointer(zeros), at: 0) { (packet) throws(MediaError) in
            last.deallocate()
            last = .allocate(byteCount: packet.bytes.count, alignment: 16)
            last.copyMemory(from: packet.bytes)
        }
        return last
    }

    // Times that can be added up: those of a damaged file need not be.
    private static func check(
        _ packet: UnsafeMutablePointer<AVPacket>, _ timeBase: AVRational, after beginning: Int64, since start: Int64
    ) throws(MediaError) {
        let pts = packet.pointee.pts == cffmpeg_no_time() ? packet.pointee.dts : packet.pointee.pts
        let length = max(0, packet.pointee.duration)
        guard let decoded = FileTime.nanoseconds(packet.pointee.dts, timeBase),
            let shown = FileTime.nanoseconds(pts, timeBase), let lasts = FileTime.nanoseconds(length, timeBase),
            [decoded - beginning, shown - beginning, lasts, start].allSatisfy({ abs($0) < FileTime.longest })
        else { throw MediaError("av_read_frame", message: "a time outside of the range of movies") }
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
    let span: FileSpan

    init(_ path: String) throws(MediaError) {
        input = try InputFile(path)
        video = input.choose(AVMEDIA_TYPE_VIDEO)
        sound = input.choose(AVMEDIA_TYPE_AUDIO)
        span = FileSpan(input, video, sound)
        input.read(only: all)
    }

    var all: [UnsafeMutablePointer<AVStream>] { [video, sound].compactMap { $0 } }

    /// MP4 can hold it.
    var isHeld: Bool {
        let codec = video?.pointee.codecpar?.pointee.codec_id
        let soundCodec = sound?.pointee.codecpar?.pointee.codec_id
        return (codec == nil || codec == AV_CODEC_ID_H264 || codec == AV_CODEC_ID_MJPEG)
            && (soundCodec == nil || soundCodec == AV_CODEC_ID_AAC || soundCodec == AV_CODEC_ID_OPUS)
    }

    var likeness: MovieCopier.Likeness {
        let (picture, audio) = (video?.pointee.codecpar?.pointee, sound?.pointee.codecpar?.pointee)
        return MovieCopier.Likeness(
            width: Int(picture?.width ?? 0), height: Int(picture?.height ?? 0),
            isUsual: (picture.map { $0.codec_id == AV_CODEC_ID_H264 } ?? true)
                && (audio.map { $0.codec_id == AV_CODEC_ID_AAC } ?? true))
    }

    func isLike(_ other: Tracks) -> Bool { Self.isLike(video, other.video) && Self.isLike(sound, other.sound) }

    private static func isLike(_ one: UnsafeMutablePointer<AVStream>?, _ other: UnsafeMutablePointer<AVStream>?) -> Bool
    {
        guard let first = one, let second = other, let one = first.pointee.codecpar?.pointee,
            let other = second.pointee.codecpar?.pointee
        else { return one == nil && other == nil }
        return PictureTurn(of: first) == PictureTurn(of: second) && ColorTags(one) == ColorTags(other)
            && av_cmp_q(PixelShape.ratio(of: first), PixelShape.ratio(of: second)) == 0
            && one.codec_id == other.codec_id && one.width == other.width && one.height == other.height
            && one.sample_rate == other.sample_rate && one.ch_layout.nb_channels == other.ch_layout.nb_channels
            && extra(one).elementsEqual(extra(other))
    }

    /// What a decoder has to know before it is given anything.
    static func extra(_ parameters: AVCodecParameters) -> UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(start: parameters.extradata, count: Int(max(0, parameters.extradata_size)))
    }
}

extension AVStream {
    /// Frames a second on the average, where that is known.
    fileprivate var rate: AVRational? {
        avg_frame_rate.num > 0 && avg_frame_rate.den > 0 ? avg_frame_rate : nil
    }
}
