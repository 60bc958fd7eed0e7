import BusProtocol
import CaptureCore
import JSON
import Testing

@testable import Imaging

private let formats = [
    "YUYV", "UYVY", "NV12", "NV16", "NV24", "YU12", "422P", "411P", "YUV9", "YM24", "BGR3", "XR24", "RGBP", "VUYX",
    "GREY", "Y10", "Y16", "RGGB", "GRBG", "RG10", "MJPG",
]

/// Parts of pictures.
@Suite struct CropTests {
    private static let size = Dimensions(width: 128, height: 96)

    private static func make(
        _ text: String, _ format: String, orientation: PictureOrientation = .upright
    ) throws -> PayloadReader {
        var (bytes, layout) = try #require(try TestPicture(size: size).payload(format))
        layout.description.orientation = orientation
        let converter = try PictureConverter(from: layout, to: try resolve(try Rendition(parsing: text), for: layout))
        let output = PictureBuffer()
        let memory = try GuardedMemory(bytes)
        // Twice: the second one uses what the first one made.
        for _ in 0..<2 { _ = try memory.read { try converter.convert([$0], bytesUsed: [bytes.count], into: output) } }
        return try PayloadReader(output.bytes, converter.outputLayout)
    }

    /// How far the part is from the whole, at its pixels: the largest difference and the mean one.
    private static func difference(_ part: PayloadReader, _ whole: PayloadReader, x: Int, y: Int) -> (Double, Double) {
        var (largest, sum) = (0.0, 0.0)
        for row in 0..<part.size.height {
            for column in 0..<part.size.width {
                let (one, other) = (part.color(column, row), whole.color(column + x, row + y))
                let far = max(abs(one.r - other.r), abs(one.g - other.g), abs(one.b - other.b))
                largest = max(largest, far)
                sum += far
            }
        }
        return (largest, sum / Double(part.size.width * part.size.height))
    }

    @Test(arguments: formats, [Rendition.Encoding.bgr, .rgb, .gray])
    func isThatPartOfTheWhole(_ format: String, _ encoding: Rendition.Encoding) throws {
        let whole = try Self.make(encoding.rawValue, format)
        for (width, height, x, y) in [
            (64, 48, 32, 24), (128, 96, 0, 0), (40, 30, 88, 66), (33, 21, 0, 0), (31, 25, 15, 7), (1, 1, 127, 95),
            (57, 43, 70, 52),
        ] {
            let part = try Self.make("\(encoding.rawValue);crop=\(width)x\(height)+\(x)+\(y)", format)
            #expect(part.size == Dimensions(width: width, height: height))
            let (largest, mean) = Self.difference(part, whole, x: x, y: y)
            #expect(largest <= 3, "\(format) \(encoding) \(width)x\(height)+\(x)+\(y): \(largest), \(mean)")
        }
    }

    @Test(arguments: formats, [Rendition.Encoding.jpeg, .yuyv, .nv12, .i420, .bgr])
    func isScaledAfterItIsCut(_ format: String, _ encoding: Rendition.Encoding) throws {
        // The four patches on the right, each 32x48: two in the part, and the part begins within one.
        let made = try Self.make("\(encoding.rawValue):32x24;crop=63x95+65+1", format)
        #expect(made.size == Dimensions(width: 32, height: 24))
        let isGray = ["GREY", "Y10", "Y16"].contains(format)
        for (index, (x, y)) in [(7, 6), (24, 6), (7, 18), (24, 18)].enumerated() {
            let color = TestPicture.colors[2 + index % 2 + index / 2 * 4]
            let wanted = isGray ? Color(color.y, color.y, color.y) : color
            #expect(made.color(x, y).isNear(wanted, 14), "\(format) \(encoding) at \(x),\(y): \(made.color(x, y))")
        }
    }

    @Test(arguments: 0..<8)
    func isOfTheUprightPicture(_ index: Int) throws {
        let source = PictureOrientation(quarters: index / 2, isMirrored: index % 2 == 1)
        for format in ["BGR3", "MJPG", "YUYV"] {
            let whole = try Self.make("rgb", format, orientation: source)
            let upright = source.turned(Self.size)
            #expect(whole.size == upright)
            let part = try Self.make("rgb;crop=40x24+52+36", format, orientation: source)
            #expect(part.size == Dimensions(width: 40, height: 24))
            let (_, mean) = Self.difference(part, whole, x: 52, y: 36)
            #expect(mean <= 1, "\(format) \(source): \(mean)")
            // It is turned after it is cut.
            let turned = try Self.make("rgb;crop=40x24+52+36;rotate=90", format, orientation: source)
            #expect(turned.size == Dimensions(width: 24, height: 40))
            var far = 0.0
            for (x, y) in [(0, 0), (23, 0), (0, 39), (23, 39), (11, 20)] {
                let (one, other) = (turned.color(x, y), part.color(y, 23 - x))
                far = max(far, abs(one.r - other.r), abs(one.g - other.g), abs(one.b - other.b))
            }
            #expect(far <= 3, "\(format) \(source)")
        }
    }

