public import LinuxIO

/// What went wrong at a device, for the caller to act on. The text names the operation and the driver's word for it.
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
        /// It is there, and gives nothing.
        case silent
        /// Everything else.
        case failed
    }

    public var kind: Kind
    /// What was attempted: `VIDIOC_S_FMT`, `open`.
    public var operation: String
    /// The kernel's error number, 0 where there is none.
    public var errno: Int32
    /// One sentence for people.
    public var message: String
    /// The control concerned, where it is one.
    public var control: String?
    /// Other programs that have the device, as far as they can be seen: for ``Kind/inUse``.
    public var holders: [DeviceHolder] = []
    /// What is wrong with what the device is made of, as a part of a sentence: of one that can't be plugged in.
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
