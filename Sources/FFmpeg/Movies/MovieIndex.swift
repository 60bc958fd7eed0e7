import CFFmpeg
import Glibc

/// Gives a fragmented MP4 or QuickTime file the index of a plain one, without moving or reading its samples: the index
/// goes behind them, and then sixteen bytes turn the fragments into the body of a plain file. Until those are written
/// the file is what it was; a player finds all of it then without looking through the fragments.
public enum MovieIndex {
    /// What is known of a fragmented file without reading its samples.
    public struct Contents: Hashable, Sendable {
        /// When the last sample ends, nanoseconds from the beginning.
        public var duration: Int64
        /// Samples of all tracks.
        public var samples: Int
    }

    /// Those that an index can have.
    public static let mostSamples = 4_000_000

    /// Looks through the fragments of a file.
    ///
    /// - Parameter length: so much of it counts, bytes.
    public static func contents(of descriptor: Int32, length: Int64) throws(MediaError) -> Contents {
        let movie = try FragmentedMovie(descriptor, length: length)
        return movie.contents
    }

    /// - Parameters:
    ///   - descriptor: of a file that ends with a whole fragment, open for reading and writing.
    ///   - lastPicture: how long the last picture is shown, nanoseconds; nil: as long as the
    ///     shorter of the two before it, because one after which some are missing says nothing of the next.
    ///   - delays: of each picture, nanoseconds from when it is decoded to when it is shown; empty: they are all 0;
    ///     nil: they are not known.
    ///   - mostSamples: the index of a file with more of them would take too much memory.
    /// - Returns: false when the file was left as it was, since it is another kind of file or has too many samples.
    /// - Throws: also when there is no room on the disk, or the heads of its fragments are damaged; then, too, the file
    ///   is what it was.
    public static func complete(
        _ descriptor: Int32, as container: MovieContainer, lastPicture: Int64? = nil, delays: [Int64]? = nil,
        mostSamples: Int = mostSamples
    ) throws(MediaError) -> Bool {
        var status = stat()
        guard container != .matroska, fstat(descriptor, &status) == 0 else { return false }
        let length = Int64(status.st_size)
        // The old index has to be the second box, with room for the head of a body that reaches over it.
        guard let start = secondBox(descriptor, length) else { return false }
        let movie = try FragmentedMovie(descriptor, length: length)
        guard (1...mostSamples).contains(movie.contents.samples), try movie.knows(delays) else { return false }
        do throws(MediaError) {
            try movie.writeIndex(descriptor, container, behind: length, lastPicture, delays ?? [])
            try check("fsync", fsync(descriptor))
        } catch {
            _ = ftruncate(descriptor, Int(length))
            throw error
        }
        var head: [UInt8] = [0, 0, 0, 1] + Array("mdat".utf8)
        let size = UInt64(length - start)
        for shift in stride(from: UInt64(56), through: 0, by: -8) {
            head.append(UInt8(truncatingIfNeeded: size >> shift))
        }
        guard pwrite(descriptor, head, head.count, Int(start)) == head.count else {
            throw MediaError("pwrite", cffmpeg_error(errno))
        }
        try check("fsync", fsync(descriptor))
        return true
    }

    private static func secondBox(_ descriptor: Int32, _ length: Int64) -> Int64? {
        func box(_ offset: Int64, _ name: String) -> Int64? {
            var head = [UInt8](repeating: 0, count: 8)
            guard pread(descriptor, &head, 8, Int(offset)) == 8, head[4...].elementsEqual(name.utf8) else { return nil }
            return head[..<4].reduce(0) { $0 << 8 | Int64($1) }
        }
        guard let first = box(0, "ftyp"), first >= 8, let second = box(first, "moov"), second >= 16,
            first + second < length
        else { return nil }
        return first
    }

    private static func check(_ operation: String, _ result: Int32) throws(MediaError) {
        if result != 0 { throw MediaError(operation, cffmpeg_error(errno)) }
    }
}

/// A fragmented file whose fragments have been looked through; its samples have not been read.
private final class FragmentedMovie {
    private let stream: DescriptorStream
    /// Bytes of the file.
    private let length: Int64
    private var format: UnsafeMutablePointer<AVFormatContext>?
    private(set) var contents = MovieIndex.Contents(duration: 0, samples: 0)

