import CaptureCore

/// The markers of a JPEG picture from its beginning to its first scan, one after the other, without decoding anything
/// (ITU-T T.81, Annex B). A value that walks: it allocates nothing.
struct JPEGMarkers {
    /// A marker with what belongs to it.
    struct Segment {
        /// The marker's second byte.
        var marker: UInt8
        /// Where its first byte is in the picture.
        var start: Int
        /// What follows its length. Of a scan: of its header.
        var contents: Range<Int>

        /// `SOS`: the entropy-coded data follows.
        var isScan: Bool { marker == 0xDA }
        /// Huffman tables (`DHT`), or the conditioning of an arithmetic coder (`DAC`), which takes none.
        var isCodingTable: Bool { marker == 0xC4 || marker == 0xCC }
        /// `SOF`, which says the size of the picture.
        var isFrame: Bool { (0xC0...0xCF).contains(marker) && ![0xC4, 0xC8, 0xCC].contains(marker) }
        /// `APP1`, where EXIF data is.
        var isAPP1: Bool { marker == 0xE1 }

        /// The size that a frame's header states.
        func dimensions(in jpeg: UnsafeRawBufferPointer) -> Dimensions? {
            guard contents.count >= 5 else { return nil }
            let start = contents.lowerBound
            let (height, width) = (
                Int(jpeg[start + 1]) << 8 | Int(jpeg[start + 2]), Int(jpeg[start + 3]) << 8 | Int(jpeg[start + 4])
            )
            return width > 0 && height > 0 ? Dimensions(width: width, height: height) : nil
        }
    }

    private let jpeg: UnsafeRawBufferPointer
    private var index = 2

    /// nil: it doesn't begin as a JPEG does (`SOI`).
    init?(_ jpeg: UnsafeRawBufferPointer) {
        guard JPEGStream.hasStart(jpeg) else { return nil }
        self.jpeg = jpeg
    }

    /// The next segment, the scan's at last; nil after that, and where the markers make no sense.
    mutating func next() -> Segment? {
        while index >= 0, index + 3 < jpeg.count {
            guard jpeg[index] == 0xFF else { return nil }
            let marker = jpeg[index + 1]
            // Any number of these may stand before a marker.
            if marker == 0xFF {
                index += 1
                continue
            }
            if Self.standsAlone(marker) {
                index += 2
                continue
            }
            guard marker != 0xD8, marker != 0xD9 else { return nil }
            let (start, length) = (index, Int(jpeg[index + 2]) << 8 | Int(jpeg[index + 3]))
            // Of a scan only its place is asked for.
            guard length >= 2 || marker == 0xDA else { return nil }
            let end = min(start + 2 + max(length, 2), jpeg.count)
            index = marker == 0xDA ? -1 : start + 2 + length
            return Segment(marker: marker, start: start, contents: start + 4..<end)
        }
        return nil
    }

    /// Markers that nothing belongs to: `TEM` and the restarts.
    static func standsAlone(_ marker: UInt8) -> Bool { marker == 0x01 || (0xD0...0xD7).contains(marker) }
}
