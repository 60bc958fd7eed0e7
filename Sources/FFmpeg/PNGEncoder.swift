import CFFmpeg

/// Compresses pictures of 8 or 16 bits a sample, each by itself, to PNG (ISO/IEC 15948) with libavcodec. Used by one
/// thread at a time.
public final class PNGEncoder {
    private let source: ImageDescription
    private let made: ImageDescription
    private let copier = PictureCopier()
    private var codec: UnsafeMutablePointer<AVCodecContext>?
    private var frame: UnsafeMutablePointer<AVFrame>?
    private var packet: UnsafeMutablePointer<AVPacket>?

    /// - Parameters:
    ///   - format: of the pictures: `gray8`, `rgb24`, `gray16` or `rgb48`.
    ///   - pixelShape: which the files tell (`pHYs`).
    public init(
        _ format: ImageFormat, width: Int, height: Int, pixelShape: PixelShape = .square
    ) throws(MediaError) {
        FFmpegLog.silence()
        let kinds = [
            ImageFormat.gray8: AV_PIX_FMT_GRAY8, .rgb24: AV_PIX_FMT_RGB24, .gray16: AV_PIX_FMT_GRAY16BE,
            .rgb48: AV_PIX_FMT_RGB48BE,
        ]
        guard let stored = kinds[format], (1...32768).contains(width), (1...32768).contains(height) else {
            throw MediaError("avcodec_open2", message: "no PNG of \(format) \(width)x\(height)")
        }
        source = ImageDescription(format, width: width, height: height, range: .full)
        made = ImageDescription(ImageFormat(stored), width: width, height: height, range: .full)
        guard let encoder = avcodec_find_encoder(AV_CODEC_ID_PNG) else {
            throw MediaError("avcodec_find_encoder", message: "this FFmpeg has no PNG encoder")
        }
        codec = avcodec_alloc_context3(encoder)
        packet = av_packet_alloc()
        frame = av_frame_alloc()
        guard let codec, let frame, packet != nil else { throw MediaError("av_frame_alloc", cffmpeg_no_memory()) }
        codec.pointee.width = Int32(width)
        codec.pointee.height = Int32(height)
        codec.pointee.pix_fmt = stored
        codec.pointee.time_base = AVRational(num: 1, den: 1)
        // They are written one after the other as pixels a unit across and down: of wide pixels there are fewer across.
        codec.pointee.sample_aspect_ratio = AVRational(
            num: Int32(clamping: pixelShape.height), den: Int32(clamping: pixelShape.width))
        // Each picture comes out before the next goes in.
        codec.pointee.thread_count = 1
        // More takes several times as long for a few percent.
        codec.pointee.compression_level = 3
        try MediaError.check("av_opt_set pred", av_opt_set(codec.pointee.priv_data, "pred", "paeth", 0))
        try MediaError.check("avcodec_open2", avcodec_open2(codec, encoder, nil))
        frame.pointee.format = stored.rawValue
        frame.pointee.width = Int32(width)
        frame.pointee.height = Int32(height)
        try MediaError.check("av_frame_get_buffer", av_frame_get_buffer(frame, 0))
    }

    deinit {
        avcodec_free_context(&codec)
        av_frame_free(&frame)
        av_packet_free(&packet)
    }

    /// The file of one picture.
    public func encode(_ planes: ImagePlanes) throws(MediaError) -> [UInt8] {
        guard let codec, let frame, let packet else { return [] }
        try MediaError.check("av_frame_make_writable", av_frame_make_writable(frame))
        try copier.copy(planes, source, as: made, to: frame)
        frame.pointee.pts += 1
        try MediaError.check("avcodec_send_frame", avcodec_send_frame(codec, frame))
        try MediaError.check("avcodec_receive_packet", avcodec_receive_packet(codec, packet))
        defer { av_packet_unref(packet) }
        return Array(UnsafeBufferPointer(start: packet.pointee.data, count: Int(packet.pointee.size)))
    }
}
