import CaptureCore
import FFmpeg

/// Takes a part out of planar pictures, at any pixel.
///
/// Where pixels share chroma and the part begins within such a block, all get chroma of their own first, so that no
/// colour shifts.
final class PictureCut {
    /// Of the part; nil: luma alone.
    let chroma: ChromaLayout?
    /// Whole blocks around the part.
    private let outer: CropRectangle
    /// The part within these; nil: all of them.
    private let inner: CropRectangle?
    private let resampler: PlanarScaler?

    var dimensions: Dimensions { (inner ?? outer).dimensions }

    /// - Parameter chroma: of the pictures that come.
    init(_ part: CropRectangle, chroma: ChromaLayout?) throws(ConversionError) {
        outer = part.grown(to: chroma ?? .s444)
        inner = outer == part ? nil : part.within(outer)
        self.chroma = inner == nil ? chroma : chroma.map { _ in .s444 }
        resampler =
            inner == nil || chroma == nil
            ? nil : try PlanarScaler(from: outer.dimensions, chroma: chroma, to: outer.dimensions, chroma: .s444)
    }

    /// The planes are valid until the next call, and as long as those of `picture`.
    func cut(_ picture: PlanarPicture) throws(ConversionError) -> PlanarPicture {
        let taken = picture.part(outer)
        guard let inner else { return taken }
        return try (resampler?.scale(taken) ?? taken).part(inner)
    }
}

extension CropRectangle {
    /// The same from the begin of a block on.
    func grown(to block: ChromaLayout) -> CropRectangle {
        let (left, top) = (left / block.across * block.across, top / block.down * block.down)
        return CropRectangle(left: left, top: top, width: width + self.left - left, height: height + self.top - top)
    }

    /// The same with what lies around it, as far as there is something.
    func widened(by margin: Int, within size: Dimensions) -> CropRectangle {
        let (left, top) = (max(0, left - margin), max(0, top - margin))
        return CropRectangle(
            left: left, top: top, width: min(size.width, self.left + width + margin) - left,
            height: min(size.height, self.top + height + margin) - top)
    }

    /// The same, as that one's pixels are counted.
    func within(_ other: CropRectangle) -> CropRectangle {
        CropRectangle(left: left - other.left, top: top - other.top, width: width, height: height)
    }

    /// The same of a picture of which only that part is there, made as large as the whole.
    func zoomed(into middle: CropRectangle, of size: Dimensions) -> CropRectangle {
        let (left, width) = Self.zoomed(left, width, middle.left, middle.width, size.width)
        let (top, height) = Self.zoomed(top, height, middle.top, middle.height, size.height)
        return CropRectangle(left: left, top: top, width: width, height: height)
    }

    private static func zoomed(_ start: Int, _ length: Int, _ from: Int, _ part: Int, _ whole: Int) -> (Int, Int) {
        let first = from + start * part / whole
        return (first, min(max(1, (length * part + whole / 2) / whole), from + part - first))
    }

    /// The same of a picture that is made so many times smaller; nil: it would begin or end within a pixel.
    func divided(by divisor: Int) -> CropRectangle? {
        guard [left, top, width, height].allSatisfy({ $0 % divisor == 0 }) else { return nil }
        return CropRectangle(
            left: left / divisor, top: top / divisor, width: width / divisor, height: height / divisor)
    }

    /// Where a part of a turned picture lies in its source.
    ///
    /// - Parameters:
    ///   - crop: of the turned picture.
    ///   - size: the source's.
    init(_ crop: CropRectangle, turnedBy orientation: PictureOrientation, of size: Dimensions) {
        let walk = orientation.walk(size, bytesPerPixel: 1, stride: size.width)
        func source(_ x: Int, _ y: Int) -> (x: Int, y: Int) {
            let index = walk.origin + x * walk.right + y * walk.down
            return (index % size.width, index / size.width)
        }
        let (first, last) = (
            source(crop.left, crop.top), source(crop.left + crop.width - 1, crop.top + crop.height - 1)
        )
        self.init(
            left: min(first.x, last.x), top: min(first.y, last.y), width: abs(first.x - last.x) + 1,
            height: abs(first.y - last.y) + 1)
    }
}

extension SourceFormat {
    /// Pixels around a part that have a say in its colours: those of the sensor's pattern.
    var margin: Int {
        switch self {
        case .deepBayer: 4
        case .converted(let format): format.isBayer ? 4 : 0
        default: 0
        }
    }

    /// Pixels between which no part of a frame can begin: they share samples, or a pattern of colours repeats after
    /// them.
    var grain: ChromaLayout {
        switch self {
        case .packed422: .s422
        case .semiPlanar(let chroma, _), .planar(let chroma, _): chroma
        case .deepBayer: .s420
        case .converted(let format): format.isBayer ? .s420 : .s444
        case .jpeg, .gray, .packed444, .packedRGB, .deepGray: .s444
        }
    }
}
