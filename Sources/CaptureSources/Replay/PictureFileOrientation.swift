import CaptureCore
import EXIF
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
        let number: Int? =
            if file.starts(with: [0xFF, 0xD8]) {
                ofJPEG(file)
            } else if file.starts(with: signature) {
                pngBlock(file).flatMap(ofTIFF)
            } else if file.starts(with: Array("RIFF".utf8)), file.dropFirst(8).starts(with: Array("WEBP".utf8)) {
                webPBlock(file).flatMap(ofTIFF)
            } else {
                ofTIFF(file)
            }
        return number.map { ExifOrientation.orientation($0) } ?? .upright
    }

    private static func ofJPEG(_ jpeg: UnsafeRawBufferPointer) -> Int? {
        guard case .shorts(let numbers) = try? EXIFData(of: jpeg).value(.orientation) else { return nil }
        return numbers.first.map { Int($0) }
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
            var contents = file[(place + 8)..<(place + 8 + length)]
            if file[place...].starts(with: Array("EXIF".utf8)) {
                // Some write what stands before it in a JPEG, too.
                if contents.starts(with: EXIFData.header) { contents = contents.dropFirst(EXIFData.header.count) }
                return UnsafeRawBufferPointer(rebasing: contents)
            }
            place += 8 + length + length % 2
        }
        return nil
    }

    // MARK: TIFF

    /// Tag 274 of the first directory; nil: it isn't there, or this is no TIFF.
    private static func ofTIFF(_ block: UnsafeRawBufferPointer) -> Int? {
        let isBigEndian = block.starts(with: Array("MM".utf8))
        guard isBigEndian || block.starts(with: Array("II".utf8)) else { return nil }
        func read(_ place: Int, _ bytes: Int) -> Int? { number(block, place, bytes, isBigEndian: isBigEndian) }
        guard read(2, 2) == 42, let directory = read(4, 4), let count = read(directory, 2) else { return nil }
        for entry in 0..<count {
            let place = directory + 2 + 12 * entry
            guard let tag = read(place, 2) else { return nil }
            // One SHORT.
            if tag == 274 { return read(place + 2, 2) == 3 && read(place + 4, 4) == 1 ? read(place + 8, 2) : nil }
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
