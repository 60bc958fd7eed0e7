import Glibc
import LinuxIO

/// Numbers here and there in a file.
struct FileBytes {
    let descriptor: Int32
    let size: Int64

    init(_ descriptor: Int32, _ path: String) throws(SystemError) {
        self.descriptor = descriptor
        var status = stat()
        try check("fstat", path) { fstat(descriptor, &status) }
        size = Int64(status.st_size)
    }

    /// That many bytes, or nil if the file is shorter.
    func bytes(_ count: Int, at offset: Int64) -> [UInt8]? {
        guard offset >= 0, count >= 0, offset <= size - Int64(count) else { return nil }
        var bytes = [UInt8](repeating: 0, count: count)
        return pread(descriptor, &bytes, count, Int(offset)) == count ? bytes : nil
    }

    /// A number with its highest byte first.
    func number(_ count: Int, at offset: Int64) -> UInt64? {
        bytes(count, at: offset)?.reduce(0) { $0 << 8 | UInt64($1) }
    }
}
