import BusProtocol
import CaptureCore
import Imaging
import Testing

/// Pictures for a ``TestSource`` to give.
enum TestPicture {
    /// All of one grey, as large as the source's first format.
    static func jpeg(luma: UInt8) throws -> [UInt8] {
        let size = Dimensions(width: 64, height: 48)
        let layout = try #require(FrameLayout.packed(.grey, size))
        let converter = try PictureConverter(from: layout, to: PictureRequest(encoding: .jpeg, dimensions: size))
        let output = PictureBuffer()
        let picture = [UInt8](repeating: luma, count: layout.totalBytes)
        _ = try picture.withUnsafeBytes {
            try converter.convert([$0], bytesUsed: [picture.count], into: output)
        }
        return Array(output.bytes)
    }

    /// One without its Huffman tables, as many cameras send it, and where they belong.
    static func bare(luma: UInt8 = 20) throws -> (bytes: [UInt8], tables: Int) {
        let whole = try jpeg(luma: luma)
        var (bytes, index, tables) = (Array(whole[..<2]), 2, 0)
        while whole[index + 1] != 0xDA {
            let next = index + 2 + Int(whole[index + 2]) << 8 + Int(whole[index + 3])
            if whole[index + 1] != 0xC4 { bytes += whole[index..<next] }
            index = next
        }
        tables = bytes.count
        return (bytes + whole[index...], tables)
    }

    /// One that begins and ends as it should, and can't be decoded.
    static func torn() throws -> [UInt8] {
        let whole = try jpeg(luma: 20)
        return Array(whole.dropLast(22) + whole.suffix(2))
    }
}
