import CaptureCore
import Glibc
import Video4Linux

/// A zoom that a driver without one of its own has all the same: less of the sensor's picture is taken and scaled up to
/// the same size.
///
/// It shows as a control of this program's own, so that it is set, kept and put back as all others are. Whether the
/// driver scales shows only when it is tried: one that makes the pictures smaller instead is put back, and has no zoom
/// from then on.
struct V4L2CropZoom {
    static let name = "zoom_by_crop"
    /// In hundredths. Beyond four times there is hardly a picture left.
    static let range: ClosedRange<Int64> = 100...400
    /// No smaller part is asked for.
    private static let least: (width: UInt32, height: UInt32) = (64, 48)

    /// What is taken at factor 1.
    private let whole: V4L2Rectangle

    /// nil where the device has a zoom of its own, or nothing to select.
    init?(_ device: any V4L2Device, _ type: V4L2BufferType, controls: [CaptureControl]) throws(V4L2Error) {
        guard !controls.contains(where: { $0.id == 0x009A_090D }) else { return nil }
        guard let whole = try device.selection(type, .cropDefault), try device.selection(type, .crop) != nil,
            whole.width / 4 >= Self.least.width, whole.height / 4 >= Self.least.height
        else { return nil }
        self.whole = whole
    }

    // What is read is what the driver could make of it, to the pixel.
    static let control = CaptureControl(
        name: name, title: "Zoom by Crop", id: 0x00CB_0001, type: .integer, minimum: range.lowerBound,
        maximum: range.upperBound, defaultValue: range.lowerBound, flags: [.volatile], category: "CameraBus")

    func value(_ device: any V4L2Device, _ type: V4L2BufferType) throws(V4L2Error) -> Int64? {
        guard let part = try device.selection(type, .crop), part.width > 0 else { return nil }
        let value = (Int64(whole.width) * 100 + Int64(part.width) / 2) / Int64(part.width)
        return min(max(value, Self.range.lowerBound), Self.range.upperBound)
    }

    /// - Returns: false where the driver doesn't scale: all is as before.
    func set(_ value: Int64, _ device: any V4L2Device, _ type: V4L2BufferType) throws(V4L2Error) -> Bool {
        let format = try device.format(type)
        let before = try device.selection(type, .crop)
        let factor = Double(min(max(value, Self.range.lowerBound), Self.range.upperBound)) / 100
        let (width, height) = (UInt32(Double(whole.width) / factor), UInt32(Double(whole.height) / factor))
        try device.setSelection(
            type, .crop,
            to: V4L2Rectangle(
                left: whole.left + Int32(clamping: (whole.width - width) / 2),
                top: whole.top + Int32(clamping: (whole.height - height) / 2), width: width, height: height))
        let now = try device.format(type)
        if now.width == format.width, now.height == format.height { return true }
        if let before { try device.setSelection(type, .crop, to: before) }
        _ = try device.setFormat(type, width: format.width, height: format.height, pixelFormat: format.pixelFormat)
        return false
    }
}
