import CaptureCore
import Imaging
import LinuxIO

/// How a picture file says that its picture has to be turned: EXIF data of JPEG, PNG (`eXIf`) and WebP (`EXIF`), and
/// tag 274 of TIFF, of which EXIF data are a kind. Others say nothing.
enum PictureFileOrientation {
    /// Files that aren't turned, can't be read, or are larger than `limit` bytes are upright.
    static func read(_ path: String, limit: Int) -> PictureOrientation {
        guard let bytes = try? File.readAtOnce(path, limit: limit) else { return .upright }
        return bytes.withUnsafeBytes { read($0) }
    }

    /// The same of a file's bytes.
    static func read(_ file: UnsafeRawBufferPointer) -> PictureOrientation {
        let orientation: PictureOrientation? =
            if file.starts(with: [0xFF, 0xD8]) {
                JPEGHead(file)?.orientation
            } else if file.starts(with: signature) {
                pngBlock(file).flatMap(TIFFOrientation.read)
            } else if file.starts(with: Array("RIFF".utf8)), file.dropFirst(8).starts(with: Array("WEBP".utf8)) {
                webPBlock(file).flatMap(TIFFOrientation.read)
            } else {
                TIFFOrientation.read(file)
            }
        return orientation ?? .upright
    }

    // MARK: Where the data are

    private static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

    /// Chunks of a length, a type, contents and a checksum.
    private static func pngBlock(_ file: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        var place = signature.count
        while let length = number(file, place, 4, isBigEndian: true), place + 12 + length <= file.count {
            let contents = UnsafeRawBufferPointer(rebasing: file[(place + 8)..<(place + 8 + length)])
            if file[(place + 4)...].starts(with: Array("eXIf".utf8)) { return contents }
            place += 12 + length
        }
        return nil
    }

    /// Chunks of a type, a length and contents, which begin at even places.
    private static func webPBlock(_ file: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        var place = 12
        while let length = number(file, place + 4, 4, isBigEndian: false), place + 8 + length <= file.count {
            let contents = UnsafeRawBufferPointer(rebasing: file[(place + 8)..<(place + 8 + length)])
            if file[place...].starts(with: Array("EXIF".utf8)) { return contents }
            place += 8 + length + length % 2
        }
        return nil
    }

    private static func number(
        _ bytes: UnsafeRawBufferPointer, _ place: Int, _ count: Int, isBigEndian: Bool
    ) -> Int? {
        guard place >= 0, place <= bytes.count - count else { return nil }
        let digits = bytes[place..<(place + count)]
        return isBigEndian
            ? digits.reduce(0) { $0 << 8 | Int($1) } : digits.reversed().reduce(0) { $0 << 8 | Int($1) }
    }
}
