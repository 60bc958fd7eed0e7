import CUdev
import Glibc

/// Tells of devices of one subsystem that come and go (`udev_monitor`), without opening any.
///
/// Belongs to one thread.
public final class DeviceMonitor {
    /// Whose events these are.
    public enum Source: String, Hashable, Sendable {
        /// What udev passes on when it is done with a device: its permissions and links are there.
        case udev
        /// What the kernel itself says, where no udev runs: in containers and on small systems.
        case kernel
    }

    /// What happened to a device.
    public struct Event: Hashable, Sendable {
        /// `add`, `remove`, `change`, `bind`, …; nil: events were lost, and anything may have happened.
        public var action: String?
        /// `/dev/video0`, if the device has a node.
        public var node: String?

        public init(action: String?, node: String?) {
            self.action = action
            self.node = node
        }
    }

    public let source: Source
    private let context: OpaquePointer
    private let monitor: OpaquePointer

    /// Where udevd is to be reached, when one runs.
    private static let udevSocket = "/run/udev/control"

    /// Listens from now on.
    ///
    /// - Parameters:
    ///   - subsystem: `video4linux`.
    ///   - source: nil: udev where it runs, else the kernel.
    /// - Throws: ``UdevError`` where this process may not listen.
    public init(subsystem: String, source: Source? = nil) throws(UdevError) {
        let source = source ?? (access(Self.udevSocket, F_OK) == 0 ? .udev : .kernel)
        guard let context = udev_new() else { throw UdevError(operation: "udev_new", code: errno) }
        guard let monitor = udev_monitor_new_from_netlink(context, source.rawValue) else {
            let code = errno
            udev_unref(context)
            throw UdevError(operation: "udev_monitor_new_from_netlink", code: code)
        }
        self.source = source
        self.context = context
        self.monitor = monitor
        // From here on deinit frees them, also when this throws.
        try Self.check("udev_monitor_filter_add_match_subsystem_devtype") {
            udev_monitor_filter_add_match_subsystem_devtype(monitor, subsystem, nil)
        }
        try Self.check("udev_monitor_enable_receiving") { udev_monitor_enable_receiving(monitor) }
    }

    deinit {
        udev_monitor_unref(monitor)
        udev_unref(context)
    }

    /// Readable when there is an event; valid as long as this monitor.
    public var descriptor: Int32 { udev_monitor_get_fd(monitor) }

    /// The next event, if there is one; never waits.
    public func next() -> Event? {
        errno = 0
        guard let device = udev_monitor_receive_device(monitor) else {
            // More came than the socket holds (ENOBUFS).
            return errno == ENOBUFS ? Event(action: nil, node: nil) : nil
        }
        defer { udev_device_unref(device) }
        return Event(
            action: udev_device_get_action(device).map { String(cString: $0) },
            node: udev_device_get_devnode(device).map { String(cString: $0) })
    }

    private static func check(_ operation: String, _ body: () -> Int32) throws(UdevError) {
        let result = body()
        if result < 0 { throw UdevError(operation: operation, code: -result) }
    }
}

/// What libudev refused, and why.
public struct UdevError: Error, Hashable, Sendable, CustomStringConvertible {
    public var operation: String
    /// `errno`.
    public var code: Int32

    public init(operation: String, code: Int32) {
        self.operation = operation
        self.code = code
    }

    public var description: String { "\(operation): \(String(cString: strerror(code)))" }
}
