import CaptureCore

/// A part of a picture, in its pixels.
struct CropRectangle: Hashable {
    var left: Int
    var top: Int
    var width: Int
    var height: Int

    var dimensions: Dimensions { Dimensions(width: width, height: height) }

    init(left: Int, top: Int, width: Int, height: Int) {
        (self.left, self.top, self.width, self.height) = (left, top, width, height)
    }

    /// The middle of a picture, so many times less wide and high, rounded to whole blocks of pixels that share their
    /// colour.
    ///
    /// - Parameters:
    ///   - zoom: thousandths.
    ///   - block: pixels that share a chroma pixel, or that a pattern of colours repeats after.
    init(middleOf size: Dimensions, zoom: Int, block: ChromaLayout) {
        (left, width) = Self.middle(size.width, zoom, block.across)
        (top, height) = Self.middle(size.height, zoom, block.down)
    }

    private static func middle(_ length: Int, _ zoom: Int, _ block: Int) -> (start: Int, length: Int) {
        let zoom = min(max(zoom, DigitalZoom.whole), Int(DigitalZoom.mostFactor) * DigitalZoom.whole)
        let wanted = (length * DigitalZoom.whole + zoom / 2) / zoom
        let least = min(length, DigitalZoom.leastSide)
        let part = min(max((wanted + block / 2) / block * block, (least + block - 1) / block * block), length)
        return ((length - part) / 2 / block * block, part)
    }
}

extension PlaneView {
    func part(left: Int, top: Int, width: Int, height: Int) -> PlaneView {
        PlaneView(base: base + top * stride + left, stride: stride, width: width, height: height)
    }
}

extension PlanarPicture {
    /// A part of it, where it lies. Its sides are at whole chroma pixels.
    func part(_ part: CropRectangle) -> PlanarPicture {
        var picture = self
        picture.y = y.part(left: part.left, top: part.top, width: part.width, height: part.height)
        if let (u, v, layout) = chroma {
            let (left, top) = (part.left / layout.across, part.top / layout.down)
            let (width, height) = (layout.width(part.width), layout.height(part.height))
            picture.chroma = (
                u.part(left: left, top: top, width: width, height: height),
                v.part(left: left, top: top, width: width, height: height), layout
            )
        }
        return picture
    }
}

extension FrameReader {
    /// The same for a part of the frame, where it lies. Its sides are at whole blocks (``SourceFormat/block``).
    func part(_ part: CropRectangle) -> FrameReader {
        var reader = self
        reader.dimensions = part.dimensions
        reader.planes = planes.enumerated().map { index, plane in
            let above = format.lines(plane: index, height: part.top)
            let lines = format.lines(plane: index, height: part.height)
            return Plane(
                offset: plane.offset + above * plane.stride + format.lineBytes(plane: index, width: part.left),
                stride: plane.stride,
                bytes: plane.stride * (lines - 1) + format.lineBytes(plane: index, width: part.width))
        }
        return reader
    }
}
