import Glibc

/// A V4L2 request, or an `open` or `mmap` of a node, that the kernel refused.
public struct V4L2Error: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kernel's error number.
    public var errno: Int32
    /// What was attempted, in the kernel's spelling: `VIDIOC_S_FMT`, `open`.
    public var operation: String
    /// The node: `/dev/video0`.
    public var device: String

    public init(errno: Int32, operation: String, device: String) {
        self.errno = errno
        self.operation = operation
        self.device = device
    }

    /// The C library's words for the error number: `No such device`.
    public var reason: String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { text in
            guard let start = text.baseAddress, strerror_r(errno, start, text.count) == 0 else {
                return "error \(errno)"
            }
            return String(cString: start)
        }
    }

    public var description: String { "\(operation) on \(device): \(reason)" }
}
