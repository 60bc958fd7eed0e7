public import CaptureCore

/// Something that a device tells by itself.
public enum DeviceEvent: Hashable, Sendable {
    case control(ControlEvent)
    /// The picture that comes in is another; `resolution`: so is its size.
    case sourceChanged(resolution: Bool)
}

/// A control that was changed by the camera itself, by another program, or by a control that governs it.
public struct ControlEvent: Hashable, Sendable {
    /// `V4L2_CID_*`.
    public var id: UInt32
    /// nil: it stayed, or has to be read.
    public var value: ControlValue?
    /// nil: they stayed.
    public var flags: Set<ControlFlag>?
    /// The event doesn't hold all that has changed: a text, an array, a range.
    public var mustBeRead: Bool
    /// CLOCK_MONOTONIC, nanoseconds. What was read later knows of it.
    public var time: Int64

    public init(
        id: UInt32, value: ControlValue? = nil, flags: Set<ControlFlag>? = nil, mustBeRead: Bool = false, time: Int64
    ) {
        self.id = id
        self.value = value
        self.flags = flags
        self.mustBeRead = mustBeRead
        self.time = time
    }
}

/// What a device tells by itself, used on the loop thread only. No call blocks.
///
/// Changes that were made through the device's own descriptor are not told. What nobody fetches is bounded: one event
/// for each control, which stands for all its changes.
public protocol DeviceEventQueue: AnyObject {
    /// To be polled; stays open as long as this object lives.
    var descriptor: Int32 { get }
    /// Events show as urgent data (`POLLPRI`), as V4L2's do beside frames; false: as input.
    var isUrgent: Bool { get }
    /// The oldest event, or nil when there is none. An error means that the device is gone.
    func next() throws(SourceError) -> DeviceEvent?
}

/// Whose changes of a device count in the kernel (`VIDIOC_S_PRIORITY`).
public enum KernelPriority: String, Hashable, Sendable {
    /// Ours only (`V4L2_PRIORITY_RECORD`): other programs are refused every change.
    case record
    /// Everybody's.
    case `default`
    /// Another program has the priority that was wanted here; our changes are refused as well.
    case refused
    /// The driver knows no priorities: nobody can be kept out.
    case unsupported
}
