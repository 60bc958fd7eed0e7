public import CaptureCore
import FFmpeg
import Glibc
import Imaging
public import LinuxIO

/// A movie that was joined from others.
public struct JoinedMovie: Hashable, Sendable {
    /// Nanoseconds.
    public var duration: Int64
    /// Bytes.
    public var size: Int64
    /// Its pictures and sound were encoded anew.
    public var isEncoded: Bool
    /// Pixels; nil: there is no picture.
    public var dimensions: Dimensions?
    /// Its first picture (JPEG); nil: there is none.
    public var cover: [UInt8]?
}

/// Joins the segments of a take into one MP4 file, with the first frame as its cover.
public enum MovieJoin {
    /// A joined movie that is on the disk as a whole, and that nobody finds until it is published. Nothing is left of
    /// one that isn't.
    public struct Whole {
        public let movie: JoinedMovie
        public let file: NewFile
    }

    /// Joins movies in their order: as they are stored, where that is the same codec with the same parameters in all of
    /// them and MP4 can hold it, else encoded anew as H.264 and AAC. Picture and sound of each stay in step, also for
    /// who counts samples.
    ///
    /// - Parameters:
    ///   - segments: paths of plain files, which are only read.
    ///   - durations: how long they last, as far as that is known, nanoseconds: the joined movie lasts as long as all
    ///     together.
    ///   - path: of a new file.
    ///   - preset: the picture is no larger than this, and picture and sound are H.264 and AAC; smaller ones stay as
    ///     they are, those of another shape get black borders. nil: what has to be encoded anew is no larger than
    ///     1280x720.
    ///   - isEncoded: in any case.
    ///   - progress: told how much is done, nanoseconds of the movie, never less than before; returns false to end.
    /// - Returns: nil if it was to end; there is no file then.
    @discardableResult
    public static func join(
        _ segments: [String], durations: [Int64] = [], to path: String, preset: ExportPreset? = nil,
        isEncoded: Bool = false, progress: (Int64) -> Bool = { _ in true }
    ) throws(MovieError) -> JoinedMovie? {
        let whole = try make(
            segments, durations: durations, at: path, preset: preset, isEncoded: isEncoded, progress: progress)
        guard let whole else { return nil }
        do throws(SystemError) { try whole.file.publish() } catch { throw .file(error) }
        return whole.movie
    }

    /// The same, but for the name of the file: whoever dies before ``NewFile/publish()`` leaves nothing.
    ///
    /// - Parameters:
    ///   - mode: as of ``NewFile``.
    ///   - temporary: likewise.
    public static func make(
        _ segments: [String], durations: [Int64] = [], at path: String, mode: UInt32? = nil, temporary: String? = nil,
        preset: ExportPreset? = nil, isEncoded: Bool = false, progress: (Int64) -> Bool = { _ in true }
    ) throws(MovieError) -> Whole? {
        guard !segments.isEmpty else { throw .unsupported("a movie of no segments") }
        let likeness: MovieCopier.Likeness?
        do throws(MediaError) { likeness = try MovieCopier.likeness(of: segments) } catch { throw .media(error) }
        let file: NewFile
        do throws(SystemError) {
            file = try NewFile(path, mode: mode, temporary: temporary)
        } catch {
            throw .file(error)
        }
        if let likeness, !isEncoded, isKept(likeness, preset) {
            return try copy(segments, durations, file, isEncoded: false, progress)
        }
        guard
            let writer = try SegmentEncoder.encode(
                segments, durations, to: "\(path).encoded", preset ?? .size1280x720, { progress($0 / 10 * 9) })
        else { return nil }
        // What was encoded is copied, which takes less; a slow disk may take minutes all the same.
        let encoded = writer.statistics.recordedDuration / 10 * 9
        return try withExtendedLifetime(writer) { () throws(MovieError) in
            let duration = writer.statistics.recordedDuration
            return try copy([writer.openPath], [duration], file, isEncoded: true) { progress(encoded + $0 / 10) }
        }
    }

    private static func isKept(_ likeness: MovieCopier.Likeness, _ preset: ExportPreset?) -> Bool {
        guard let preset else { return true }
        let most = preset.dimensions(for: Dimensions(width: likeness.width, height: likeness.height))
        return likeness.isUsual && likeness.width <= most.width && likeness.height <= most.height
    }

    private static func copy(
        _ segments: [String], _ durations: [Int64], _ file: NewFile, isEncoded: Bool, _ progress: (Int64) -> Bool
    ) throws(MovieError) -> Whole? {
        // A movie of sound alone has none.
        let cover = segments.first.flatMap { try? self.cover($0) }
        guard let duration = try copy(segments, durations, file.rawValue, cover, progress) else { return nil }
        do throws(SystemError) {
            try file.sync()
            return Whole(
                movie: JoinedMovie(
                    duration: duration, size: try file.size(), isEncoded: isEncoded,
                    dimensions: cover.map { Dimensions(width: $0.width, height: $0.height) }, cover: cover?.bytes),
                file: file)
        } catch {
            throw .file(error)
        }
    }

    private static func copy(
        _ segments: [String], _ durations: [Int64], _ descriptor: Int32, _ cover: MovieCopier.Cover?,
        _ progress: (Int64) -> Bool
    ) throws(MovieError) -> Int64? {
        do throws(MediaError) {
            let copier = try MovieCopier(to: descriptor)
            let isDone = try copier.copy(segments, durations: durations, cover: cover, progress: progress)
            return isDone ? copier.duration : nil
        } catch {
            throw .media(error)
        }
    }

    /// The first picture of a movie.
    private static func cover(_ path: String) throws -> MovieCopier.Cover? {
        let reader = try MovieReader(path, delivers: .pictures)
        guard try reader.next() != nil else { return nil }
        let size = reader.track.uprightDimensions
        let canvas = try PictureCanvas(size, FormatDescription(pixelFormat: .motionJPEG, dimensions: size).color)
        try canvas.draw(reader)
        let bytes = try canvas.jpeg(quality: 90)
        return MovieCopier.Cover(bytes: bytes, width: size.width, height: size.height)
    }
}

extension MovieError {
    /// What is in the files is at fault, and stays so.
    public var isOfContents: Bool {
        switch self {
        case .file: false
        case .media(let error): error.isOfContents
        case .unsupported: true
        }
    }

    /// There is no room for it, or none left of what the user may have.
    public var isDiskFull: Bool {
        switch self {
        case .file(let error): error.code == ENOSPC || error.code == EDQUOT
        case .media(let error): error.errorNumber == ENOSPC || error.errorNumber == EDQUOT
        case .unsupported: false
        }
    }
}
