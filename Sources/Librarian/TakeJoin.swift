import BusProtocol
import CaptureCore
import CaptureLibrary
import Glibc
import JSON
import LinuxIO
import MovieFile

/// Makes one movie of a take's segments.
///
/// The file is made without a name. Its entry is there before its name is, hidden as long as it is unfinished, so that
/// whoever looks after a crash finds either the whole take or nothing of it (``Librarian/recover(_:)``).
extension Librarian {
    func join(
        _ join: LibrarianRequest.Join, _ uid: UInt32?, _ progress: @escaping (Double) -> Bool
    ) throws(BusError) -> JSONValue {
        guard !join.segments.isEmpty else { throw .invalidParams("segments", "must have at least one") }
        let lockPath = runtimeDirectory.movieLock(join.take)
        let lock: LockFile
        do throws(SystemError) {
            lock = try LockFile(lockPath, isSigned: true)
        } catch {
            throw error.isWouldBlock
                ? .isBeingJoined(join.take) : BusError(.internalError, "The take can't be locked: \(error).")
        }
        // Ids are given once.
        defer { File.remove(lockPath) }
        return try withExtendedLifetime(lock) { () throws(BusError) in
            try clearAway(join.take)
            var segments: [JoinedSegment] = []
            for id in join.segments { segments.append(try segment(id, uid)) }
            let path = try JoinTarget(join.path, "path", join.root, library)
            let cover: JoinTarget? =
                if let cover = join.cover { try JoinTarget(cover, "cover", join.root, library) } else { nil }
            return try withExtendedLifetime((path, cover)) { () throws(BusError) in
                try make(join, segments, path, cover, progress)
            }
        }
    }

    // What a librarian has left that was ended.
    private func clearAway(_ take: String) throws(BusError) {
        do throws(LibraryError) {
            guard let entry = try library.entry(take) else { return }
            guard entry.isUnfinishedTake else { throw .exists(take) }
            try dissolve(entry)
        } catch {
            if case .exists = error { throw .invalidParams("take", "\(take) is finished already") }
            throw error.busError
        }
    }

    private func segment(_ id: String, _ uid: UInt32?) throws(BusError) -> JoinedSegment {
        let entry = try find(id, uid)
        guard entry.kind == .movie, entry.state == .finished || entry.state == .recovered, let identity = entry.file
        else {
            throw isBeingMade(entry)
                ? .isBeingMade(id) : .invalidParams("segments", "\(id) does not play; delete it from the take")
        }
        do throws(SystemError) {
            if let file = try HeldFolder(of: entry.path, library: library).open(identity) {
                return JoinedSegment(entry: entry, file: file)
            }
        } catch {
            guard error.code == ENOENT || error.code == ENOTDIR else {
                throw BusError(.internalError, "The segment \(id) can't be read: \(error).")
            }
        }
        throw .invalidParams("segments", "the file of \(id) is gone; delete it from the take")
    }

    private func make(
        _ join: LibrarianRequest.Join, _ segments: [JoinedSegment], _ path: JoinTarget, _ cover: JoinTarget?,
        _ progress: @escaping (Double) -> Bool
    ) throws(BusError) -> JSONValue {
        let meter = JoinMeter(of: segments.map(\.entry), progress)
        guard meter.note(0) else { throw .joinIsGivenUp }
        let whole: MovieJoin.Whole?
        do throws(MovieError) {
            whole = try MovieJoin.make(
                segments.map(\.file.path), durations: segments.map(\.nanoseconds),
                at: path.openPath, mode: library.mode(of: path.place),
                temporary: ".\(join.take).part", preset: join.preset
            ) { meter.note($0) }
        } catch {
            throw path.failure(error)
        }
        // Its segments are not kept beside it.
        if let whole, whole.movie.duration / 1_000_000 < Self.leastDuration(of: segments.map(\.entry)) {
            throw BusError(.internalError, "The joined movie is shorter than its segments; the segments are kept.")
        }
        // Nobody would know of it.
        guard let whole, progress(1) else { throw .joinIsGivenUp }
        var coverFile: NewFile?
        if let cover, let bytes = whole.movie.cover {
            do throws(SystemError) {
                let file = try NewFile(
                    cover.openPath, mode: library.mode(of: cover.place), temporary: ".\(join.take).cover.part")
                try file.write(bytes)
                coverFile = file
            } catch {
                throw cover.failure(error)
            }
        }
        var entry = LibraryEntry(joining: segments.map(\.entry), as: join, at: path.place, whole.movie)
        do throws(SystemError) {
            entry.file = try whole.file.identity()
            if let cover, let coverFile { (entry.cover, entry.coverFile) = (cover.place, try coverFile.identity()) }
        } catch {
            throw path.failure(error)
        }
        do throws(LibraryError) { try library.add(entry) } catch { throw path.failure(error) }
        do throws(BusError) {
            if let cover, let coverFile { try cover.publish(coverFile) }
            try path.publish(whole.file)
            entry.state = .finished
            do throws(LibraryError) { try library.replace(entry) } catch { throw path.failure(error) }
        } catch {
            whole.file.withdraw()
            coverFile?.withdraw()
            // Else it is removed when somebody looks for what was left.
            try? library.remove(entry.id)
            throw error
        }
        return [
            "id": .string(entry.id), "path": .string(entry.path), "cover": entry.cover.map(JSONValue.string) ?? .null,
            "duration": .integer(entry.duration), "size": .integer(entry.size),
            "encoded": .bool(whole.movie.isEncoded), "entry": shown(entry),
        ]
    }

