public import CaptureLibrary
import Glibc
import LinuxIO

/// A file of the capture library that is whole, with its entry.
public struct StoredFile: Sendable {
    public let entry: LibraryEntry

    public var path: String { entry.path }

    /// - Parameters:
    ///   - bytes: of the file's beginning.
    ///   - size: of all of it; the rest has no room on the disk, and is zeros; nil: there is no more.
    ///   - place: of the file; nil: in the library.
    ///   - uid: whose it is; nil: this process's.
    public init(
        _ library: CaptureLibrary, id: String, bytes: [UInt8], size: Int64? = nil, at place: String? = nil,
        uid: UInt32? = nil
    ) throws {
        let path = place ?? "\(library.directory)/2026-11-22/\(id).mp4"
        try library.makeFolder(for: path)
        var entry = LibraryEntry(
            id: id, path: path, devices: [LibraryDevice(device: "cam0", uniqueID: "virtual-0")],
            started: 1_795_333_303_000_000_000, fileType: "mp4",
            owner: LibraryOwner(uid: uid ?? CurrentProcess.uid, pid: 42, name: "a test"))
        try File.replace(path, with: bytes, mode: 0o640)
        if let size, truncate(path, off_t(size)) != 0 { throw TestingError("\(path) can't have \(size) bytes") }
        let file = try FileDescriptor(opening: path, O_RDONLY)
        entry.file = try FileIdentity(file.rawValue)
        entry.size = size ?? Int64(bytes.count)
        (entry.state, entry.reason) = (.finished, "stopped")
        try library.add(entry)
        self.entry = entry
    }
}
