import CZeroMQ
import Glibc

/// A call of libzmq that failed.
public struct ZeroMQError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The error number (`zmq_errno`).
    public var code: Int32
    /// The call: `zmq_bind`.
    public var operation: String
    /// The endpoint or option concerned, or empty.
    public var subject: String

    public var description: String {
        let reason = String(cString: zmq_strerror(code))
        return subject.isEmpty ? "\(operation): \(reason)" : "\(operation) \(subject): \(reason)"
    }

    init(_ operation: String, _ subject: String = "") {
        code = zmq_errno()
        self.operation = operation
        self.subject = subject
    }
}

/// The version of the library that is linked, as `4.3.4`.
public func libraryVersion() -> String {
    var (major, minor, patch): (Int32, Int32, Int32) = (0, 0, 0)
    zmq_version(&major, &minor, &patch)
    return "\(major).\(minor).\(patch)"
}

/// Retries what a signal interrupted.
@inline(__always)
func retrying(_ call: () -> Int32) -> Int32 {
    while true {
        let result = call()
        if result != -1 || zmq_errno() != EINTR { return result }
    }
}
