import CLinux
import Glibc

/// Tells when a file, or any file in some folders, has been written, replaced or removed, or is readable by others than
/// before (`inotify(7)` on its folder).
public final class FileWatch: Sendable {
    private let owner: FileDescriptor
    /// nil: any.
    private let name: [UInt8]?
    /// Readable when something in the folder has changed: ``hasChanged()`` says whether it was the file.
    public var rawValue: Int32 { owner.rawValue }

    // Where the fields of `struct inotify_event` are, in bytes; a name of `length` bytes follows it.
    private static let lengthOffset = 12
    private static let headerBytes = 16

    /// Watches one file, whether or not it is there yet.
    ///
    /// - Throws: `ENOENT` or `ENOTDIR` when there is no such folder, `EMFILE` or `ENOSPC` when the user has too many
    ///   watches.
    public convenience init(_ path: String) throws(SystemError) {
        let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
        let folder = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        let name = Array(path.utf8[(slash.map { path.utf8.index(after: $0) } ?? path.startIndex)...])
        try self.init([folder], name: name)
    }

    /// Watches all files in these folders.
    ///
    /// - Throws: as for one file.
    public convenience init(folders: [String]) throws(SystemError) { try self.init(folders, name: nil) }

    private init(_ folders: [String], name: [UInt8]?) throws(SystemError) {
        self.name = name
        owner = FileDescriptor(owning: try check("inotify_init1") { clinux_inotify() })
        for folder in folders {
            try check("inotify_add_watch", folder) { clinux_inotify_add(owner.rawValue, folder) }
        }
    }

    /// Takes some of what was told since the last call; what is left keeps the descriptor readable.
    ///
    /// - Returns: whether the file may be another than before. That is so, too, when its folder has gone or the kernel
    ///   has dropped events.
    public func hasChanged() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 16384)
        let count = read(rawValue, &buffer, buffer.count)
        guard let name else { return count > 0 }
        return buffer.withUnsafeBytes { bytes in
            var start = 0
            while start + Self.headerBytes <= count {
                let length = Int(bytes.loadUnaligned(fromByteOffset: start + Self.lengthOffset, as: UInt32.self))
                let end = start + Self.headerBytes + length
                guard end <= count else { break }
                // Filled up with zeros. What is told without a name is of the folder, or of the queue.
                let told = bytes[(start + Self.headerBytes)..<end].prefix { $0 != 0 }
                if told.isEmpty || told.elementsEqual(name) { return true }
                start = end
            }
            return false
        }
    }
}
