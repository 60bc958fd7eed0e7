public import BusProtocol
public import CaptureCore
import CaptureLibrary
import Glibc
public import JSON
import LinuxIO

/// Answers questions about the capture library.
///
/// Nothing is removed but what is asked to be, and nothing is changed that somebody is making.
public struct Librarian {
    let library: CaptureLibrary
    let runtimeDirectory: RuntimeDirectory

    /// - Parameters:
    ///   - directory: of the library, absolute. One that isn't there has no entries.
    ///   - isShared: whether the bus's group may read what is made in it.
    ///   - runtimeDirectory: of the bus, whose recorders hold their locks there.
    /// - Throws: `internalError` when there can be no library there.
    public init(
        _ directory: String, isShared: Bool = false, runtimeDirectory: RuntimeDirectory
    ) throws(BusError) {
        do throws(LibraryError) {
            library = try CaptureLibrary(directory, isShared: isShared, isMade: false)
        } catch {
            throw error.busError
        }
        self.runtimeDirectory = runtimeDirectory
    }

    /// Does what is asked for.
    ///
    /// - Parameters:
    ///   - output: a descriptor that takes the part of a file; standard input unless said otherwise.
    ///   - progress: told how much of a take is joined, from 0 to 1; returns false to end.
    /// - Throws: `entryNotFound`, `recordingInProgress`, `pathNotAllowed`, `invalidParams`, `diskFull`, `cancelled`;
    ///   `internalError` for what the system refuses.
    public func answer(
        _ request: LibrarianRequest, output: Int32 = 0,
        progress: @escaping (Double) -> Bool = { _ in true }
    ) throws(BusError) -> JSONValue {
        switch request.action {
        case .list(let filter): try list(filter, request.uid)
        case .get(let id): try get(id, request.uid)
        case .read(let part): try read(part, request.uid, to: output)
        case .delete(let id): try delete(id, request.uid)
        case .recover(let id): try recover(id)
        case .left: try left()
        case .giveUp(let id): try giveUp(id)
        case .join(let join): try self.join(join, request.uid, progress)
        case .applyAccess: try applyAccess()
        case .usage: try usage()
        }
    }

    private func applyAccess() throws(BusError) -> JSONValue {
        do throws(LibraryError) {
            let (changed, foreign) = try library.applyAccess()
            return ["changed": JSONValue(changed), "foreign": JSONValue(foreign)]
        } catch {
            throw error.busError
        }
    }

    private func usage() throws(BusError) -> JSONValue {
        let index = try index()
        do throws(LibraryError) {
            let users = try index.usage()
            return ["users": .array(users.map { ["uid": JSONValue($0.uid), "bytes": .integer($0.bytes)] })]
        } catch {
            throw error.busError
        }
    }

    // MARK: What there is

    /// Calls the body with each entry that may be meant, the newest first, and with its id alone where it can't be
    /// read, until it returns false.
    private func forEach(
        _ filter: LibrarianRequest.Filter, _ uid: UInt32?, in index: LibraryIndex,
        _ body: (Result<LibraryEntry, LibraryError>, String) -> Bool
    ) throws(BusError) {
        do throws(LibraryError) {
            // One more, by which it shows that there are more.
            let count = filter.limit + 1
            var places = try index.places(filter, user: uid, after: nil, count: count)
            while let last = places.last {
                for place in places {
                    let entry: Result<LibraryEntry, LibraryError>
                    do throws(LibraryError) {
                        // Gone since.
                        guard let found = try library.entry(place.id) else { continue }
                        entry = .success(found)
                    } catch {
                        entry = .failure(error)
                    }
                    guard body(entry, place.id) else { return }
                }
                if places.count < count { return }
                places = try index.places(filter, user: uid, after: last, count: count)
            }
        } catch {
            throw error.busError
        }
    }

    private func index() throws(BusError) -> LibraryIndex {
        do throws(LibraryError) { return try LibraryIndex(of: library) } catch { throw error.busError }
    }

    /// What is not finished, the newest first.
    func unfinished() throws(BusError) -> [LibraryEntry] {
        var entries: [LibraryEntry] = []
        let index = try self.index()
        // Those that were given up once come last.
        for state in [LibraryEntry.State.recording, .damaged] {
            let filter = LibrarianRequest.Filter(
                state: state.rawValue, limit: LibrarianRequest.Filter.maximumLimit)
            try forEach(filter, nil, in: index) { entry, _ in
                if case .success(let entry) = entry, entry.state == state, isUnfinished(entry) { entries.append(entry) }
                return true
            }
        }
        return entries
    }

