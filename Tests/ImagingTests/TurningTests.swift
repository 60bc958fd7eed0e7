import BusProtocol
import CaptureCore
import Imaging
import JSON
import Testing
import TurboJPEG

private let orientations = (0..<8).map { PictureOrientation(quarters: $0 % 4, isMirrored: $0 >= 4) }

/// Where a pixel comes to lie, in plain arithmetic: one quarter after the other, then the mirror.
private func place(_ x: Int, _ y: Int, _ size: Dimensions, _ orientation: PictureOrientation) -> (x: Int, y: Int) {
    var (x, y, width, height) = (x, y, size.width, size.height)
    for _ in 0..<orientation.quarters { (x, y, width, height) = (height - 1 - y, x, height, width) }
    return (orientation.isMirrored ? width - 1 - x : x, y)
}

private func request(
    _ encoding: Rendition.Encoding, _ size: Dimensions, _ orientation: PictureOrientation, quality: Int = 95
) -> PictureRequest {
    var request = PictureRequest(encoding: encoding, dimensions: orientation.turned(size), quality: quality)
    request.orientation = orientation
    return request
}

private func convert(_ bytes: [UInt8], _ layout: FrameLayout, _ request: PictureRequest) throws -> [UInt8] {
    let converter = try PictureConverter(from: layout, to: request)
    let output = PictureBuffer()
    let memory = try GuardedMemory(bytes)
    // Twice: the second one uses what the first one made.
    for _ in 0..<2 {
        let count = try memory.read { try converter.convert([$0], bytesUsed: [bytes.count], into: output) }
        #expect(count == output.bytes.count)
    }
    return withExtendedLifetime(output) { Array(output.bytes) }
}

/// Bytes without any order, the same each time.
private func noise(_ count: Int) -> [UInt8] {
    var state: UInt32 = 2_463_534_242
    return (0..<count).map { _ in
        state ^= state << 13
        state ^= state >> 17
        state ^= state << 5
        return UInt8(truncatingIfNeeded: state)
    }
}

