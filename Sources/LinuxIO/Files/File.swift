import CLinux
import Glibc

/// Whole files, read and written.
public enum File {
    /// Whose it is; nil: it isn't there.
    public static func owner(of path: String) -> UInt32? {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_uid : nil
    }

    /// Whether it is root's or our own, nobody else may write to it, and only its group may read it beside its owner: a
    /// file of secrets.
    public static func isSecret(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && [0, geteuid()].contains(status.st_uid) && status.st_mode & 0o027 == 0
    }

    /// The file's bytes; an error (`EFBIG`) beyond the limit.
    public static func read(_ path: String, limit: Int) throws(SystemError) -> [UInt8] {
        let file = try FileDescriptor(opening: path, O_RDONLY)
        return try read(file, path, limit: limit)
    }

    /// The same of a file that may not hold us up, as a pipe without a writer would: what is no plain file is an error
    /// (`EINVAL`).
    public static func readAtOnce(_ path: String, limit: Int) throws(SystemError) -> [UInt8] {
        try readPlain(path, 0, limit: limit) { _ in true }
    }

    /// The bytes of a plain file that nobody but its owner may write, who is root or this user; errors: `ELOOP` for a
    /// link, `EINVAL` for what is no file, `EPERM` where somebody else may write it, `EFBIG` beyond the limit.
    public static func readTrusted(_ path: String, limit: Int) throws(SystemError) -> [UInt8] {
        try readPlain(path, O_NOFOLLOW, limit: limit) {
            [0, geteuid()].contains($0.st_uid) && $0.st_mode & 0o022 == 0
        }
    }

    /// The bytes of a plain file that is this user's own; errors: `ELOOP` for a link, `EINVAL` for what is no file,
    /// `EPERM` for another user's, `EFBIG` beyond the limit.
    public static func readOwn(_ path: String, limit: Int) throws(SystemError) -> [UInt8] {
        try readPlain(path, O_NOFOLLOW, limit: limit) { $0.st_uid == geteuid() }
    }

    private static func readPlain(
        _ path: String, _ flags: Int32, limit: Int, isTrusted: (stat) -> Bool
    ) throws(SystemError) -> [UInt8] {
        // Nothing at the path may hold us up, as a pipe without a writer would.
        let file = try FileDescriptor(opening: path, O_RDONLY | O_NONBLOCK | flags)
        let status = try plainStatus(of: file, path, "read as a plain file")
        guard isTrusted(status) else { throw SystemError(code: EPERM, operation: "read", subject: path) }
        return try read(file, path, limit: limit)
    }

    /// Gives a file its name; nothing is overwritten (`EEXIST`).
    public static func giveName(_ path: String, to temporary: String) throws(SystemError) {
        do throws(SystemError) {
            try check("rename", path) { clinux_rename_new(temporary, path) }
            return
        } catch {
            // A file system that has no such call.
            guard error.code == EINVAL || error.code == ENOSYS else { throw error }
        }
        do throws(SystemError) {
            try check("link", path) { link(temporary, path) }
            unlink(temporary)
        } catch {
            // Nor links: SMB, much of FUSE.
            guard [EPERM, EOPNOTSUPP, ENOSYS, EINVAL].contains(error.code) else { throw error }
            try takeName(path, for: temporary)
        }
    }

    /// The same in two steps: the name is taken first, which only one can do.
    static func takeName(_ path: String, for temporary: String) throws(SystemError) {
        _ = try FileDescriptor(opening: path, O_WRONLY | O_CREAT | O_EXCL, mode: 0o666)
        do throws(SystemError) {
            try check("rename", path) { rename(temporary, path) }
        } catch {
            unlink(path)
            throw error
        }
    }

    /// What was named in the path's folder is on the disk then.
    public static func syncFolder(of path: String) throws(SystemError) {
        let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
        let directory = try FileDescriptor(opening: folder.isEmpty ? "/" : folder, O_RDONLY | O_DIRECTORY)
        do throws(SystemError) {
            try check("fsync", folder) { fsync(directory.rawValue) }
        } catch {
            // SMB does so for every folder.
            guard error.code == EINVAL else { throw error }
        }
    }

