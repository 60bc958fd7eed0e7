/// What can be told of a JPEG picture's markers without decoding it (ITU-T T.81, Annex B).
public enum JPEGStream {
    /// True for a picture without Huffman tables (`DHT`), as many UVC cameras and AVI files have them: Motion JPEG means
    /// the standard ones then, which few programs other than video players know.
    public static func lacksHuffmanTables(_ jpeg: UnsafeRawBufferPointer) -> Bool {
        startOfScanWithoutTables(jpeg) != nil
    }

    /// Writes the picture with the standard tables put in (T.81 Annex K.3, as RFC 2435 gives them).
    ///
    /// - Returns: false for a picture that has tables, or whose markers make no sense; then nothing is written.
    public static func insertHuffmanTables(
        _ jpeg: UnsafeRawBufferPointer, into output: PictureBuffer
    ) throws(ConversionError) -> Bool {
        guard let scan = startOfScanWithoutTables(jpeg) else { return false }
        try output.reserve(jpeg.count + standardTables.count)
        let room = output.room
        room.copyMemory(from: UnsafeRawBufferPointer(rebasing: jpeg[..<scan]))
        standardTables.withUnsafeBytes { tables in
            UnsafeMutableRawBufferPointer(rebasing: room[scan...]).copyMemory(from: tables)
        }
        UnsafeMutableRawBufferPointer(rebasing: room[(scan + standardTables.count)...])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: jpeg[scan...]))
        output.setCount(jpeg.count + standardTables.count)
        return true
    }

    /// True if the end of the picture (`EOI`) is there, with at most so much filling behind it.
    static func hasEnd(_ jpeg: UnsafeRawBufferPointer) -> Bool {
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
