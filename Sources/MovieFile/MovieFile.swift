import Glibc
import LinuxIO

/// The file of a movie: made anew, and known by how much of it is on the disk.
struct MovieFile: ~Copyable {
    let path: String
    let descriptor: FileDescriptor
    /// Bytes that outlive a power cut.
    private(set) var syncedSize: Int64 = 0

    /// Makes the file, and has it locked (``WholeFileLock``) as long as it is written.
    ///
    /// - Parameter mode: exactly that, whatever the umask is; nil: as the umask lets any file be read.
    /// - Throws: `EEXIST`; nothing is overwritten.
    init(_ path: String, mode: UInt32?) throws(SystemError) {
        self.path = path
        descriptor = try FileDescriptor.new(path, O_RDWR, mode: mode)
        // Where a file system has no locks, nobody else gets one either.
        try? WholeFileLock.take(descriptor.rawValue)
    }

    func identity() throws(SystemError) -> FileIdentity { try FileIdentity(descriptor.rawValue) }

    var rawValue: Int32 { descriptor.rawValue }

    /// Waits until all of the file is on the disk.
    mutating func sync() throws(SystemError) {
        let (descriptor, path) = (descriptor.rawValue, path)
        try check("fsync", path) { fsync(descriptor) }
        syncedSize = try size()
    }

    func size() throws(SystemError) -> Int64 {
        let (descriptor, path) = (descriptor.rawValue, path)
        var status = stat()
        try check("fstat", path) { fstat(descriptor, &status) }
        return Int64(status.st_size)
    }

    /// Cuts off what is not known to be on the disk.
    func cutToSynced() throws(SystemError) {
        let (descriptor, path, size) = (descriptor.rawValue, path, Int(syncedSize))
        try check("ftruncate", path) { ftruncate(descriptor, size) }
        try check("fsync", path) { fsync(descriptor) }
    }

    /// Waits until the file's name is on the disk.
    func syncDirectory() throws(SystemError) { try Self.syncDirectory(of: path) }

    static func syncDirectory(of path: String) throws(SystemError) {
        let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
        let directory = try FileDescriptor(opening: folder.isEmpty ? "/" : folder, O_RDONLY | O_DIRECTORY)
        try check("fsync", folder) { fsync(directory.rawValue) }
    }

    /// Bytes that are left on its disk for those who aren't root; nil if that can't be known.
    var freeDiskSpace: Int64? {
        var status = statvfs()
        guard fstatvfs(descriptor.rawValue, &status) == 0 else { return nil }
        let (bytes, overflow) = Int64(clamping: status.f_bavail).multipliedReportingOverflow(
            by: Int64(clamping: status.f_frsize))
        return overflow ? .max : bytes
    }
}
