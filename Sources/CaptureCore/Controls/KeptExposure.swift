public import JSON

/// An exposure that is to be locked when it has settled, as somebody was told; it outlives the coordinator that told
/// it.
public struct KeptExposure: Hashable, Sendable {
    /// The device's `uniqueID`.
    public var device: String
    /// Who asked for it.
    public var holder: LockHolder
    /// Of the lock that it was asked under.
    public var fence: UInt64
    /// The format that it was asked in.
    public var format: JSONValue
    /// The device's worker, with which the exposure that is settling ends.
    public var worker: Int32

    public init(device: String, holder: LockHolder, fence: UInt64, format: JSONValue, worker: Int32) {
        self.device = device
        self.holder = holder
        self.fence = fence
        self.format = format
        self.worker = worker
    }

    /// What ``init(keptJSON:)`` reads.
    public var keptJSON: JSONValue {
        [
            "device": .string(device), "holder": holder.keptJSON, "fence": JSONValue(fence), "format": format,
            "worker": JSONValue(worker),
        ]
    }

    /// nil when it is something else.
    public init?(keptJSON json: JSONValue) {
        guard let device = json["device"]?.string, let holder = json["holder"].flatMap(LockHolder.init(keptJSON:)),
            let fence = KeptState.fence(of: json), let format = json["format"],
            let worker = json["worker"]?.integer.flatMap({ Int32(exactly: $0) })
        else { return nil }
        self.init(device: device, holder: holder, fence: fence, format: format, worker: worker)
    }
}
