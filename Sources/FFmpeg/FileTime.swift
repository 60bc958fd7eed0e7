import CFFmpeg

/// What a file says of its times, which may be anything: a damaged one has times that no sum can hold.
enum FileTime {
    /// Nanoseconds: no file's clock reads more, not even one that began in 1970.
    private static let latest: Int64 = 100 * 365 * 86_400_000_000_000
    /// Nanoseconds: no movie lasts longer.
    static let longest: Int64 = 10 * 365 * 86_400_000_000_000

    /// A time of a file's own clock in nanoseconds; nil: the file doesn't say, or it is none.
    static func nanoseconds(_ stamp: Int64, _ timeBase: AVRational) -> Int64? {
        guard stamp != cffmpeg_no_time(), timeBase.num > 0, timeBase.den > 0 else { return nil }
        let time = av_rescale_q(stamp, timeBase, AVRational(num: 1, den: 1_000_000_000))
        return (-latest...latest).contains(time) ? time : nil
    }
}
