import CLinux
import Glibc

/// Memory of a fixed size that another process fills by its descriptor, and this one reads without copying it
/// (`memfd_create(2)`, sealed with `F_SEAL_SHRINK`, `F_SEAL_GROW`, `F_SEAL_SEAL`). What nobody writes to takes no room.
public final class FilledMemory: Sendable {
    private let file: FileDescriptor
    /// Keeps the memory, also when this has ended.
    public let view: SharedMemoryView

    /// Becomes, for example, the standard input of the process that fills it.
    public var rawValue: Int32 { file.rawValue }

    /// - Parameters:
    ///   - name: shown in `/proc/<pid>/maps`.
    ///   - count: bytes, above 0.
    public init(name: String, count: Int) throws(SystemError) {
        guard count > 0 else { throw SystemError(code: EINVAL, operation: "memfd_create", subject: name) }
        let made = FileDescriptor(owning: try check("memfd_create", name) { clinux_memfd(name) })
        try check("ftruncate", name) { ftruncate(made.rawValue, count) }
        try check("fcntl", name) { clinux_seal_size(made.rawValue) }
        view = try SharedMemoryView(made.rawValue)
        file = made
    }
}
