import BusProtocol
import Glibc
import JSON
import LinuxIO

/// The capture library: a folder with the files, a folder for each day of them, and `entries/<id>.json` for each that
/// says what it is.
///
/// An entry is replaced as a whole and is on the disk when a call returns, so that whoever looks after a crash finds
/// either the old one or the new. An entry is written by one process at a time: whoever has its lock file, or nobody's.
public struct CaptureLibrary: Hashable, Sendable {
    /// Absolute, without a final `/`.
    public let directory: String
    /// Whether the bus's group may read it; else nobody but the bus's own user.
    public let isShared: Bool

    /// Where the entries are.
    public var entriesDirectory: String { "\(directory)/entries" }

    /// Bytes of one entry.
    private static let maximumBytes = 1 << 20
    var folderMode: UInt32 { isShared ? 0o750 : 0o700 }
    /// Of files that are made in it, whatever the umask is.
    public var fileMode: UInt32 { isShared ? Self.fileModes[1] : Self.fileModes[0] }
    private static let fileModes: [UInt32] = [0o600, 0o640]

    /// Opens the library in that folder, and makes it if it isn't there.
    ///
    /// - Parameter isMade: false: only if it is there; one that isn't has no entries.
    /// - Throws: ``LibraryError/invalidPath(_:)`` for a relative path; what the system refuses.
    public init(_ directory: String, isShared: Bool = false, isMade: Bool = true) throws(LibraryError) {
        let parts = Self.parts(directory)
        guard directory.utf8.first == UInt8(ascii: "/"), !parts.isEmpty, !parts.contains(".."),
            !directory.utf8.contains(0)
        else {
            throw .invalidPath(directory)
        }
        self.directory = "/" + parts.joined(separator: "/")
        self.isShared = isShared
        guard isMade else { return }
        var parent = ""
        for part in parts.dropLast() {
            parent += "/\(part)"
            // What can't be made and is needed shows at the last one.
            mkdir(parent, folderMode)
        }
        try make(self.directory)
        try closeFolder()
        try make(entriesDirectory)
    }

    /// Makes the folder that a file of the library is to be in.
    ///
    /// - Parameter path: of the file, absolute. For one outside of the library nothing is made.
    /// - Throws: ``LibraryError/invalidPath(_:)``; what the system refuses.
    public func makeFolder(for path: String) throws(LibraryError) {
        let inner = try stored(path)
        guard inner.utf8.first != UInt8(ascii: "/") else { return }
        var folder = directory
        for part in Self.parts(inner).dropLast() {
            folder += "/\(part)"
            try make(folder)
        }
    }

    // The name of a new folder outlives a power cut, like what is going to be in it.
    private func make(_ folder: String) throws(LibraryError) {
        let mode = folderMode
        do throws(SystemError) {
            var status = stat()
            if mkdir(folder, mode) == 0 {
                try check("stat", folder) { stat(folder, &status) }
                try Self.setMode(mode, of: folder, status) { chmod(folder, $0) }
                try Self.sync(String(folder[..<(folder.lastIndex(of: "/") ?? folder.startIndex)]))
                return
            }
            let code = errno
            guard code == EEXIST else { throw SystemError(code: code, operation: "mkdir", subject: folder) }
            try check("stat", folder) { stat(folder, &status) }
            guard status.st_mode & S_IFMT == S_IFDIR else {
                throw SystemError(code: ENOTDIR, operation: "mkdir", subject: folder)
            }
        } catch {
            throw .file(error)
        }
    }

    private static func sync(_ folder: String) throws(SystemError) {
        let directory = try FileDescriptor(opening: folder.isEmpty ? "/" : folder, O_RDONLY | O_DIRECTORY)
        try check("fsync", folder) { fsync(directory.rawValue) }
    }

    /// The mode of a file that is made at that path; nil: it is not in the library, and as any file is.
    public func mode(of path: String) -> UInt32? { contains(path) ? fileMode : nil }

    // MARK: Entries

    /// Adds an entry. It is on the disk then.
    ///
    /// - Throws: ``LibraryError/exists(_:)``, and as ``replace(_:)``.
    public func add(_ entry: LibraryEntry) throws(LibraryError) {
        let path = try file(entry.id)
        var status = stat()
        guard lstat(path, &status) != 0 else { throw .exists(entry.id) }
        try replace(entry)
    }

