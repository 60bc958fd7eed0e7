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

    deinit { _ = close(rawValue) }

    /// Gives the descriptor away, open.
    public consuming func release() -> Int32 {
        let value = rawValue
        discard self
        return value
    }
}