    /// - Throws: `EINVAL` for what is no plain file.
    fileprivate static func plainStatus(
        of file: borrowing FileDescriptor, _ path: String, _ operation: String
    ) throws(SystemError) -> stat {
        let descriptor = file.rawValue
        var status = stat()
        try check("fstat", path) { fstat(descriptor, &status) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw SystemError(code: EINVAL, operation: operation, subject: path)
        }
        return status
    }

    private static func read(
        _ file: borrowing FileDescriptor, _ path: String, limit: Int
    ) throws(SystemError) -> [UInt8] {
        let descriptor = file.rawValue
        var result: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16384)
        while true {
            let count = try check("read", path) { Glibc.read(descriptor, &buffer, buffer.count) }
            if count == 0 { return result }
            guard result.count + count <= limit else {
                throw SystemError(code: EFBIG, operation: "read", subject: path)
            }
            result.append(contentsOf: buffer[..<count])
        }
    }

    /// Replaces the file so that after a crash or power cut it holds either the old bytes or the new: a temporary name
    /// beside it, `fsync`, `rename`, `fsync` of the folder.
    public static func replace(_ path: String, with bytes: [UInt8], mode: UInt32) throws(SystemError) {
        try replace(path, with: bytes, mode: mode, owner: nil)
    }

    /// The same of a file that others read: its mode, its user and its group stay as they are.
    ///
    /// - Parameters:
    ///   - mode: of one that isn't there yet.
    ///   - group: the same; nil: as of any file that is made there.
    public static func rewrite(
        _ path: String, with bytes: [UInt8], mode: UInt32, group: UInt32? = nil
    ) throws(SystemError) {
        var status = stat()
        guard lstat(path, &status) == 0 else {
            return try replace(path, with: bytes, mode: mode, owner: group.map { (geteuid(), $0) })
        }
        // A link would be replaced, with the mode that links have.
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw SystemError(code: ELOOP, operation: "replace", subject: path)
        }
        try replace(
            path, with: bytes, mode: UInt32(status.st_mode & 0o7777), owner: (status.st_uid, status.st_gid))
    }

    private static func replace(
        _ path: String, with bytes: [UInt8], mode: UInt32, owner: (uid: uid_t, gid: gid_t)?
    ) throws(SystemError) {
        let temporary = path + ".new"
        // One of a process that died here, or whatever else it may be.
        unlink(temporary)
        let file = try FileDescriptor(opening: temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: mode)
        do throws(SystemError) {
            if let owner { try check("fchown", temporary) { fchown(file.rawValue, owner.uid, owner.gid) } }
            try check("fchmod", temporary) { fchmod(file.rawValue, mode) }
            var written = 0
            while written < bytes.count {
                written += try check("write", temporary) {
                    bytes.withUnsafeBytes { write(file.rawValue, $0.baseAddress! + written, bytes.count - written) }
                }
            }
            try check("fsync", temporary) { fsync(file.rawValue) }
        } catch {
            unlink(temporary)
            throw error
        }
        try check("rename", path) { rename(temporary, path) }
        try syncFolder(of: path)
    }

    /// Where that path, or the nearest folder above it that there is, really lies, all symbolic links followed; nil:
    /// nobody may know.
    public static func realPath(ofNearest path: String) -> String? {
        var (path, rest) = (path, "")
        while true {
            if let real = realpath(path.isEmpty ? "/" : path, nil) {
                defer { free(real) }
                let found = String(cString: real)
                return rest.isEmpty ? found : (found == "/" ? rest : found + rest)
            }
            guard errno == ENOENT, let slash = path.lastIndex(of: "/") else { return nil }
            rest = path[slash...] + rest
            path = String(path[..<slash])
        }
    }

    /// Removes a file; one that isn't there is no error.
    public static func remove(_ path: String) { unlink(path) }
}

