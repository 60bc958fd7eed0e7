public import CaptureCore
import FFmpeg
import Glibc
import LinuxIO
import TurboJPEG

/// A movie that was joined from others.
public struct JoinedMovie: Hashable, Sendable {
    /// Nanoseconds.
    public var duration: Int64
    /// Bytes.
    public var size: Int64
    /// Its pictures and sound were encoded anew.
    public var isEncoded: Bool
}

/// Joins the segments of a take into one MP4 file, with the first frame as its cover.
public enum MovieJoin {
    /// Joins movies in their order: as they are stored, where that is the same codec with the same parameters in all of them and MP4 can
    /// hold it, else encoded anew as H.264 and AAC. Picture and sound of each stay in step.
    ///
    /// - Parameters:
    ///   - segments: paths of plain files, which are only read.
    ///   - path: of a new file; while it is encoded there is another one beside it.
    ///   - preset: no larger than this where it is encoded; smaller pictures stay as they are, those of another shape get black borders.
    ///   - isEncoded: in any case.
    ///   - progress: told how much is done, nanoseconds of the movie; returns false to end.
    /// - Returns: nil if it was to end; there is no file then.
    @discardableResult
    public static func join(
        _ segments: [String], to path: String, preset: ExportPreset = .size1280x720, isEncoded: Bool = false,
        progress: (Int64) -> Bool = { _ in true }
    ) throws(MovieError) -> JoinedMovie? {
        guard !segments.isEmpty else { throw .unsupported("a movie of no segments") }
        let canCopy: Bool
        do throws(MediaError) { canCopy = try MovieCopier.canJoin(segments) } catch { throw .media(error) }
        if canCopy, !isEncoded { return try copy(segments, path, isEncoded: false, progress) }
        let part = "\(path).\(getpid()).part"
        guard try SegmentEncoder.encode(segments, to: part, preset, progress) else { return nil }
        defer { unlink(part) }
        return try copy([part], path, isEncoded: true) { _ in true }
    }

    private static func copy(
        _ segments: [String], _ path: String, isEncoded: Bool, _ progress: (Int64) -> Bool
    ) throws(MovieError) -> JoinedMovie? {
        // A movie of sound alone has none.
        let cover = segments.first.flatMap { try? self.cover($0) }
        var file: MovieFile
        do throws(SystemError) { file = try MovieFile(path) } catch { throw .file(error) }
        do throws(MovieError) {
            guard let duration = try copy(segments, file.rawValue, cover, progress) else {
                unlink(path)
                return nil
            }
            do throws(SystemError) {
                try file.sync()
                try file.syncDirectory()
            } catch {
                throw .file(error)
            }
            return JoinedMovie(duration: duration, size: file.syncedSize, isEncoded: isEncoded)
        } catch {
            unlink(path)
            throw error
        }
    }

    private static func copy(
        _ segments: [String], _ descriptor: Int32, _ cover: MovieCopier.Cover?, _ progress: (Int64) -> Bool
    ) throws(MovieError) -> Int64? {
        do throws(MediaError) {
            let copier = try MovieCopier(to: descriptor)
            return try copier.copy(segments, cover: cover, progress: progress) ? copier.duration : nil
        } catch {
            throw .media(error)
        }
    }

    /// The first picture of a movie.
    private static func cover(_ path: String) throws -> MovieCopier.Cover? {
        let reader = try MovieReader(path, delivers: .pictures)
        guard try reader.next() != nil else { return nil }
        let canvas = try PictureCanvas(Dimensions(width: reader.track.width, height: reader.track.height))
        try canvas.draw(reader, range: .full)
        let size = canvas.dimensions
        guard let y = canvas.planes[0], let u = canvas.planes[1], let v = canvas.planes[2] else { return nil }
        let planes = YUVPlanes(
            y: y.base, yStride: y.stride, u: u.base, uStride: u.stride, v: v.base, vStride: v.stride)
        let most = JPEGCompressor.maximumBytes(width: size.width, height: size.height, subsampling: .s420)
        let bytes = try [UInt8](unsafeUninitializedCapacity: most) { buffer, count in
            count = try JPEGCompressor().compress(
                planes, width: size.width, height: size.height, subsampling: .s420, quality: 90,
                into: UnsafeMutableRawBufferPointer(buffer))
        }
        return MovieCopier.Cover(bytes: bytes, width: size.width, height: size.height)
    }
}
