import CFFmpeg

/// What is to be encoded, and how.
public struct VideoEncoderSettings: Hashable, Sendable {
    public enum Codec: Hashable, Sendable {
        case h264
        /// Without loss, each picture by itself (RFC 9043, version 3, with a checksum for each slice), as this format.
        case ffv1(ImageFormat)
    }

    public var codec: Codec
    /// Pixels; both even for H.264.
    public var width: Int
    public var height: Int
    /// Bits a second, on the average. Of H.264, as are the next three.
    public var bitRate: Int
    /// Frames from one key frame to the next at most.
    public var keyFrameInterval: Int
    /// Frames a second that are to be expected; the true times are those that come with the pictures.
    public var frameRate: Double
    /// libx264's: `ultrafast` to `placebo`.
    public var preset: String
    /// Threads that share a picture; 0: as many as there are processors.
    public var threads: Int
    /// What the stream says of its colours, and what they are made to be; H.264 is always in video range.
    public var color: ColorTags
    public var pixelShape: PixelShape

    public init(
        _ codec: Codec = .h264, width: Int, height: Int, bitRate: Int, keyFrameInterval: Int, frameRate: Double,
        preset: String = "veryfast", threads: Int = 0, color: ColorTags, pixelShape: PixelShape = .square
    ) {
        self.codec = codec
        self.width = width
        self.height = height
        self.bitRate = bitRate
        self.keyFrameInterval = keyFrameInterval
        self.frameRate = frameRate
        self.preset = preset
        self.threads = threads
        self.color = color
        self.pixelShape = pixelShape
    }
}

/// Encodes pictures with libavcodec, to H.264 (libx264) or FFV1, each as soon as it comes (`zerolatency`): nothing is
/// held back that a power cut could take. Used by one thread at a time.
public final class VideoEncoder {
    public let settings: VideoEncoderSettings
    private var codec: UnsafeMutablePointer<AVCodecContext>?
    private var frame: UnsafeMutablePointer<AVFrame>?
    private var packet: UnsafeMutablePointer<AVPacket>?
    private let made: ImageDescription
    private let copier = PictureCopier()
    private var lastStamp = Int64.min
    /// The size at which pictures are drawn in the middle, with black around them.
    private var inner: Size

    /// Pixels, both even.
    public struct Size: Hashable, Sendable {
        public var width: Int
        public var height: Int

        public init(width: Int, height: Int) {
            self.width = width
            self.height = height
        }
    }

    /// Ticks a second of the times that are kept.
    static let timeScale: Int32 = 1_000_000

    public init(_ settings: VideoEncoderSettings) throws(MediaError) {
        FFmpegLog.silence()
        self.settings = settings
        inner = Size(width: settings.width, height: settings.height)
        made = try settings.pictures()
        let name = settings.codec == .h264 ? "libx264" : "ffv1"
        guard let encoder = avcodec_find_encoder_by_name(name) else {
            throw MediaError("avcodec_find_encoder_by_name", message: "this FFmpeg has no \(name)")
        }
        codec = avcodec_alloc_context3(encoder)
        packet = av_packet_alloc()
        frame = av_frame_alloc()
        guard let codec, let frame, packet != nil else { throw MediaError("av_frame_alloc", cffmpeg_no_memory()) }
        codec.pointee.width = Int32(settings.width)
        codec.pointee.height = Int32(settings.height)
        codec.pointee.pix_fmt = made.format.code
        codec.pointee.time_base = AVRational(num: 1, den: Self.timeScale)
        codec.pointee.framerate = av_d2q(settings.frameRate, 1_000_000)
        codec.pointee.thread_count = Int32(settings.threads)
        settings.color.write(to: codec)
        codec.pointee.color_range = made.range == .full ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG
        codec.pointee.sample_aspect_ratio = settings.pixelShape.ratio
        // Containers keep the parameter sets apart.
        codec.pointee.flags |= AV_CODEC_FLAG_GLOBAL_HEADER
        for (name, value) in settings.set(codec) {
            try MediaError.check("av_opt_set \(name)", av_opt_set(codec.pointee.priv_data, name, value, 0))
        }
        try MediaError.check("avcodec_open2", avcodec_open2(codec, encoder, nil))
        frame.pointee.format = made.format.code.rawValue
        frame.pointee.width = Int32(settings.width)
        frame.pointee.height = Int32(settings.height)
        try MediaError.check("av_frame_get_buffer", av_frame_get_buffer(frame, 0))
    }

    deinit {
        avcodec_free_context(&codec)
        av_frame_free(&frame)
        av_packet_free(&packet)
    }