/// A file that one process at a time holds locked (`flock(2)`), as long as this value lives. The file stays: removing
/// it would let two processes lock two files of one name.
public final class LockFile: Sendable {
    private let owner: FileDescriptor

    /// - Parameter isSigned: this process's number and start time are written into it, for ``holder(of:)``.
    /// - Throws: `EWOULDBLOCK` when another process holds it.
    public init(_ path: String, isSigned: Bool = false) throws(SystemError) {
        let file = try Self.open(path, O_RDWR | O_CREAT)
        try check("flock", path) { clinux_flock_exclusive_now(file.rawValue) }
        owner = file
        if isSigned {
            let start = ProcessTable.startTime(of: CurrentProcess.pid) ?? 0
            let text = Array("\(CurrentProcess.pid) \(start)\n".utf8)
            try check("ftruncate", path) { ftruncate(owner.rawValue, 0) }
            try check("write", path) { pwrite(owner.rawValue, text, text.count, 0) }
        }
    }

    /// Waits while another process holds it.
    public init(waitingFor path: String) throws(SystemError) {
        let file = try Self.open(path, O_RDWR | O_CREAT)
        try check("flock", path) { clinux_flock_exclusive(file.rawValue) }
        owner = file
    }

    // Whatever else lies there, such as a FIFO, must not make anybody wait.
    private static func open(_ path: String, _ flags: Int32) throws(SystemError) -> FileDescriptor {
        let file = try FileDescriptor(opening: path, flags | O_NOFOLLOW | O_NONBLOCK, mode: 0o600)
        _ = try File.plainStatus(of: file, path, "open as a plain file")
        return file
    }

    /// Who holds a lock file.
    public enum Holder: Sendable {
        case nobody
        /// The process that signed it and has not ended; nil: the file does not say who, or not yet.
        case somebody(ProcessDescriptor?)
    }

    /// The lock files in a folder whose names end so and that somebody holds, by the rest of their names, with the
    /// process; nil: that is not known.
    public static func held(in folder: String, ending: String) -> [String: ProcessDescriptor?] {
        var held: [String: ProcessDescriptor?] = [:]
        for name in Directory.names(folder) ?? [] where name.hasSuffix(ending) {
            guard case .somebody(let owner) = holder(of: "\(folder)/\(name)") else { continue }
            held.updateValue(owner, forKey: String(name.dropLast(ending.count)))
        }
        return held
    }

    /// Who holds that lock file now.
    public static func holder(of path: String) -> Holder {
        guard let file = try? open(path, O_RDONLY) else { return .nobody }
        // Taken for a moment, and let go with the descriptor; those who ask at the same time don't see each other.
        guard clinux_flock_shared_now(file.rawValue) != 0 else { return .nobody }
        var buffer = [UInt8](repeating: 0, count: 64)
        let count = pread(file.rawValue, &buffer, buffer.count, 0)
        let words = String(decoding: buffer.prefix(max(0, count)), as: UTF8.self).split { $0 == " " || $0 == "\n" }
        guard words.count == 2, let pid = Int32(words[0]), pid > 1, let start = UInt64(words[1]),
            let process = try? ProcessDescriptor(pid: pid), ProcessTable.startTime(of: pid) == start
        else { return .somebody(nil) }
        return .somebody(process)
    }
}

/// Random bytes from the kernel, fit for secrets (`getrandom(2)`).
public func randomBytes(_ count: Int) -> [UInt8] {
    var generator = SystemRandomNumberGenerator()
    return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
}

/// Bytes as lower-case hexadecimal digits.
public func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
    let digits = Array("0123456789abcdef".unicodeScalars)
    var text = ""
    for byte in bytes {
        text.unicodeScalars.append(digits[Int(byte >> 4)])
        text.unicodeScalars.append(digits[Int(byte & 15)])
    }
    return text
}
