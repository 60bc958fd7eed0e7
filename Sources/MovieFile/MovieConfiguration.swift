public import CaptureCore
public import FFmpeg
public import LinuxIO

/// The picture of a movie: what comes, and what is made of it.
public enum MovieVideo: Hashable, Sendable {
    /// JPEG pictures, stored as they come.
    case motionJPEG(FormatDescription)
    /// H.264 with start codes (ITU-T H.264, Annex B), stored as it comes; with its parameter sets (SPS, PPS), likewise.
    case h264(FormatDescription, parameterSets: [UInt8])
    /// Pictures in memory, stored as they come.
    case raw(FrameLayout)
    /// Pictures in memory, to be encoded.
    case encoded(FrameLayout, VideoSettings)

    /// What is stated about what comes. Its frame duration is the movie's nominal one; the true times are those that
    /// come with the frames.
    public var description: FormatDescription {
        switch self {
        case .motionJPEG(let description), .h264(let description, _): description
        case .raw(let layout), .encoded(let layout, _): layout.description
        }
    }

    /// Frames a second of the description; nil: it has none, or none that a file could state.
    var frameRate: Double? {
        description.frameDuration.map(\.framesPerSecond).flatMap { (0.001...1000).contains($0) ? $0 : nil }
    }

    /// How it is stored.
    public var codec: VideoCodec {
        switch self {
        case .motionJPEG: .mjpeg
        case .h264: .h264
        case .raw: .raw
        case .encoded(_, let settings): settings.codec
        }
    }
}

/// The sound of a movie: what comes, and what is made of it.
public struct MovieAudio: Hashable, Sendable {
    public var format: AudioFormat
    public var settings: AudioSettings

    public init(_ format: AudioFormat, _ settings: AudioSettings) {
        self.format = format
        self.settings = settings
    }
}

/// Where a movie ends by itself.
public struct MovieLimits: Hashable, Sendable {
    /// `maxRecordedDuration`, nanoseconds.
    public var maxRecordedDuration: Int64?
    /// `maxRecordedFileSize`, bytes: the finished file has no more. How large a frame is that is encoded here is known
    /// too late: it is taken to be no larger than the largest before it.
    public var maxRecordedFileSize: Int64?
    /// `minFreeDiskSpaceLimit`, bytes: so much stays free for others.
    public var minFreeDiskSpaceLimit: Int64?

    public init(
        maxRecordedDuration: Int64? = nil, maxRecordedFileSize: Int64? = nil, minFreeDiskSpaceLimit: Int64? = nil
    ) {
        self.maxRecordedDuration = maxRecordedDuration
        self.maxRecordedFileSize = maxRecordedFileSize
        self.minFreeDiskSpaceLimit = minFreeDiskSpaceLimit
    }
}

/// A movie that is to be written.
public struct MovieConfiguration: Hashable, Sendable {
    public var fileType: MovieFileType
    public var video: MovieVideo?
    public var audio: MovieAudio?
    /// Frames a second that the movie has, whatever its picture states: each frame goes to the nearest time of that
    /// rate. Where none comes the last one is repeated, and where more than one come only the first is taken,
    /// which is counted. Not for H.264 that is stored as it comes, since its frames build on one another. nil: the
    /// times are those that come with the frames.
    public var constantFrameRate: Double?

    /// Frames a second that the movie states; nil: they are not known.
    public var frameRate: Double? { constantFrameRate ?? video?.frameRate }
    /// Nanoseconds: what a power cut can cost, with one frame more, and beside what the disk itself holds back.
    /// AVFoundation's is 10 s, too.
    public var movieFragmentInterval: Int64 = 10_000_000_000
    /// Bytes: a fragment that becomes larger ends earlier, since all of it is in memory until then.
    public var fragmentSize = 16 << 20
    public var limits = MovieLimits()
    /// When its first picture or sound was taken, nanoseconds since 1970; nil: the file doesn't say.
    public var creationDate: Int64?
    /// The file's own metadata, by QuickTime's names: of MOV only.
    public var tags: [String: String] = [:]

    /// The name of what says that a picture belongs to the movie.
    public static let contentIdentifier = "com.apple.quicktime.content.identifier"

    public init(_ fileType: MovieFileType, video: MovieVideo?, audio: MovieAudio? = nil) {
        self.fileType = fileType
        self.video = video
        self.audio = audio
    }
}

/// Why a movie takes no more, typed as AVFoundation's errors are (`AVError.Code`). What was written before is kept.
public enum MovieEnd: Hashable, Sendable {
    case maximumDurationReached
    case maximumFileSizeReached
    case minimumFreeDiskSpaceReached
    /// Nothing more could be written, for want of room.
    case diskFull
    /// Nothing more could be written: the system's error number (`errno`).
    case writeFailed(Int32)

    /// The file is what was asked for.
    public var isSuccess: Bool {
        switch self {
        case .maximumDurationReached, .maximumFileSizeReached, .minimumFreeDiskSpaceReached: true
        case .diskFull, .writeFailed: false
        }
    }
}

/// How far a movie is.
public struct MovieStatistics: Hashable, Sendable {
    /// `recordedDuration`: nanoseconds from the beginning to the end of the last frame or sound.
    public var recordedDuration: Int64 = 0
    /// `recordedFileSize`: bytes, with those that wait for the end of their fragment.
    public var recordedFileSize: Int64 = 0
    /// Fragments that are on the disk.
    public var fragments: UInt64 = 0
    /// Nanoseconds, and bytes of the file, that are on the disk: what outlives a power cut.
    public var syncedDuration: Int64 = 0
    public var syncedSize: Int64 = 0
    /// Frames that were taken.
    public var frames: UInt64 = 0
    /// Frames that were not: out of order, or lost before they came here.
    public var dropped: UInt64 = 0
    /// Frames that stand once more for one that did not come, and those that were left out, for a constant frame rate.
    public var repeated: UInt64 = 0
    public var skipped: UInt64 = 0

    public init() {}
}

/// Why a movie can't be written or read.
public enum MovieError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The container can't hold that, or no encoder can make it.
    case unsupported(String)
    /// The system refuses the file; `EEXIST` if there is one already.
    case file(SystemError)
    case media(MediaError)

    public var description: String {
        switch self {
        case .unsupported(let text): text
        case .file(let error): error.description
        case .media(let error): error.description
        }
    }
}