/// Pictures that are turned and mirrored: no two of the eight ways look alike.
@Suite struct TurningTests {
    @Test(
        arguments: [
            "YUYV", "NV12", "YU12", "422P", "411P", "YUV9", "YM24", "BGR3", "XR24", "RGGB", "GREY", "Y16", "MJPG",
        ],
        orientations)
    func bringsEveryPatchToItsPlace(_ format: String, _ orientation: PictureOrientation) throws {
        let sizes: [(from: Dimensions, to: Dimensions)] = [
            (Dimensions(width: 64, height: 48), Dimensions(width: 64, height: 48)),
            (Dimensions(width: 128, height: 96), Dimensions(width: 64, height: 32)),
            (Dimensions(width: 96, height: 72), Dimensions(width: 66, height: 50)),
            (Dimensions(width: 67, height: 51), Dimensions(width: 67, height: 51)),
            (Dimensions(width: 67, height: 51), Dimensions(width: 41, height: 33)),
        ]
        for (from, to) in sizes {
            let (bytes, layout) = try #require(try TestPicture(size: from).payload(format))
            for encoding in [Rendition.Encoding.jpeg, .bgr, .rgb, .gray, .yuyv, .nv12, .i420] {
                let needsEven = encoding == .yuyv || encoding == .nv12 || encoding == .i420
                if needsEven, to.width % 2 == 1 { continue }
                let wish = request(encoding, to, orientation)
                let output = try convert(bytes, layout, wish)
                let outputLayout = try PictureConverter(from: layout, to: wish).outputLayout
                let reader = try output.withUnsafeBytes { try PayloadReader($0, outputLayout) }
                #expect(reader.size == orientation.turned(to))
                let isGray = encoding == .gray || format == "GREY" || format == "Y16"
                for (x, y, color) in TestPicture.centers(to) {
                    let there = place(x, y, to, orientation)
                    let got = reader.color(there.x, there.y)
                    let wanted = isGray ? Color(color.y, color.y, color.y) : color
                    #expect(
                        got.isNear(wanted, 14),
                        "\(format) \(from) to \(encoding) \(to) at \(there): \(got) for \(wanted)")
                }
            }
        }
    }

    @Test(arguments: orientations, [Dimensions(width: 67, height: 51), Dimensions(width: 1, height: 37)])
    func movesEveryPixelAsItIs(_ orientation: PictureOrientation, _ size: Dimensions) throws {
        for (format, encoding, depth) in [
            (PixelFormat.grey, Rendition.Encoding.gray, 1), (.bgr24, .bgr, 3), (.rgb24, .rgb, 3),
        ] {
            let layout = try #require(FrameLayout.packed(format, size))
            let bytes = noise(layout.totalBytes)
            let output = try convert(bytes, layout, request(encoding, size, orientation))
            let turned = orientation.turned(size)
            var wrong = 0
            for y in 0..<size.height {
                for x in 0..<size.width {
                    let there = place(x, y, size, orientation)
                    let (from, to) = ((y * size.width + x) * depth, (there.y * turned.width + there.x) * depth)
                    if bytes[from..<from + depth] != output[to..<to + depth] { wrong += 1 }
                }
            }
            #expect(wrong == 0, "\(format)")
        }
    }

    @Test(arguments: orientations)
    func movesSharedChromaWithItsPixels(_ orientation: PictureOrientation) throws {
        let size = Dimensions(width: 70, height: 38)
        let half = Dimensions(width: 35, height: 19)
        let layout = try #require(FrameLayout.packed(.i420, size))
        let bytes = noise(layout.totalBytes)
        let output = try convert(bytes, layout, request(.i420, size, orientation))
        for (plane, size) in [size, half, half].enumerated() {
            let (offset, turned) = (layout.planes[plane].offset, orientation.turned(size))
            var wrong = 0
            for y in 0..<size.height {
                for x in 0..<size.width {
                    let there = place(x, y, size, orientation)
                    let to = offset + there.y * turned.width + there.x
                    if bytes[offset + y * size.width + x] != output[to] { wrong += 1 }
                }
            }
            #expect(wrong == 0, "plane \(plane)")
        }
    }

    // MARK: JPEG

    private static func inverse(_ orientation: PictureOrientation) -> PictureOrientation {
        // A mirrored turn is its own inverse.
        orientation.isMirrored ? orientation : PictureOrientation(quarters: -orientation.quarters, isMirrored: false)
    }

    private static func pixels(_ jpeg: UnsafeRawBufferPointer) throws -> (size: Dimensions, pixels: [UInt8]) {
        let decompressor = try JPEGDecompressor()
        let header = try decompressor.header(jpeg)
        var pixels = [UInt8](repeating: 0, count: header.width * header.height * 3)
        let warning = try pixels.withUnsafeMutableBytes {
            try decompressor.decompress(jpeg, header: header, format: .rgb, stride: header.width * 3, to: $0)
        }
        #expect(warning == nil)
        return (Dimensions(width: header.width, height: header.height), pixels)
    }

    private static func jpeg(_ size: Dimensions, _ subsampling: ChromaSubsampling) throws -> [UInt8] {
        let source = noise(size.area * 3)
        let room = JPEGCompressor.maximumBytes(width: size.width, height: size.height, subsampling: .s444)
        return try [UInt8](unsafeUninitializedCapacity: room) { buffer, count in
            count = try source.withUnsafeBytes {
                try JPEGCompressor().compress(
                    $0, format: .rgb, width: size.width, height: size.height, stride: size.width * 3,
                    subsampling: subsampling, quality: 60, into: UnsafeMutableRawBufferPointer(buffer))
            }
        }
    }

    @Test(arguments: orientations.dropFirst(), [ChromaSubsampling.s444, .s422, .s420, .gray, .s440])
    func losesNothingOfAJPEGOfWholeBlocks(
        _ orientation: PictureOrientation, _ subsampling: ChromaSubsampling
    ) throws {
        let size = Dimensions(width: 96, height: 64)
        let original = try Self.jpeg(size, subsampling)
        func layout(_ size: Dimensions) throws -> FrameLayout {
            try #require(FrameLayout.packed(.motionJPEG, size))
        }
        var there = request(.jpeg, size, orientation)
        there.keepsQuality = true
        let turned = try convert(original, try layout(size), there)
        #expect(try turned.withUnsafeBytes(Self.pixels).size == orientation.turned(size))
        var back = request(.jpeg, orientation.turned(size), Self.inverse(orientation))
        back.keepsQuality = true
        let again = try convert(turned, try layout(orientation.turned(size)), back)
        let before = try original.withUnsafeBytes(Self.pixels)
        let after = try again.withUnsafeBytes(Self.pixels)
        #expect(before.size == after.size)
        #expect(before.pixels == after.pixels)
        // With a quality of its own it is decoded and encoded, which noise doesn't survive.
        let encoded = try convert(
            turned, try layout(orientation.turned(size)),
            request(.jpeg, orientation.turned(size), Self.inverse(orientation)))
        #expect(try encoded.withUnsafeBytes(Self.pixels).pixels != before.pixels)
    }

    @Test(arguments: orientations.dropFirst())
    func turnsAJPEGWhoseBlocksAreNotWhole(_ orientation: PictureOrientation) throws {
        let size = Dimensions(width: 67, height: 51)
        let (bytes, layout) = try TestPicture(size: size).jpeg(.s420)
        var wish = request(.jpeg, size, orientation)
        wish.keepsQuality = true
        let output = try convert(bytes, layout, wish)
        let outputLayout = try PictureConverter(from: layout, to: wish).outputLayout
        let reader = try output.withUnsafeBytes { try PayloadReader($0, outputLayout) }
        #expect(reader.size == orientation.turned(size))
        for (x, y, color) in TestPicture.centers(size) {
            let there = place(x, y, size, orientation)
            #expect(reader.color(there.x, there.y).isNear(color, 14))
        }
    }

    @Test func tornPicturesAreDamaged() throws {
        let size = Dimensions(width: 96, height: 64)
        let original = try Self.jpeg(size, .s422)
        var wish = request(.jpeg, size, orientations[1])
        wish.keepsQuality = true
        let layout = try #require(FrameLayout.packed(.motionJPEG, size))
        for count in [3, 100, original.count / 2, original.count - 40] {
            let converter = try PictureConverter(from: layout, to: wish)
            let memory = try GuardedMemory(Array(original[..<count]))
            let error = #expect(throws: ConversionError.self) {
                try memory.read { _ = try converter.convert([$0], bytesUsed: [count], into: PictureBuffer()) }
            }
            guard case .damaged = error else {
                Issue.record("\(String(describing: error))")
                continue
            }
        }
    }

    // MARK: What is asked for

    @Test func sizesAreThoseOfTheTurnedPicture() throws {
        let layout = try #require(FrameLayout.packed(.yuyv, Dimensions(width: 1280, height: 720)))
        func size(_ text: String) throws -> Dimensions { try resolve(Rendition(parsing: text), for: layout).dimensions }
        #expect(try size("jpeg;rotate=90") == Dimensions(width: 720, height: 1280))
        #expect(try size("jpeg;rotate=180") == Dimensions(width: 1280, height: 720))
        #expect(try size("jpeg;mirror") == Dimensions(width: 1280, height: 720))
        #expect(try size("nv12:360x0;rotate=270;mirror") == Dimensions(width: 360, height: 640))
        #expect(try size("bgr:720x1280;rotate=90") == Dimensions(width: 720, height: 1280))
        let error = #expect(throws: BusError.self) { try size("bgr:1280x720;rotate=90") }
        #expect(error?.reason == .formatUnsupported)
        #expect(error?.data["nearest"] == ["width": 720, "height": 720])
    }
}
