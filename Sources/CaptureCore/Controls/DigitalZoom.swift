/// The control by which this program zooms cameras whose drivers can't: it makes its pictures of the middle of the
/// device's. It stands beside the driver's, so that it is set, kept and put back as those are.
///
/// ```
/// digital_zoom   thousandths: 2000 makes pictures of the middle half of the width and the height
/// ```
public enum DigitalZoom {
    typealias ID = CameraControlID

    public static let name = "digital_zoom"

    /// The control's value for the whole picture, and so what it counts in.
    public static let whole = 1000

    /// As far as it goes, whatever is configured.
    public static let mostFactor = 100.0

    /// Of fewer pixels of a side no picture is made.
    public static let leastSide = 16

    /// The control to add to a driver's; nil where the driver zooms, or where nothing is to be zoomed.
    ///
    /// - Parameter limit: the largest factor.
    public static func control(beside driver: [CaptureControl], limit: Double) -> CaptureControl? {
        guard limit.isFinite, limit > 1, !driver.contains(where: isZoom) else { return nil }
        let most = Int64((min(limit, mostFactor) * Double(whole)).rounded(.down))
        guard most > Int64(whole) else { return nil }
        return CaptureControl(
            name: name, title: "Digital Zoom", id: ID.digitalZoom, type: .integer, minimum: Int64(whole), maximum: most,
            step: 1, defaultValue: Int64(whole), category: "CameraBus")
    }

    private static func isZoom(_ control: CaptureControl) -> Bool {
        switch control.id {
        case ID.zoom, ID.cropZoom: control.flags.isDisjoint(with: [.disabled, .readOnly])
        default: false
        }
    }

    /// How far pictures of that size can be zoomed.
    static func limit(of size: Dimensions) -> Double {
        max(1, Double(min(size.width, size.height)) / Double(leastSide))
    }
}
