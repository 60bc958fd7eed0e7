import Glibc

/// What a JPEG picture consists of, without decoding it (ITU-T T.81, Annex B). Valid as long as its memory is.
struct JPEGParts {
    let jpeg: UnsafeRawBufferPointer
    /// All between `SOI` and the first scan.
    let segments: [Segment]
    /// Where the first scan (`SOS`) begins.
    let scan: Int
    /// Behind `EOI`. Cameras fill up what follows.
    let end: Int

    struct Segment {
        /// The marker's second byte.
        var marker: UInt8
        /// All of it, from the marker's first byte.
        var bytes: UnsafeRawBufferPointer
        /// What follows its length.
        var contents: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: bytes[4...]) }

        /// Says something of the picture; none that the decoder needs.
        var isApplication: Bool { (0xE0...0xEF).contains(marker) }
        var isComment: Bool { marker == 0xFE }
        var isEXIF: Bool { marker == 0xE1 && starts("Exif\0\0") }
        /// The meaning of its colours as numbers.
        var isProfile: Bool { marker == 0xE2 && starts("ICC_PROFILE\0") }
        /// Which colour space its components are of: the decoder does need it.
        var isAdobe: Bool { marker == 0xEE && starts("Adobe") }

        private func starts(_ text: StaticString) -> Bool {
            contents.starts(with: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
        }
    }

    /// More segments before the scan than this has no picture.
    private static let mostSegments = 1000

    /// - Throws: `damaged` for what isn't whole from `SOI` to `EOI`.
    init(_ jpeg: UnsafeRawBufferPointer) throws(PhotoFileError) {
        guard jpeg.count > 4, jpeg[0] == 0xFF, jpeg[1] == 0xD8 else {
            throw .damaged("it doesn't begin as a JPEG picture")
        }
        var reader = Reader(jpeg: jpeg, index: 2)
        var segments: [Segment] = []
        var scan: Int?
        while scan == nil {
            let (marker, start) = try reader.marker()
            guard marker != 0xD8, marker != 0xD9 else { throw .damaged("there is no scan in the JPEG picture") }
            if marker == 0xDA {
                scan = start
                continue
            }
            if Self.standsAlone(marker) { continue }
            segments.append(Segment(marker: marker, bytes: try reader.segment(from: start)))
            guard segments.count <= Self.mostSegments else { throw .damaged("the JPEG picture has too many segments") }
        }
        self.jpeg = jpeg
        self.segments = segments
        self.scan = scan ?? 0
        reader.index = self.scan
        end = try reader.end()
    }

    fileprivate static func standsAlone(_ marker: UInt8) -> Bool { marker == 0x01 || (0xD0...0xD7).contains(marker) }
}

extension JPEGParts {
    private struct Reader {
        let jpeg: UnsafeRawBufferPointer
        var index: Int

        /// The marker that has to be here, and where it begins.
        mutating func marker() throws(PhotoFileError) -> (marker: UInt8, start: Int) {
            while index + 1 < jpeg.count {
                guard jpeg[index] == 0xFF else { throw .damaged("there is no marker where a JPEG picture needs one") }
                // Any number of these may stand before a marker.
                if jpeg[index + 1] != 0xFF {
                    index += 2
                    return (jpeg[index - 1], index - 2)
                }
                index += 1
            }
            throw Self.endless
        }

        /// What follows a marker, with it; goes on behind it.
        mutating func segment(from start: Int) throws(PhotoFileError) -> UnsafeRawBufferPointer {
            guard index + 1 < jpeg.count else { throw Self.endless }
            let length = Int(jpeg[index]) << 8 | Int(jpeg[index + 1])
            guard length >= 2 else { throw .damaged("a segment of the JPEG picture has no length") }
            guard index + length <= jpeg.count else { throw Self.endless }
            index += length
            return UnsafeRawBufferPointer(rebasing: jpeg[start..<index])
        }

        /// From a scan on: where the picture ends.
        mutating func end() throws(PhotoFileError) -> Int {
            while index < jpeg.count, let base = jpeg.baseAddress,
                let next = memchr(base + index, 0xFF, jpeg.count - index)
            {
                let start = UnsafeRawPointer(next) - base
                index = start
                guard index + 1 < jpeg.count else { break }
                let marker = jpeg[index + 1]
                switch marker {
                case 0x00: index += 2
                case 0xFF: index += 1
                case 0xD9: return index + 2
                case 0xD8: throw .damaged("another JPEG picture begins within this one")
                case _ where JPEGParts.standsAlone(marker): index += 2
                default:
                    index += 2
                    _ = try segment(from: start)
                }
            }
            throw Self.endless
        }

        private static var endless: PhotoFileError { .damaged("the JPEG picture has no end") }
    }
}
