import Glibc
import LinuxIO

/// A photo on its way into the library; of a live photo, its picture and its movie.
///
/// Its entry says which files it is before there is anything in them, and each gets its name when all are whole. So
/// whoever's process ends between two steps leaves either nothing, or an entry with the state `recording` beside files
/// that are whole, or lack.
public final class NewPhoto {
    // Used by one thread at a time.

    private let library: CaptureLibrary
    private let file: NewFile
    /// nil: it is no live photo.
    private let movie: NewFile?
    /// Locked as long as this lives: by that others know that somebody makes it (``CaptureLibrary/isBeingStored(_:)``).
    private let held: NewFile
    /// As it is in the library now.
    public private(set) var entry: LibraryEntry

    /// Makes the files, which have no names yet, and enters them.
    ///
    /// - Parameters:
    ///   - entry: of the kind `photo`; its path is in the library, and there is no such file. With a movie, which is to
    ///     lie beside it and isn't there either, it is a live photo.
    ///   - size: bytes that the picture's file is going to have.
    /// - Throws: `EEXIST` and what else the system refuses; ``LibraryError/exists(_:)``. Nothing is left then.
    public init(_ entry: LibraryEntry, size: Int, in library: CaptureLibrary) throws(LibraryError) {
        self.library = library
        try library.makeFolder(for: entry.path)
        var entry = entry
        do throws(SystemError) {
            file = try NewFile(
                entry.path, mode: library.mode(of: entry.path), temporary: LibraryEntry.temporary(entry.id))
            entry.file = try file.identity()
            if let path = entry.movie {
                let movie = try NewFile(
                    path, mode: library.mode(of: path), temporary: LibraryEntry.temporaryMovie(entry.id))
                entry.movieFile = try movie.identity()
                self.movie = movie
            } else {
                movie = nil
            }
        } catch {
            throw .file(error)
        }
        entry.state = .recording
        entry.size = Int64(size)
        held = try library.addHeld(entry)
        self.entry = entry
    }

    /// Adds bytes to the picture's file.
    public func write(_ bytes: [UInt8]) throws(LibraryError) {
        do throws(SystemError) { try file.write(bytes) } catch { throw .file(error) }
    }

    /// Adds all of a file to the movie, if it has one.
    public func writeMovie(_ source: LivePhotoFile) throws(LibraryError) {
        guard let movie else { return }
        do throws(SystemError) { try source.copy(to: movie) } catch { throw .file(error) }
    }

    /// Gives the picture's file its name. All of it is on the disk then.
    public func publish() throws(LibraryError) {
        do throws(SystemError) { try file.publish() } catch { throw .file(error) }
    }

    /// Gives the movie its name, if it has one. All of it is on the disk then.
    public func publishMovie() throws(LibraryError) {
        do throws(SystemError) { try movie?.publish() } catch { throw .file(error) }
    }

    /// Enters it as whole.
    public func finish() throws(LibraryError) {
        var finished = entry
        finished.state = .finished
        try library.replace(finished)
        entry = finished
    }

    /// Takes all of it away again, as far as the system lets us.
    public func discard() {
        movie?.withdraw()
        file.withdraw()
        try? library.remove(entry.id)
    }
}

extension CaptureLibrary {
    /// Stores a photo: a whole file of these bytes, its movie where it is a live photo, and its entry.
    ///
    /// - Parameters:
    ///   - entry: of the kind `photo`; its path is in the library, and there is no such file. Its `movie` likewise,
    ///     where it is a live photo.
    ///   - movie: what is copied there.
    ///   - isWanted: asked when the files are whole; false: it is given up.
    /// - Returns: its entry, finished, with the files' identities and the picture's size.
    /// - Throws: what the system refuses (`EEXIST`, `ENOSPC`, `EDQUOT`, …), `ECANCELED` where it was given up, and
    ///   ``LibraryError/exists(_:)``. Nothing is left of it then.
    public func store(
        _ entry: LibraryEntry, _ bytes: [UInt8], movie: LivePhotoFile? = nil, isWanted: () -> Bool = { true }
    ) throws(LibraryError) -> LibraryEntry {
        let photo = try NewPhoto(entry, size: bytes.count, in: self)
        do throws(LibraryError) {
            try photo.write(bytes)
            if let movie { try photo.writeMovie(movie) }
            try photo.publish()
            try photo.publishMovie()
            guard isWanted() else {
                throw .file(SystemError(code: ECANCELED, operation: "store", subject: entry.path))
            }
            try photo.finish()
        } catch {
            photo.discard()
            throw error
        }
        return photo.entry
    }
}
