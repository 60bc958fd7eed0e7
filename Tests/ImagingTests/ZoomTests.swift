import BusProtocol
import CaptureCore
import Testing

@testable import Imaging

private let formats = [
    "YUYV", "UYVY", "NV12", "NV16", "NV24", "YU12", "422P", "411P", "YUV9", "YM24", "BGR3", "XR24", "RGBP", "VUYX",
    "GREY", "Y10", "Y16", "RGGB", "GRBG", "RG10", "MJPG",
]
private let encodings: [Rendition.Encoding] = [.jpeg, .bgr, .rgb, .gray, .yuyv, .nv12, .i420]

/// Pictures of the middle of frames.
@Suite struct ZoomTests {
    @Test(arguments: [1000, 1001, 1100, 1333, 1999, 2000, 2500, 4000, 8000, 99_000, 1_000_000])
    func theMiddleIsInTheMiddle(_ zoom: Int) {
        for size in [(1280, 720), (641, 481), (64, 48), (17, 16), (9, 4), (1, 1)].map(Dimensions.init) {
            for block in [ChromaLayout.s444, .s422, .s420, ChromaLayout(across: 4, down: 4)] {
                let part = CropRectangle(middleOf: size, zoom: zoom, block: block)
                #expect(part.left >= 0 && part.left + part.width <= size.width)
                #expect(part.top >= 0 && part.top + part.height <= size.height)
                #expect(part.left % block.across == 0 && part.top % block.down == 0)
                #expect(part.width >= min(size.width, 16) && part.height >= min(size.height, 16))
                // Whole blocks but for a part that reaches the picture's end.
                #expect(part.width % block.across == 0 || part.left + part.width == size.width)
                // As wide as asked for, and as far from the one edge as from the other, to a block.
                let wanted = max(Double(size.width) * 1000 / Double(zoom), Double(min(size.width, 16)))
                #expect(abs(Double(part.width) - wanted) <= Double(block.across))
                #expect(abs(part.left - (size.width - part.left - part.width)) <= 2 * block.across)
            }
        }
        if zoom == 1000 {
            let whole = CropRectangle(middleOf: Dimensions(width: 641, height: 481), zoom: zoom, block: .s420)
            #expect(abs(whole.width - 641) <= 1 && abs(whole.height - 481) <= 1)
        }
    }

    @Test func factorsAreKeptWhereTheyComeOutEven() {
        let part = CropRectangle(middleOf: Dimensions(width: 1280, height: 720), zoom: 2000, block: .s420)
        #expect([part.left, part.top, part.width, part.height] == [320, 180, 640, 360])
    }

