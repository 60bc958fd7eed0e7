import Glibc
import LinuxIO

/// Cuts what is no whole line off the end of a movie's side-car (``FrameLog``).
enum SideCarRepair {
    /// - Throws: what the system refuses; `EINVAL` for what is no plain file.
    static func repair(_ path: String) throws(SystemError) {
        let file = try FileDescriptor(opening: path, O_RDWR | O_NOFOLLOW | O_NONBLOCK)
        var status = stat()
        try check("fstat", path) { fstat(file.rawValue, &status) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw SystemError(code: EINVAL, operation: "open", subject: path)
        }
        let size = Int(status.st_size)
        let whole = try endOfLastLine(file, path, size)
        guard whole < size else { return }
        try check("ftruncate", path) { ftruncate(file.rawValue, whole) }
        try check("fsync", path) { fsync(file.rawValue) }
    }

    // From the end on: what a file system adds to a file of which it lost the end can be long.
    private static func endOfLastLine(
        _ file: borrowing FileDescriptor, _ path: String, _ size: Int
    ) throws(SystemError) -> Int {
        let descriptor = file.rawValue
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        var end = size
        while end > 0 {
            let start = max(0, end - buffer.count)
            let count = try check("read", path) { pread(descriptor, &buffer, end - start, start) }
            if let last = buffer[..<count].lastIndex(of: UInt8(ascii: "\n")) { return start + last + 1 }
            end = start
        }
        return 0
    }
}
