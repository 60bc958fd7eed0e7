import Glibc
import LinuxIO
import Synchronization

/// Files that others only ever see whole.
enum WholeFile {
    // The name of the one that is being written.
    private static let unfinished = Mutex<String?>(nil)

    /// Writes under a temporary name beside it, and renames; what is there and no regular file (a device, a pipe, a link to either) is
    /// written into, and a link to a file stays one.
    static func write(_ bytes: UnsafeRawBufferPointer, to path: String) throws(SystemError) {
        var status = stat()
        if stat(path, &status) == 0, status.st_mode & S_IFMT != S_IFREG {
            // A folder says so itself.
            return try writeAll(bytes, to: try FileDescriptor(opening: path, O_WRONLY), path)
        }
        try replace(target(of: path), with: bytes)
    }

    // Where a link leads; what is no link, or leads nowhere, is its own target.
    private static func target(of path: String) -> String {
        guard let resolved = realpath(path, nil) else { return path }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    private static func replace(_ path: String, with bytes: UnsafeRawBufferPointer) throws(SystemError) {
        let temporary = "\(path).\(CurrentProcess.pid).part"
        do throws(SystemError) {
            try writeAll(bytes, to: try open(temporary), path)
            try check("rename", path) { rename(temporary, path) }
            unfinished.withLock { $0 = nil }
        } catch {
            File.remove(temporary)
            unfinished.withLock { $0 = nil }
            throw error
        }
    }

    private static func writeAll(
        _ bytes: UnsafeRawBufferPointer, to file: consuming FileDescriptor, _ path: String
    ) throws(SystemError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let part = UnsafeRawBufferPointer(rebasing: rest)
            let count = try check("write", path) { Glibc.write(file.rawValue, part.baseAddress, part.count) }
            rest = rest.dropFirst(count)
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
