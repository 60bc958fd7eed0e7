public import CaptureCore

/// Reads how the pixels of a TIFF file, and so of EXIF data, which are a kind of TIFF, have to be turned (tag 274).
/// Allocates nothing: each picture of a JPEG stream is read.
public enum TIFFOrientation {
    /// What stands before the TIFF in an `APP1` segment of JPEG.
    private static let exifHeader: [6 of UInt8] = [0x45, 0x78, 0x69, 0x66, 0, 0]

    /// - Parameter block: a TIFF, or EXIF data, with or without what stands before them in a JPEG.
    /// - Returns: nil: it doesn't say, or it is neither.
    public static func read(_ block: UnsafeRawBufferPointer) -> PictureOrientation? {
        let block = isEXIF(block) ? UnsafeRawBufferPointer(rebasing: block[exifHeader.count...]) : block
        guard block.count >= 8, block[0] == block[1], block[0] == 0x4D || block[0] == 0x49 else { return nil }
        let isBigEndian = block[0] == 0x4D
        func number(_ place: Int, _ bytes: Int) -> Int? {
            guard place >= 0, place <= block.count - bytes else { return nil }
            var value = 0
            for index in 0..<bytes {
                value = value << 8 | Int(block[place + (isBigEndian ? index : bytes - 1 - index)])
            }
            return value
        }
        guard number(2, 2) == 42, let directory = number(4, 4), let count = number(directory, 2) else { return nil }
        for entry in 0..<count {
            let place = directory + 2 + 12 * entry
            guard let tag = number(place, 2) else { return nil }
            guard tag == 274 else { continue }
            // One SHORT.
            guard number(place + 2, 2) == 3, number(place + 4, 4) == 1 else { return nil }
            return number(place + 8, 2).flatMap { ExifOrientation.orientation($0) }
        }
        return nil
    }

    private static func isEXIF(_ block: UnsafeRawBufferPointer) -> Bool {
        guard block.count >= exifHeader.count else { return false }
        for index in exifHeader.indices where block[index] != exifHeader[index] { return false }
        return true
    }
}
