import CLinux
import Glibc

/// Has the kernel tell when programs wait too long for a resource: a trigger of the pressure stall information
/// (Documentation/accounting/psi.rst).
///
/// Its descriptor has urgent data (`EPOLLPRI`), at most once in each window, which is over with the poll that tells of
/// it.
public final class PressureTrigger: Sendable {
    private let owner: FileDescriptor
    public var rawValue: Int32 { owner.rawValue }

    /// - Parameters:
    ///   - path: `/proc/pressure/cpu`, `memory` or `io`.
    ///   - stall: how long at least one program has to wait within the window, microseconds.
    ///   - window: microseconds; without `CAP_SYS_RESOURCE` a multiple of two seconds.
    /// - Throws: `ENOENT` without pressure stall information, `EOPNOTSUPP` where it is switched off, `EPERM`, `EACCES`
    ///   or `EINVAL` where this user may have no trigger (before Linux 6.4).
    public init(_ path: String, stall: Int, window: Int) throws(SystemError) {
        let file = try FileDescriptor(opening: path, O_RDWR | O_NONBLOCK)
        // With the zero at the end, which the kernel replaces.
        let order = Array("some \(stall) \(window)".utf8) + [0]
        try check("write", path) { write(file.rawValue, order, order.count) }
        owner = file
    }

    /// Whether a file is the kernel's own, where a trigger can be set: on procfs.
    public static func isKernels(_ path: String) -> Bool {
        clinux_is_procfs(path) == 1
    }
}
