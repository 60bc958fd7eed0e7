import Glibc

/// What comes before the first scan of a JPEG picture, as far as a reader needs it that decodes nothing.
struct JPEGHead {
    /// Where the first scan (`SOS`) begins.
    private(set) var scan = 0
    /// Huffman tables (`DHT`), or the conditioning of an arithmetic coder.
    private(set) var hasTables = false
    private(set) var hasEXIF = false

    /// nil: there is no scan, or the markers make no sense.
    init?(_ jpeg: UnsafeRawBufferPointer) {
        guard var markers = JPEGMarkers(jpeg) else { return nil }
        while let segment = markers.next() {
            if segment.isScan {
                scan = segment.start
                return
            }
            hasTables = hasTables || segment.isCodingTable
            hasEXIF = hasEXIF || segment.isAPP1 && JPEGOrientationSegment.isEXIF(jpeg[segment.contents])
        }
        return nil
    }

    /// Where the end of the picture (`EOI`) is; nil: it has none.
    ///
    /// - Parameter scan: where its first scan begins.
    static func end(of jpeg: UnsafeRawBufferPointer, from scan: Int) -> Int? {
        var index = scan
        while index + 1 < jpeg.count, let base = jpeg.baseAddress,
            let next = memchr(base + index, 0xFF, jpeg.count - index - 1)
        {
            index = UnsafeRawPointer(next) - base
            let marker = jpeg[index + 1]
            switch marker {
            case 0xD9: return index
            case 0xFF: index += 1
            // A byte of the scan itself.
            case 0x00: index += 2
            case _ where JPEGMarkers.standsAlone(marker): index += 2
            default:
                // Between the scans of a progressive picture.
                guard index + 3 < jpeg.count else { return nil }
                index += 2 + Int(jpeg[index + 2]) << 8 + Int(jpeg[index + 3])
            }
        }
        return nil
    }
}
