import CFFmpeg

/// A movie's best video track.
public struct VideoTrack: Hashable, Sendable {
    public enum Codec: Hashable, Sendable {
        case motionJPEG, h264
        /// By FFmpeg's name.
        case other(String)
    }

    public var codec: Codec
    /// What the file says of its pictures; others may come on the way.
    public var picture: PictureDescription
    /// What the track says of the shape of pixels, whatever its pictures say; nil: what these say holds.
    public var trackShape: PixelShape?
    /// How decoded pictures lie in memory, as far as the file says; it may change on the way.
    public var format: ImageFormat?
    public var turn: PictureTurn
    /// Frames a second on the average, as a fraction; nil: the file doesn't say.
    public var frameRate: (numerator: Int, denominator: Int)?
    /// Pictures are not stored in the order of their times: some build on later ones.
    public var isReordered: Bool

    public var width: Int { picture.width }
    public var height: Int { picture.height }

    public static func == (left: Self, right: Self) -> Bool {
        left.codec == right.codec && left.picture == right.picture && left.format == right.format
            && left.isReordered == right.isReordered && left.frameRate?.numerator == right.frameRate?.numerator
            && left.frameRate?.denominator == right.frameRate?.denominator
            && left.trackShape == right.trackShape && left.turn == right.turn
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(codec)
        hasher.combine(picture)
    }
}

/// Reads the video of a file from its beginning to its end with libavformat: as stored, or decoded with
/// libavcodec. Used by one thread at a time. Only plain files are read: what a file names elsewhere is not opened.
public final class MovieReader {
    /// What the reader gives.
    public enum Delivery: Hashable, Sendable {
        /// As stored; H.264 with start codes (ITU-T H.264, Annex B).
        case packets
        /// Decoded.
        case pictures
    }

    /// A packet or picture that has been read.
    public struct Item: Hashable, Sendable {
        /// Nanoseconds on the file's own clock, less than a hundred years of them; nil: the file doesn't say, or it is
        /// damaged. Of a packet that is when it is decoded (DTS), and in its turn in the file.
        public var time: Int64?
        /// Nanoseconds from then to when its picture is shown (PTS); 0 where pictures are stored in the order in which
        /// they are shown.
        public var presentationDelay: Int64 = 0
        /// The decoder, or the container, says that it is damaged.
        public var isDamaged: Bool
    }

    public let track: VideoTrack
    /// Pieces that could not be decoded at all so far, and gave no picture.
    public private(set) var undecodable: UInt64 = 0

    private let delivery: Delivery
    private let index: Int32
    private let timeBase: AVRational
    private let input: InputFile
    // Each is made once, and freed in deinit alone.
    private var codec: UnsafeMutablePointer<AVCodecContext>?
    private var filter: UnsafeMutablePointer<AVBSFContext>?
    private var packet: UnsafeMutablePointer<AVPacket>?
    private var frame: UnsafeMutablePointer<AVFrame>?
    private var isDraining = false
    /// Of packets that are not in the order of their times.
    private var reordering: PacketReordering?
    private let copier = PictureCopier()

    /// Pieces without a picture in a row after which a file is of no use.
    private static let patience = 5000

    /// A file's video; nil: it has none.
    ///
    /// - Parameter path: of a plain file.
    public static func contents(_ path: String) throws(MediaError) -> VideoTrack? {
        let input = try InputFile(path)
        guard input.choose(AVMEDIA_TYPE_VIDEO) != nil else { return nil }
        return try OpenedMovie(input).track
    }

    /// When a file says that it was made, nanoseconds since 1970; nil: it doesn't.
    ///
    /// - Parameter path: of a plain file.
    public static func creationDate(_ path: String) throws(MediaError) -> Int64? {
        let input = try InputFile(path)
        return withExtendedLifetime(input) { CreationDate(of: input.format)?.realtime }
    }

    /// - Parameters:
    ///   - path: of a plain file.
    ///   - frameRate: frames a second of files that don't say (`25`, `30000/1001`).
    public init(_ path: String, delivers delivery: Delivery, frameRate: String? = nil) throws(MediaError) {
        self.delivery = delivery
        let opened = try OpenedMovie(InputFile(path, frameRate: frameRate))
        (index, timeBase, track) = (opened.index, opened.timeBase, opened.track)
        if delivery == .packets { reordering = PacketReordering(of: opened.stream) }
        input = opened.input
        packet = av_packet_alloc()
        frame = av_frame_alloc()
        guard packet != nil, frame != nil else { throw MediaError("av_packet_alloc", cffmpeg_no_memory()) }
        switch delivery {
        case .pictures: try openDecoder(opened.parameters)
        case .packets: try openFilter(opened.parameters)
        }
    }

