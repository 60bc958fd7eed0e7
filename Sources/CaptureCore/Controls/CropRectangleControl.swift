public import JSON

/// A part of a sensor's picture, in the sensor's pixels.
public struct PixelRectangle: Hashable, Sendable {
    public var x: Int64
    public var y: Int64
    public var width: Int64
    public var height: Int64

    public init(x: Int64, y: Int64, width: Int64, height: Int64) {
        (self.x, self.y, self.width, self.height) = (x, y, width, height)
    }

    /// Reads ``numbers``; nil for others.
    public init?(_ value: ControlValue) {
        guard case .integers(let numbers) = value, numbers.count == 4 else { return nil }
        self.init(x: numbers[0], y: numbers[1], width: numbers[2], height: numbers[3])
    }

    /// Left, top, width, height: the control's value.
    public var numbers: ControlValue { .integers([x, y, width, height]) }

    /// Reads what ``json`` writes; nil for anything else.
    public init?(json: JSONValue) {
        guard let x = json["x"]?.integer, let y = json["y"]?.integer, let width = json["width"]?.integer,
            let height = json["height"]?.integer
        else { return nil }
        self.init(x: x, y: y, width: width, height: height)
    }

    /// {x, y, width, height}
    public var json: JSONValue {
        ["x": .integer(x), "y": .integer(y), "width": .integer(width), "height": .integer(height)]
    }

    /// All of the other one's pixels are pixels of this one, and it has at least one.
    public func contains(_ part: PixelRectangle) -> Bool {
        func lies(_ start: Int64, _ length: Int64, in first: Int64, _ whole: Int64) -> Bool {
            let (end, overflow) = start.addingReportingOverflow(length)
            return length > 0 && start >= first && !overflow && end <= first + whole
        }
        return lies(part.x, part.width, in: x, width) && lies(part.y, part.height, in: y, height)
    }
}

/// The control that selects the part of a sensor's picture that a driver takes (`VIDIOC_S_SELECTION`). It stands beside
/// the driver's, so that it is set, kept, put back and saved as those are.
///
/// ```
/// crop_rectangle   left, top, width, height
/// ```
///
/// A driver that doesn't scale delivers pictures of the rectangle's size. So the control sets the format, too: a stream
/// is stopped for it.
public enum CropRectangleControl {
    public static let name = "crop_rectangle"

    public static func control(bounds: PixelRectangle, defaultRectangle: PixelRectangle) -> CaptureControl {
        var control = CaptureControl(
            name: name, title: "Crop Rectangle", id: CameraControlID.cropRectangle, type: .rectangle,
            flags: [.modifyLayout], category: "CameraBus")
        control.bounds = bounds
        control.defaultRectangle = defaultRectangle
        return control
    }

    /// The driver's selection is one: who sets it by one control takes it from the other.
    public static let rivals: [String: String] = [name: "zoom_by_crop", "zoom_by_crop": name]
}
