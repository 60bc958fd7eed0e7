import CaptureCore
import Imaging
import Testing

/// EXIF data of strangers, as they come with each picture of a JPEG stream.
@Suite("Orientation in EXIF data")
struct TIFFOrientationTests {
    /// One directory with a field in front of the orientation, as Pillow writes it.
    private static func block(_ number: UInt8, isBigEndian: Bool, kind: UInt8 = 3, count: UInt8 = 1) -> [UInt8] {
        func word(_ bytes: [UInt8]) -> [UInt8] { isBigEndian ? bytes : bytes.reversed() }
        return Array((isBigEndian ? "MM" : "II").utf8) + word([0, 42]) + word([0, 0, 0, 8]) + word([0, 2])
            + word([0x01, 0x00]) + word([0, 4]) + word([0, 0, 0, 1]) + word([0, 0, 0, 9])
            + word([0x01, 0x12]) + word([0, kind]) + word([0, 0, 0, count]) + word([0, number]) + [0, 0]
            + [0, 0, 0, 0]
    }

    private static func read(_ bytes: [UInt8]) throws -> PictureOrientation? {
        try GuardedMemory(bytes).read { TIFFOrientation.read($0) }
    }

    @Test("each number in both orders of bytes, in a file and in a segment", arguments: [true, false])
    func numbers(isBigEndian: Bool) throws {
        for number in UInt8(1)...8 {
            let block = Self.block(number, isBigEndian: isBigEndian)
            let expected = ExifOrientation.orientation(Int(number))
            #expect(try expected != nil && Self.read(block) == expected)
            #expect(try Self.read(Array("Exif\0\0".utf8) + block) == expected)
        }
        for number: UInt8 in [0, 9, 255] { #expect(try Self.read(Self.block(number, isBigEndian: isBigEndian)) == nil) }
        #expect(try Self.read(Self.block(6, isBigEndian: isBigEndian, kind: 2)) == nil)
        #expect(try Self.read(Self.block(6, isBigEndian: isBigEndian, count: 2)) == nil)
    }

    @Test("data that end anywhere, or point anywhere, say nothing", arguments: [true, false])
    func hostile(isBigEndian: Bool) throws {
        let block = Self.block(6, isBigEndian: isBigEndian)
        // Behind the number are two bytes of its field, and where the next directory is.
        for count in 0..<(block.count - 6) { #expect(try Self.read(Array(block[..<count])) == nil, "\(count)") }
        var far = block
        for place in 4..<8 { far[place] = 0xFF }
        #expect(try Self.read(far) == nil)
        // More fields than there is room for, none of them the one.
        var many = block
        (many[8], many[9]) = (0xFF, 0xFF)
        many[22 + (isBigEndian ? 1 : 0)] = 0x13
        #expect(try Self.read(many) == nil)
        // Its own beginning over and over.
        let header = Array("Exif\0\0".utf8)
        #expect(try Self.read((0..<10_000).flatMap { _ in header }) == nil)
    }
}
