public import CaptureCore

/// What can be told of a JPEG picture's markers without decoding it (ITU-T T.81, Annex B).
public enum JPEGStream {
    /// True for a picture without Huffman tables (`DHT`), as many UVC cameras and AVI files have them: Motion JPEG
    /// means the standard ones then, which few programs other than video players know.
    public static func lacksHuffmanTables(_ jpeg: UnsafeRawBufferPointer) -> Bool {
        startOfScanWithoutTables(jpeg) != nil
    }

    /// Writes the picture with the standard tables put in (T.81 Annex K.3, as RFC 2435 gives them).
    ///
    /// - Returns: false for a picture that has tables, or whose markers make no sense; then nothing is written.
    public static func insertHuffmanTables(
        _ jpeg: UnsafeRawBufferPointer, into output: PictureBuffer
    ) throws(ConversionError) -> Bool {
        guard let completion = completion(of: jpeg) else { return false }
        try output.reserve(jpeg.count + completion.bytes)
        completion.fill(jpeg, into: output.room)
        output.setCount(jpeg.count + completion.bytes)
        return true
    }

    /// How much longer a picture becomes at most by what it lacks.
    public static var mostMissingBytes: Int { standardTables.count + JPEGOrientationSegment.bytes }

    /// What a picture lacks: its Huffman tables, or the word on how it has to be turned.
    public struct Completion: Hashable, Sendable {
        /// Where the tables belong; nil: it has some.
        fileprivate var tables: Int?
        /// What stands behind its beginning; nil: it needs none.
        fileprivate var orientation: JPEGOrientationSegment?

        /// How much longer the picture is with it.
        public var bytes: Int {
            (tables == nil ? 0 : standardTables.count) + (orientation == nil ? 0 : JPEGOrientationSegment.bytes)
        }

        /// Writes the whole picture: its own bytes and ``bytes`` more.
        ///
        /// - Parameters:
        ///   - jpeg: the picture that this was found in.
        ///   - room: of that many bytes, at least.
        public func fill(_ jpeg: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer) {
            precondition((tables ?? 2) <= jpeg.count && jpeg.count >= 2 && room.count >= jpeg.count + bytes)
            var (read, written) = (0, 0)
            func copy(to end: Int) {
                UnsafeMutableRawBufferPointer(rebasing: room[written...])
                    .copyMemory(from: UnsafeRawBufferPointer(rebasing: jpeg[read..<end]))
                (read, written) = (end, written + end - read)
            }
            if let orientation {
                copy(to: 2)
                orientation.write(to: UnsafeMutableRawBufferPointer(rebasing: room[written...]))
                written += JPEGOrientationSegment.bytes
            }
            if let tables {
                copy(to: tables)
                standardTables.withUnsafeBytes {
                    UnsafeMutableRawBufferPointer(rebasing: room[written...]).copyMemory(from: $0)
                }
                written += standardTables.count
            }
            copy(to: jpeg.count)
        }
    }

    /// Looks only at what comes before the first scan; nil for a picture that lacks nothing, or whose markers make no
    /// sense.
    ///
    /// - Parameter orientation: how its pixels have to be turned. A picture with EXIF data of its own says that itself.
    public static func completion(
        of jpeg: UnsafeRawBufferPointer, orientation: PictureOrientation = .upright
    ) -> Completion? {
        var completion = Completion(tables: startOfScanWithoutTables(jpeg))
        if orientation != .upright, JPEGOrientationSegment.isMissing(in: jpeg) {
            completion.orientation = JPEGOrientationSegment(orientation)
        }
        return completion.bytes == 0 ? nil : completion
    }

    /// True if the picture begins as a JPEG does (`SOI`).
    public static func hasStart(_ jpeg: UnsafeRawBufferPointer) -> Bool {
        jpeg.count > 2 && jpeg[0] == 0xFF && jpeg[1] == 0xD8
    }

    /// True if the end of the picture (`EOI`) is there, with at most so much filling behind it.
    public static func hasEnd(_ jpeg: UnsafeRawBufferPointer) -> Bool {
        let end = jpeg.count
        var index = end - 2
        // Cameras fill up to a block of their own with zeros.
        while index >= max(0, end - 65536) {
            if jpeg[index] == 0xFF, jpeg[index + 1] == 0xD9 { return true }
            index -= 1
        }
        return false
    }

    /// Where the first scan (`SOS`) begins in a picture with no `DHT` before it.
    private static func startOfScanWithoutTables(_ jpeg: UnsafeRawBufferPointer) -> Int? {
        guard jpeg.count > 4, jpeg[0] == 0xFF, jpeg[1] == 0xD8 else { return nil }
        var index = 2
        while index + 3 < jpeg.count {
            guard jpeg[index] == 0xFF else { return nil }
            let marker = jpeg[index + 1]
            if marker == 0xFF {
                index += 1
                continue
            }
            if marker == 0xDA { return index }
            // Huffman tables, or the conditioning of an arithmetic coder, which takes none.
            if marker == 0xC4 || marker == 0xCC { return nil }
            let length = Int(jpeg[index + 2]) << 8 | Int(jpeg[index + 3])
            guard length >= 2 else { return nil }
            index += 2 + length
        }
        return nil
    }
}
