import Glibc
import LinuxIO
import Synchronization

/// Files that others only ever see whole.
enum WholeFile {
    // The name of the one that is being written.
    private static let unfinished = Mutex<String?>(nil)

    /// Writes under a temporary name beside it, and renames.
    static func write(_ bytes: UnsafeRawBufferPointer, to path: String) throws(SystemError) {
        let temporary = "\(path).\(CurrentProcess.pid).part"
        do throws(SystemError) {
            let file = try open(temporary)
            var rest = bytes[...]
            while !rest.isEmpty {
                let part = UnsafeRawBufferPointer(rebasing: rest)
                let count = try check("write", temporary) { Glibc.write(file.rawValue, part.baseAddress, part.count) }
                rest = rest.dropFirst(count)
            }
            try check("rename", path) { rename(temporary, path) }
            unfinished.withLock { $0 = nil }
        } catch {
            File.remove(temporary)
            unfinished.withLock { $0 = nil }
            throw error
        }
    }

    /// Ends the program at once, without leaving a file behind that is half-written.
    static func abandon(exiting status: Int32) -> Never {
        unfinished.withLock { temporary in
            if let temporary { unlink(temporary) }
            // Still under the lock, so that no other is begun.
            _exit(status)
        }
    }

    private static func open(_ temporary: String) throws(SystemError) -> FileDescriptor {
        try unfinished.withLock { unfinished throws(SystemError) in
            unfinished = temporary
            return try FileDescriptor(opening: temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode: 0o666)
        }
    }
}
