import BusProtocol

/// Pixels an inch, by which EXIF and TIFF say the shape of a pixel (`XResolution`, `YResolution`).
///
/// Nobody knows how large a photo will be shown; the standards want 72 to stand there then. Of wide pixels there are
/// fewer across an inch than down.
struct PixelDensity {
    let across = 72
    let down: (numerator: Int, denominator: Int)

    /// - Parameter ratio: of a pixel's width to its height.
    init(_ ratio: FormatExtensions.Ratio) { down = (72 * ratio.numerator, ratio.denominator) }
}
