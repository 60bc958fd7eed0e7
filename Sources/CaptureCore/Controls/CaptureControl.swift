/// The value of a control.
public enum ControlValue: Hashable, Sendable {
    case boolean(Bool)
    /// Integers of any width, menu indices, bit masks.
    case integer(Int64)
    case string(String)
    /// Compound controls of integers (`V4L2_CTRL_TYPE_U8` … `U32`, `AREA` as width and height, a rectangle as left,
    /// top, width and height), element by element.
    case integers([Int64])

    /// What is one number: integers, and booleans as 0 and 1.
    public var number: Int64? {
        switch self {
        case .boolean(let flag): flag ? 1 : 0
        case .integer(let number): number
        case .string, .integers: nil
        }
    }
}

/// What kind of value a control takes: V4L2's `V4L2_CTRL_TYPE_*` in v4l2-ctl's words.
public enum ControlType: String, Hashable, Sendable, CaseIterable {
    case integer = "int"
    case boolean = "bool"
    case menu
    case button
    case integer64 = "int64"
    case string = "str"
    case bitmask
    case integerMenu = "intmenu"
    case u8, u16, u32, area
    /// Left, top, width and height, within ``CaptureControl/bounds``.
    case rectangle = "rect"
    /// A type that this program doesn't know: listed, and neither read nor set.
    case unknown
}

/// What the driver says of a control beside its range: `V4L2_CTRL_FLAG_*` in v4l2-ctl's words.
public enum ControlFlag: String, Hashable, Sendable, CaseIterable {
    case disabled, grabbed
    case readOnly = "read-only"
    case update, inactive, slider
    case writeOnly = "write-only"
    case volatile
    case hasPayload = "has-payload"
    case executeOnWrite = "execute-on-write"
    case modifyLayout = "modify-layout"
    case dynamicArray = "dynamic-array"
}

/// A menu's item: a name, or for an integer menu a number.
public enum ControlMenuItem: Hashable, Sendable {
    case name(String)
    case value(Int64)
}

/// A knob of a device: every V4L2 control is one.
public struct CaptureControl: Hashable, Sendable {
    /// The driver's name as v4l2-ctl writes it: lower case, `_` for every run of other characters (`brightness`,
    /// `white_balance_automatic`); where kernels have differed, the present one (``ControlNames``).
    public var name: String
    /// The driver's name as it is (`Brightness`).
    public var title: String
    /// `V4L2_CID_*`.
    public var id: UInt32
    public var type: ControlType
    public var minimum: Int64
    public var maximum: Int64
    public var step: Int64
    /// nil where the type has none (button, string, compound).
    public var defaultValue: Int64?
    /// Items by index, for `menu` and `integerMenu`.
    public var menu: [Int64: ControlMenuItem]
    public var flags: Set<ControlFlag>
    /// For compound controls the lengths of each dimension (`dims`); empty otherwise.
    public var dimensions: [Int]
    /// The control's class as the driver names it (`User Controls`).
    public var category: String
    /// Of a rectangle: where it can be.
    public var bounds: PixelRectangle?
    /// Of a rectangle: where it is unless somebody sets it.
    public var defaultRectangle: PixelRectangle?

    public init(
        name: String, title: String, id: UInt32, type: ControlType, minimum: Int64 = 0, maximum: Int64 = 0,
        step: Int64 = 1, defaultValue: Int64? = nil, menu: [Int64: ControlMenuItem] = [:],
        flags: Set<ControlFlag> = [], dimensions: [Int] = [], category: String = ""
    ) {
        self.name = name
        self.title = title
        self.id = id
        self.type = type
        self.minimum = minimum
        self.maximum = maximum
        self.step = step
        self.defaultValue = defaultValue
        self.menu = menu
        self.flags = flags
        self.dimensions = dimensions
        self.category = category
    }

    /// The name that v4l2-ctl makes of a driver's title.
    public static func name(ofTitle title: String) -> String {
        var name = ""
        var gap = false
        for byte in title.utf8 {
            let isAlphanumeric =
                (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
                || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
                || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
            if isAlphanumeric {
                if gap, !name.isEmpty { name.append("_") }
                gap = false
                name.unicodeScalars.append(UnicodeScalar(byte))
            } else {
                gap = true
            }
        }
        return name.lowercased()
    }
}
