import BusProtocol
import CaptureLibrary
import Glibc
import JSON
import LinuxIO
import MovieFile

/// What is to be done about what nobody makes any more.
extension Librarian {
    private enum Outcome {
        /// The entry as it is now.
        case settled(LibraryEntry)
        /// Somebody makes it.
        case recording
        /// A take that was not joined to its end, of which nothing is left but its segments, or what has no file.
        case removed
        /// It is left as it was, for another time.
        case failed(String)
    }

    func recover(_ id: String?) throws(BusError) -> JSONValue {
        let entries = if let id { [try find(id, nil)] } else { try unfinished() }
        var (settled, failed, recording): ([JSONValue], [JSONValue], Int) = ([], [], 0)
        // What is finished is answered to who asks for just that.
        for entry in entries where isUnfinished(entry) || id != nil {
            switch recover(entry) {
            case .settled(let entry): settled.append(shown(entry))
            case .recording: recording += 1
            case .removed: break
            case .failed(let why): failed.append(["id": .string(entry.id), "why": .string(why)])
            }
        }
        return ["entries": .array(settled), "failed": .array(failed), "recording": JSONValue(recording)]
    }

    /// What nobody has finished, so that each can be recovered by a process of its own.
    func left() throws(BusError) -> JSONValue {
        ["ids": JSONValue(try unfinished().map(\.id))]
    }

    /// The problem of an entry whose file has ended the process that looked at it.
    private static let givenUp = "its recorder died, and its file can't be looked through"

    /// Whether it is to be recovered. Also one that was given up: the process may have ended for another reason, and
    /// each start of a bus tries again.
    func isUnfinished(_ entry: LibraryEntry) -> Bool {
        entry.state == .recording || entry.state == .damaged && entry.problem == Self.givenUp
    }

    func giveUp(_ id: String) throws(BusError) -> JSONValue {
        var entry = try find(id, nil)
        guard !isBeingMade(entry) else { return ["entries": [], "failed": [], "recording": 1] }
        if entry.state == .recording {
            entry.state = .damaged
            entry.reason = entry.reason ?? "recorderCrashed"
            entry.problem = Self.givenUp
            do throws(LibraryError) { try library.replace(entry) } catch { throw error.busError }
        }
        return ["entries": [shown(entry)], "failed": [], "recording": 0]
    }

    private func recover(_ found: LibraryEntry) -> Outcome {
        guard !isBeingMade(found) else { return .recording }
        do throws(LibraryError) {
            // It may have been finished, or deleted, since it was read.
            guard var entry = try library.entry(found.id) else { return .failed("it is gone") }
            guard isUnfinished(entry) else { return .settled(entry) }
            if entry.state == .damaged { (entry.state, entry.problem) = (.recording, nil) }
            if entry.kind == .photo { return try settlePhoto(entry) }
            if entry.isUnfinishedTake {
                try dissolve(entry)
                return .removed
            }
            guard let file = entry.file else { return try settle(entry) }
            return try mend(entry, file)
        } catch {
            return .failed("\(error)")
        }
    }

    /// Removes what a join that didn't come to its end has made. The entry goes last.
    func dissolve(_ entry: LibraryEntry) throws(LibraryError) {
        for case (let path?, let file?) in entry.files {
            do throws(SystemError) {
                _ = try HeldFolder(of: path, library: library).remove(file)
            } catch {
                guard error.code == ENOENT || error.code == ENOTDIR else { throw .file(error) }
            }
        }
        try library.remove(entry.id)
    }

    // What has its name is whole. Of a live photo both files have theirs, or neither is left.
    private func settlePhoto(_ found: LibraryEntry) throws(LibraryError) -> Outcome {
        var isWhole = true
        do throws(SystemError) {
            isWhole = try isThere(found.path, found.file)
            if isWhole, let movie = found.movie { isWhole = try isThere(movie, found.movieFile) }
        } catch {
            return .failed("\(error)")
        }
        if isWhole {
            var entry = found
            entry.state = .finished
            do throws(LibraryError) { try library.replace(entry) } catch { return .failed("\(error)") }
            return .settled(entry)
        }
        // Another file in its place is not its own.
        try remove(found.path, orCalled: LibraryEntry.temporary(found.id), found.file)
        if let movie = found.movie {
            try remove(movie, orCalled: LibraryEntry.temporaryMovie(found.id), found.movieFile)
        }
        try library.remove(found.id)
        return .removed
    }

