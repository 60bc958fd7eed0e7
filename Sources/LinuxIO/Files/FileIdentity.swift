import CLinux
import Glibc

/// Which file it is, whatever it is called.
public struct FileIdentity: Hashable, Sendable {
    /// The number of its file system, as long as that is mounted.
    public var device: Int64
    public var inode: Int64
    /// When it was made, nanoseconds since 1970; nil: its file system doesn't say.
    public var born: Int64?

    public init(device: Int64, inode: Int64, born: Int64? = nil) {
        self.device = device
        self.inode = inode
        self.born = born
    }

    /// Of an open file.
    public init(_ descriptor: Int32) throws(SystemError) {
        var status = stat()
        try check("fstat", "\(descriptor)") { fstat(descriptor, &status) }
        let born = clinux_birth_time(descriptor)
        self.init(
            device: Int64(truncatingIfNeeded: status.st_dev), inode: Int64(truncatingIfNeeded: status.st_ino),
            born: born < 0 ? nil : born)
    }

    /// Whether both mean one file. The number of a disk may be another after it was mounted again, and that of a file
    /// is given again when it is gone: the time of its birth tells them apart where it is known.
    public func isSame(as other: FileIdentity) -> Bool {
        guard inode == other.inode else { return false }
        if let born, let otherBorn = other.born { return born == otherBorn }
        return device == other.device
    }
}

/// A lock on all of an open file, which ends with its descriptor, so that nobody has it whose process has ended
/// (`F_OFD_SETLK`, fcntl(2)). Who asks for it doesn't take it.
public enum WholeFileLock {
    /// - Parameter descriptor: open for writing.
    /// - Throws: `EAGAIN` or `EACCES` when somebody else has it; what the file system can't.
    public static func take(_ descriptor: Int32) throws(SystemError) {
        try check("fcntl", "\(descriptor)") { clinux_lock_file_now(descriptor) }
    }

    /// Whether somebody else has it; also when that can't be known.
    public static func isTaken(_ descriptor: Int32) -> Bool { clinux_file_is_locked(descriptor) != 0 }
}
