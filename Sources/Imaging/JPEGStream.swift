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
        guard let gap = huffmanGap(jpeg) else { return false }
        try output.reserve(jpeg.count + gap.bytes)
        gap.fill(jpeg, into: output.room)
        output.setCount(jpeg.count + gap.bytes)
        return true
    }

    /// How much longer a picture becomes at most by its Huffman tables.
    public static var maximumGapBytes: Int { standardTables.count }

    /// Where a picture lacks its Huffman tables.
    public struct HuffmanGap: Hashable, Sendable {
        fileprivate var offset: Int

        /// How much longer the picture is with the standard tables.
        public var bytes: Int { standardTables.count }

        /// Writes the picture with the standard tables put in: its own bytes and ``bytes`` more.
        ///
        /// - Parameters:
        ///   - jpeg: the picture that this was found in.
        ///   - room: of that many bytes, at least.
        public func fill(_ jpeg: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer) {
            precondition(offset <= jpeg.count && room.count >= jpeg.count + bytes)
            room.copyMemory(from: UnsafeRawBufferPointer(rebasing: jpeg[..<offset]))
            standardTables.withUnsafeBytes { tables in
                UnsafeMutableRawBufferPointer(rebasing: room[offset...]).copyMemory(from: tables)
            }
            UnsafeMutableRawBufferPointer(rebasing: room[(offset + bytes)...])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: jpeg[offset...]))
        }
    }

    /// Looks only at what comes before the first scan; nil for a picture that has tables, or whose markers make no
    /// sense.
    public static func huffmanGap(_ jpeg: UnsafeRawBufferPointer) -> HuffmanGap? {
        startOfScanWithoutTables(jpeg).map { HuffmanGap(offset: $0) }
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
