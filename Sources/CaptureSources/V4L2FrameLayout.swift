package import CaptureCore
package import Video4Linux

extension FrameLayout {
    /// How a V4L2 format's frames lie in their regions, laid end to end. `regions` are the bytes mapped of each.
    ///
    /// A format with one region for each plane (`NM12`) has its planes' lines from the driver. One with all planes in one region
    /// (`NV12`) has only the first plane's: the others follow from it, as the V4L2 documentation of each format says. A format that
    /// isn't known here is one plane for each region.
    package init(_ format: V4L2Format, regions: [Int]) {
        let pixelFormat = PixelFormat(code: format.pixelFormat)
        let height = Int(format.height)
        let shape = planeShapes[pixelFormat.description] ?? []
        var planes: [PlaneLayout] = []
        if regions.count == 1, format.planes.count == 1, shape.count > 1 {
            planes = FrameLayout.planes(shape, stride: Int(format.planes[0].bytesPerLine), height, room: regions[0])
        }
        if planes.isEmpty {
            var offset = 0
            for (index, room) in regions.enumerated() {
                let plane = index < format.planes.count ? format.planes[index] : .init(bytesPerLine: 0, sizeImage: 0)
                let stride = pixelFormat.isCompressed ? 0 : Int(plane.bytesPerLine)
                let bytes = Int(plane.sizeImage)
                planes.append(
                    PlaneLayout(offset: offset, stride: stride, bytes: bytes > 0 ? min(bytes, room) : room))
                offset += room
            }
        }
        self.init(
            pixelFormat: pixelFormat, dimensions: Dimensions(width: Int(format.width), height: height), planes: planes)
    }

    /// Planes one after the other in one region; empty if they don't fit, or if the driver doesn't tell its line length.
    private static func planes(_ shape: [PlaneShape], stride: Int, _ height: Int, room: Int) -> [PlaneLayout] {
        guard stride > 0, height > 0 else { return [] }
        // With an odd height drivers differ in whether the last line of colour is there.
        for roundUp in [true, false] {
            var planes: [PlaneLayout] = []
            var offset = 0
            for plane in shape {
                let lines =
                    roundUp ? (height + plane.linesPerLine - 1) / plane.linesPerLine : height / plane.linesPerLine
                let planeStride = stride * plane.strideNumerator / plane.strideDenominator
                planes.append(PlaneLayout(offset: offset, stride: planeStride, bytes: planeStride * lines))
                offset += planeStride * lines
            }
            if offset <= room { return planes }
        }
        return []
    }
}

/// A plane of a contiguous format, against the first plane: its line length, and how many picture lines one of its lines covers.
private struct PlaneShape {
    var strideNumerator = 1
    var strideDenominator = 1
    var linesPerLine = 1
}

private let planeShapes: [String: [PlaneShape]] = {
    let luma = PlaneShape()
    func pair(_ linesPerLine: Int, wide: Int = 1) -> [PlaneShape] {
        [luma, PlaneShape(strideNumerator: wide, linesPerLine: linesPerLine)]
    }
    func triple(_ columns: Int, _ linesPerLine: Int) -> [PlaneShape] {
        let chroma = PlaneShape(strideDenominator: columns, linesPerLine: linesPerLine)
        return [luma, chroma, chroma]
    }
    return [
        "NV12": pair(2), "NV21": pair(2), "P010": pair(2),
        "NV16": pair(1), "NV61": pair(1),
        "NV24": pair(1, wide: 2), "NV42": pair(1, wide: 2),
        "YU12": triple(2, 2), "YV12": triple(2, 2),
        "422P": triple(2, 1), "411P": triple(4, 1),
        "YUV9": triple(4, 4), "YVU9": triple(4, 4),
    ]
}()
