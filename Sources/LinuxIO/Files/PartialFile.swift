import CLinux
import Glibc

/// A file that is made bit by bit, perhaps by several processes one after the other, and gets its name when it is
/// whole. Until then it lies beside that, as `NAME.MARK.part`, and stays there when its process ends: who makes it
/// again goes on at its end.
///
/// Used by one thread at a time.
public final class PartialFile: @unchecked Sendable {
    /// What it is going to be called.
    public let path: String
    /// What it is called until then.
    public let temporary: String
    /// Bytes that it has.
    public private(set) var count: Int64
    private let file: FileDescriptor

    /// - Parameters:
    ///   - path: in a folder that is there.
    ///   - mark: tells it from what becomes another file of that name.
    ///   - maximum: one with more bytes is begun anew.
    /// - Throws: `EWOULDBLOCK` when another process makes it; `ELOOP`, `EINVAL` or `EPERM` when what lies there is a
    ///   link, no file, or another user's.
    public init(_ path: String, mark: String, maximum: Int64, mode: UInt32 = 0o666) throws(SystemError) {
        self.path = path
        let temporary = Self.temporary(of: path, mark)
        self.temporary = temporary
        let opened = try Self.open(temporary, mode)
        try check("flock", temporary) { clinux_flock_exclusive_now(opened.rawValue) }
        // It may have got its name since it was opened.
        var (status, named) = (stat(), stat())
        try check("fstat", temporary) { fstat(opened.rawValue, &status) }
        guard lstat(temporary, &named) == 0, named.st_ino == status.st_ino, named.st_dev == status.st_dev
        else { throw SystemError(code: EWOULDBLOCK, operation: "open", subject: temporary) }
        if Int64(status.st_size) > maximum {
            try check("ftruncate", temporary) { ftruncate(opened.rawValue, 0) }
            count = 0
        } else {
            count = Int64(status.st_size)
        }
        file = opened
    }

    private static let longestName = 255

    // Of a long name as much as the mark leaves room for.
    private static func temporary(of path: String, _ mark: String) -> String {
        let end = ".\(mark).part"
        let start = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { path.utf8.index(after: $0) } ?? path.startIndex
        var name = path[start...]
        while name.utf8.count + end.utf8.count > longestName, !name.isEmpty { name.removeLast() }
        return path[..<start] + name + end
    }

    // Nothing that lies there may hold this process up or lead elsewhere, and what others wrote would become the file's
    // beginning.
    private static func open(_ path: String, _ mode: UInt32) throws(SystemError) -> FileDescriptor {
        let flags = O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK
        do throws(SystemError) {
            return try FileDescriptor(opening: path, flags | O_CREAT | O_EXCL, mode: mode)
        } catch {
            guard error.code == EEXIST else { throw error.ofMaking(path) }
        }
        let file = try FileDescriptor(opening: path, flags)
        var status = stat()
        try check("fstat", path) { fstat(file.rawValue, &status) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw SystemError(code: EINVAL, operation: "open", subject: path)
        }
        guard status.st_uid == geteuid() else { throw SystemError(code: EPERM, operation: "open", subject: path) }
        return file
    }

    /// Adds bytes that belong there, as far as they aren't in it.
    ///
    /// - Returns: false: what is in it there are other bytes.
    public func add(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(SystemError) -> Bool {
        let known = Int(min(Int64(bytes.count), max(0, count - offset)))
        guard try has(UnsafeRawBufferPointer(rebasing: bytes[..<known]), at: offset) else { return false }
        try append(UnsafeRawBufferPointer(rebasing: bytes[known...]))
        return true
    }

    private func has(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(SystemError) -> Bool {
        let (descriptor, temporary) = (file.rawValue, temporary)
        let found = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
        defer { found.deallocate() }
        var done = 0
        while done < bytes.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: found[done...])
            let count = try check("read", temporary) {
                pread(descriptor, rest.baseAddress, rest.count, off_t(offset) + off_t(done))
            }
            guard count > 0 else { return false }
            done += count
        }
        return found.elementsEqual(bytes)
    }

    /// Adds the bytes at its end.
    private func append(_ bytes: UnsafeRawBufferPointer) throws(SystemError) {
        let (descriptor, temporary) = (file.rawValue, temporary)
        var rest = bytes[...]
        while !rest.isEmpty {
            let part = UnsafeRawBufferPointer(rebasing: rest)
            let written = try check("write", temporary) { write(descriptor, part.baseAddress, part.count) }
            rest = rest.dropFirst(written)
            count += Int64(written)
        }
    }

    /// Gives it its name: all of it and its name are on the disk then.
    ///
    /// - Parameter replaces: takes the place of a file of that name; false: `EEXIST` if there is one, and it stays as
    ///   it was.
    public func publish(replaces: Bool) throws(SystemError) {
        let (descriptor, path, temporary) = (file.rawValue, path, temporary)
        try check("fsync", temporary) { fsync(descriptor) }
        if replaces {
            try check("rename", path) { rename(temporary, path) }
        } else {
            try File.giveName(path, to: temporary)
        }
        try File.syncFolder(of: path)
    }

    /// Nobody is to go on with it.
    public func discard() { unlink(temporary) }
}
