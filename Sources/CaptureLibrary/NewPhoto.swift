import Glibc
import LinuxIO

/// A photo on its way into the library.
///
/// Its entry says which file it is before there is anything in that, and the file gets its name when it is whole. So whoever's process
/// ends between two steps leaves either nothing, or an entry with the state `recording` beside a whole file or none.
public final class NewPhoto {
    // Used by one thread at a time.

    private let library: CaptureLibrary
    private let file: NewFile
    /// Locked as long as this lives: by that others know that somebody makes it (``CaptureLibrary/isBeingStored(_:)``).
    private let held: NewFile
    /// As it is in the library now.
    public private(set) var entry: LibraryEntry

    /// What its file is called in its folder before it is whole, where the file system has no files without a name.
    public static func temporary(_ id: String) -> String { ".\(id).part" }

    /// The same of a live photo's movie, which always has that name before it is whole.
    public static func temporaryMovie(_ id: String) -> String { ".\(id).movie.part" }

    /// Makes the file, which has no name yet, and enters it.
    ///
    /// - Parameters:
    ///   - entry: of the kind `photo`; its path is in the library, and there is no such file.
    ///   - size: bytes that it is going to have.
    /// - Throws: `EEXIST` and what else the system refuses; ``LibraryError/exists(_:)``. Nothing is left then.
    public init(_ entry: LibraryEntry, size: Int, in library: CaptureLibrary) throws(LibraryError) {
        self.library = library
        try library.makeFolder(for: entry.path)
        var entry = entry
        do throws(SystemError) {
            file = try NewFile(entry.path, temporary: Self.temporary(entry.id))
            entry.file = try file.identity()
        } catch {
            throw .file(error)
        }
        entry.state = .recording
        entry.size = Int64(size)
        held = try library.addHeld(entry)
        self.entry = entry
    }

    /// Adds bytes to the file.
    public func write(_ bytes: [UInt8]) throws(LibraryError) {
        do throws(SystemError) { try file.write(bytes) } catch { throw .file(error) }
    }

    /// Gives the file its name. All of it is on the disk then.
    public func publish() throws(LibraryError) {
        do throws(SystemError) { try file.publish() } catch { throw .file(error) }
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
        file.withdraw()
        try? library.remove(entry.id)
    }
}

extension CaptureLibrary {
    /// Stores a photo: a whole file of these bytes, and its entry.
    ///
    /// - Parameter entry: of the kind `photo`; its path is in the library, and there is no such file.
    /// - Returns: its entry, finished, with the file's identity and size.
    /// - Throws: what the system refuses (`EEXIST`, `ENOSPC`, `EDQUOT`, …) and ``LibraryError/exists(_:)``. Nothing is left of it then.
    public func store(_ entry: LibraryEntry, _ bytes: [UInt8]) throws(LibraryError) -> LibraryEntry {
        let photo = try NewPhoto(entry, size: bytes.count, in: self)
        do throws(LibraryError) {
            try photo.write(bytes)
            try photo.publish()
            try photo.finish()
        } catch {
            photo.discard()
            throw error
        }
        return photo.entry
    }
}
