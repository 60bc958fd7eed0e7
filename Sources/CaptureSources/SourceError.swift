public import LinuxIO

/// A failure at a device. The text names the operation and the driver's error.
public struct SourceError: Error, Hashable, Sendable, CustomStringConvertible {
    public enum Kind: Hashable, Sendable {
        /// The device is gone (`ENODEV`, or `EINVAL`/`EIO` from a running queue).
        case disconnected
        /// Another program holds or streams it (`EBUSY`).
        case inUse
        /// The device refuses this format, rate or value (`EINVAL`, `ERANGE`).
        case refused
        /// A control can't be set in the present mode (`EACCES`, inactive or read-only), or is busy.
        case controlBusy
        /// The bus or memory has no room (`ENOSPC`, `ENOMEM`).
        case noResources
        /// No permission to open the node (`EACCES`, `EPERM`).
        case notPermitted
        /// It is connected, and gives nothing.
        case silent
        /// From now on its pictures are described otherwise, or have another size: it gives them when it is opened
        /// again.
        case changed(resolution: Bool)
        /// Everything else.
        case failed
    }

    public var kind: Kind
    /// What was attempted: `VIDIOC_S_FMT`, `open`.
    public var operation: String
    /// The kernel's error number; 0: none.
    public var errno: Int32
    /// One sentence for people.
    public var message: String
    /// The control concerned, where it is one.
    public var control: String?
    /// Other programs that use the device, as far as this process can see them: for ``Kind/inUse``.
    public var holders: [DeviceHolder] = []
    /// What is wrong with the material of a device that cannot be plugged in, as a part of a sentence.
    public var lack: String?

    public init(_ kind: Kind, operation: String, errno: Int32 = 0, message: String, control: String? = nil) {
        self.kind = kind
        self.operation = operation
        self.errno = errno
        self.message = message
        self.control = control
    }

    public var description: String { "\(operation): \(message)" }
}
