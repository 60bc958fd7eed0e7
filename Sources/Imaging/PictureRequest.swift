public import BusProtocol
public import CaptureCore
import JSON

/// A picture that is to be made, with everything resolved. Equal requests give equal pictures, so each is made once.
public struct PictureRequest: Hashable, Sendable {
    /// Never ``Rendition/Encoding/native``.
    public var encoding: Rendition.Encoding
    public var dimensions: Dimensions
    /// JPEG quality, 1–100; 0 for every other encoding.
    public var quality: Int
    /// How it is turned; its dimensions are those of the turned picture.
    public var orientation = PictureOrientation.upright
    /// The part of the device's picture that is taken, in its own pixels, before it is turned; nil: all.
    var crop: CropRectangle?
    /// No quality was named: a JPEG picture that is only to be turned keeps its own, where it can be turned without
    /// decoding it.
    public var keepsQuality = false

    /// Its size before it is turned.
    var unturned: Dimensions { orientation.turned(dimensions) }

    /// The quality of a JPEG picture whose rendition names none.
    public static let defaultQuality = 80

    public init(encoding: Rendition.Encoding, dimensions: Dimensions, quality: Int = PictureRequest.defaultQuality) {
        self.encoding = encoding
        self.dimensions = dimensions
        self.quality = encoding == .jpeg ? min(max(quality, 1), 100) : 0
    }
}

/// What a rendition means for a device that delivers frames of this layout.
///
/// A crop is of the upright picture, and stands for the device's in all that follows.
///
/// Sizes are those of the turned picture: of a device's 640x480 turned by a quarter 480x640 is the largest. A missing
/// size is the device's, a 0 keeps the aspect. Sizes that follow from the device are rounded down to even ones where
/// chroma is shared by pixels; JPEG at the device's own size keeps odd sides. Sizes that are bounds
/// (``Rendition/isFitted``) always give a picture.
///
/// - Throws: `formatUnsupported` with `nearest` {width, height, x, y} for a crop that lies outside; with `nearest`
///   {width, height} for a size that is larger than the device's, that no
///   picture can have, or that is odd where the encoding needs even ones; without a size for `native`, which is not
///   made at all.
public func resolve(_ rendition: Rendition, for layout: FrameLayout) throws(BusError) -> PictureRequest {
    let orientation = layout.description.orientation.followed(by: PictureOrientation(rendition))
    let upright = layout.description.orientation.turned(layout.dimensions)
    let crop = try rendition.crop.map { (crop) throws(BusError) in try rectangle(crop, in: upright) }
    let device = PictureOrientation(rendition).turned(crop?.dimensions ?? upright)
    guard rendition.encoding != .native else {
        throw BusError(.formatUnsupported, "native is delivered unchanged; subscribe to it without a size")
    }
    let quality = rendition.quality ?? PictureRequest.defaultQuality
    let even = rendition.encoding.needsEvenSize
    let width = rendition.width ?? device.width
    let height = rendition.height ?? device.height

    var size = Dimensions(width: width, height: height)
    if rendition.isFitted {
        size = device.fitted(into: size)
    } else if width == 0, height == 0 {
        size = device
    } else if height == 0 {
        size.height = proportional(width, device.height, device.width)
    } else if width == 0 {
        size.width = proportional(height, device.width, device.height)
    }
    let isDerived = (
        width: rendition.isFitted || rendition.width == nil || width == 0,
        height: rendition.isFitted || rendition.height == nil || height == 0
    )
    let keepsOdd = rendition.encoding == .jpeg && size == device
    if even || (rendition.encoding == .jpeg && !keepsOdd) {
        // No bound may be exceeded; pixels that share chroma need two.
        let least = rendition.isFitted && !even ? 1 : 2
        if isDerived.width { size.width = roundedDown(size.width, least: least) }
        if isDerived.height { size.height = roundedDown(size.height, least: least) }
    }

    let least = even ? 2 : 1
    let fits =
        (least...max(least, device.width)).contains(size.width)
        && (least...max(least, device.height)).contains(size.height)
        && size.width <= device.width && size.height <= device.height
    guard fits else {
        throw unsupported(
            "\(size) is larger than the \(device) that the \(crop == nil ? "device delivers" : "crop has"); renditions "
                + "only scale down",
            nearest: clamped(size, to: device, even: even))
    }
    guard !even || (size.width % 2 == 0 && size.height % 2 == 0) else {
        throw unsupported(
            "\(rendition.encoding.rawValue) needs an even width and height, not \(size)",
            nearest: clamped(size, to: device, even: even))
    }
    var request = PictureRequest(encoding: rendition.encoding, dimensions: size, quality: quality)
    request.orientation = orientation
    if let crop, crop.dimensions != upright {
        request.crop = CropRectangle(crop, turnedBy: layout.description.orientation, of: layout.dimensions)
    }
    request.keepsQuality = rendition.encoding == .jpeg && rendition.quality == nil && orientation != .upright
    return request
}

