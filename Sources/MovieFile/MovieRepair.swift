import CaptureCore
import FFmpeg
import Glibc
import LinuxIO

/// What a movie's file is.
public enum MovieCondition: Hashable, Sendable {
    /// It was finished, or has been repaired: it has its index.
    case whole
    /// It was never finished. What is whole of it plays; the rest, if there is any, is a torn fragment.
    case playable
    /// Nothing of it plays: no fragment is whole, or it is no movie of this kind.
    case unplayable
}

/// What was found in a movie's file.
public struct MovieInspection: Hashable, Sendable {
    public var condition: MovieCondition
    /// How long what plays is, nanoseconds; 0 where that is not known without reading all of it.
    public var duration: Int64
    /// So much of the file is whole fragments, bytes.
    public var wholeSize: Int64
    public var fileSize: Int64

    public init(condition: MovieCondition, duration: Int64, wholeSize: Int64, fileSize: Int64) {
        self.condition = condition
        self.duration = duration
        self.wholeSize = wholeSize
        self.fileSize = fileSize
    }
}

/// Looks at movies that were found after a crash or a power cut, and mends them.
public enum MovieRepair {
    /// Looks at a file, by the heads of its parts; its samples are not read.
    ///
    /// - Throws: only what the system refuses; a file that is no movie is ``MovieCondition/unplayable``.
    public static func inspect(_ path: String) throws(MovieError) -> MovieInspection {
        let file = try open(path, O_RDONLY)
        return try inspect(file.rawValue, path).inspection
    }

    /// Cuts off an incomplete last fragment, by its headers, and gives MP4 and QuickTime the index of a finished file.
    /// A complete file, or one of which nothing plays, stays unchanged.
    ///
    /// - Returns: what the file is now.
    public static func repair(_ path: String) throws(MovieError) -> MovieInspection {
        let file = try open(path, O_RDWR)
        return try repair(file.rawValue, path)
    }

    /// The same of a plain file that is open for reading and writing.
    public static func repair(_ descriptor: Int32, _ path: String) throws(MovieError) -> MovieInspection {
        let (found, type) = try inspect(descriptor, path)
        guard found.condition == .playable else { return found }
        do throws(SystemError) {
            try check("ftruncate", path) { ftruncate(descriptor, Int(found.wholeSize)) }
            try check("fsync", path) { fsync(descriptor) }
        } catch {
            throw .file(error)
        }
        // Without room for an index it plays all the same.
        if let type, type != .mkv { _ = try? MovieIndex.complete(descriptor, as: type.container) }
        return try inspect(descriptor, path).inspection
    }

    private static func open(_ path: String, _ flags: Int32) throws(MovieError) -> FileDescriptor {
        do throws(SystemError) {
            let file = try FileDescriptor(opening: path, flags | O_NOFOLLOW | O_NONBLOCK)
            var status = stat()
            try check("fstat", path) { fstat(file.rawValue, &status) }
            guard status.st_mode & S_IFMT == S_IFREG else {
                throw SystemError(code: EINVAL, operation: "open", subject: path)
            }
            return file
        } catch {
            throw .file(error)
        }
    }

    private static func inspect(
        _ descriptor: Int32, _ path: String
    ) throws(MovieError) -> (inspection: MovieInspection, type: MovieFileType?) {
        let reader: FileBytes
        do throws(SystemError) { reader = try FileBytes(descriptor, path) } catch { throw .file(error) }
        var scan = MovieScan()
        var type: MovieFileType?
        if let kind = BoxScan.fileType(reader) {
            type = kind
            scan = BoxScan.scan(reader)
            if scan.wholeSize > 0 {
                let contents = try? MovieIndex.contents(of: descriptor, length: scan.wholeSize)
                scan.duration = contents?.duration ?? 0
            }
        } else if MatroskaScan.isMatroska(reader) {
            type = .mkv
            scan = MatroskaScan.scan(reader)
        }
        let condition: MovieCondition = scan.isFinished ? .whole : scan.fragments > 0 ? .playable : .unplayable
        let inspection = MovieInspection(
            condition: condition, duration: condition == .unplayable ? 0 : scan.duration,
            wholeSize: condition == .unplayable ? 0 : scan.wholeSize, fileSize: reader.size)
        return (inspection, type)
    }
}