    /// Encodes a picture, converted and scaled if it has to be.
    ///
    /// - Parameters:
    ///   - time: nanoseconds, later than that of the picture before.
    ///   - asKeyFrame: it is to build on none before; others become key frames in their turn.
    ///   - size: that it has in the middle of black; no larger than the movie's. nil: it covers all.
    ///   - body: takes what came out.
    public func encode(
        _ planes: ImagePlanes, _ description: ImageDescription, at time: Int64, asKeyFrame: Bool, size: Size? = nil,
        _ body: (EncodedPacket) throws(MediaError) -> Void
    ) throws(MediaError) {
        guard let frame else { return }
        try MediaError.check("av_frame_make_writable", av_frame_make_writable(frame))
        let whole = Size(width: settings.width, height: settings.height)
        let size = size ?? whole
        if size != inner { PictureCopier.blacken(frame) }
        inner = size
        if size == whole {
            try copier.copy(planes, description, as: made, to: frame)
        } else {
            var drawn = made
            (drawn.width, drawn.height) = (min(size.width, whole.width), min(size.height, whole.height))
            try copier.copy(
                planes, description, as: drawn, x: (whole.width - drawn.width) / 2 & ~1,
                y: (whole.height - drawn.height) / 2 & ~1, of: frame)
        }
        try encodeAgain(at: time, asKeyFrame: asKeyFrame, body)
    }

    /// Encodes the last picture once more. There has to be one.
    public func encodeAgain(
        at time: Int64, asKeyFrame: Bool, _ body: (EncodedPacket) throws(MediaError) -> Void
    ) throws(MediaError) {
        guard let codec, let frame, let packet else { return }
        let stamp = av_rescale(time, Int64(Self.timeScale), 1_000_000_000)
        lastStamp = max(stamp, lastStamp == .min ? stamp : lastStamp + 1)
        frame.pointee.pts = lastStamp
        frame.pointee.pict_type = asKeyFrame ? AV_PICTURE_TYPE_I : AV_PICTURE_TYPE_NONE
        try MediaError.check("avcodec_send_frame", avcodec_send_frame(codec, frame))
        try drain(codec, packet, body)
    }

    /// Takes what is left; nothing can be encoded afterwards.
    public func finish(_ body: (EncodedPacket) throws(MediaError) -> Void) throws(MediaError) {
        guard let codec, let packet else { return }
        try MediaError.check("avcodec_send_frame", avcodec_send_frame(codec, nil))
        try drain(codec, packet, body)
    }

    func describe(_ parameters: UnsafeMutablePointer<AVCodecParameters>) throws(MediaError) {
        try MediaError.check(
            "avcodec_parameters_from_context", avcodec_parameters_from_context(parameters, codec))
    }
}

extension VideoEncoderSettings {
    /// What the encoder is given.
    fileprivate func pictures() throws(MediaError) -> ImageDescription {
        let sides = 1...16384
        guard sides.contains(width), sides.contains(height), frameRate > 0, frameRate <= 1000,
            (0...64).contains(threads)
        else { throw MediaError("avcodec_open2", message: "this size or rate can't be encoded") }
        let matrix = ColorMatrix(code: color.matrix)
        switch codec {
        case .ffv1(let format):
            return ImageDescription(format, width: width, height: height, range: color.range, matrix: matrix)
        case .h264:
            guard width % 2 == 0, height % 2 == 0, bitRate > 0, keyFrameInterval > 0 else {
                throw MediaError("avcodec_open2", message: "H.264 does not support this size or rate")
            }
            return ImageDescription(.yuv420p, width: width, height: height, range: .limited, matrix: matrix)
        }
    }

    /// - Returns: the encoder's own options.
    fileprivate func set(_ context: UnsafeMutablePointer<AVCodecContext>) -> [(String, String)] {
        switch codec {
        case .h264:
            context.pointee.bit_rate = Int64(bitRate)
            context.pointee.gop_size = Int32(clamping: keyFrameInterval)
            context.pointee.max_b_frames = 0
            return [("preset", preset), ("tune", "zerolatency"), ("forced-idr", "1")]
        case .ffv1:
            context.pointee.gop_size = 1
            // libavcodec's version 3 loses pictures of one line or column: they have the first version that does.
            guard min(width, height) > 1 else { return [] }
            context.pointee.level = 3
            // Damage costs a slice, and they are made at the same time. There are none smaller than a pixel.
            context.pointee.slices = width >= 64 && height >= 64 ? 4 : 1
            return [("slicecrc", "1")]
        }
    }
}
