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

    /// One that begins and ends as it should, and can't be decoded.
    static func torn() throws -> [UInt8] {
        let whole = try jpeg(luma: 20)
        return Array(whole.dropLast(22) + whole.suffix(2))
    }
}