    @Test(arguments: formats, encodings)
    func showsTheMiddle(_ format: String, _ encoding: Rendition.Encoding) throws {
        let size = Dimensions(width: 128, height: 96)
        let picture = TestPicture(size: size)
        let (bytes, layout) = try #require(try picture.payload(format))
        let memory = try GuardedMemory(bytes)
        for wanted in [
            Dimensions(width: 128, height: 96), Dimensions(width: 64, height: 48), Dimensions(width: 34, height: 20),
        ] {
            let converter = try PictureConverter(
                from: layout, to: PictureRequest(encoding: encoding, dimensions: wanted, quality: 95))
            let output = PictureBuffer()
            // Back and forth: each uses what another one made.
            for zoom in [1000, 2000, 2000, 1010, 4000, 1500, 1000, 3000] {
                let count = try memory.read {
                    try converter.convert([$0], bytesUsed: [bytes.count], zoom: zoom, into: output)
                }
                #expect(count == output.bytes.count)
                let reader = try PayloadReader(output.bytes, converter.outputLayout)
                #expect(reader.size == wanted)
                let isGray = encoding == .gray || ["GREY", "Y10", "Y16"].contains(format)
                // Below that a quarter from the edge is at the border of patches.
                for (column, row) in zoom < 1500 ? [] : [(0, 0), (1, 0), (0, 1), (1, 1)] {
                    // A quarter from each edge: the inner four of the eight patches, if anything is enlarged.
                    let (x, y) = (wanted.width * (2 * column + 1) / 4, wanted.height * (2 * row + 1) / 4)
                    let shown = TestPicture.colors[row * 4 + 1 + column]
                    let color = isGray ? Color(shown.y, shown.y, shown.y) : shown
                    let got = reader.color(x, y)
                    #expect(
                        got.isNear(color, 14),
                        "\(format) to \(encoding) \(wanted) at \(zoom): \(got) for \(color) at \(x),\(y)")
                }
            }
        }
    }

    @Test func aPartOfItsOwnSizeIsTakenPixelByPixel() throws {
        let size = Dimensions(width: 128, height: 96)
        let layout = try #require(FrameLayout.packed(.grey, size))
        let bytes = (0..<size.area).map { UInt8(truncatingIfNeeded: $0 % 128 + $0 / 128) }
        let memory = try GuardedMemory(bytes)
        let converter = try PictureConverter(
            from: layout, to: PictureRequest(encoding: .gray, dimensions: Dimensions(width: 64, height: 48)))
        let output = PictureBuffer()
        _ = try memory.read { try converter.convert([$0], bytesUsed: [bytes.count], zoom: 2000, into: output) }
        let wanted = (0..<48).flatMap { y in (0..<64).map { x in UInt8(32 + x + 24 + y) } }
        #expect(Array(output.bytes) == wanted)
    }

    @Test(arguments: ["YUYV", "NV12", "RGGB", "BGR3", "MJPG"], [0, 1, 2, 3])
    func isTurnedAfterIt(_ format: String, _ quarters: Int) throws {
        let size = Dimensions(width: 128, height: 96)
        let (bytes, layout) = try #require(try TestPicture(size: size).payload(format))
        let memory = try GuardedMemory(bytes)
        let orientation = PictureOrientation(quarters: quarters, isMirrored: true)
        for encoding in [Rendition.Encoding.jpeg, .bgr, .i420] {
            var request = PictureRequest(
                encoding: encoding, dimensions: orientation.turned(Dimensions(width: 128, height: 96)), quality: 95)
            request.orientation = orientation
            // Without a quality a JPEG picture would be turned without being decoded, if it were the whole one.
            request.keepsQuality = true
            let converter = try PictureConverter(from: layout, to: request)
            let output = PictureBuffer()
            _ = try memory.read { try converter.convert([$0], bytesUsed: [bytes.count], zoom: 2000, into: output) }
            let reader = try PayloadReader(output.bytes, converter.outputLayout)
            var corners = [1, 2, 5, 6].map { TestPicture.colors[$0] }
            // Clockwise quarter by quarter, then left and right exchanged: left top, right top, left bottom, right
            // bottom.
            for _ in 0..<quarters { corners = [corners[2], corners[0], corners[3], corners[1]] }
            corners = [corners[1], corners[0], corners[3], corners[2]]
            let side = request.dimensions
            for (index, color) in corners.enumerated() {
                let got = reader.color(side.width * (2 * (index % 2) + 1) / 4, side.height * (2 * (index / 2) + 1) / 4)
                #expect(got.isNear(color, 14), "\(format) to \(encoding), \(quarters): \(got) for \(color)")
            }
        }
    }

    /// A ramp has a part of its own for each frame.
    @Test(arguments: ["YUYV", "NV12", "BGR3", "MJPG"], [Rendition.Encoding.jpeg, .rgb, .i420])
    func whatDoesNotDependOnItStays(_ format: String, _ encoding: Rendition.Encoding) throws {
        let size = Dimensions(width: 128, height: 96)
        let (bytes, layout) = try #require(try TestPicture(size: size).payload(format))
        let memory = try GuardedMemory(bytes)
        var request = PictureRequest(encoding: encoding, dimensions: Dimensions(width: 24, height: 32), quality: 95)
        request.orientation = PictureOrientation(quarters: 1, isMirrored: false)
        let converter = try PictureConverter(from: layout, to: request)
        let output = PictureBuffer()
        var used: [PictureFinish] = []
        for zoom in [1100, 1200, 1300, 1450, 1300] {
            _ = try memory.read { try converter.convert([$0], bytesUsed: [bytes.count], zoom: zoom, into: output) }
            used.append(try #require(converter.finish))
        }
        #expect(used.allSatisfy { $0 === used[0] })
    }

    @Test func oddSizesAndAbsurdFactors() throws {
        let size = Dimensions(width: 67, height: 51)
        for format in ["YUYV", "NV12", "YUV9", "BGR3", "RGGB", "MJPG"] {
            let (bytes, layout) = try #require(try TestPicture(size: size).payload(format))
            let memory = try GuardedMemory(bytes)
            for encoding in encodings {
                let wanted = Dimensions(width: 66, height: 50)
                let converter = try PictureConverter(
                    from: layout, to: PictureRequest(encoding: encoding, dimensions: wanted))
                let output = PictureBuffer()
                for zoom in [1001, 1015, 1021, 1500, 5000, 100_000, Int.max, -1, 0] {
                    let count = try memory.read {
                        try converter.convert([$0], bytesUsed: [bytes.count], zoom: zoom, into: output)
                    }
                    #expect(try PayloadReader(output.bytes, converter.outputLayout).size == wanted && count > 0)
                }
            }
        }
    }
}
