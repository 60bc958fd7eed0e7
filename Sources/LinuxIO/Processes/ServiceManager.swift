import Glibc

/// Tells a service manager how the service is (`sd_notify(3)`): a datagram to `$NOTIFY_SOCKET`. Does nothing without
/// one.
public struct ServiceManager: Sendable {
    private let path: String?
    /// How often `WATCHDOG=1` is due, in nanoseconds: half of `$WATCHDOG_USEC`. nil: no watchdog.
    public let watchdogInterval: Int64?

    public init(environment: (String) -> String?) {
        path = environment("NOTIFY_SOCKET")
        let isOurs = environment("WATCHDOG_PID").map { Int32($0) == getpid() } ?? true
        watchdogInterval =
            isOurs
            ? environment("WATCHDOG_USEC").flatMap { Int64($0) }.flatMap {
                $0 > 0 ? $0.multipliedReportingOverflow(by: 500) : nil
            }
            .flatMap { $0.overflow ? nil : $0.partialValue } : nil
    }

    /// Sends one state: `READY=1`, `STOPPING=1`, `WATCHDOG=1`, `STATUS=…`.
    public func notify(_ state: String) {
        guard let path, path.utf8.count <= UnixSocket.maximumPathBytes, path.hasPrefix("/") || path.hasPrefix("@")
        else { return }
        let raw = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        guard raw >= 0 else { return }
        let descriptor = FileDescriptor(owning: raw)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var bytes = Array(path.utf8)
        if path.hasPrefix("@") { bytes[0] = 0 }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + bytes.count + (bytes[0] == 0 ? 0 : 1))
        _ = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(
                    descriptor.rawValue, state, state.utf8.count, Int32(truncatingIfNeeded: MSG_NOSIGNAL), $0, length)
            }
        }
    }
}
