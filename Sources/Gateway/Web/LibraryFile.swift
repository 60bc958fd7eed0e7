import Glibc
import JSON
import LinuxIO
import NIOCore

/// A file of the library, opened by the path in the bus's entry. Paths of clients are never opened.
final class LibraryFile: Sendable {
    private let descriptor: LinuxIO.FileDescriptor
    let count: Int

    /// Where the entry has a file of that name, and in which member.
    ///
    /// - Returns: nil: it has none.
    static func place(named name: String, of entry: JSONValue) -> (member: String, path: String)? {
        for member in ["path", "movie", "cover", "sideCar"] {
            guard let path = entry[member]?.string, path.utf8.first == slash, self.name(path) == name else { continue }
            return (member, path)
        }
        return nil
    }

    private static let slash = UInt8(ascii: "/")

    // By bytes: with a combining mark behind it "/" is another Character.
    private static func name(_ path: String) -> String? {
        path.utf8.split(separator: slash).last.map { String(Substring($0)) }
    }

    /// - Throws: for what isn't there, may not be read, or is no plain file.
    init(_ path: String) throws(SystemError) {
        // An entry may lie in a folder of a user's own, who could have made a link of it since.
        descriptor = try LinuxIO.FileDescriptor(openingByOwnLinks: path)
        var status = stat()
        guard fstat(descriptor.rawValue, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw SystemError(code: EINVAL, operation: "open", subject: path)
        }
        count = Int(status.st_size)
    }

    /// Bytes that are read from the disk at once.
    private static let partBytes = 256 << 10

    /// Sends that part of it. A file that has become shorter ends the connection.
    func send(_ part: Range<Int>, to stream: WebStream) async throws {
        var part = part
        while !part.isEmpty {
            let next = part.prefix(Self.partBytes)
            let read = try await DiskWork.run { [self] () throws(SystemError) in try bytes(next) }.get()
            try await stream.send(ByteBuffer(bytes: read))
            part = next.upperBound..<part.upperBound
        }
    }

    private func bytes(_ range: Range<Int>) throws(SystemError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: range.count)
        var done = 0
        while done < bytes.count {
            let count = try check("pread") {
                bytes.withUnsafeMutableBytes {
                    pread(descriptor.rawValue, $0.baseAddress! + done, $0.count - done, off_t(range.lowerBound + done))
                }
            }
            guard count > 0 else { throw SystemError(code: EPIPE, operation: "pread") }
            done += count
        }
        return bytes
    }

    /// The value of `Content-Disposition` for a file of that name (RFC 6266).
    static func disposition(_ name: String) -> String {
        let safe = name.utf8.map { byte -> String in
            switch byte {
            case 48...57, 65...90, 97...122, UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
                String(UnicodeScalar(byte))
            default: "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return "attachment; filename*=UTF-8''\(safe.joined())"
    }
}
