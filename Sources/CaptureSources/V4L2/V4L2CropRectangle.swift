import BusProtocol
import CaptureCore
import Glibc
import Video4Linux

/// What a driver takes of its sensor's picture (`V4L2_SEL_TGT_CROP`), as a control of this program's own
/// (``CropRectangleControl``).
///
/// Some drivers tell their rectangle but can't set it. The first attempt shows that, and removes the control.
struct V4L2CropRectangle {
    private let bounds: V4L2Rectangle
    private let whole: V4L2Rectangle

    /// nil where the driver selects nothing, or not with its present input.
    init?(_ device: any V4L2Device, _ type: V4L2BufferType) throws(V4L2Error) {
        guard let bounds = try device.selection(type, .cropBounds), bounds.width > 1, bounds.height > 1,
            let whole = try device.selection(type, .cropDefault), whole.width > 0, whole.height > 0,
            try device.selection(type, .crop) != nil
        else { return nil }
        self.bounds = bounds
        self.whole = whole
    }

    var control: CaptureControl {
        CropRectangleControl.control(bounds: PixelRectangle(bounds), defaultRectangle: PixelRectangle(whole))
    }

    func value(_ device: any V4L2Device, _ type: V4L2BufferType) throws(V4L2Error) -> ControlValue? {
        try device.selection(type, .crop).map { PixelRectangle($0).numbers }
    }

    enum Outcome {
        /// The format is the same.
        case cropped
        /// The format has another size: the driver doesn't scale.
        case resized
        case unsupported
    }

    func set(
        _ rectangle: PixelRectangle, _ device: any V4L2Device, _ type: V4L2BufferType
    ) throws(V4L2Error) -> Outcome {
        let format = try device.format(type)
        do throws(V4L2Error) {
            try device.setSelection(type, .crop, to: V4L2Rectangle(rectangle))
        } catch  where error.errno == ENOTTY || error.errno == EINVAL {
            return .unsupported
        }
        let now = try device.format(type)
        return now.width == format.width && now.height == format.height ? .cropped : .resized
    }

    /// The same pictures, but for the stretching of a part to their size, which gives their pixels another shape.
    ///
    /// How the driver's own part comes to that size is the driver's to say: most say nothing, and their pixels are
    /// square. A part of another shape is as much wider or narrower.
    func completed(
        _ description: FormatDescription, _ device: any V4L2Device, _ type: V4L2BufferType
    ) throws(V4L2Error) -> FormatDescription {
        guard let part = try device.selection(type, .crop), part != whole, part.width > 0, part.height > 0 else {
            return description
        }
        let (picture, size) = (try device.selection(type, .compose), description.dimensions)
        let (width, height) = (
            picture.map { Int($0.width) } ?? size.width, picture.map { Int($0.height) } ?? size.height
        )
        if Int(part.width) == width, Int(part.height) == height { return description }
        var description = description
        description.extensions.pixelAspectRatio = description.extensions.pixelAspectRatio.stretched(
            from: (Int(part.width), Int(part.height)), to: (Int(whole.width), Int(whole.height)))
        return description
    }
}

extension PixelRectangle {
    init(_ rectangle: V4L2Rectangle) {
        self.init(
            x: Int64(rectangle.left), y: Int64(rectangle.top), width: Int64(rectangle.width),
            height: Int64(rectangle.height))
    }
}

extension V4L2Rectangle {
    init(_ rectangle: PixelRectangle) {
        self.init(
            left: Int32(clamping: rectangle.x), top: Int32(clamping: rectangle.y),
            width: UInt32(clamping: rectangle.width), height: UInt32(clamping: rectangle.height))
    }
}
