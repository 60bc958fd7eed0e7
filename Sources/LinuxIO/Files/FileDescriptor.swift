import CLinux
import Glibc

/// An open descriptor and its one owner: closed when the value ends.
public struct FileDescriptor: ~Copyable, Sendable {
    public let rawValue: Int32

    /// Takes the descriptor over. It must be open, and nobody else may close it.
    public init(owning rawValue: Int32) { self.rawValue = rawValue }

    /// Opens a file, close-on-exec always (`open(2)`).
    public init(opening path: String, _ flags: Int32, mode: UInt32 = 0o600) throws(SystemError) {
        rawValue = try check("open", path) { open(path, flags | O_CLOEXEC, mode) }
    }

    /// Opens a file to read, by a path of which others may have made parts, and without waiting for anybody.
    ///
    /// - Parameter path: absolute. Links on the way are followed where root or this process's user made them.
    /// - Throws: `ELOOP` for another user's link, and where the file itself is one; else as `open(2)`.
    public init(openingByOwnLinks path: String) throws(SystemError) {
        rawValue = try check("open", path) { clinux_open_by_own_links(path) }
    }

    deinit { _ = close(rawValue) }

    /// Writes all of the bytes, however long a reader takes for them (`write(2)`). Also to a descriptor that does not
    /// block: whoever else has a standard output, as a terminal's other programs or our parent, may have made it so.
    ///
    /// - Throws: `EPIPE`: nobody reads it any more; else as `write(2)`.
    public static func writeAll(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) throws(SystemError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            do throws(SystemError) {
                let part = UnsafeRawBufferPointer(rebasing: rest)
                rest = rest.dropFirst(try check("write") { write(descriptor, part.baseAddress, part.count) })
            } catch {
                guard error.isWouldBlock else { throw error }
                var item = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = poll(&item, 1, -1)
            }
        }
    }

    /// The same of an array.
    public static func writeAll(_ bytes: [UInt8], to descriptor: Int32) throws(SystemError) {
        try bytes.withUnsafeBytes { bytes in
            Result { () throws(SystemError) in try writeAll(bytes, to: descriptor) }
        }.get()
    }

    /// Gives the descriptor away, open.
    public consuming func release() -> Int32 {
        let value = rawValue
        discard self
        return value
    }
}