    init(_ descriptor: Int32, length: Int64) throws(MediaError) {
        FFmpegLog.silence()
        self.length = length
        stream = try DescriptorStream(descriptor, writes: false, length: length)
        format = avformat_alloc_context()
        guard let format else { throw MediaError("avformat_alloc_context", cffmpeg_no_memory()) }
        format.pointee.pb = stream.context
        // Frees the context if it fails.
        try MediaError.check(
            "avformat_open_input", avformat_open_input(&self.format, nil, av_find_input_format("mov"), nil))
        for track in tracks {
            let count = avformat_index_get_entries_count(track)
            contents.samples += Int(count)
            guard count > 0, let last = avformat_index_get_entry(track, count - 1)?.pointee else { continue }
            let before = count > 1 ? avformat_index_get_entry(track, count - 2)?.pointee.timestamp : nil
            let (step, isFar) = last.timestamp.subtractingReportingOverflow(before ?? last.timestamp)
            let (end, isLate) = last.timestamp.addingReportingOverflow(step)
            // What no movie lasts is no time.
            guard !isFar, !isLate, let time = FileTime.nanoseconds(end, track.pointee.time_base),
                time < FileTime.longest
            else { continue }
            contents.duration = max(contents.duration, time)
        }
    }

    deinit { avformat_close_input(&format) }

    private var tracks: [UnsafeMutablePointer<AVStream>] {
        guard let format else { return [] }
        return (0..<Int(format.pointee.nb_streams)).compactMap { format.pointee.streams[$0] }
    }

    func writeIndex(
        _ descriptor: Int32, _ container: MovieContainer, behind length: Int64, _ lastPicture: Int64?,
        _ delays: [Int64]
    ) throws(MediaError) {
        let result = try DescriptorStream(descriptor, writes: true, length: length, keeping: length)
        var output: UnsafeMutablePointer<AVFormatContext>?
        try MediaError.check(
            "avformat_alloc_output_context2",
            avformat_alloc_output_context2(&output, nil, container.rawValue, nil))
        defer { avformat_free_context(output) }
        var packet = av_packet_alloc()
        defer { av_packet_free(&packet) }
        guard let output, let packet, let pb = result.context else {
            throw MediaError("av_packet_alloc", cffmpeg_no_memory())
        }
        // Samples are not copied on their way to where they are thrown away.
        pb.pointee.direct = 1
        output.pointee.pb = pb
        output.pointee.flags |= AVFMT_FLAG_CUSTOM_IO
        for track in tracks {
            guard let copy = avformat_new_stream(output, nil) else {
                throw MediaError("avformat_new_stream", cffmpeg_no_memory())
            }
            try MediaError.check(
                "avcodec_parameters_copy", avcodec_parameters_copy(copy.pointee.codecpar, track.pointee.codecpar))
            MovieIndex.tellPixels(copy.pointee.codecpar)
            copy.pointee.codecpar.pointee.codec_tag = 0
            copy.pointee.time_base = track.pointee.time_base
            copy.pointee.avg_frame_rate = track.pointee.avg_frame_rate
            PixelShape.copy(from: track, to: copy)
            try PictureTurn.copy(from: track, to: copy)
        }
        var options: OpaquePointer?
        defer { av_dict_free(&options) }
        av_dict_set(&options, "write_tmcd", "0", 0)
        if copyTags(to: output), container == .mov { av_dict_set(&options, "movflags", Muxer.tagFlag, 0) }
        try MediaError.check("avformat_write_header", avformat_write_header(output, &options))
        for (number, track) in tracks.enumerated() {
            try copySamples(of: track, number, to: output, packet, pb, lastPicture, Self.isPicture(track) ? delays : [])
        }
        avio_seek(pb, length, SEEK_SET)
        let end = av_write_trailer(output)
        avio_flush(pb)
        if let failure = result.failure { throw MediaError("av_write_trailer", cffmpeg_error(failure)) }
        try MediaError.check("av_write_trailer", end)
    }

    private static func isPicture(_ track: UnsafeMutablePointer<AVStream>) -> Bool {
        track.pointee.codecpar.pointee.codec_type == AVMEDIA_TYPE_VIDEO
    }

    /// Whether the delays of all pictures are given. libavformat finds a delay only with its picture's fragment.
    func knows(_ delays: [Int64]?) throws(MediaError) -> Bool {
        guard let picture = tracks.first(where: Self.isPicture) else { return true }
        if let delays { return delays.isEmpty || delays.count == Int(avformat_index_get_entries_count(picture)) }
        guard picture.pointee.codecpar.pointee.codec_id == AV_CODEC_ID_H264 else { return true }
        try MediaError.check("avformat_find_stream_info", avformat_find_stream_info(format, nil))
        return picture.pointee.codecpar.pointee.video_delay == 0
    }

