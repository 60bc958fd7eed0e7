import EXIF

/// Puts JPEG pictures together out of parts of others.
enum JPEGAssembly {
    /// A photo's file: EXIF first, as its standard wants it, and so without JFIF's segment.
    ///
    /// - Parameters:
    ///   - exif: as ``EXIFData/serialized()`` gives it, no longer than ``EXIFData/maximumBytes``.
    ///   - picture: what is to be seen.
    ///   - camera: the camera's own picture, which `picture` is or was made of: its colour profile and its comments go
    ///     with it. Other data that cameras send along (streams of other formats, previews) doesn't belong into a
    ///     photo.
    static func photo(exif: [UInt8], _ picture: JPEGParts, camera: JPEGParts?) -> [UInt8] {
        let kept = camera?.segments.filter { $0.isProfile || $0.isComment } ?? []
        let length = exif.count + 2
        return assemble(picture, room: exif.count + kept.reduce(16) { $0 + $1.bytes.count }) { bytes in
            bytes += [0xFF, 0xE1, UInt8(truncatingIfNeeded: length >> 8), UInt8(truncatingIfNeeded: length)]
            bytes += exif
            for segment in kept { bytes += segment.bytes }
        }
    }

    /// A thumbnail has nothing beside its pixels (CIPA DC-008, 4.5.8).
    static func thumbnail(_ picture: JPEGParts) -> [UInt8] { assemble(picture, room: 0) { _ in } }

    private static func assemble(
        _ picture: JPEGParts, room: Int, _ describe: (inout [UInt8]) -> Void
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(room + picture.end)
        bytes += [0xFF, 0xD8]
        describe(&bytes)
        for segment in picture.segments where segment.isAdobe || !(segment.isApplication || segment.isComment) {
            bytes += segment.bytes
        }
        bytes += UnsafeRawBufferPointer(rebasing: picture.jpeg[picture.scan..<picture.end])
        return bytes
    }
}
