import BusProtocol
import CaptureCore
import FFmpeg

/// Finds a frame's planes in the memory that a device filled, and refuses frames that end too early.
struct FrameReader {
    let format: SourceFormat
    /// As the source states it.
    let range: ColorRange
    /// Of luma and chroma.
    let matrix: ColorMatrix
    var dimensions: Dimensions
    var planes: [Plane]

    struct Plane {
        var offset: Int
        var stride: Int
        /// From the first byte to the last one that means something.
        var bytes: Int
    }

    /// nil for a layout that can't be: no size, lines longer than the stride, absurd numbers.
    init?(_ format: SourceFormat, _ layout: FrameLayout) {
        let size = layout.dimensions
        guard (1...32768).contains(size.width), (1...32768).contains(size.height), let first = layout.planes.first,
            layout.planes.allSatisfy({ $0.offset >= 0 && $0.offset < 1 << 40 && $0.stride >= 0 && $0.stride < 1 << 24 })
        else { return nil }
        self.format = format
        range = ColorRange(layout.description.color.range)
        matrix = ColorMatrix(layout.description.color.matrix)
        dimensions = size
        if format == .jpeg {
            planes = [Plane(offset: first.offset, stride: 0, bytes: 1)]
            return
        }
        var planes: [Plane] = []
        var offset = first.offset
        // Where the layout names fewer planes than the format has, they follow one another as V4L2 says they do.
        let isComplete = layout.planes.count >= format.planes
        let firstStride = first.stride > 0 ? first.stride : format.lineBytes(plane: 0, width: size.width)
        for index in 0..<format.planes {
            let lineBytes = format.lineBytes(plane: index, width: size.width)
            let lines = format.lines(plane: index, height: size.height)
            var stride = format.stride(plane: index, first: firstStride)
            if isComplete {
                offset = layout.planes[index].offset
                if layout.planes[index].stride > 0 { stride = layout.planes[index].stride }
            }
            guard lineBytes > 0, lines > 0, stride >= lineBytes else { return nil }
            planes.append(Plane(offset: offset, stride: stride, bytes: stride * (lines - 1) + lineBytes))
            offset += stride * lines
        }
        self.planes = planes
    }

    func stride(_ plane: Int) -> Int { planes[plane].stride }

    /// A plane's bytes. Offsets count through all regions laid end to end; a plane lies within one region.
    func plane(
        _ index: Int, _ regions: [UnsafeRawBufferPointer], _ bytesUsed: [Int]
    ) throws(ConversionError) -> UnsafeRawBufferPointer {
        let plane = planes[index]
        let (region, start) = try locate(plane.offset, regions)
        let delivered = filled(region, regions, bytesUsed)
        guard start + plane.bytes <= delivered else {
            throw .truncated(needed: start + plane.bytes, delivered: delivered)
        }
        return UnsafeRawBufferPointer(rebasing: regions[region][start..<start + plane.bytes])
    }

    /// True if libraries that read whole blocks may read this plane where it is: some bytes follow it in its region.
    ///
    /// libswscale reads up to 16 bytes beyond the last pixel, and where a frame fills its pages, that is another's
    /// memory or none.
    func hasMargin(
        _ index: Int, _ regions: [UnsafeRawBufferPointer]
    ) throws(ConversionError) -> Bool {
        let plane = planes[index]
        let (region, start) = try locate(plane.offset, regions)
        return regions[region].count - start - plane.bytes >= 64
    }

    /// A compressed picture: all that was delivered.
    func picture(_ regions: [UnsafeRawBufferPointer], _ bytesUsed: [Int]) throws(ConversionError)
        -> UnsafeRawBufferPointer
    {
        let (region, start) = try locate(planes[0].offset, regions)
        let delivered = filled(region, regions, bytesUsed)
        guard start < delivered else { throw .truncated(needed: start + 1, delivered: delivered) }
        return UnsafeRawBufferPointer(rebasing: regions[region][start..<delivered])
    }

    private func locate(_ offset: Int, _ regions: [UnsafeRawBufferPointer]) throws(ConversionError) -> (Int, Int) {
        var start = offset
        for index in regions.indices {
            if start < regions[index].count { return (index, start) }
            start -= regions[index].count
        }
        throw .truncated(needed: offset + 1, delivered: offset - start)
    }

    private func filled(_ region: Int, _ regions: [UnsafeRawBufferPointer], _ bytesUsed: [Int]) -> Int {
        region < bytesUsed.count ? min(max(0, bytesUsed[region]), regions[region].count) : 0
    }
}