    // The new index has what the old one says of the file beside its tracks.
    private func copyTags(to output: UnsafeMutablePointer<AVFormatContext>) -> Bool {
        var last: UnsafeMutablePointer<AVDictionaryEntry>?
        while let tag = av_dict_get(format?.pointee.metadata, "com.apple.quicktime.", last, AV_DICT_IGNORE_SUFFIX) {
            av_dict_set(&output.pointee.metadata, tag.pointee.key, tag.pointee.value, 0)
            last = tag
        }
        if let format { CreationDate(of: format)?.write(to: output) }
        return last != nil
    }

    // The muxer notes where it writes a sample, and that is where the sample is already.
    private func copySamples(
        of track: UnsafeMutablePointer<AVStream>, _ number: Int, to output: UnsafeMutablePointer<AVFormatContext>,
        _ packet: UnsafeMutablePointer<AVPacket>, _ pb: UnsafeMutablePointer<AVIOContext>, _ lastPicture: Int64?,
        _ delays: [Int64]
    ) throws(MediaError) {
        let count = avformat_index_get_entries_count(track)
        var largest: Int32 = 1
        for index in 0..<count { largest = max(largest, avformat_index_get_entry(track, index)?.pointee.size ?? 0) }
        guard let zeros = av_mallocz(Int(largest) + Int(AV_INPUT_BUFFER_PADDING_SIZE)) else {
            throw MediaError("av_mallocz", cffmpeg_no_memory())
        }
        defer { av_free(zeros) }
        var (duration, earlier): (Int64, Int64) = (0, 0)
        let base = track.pointee.time_base
        func ticks(_ time: Int64) -> Int64 { av_rescale_q(time, AVRational(num: 1, den: 1_000_000_000), base) }
        // The first picture is shown when the movie begins.
        let start = delays.first.map { (avformat_index_get_entry(track, 0)?.pointee.timestamp ?? 0) + ticks($0) } ?? 0
        for index in 0..<count {
            guard let entry = avformat_index_get_entry(track, index)?.pointee else { continue }
            // A damaged head may tell of samples that the file doesn't have: an index of them would make it much
            // longer.
            guard entry.pos >= 0, Int64(entry.size) <= length - entry.pos else {
                throw MediaError("avformat_index_get_entry", cffmpeg_invalid_data())
            }
            if let next = avformat_index_get_entry(track, index + 1)?.pointee {
                let (step, isFar) = next.timestamp.subtractingReportingOverflow(entry.timestamp)
                (earlier, duration) = (duration, isFar ? 0 : max(0, step))
            } else if Self.isPicture(track) {
                let known = lastPicture.map { max(1, ticks($0)) }
                duration = known ?? (earlier > 0 ? min(duration, earlier) : duration)
            }
            avio_seek(pb, entry.pos, SEEK_SET)
            av_packet_unref(packet)
            packet.pointee.data = zeros.assumingMemoryBound(to: UInt8.self)
            packet.pointee.size = entry.size
            packet.pointee.dts = entry.timestamp - start
            packet.pointee.pts = packet.pointee.dts + (delays.isEmpty ? 0 : ticks(delays[Int(index)]))
            packet.pointee.duration = duration
            packet.pointee.flags = entry.flags & AVINDEX_KEYFRAME != 0 ? AV_PKT_FLAG_KEY : 0
            packet.pointee.stream_index = Int32(number)
            if let stream = output.pointee.streams[number] {
                av_packet_rescale_ts(packet, track.pointee.time_base, stream.pointee.time_base)
            }
            try MediaError.check("av_write_frame", av_write_frame(output, packet))
        }
    }
}

extension MovieIndex {
    /// What lies in uncompressed pictures would be known to their decoder alone; how QuickTime calls it tells.
    static func tellPixels(_ parameters: UnsafeMutablePointer<AVCodecParameters>) {
        guard parameters.pointee.codec_id == AV_CODEC_ID_RAWVIDEO else { return }
        let tag = (0..<4).map { UInt8(truncatingIfNeeded: parameters.pointee.codec_tag >> (8 * UInt32($0))) }
        switch String(decoding: tag, as: UTF8.self) {
        case "yuv2", "yuvs": parameters.pointee.format = AV_PIX_FMT_YUYV422.rawValue
        case "2vuy": parameters.pointee.format = AV_PIX_FMT_UYVY422.rawValue
        case "b16g": parameters.pointee.format = AV_PIX_FMT_GRAY16BE.rawValue
        case "raw ": parameters.pointee.format = AV_PIX_FMT_RGB24.rawValue
        default: break
        }
    }
}
