import Glibc

/// A system call that failed.
public struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kernel's error number (`errno`).
    public var code: Int32
    /// The call: `bind`, `open`.
    public var operation: String
    /// What it was about: a path, or empty.
    public var subject: String

    /// - Parameter code: read from `errno` right after the call, before anything else can change it.
    public init(code: Int32, operation: String, subject: String = "") {
        self.code = code
        self.operation = operation
        self.subject = subject
    }

    /// It would have had to wait: `EWOULDBLOCK`, which is `EAGAIN`.
    public var isWouldBlock: Bool { code == EWOULDBLOCK }

    /// There is no such file: `ENOENT`.
    public var isAbsent: Bool { code == ENOENT }

    /// There is such a file: `EEXIST`.
    public var isThereAlready: Bool { code == EEXIST }

    /// The same of a file that was to be made under another name for a while: that name tells nobody anything, and
    /// where there is no folder for it, the folder is what is missing.
    public func ofMaking(_ path: String) -> SystemError {
        let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
        let isOfFolder = [ENOENT, ENOTDIR].contains(code) && !folder.isEmpty
        return SystemError(code: code, operation: operation, subject: isOfFolder ? folder : path)
    }

    public var description: String {
        let reason = String(cString: strerror(code))
        return subject.isEmpty ? "\(operation): \(reason)" : "\(operation) \(subject): \(reason)"
    }
}

/// The result of a call that says -1 on failure; repeated when a signal interrupted it.
@discardableResult
public func check<Value: SignedInteger>(
    _ operation: String, _ subject: @autoclosure () -> String = "", _ call: () -> Value
) throws(SystemError) -> Value {
    while true {
        let result = call()
        if result != -1 { return result }
        let code = errno
        if code != EINTR { throw SystemError(code: code, operation: operation, subject: subject()) }
    }
}
