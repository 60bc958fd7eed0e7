import CFFmpeg

/// From when to when a file's picture and sound last, on the file's own clock.
public struct FileSpan: Hashable, Sendable {
    /// When the first picture is shown or the first sound is heard, nanoseconds. What encoders put in front of the
    /// sound is not heard.
    public let beginning: Int64
    /// As the file states it, nanoseconds; the sound's last piece may be longer than the sound. nil: it doesn't.
    public let length: Int64?

    /// What a program that has made a file says of its length may differ from what the file says by this, nanoseconds.
    private static let tolerance: Int64 = 100_000_000

    /// - Parameter path: of a plain file.
    public init(_ path: String) throws(MediaError) {
        let input = try InputFile(path)
        self = withExtendedLifetime(input) {
            FileSpan(input, input.choose(AVMEDIA_TYPE_VIDEO), input.choose(AVMEDIA_TYPE_AUDIO))
        }
    }

    init(_ input: InputFile, _ video: UnsafeMutablePointer<AVStream>?, _ sound: UnsafeMutablePointer<AVStream>?) {
        let clock = AVRational(num: 1, den: AV_TIME_BASE)
        let start = FileTime.nanoseconds(input.format.pointee.start_time, clock) ?? 0
        let shown = video.flatMap { FileTime.nanoseconds($0.pointee.start_time, $0.pointee.time_base) }
        let heard = sound.flatMap { sound in
            FileTime.nanoseconds(sound.pointee.start_time, sound.pointee.time_base).map { $0 + Self.priming(sound) }
        }
        let beginning = max(start, [shown, heard].compactMap(\.self).min() ?? start)
        self.beginning = beginning
        length = FileTime.nanoseconds(input.format.pointee.duration, clock).map { max(0, $0 - (beginning - start)) }
    }

    /// The length that was noted when the file was made, unless the file says something else entirely.
    public func length(noted: Int64?) -> Int64? {
        guard let noted, noted >= 0, length.map({ abs(noted - $0) <= Self.tolerance }) ?? true else { return length }
        return noted
    }

    // Our own MP4 and MOV files don't state it: it is a whole piece of AAC.
    private static func priming(_ sound: UnsafeMutablePointer<AVStream>) -> Int64 {
        guard let parameters = sound.pointee.codecpar?.pointee, parameters.sample_rate > 0 else { return 0 }
        let stated = Int64(parameters.initial_padding)
        let samples = stated > 0 || parameters.codec_id != AV_CODEC_ID_AAC ? stated : aacPieceSamples
        return max(0, samples) * 1_000_000_000 / Int64(parameters.sample_rate)
    }

    /// Samples of each channel in a piece of AAC.
    static let aacPieceSamples: Int64 = 1024
}
