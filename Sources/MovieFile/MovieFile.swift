import Glibc
import LinuxIO

/// The file of a movie: made anew, and known by how much of it is on the disk.
struct MovieFile: ~Copyable {
    let path: String
    private let file: NewFile
    /// Bytes that outlive a power cut.
    private(set) var syncedSize: Int64 = 0

    /// Makes the file, which has no name yet, and has it locked (``WholeFileLock``) as long as it is written.
    ///
    /// - Parameters:
    ///   - mode: as of ``NewFile``.
    ///   - temporary: likewise.
    /// - Throws: `EEXIST`; nothing is overwritten.
    init(_ path: String, mode: UInt32?, temporary: String?) throws(SystemError) {
        self.path = path
        file = try NewFile(path, mode: mode, temporary: temporary)
    }

    func identity() throws(SystemError) -> FileIdentity { try file.identity() }

    var rawValue: Int32 { file.rawValue }

    /// Gives it its name, for good.
    ///
    /// - Throws: `EEXIST`; nothing is overwritten.
    func publish() throws(SystemError) { try file.publish() }

    /// Takes its name from it again, if it has one.
    func withdraw() { file.withdraw() }

    /// Waits until all of the file is on the disk.
    mutating func sync() throws(SystemError) {
        try file.sync()
        syncedSize = try size()
    }

    func size() throws(SystemError) -> Int64 { try file.size() }

    /// Cuts off what is not known to be on the disk.
    func cutToSynced() throws(SystemError) {
        let (descriptor, path, size) = (file.rawValue, path, Int(syncedSize))
        try check("ftruncate", path) { ftruncate(descriptor, size) }
        try check("fsync", path) { fsync(descriptor) }
    }

    /// Bytes that are left on its disk for those who aren't root; nil if that can't be known.
    var freeDiskSpace: Int64? {
        var status = statvfs()
        guard fstatvfs(file.rawValue, &status) == 0 else { return nil }
        let (bytes, overflow) = Int64(clamping: status.f_bavail).multipliedReportingOverflow(
            by: Int64(clamping: status.f_frsize))
        return overflow ? .max : bytes
    }
}
