import CFFmpeg

/// FFmpeg's log, which would go to standard error.
enum FFmpegLog {
    private static let isSilent: Void = av_log_set_level(AV_LOG_QUIET)

    static func silence() { _ = isSilent }
}
