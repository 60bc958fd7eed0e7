public import CaptureCore
import Glibc

/// What comes before the first scan of a JPEG picture, as far as a reader needs it that decodes nothing. Allocates
/// nothing.
public struct JPEGHead {
    /// The picture's size (`SOF`); nil: it doesn't say, as a picture that has a `DNL` marker for that.
    public private(set) var dimensions: Dimensions?
    /// How its pixels have to be turned, as its EXIF data say; nil: they don't, or there are none.
    public private(set) var orientation: PictureOrientation?
    /// Where the first scan (`SOS`) begins; nil: the picture has no scan, or broken markers before it.
    private(set) var scan: Int?
    /// Huffman tables (`DHT`), or the conditioning of an arithmetic coder.
    private(set) var hasTables = false

    /// nil: it doesn't begin as a JPEG does (`SOI`).
    public init?(_ jpeg: UnsafeRawBufferPointer) {
        guard var markers = JPEGMarkers(jpeg) else { return nil }
        while let segment = markers.next() {
            if segment.isScan {
                scan = segment.start
                return
            }
            hasTables = hasTables || segment.isCodingTable
            if segment.isFrame, dimensions == nil { dimensions = segment.dimensions(in: jpeg) }
            // Data may be spread over segments: the first one has what is asked for.
            if segment.isAPP1, orientation == nil {
                orientation = TIFFOrientation.read(UnsafeRawBufferPointer(rebasing: jpeg[segment.contents]))
            }
        }
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
