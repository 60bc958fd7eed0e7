import Glibc
import JSON
import LinuxIO

/// A file of the library, opened by what the bus says of its entry: no path of a client's is ever opened.
final class LibraryFile: Sendable {
    let descriptor: FileDescriptor
    let count: Int
    let name: String

    /// Where the entry has a file of that name.
    ///
    /// - Returns: nil: it has none.
    static func path(named name: String, of entry: JSONValue) -> String? {
        let paths = ["path", "movie", "cover", "sideCar"].compactMap { entry[$0]?.string }
        return paths.first { $0.hasPrefix("/") && $0.split(separator: "/").last.map(String.init) == name }
    }

    /// - Throws: for what isn't there, may not be read, or is no plain file.
    init(_ path: String) throws(SystemError) {
        let raw = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard raw >= 0 else { throw SystemError(code: errno, operation: "open", subject: path) }
        descriptor = FileDescriptor(owning: raw)
        var status = stat()
        guard fstat(raw, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw SystemError(code: EINVAL, operation: "open", subject: path)
        }
        count = Int(status.st_size)
        name = path.split(separator: "/").last.map(String.init) ?? ""
    }

    /// Reads on from there.
    func seek(to start: Int) { lseek(descriptor.rawValue, off_t(start), SEEK_SET) }

    /// How a browser is told to keep it (RFC 6266).
    var disposition: String {
        let safe = name.utf8.map { byte -> String in
            switch byte {
            case 48...57, 65...90, 97...122, UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
                String(UnicodeScalar(byte))
            default: "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return "Content-Disposition: attachment; filename*=UTF-8''\(safe.joined())"
    }
}
