import CaptureLibrary
import Glibc
import LinuxIO

/// The folder of a file, held open, so that nobody can put another in its place between two looks. Its way leads over
/// no links but those on the way to the library itself: whoever may write beside a movie can't have the librarian
/// change another file.
final class HeldFolder {
    private let descriptor: FileDescriptor
    private let name: String

    /// - Throws: `ENOENT` when there is no such folder; `ELOOP` when a link leads there.
    convenience init(of path: String, library: CaptureLibrary) throws(SystemError) {
        try self.init(of: path, below: library.contains(path) ? library.directory : nil)
    }

    /// - Parameter root: on the way to it there may be links; nil: nowhere.
    init(of path: String, below root: String?) throws(SystemError) {
        let (folder, name) = Self.split(path)
        let opened = try FileDescriptor(opening: folder, O_RDONLY | O_DIRECTORY)
        var expected = folder
        if let root {
            let opened = try FileDescriptor(opening: root, O_RDONLY | O_DIRECTORY)
            let below = Self.parts(folder).dropFirst(Self.parts(root).count).map { String(Substring($0)) }
            expected = try ([Self.realPath(opened.rawValue)] + below).joined(separator: "/")
        }
        let real = try Self.realPath(opened.rawValue)
        guard Self.parts(real).elementsEqual(Self.parts(expected), by: { $0.elementsEqual($1) }) else {
            throw SystemError(code: ELOOP, operation: "open", subject: folder)
        }
        self.name = name
        descriptor = opened
    }

    /// The same of a file that may lie anywhere, also by links.
    init(anywhere path: String) throws(SystemError) {
        let (folder, name) = Self.split(path)
        self.name = name
        descriptor = try FileDescriptor(opening: folder, O_RDONLY | O_DIRECTORY)
    }

    // By bytes, as the kernel does: a mark makes no other '/' of one, and two spellings of a letter are two names.
    private static func split(_ path: String) -> (folder: String, name: String) {
        let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) ?? path.startIndex
        let name = String(Substring(path.utf8[slash...].dropFirst()))
        return (slash == path.startIndex ? "/" : String(path[..<slash]), name)
    }

    private static func parts(_ path: String) -> [Substring.UTF8View] {
        path.utf8.split(separator: UInt8(ascii: "/"))
    }

    private static func realPath(_ descriptor: Int32) throws(SystemError) -> String {
        let link = "/proc/self/fd/\(descriptor)"
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = try check("readlink", link) { readlink(link, &buffer, buffer.count) }
        return String(decoding: buffer[..<count], as: UTF8.self)
    }

    /// Where the file really lies: no link leads there.
    func realPath() throws(SystemError) -> String {
        let folder = try Self.realPath(descriptor.rawValue)
        return folder == "/" ? "/\(name)" : "\(folder)/\(name)"
    }

    /// Means the file as long as this value lives, for who opens it by a path.
    var path: String { "/proc/self/fd/\(descriptor.rawValue)/\(name)" }

    /// Opens the file and calls the body with it; nil: it isn't there, or another lies in its place.
    ///
    /// - Parameters:
    ///   - identity: which file it is.
    ///   - flags: of open(2): how it is used.
    func withFile<Result>(
        _ identity: FileIdentity, _ flags: Int32, _ body: (Int32) throws(SystemError) -> Result
    ) throws(SystemError) -> Result? {
        guard try size() != nil else { return nil }
        let file = try FileDescriptor(opening: path, flags | O_NOFOLLOW | O_NONBLOCK)
        guard try FileIdentity(file.rawValue).isSame(as: identity) else { return nil }
        return try body(file.rawValue)
    }

    /// Opens the file for reading; nil: it isn't there, or another lies in its place.
    func open(_ identity: FileIdentity) throws(SystemError) -> HeldFile? {
        guard try size() != nil else { return nil }
        let file = HeldFile(try FileDescriptor(opening: path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK))
        guard try FileIdentity(file.rawValue).isSame(as: identity) else { return nil }
        return file
    }

    /// Bytes of the file; nil: it isn't there.
    ///
    /// - Throws: `EINVAL` when it is no plain file.
    func size() throws(SystemError) -> Int64? {
        var status = stat()
        do throws(SystemError) {
            try check("stat", path) { lstat(path, &status) }
        } catch {
            if error.code == ENOENT { return nil }
            throw error
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw SystemError(code: EINVAL, operation: "open", subject: name)
        }
        return Int64(status.st_size)
    }

    /// Removes the file; false: it wasn't there, or another lies in its place. It stays removed over a power cut.
    ///
    /// - Throws: `EAGAIN` or `EACCES` when somebody writes it.
    func remove(_ identity: FileIdentity) throws(SystemError) -> Bool {
        let removed: Void? = try withFile(identity, O_RDWR) { (file) throws(SystemError) -> Void in
            try WholeFileLock.take(file)
            try check("unlink", path) { unlinkat(descriptor.rawValue, name, 0) }
            try check("fsync", path) { fsync(descriptor.rawValue) }
        }
        return removed != nil
    }
}

/// A file that is held open.
final class HeldFile {
    private let descriptor: FileDescriptor

    init(_ descriptor: consuming FileDescriptor) { self.descriptor = descriptor }

    var rawValue: Int32 { descriptor.rawValue }

    /// Means the file as long as this lives, for who opens it by a path.
    var path: String { "/proc/self/fd/\(descriptor.rawValue)" }
}
