import Glibc
import LinuxIO
import Synchronization

/// Writes files so that other programs never see them half-written.
enum AtomicFile {
    // The name of the one that is being written.
    private static let unfinished = Mutex<String?>(nil)

    /// Writes under a temporary name in the same folder, and renames. An existing file that is not regular (a device, a
    /// pipe, a link to either) is written into. A link to a file stays a link.
    static func write(_ bytes: UnsafeRawBufferPointer, to path: String) throws(SystemError) {
        guard try !writeInto(path, bytes) else { return }
        try replace(target(of: path), with: bytes)
    }

    // False: it is a regular file, or nothing yet.
    private static func writeInto(_ path: String, _ bytes: UnsafeRawBufferPointer) throws(SystemError) -> Bool {
        guard isSpecial(path) else { return false }
        // A folder says so itself.
        let file = try FileDescriptor(opening: path, O_WRONLY)
        try writeAll(bytes, to: file.rawValue, path)
        return true
    }

    /// Whether there is something of that name that is no regular file: a device, a pipe, a folder, or a link to one.
    static func isSpecial(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT != S_IFREG
    }

    // Linux's NAME_MAX, and PATH_MAX without the 0 at its end.
    private static let longestName = 255
    private static let longestPath = 4095

    /// Whether a file can't be called so, or not while it is being written.
    static func isTooLong(_ path: String) -> Bool {
        let name = path.utf8.reversed().prefix { $0 != UInt8(ascii: "/") }
        let mark = temporary(path).utf8.count - path.utf8.count
        return name.count + mark > longestName || path.utf8.count + mark > longestPath
    }

    private static func temporary(_ path: String) -> String { "\(path).\(CurrentProcess.pid).part" }

    // Where a link leads; what is no link, or leads nowhere, is its own target.
    private static func target(of path: String) -> String {
        guard let resolved = realpath(path, nil) else { return path }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    private static func replace(_ path: String, with bytes: UnsafeRawBufferPointer) throws(SystemError) {
        let temporary = Self.temporary(path)
        do throws(SystemError) {
            let file = try open(temporary, for: path)
            try writeAll(bytes, to: file.rawValue, path)
            try check("rename", path) { rename(temporary, path) }
            unfinished.withLock { $0 = nil }
        } catch {
            File.remove(temporary)
            unfinished.withLock { $0 = nil }
            throw error
        }
    }

    /// Like ``write(_:to:)``, but so that the file then is on the disk.
    ///
    /// - Parameter replaces: takes the place of a file of that name; false: `EEXIST` if there is one.
    static func store(_ bytes: UnsafeRawBufferPointer, to path: String, replaces: Bool) throws(SystemError) {
        guard try !writeInto(path, bytes) else { return }
        try make(replaces ? target(of: path) : path, replaces: replaces) { file throws(SystemError) in
            try writeAll(bytes, to: file, path)
        }
    }

    /// Copies a file so that its copy is on the disk, and is seen whole or not at all.
    ///
    /// - Parameter replaces: takes the place of a file of that name; false: `EEXIST` if there is one.
    static func copy(_ source: String, to path: String, replaces: Bool) throws(SystemError) {
        try make(path, replaces: replaces) { file throws(SystemError) in
            let from = try FileDescriptor(opening: source, O_RDONLY)
            // The kernel copies, without the bytes passing through here.
            while try check("copy", path, { sendfile(file, from.rawValue, nil, 1 << 30) }) > 0 {}
        }
    }

    private static func make(
        _ path: String, replaces: Bool, filling: (Int32) throws(SystemError) -> Void
    ) throws(SystemError) {
        let temporary = Self.temporary(path)
        defer { unfinished.withLock { $0 = nil } }
        do throws(SystemError) {
            let file = try open(temporary, for: path)
            try filling(file.rawValue)
            try check("fsync", path) { fsync(file.rawValue) }
            if replaces {
                try check("rename", path) { rename(temporary, path) }
            } else {
                try File.giveName(path, to: temporary)
            }
            try File.syncFolder(of: path)
        } catch {
            File.remove(temporary)
            throw error
        }
    }

    /// - Parameter path: of the file, for what may be said of it.
    static func writeAll(
        _ bytes: UnsafeRawBufferPointer, to file: Int32, _ path: String
    ) throws(SystemError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let part = UnsafeRawBufferPointer(rebasing: rest)
            let count = try check("write", path) { Glibc.write(file, part.baseAddress, part.count) }
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

    private static func open(_ temporary: String, for path: String) throws(SystemError) -> FileDescriptor {
        try unfinished.withLock { unfinished throws(SystemError) in
            unfinished = temporary
            do throws(SystemError) {
                return try FileDescriptor(opening: temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode: 0o666)
            } catch {
                throw error.ofMaking(path)
            }
        }
    }
}