    /// Puts an entry in the place of the one with its id, if there is one. It is on the disk then.
    ///
    /// - Throws: ``LibraryError/invalidID(_:)``, ``LibraryError/invalidPath(_:)``; what the system refuses: the old
    ///   entry is still there then.
    public func replace(_ entry: LibraryEntry) throws(LibraryError) {
        let (file, bytes) = (try file(entry.id), try bytes(of: entry))
        do throws(SystemError) {
            try File.replace(file, with: bytes, mode: modeOfEntry(file))
        } catch {
            throw .file(error)
        }
    }

    // One whose mode was changed with that of the whole library keeps it: its writer may not know of the change.
    private func modeOfEntry(_ path: String) -> UInt32 {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return fileMode }
        return Self.fileModes.first { $0 == status.st_mode & 0o777 } ?? fileMode
    }

    private func bytes(of entry: LibraryEntry) throws(LibraryError) -> [UInt8] {
        var kept = entry
        kept.path = try stored(entry.path)
        if let sideCar = entry.sideCar { kept.sideCar = try stored(sideCar) }
        if let cover = entry.cover { kept.cover = try stored(cover) }
        if let movie = entry.movie { kept.movie = try stored(movie) }
        return kept.json.serialized + [UInt8(ascii: "\n")]
    }

    /// Adds an entry that is locked as long as the result lives, or until another takes its place. It is on the disk
    /// then.
    ///
    /// - Throws: as ``add(_:)``.
    func addHeld(_ entry: LibraryEntry) throws(LibraryError) -> NewFile {
        let (path, bytes) = (try file(entry.id), try bytes(of: entry))
        do throws(SystemError) {
            // As a replaced one is called on its way.
            let file = try NewFile(path, mode: fileMode, temporary: "\(entry.id)\(Self.ending).new")
            try file.write(bytes)
            try file.publish()
            return file
        } catch {
            throw error.code == EEXIST ? .exists(entry.id) : .file(error)
        }
    }

    /// Whether somebody is storing a photo of that id (``store(_:_:)``), or that can't be known.
    public func isBeingStored(_ id: String) -> Bool {
        guard let path = try? file(id) else { return false }
        do throws(SystemError) {
            let entry = try FileDescriptor(opening: path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
            return WholeFileLock.isTaken(entry.rawValue)
        } catch {
            return error.code != ENOENT
        }
    }

    /// The entry of that id; nil: there is none.
    public func entry(_ id: String) throws(LibraryError) -> LibraryEntry? {
        let file = try file(id)
        let bytes: [UInt8]
        do throws(SystemError) {
            bytes = try File.readAtOnce(file, limit: Self.maximumBytes)
        } catch {
            switch error.code {
            case ENOENT: return nil
            case EFBIG, EINVAL: throw .unreadable(id: id, why: "\(error)")
            default: throw .file(error)
            }
        }
        var entry: LibraryEntry
        do {
            entry = try LibraryEntry(json: try JSONValue(parsing: bytes))
            entry.path = try found(entry.path)
            if let sideCar = entry.sideCar { entry.sideCar = try found(sideCar) }
            if let cover = entry.cover { entry.cover = try found(cover) }
            if let movie = entry.movie { entry.movie = try found(movie) }
        } catch {
            throw .unreadable(id: id, why: "\(error)")
        }
        guard entry.id == id else { throw .unreadable(id: id, why: "it says that it is '\(entry.id)'") }
        return entry
    }

    /// Forgets an entry; one that isn't there is no error. Its files stay.
    public func remove(_ id: String) throws(LibraryError) {
        let path = try file(id)
        do throws(SystemError) {
            if unlink(path) != 0, case let code = errno, code != ENOENT {
                throw SystemError(code: code, operation: "unlink", subject: path)
            }
            try Self.sync(entriesDirectory)
        } catch {
            throw .file(error)
        }
    }

    // MARK: What has changed

    /// Which contents of an entry, or of the folder of all, was there at a time: each change makes it another one.
    /// Clocks of files stand still for a moment, so that what has changed in the last seconds may change again with the
    /// same stamp.
    public struct Stamp: Hashable, Sendable {
        /// The number of its file system.
        public var device: Int64
        public var inode: Int64
        /// When it changed, nanoseconds since 1970.
        public var changed: Int64
        /// Bytes.
        public var size: Int64

        public init(device: Int64, inode: Int64, changed: Int64, size: Int64) {
            self.device = device
            self.inode = inode
            self.changed = changed
            self.size = size
        }

        fileprivate init(_ status: stat) {
            device = Int64(truncatingIfNeeded: status.st_dev)
            inode = Int64(truncatingIfNeeded: status.st_ino)
            changed = Int64(status.st_ctim.tv_sec) &* 1_000_000_000 &+ Int64(status.st_ctim.tv_nsec)
            size = Int64(status.st_size)
        }
    }

    /// Of the folder of the entries: another one after an entry came, went, or was replaced. nil: there is none.
    public func stamp() throws(LibraryError) -> Stamp? {
        var status = stat()
        guard stat(entriesDirectory, &status) == 0 else {
            let code = errno
            if code == ENOENT || code == ENOTDIR { return nil }
            throw .file(SystemError(code: code, operation: "stat", subject: entriesDirectory))
        }
        return Stamp(status)
    }

    /// Calls the body with each id for which there is an entry, in no order, also of one that can't be read.
    ///
    /// - Throws: when the folder can't be read to its end: then these are not all.
    public func forEachStamp(_ body: (String, Stamp) -> Void) throws(LibraryError) {
        guard let folder = opendir(entriesDirectory) else {
            let code = errno
            if code == ENOENT { return }
            throw .file(SystemError(code: code, operation: "opendir", subject: entriesDirectory))
        }
        defer { closedir(folder) }
        let descriptor = dirfd(folder)
        var status = stat()
        errno = 0
        while let entry = readdir(folder) {
            defer { errno = 0 }
            let found = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: MemoryLayout.size(ofValue: $0.pointee)) {
                    name -> String? in
                    guard let id = Self.id(UnsafeBufferPointer(start: name, count: strlen(name))),
                        // Gone since the folder was read: nothing to be told.
                        fstatat(descriptor, name, &status, 0) == 0
                    else { return nil }
                    return id
                }
            }
            if let found { body(found, Stamp(status)) }
        }
        // What can't be read to its end is not all that there is.
        let code = errno
        guard code == 0 else { throw .file(SystemError(code: code, operation: "readdir", subject: entriesDirectory)) }
    }

    // Of the file of an entry; nil: it is none.
    private static func id(_ name: UnsafeBufferPointer<CChar>) -> String? {
        let bytes = UnsafeRawBufferPointer(name)
        guard bytes.count > ending.utf8.count, bytes.suffix(ending.utf8.count).elementsEqual(ending.utf8),
            case let id = bytes.dropLast(ending.utf8.count), DeviceID.isValid(utf8: id)
        else { return nil }
        return String(decoding: id, as: UTF8.self)
    }

    // MARK: Paths

    private static let ending = ".json"

    private func file(_ id: String) throws(LibraryError) -> String {
        guard DeviceID.isValid(id) else { throw .invalidID(id) }
        return "\(entriesDirectory)/\(id)\(Self.ending)"
    }

    /// Whether a path is below the library's folder, by its text: byte for byte, as the kernel compares.
    ///
    /// - Parameter path: absolute.
    public func contains(_ path: String) -> Bool {
        let (parts, own) = (Self.parts(path), Self.parts(directory))
        return parts.count > own.count && !parts.contains { $0 == "." || $0 == ".." }
            && zip(parts, own).allSatisfy { $0.utf8.elementsEqual($1.utf8) }
    }

    // By its bytes: a mark behind a '/' makes one character with it, which is no '/' for whoever looks for characters.
    private static func parts(_ path: String) -> [Substring] {
        path.utf8.split(separator: UInt8(ascii: "/")).map { Substring($0) }
    }

    // What is in the library is told from there, so that the folder can be moved as a whole.
    private func stored(_ path: String) throws(LibraryError) -> String {
        let (parts, slash) = (Self.parts(path), UInt8(ascii: "/"))
        guard path.utf8.first == slash, path.utf8.last != slash, !path.utf8.contains(0), !parts.contains("..") else {
            throw .invalidPath(path)
        }
        guard contains(path) else { return path }
        return parts.dropFirst(Self.parts(directory).count).joined(separator: "/")
    }

    private func found(_ path: String) throws(LibraryError) -> String {
        guard !Self.parts(path).contains("..") else { throw .invalidPath(path) }
        return path.utf8.first == UInt8(ascii: "/") ? path : "\(directory)/\(path)"
    }
}