    deinit {
        av_packet_free(&packet)
        av_frame_free(&frame)
        av_bsf_free(&filter)
        avcodec_free_context(&codec)
    }

    private func openDecoder(_ parameters: UnsafeMutablePointer<AVCodecParameters>) throws(MediaError) {
        guard let decoder = avcodec_find_decoder(parameters.pointee.codec_id) else {
            throw MediaError("avcodec_find_decoder", message: "no decoder for the file's video")
        }
        codec = avcodec_alloc_context3(decoder)
        guard let codec else { throw MediaError("avcodec_alloc_context3", cffmpeg_no_memory()) }
        try check("avcodec_parameters_to_context", avcodec_parameters_to_context(codec, parameters))
        codec.pointee.pkt_timebase = timeBase
        // Its caller's thread, and no other.
        codec.pointee.thread_count = 1
        try check("avcodec_open2", avcodec_open2(codec, decoder, nil))
    }

    // MP4 and Matroska store H.264 with lengths instead of start codes, and its parameter sets apart.
    private func openFilter(_ parameters: UnsafeMutablePointer<AVCodecParameters>) throws(MediaError) {
        guard track.codec == .h264 else { return }
        guard let kind = av_bsf_get_by_name("h264_mp4toannexb") else {
            throw MediaError("av_bsf_get_by_name", message: "this FFmpeg has no h264_mp4toannexb")
        }
        try check("av_bsf_alloc", av_bsf_alloc(kind, &filter))
        guard let filter else { throw MediaError("av_bsf_alloc", cffmpeg_no_memory()) }
        try check("avcodec_parameters_copy", avcodec_parameters_copy(filter.pointee.par_in, parameters))
        filter.pointee.time_base_in = timeBase
        try check("av_bsf_init", av_bsf_init(filter))
    }

    private func check(_ operation: String, _ result: Int32) throws(MediaError) {
        guard result >= 0 else { throw MediaError(operation, result) }
    }

    // MARK: Reading

    /// Goes on to the next one; nil at the end.
    public func next() throws(MediaError) -> Item? {
        switch delivery {
        case .packets: try nextPacket()
        case .pictures: try nextPicture()
        }
    }

    /// The next packet of the track; false at the end.
    private func read(_ packet: UnsafeMutablePointer<AVPacket>) throws(MediaError) -> Bool {
        while try input.next(packet) {
            if packet.pointee.stream_index == index, packet.pointee.size > 0 { return true }
        }
        return false
    }

    private func nextPacket() throws(MediaError) -> Item? {
        guard let packet else { return nil }
        for _ in 0..<Self.patience {
            if let filter {
                let result = av_bsf_receive_packet(filter, packet)
                if result == 0 { return item(of: packet) }
                if result == cffmpeg_end_of_file() { return nil }
                guard result == cffmpeg_again() else {
                    undecodable += 1
                    if isDraining { return nil }
                    continue
                }
            }
            let isThere = try read(packet)
            guard let filter else { return isThere ? item(of: packet) : nil }
            if !isThere { isDraining = true }
            if av_bsf_send_packet(filter, isThere ? packet : nil) < 0 {
                undecodable += 1
                if isDraining { return nil }
            }
        }
        throw MediaError("av_bsf_receive_packet", message: "too many packets that are not video")
    }

    private func item(of packet: UnsafeMutablePointer<AVPacket>) -> Item {
        let packet = packet.pointee
        let isDamaged = packet.flags & AV_PKT_FLAG_CORRUPT != 0
        guard let decoding = reordering?.decodingTime(packet.pts, packet.dts) else {
            return Item(time: time(packet.pts == cffmpeg_no_time() ? packet.dts : packet.pts), isDamaged: isDamaged)
        }
        let (decoded, shown) = (time(decoding), time(packet.pts))
        let delay = decoded.flatMap { decoded in shown.map { max(0, $0 - decoded) } }
        return Item(time: decoded, presentationDelay: delay ?? 0, isDamaged: isDamaged)
    }

