import CV4L2
import Glibc

/// A control as the driver describes it (`v4l2_query_ext_ctrl`). Class headings are among them, with type
/// ``Kind/controlClass``.
public struct V4L2Control: Hashable, Sendable {
    /// `V4L2_CID_*`.
    public var id: UInt32
    public var kind: Kind
    /// The driver's name: `White Balance, Automatic`.
    public var name: String
    public var minimum: Int64
    public var maximum: Int64
    public var step: UInt64
    public var defaultValue: Int64
    public var flags: Flags
    /// Bytes of one element.
    public var elementSize: UInt32
    /// Elements: 1, or for arrays as many as there are now.
    public var elements: UInt32
    /// The lengths of each dimension; empty for what is no array.
    public var dimensions: [UInt32]

    /// `V4L2_CTRL_TYPE_*`.
    public enum Kind: Hashable, Sendable {
        case integer, boolean, menu, button, integer64, controlClass, string, bitmask, integerMenu
        case u8, u16, u32, area
        /// A type that this module doesn't know: it is listed, and neither read nor set.
        case other(UInt32)
    }

    /// `V4L2_CTRL_FLAG_*`.
    public struct Flags: OptionSet, Hashable, Sendable {
        public let rawValue: UInt32

        public init(rawValue: UInt32) { self.rawValue = rawValue }
        private init(_ flag: Int32) { rawValue = UInt32(bitPattern: flag) }

        public static let disabled = Flags(V4L2_CTRL_FLAG_DISABLED)
        public static let grabbed = Flags(V4L2_CTRL_FLAG_GRABBED)
        public static let readOnly = Flags(V4L2_CTRL_FLAG_READ_ONLY)
        public static let update = Flags(V4L2_CTRL_FLAG_UPDATE)
        public static let inactive = Flags(V4L2_CTRL_FLAG_INACTIVE)
        public static let slider = Flags(V4L2_CTRL_FLAG_SLIDER)
        public static let writeOnly = Flags(V4L2_CTRL_FLAG_WRITE_ONLY)
        public static let volatile = Flags(V4L2_CTRL_FLAG_VOLATILE)
        public static let hasPayload = Flags(V4L2_CTRL_FLAG_HAS_PAYLOAD)
        public static let executeOnWrite = Flags(V4L2_CTRL_FLAG_EXECUTE_ON_WRITE)
        public static let modifyLayout = Flags(V4L2_CTRL_FLAG_MODIFY_LAYOUT)
        public static let dynamicArray = Flags(V4L2_CTRL_FLAG_DYNAMIC_ARRAY)
    }

    /// The id of the heading that the control stands under (`V4L2_CTRL_ID2CLASS`, and 1).
    public var classID: UInt32 { id & 0x0FFF_0000 | 1 }
}

/// An item of a menu (`v4l2_querymenu`).
public enum V4L2MenuItem: Hashable, Sendable {
    case name(String)
    case value(Int64)
}

extension V4L2Device {
    /// All controls in ascending order of their ids (`VIDIOC_QUERY_EXT_CTRL`); empty where the device has none.
    ///
    /// One that the driver fails to describe is left out: cameras that stall requests about some of theirs are common.
    public func controls() throws(V4L2Error) -> [V4L2Control] {
        var controls: [V4L2Control] = []
        var previous: UInt32 = 0
        while controls.count < v4l2ControlLimit {
            var answer = v4l2_query_ext_ctrl()
            answer.id = previous | cv4l2_CTRL_FLAG_NEXT_CTRL | cv4l2_CTRL_FLAG_NEXT_COMPOUND
            switch attempt(.queryControl, &answer) {
            case 0: break
            case EINVAL, ENOTTY: return controls
            case ENODEV: throw error(ENODEV, .queryControl)
            // "Next" doesn't say which one it failed at.
            default:
                guard let failing = failingControl(after: previous) else { return controls }
                previous = failing
                continue
            }
            // The next control is a higher one. A driver that goes back would go round for ever.
            guard answer.id > previous else { return controls }
            previous = answer.id
            controls.append(V4L2Control(answer))
        }
        return controls
    }

    /// The first of the standard controls beyond that id which there is, and which the driver fails to describe.
    private func failingControl(after previous: UInt32) -> UInt32? {
        for base in v4l2ControlBases {
            for id in base..<(base + v4l2ControlsOfClass) where id > previous {
                var answer = v4l2_query_ext_ctrl()
                answer.id = id
                switch attempt(.queryControl, &answer) {
                case 0, EINVAL, ENOTTY: continue
                default: return id
                }
            }
        }
        return nil
    }

