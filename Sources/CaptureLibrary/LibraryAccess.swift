import Glibc
import LinuxIO

/// The modes of the library's files and folders: for the bus alone, or for its group too.
extension CaptureLibrary {
    /// Beside the entries, and the librarian's alone: it tells everybody's entries.
    public var indexPath: String { "\(directory)/\(Self.index).sqlite3" }
    /// The process that holds the lock updates the index.
    public var indexTurnPath: String { "\(directory)/\(Self.index).turn" }

    private static let index = "index"

    /// Before anything is stored in a library that the bus has to itself, nobody else gets into its folder, whoever had
    /// been let in there. A folder of another user's keeps its mode; the files in it are closed.
    func closeFolder() throws(LibraryError) {
        let folder = directory
        var status = stat()
        guard !isShared, stat(folder, &status) == 0, status.st_uid == geteuid(), status.st_mode & 0o077 != 0 else {
            return
        }
        do throws(SystemError) {
            try Self.setMode(folderMode, of: folder, status) { chmod(folder, $0) }
        } catch {
            throw .file(error)
        }
    }

    /// Gives all that is in the library the modes that new files get, if its folders say that it was another one until
    /// now. What is being written changes, too.
    ///
    /// Of a library that is shut the outer folder comes first, of one that is opened last. So nobody reads what was not
    /// for them, and whoever comes after a crash finds one of the two folders as it was.
    ///
    /// - Returns: how many files and folders have changed, and how many could not because they are another user's.
    /// - Throws: what the system refuses; the library may be changed in part then.
    public func applyAccess() throws(LibraryError) -> (changed: Int, foreign: Int) {
        var count = (changed: 0, foreign: 0)
        do throws(SystemError) {
            let top = try FileDescriptor(opening: directory, O_RDONLY | O_DIRECTORY)
            guard try !isApplied(top.rawValue) else { return count }
            if !isShared { try apply(folderMode, to: top.rawValue, &count) }
            try applyAccess(in: top.rawValue, depth: 0, &count)
            if isShared { try apply(folderMode, to: top.rawValue, &count) }
        } catch {
            if error.code == ENOENT || error.code == ENOTDIR { return count }
            throw .file(error)
        }
        return count
    }

    private static let entries = "entries"
    /// Folders in one another.
    private static let deepest = 64

    private func isAsNew(_ folder: Int32) throws(SystemError) -> Bool {
        var status = stat()
        try check("fstat", directory) { fstat(folder, &status) }
        return status.st_mode & 0o777 == folderMode
    }

    private func isApplied(_ top: Int32) throws(SystemError) -> Bool {
        guard try isAsNew(top) else { return false }
        guard let entries = try? FileDescriptor(openingFolder: Self.entries, in: top) else { return true }
        return try isAsNew(entries.rawValue)
    }

    // The entries are the last.
    private func applyAccess(
        in folder: Int32, depth: Int, _ count: inout (changed: Int, foreign: Int)
    ) throws(SystemError) {
        guard depth < Self.deepest else { return }
        var names = try Self.names(in: folder, directory)
        if depth == 0 {
            names.removeAll { $0 == Self.entries || $0.hasPrefix("\(Self.index).") }
            names.append(Self.entries)
        }
        for name in names {
            var status = stat()
            // Removed meanwhile, a link, or already right.
            guard fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { continue }
            switch status.st_mode & S_IFMT {
            case S_IFDIR:
                guard let inner = try? FileDescriptor(openingFolder: name, in: folder) else { continue }
                try applyAccess(in: inner.rawValue, depth: depth + 1, &count)
                try apply(folderMode, to: inner.rawValue, &count)
            case S_IFREG where status.st_mode & 0o777 != fileMode:
                guard let file = try? FileDescriptor(openingPlain: name, in: folder) else { continue }
                try apply(fileMode, to: file.rawValue, &count)
            default: break
            }
        }
    }

    private func apply(
        _ mode: UInt32, to descriptor: Int32, _ count: inout (changed: Int, foreign: Int)
    ) throws(SystemError) {
        var status = stat()
        try check("fstat", directory) { fstat(descriptor, &status) }
        guard status.st_mode & 0o777 != mode else { return }
        guard status.st_uid == geteuid() else {
            count.foreign += 1
            return
        }
        try Self.setMode(mode, of: directory, status) { fchmod(descriptor, $0) }
        count.changed += 1
    }

    /// Sets the mode of a folder or file that has another one. A folder that passes its group on (S_ISGID) still does,
    /// unless the system refuses to set that bit, as for a service with `RestrictSUIDSGID=`.
    static func setMode(
        _ mode: UInt32, of subject: String, _ status: stat, _ change: (UInt32) -> Int32
    ) throws(SystemError) {
        guard status.st_mode & 0o777 != mode else { return }
        let passesOn = status.st_mode & S_ISGID
        do throws(SystemError) {
            try check("chmod", subject) { change(mode | passesOn) }
        } catch {
            guard error.code == EPERM, passesOn != 0 else { throw error }
            try check("chmod", subject) { change(mode) }
        }
    }

    private static func names(in folder: Int32, _ subject: String) throws(SystemError) -> [String] {
        let again = try FileDescriptor(openingFolder: ".", in: folder).release()
        guard let stream = fdopendir(again) else {
            let code = errno
            close(again)
            throw SystemError(code: code, operation: "opendir", subject: subject)
        }
        defer { closedir(stream) }
        var names: [String] = []
        errno = 0
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: MemoryLayout.size(ofValue: $0.pointee)) {
                    String(cString: $0)
                }
            }
            if name != ".", name != ".." { names.append(name) }
            errno = 0
        }
        let code = errno
        guard code == 0 else { throw SystemError(code: code, operation: "readdir", subject: subject) }
        return names
    }
}

extension FileDescriptor {
    fileprivate init(openingFolder name: String, in folder: Int32) throws(SystemError) {
        self.init(
            owning: try check("open", name) { openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) })
    }

    fileprivate init(openingPlain name: String, in folder: Int32) throws(SystemError) {
        self.init(
            owning: try check("open", name) { openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) })
    }
}
