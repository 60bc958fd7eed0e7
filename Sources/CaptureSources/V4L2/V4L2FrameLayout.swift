package import CaptureCore
package import Video4Linux

extension FrameLayout {
    /// How a V4L2 format's frames lie in their regions, laid end to end. `regions` are the bytes mapped of each.
    ///
    /// A format with one region for each plane (`NM12`) has its planes' lines from the driver. One with all planes in
    /// one region (`NV12`) has only the first plane's: the others follow from it, as V4L2's documentation of each
    /// format says. A format that isn't known here, or whose planes don't fit, is one plane for each region.
    package init(_ format: V4L2Format, regions: [Int]) {
        let pixelFormat = PixelFormat(code: format.pixelFormat)
        let shapes = V4L2PlaneShape.shapes(of: pixelFormat)
        self.init(
            FormatDescription(format, pixelFormat: pixelFormat),
            planes: Self.contiguous(format, shapes, regions) ?? Self.separate(format, shapes, regions, pixelFormat))
    }

    /// Planes one after the other in the only region; nil if they don't fit, or if the driver doesn't tell its line
    /// length.
    private static func contiguous(
        _ format: V4L2Format, _ shapes: [V4L2PlaneShape], _ regions: [Int]
    ) -> [PlaneLayout]? {
        guard regions.count == 1, shapes.count > 1, let stride = format.planes.first.map({ Int($0.bytesPerLine) }),
            stride > 0
        else { return nil }
        // With an odd height drivers differ in whether the last line of colour is there.
        for roundedUp in [true, false] {
            var planes: [PlaneLayout] = []
            var offset = 0
            for shape in shapes {
                let (stride, lines) = (shape.stride(stride), shape.lines(Int(format.height), roundedUp: roundedUp))
                guard let bytes = bytes(stride, lines, room: regions[0] - offset) else { break }
                planes.append(PlaneLayout(offset: offset, stride: stride, bytes: bytes))
                offset += bytes
            }
            if planes.count == shapes.count { return planes }
        }
        return nil
    }

    /// So many lines; nil if there is no room for them. Drivers' numbers may be too large to multiply.
    private static func bytes(_ stride: Int, _ lines: Int, room: Int) -> Int? {
        lines <= room / max(1, stride) ? stride * lines : nil
    }

    /// A plane for each region.
    private static func separate(
        _ format: V4L2Format, _ shapes: [V4L2PlaneShape], _ regions: [Int], _ pixelFormat: PixelFormat
    ) -> [PlaneLayout] {
        var planes: [PlaneLayout] = []
        var offset = 0
        for (index, room) in regions.enumerated() {
            let plane = index < format.planes.count ? format.planes[index] : .init(bytesPerLine: 0, sizeImage: 0)
            let stride = pixelFormat.isCompressed ? 0 : Int(plane.bytesPerLine)
            var bytes = Int(plane.sizeImage)
            // What a driver sets aside may be more than the picture.
            if shapes.count == regions.count, stride > 0 {
                let lines = shapes[index].lines(Int(format.height), roundedUp: true)
                bytes = Self.bytes(stride, lines, room: room) ?? bytes
            }
            planes.append(PlaneLayout(offset: offset, stride: stride, bytes: bytes > 0 ? min(bytes, room) : room))
            offset += room
        }
        return planes
    }
}

/// A plane of a format: its line length against the first plane's, where both share a region, and how many of the
/// picture's lines one of its lines covers.
private struct V4L2PlaneShape {
    var strideNumerator = 1
    var strideDenominator = 1
    var linesPerLine = 1

    func stride(_ first: Int) -> Int { first * strideNumerator / strideDenominator }

    func lines(_ height: Int, roundedUp: Bool) -> Int { (height + (roundedUp ? linesPerLine - 1 : 0)) / linesPerLine }

    /// The planes of a format, in memory's order; empty for formats that aren't known here.
    static func shapes(of format: PixelFormat) -> [V4L2PlaneShape] {
        format.rawSamples != nil ? [V4L2PlaneShape()] : table[format.description] ?? []
    }

    private static let table: [String: [V4L2PlaneShape]] = {
        let full = V4L2PlaneShape()
        func pair(_ linesPerLine: Int, wide: Int = 1) -> [V4L2PlaneShape] {
            [full, V4L2PlaneShape(strideNumerator: wide, linesPerLine: linesPerLine)]
        }
        func triple(_ columns: Int, _ linesPerLine: Int) -> [V4L2PlaneShape] {
            let colour = V4L2PlaneShape(strideDenominator: columns, linesPerLine: linesPerLine)
            return [full, colour, colour]
        }
        var table = [
            "NV12": pair(2), "NV21": pair(2), "P010": pair(2), "NM12": pair(2), "NM21": pair(2),
            "NV16": pair(1), "NV61": pair(1), "NM16": pair(1), "NM61": pair(1),
            "NV24": pair(1, wide: 2), "NV42": pair(1, wide: 2),
            "YU12": triple(2, 2), "YV12": triple(2, 2), "YM12": triple(2, 2), "YM21": triple(2, 2),
            "422P": triple(2, 1), "YM16": triple(2, 1), "YM61": triple(2, 1),
            "YM24": triple(1, 1), "YM42": triple(1, 1),
            "411P": triple(4, 1), "YUV9": triple(4, 4), "YVU9": triple(4, 4),
        ]
        let packed = [
            "YUYV", "UYVY", "YVYU", "VYUY", "RGB3", "BGR3", "RGBP", "RGB4", "BGR4", "XR24", "AR24", "BX24", "BA24",
            "XB24", "AB24", "RX24", "RA24",
        ]
        for name in packed { table[name] = [full] }
        return table
    }()
}
