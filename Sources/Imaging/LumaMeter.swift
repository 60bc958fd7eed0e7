public import CaptureCore
import FFmpeg

/// A part of a picture, in shares of its width and height.
public struct MeteredRegion: Hashable, Sendable {
    public let left: Double
    public let top: Double
    public let width: Double
    public let height: Double

    /// A fifth of each side, around that point as far as the picture's edges let it; in the middle, the whole picture.
    ///
    /// - Parameters:
    ///   - x: 0 (left) to 1.
    ///   - y: 0 (top) to 1.
    public init(aroundX x: Double, y: Double) {
        if x == 0.5, y == 0.5 {
            (left, top, width, height) = (0, 0, 1, 1)
        } else {
            let side = 0.2
            (width, height) = (side, side)
            left = min(max(x - side / 2, 0), 1 - side)
            top = min(max(y - side / 2, 0), 1 - side)
        }
    }
}

/// Says how bright a part of a picture is, from a few of its pixels, where they lie: in microseconds, and without
/// allocating anything.
public struct LumaMeter {
    // Where luma lies in the first plane.
    private struct Samples {
        /// Bytes of so many pixels.
        var bytes: Int
        var pixels: Int
        /// That of the first luma.
        var offset: Int
        /// Luma that goes from 16 to 235.
        var isVideoRange: Bool
    }

    private let reader: FrameReader
    private let samples: Samples

    /// So many pixels are looked at along each side.
    private static let side = 24

    /// nil: frames of this layout have no luma that could be read as it lies.
    public init?(_ layout: FrameLayout) {
        guard let format = SourceFormat(layout.pixelFormat), let reader = FrameReader(format, layout),
            let samples = Self.samples(format, isFullRange: reader.range == .full)
        else { return nil }
        self.reader = reader
        self.samples = samples
    }

    private static func samples(_ format: SourceFormat, isFullRange: Bool) -> Samples? {
        switch format {
        case .gray: Samples(bytes: 1, pixels: 1, offset: 0, isVideoRange: !isFullRange)
        case .packed422(let lumaFirst, _):
            Samples(bytes: 4, pixels: 2, offset: lumaFirst ? 0 : 1, isVideoRange: !isFullRange)
        case .packed444(let bytes, let y, _, _): Samples(bytes: bytes, pixels: 1, offset: y, isVideoRange: !isFullRange)
        case .semiPlanar, .planar: Samples(bytes: 1, pixels: 1, offset: 0, isVideoRange: !isFullRange)
        case .jpeg, .packedRGB, .deepGray, .converted, .deepBayer: nil
        }
    }

    /// The mean of a part of a frame, from 0 (black) to 255.
    ///
    /// - Parameters:
    ///   - regions: the frame's memory, as its slot has it.
    ///   - bytesUsed: how much of each region is filled.
    /// - Returns: nil for a frame that ends too early.
    public func mean(
        of region: MeteredRegion, in regions: [UnsafeRawBufferPointer], bytesUsed: [Int]
    ) -> Double? {
        guard let plane = try? reader.plane(0, regions, bytesUsed) else { return nil }
        let size = reader.dimensions
        let (columns, rows) = (min(Self.side, size.width), min(Self.side, size.height))
        var (sum, count) = (0, 0)
        for row in 0..<rows {
            let line = Self.place(region.top, region.height, row, of: rows, size.height) * reader.stride(0)
            for column in 0..<columns {
                let pixel = Self.place(region.left, region.width, column, of: columns, size.width)
                // Of a pair that shares its colour the first pixel's; in the long run it is the other's too.
                let index = line + pixel / samples.pixels * samples.bytes + samples.offset
                guard index < plane.count else { continue }
                sum += Int(plane[index])
                count += 1
            }
        }
        guard count > 0 else { return nil }
        let mean = Double(sum) / Double(count)
        return samples.isVideoRange ? min(max((mean - 16) * 255 / 219, 0), 255) : mean
    }

    // The middle of one of so many equal parts of a part of a side.
    private static func place(_ start: Double, _ share: Double, _ part: Int, of parts: Int, _ length: Int) -> Int {
        min(length - 1, Int((start + share * (Double(part) + 0.5) / Double(parts)) * Double(length)))
    }
}