    /// Milliseconds: a movie of these that lasts less lacks something of them. What recorders and recovery tell of each
    /// is not exact.
    private static func leastDuration(of segments: [LibraryEntry]) -> Int64 {
        segments.reduce(0) { $0 &+ max(0, $1.duration - $1.duration / 100 - 500) }
    }
}

private struct JoinedSegment {
    let entry: LibraryEntry
    let file: HeldFile

    /// How long it is by its entry; 0: the entry can't be right.
    var nanoseconds: Int64 {
        let (nanoseconds, isOver) = entry.duration.multipliedReportingOverflow(by: 1_000_000)
        return isOver ? 0 : max(0, nanoseconds)
    }
}

/// A file that is to be made, in a folder that is held open: nobody can lead it elsewhere meanwhile.
private final class JoinTarget {
    let path: String
    /// The same as it is entered: without links, which nobody follows who looks for the file, but those on the way to
    /// the library.
    let place: String
    private let member: String
    private let folder: HeldFolder

    /// - Parameters:
    ///   - member: which of the request's it is.
    ///   - root: it has to lie in there, links followed; nil: wherever it is.
    init(_ path: String, _ member: String, _ root: String?, _ library: CaptureLibrary) throws(BusError) {
        self.path = path
        self.member = member
        guard !path.hasSuffix("/"), !path.split(separator: "/").contains("..") else {
            throw .invalidParams(member, "must be a file's path, without '..'")
        }
        let base = root ?? (library.contains(path) ? library.directory : nil)
        if let base, !MoviePlace.contains(base, path) { throw .invalidParams(member, "is not in \(base)") }
        do throws(LibraryError) { try library.makeFolder(for: path) } catch { throw error.busError }
        do throws(SystemError) {
            folder = if let base { try HeldFolder(of: path, below: base) } else { try HeldFolder(anywhere: path) }
            place = library.contains(path) ? path : try folder.realPath()
        } catch {
            throw .invalidParams(member, "\(error)")
        }
    }

    var openPath: String { folder.path }

    func publish(_ file: NewFile) throws(BusError) {
        do throws(SystemError) { try file.publish() } catch { throw failure(error) }
    }

    func failure(_ error: MovieError) -> BusError {
        if error.isDiskFull { return .diskFull(path) }
        if case .file(let error) = error { return failure(error) }
        if error.isOfContents { return .invalidParams("segments", "can't be joined: \(error)") }
        return BusError(.internalError, "The segments can't be joined: \(error).")
    }

    func failure(_ error: LibraryError) -> BusError {
        if case .file(let error) = error, error.code == ENOSPC || error.code == EDQUOT { return .diskFull(path) }
        return error.busError
    }

    func failure(_ error: SystemError) -> BusError {
        switch error.code {
        case ENOSPC, EDQUOT: .diskFull(path)
        case EEXIST: .invalidParams(member, "this file exists already: \(path)")
        case EACCES, EPERM, EROFS, ENAMETOOLONG: .invalidParams(member, "\(path) can't be created: \(error)")
        default: BusError(.internalError, "\(path) can't be written: \(error).")
        }
    }
}

/// Tells how much is done, at most ten times a second.
private final class JoinMeter {
    /// Nanoseconds of the movie that is made, as far as that is known.
    private let total: Int64
    private let tell: (Double) -> Bool
    private var told: (part: Double, time: Int64)?

    private static let interval: Int64 = 100_000_000

    init(of segments: [LibraryEntry], _ tell: @escaping (Double) -> Bool) {
        // Milliseconds; no library has more than fit.
        total = segments.reduce(0) { $0 &+ $1.duration &* 1_000_000 }
        self.tell = tell
    }

    /// - Returns: false: nobody wants it any more.
    func note(_ done: Int64) -> Bool {
        let now = MonotonicClock.now()
        if let told, now - told.time < Self.interval { return true }
        let part = max(told?.part ?? 0, total > 0 ? min(1, Double(done) / Double(total)) : 0)
        told = (part, now)
        return tell(part)
    }
}

extension LibraryEntry {
    /// What is made of these, which are at least one.
    fileprivate init(
        joining segments: [LibraryEntry], as join: LibrarianRequest.Join, at path: String, _ movie: JoinedMovie
    ) {
        let first = segments[0]
        var devices: [LibraryDevice] = []
        for device in segments.flatMap(\.devices) where !devices.contains(device) { devices.append(device) }
        self.init(
            id: join.take, kind: .take, path: path, devices: devices,
            microphone: segments.lazy.compactMap(\.microphone).first, started: first.started, fileType: "mp4",
            video: first.video, audio: segments.lazy.compactMap(\.audio).first { !$0.isNull }, session: first.session,
            take: join.take, owner: first.owner)
        duration = movie.duration / 1_000_000
        size = movie.size
        frames = segments.reduce(0) { $0 &+ ($1.frames ?? 0) }
        dropped = segments.reduce(0) { $0 &+ ($1.dropped ?? 0) }
        guard movie.isEncoded else { return }
        if let size = movie.dimensions {
            var members: [String: JSONValue] = [
                "codec": "h264", "width": JSONValue(size.width), "height": JSONValue(size.height),
            ]
            members["frameRate"] = first.video?["frameRate"]
            video = .object(members)
        }
        if var members = audio?.object {
            members["codec"] = "aac"
            members["bitRate"] = nil
            audio = .object(members)
        }
    }
}

extension BusError {
    fileprivate static func isBeingJoined(_ take: String) -> BusError {
        BusError(.recordingInProgress, "The take \(take) is being joined already.", ["take": .string(take)])
    }

    fileprivate static let joinIsGivenUp = BusError(.cancelled, "No client waits for the take any longer.")
}