extension Rendition.Encoding {
    /// Pixels share chroma, and the layout has no half ones.
    var needsEvenSize: Bool {
        switch self {
        case .yuyv, .nv12, .i420: true
        case .native, .jpeg, .bgr, .rgb, .gray, .gray16, .rgb48: false
        }
    }
}

private func rectangle(_ crop: Rendition.Crop, in size: Dimensions) throws(BusError) -> CropRectangle {
    let (width, height) = (min(crop.width, size.width), min(crop.height, size.height))
    let (x, y) = (min(crop.x, size.width - width), min(crop.y, size.height - height))
    guard crop == Rendition.Crop(width: width, height: height, x: x, y: y), width > 0, height > 0 else {
        throw BusError(
            .formatUnsupported, "the crop \(crop) lies outside of the device's picture, which has \(size)",
            [
                "nearest": [
                    "width": JSONValue(width), "height": JSONValue(height), "x": JSONValue(x), "y": JSONValue(y),
                ]
            ])
    }
    return CropRectangle(left: x, top: y, width: width, height: height)
}

extension Dimensions {
    /// The same picture, made smaller until it lies within that one; a side of 0 bounds nothing.
    fileprivate func fitted(into bounds: Dimensions) -> Dimensions {
        var size = self
        if (1..<max(1, size.width)).contains(bounds.width) {
            size = Dimensions(width: bounds.width, height: proportional(bounds.width, height, width))
        }
        if (1..<max(1, size.height)).contains(bounds.height) {
            size = Dimensions(
                width: min(size.width, proportional(bounds.height, width, height)), height: bounds.height)
        }
        return size
    }
}

/// `length` × `part` / `whole`, rounded to the nearest; what doesn't fit an Int becomes the largest.
private func proportional(_ length: Int, _ part: Int, _ whole: Int) -> Int {
    guard length > 0, part > 0, whole > 0 else { return 0 }
    let (product, overflow) = length.multipliedReportingOverflow(by: part)
    guard !overflow, product < Int.max - whole else { return Int.max }
    return max(1, (product + whole / 2) / whole)
}

private func roundedDown(_ length: Int, least: Int) -> Int {
    length > 2 && length < Int.max ? length & ~1 : max(length, least)
}

private func clamped(_ size: Dimensions, to device: Dimensions, even: Bool) -> Dimensions {
    func fit(_ length: Int, _ most: Int) -> Int {
        let inside = min(max(length, even ? 2 : 1), max(most, 1))
        return even && inside > 1 ? inside & ~1 : inside
    }
    return Dimensions(width: fit(size.width, device.width), height: fit(size.height, device.height))
}

private func unsupported(_ message: String, nearest: Dimensions) -> BusError {
    BusError(
        .formatUnsupported, message,
        ["nearest": .object(["width": JSONValue(nearest.width), "height": JSONValue(nearest.height)])])
}