    @Test(arguments: ["YUYV", "BGR3", "MJPG"])
    func isOfTheZoomedPicture(_ format: String) throws {
        let (bytes, layout) = try #require(try TestPicture(size: Self.size).payload(format))
        func make(_ text: String) throws -> PayloadReader {
            let converter = try PictureConverter(
                from: layout, to: try resolve(try Rendition(parsing: text), for: layout))
            let output = PictureBuffer()
            for zoom in [1000, 2000] {
                _ = try bytes.withUnsafeBytes {
                    try converter.convert([$0], bytesUsed: [bytes.count], zoom: zoom, into: output)
                }
            }
            return try PayloadReader(output.bytes, converter.outputLayout)
        }
        let (whole, part) = (try make("bgr"), try make("bgr;crop=64x48+32+24"))
        let (_, mean) = Self.difference(part, whole, x: 32, y: 24)
        #expect(mean <= 3, "\(mean)")
    }

    @Test(
        arguments: ["Y10", "Y16", "Y16 -BE", "RG10", "RG16", "GREY", "BGR3", "MJPG"],
        [Rendition.Encoding.gray16, .rgb48])
    func isThatPartOfTheWholeOf16Bits(_ format: String, _ encoding: Rendition.Encoding) throws {
        let (bytes, layout) = try #require(try TestPicture(size: Self.size).payload(format))
        func make(_ text: String) throws -> [UInt8] {
            let request = try resolve(try Rendition(parsing: text), for: layout)
            let output = PictureBuffer()
            _ = try bytes.withUnsafeBytes {
                try PictureConverter(from: layout, to: request).convert([$0], bytesUsed: [bytes.count], into: output)
            }
            return Array(output.bytes)
        }
        let (whole, part) = (try make(encoding.rawValue), try make("\(encoding.rawValue);crop=31x25+15+7"))
        let pixel = encoding == .gray16 ? 2 : 6
        var wanted: [UInt8] = []
        for line in 7..<32 {
            let start = (line * 128 + 15) * pixel
            wanted += whole[start..<start + 31 * pixel]
        }
        #expect(part == wanted)
    }

    @Test func isTheWholeWhereItTakesAll() throws {
        let (_, layout) = try #require(try TestPicture(size: Self.size).payload("YUYV"))
        let whole = try resolve(try Rendition(parsing: "bgr:64x48"), for: layout)
        #expect(try resolve(try Rendition(parsing: "bgr:64x48;crop=128x96+0+0"), for: layout) == whole)
    }

    @Test(arguments: [
        ("jpeg;crop=129x96+0+0", 128, 96, 0, 0), ("jpeg;crop=64x48+65+0", 64, 48, 64, 0),
        ("bgr;crop=64x48+0+49", 64, 48, 0, 48), ("gray;crop=16x16+16384+16384", 16, 16, 112, 80),
    ])
    func isRefusedOutside(_ text: String, _ width: Int, _ height: Int, _ x: Int, _ y: Int) throws {
        let (_, layout) = try #require(try TestPicture(size: Self.size).payload("YUYV"))
        let error = #expect(throws: BusError.self) { try resolve(try Rendition(parsing: text), for: layout) }
        #expect(error?.reason == .formatUnsupported)
        let nearest: JSONValue = [
            "width": JSONValue(width), "height": JSONValue(height), "x": JSONValue(x), "y": JSONValue(y),
        ]
        #expect(error?.data["nearest"] == nearest)
    }

    @Test(arguments: [
        ("jpeg:65x48;crop=64x48+0+0", nil), ("jpeg;crop=31x21+1+1", Dimensions(width: 31, height: 21)),
        ("nv12;crop=31x21+1+1", Dimensions(width: 30, height: 20)),
        ("jpeg:16x0;crop=64x32+0+0", Dimensions(width: 16, height: 8)),
        ("jpeg:640x0;crop=64x32+0+0;fit", Dimensions(width: 64, height: 32)),
        ("bgr;crop=64x32+0+0;rotate=90", Dimensions(width: 32, height: 64)),
        ("bgr:8x0;crop=64x32+0+0;rotate=90", Dimensions(width: 8, height: 16)),
    ])
    func standsForThePictureInSizes(_ text: String, _ size: Dimensions?) throws {
        let (_, layout) = try #require(try TestPicture(size: Self.size).payload("YUYV"))
        #expect((try? resolve(try Rendition(parsing: text), for: layout))?.dimensions == size)
    }
}