    /// One control with its present range and flags (`VIDIOC_QUERY_EXT_CTRL`); nil if there is none of that id.
    public func control(id: UInt32) throws(V4L2Error) -> V4L2Control? {
        var answer = v4l2_query_ext_ctrl()
        answer.id = id
        switch attempt(.queryControl, &answer) {
        case 0: return V4L2Control(answer)
        case EINVAL, ENOTTY: return nil
        case let number: throw error(number, .queryControl)
        }
    }

    /// The items of a menu by their values; those that the device doesn't have are missing (`VIDIOC_QUERYMENU`).
    public func menu(of control: V4L2Control) throws(V4L2Error) -> [Int64: V4L2MenuItem] {
        guard control.kind == .menu || control.kind == .integerMenu, control.minimum >= 0 else { return [:] }
        guard control.maximum >= control.minimum, control.maximum <= Int64(UInt32.max) else { return [:] }
        var items: [Int64: V4L2MenuItem] = [:]
        let last = min(control.maximum, control.minimum + Int64(v4l2EnumerationLimit) - 1)
        for index in control.minimum...last {
            var answer = v4l2_querymenu()
            answer.id = control.id
            answer.index = UInt32(index)
            switch attempt(.queryMenu, &answer) {
            case 0: items[index] = control.kind == .menu ? .name(text(answer.name)) : .value(answer.value)
            case EINVAL: continue
            case ENODEV: throw error(ENODEV, .queryMenu)
            default: return items
            }
        }
        return items
    }
}

/// Where the ids of the controls of cameras begin, class by class (`V4L2_CID_BASE`, `V4L2_CID_CAMERA_CLASS_BASE`,
/// flash, image source and image processing), and how many of each class are looked at.
private let v4l2ControlBases: [UInt32] = [0x0098_0900, 0x009A_0900, 0x009C_0900, 0x009E_0900, 0x009F_0900]
private let v4l2ControlsOfClass: UInt32 = 96

/// How many controls a device has at most for this module. The kernel's largest drivers have some 150.
private let v4l2ControlLimit = 2048

extension V4L2Control {
    init(_ answer: v4l2_query_ext_ctrl) {
        let count = min(Int(answer.nr_of_dims), Int(V4L2_CTRL_MAX_DIMS))
        self.init(
            id: answer.id, kind: Kind(code: answer.type), name: text(answer.name), minimum: answer.minimum,
            maximum: answer.maximum, step: answer.step, defaultValue: answer.default_value,
            flags: Flags(rawValue: answer.flags), elementSize: answer.elem_size, elements: answer.elems,
            dimensions: withUnsafeBytes(of: answer.dims) { Array($0.bindMemory(to: UInt32.self).prefix(count)) })
    }
}

extension V4L2Control.Kind {
    init(code: UInt32) {
        self =
            switch code {
            case V4L2_CTRL_TYPE_INTEGER.rawValue: .integer
            case V4L2_CTRL_TYPE_BOOLEAN.rawValue: .boolean
            case V4L2_CTRL_TYPE_MENU.rawValue: .menu
            case V4L2_CTRL_TYPE_BUTTON.rawValue: .button
            case V4L2_CTRL_TYPE_INTEGER64.rawValue: .integer64
            case V4L2_CTRL_TYPE_CTRL_CLASS.rawValue: .controlClass
            case V4L2_CTRL_TYPE_STRING.rawValue: .string
            case V4L2_CTRL_TYPE_BITMASK.rawValue: .bitmask
            case V4L2_CTRL_TYPE_INTEGER_MENU.rawValue: .integerMenu
            case V4L2_CTRL_TYPE_U8.rawValue: .u8
            case V4L2_CTRL_TYPE_U16.rawValue: .u16
            case V4L2_CTRL_TYPE_U32.rawValue: .u32
            case V4L2_CTRL_TYPE_AREA.rawValue: .area
            default: .other(code)
            }
    }
}

extension V4L2Device {
    /// Has the encoder make its next picture a key frame (`V4L2_CID_MPEG_VIDEO_FORCE_KEY_FRAME`).
    ///
    /// - Returns: false where the device has no button for that.
    @discardableResult
    public func forceKeyFrame() throws(V4L2Error) -> Bool {
        guard let button = try control(id: UInt32(cv4l2_CID_MPEG_VIDEO_FORCE_KEY_FRAME)) else { return false }
        try setValue(of: button, to: .integer(0))
        return true
    }
}

/// Where a camera looks (`V4L2_CID_CAMERA_ORIENTATION`) and its values.
extension V4L2Control {
    public static let cameraOrientation = UInt32(cv4l2_CID_CAMERA_ORIENTATION)
    public static let orientationFront = Int64(V4L2_CAMERA_ORIENTATION_FRONT)
    public static let orientationBack = Int64(V4L2_CAMERA_ORIENTATION_BACK)
    public static let orientationExternal = Int64(V4L2_CAMERA_ORIENTATION_EXTERNAL)
}
