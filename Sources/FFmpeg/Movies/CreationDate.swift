import CFFmpeg
import Glibc

/// When a movie was made, as files state it: FFmpeg's `creation_time`, which is in the movie's and the tracks' headers
/// of MP4 and QuickTime, and DateUTC of Matroska.
struct CreationDate {
    private let seconds: time_t
    private let microseconds: Int64

    /// - Parameter realtime: nanoseconds since 1970.
    init(_ realtime: Int64) {
        seconds = time_t(realtime / 1_000_000_000)
        microseconds = max(0, realtime % 1_000_000_000 / 1000)
    }

    /// nil: the file doesn't say.
    init?(of file: UnsafeMutablePointer<AVFormatContext>) {
        var time: Int64 = 0
        guard let tag = av_dict_get(file.pointee.metadata, Self.name, nil, 0),
            av_parse_time(&time, tag.pointee.value, 0) >= 0, time > 0
        else { return nil }
        (seconds, microseconds) = (time_t(time / 1_000_000), time % 1_000_000)
    }

    private static let name = "creation_time"

    /// Nanoseconds since 1970.
    var realtime: Int64 { (Int64(seconds) &* 1_000_000 &+ microseconds) &* 1000 }

    func write(to file: UnsafeMutablePointer<AVFormatContext>) {
        let digits = String(microseconds + 1_000_000).dropFirst()
        av_dict_set(&file.pointee.metadata, Self.name, text("%Y-%m-%dT%H:%M:%S.\(digits)Z"), 0)
    }

    /// Where other programs look for it in such a file: QuickTime's own name, and a tag of Matroska.
    func tags(_ container: MovieContainer) -> [String: String] {
        switch container {
        case .mov: ["com.apple.quicktime.creationdate": text("%Y-%m-%dT%H:%M:%S+0000")]
        case .matroska: ["DATE_DIGITIZED": text("%Y-%m-%d %H:%M:%S")]
        case .mp4, .rtsp, .mpegts, .flv: [:]
        }
    }

    /// As `strftime(3)` writes it, in UTC.
    private func text(_ form: String) -> String {
        var (seconds, parts, text) = (seconds, tm(), [CChar](repeating: 0, count: 64))
        gmtime_r(&seconds, &parts)
        let length = strftime(&text, text.count, form, &parts)
        return String(decoding: text[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