    /// - Throws: `entryNotFound`, also for what is somebody else's.
    func find(_ id: String, _ uid: UInt32?) throws(BusError) -> LibraryEntry {
        let entry: LibraryEntry?
        do throws(LibraryError) {
            entry = try library.entry(id)
        } catch {
            // What can't be read can't be told to be the caller's.
            if uid != nil, case .unreadable = error { throw .entryNotFound(id) }
            throw error.busError
        }
        guard let entry, uid.map({ $0 == entry.owner.uid }) ?? true else { throw .entryNotFound(id) }
        return entry
    }

    private func get(_ id: String, _ uid: UInt32?) throws(BusError) -> JSONValue {
        // What becomes of a take that is being joined can't be told yet.
        let refusal =
            uid == nil && DeviceID.isValid(id) && isHeld(runtimeDirectory.movieLock(id))
            ? BusError.isBeingMade(id) : .entryNotFound(id)
        do throws(BusError) {
            let entry = try find(id, uid)
            if !entry.isUnfinishedTake { return ["entry": shown(entry)] }
        } catch {
            guard error.reason == .entryNotFound else { throw error }
        }
        throw refusal
    }

    private func list(_ filter: LibrarianRequest.Filter, _ uid: UInt32?) throws(BusError) -> JSONValue {
        let index = try index()
        var (entries, unreadable): ([JSONValue], [(id: String, why: String)]) = ([], [])
        var hasMore = false
        try forEach(filter, uid, in: index) { found, id in
            switch found {
            case .success(let entry):
                guard entry.isMeant(filter, uid) else { return true }
                let shown = shown(entry)
                if let state = filter.state, shown["state"]?.string != state { return true }
                hasMore = entries.count >= filter.limit
                if !hasMore { entries.append(shown) }
                return !hasMore
            case .failure(let error):
                unreadable.append((id, error.why))
                return true
            }
        }
        var members: [String: JSONValue] = ["entries": .array(entries), "more": .bool(hasMore)]
        // They are nobody's whom one could name.
        if uid == nil {
            do throws(LibraryError) { unreadable += try index.problems() } catch { throw error.busError }
            unreadable.sort { $0.id < $1.id }
            if !unreadable.isEmpty {
                members["unreadable"] = .array(
                    unreadable.prefix(filter.limit).map { ["id": .string($0.id), "why": .string($0.why)] })
            }
        }
        return .object(members)
    }

    /// An entry as clients see it: also whether its file is there, and of a live photo both.
    func shown(_ entry: LibraryEntry) -> JSONValue {
        var shown = entry
        (shown.lock, shown.file, shown.sideCarFile, shown.coverFile) = (nil, nil, nil, nil)
        (shown.movieFile, shown.isNamed) = (nil, true)
        var (isMissing, lacksMovie) = (false, false)
        do throws(SystemError) {
            let folder = try HeldFolder(of: entry.path, library: library)
            let size = try folder.size()
            isMissing = size == nil
            // Another may lie in its place.
            if let file = entry.file { isMissing = try folder.withFile(file, O_RDONLY) { _ in } == nil }
            if entry.state == .recording, !isMissing, let size { shown.size = size }
            if let movie = entry.movie { lacksMovie = try !isThere(movie, entry.movieFile) }
        } catch {
            isMissing = error.code == ENOENT || error.code == ENOTDIR
            if !isMissing, shown.problem == nil { shown.problem = "its file can't be looked at: \(error)" }
        }
        // A recorder enters what it is going to make before it makes it.
        if entry.state == .recording {
            if isBeingMade(entry) {
                (isMissing, lacksMovie) = (false, false)
            } else if entry.kind == .photo {
                // It got its name when it was whole.
                if !isMissing, !lacksMovie { shown.state = .finished }
            } else {
                shown.state = .damaged
                shown.problem = shown.problem ?? "whoever made it has died, and it was not mended yet"
            }
        }
        if !isMissing, lacksMovie { shown.problem = shown.problem ?? "its movie is not there" }
        guard isMissing || lacksMovie, var members = shown.json.object else { return shown.json }
        members["state"] = "missing"
        return .object(members)
    }

