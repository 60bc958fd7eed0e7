import CV4L2
import Glibc

/// Whose changes of a device count (`enum v4l2_priority`): a descriptor of a lower priority than another's is refused
/// them with `EBUSY`.
public enum V4L2Priority: UInt32, Hashable, Sendable, Comparable {
    case unset = 0
    case background = 1
    /// Every descriptor's to begin with.
    case interactive = 2
    case record = 3

    public static func < (one: Self, other: Self) -> Bool { one.rawValue < other.rawValue }
}

extension V4L2Device {
    /// The highest that a descriptor of the device has, this one included (`VIDIOC_G_PRIORITY`); nil: the driver has no
    /// priorities.
    public func priority() throws(V4L2Error) -> V4L2Priority? {
        var answer: UInt32 = 0
        switch attempt(.getPriority, &answer) {
        case 0: return V4L2Priority(rawValue: answer) ?? .unset
        case ENOTTY, EINVAL: return nil
        case let number: throw error(number, .getPriority)
        }
    }

    /// Gives this descriptor a priority, which it keeps until it is closed (`VIDIOC_S_PRIORITY`).
    ///
    /// `EBUSY`: another descriptor has a higher one. `ENOTTY`, `EINVAL`: the driver has no priorities.
    public func setPriority(_ priority: V4L2Priority) throws(V4L2Error) {
        var argument = priority.rawValue
        try call(.setPriority, &argument)
    }
}
