import CaptureCore

/// The shortest EXIF data that says how a JPEG picture has to be turned: a segment of its own (`APP1`) with one field.
struct JPEGOrientationSegment: Hashable {
    /// EXIF's number, 1–8.
    private let number: UInt8

    /// Of the segment, with its marker.
    static let bytes = 36

    init(_ orientation: PictureOrientation) {
        number = UInt8(
            ExifOrientation.number(
                CaptureOrientation(rotationAngle: orientation.quarters * 90), isMirrored: orientation.isMirrored))
    }

    /// - Parameter room: of ``bytes`` bytes, at least.
    func write(to room: UnsafeMutableRawBufferPointer) {
        // Big-endian TIFF: one directory at 8 with the field 0x0112, one SHORT, and no directory after it.
        let segment: [36 of UInt8] = [
            0xFF, 0xE1, 0, 34, 0x45, 0x78, 0x69, 0x66, 0, 0, 0x4D, 0x4D, 0, 42, 0, 0, 0, 8,
            0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, number, 0, 0, 0, 0, 0, 0,
        ]
        for index in 0..<Self.bytes { room[index] = segment[index] }
    }
}