    // libavformat makes times up where there are none.
    private func time(_ stamp: Int64) -> Int64? {
        input.isMultipart ? nil : FileTime.nanoseconds(stamp, timeBase)
    }

    private func nextPicture() throws(MediaError) -> Item? {
        guard let codec, let packet, let frame else { return nil }
        for _ in 0..<Self.patience {
            let result = avcodec_receive_frame(codec, frame)
            if result == 0 {
                let isDamaged =
                    frame.pointee.decode_error_flags != 0 || frame.pointee.flags & AV_FRAME_FLAG_CORRUPT != 0
                return Item(time: time(frame.pointee.best_effort_timestamp), isDamaged: isDamaged)
            }
            if result == cffmpeg_end_of_file() { return nil }
            guard result == cffmpeg_again() else {
                undecodable += 1
                continue
            }
            let isThere = try read(packet)
            if !isThere { isDraining = true }
            // What is damaged gives no picture, and the next ones may be whole.
            let sent = avcodec_send_packet(codec, isThere ? packet : nil)
            if sent < 0 {
                if sent == cffmpeg_end_of_file() { return nil }
                undecodable += 1
            }
        }
        throw MediaError("avcodec_receive_frame", message: "too many packets that can't be decoded")
    }

    // MARK: What was read

    /// Calls the body with the bytes of the last packet, valid until it returns.
    public func withPacket<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        guard delivery == .packets, let packet, packet.pointee.size > 0 else {
            return body(.init(start: nil, count: 0))
        }
        return body(UnsafeRawBufferPointer(start: packet.pointee.data, count: Int(packet.pointee.size)))
    }

    /// What is stated about the last picture, which may differ from the track's. nil: it is not decoded.
    public var picture: PictureDescription? {
        guard delivery == .pictures, let frame else { return nil }
        return PictureDescription(frame, shape: track.trackShape)
    }

    /// Writes the last picture, converted and scaled if it has to be.
    ///
    /// - Parameter planes: each with room for its lines, and no more than these is written.
    public func copyPicture(as description: ImageDescription, to planes: ImagePlanes) throws(MediaError) {
        guard delivery == .pictures, let frame, frame.pointee.width > 0 else {
            throw MediaError("copyPicture", message: "no picture has been read")
        }
        try copier.copy(frame, as: description, to: planes)
    }
}

/// A file whose video track has been found.
private struct OpenedMovie {
    let input: InputFile
    let stream: UnsafeMutablePointer<AVStream>
    let index: Int32
    let timeBase: AVRational
    let parameters: UnsafeMutablePointer<AVCodecParameters>
    let track: VideoTrack

    init(_ input: InputFile) throws(MediaError) {
        self.input = input
        guard let stream = input.choose(AVMEDIA_TYPE_VIDEO), let parameters = stream.pointee.codecpar else {
            throw MediaError("av_find_best_stream", message: "the file has no video")
        }
        input.read(only: [stream])
        self.stream = stream
        index = stream.pointee.index
        let (width, height) = (Int(parameters.pointee.width), Int(parameters.pointee.height))
        guard (1...16384).contains(width), (1...16384).contains(height) else {
            throw MediaError("avformat_find_stream_info", message: "the size of the video is not known")
        }
        self.parameters = parameters
        timeBase = stream.pointee.time_base
        let codec: VideoTrack.Codec =
            switch parameters.pointee.codec_id {
            case AV_CODEC_ID_MJPEG: .motionJPEG
            case AV_CODEC_ID_H264: .h264
            case let other: .other(String(cString: avcodec_get_name(other)))
            }
        let pixels = AVPixelFormat(parameters.pointee.format)
        let rates = [stream.pointee.avg_frame_rate, stream.pointee.r_frame_rate]
        let rate = input.isMultipart ? nil : rates.first { $0.num > 0 && $0.den > 0 }
        let shape = PixelShape(stream.pointee.sample_aspect_ratio)
        track = VideoTrack(
            codec: codec,
            picture: PictureDescription(
                width: width, height: height, color: ColorTags(parameters.pointee),
                pixelShape: shape ?? PixelShape(parameters.pointee.sample_aspect_ratio) ?? .square),
            trackShape: shape, format: pixels == AV_PIX_FMT_NONE ? nil : ImageFormat(pixels),
            turn: PictureTurn(of: stream),
            frameRate: rate.map { (Int($0.num), Int($0.den)) },
            isReordered: parameters.pointee.video_delay > 0)
    }
}
