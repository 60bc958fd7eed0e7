import CaptureCore
import Glibc
import Video4Linux

/// Points of interest of a driver that has a region of interest (UVC 1.5, section 4.2.2.1.20;
/// `V4L2_CID_UVC_REGION_OF_INTEREST_RECT` and `_AUTO`, Linux 6.16 and newer): a rectangle, and for which of the
/// camera's automatic functions it counts.
///
/// The points show as controls of this program's own, under the names and ids that points have elsewhere. There is one
/// rectangle for all: a point of one function takes it away from the others, unless theirs is the same.
struct V4L2RegionOfInterest {
    private static let rectangleID: UInt32 = 0x0098_1AE1
    private static let automaticID: UInt32 = 0x0098_1AE2
    private static let end: Int64 = 10_000
    /// Of the whole on each side.
    private static let share = 0.2

    private enum Function: Int64, CaseIterable {
        case exposure = 1
        case focus = 8

        var title: String { self == .exposure ? "Exposure" : "Focus" }
        var firstID: UInt32 { self == .exposure ? 0x009A_1003 : 0x009A_1001 }
        var name: String { self == .exposure ? "exposure_point" : "focus_point" }
    }

    /// All of the picture.
    private let whole: V4L2Rectangle
    private let least: V4L2Rectangle
    private let functions: [Function]
    private let automatic: V4L2Control

    /// nil where the driver has no such region, or doesn't say how large it can be.
    init?(_ device: any V4L2Device, controls: [CaptureControl]) throws(V4L2Error) {
        guard controls.contains(where: { $0.id == Self.rectangleID }),
            let automatic = try Self.ifRead({ () throws(V4L2Error) in try device.control(id: Self.automaticID) }),
            automatic.kind == .bitmask,
            let whole = try Self.ifRead({ () throws(V4L2Error) in
                try device.rectangle(control: Self.rectangleID, .maximum)
            }), whole.width > 1, whole.height > 1
        else { return nil }
        functions = Function.allCases.filter { automatic.maximum & $0.rawValue != 0 }
        guard !functions.isEmpty else { return nil }
        self.automatic = automatic
        self.whole = whole
        least =
            try Self.ifRead { () throws(V4L2Error) in try device.rectangle(control: Self.rectangleID, .minimum) }
            ?? V4L2Rectangle(left: whole.left, top: whole.top, width: 1, height: 1)
    }

    /// nil where the driver fails to read it: cameras answer for some of their controls only in some modes, and go
    /// without them else.
    private static func ifRead<Value>(_ body: () throws(V4L2Error) -> Value?) throws(V4L2Error) -> Value? {
        do throws(V4L2Error) {
            return try body()
        } catch  where error.errno != ENODEV {
            return nil
        }
    }

    var controls: [CaptureControl] {
        functions.flatMap { function in
            ["x", "y"].enumerated().map { index, side in
                CaptureControl(
                    name: "\(function.name)_\(side)", title: "\(function.title) Point, \(side.uppercased())",
                    id: function.firstID + UInt32(index), type: .integer, maximum: Self.end, defaultValue: Self.end / 2,
                    flags: [.volatile], category: "CameraBus")
            }
        }
    }

    func values(_ device: any V4L2Device) throws(V4L2Error) -> [String: ControlValue] {
        guard
            let region = try Self.ifRead({ () throws(V4L2Error) in
                try device.rectangle(control: Self.rectangleID, .current)
            }), let mask = try Self.ifRead({ () throws(V4L2Error) in try mask(device) })
        else { return [:] }
        var values: [String: ControlValue] = [:]
        for function in functions {
            let counts = mask & function.rawValue != 0
            let x = counts ? Self.middle(region.left, region.width, whole.left, whole.width) : Self.end / 2
            let y = counts ? Self.middle(region.top, region.height, whole.top, whole.height) : Self.end / 2
            values["\(function.name)_x"] = .integer(x)
            values["\(function.name)_y"] = .integer(y)
        }
        return values
    }

    /// - Returns: false for a control that is none of these.
    func set(_ name: String, to value: ControlValue, _ device: any V4L2Device) throws(V4L2Error) -> Bool {
        guard let function = functions.first(where: { name == "\($0.name)_x" || name == "\($0.name)_y" }),
            let number = value.number
        else { return false }
        guard (0...Self.end).contains(number) else {
            throw V4L2Error(errno: ERANGE, operation: "VIDIOC_S_EXT_CTRLS", device: device.path)
        }
        // A point comes one side after the other: what isn't set yet is what the region has, whosever it was.
        let before = try device.rectangle(control: Self.rectangleID, .current) ?? whole
        var point = (
            x: Self.middle(before.left, before.width, whole.left, whole.width),
            y: Self.middle(before.top, before.height, whole.top, whole.height)
        )
        if name.hasSuffix("x") { point.x = number } else { point.y = number }
        let region = region(point.x, point.y)
        let isSame = before == region
        try device.setRectangle(control: Self.rectangleID, to: region)
        let mask = try mask(device)
        let others = functions.filter { $0 != function }.reduce(0) { $0 | $1.rawValue }
        try device.setValue(
            of: automatic, to: .integer((isSame ? mask : mask & ~others) | function.rawValue))
        return true
    }

    private func mask(_ device: any V4L2Device) throws(V4L2Error) -> Int64 {
        if case .integer(let mask) = try device.value(of: automatic) { mask } else { 0 }
    }

    /// Around that point as far as the picture's edges let it; in the middle, the whole picture.
    private func region(_ x: Int64, _ y: Int64) -> V4L2Rectangle {
        if x == Self.end / 2, y == Self.end / 2 { return whole }
        let (left, width) = Self.side(x, whole.left, whole.width, least.width)
        let (top, height) = Self.side(y, whole.top, whole.height, least.height)
        return V4L2Rectangle(left: left, top: top, width: width, height: height)
    }

    private static func side(_ point: Int64, _ start: Int32, _ length: UInt32, _ least: UInt32) -> (Int32, UInt32) {
        let size = min(max(UInt32(Double(length) * share), min(least, length), 1), length)
        let middle = Double(start) + Double(length) * Double(point) / Double(end)
        let first = min(max(middle - Double(size) / 2, Double(start)), Double(start) + Double(length - size))
        return (Int32(max(min(first.rounded(), 0x1p31 - 1), -0x1p31)), size)
    }

    // What a region at the edge lies around isn't known to the pixel.
    private static func middle(_ start: Int32, _ length: UInt32, _ wholeStart: Int32, _ whole: UInt32) -> Int64 {
        let middle = Double(start) - Double(wholeStart) + Double(length) / 2
        return Int64(min(max((middle / Double(whole) * Double(end)).rounded(), 0), Double(end)))
    }
}
