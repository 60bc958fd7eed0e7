import CLinux
import Glibc

/// A new plain file that gets its name when it is whole: until then nobody finds it, and nothing is left of it when its
/// process ends.
public final class NewFile: @unchecked Sendable {
    // Used by one thread at a time.

    /// What it is going to be called.
    public let path: String
    private let file: FileDescriptor
    /// Where the file system has no files without a name: what it is called until then.
    private var temporary: String?
    private var isPublished = false

    /// Open for reading and writing, and locked (``WholeFileLock``) where the file system has locks.
    public var rawValue: Int32 { file.rawValue }

    /// Means the file as long as this lives, for who opens it by a path.
    public var openPath: String { "/proc/self/fd/\(file.rawValue)" }

    /// - Parameters:
    ///   - path: in a folder that is there.
    ///   - mode: exactly that, whatever the umask is; nil: 0644, as far as the umask lets it.
    ///   - temporary: what it is called in that folder until then, where the file system has no files without a name;
    ///     only one process at a time uses that, so that a file of that name is of one that was killed, and goes. nil:
    ///     a name that no other process that lives uses.
    /// - Throws: `EEXIST` when there is a file of that name already.
    public init(_ path: String, mode: UInt32? = nil, temporary name: String? = nil) throws(SystemError) {
        self.path = path
        var status = stat()
        guard lstat(path, &status) != 0 else { throw SystemError(code: EEXIST, operation: "open", subject: path) }
        let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
        do throws(SystemError) {
            let place = folder.isEmpty ? "/" : folder
            file = FileDescriptor(owning: try check("open", place) { clinux_open_unnamed(place, mode ?? 0o644) })
        } catch {
            guard [EOPNOTSUPP, EISDIR, EINVAL, ENOENT].contains(error.code) else { throw error }
            let temporary = name.map { "\(folder)/\($0)" } ?? "\(path).\(getpid()).part"
            if name != nil { unlink(temporary) }
            do throws(SystemError) {
                file = try FileDescriptor(
                    opening: temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode: mode ?? 0o644)
            } catch {
                throw error.ofMaking(path)
            }
            self.temporary = temporary
        }
        let descriptor = file.rawValue
        if let mode { try check("fchmod", path) { fchmod(descriptor, mode) } }
        try? WholeFileLock.take(descriptor)
    }

    deinit { if let temporary { unlink(temporary) } }

    /// Waits until all that was written is on the disk.
    public func sync() throws(SystemError) {
        let (descriptor, path) = (file.rawValue, path)
        try check("fsync", path) { fsync(descriptor) }
    }

    /// Writes all of these bytes behind what was written so.
    public func write(_ bytes: [UInt8]) throws(SystemError) {
        let (descriptor, path) = (file.rawValue, path)
        var written = 0
        while written < bytes.count {
            written += try check("write", path) {
                bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress! + written, bytes.count - written) }
            }
        }
    }

    /// Bytes.
    public func size() throws(SystemError) -> Int64 {
        let (descriptor, path) = (file.rawValue, path)
        var status = stat()
        try check("fstat", path) { fstat(descriptor, &status) }
        return Int64(status.st_size)
    }

    /// Which file it is.
    public func identity() throws(SystemError) -> FileIdentity { try FileIdentity(file.rawValue) }

    /// Gives it its name, for good: all of it and its name are on the disk then.
    ///
    /// - Throws: `EEXIST`; nothing is overwritten, and it has no name then.
    public func publish() throws(SystemError) {
        try sync()
        let (descriptor, path) = (file.rawValue, path)
        if let temporary {
            try File.giveName(path, to: temporary)
            self.temporary = nil
        } else {
            try check("link", path) { clinux_name_file(descriptor, path) }
        }
        do throws(SystemError) {
            try File.syncFolder(of: path)
        } catch {
            unlink(path)
            throw error
        }
        isPublished = true
    }

    /// Takes its name from it again, if it has one.
    public func withdraw() {
        if isPublished { unlink(path) }
        isPublished = false
    }
}
