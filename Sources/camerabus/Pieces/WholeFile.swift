import Glibc
import LinuxIO

/// Files that others only ever see whole.
enum WholeFile {
    /// Writes under a temporary name beside it, and renames.
    static func write(_ bytes: UnsafeRawBufferPointer, to path: String) throws(SystemError) {
        let temporary = "\(path).\(CurrentProcess.pid).part"
        do throws(SystemError) {
            let file = try FileDescriptor(opening: temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode: 0o666)
            var rest = bytes[...]
            while !rest.isEmpty {
                let part = UnsafeRawBufferPointer(rebasing: rest)
                let count = try check("write", temporary) { Glibc.write(file.rawValue, part.baseAddress, part.count) }
                rest = rest.dropFirst(count)
            }
            try check("rename", path) { rename(temporary, path) }
        } catch {
            File.remove(temporary)
            throw error
        }
    }
}
