import Glibc
public import LinuxIO

/// A gate that a shell script waits at, by ``waiting``, until ``open()``: a named pipe, so that nobody has to look
/// again and again.
public final class Gate: Sendable {
    public let path: String
    private let descriptor: FileDescriptor

    /// - Parameter path: removed when this ends.
    public init(_ path: String) throws(SystemError) {
        self.path = path
        guard mkfifo(path, 0o600) == 0 else { throw SystemError(code: errno, operation: "mkfifo", subject: path) }
        // Both ways, so that it opens before anybody waits, and keeps what is written until somebody does.
        descriptor = try FileDescriptor(opening: path, O_RDWR)
    }

    deinit { unlink(path) }

    /// A shell command that ends when the gate is opened.
    public var waiting: String { "read -r _ <'\(path)'" }

    /// Lets one script on.
    public func open() throws(SystemError) {
        guard write(descriptor.rawValue, "\n", 1) == 1 else {
            throw SystemError(code: errno, operation: "write", subject: path)
        }
    }
}
