import Glibc
import LinuxIO

/// Cuts what is no whole line off the end of a movie's side-car (``FrameLog``).
enum SideCarRepair {
    /// - Parameter descriptor: of a plain file, open for reading and writing.
    /// - Throws: what the system refuses.
    static func repair(_ descriptor: Int32, _ path: String) throws(SystemError) {
        var status = stat()
        try check("fstat", path) { fstat(descriptor, &status) }
        let size = Int(status.st_size)
        let whole = try endOfLastLine(descriptor, path, size)
        guard whole < size else { return }
        try check("ftruncate", path) { ftruncate(descriptor, whole) }
        try check("fsync", path) { fsync(descriptor) }
    }

    // From the end on: what a file system adds to a file of which it lost the end can be long.
    private static func endOfLastLine(
        _ descriptor: Int32, _ path: String, _ size: Int
    ) throws(SystemError) -> Int {
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
