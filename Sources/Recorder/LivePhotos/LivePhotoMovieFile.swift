import BusProtocol
import CaptureCore
import CaptureLibrary
import FFmpeg
import Glibc
import LinuxIO
import MovieFile

/// The movie of a live photo while it is made. Used by one thread at a time.
final class LivePhotoMovieFile {
    /// What all movies of a recorder are made of.
    struct Source {
        /// Of decoded pictures.
        var picture: FrameLayout
        /// nil: there is none.
        var sound: SoundTrackPlan?
    }

    /// The recorder's order.
    let number: UInt64
    let photo: LivePhotoOrder
    let path: String
    /// The next picture, and piece of sound, that are to be written.
    private(set) var nextPicture: UInt64 = 0
    private(set) var nextSound: UInt64 = 0
    /// Pictures that were held no more, or damaged, or came too late.
    private(set) var lost: UInt64 = 0
    /// Of one that was damaged: why it could not be decoded.
    private var damage: String?
    /// nil: where it begins isn't known yet.
    private var writer: MovieWriter?
    /// Of its first picture.
    private var start: Instant = 0
    /// From when on pictures are to be in it.
    private var earliest: Instant = 0
    private var soundFormat: AudioFormat?
    private var size = Dimensions(width: 0, height: 0)

    /// All of it is in memory until it is finished: one fragment.
    private static let fragmentInterval: Int64 = 60_000_000_000
    /// A movie is made beside the session's other work.
    private static let preset = "superfast"

    init(_ number: UInt64, _ photo: LivePhotoOrder, _ path: String) {
        self.number = number
        self.photo = photo
        self.path = path
    }

    var isBegun: Bool { writer != nil }
    /// Sound is to be in it.
    var hasSound: Bool { soundFormat != nil }

    /// Makes the file, from that picture on.
    ///
    /// - Parameter earliest: from when on pictures are to be in it.
    func begin(
        at first: LivePhotoBuffer.Place, since earliest: Instant, _ source: Source, _ request: MovieRequest
    ) throws(BusError) {
        (nextPicture, start, self.earliest) = (first.number, first.time, earliest)
        size = source.picture.dimensions
        let rate = source.picture.description.frameDuration?.framesPerSecond
        var settings = MovieFileType.mov.recommendedVideoSettings(size, frameRate: rate)
        settings.preset = Self.preset
        var configuration = MovieConfiguration(
            .mov, video: .encoded(source.picture, settings), audio: source.sound.map { $0.movieAudio(request) })
        configuration.movieFragmentInterval = Self.fragmentInterval
        configuration.creationDate = MonotonicClock.realtime(of: photo.moment)
        configuration.tags[MovieConfiguration.contentIdentifier] = photo.identifier.text
        do throws(MovieError) {
            let writer = try MovieWriter(path, configuration, mode: 0o600)
            writer.startSession(atSourceTime: start)
            (self.writer, soundFormat) = (writer, source.sound?.audio)
        } catch {
            throw Self.failure(error, path)
        }
    }

    /// Writes a decoded picture, which is shown until that time at the latest.
    ///
    /// - Parameters:
    ///   - picture: nil: it is damaged.
    ///   - damage: why, then.
    func add(
        _ picture: UnsafeRawBufferPointer?, damage: String?, _ place: LivePhotoBuffer.Place, until end: Instant
    ) throws(BusError) {
        lost += place.number - nextPicture
        nextPicture = place.number + 1
        guard let picture, let writer else {
            lost += 1
            self.damage = damage
            return
        }
        writer.endSession(atSourceTime: end)
        do throws(MovieError) {
            if try !writer.append(picture, at: place.time) { lost += 1 }
        } catch {
            throw Self.failure(error, path)
        }
        try check(writer)
    }

    /// Writes a piece of sound, up to that time.
    func add(sound: UnsafeRawBufferPointer, _ place: LivePhotoBuffer.Place, until end: Instant) throws(BusError) {
        nextSound = place.number + 1
        guard let writer, let soundFormat, end > place.time else { return }
        let left = min(end.subtractingReportingOverflow(place.time).partialValue, LivePhotoBuffer.duration)
        let most = left / 1000 * Int64(soundFormat.rate) / 1_000_000
        let bytes = min(sound.count, Int(most) * soundFormat.frameBytes)
        guard bytes > 0 else { return }
        do throws(MovieError) {
            _ = try writer.append(sound: UnsafeRawBufferPointer(rebasing: sound[..<bytes]), at: place.time)
        } catch {
            throw Self.failure(error, path)
        }
        try check(writer)
    }

    private func check(_ writer: MovieWriter) throws(BusError) {
        guard let end = writer.end else { return }
        throw end == .diskFull ? BusError.diskFull(path) : BusError.livePhotoMovie("it can't be written")
    }

    /// Closes the file.
    ///
    /// - Parameter taken: how many pictures its camera took from one time to the other.
    /// - Returns: what it has become.
    func finish(
        _ window: LivePhotoWindow, _ taken: (_ from: Instant, _ to: Instant) -> UInt64
    ) throws(BusError) -> LivePhotoMovie {
        guard let writer else { throw .livePhotoMovie("no picture of its moment has come") }
        do throws(MovieError) {
            _ = try writer.finishWriting()
        } catch {
            throw Self.failure(error, path)
        }
        try check(writer)
        let statistics = writer.statistics
        guard statistics.frames > 0 else {
            throw .livePhotoMovie("none of its pictures could be decoded" + (damage.map { ": \($0)" } ?? ""))
        }
        let taken = taken(earliest, window.end)
        return LivePhotoMovie(
            identifier: photo.identifier, dimensions: size, bytes: Int(statistics.recordedFileSize),
            duration: statistics.recordedDuration, photoDisplayTime: max(0, window.moment - start),
            dropped: Int(taken - min(taken, UInt64(statistics.frames))))
    }

    /// Leaves nothing of it.
    func remove() {
        guard let writer else { return }
        writer.cancelWriting()
        File.remove(path)
        self.writer = nil
    }

    private static func failure(_ error: MovieError, _ path: String) -> BusError {
        if case .file(let cause) = error, cause.code == ENOSPC || cause.code == EDQUOT { return .diskFull(path) }
        return .livePhotoMovie("\(error)")
    }
}
