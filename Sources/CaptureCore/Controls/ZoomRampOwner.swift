public import JSON

/// For whom a zoom ramp runs. The device's worker keeps it for as long as it does, so that the next coordinator knows
/// it too.
public struct ZoomRampOwner: Hashable, Sendable {
    public var holder: LockHolder
    /// Of the lock that it was begun under.
    public var fence: UInt64

    public init(holder: LockHolder, fence: UInt64) {
        self.holder = holder
        self.fence = fence
    }

    /// Whether a ramp ends where it is because the device has that lock: another process was given it since the ramp
    /// was begun.
    public func yields(to lock: Lock) -> Bool {
        !lock.isTransient && lock.fence > fence && !lock.holder.isSameProcess(as: holder)
    }

    /// {holder, fence}
    public var json: JSONValue { ["holder": holder.keptJSON, "fence": JSONValue(fence)] }

    /// nil when it is something else.
    public init?(json: JSONValue) {
        guard let holder = json["holder"].flatMap(LockHolder.init(keptJSON:)),
            let fence = json["fence"]?.integer.flatMap({ UInt64(exactly: $0) })
        else { return nil }
        self.init(holder: holder, fence: fence)
    }
}
