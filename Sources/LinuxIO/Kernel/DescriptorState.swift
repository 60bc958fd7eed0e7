import Glibc

/// What `poll(2)` says of a descriptor right now.
public enum Descriptor {
    /// True if it is in error, hung up, or not open at all.
    public static func isBroken(_ descriptor: Int32) -> Bool {
        var item = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&item, 1, 0) == 1 else { return false }
        return Int32(item.revents) & (POLLERR | POLLHUP | POLLNVAL) != 0
    }
}
