import CV4L2
import Glibc

/// Something that a device tells by itself (`v4l2_event`), as far as it was subscribed to.
public enum V4L2Event: Hashable, Sendable {
    /// A control has changed: by its driver, by another descriptor, or because a control that governs it did
    /// (`V4L2_EVENT_CTRL`).
    case control(V4L2ControlEvent)
    /// The picture that comes in is another; `resolution`: so is its size (`V4L2_EVENT_SOURCE_CHANGE`).
    case sourceChange(resolution: Bool)
    case other(UInt32)
}

/// What has become of a control (`v4l2_event_ctrl`). Several changes that nobody has fetched are told as one.
public struct V4L2ControlEvent: Hashable, Sendable {
    /// `V4L2_EVENT_CTRL_CH_*`.
    public struct Changes: OptionSet, Hashable, Sendable {
        public let rawValue: UInt32

        public init(rawValue: UInt32) { self.rawValue = rawValue }

        public static let value = Changes(rawValue: 1 << 0)
        public static let flags = Changes(rawValue: 1 << 1)
        /// Minimum, maximum, step, default, or the items of a menu.
        public static let range = Changes(rawValue: 1 << 2)
        public static let dimensions = Changes(rawValue: 1 << 3)
    }

    /// `V4L2_CID_*`.
    public var id: UInt32
    public var kind: V4L2Control.Kind
    public var changes: Changes
    /// Of those kinds that are one number; 0 for the others, whose value has to be asked for.
    public var value: Int64
    public var flags: V4L2Control.Flags
    /// When the driver noticed: CLOCK_MONOTONIC, nanoseconds.
    public var time: Int64

    public init(
        id: UInt32, kind: V4L2Control.Kind, changes: Changes, value: Int64, flags: V4L2Control.Flags, time: Int64
    ) {
        self.id = id
        self.kind = kind
        self.changes = changes
        self.value = value
        self.flags = flags
        self.time = time
    }
}

extension V4L2Device {
    /// Asks to be told of a control's changes by others than this descriptor (`VIDIOC_SUBSCRIBE_EVENT`).
    ///
    /// `ENOTTY`, `EINVAL`: the driver tells nothing of the kind.
    public func subscribe(toControl id: UInt32) throws(V4L2Error) { try subscribe(UInt32(V4L2_EVENT_CTRL), id) }

    /// Asks to be told when the picture that comes in changes (`VIDIOC_SUBSCRIBE_EVENT`); `ENOTTY`, `EINVAL`: the
    /// driver doesn't tell.
    public func subscribeToSourceChange() throws(V4L2Error) { try subscribe(UInt32(V4L2_EVENT_SOURCE_CHANGE), 0) }

    /// The oldest event that was not fetched yet, or nil if there is none (`VIDIOC_DQEVENT`). Doesn't block.
    public func nextEvent() throws(V4L2Error) -> V4L2Event? {
        var answer = v4l2_event()
        switch attempt(.dequeueEvent, &answer) {
        case 0: return V4L2Event(answer)
        case ENOENT, EAGAIN: return nil
        case let number: throw error(number, .dequeueEvent)
        }
    }

    private func subscribe(_ type: UInt32, _ id: UInt32) throws(V4L2Error) {
        var argument = v4l2_event_subscription()
        argument.type = type
        argument.id = id
        try call(.subscribeEvent, &argument)
    }
}

extension V4L2Event {
    init(_ event: v4l2_event) {
        switch Int32(bitPattern: event.type) {
        case V4L2_EVENT_CTRL: self = .control(V4L2ControlEvent(event))
        case V4L2_EVENT_SOURCE_CHANGE:
            self = .sourceChange(resolution: event.u.src_change.changes & UInt32(V4L2_EVENT_SRC_CH_RESOLUTION) != 0)
        default: self = .other(event.type)
        }
    }
}

extension V4L2ControlEvent {
    init(_ event: v4l2_event) {
        let control = event.u.ctrl
        let kind = V4L2Control.Kind(code: control.type)
        let value: Int64 =
            switch kind {
            case .integer, .boolean, .menu, .integerMenu: Int64(control.value)
            case .bitmask: Int64(UInt32(bitPattern: control.value))
            case .integer64: control.value64
            default: 0
            }
        self.init(
            id: event.id, kind: kind, changes: Changes(rawValue: control.changes), value: value,
            flags: V4L2Control.Flags(rawValue: control.flags),
            time: Int64(event.timestamp.tv_sec) &* 1_000_000_000 &+ Int64(event.timestamp.tv_nsec))
    }
}