    // MARK: Who makes it

    /// Whether a process that lives makes it, or that can't be known. Ids are given once: what nobody makes any more
    /// nobody begins to make.
    func isBeingMade(_ entry: LibraryEntry) -> Bool {
        let locks = Set([entry.lock, runtimeDirectory.movieLock(entry.id)].compactMap(\.self))
        return locks.contains(where: isHeld) || isBeingWritten(entry)
            || (entry.kind == .photo && library.isBeingStored(entry.id))
    }

    private func isHeld(_ lock: String) -> Bool {
        guard access(lock, R_OK) == 0 else { return errno != ENOENT && errno != ENOTDIR }
        if case .somebody = LockFile.holder(of: lock) { return true }
        return false
    }

    // By a recorder of whichever bus, whose lock file may be elsewhere or gone.
    private func isBeingWritten(_ entry: LibraryEntry) -> Bool {
        guard let file = entry.file else { return false }
        do throws(SystemError) {
            return try HeldFolder(of: entry.path, library: library).withFile(file, O_RDONLY) {
                WholeFileLock.isTaken($0)
            } ?? false
        } catch {
            // What can't be opened is not changed either.
            return false
        }
    }

    // MARK: What is not wanted any more

    // The entry goes last: what is left after a crash can still be asked for, and deleted.
    private func delete(_ id: String, _ uid: UInt32?) throws(BusError) -> JSONValue {
        let entry = try find(id, uid)
        guard !isBeingMade(entry) else { throw .isBeingMade(id) }
        var deleted: [String] = []
        for (path, file) in entry.files {
            // What lies there may be anybody's.
            guard let path, let file else { continue }
            do throws(SystemError) {
                if try HeldFolder(of: path, library: library).remove(file) { deleted.append(path) }
            } catch {
                guard error.code == ENOENT || error.code == ENOTDIR else {
                    throw BusError(
                        .internalError, "\(path) can't be deleted: \(error). The entry \(id) is still there.")
                }
            }
        }
        do throws(LibraryError) {
            try library.remove(id)
        } catch {
            throw error.busError
        }
        return ["id": .string(id), "deleted": JSONValue(deleted)]
    }
}

extension LibraryEntry {
    /// A take that is being joined, or was when its librarian was ended: its segments are what there is.
    var isUnfinishedTake: Bool { kind == .take && state == .recording }

    /// Its files, as far as there are any, and which they are.
    var files: [(path: String?, identity: FileIdentity?)] {
        [(path, file), (sideCar, sideCarFile), (cover, coverFile), (movie, movieFile)]
    }

    /// Whether it is chosen, as far as its file and its maker don't count.
    fileprivate func isMeant(_ filter: LibrarianRequest.Filter, _ uid: UInt32?) -> Bool {
        if isUnfinishedTake { return false }
        if let uid, owner.uid != uid { return false }
        if let since = filter.since, started < since { return false }
        if let wanted = filter.kind, kind.rawValue != wanted { return false }
        if let wanted = filter.take, take != wanted { return false }
        if let wanted = filter.photo, photo?.uniqueID != wanted { return false }
        if let prefix = filter.prefix, !id.hasPrefix(prefix) { return false }
        if let device = filter.device { return shows(device) }
        return true
    }

    /// Whether a device of that id or `uniqueID` took part in it.
    private func shows(_ device: String) -> Bool {
        (devices + [microphone].compactMap(\.self)).contains { $0.device == device || $0.uniqueID == device }
    }
}

extension BusError {
    static func entryNotFound(_ id: String) -> BusError {
        BusError(.entryNotFound, "The library has no entry '\(id)'.", ["id": .string(id)])
    }

    static func isBeingMade(_ id: String) -> BusError {
        BusError(.recordingInProgress, "\(id) is being recorded; stop it first.", ["movie": .string(id)])
    }
}

extension LibraryError {
    /// Of an entry whose id is told beside it.
    var why: String {
        guard case .unreadable(_, let why) = self else { return description }
        return why
    }

    /// As clients are told it.
    var busError: BusError {
        if case .invalidID(let id) = self { return .entryNotFound(id) }
        return BusError(.internalError, "The capture library failed: \(self).")
    }
}
