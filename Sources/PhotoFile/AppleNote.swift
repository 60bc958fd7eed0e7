import CaptureCore

/// The note by which programs know that a picture belongs to a movie: Apple's `MakerNote`, with nothing in it but the
/// identifier that both files have (as ExifTool's table "Apple" describes it).
enum AppleNote {
    private static let header = Array("Apple iOS".utf8) + [0, 0, 1]
    /// The bytes' order, as TIFF says it: the greatest first.
    private static let order = Array("MM".utf8)
    /// `ContentIdentifier`
    private static let tag: UInt16 = 0x0011
    /// Text that ends with a zero.
    private static let ascii: UInt16 = 2

    /// All places in it are told from its own beginning, so it may stand anywhere.
    static func bytes(_ identifier: LivePhotoIdentifier) -> [UInt8] {
        let text = Array(identifier.text.utf8) + [0]
        let start = header + order
        // One field, and no further directory.
        let offset = start.count + 2 + 12 + 4
        return start + big(UInt16(1)) + big(tag) + big(ascii) + big(UInt32(text.count)) + big(UInt32(offset))
            + big(UInt32(0)) + text
    }

    private static func big<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
        withUnsafeBytes(of: number.bigEndian) { Array($0) }
    }
}