    /// Whether a file of an entry is there, and no other in its place.
    func isThere(_ path: String, _ file: FileIdentity?) throws(SystemError) -> Bool {
        guard let file else { return false }
        do throws(SystemError) {
            return try HeldFolder(of: path, library: library).withFile(file, O_RDONLY, { _ in }) != nil
        } catch {
            guard error.code == ENOENT || error.code == ENOTDIR else { throw error }
            return false
        }
    }

    // By its name, or by what it was called where files can't be without a name.
    private func remove(_ path: String, orCalled name: String, _ file: FileIdentity?) throws(LibraryError) {
        guard let file else { return }
        let folder = path[..<(path.lastIndex(of: "/") ?? path.startIndex)]
        for place in [path, "\(folder)/\(name)"] {
            do throws(SystemError) {
                _ = try HeldFolder(of: place, library: library).remove(file)
            } catch {
                guard error.code == ENOENT || error.code == ENOTDIR else { throw .file(error) }
            }
        }
    }

    // Nobody knows which file is its own: earlier versions entered a movie before it had one.
    private func settle(_ found: LibraryEntry) throws(LibraryError) -> Outcome {
        let isThere: Bool
        do throws(SystemError) {
            isThere = try HeldFolder(of: found.path, library: library).size() != nil
        } catch {
            return .failed("\(error)")
        }
        guard isThere else {
            try library.remove(found.id)
            return .removed
        }
        var entry = found
        entry.state = .damaged
        entry.reason = entry.reason ?? "recorderCrashed"
        entry.problem = "its recorder died before it had told which file it made"
        try library.replace(entry)
        return .settled(entry)
    }

    private func mend(_ found: LibraryEntry, _ file: FileIdentity) throws(LibraryError) -> Outcome {
        do throws(SystemError) {
            let folder = try HeldFolder(of: found.path, library: library)
            let outcome = try folder.withFile(file, O_RDWR) { (descriptor) throws(SystemError) -> Outcome in
                do throws(SystemError) {
                    try WholeFileLock.take(descriptor)
                } catch {
                    return error.isWouldBlock || error.code == EACCES ? .recording : .failed("\(error)")
                }
                return mend(found, descriptor)
            }
            if let outcome { return outcome }
            // It may be on a disk that isn't here.
            guard !found.isNamed else { return .failed("its file \(found.path) is not there") }
        } catch {
            guard !found.isNamed, error.code == ENOENT else { return .failed("\(error)") }
        }
        // Its recorder died before it had given the file its name.
        try remove(found.path, orCalled: LibraryEntry.temporary(found.id), file)
        if let sideCar = found.sideCar {
            try remove(sideCar, orCalled: LibraryEntry.temporarySideCar(found.id), found.sideCarFile)
        }
        try library.remove(found.id)
        return .removed
    }

    private func mend(_ found: LibraryEntry, _ descriptor: Int32) -> Outcome {
        var entry = found
        entry.isNamed = true
        do throws(MovieError) {
            let inspection = try MovieRepair.repair(descriptor, entry.path)
            entry.duration = inspection.duration / 1_000_000
            entry.size = inspection.fileSize
            entry.reason = entry.reason ?? "recorderCrashed"
            if inspection.condition == .unplayable {
                entry.state = .damaged
                entry.problem =
                    inspection.fileSize == 0
                    ? "nothing was written before its recorder died"
                    : "its recorder died before a first fragment of it was whole"
            } else {
                entry.state = .recovered
            }
        } catch {
            return .failed("\(error)")
        }
        mendSideCar(&entry)
        // While it is locked: nobody else mends it meanwhile.
        do throws(LibraryError) {
            try library.replace(entry)
        } catch {
            return .failed("\(error)")
        }
        return .settled(entry)
    }

    // The movie is what counts.
    private func mendSideCar(_ entry: inout LibraryEntry) {
        guard let sideCar = entry.sideCar, let file = entry.sideCarFile else { return }
        do throws(SystemError) {
            let folder = try HeldFolder(of: sideCar, library: library)
            let repaired: Void? = try folder.withFile(file, O_RDWR) { (descriptor) throws(SystemError) in
                try SideCarRepair.repair(descriptor, sideCar)
            }
            if repaired == nil { (entry.sideCar, entry.sideCarFile) = (nil, nil) }
        } catch {
            if entry.problem == nil, error.code != ENOENT {
                entry.problem = "its side-car can't be mended: \(error)"
            }
        }
    }
}
