import CFFmpeg

/// A plain file that is open for reading, with what is in it known. What it names elsewhere is not opened.
final class InputFile {
    let format: UnsafeMutablePointer<AVFormatContext>
    /// Pictures as a server sends them to browsers (`multipart/x-mixed-replace`), saved. It tells no times, and may end
    /// in a part that is no picture.
    let isMultipart: Bool

    /// Containers, elementary streams and pictures that have all of their contents in themselves, by FFmpeg's names. A
    /// playlist (`concat`, `hls`, `dash`, `imf`) is none: it would have other files opened that its reader may read,
    /// and whoever wrote it may not.
    private static let formats = [
        "apng", "asf", "av1", "avi", "dv", "flv", "gif", "h264", "hevc", "ivf", "m4v", "matroska", "mjpeg",
        "mjpeg_2000", "mov",
        "mpeg", "mpjpeg", "mpegts", "mpegvideo", "mxf", "nut", "obu", "ogg", "smjpeg", "vc1", "yuv4mpegpipe",
        "aac", "aiff", "caf", "flac", "mp3", "w64", "wav",
        "image2", "bmp_pipe", "gif_pipe", "j2k_pipe", "jpeg_pipe", "pam_pipe", "pbm_pipe", "pgm_pipe", "png_pipe",
        "ppm_pipe",
        "tiff_pipe", "webp_pipe",
    ].joined(separator: ",")

    /// So much of a file is looked at to learn what is in it, bytes.
    private static let probe = "8000000"

    /// - Parameter frameRate: frames a second of files that don't say.
    init(_ path: String, frameRate: String? = nil) throws(MediaError) {
        FFmpegLog.silence()
        var options: OpaquePointer?
        defer { av_dict_free(&options) }
        // Nothing leads anywhere else, and a picture's name is no pattern. What a format doesn't know of these is left
        // over.
        av_dict_set(&options, "protocol_whitelist", "file", 0)
        av_dict_set(&options, "format_whitelist", Self.formats, 0)
        av_dict_set(&options, "probesize", Self.probe, 0)
        av_dict_set(&options, "pattern_type", "none", 0)
        if let frameRate { av_dict_set(&options, "framerate", frameRate, 0) }
        var opened: UnsafeMutablePointer<AVFormatContext>?
        let result = avformat_open_input(&opened, "file:\(path)", nil, &options)
        guard result >= 0, let opened else { throw MediaError("avformat_open_input", result) }
        format = opened
        isMultipart = opened.pointee.iformat.map { String(cString: $0.pointee.name) == "mpjpeg" } ?? false
        try MediaError.check("avformat_find_stream_info", avformat_find_stream_info(format, nil))
    }

    deinit {
        var closing: UnsafeMutablePointer<AVFormatContext>? = format
        avformat_close_input(&closing)
    }

    /// The best of its kind, but no cover picture; all others are left out when it is read.
    func choose(_ kind: AVMediaType) -> UnsafeMutablePointer<AVStream>? {
        let index = Int(av_find_best_stream(format, kind, -1, -1, nil, 0))
        guard (0..<Int(format.pointee.nb_streams)).contains(index), let stream = format.pointee.streams[index],
            stream.pointee.disposition & AV_DISPOSITION_ATTACHED_PIC == 0
        else { return nil }
        return stream
    }

    /// Reads the next packet; false at the end.
    ///
    /// - Throws: also where the file seems to end because the disk failed: a part of it would pass for the whole.
    func next(_ packet: UnsafeMutablePointer<AVPacket>) throws(MediaError) -> Bool {
        av_packet_unref(packet)
        let result = av_read_frame(format, packet)
        if result == cffmpeg_end_of_file() || (result == cffmpeg_invalid_data() && isMultipart) {
            try checkDisk()
            return false
        }
        try MediaError.check("av_read_frame", result)
        return true
    }

    /// - Throws: what the disk has refused.
    func checkDisk() throws(MediaError) {
        // Files of some formats libavformat opens by itself.
        guard let error = format.pointee.pb?.pointee.error, error != cffmpeg_end_of_file() else { return }
        try MediaError.check("avio_read", error)
    }

    /// Only these are read.
    func read(only chosen: [UnsafeMutablePointer<AVStream>]) {
        for index in 0..<Int(format.pointee.nb_streams) {
            guard let stream = format.pointee.streams[index] else { continue }
            stream.pointee.discard = chosen.contains(stream) ? AVDISCARD_DEFAULT : AVDISCARD_ALL
        }
    }
}
