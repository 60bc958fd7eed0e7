import Glibc
import LinuxIO

/// The movie of a live photo, whole, before it is in the library.
public final class LivePhotoFile {
    // Used by one thread at a time.

    private let file: FileDescriptor
    private let path: String
    /// Bytes.
    public let size: Int

    private static let portion = 1 << 18

    /// Opens it: whoever made it may take its name from it then.
    ///
    /// - Parameters:
    ///   - path: absolute; it is no link.
    ///   - size: bytes that it has.
    /// - Throws: what the system refuses; `EINVAL` when it is no plain file, or not of that size.
    public init(_ path: String, size: Int) throws(LibraryError) {
        self.path = path
        self.size = size
        do throws(SystemError) {
            let opened = try FileDescriptor(opening: path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
            let descriptor = opened.rawValue
            var status = stat()
            try check("fstat", path) { fstat(descriptor, &status) }
            guard status.st_mode & S_IFMT == S_IFREG, Int(status.st_size) == size else {
                throw SystemError(code: EINVAL, operation: "read", subject: path)
            }
            file = opened
        } catch {
            throw .file(error)
        }
    }

    /// Writes all of it behind what that file has.
    ///
    /// - Throws: what the system refuses; `EIO` when somebody has cut it since.
    func copy(to target: NewFile) throws(SystemError) {
        let (descriptor, path) = (file.rawValue, path)
        var buffer = [UInt8](repeating: 0, count: min(size, Self.portion))
        var copied = 0
        while copied < size {
            let wanted = min(buffer.count, size - copied)
            let count = try check("read", path) { pread(descriptor, &buffer, wanted, copied) }
            guard count > 0 else { throw SystemError(code: EIO, operation: "read", subject: path) }
            try target.write(count == buffer.count ? buffer : Array(buffer[..<count]))
            copied += count
        }
    }
}
