import BusProtocol
import CaptureCore
import Imaging
import Testing
import TurboJPEG

private let size = Dimensions(width: 64, height: 48)

/// The error that converting these bytes gives; nil if it went well.
private func failure(
    _ bytes: [UInt8], _ layout: FrameLayout, _ request: PictureRequest, bytesUsed: [Int]? = nil
) throws -> ConversionError? {
    let memory = try GuardedMemory(bytes)
    let converter = try PictureConverter(from: layout, to: request)
    do {
        _ = try memory.read {
            try converter.convert([$0], bytesUsed: bytesUsed ?? [bytes.count], into: PictureBuffer())
        }
        return nil
    } catch let error as ConversionError {
        return error
    }
}

@Suite struct DamageTests {
    @Test(arguments: ["YUYV", "NV12", "YU12", "BGR3", "RGGB", "GREY", "Y16"], [Rendition.Encoding.jpeg, .bgr, .gray])
    func refusesShortFrames(_ format: String, _ encoding: Rendition.Encoding) throws {
        let payload = try TestPicture(size: size).payload(format)
        let (bytes, layout) = try #require(payload)
        let request = PictureRequest(encoding: encoding, dimensions: size)
        #expect(try failure(bytes, layout, request) == nil)
        for missing in [1, 100, bytes.count] {
            // Once the memory itself ends early, once the device only says that it filled less.
            for short in [
                try failure(Array(bytes.dropLast(missing)), layout, request),
                try failure(bytes, layout, request, bytesUsed: [bytes.count - missing]),
            ] {
                guard case .truncated = short else {
                    // Luma alone doesn't miss the chroma behind it.
                    let needsAll = encoding != .gray || !["NV12", "YU12"].contains(format) || missing == bytes.count
                    #expect(!needsAll, "\(format) without \(missing) bytes gave \(String(describing: short))")
                    continue
                }
            }
        }
        #expect(try failure(bytes, layout, request, bytesUsed: []) != nil)
        #expect(try failure(bytes, layout, request, bytesUsed: [-5]) != nil)
    }

    @Test func findsPlanesInRegionsOfTheirOwn() throws {
        let payload = try TestPicture(size: size).payload("NM12")
        let (bytes, layout) = try #require(payload)
        let luma = try GuardedMemory(Array(bytes[..<size.area]))
        let chroma = try GuardedMemory(Array(bytes[size.area...]))
        let converter = try PictureConverter(from: layout, to: PictureRequest(encoding: .bgr, dimensions: size))
        let output = PictureBuffer()
        _ = try luma.read { y in
            try chroma.read { uv in
                try converter.convert([y, uv], bytesUsed: [size.area, size.area / 2], into: output)
            }
        }
        let reader = try PayloadReader(output.bytes, converter.outputLayout)
        for (x, y, color) in TestPicture.centers(size) { #expect(reader.color(x, y).isNear(color, 5)) }
        #expect(throws: ConversionError.self) {
            _ = try luma.read { y in
                try chroma.read { uv in
                    try converter.convert([y, uv], bytesUsed: [size.area, size.area / 2 - 1], into: output)
                }
            }
        }
    }

    @Test func followsStrides() throws {
        // The same picture with 24 bytes behind each line, and chroma planes that a driver told nothing of.
        let payload = try TestPicture(size: size).payload("YU12")
        let (bytes, layout) = try #require(payload)
        var padded: [UInt8] = []
        for (plane, lines) in [(0, 48), (1, 24), (2, 24)] {
            let (offset, stride) = (layout.planes[plane].offset, layout.planes[plane].stride)
            for line in 0..<lines {
                padded += bytes[(offset + line * stride)..<(offset + (line + 1) * stride)]
                padded += [UInt8](repeating: 77, count: plane == 0 ? 24 : 12)
            }
        }
        var wide = layout
        wide.planes = [PlaneLayout(offset: 0, stride: 88, bytes: padded.count)]
        for encoding in [Rendition.Encoding.jpeg, .rgb, .nv12, .yuyv] {
            let converter = try PictureConverter(
                from: wide, to: PictureRequest(encoding: encoding, dimensions: size, quality: 95))
            let memory = try GuardedMemory(padded)
            let output = PictureBuffer()
            _ = try memory.read { try converter.convert([$0], bytesUsed: [padded.count], into: output) }
            let reader = try PayloadReader(output.bytes, converter.outputLayout)
            for (x, y, color) in TestPicture.centers(size) { #expect(reader.color(x, y).isNear(color, 8)) }
        }
    }

    @Test func refusesLayoutsThatCannotBe() throws {
        let request = PictureRequest(encoding: .jpeg, dimensions: size)
        for plane in [
            PlaneLayout(offset: 0, stride: 127, bytes: 6144), PlaneLayout(offset: -1, stride: 128, bytes: 6144),
            PlaneLayout(offset: 0, stride: Int.max, bytes: 6144),
            PlaneLayout(offset: Int.max, stride: 128, bytes: 6144),
        ] {
            #expect(throws: BusError.self) {
                try PictureConverter(
                    from: FrameLayout(pixelFormat: .yuyv, dimensions: size, planes: [plane]), to: request)
            }
        }
        for dimensions in [
            Dimensions(width: 0, height: 8), Dimensions(width: 8, height: -1), Dimensions(width: Int.max, height: 2),
        ] {
            let plane = PlaneLayout(offset: 0, stride: 0, bytes: 100)
            #expect(throws: BusError.self) {
                try PictureConverter(
                    from: FrameLayout(pixelFormat: .yuyv, dimensions: dimensions, planes: [plane]), to: request)
            }
        }
        let h264 = FrameLayout(
            pixelFormat: .h264, dimensions: size, planes: [PlaneLayout(offset: 0, stride: 0, bytes: 9)])
        let error = #expect(throws: BusError.self) { try PictureConverter(from: h264, to: request) }
        #expect(error?.reason == .formatUnsupported)
    }

    @Test(arguments: [Rendition.Encoding.jpeg, .bgr, .gray, .nv12], [64, 40, 32])
    func tellsDamagedPictures(_ encoding: Rendition.Encoding, _ width: Int) throws {
        let (jpeg, layout) = try TestPicture(size: size).jpeg()
        let request = PictureRequest(encoding: encoding, dimensions: Dimensions(width: width, height: width * 3 / 4))
        #expect(try failure(jpeg, layout, request) == nil)
        var broken: [[UInt8]] = [
            Array(jpeg.prefix(jpeg.count / 2)), Array(jpeg.prefix(300)), Array(jpeg.prefix(3)), [0xFF], [0, 0, 0, 0],
            Array("GET / HTTP/1.1\r\n\r\n".utf8), [UInt8](repeating: 0xFF, count: 5000),
        ]
        // A scan full of the wrong bits.
        var noise = jpeg
        for index in stride(from: noise.count - 200, to: noise.count - 20, by: 3) { noise[index] = 0xFF }
        broken.append(noise)
        // The right picture of another size.
        broken.append(try TestPicture(size: Dimensions(width: 80, height: 48)).jpeg().bytes)
        for (index, bytes) in broken.enumerated() {
            guard case .damaged = try failure(bytes, layout, request) else {
                Issue.record("case \(index) gave \(String(describing: try failure(bytes, layout, request)))")
                continue
            }
        }
        guard case .truncated = try failure(jpeg, layout, request, bytesUsed: [0]) else {
            Issue.record("an empty frame is not told as one")
            return
        }
    }

    @Test func goesOnAfterADamagedPicture() throws {
        let (jpeg, layout) = try TestPicture(size: size).jpeg()
        let converter = try PictureConverter(from: layout, to: PictureRequest(encoding: .bgr, dimensions: size))
        let output = PictureBuffer()
        let good = try GuardedMemory(jpeg)
        // Broken off anywhere, also within the header's tables.
        for length in stride(from: 3, to: jpeg.count - 20, by: 19) {
            let bad = try GuardedMemory(Array(jpeg.prefix(length)))
            #expect(throws: ConversionError.self) {
                try bad.read { try converter.convert([$0], bytesUsed: [bad.bytes.count], into: output) }
            }
            #expect(output.bytes.isEmpty)
            _ = try good.read { try converter.convert([$0], bytesUsed: [jpeg.count], into: output) }
            let reader = try PayloadReader(output.bytes, converter.outputLayout)
            for (x, y, color) in TestPicture.centers(size) { #expect(reader.color(x, y).isNear(color, 13)) }
        }
    }

    @Test(arguments: [Rendition.Encoding.jpeg, .bgr, .i420])
    func survivesPicturesWithAnyByteChanged(_ encoding: Rendition.Encoding) throws {
        let (jpeg, layout) = try TestPicture(size: size).jpeg()
        let request = PictureRequest(encoding: encoding, dimensions: Dimensions(width: 32, height: 24))
        let converter = try PictureConverter(from: layout, to: request)
        let output = PictureBuffer()
        // The same noise each time (xorshift).
        var seed: UInt32 = 2_463_534_242
        func random(_ limit: Int) -> Int {
            seed ^= seed << 13
            seed ^= seed >> 17
            seed ^= seed << 5
            return Int(seed) % limit
        }
        for _ in 0..<400 {
            var bytes = jpeg
            for _ in 0...random(4) { bytes[random(bytes.count)] = UInt8(random(256)) }
            let memory = try GuardedMemory(Array(bytes.prefix(1 + random(2 * bytes.count))))
            // Made or refused: only never read or written beyond.
            let count = try? memory.read {
                try converter.convert([$0], bytesUsed: [memory.bytes.count], into: output)
            }
            #expect(output.bytes.count == count ?? 0)
        }
    }

    @Test(arguments: [Rendition.Encoding.jpeg, .bgr, .gray, .i420], [64, 32])
    func givesPicturesTheirEnd(_ encoding: Rendition.Encoding, _ width: Int) throws {
        let (jpeg, layout) = try TestPicture(size: size).jpeg()
        let request = PictureRequest(encoding: encoding, dimensions: Dimensions(width: width, height: width * 3 / 4))
        #expect(try failure(jpeg.dropLast(2), layout, request) == nil)
        #expect(try failure(jpeg.dropLast(1), layout, request) == nil)
        #expect(try failure(jpeg.dropLast(2) + [UInt8](repeating: 0, count: 700), layout, request) == nil)
        // What lacks more is damaged.
        for missing in [12, 40, jpeg.count / 2] {
            guard case .damaged = try failure(jpeg.dropLast(missing), layout, request) else {
                Issue.record("a picture without its last \(missing) bytes was made into \(encoding)")
                continue
            }
        }
    }

    @Test func findsTheEndOfPictures() throws {
        let (jpeg, _) = try TestPicture(size: size).jpeg()
        let thumbnail: [UInt8] = [0xFF, 0xE1, 0, 8, 0xFF, 0xD8, 1, 2, 0xFF, 0xD9]
        let filling = (0..<70_000).map { UInt8(truncatingIfNeeded: $0 * 37 + 11) == 0xFF ? 0 : UInt8($0 * 37 % 251) }
        let zeros = [UInt8](repeating: 0, count: 70_000)
        for (bytes, hasEnd) in [
            (jpeg, true), (jpeg + zeros, true), (jpeg + filling, true), (jpeg + [0xFF], true),
            (jpeg.dropLast(2), false), (jpeg.dropLast(2) + zeros, false), (jpeg.dropLast(), false),
            // The end of a preview within it is not its own.
            (jpeg.prefix(2) + thumbnail + jpeg.dropFirst(2).dropLast(2), false),
            (jpeg.prefix(2) + thumbnail + jpeg.dropFirst(2), true),
        ] as [([UInt8], Bool)] {
            let memory = try GuardedMemory(bytes)
            #expect(memory.read(JPEGStream.hasEnd) == hasEnd)
            #expect((memory.read { JPEGStream.completion(of: $0) } == nil) == hasEnd)
            let output = PictureBuffer()
            guard try memory.read({ try JPEGStream.complete($0, into: output) }) else { continue }
            #expect(Array(output.bytes) == bytes + [0xFF, 0xD9])
        }
    }

    @Test func toleratesBytesBetweenPictureAndEnd() throws {
        // As many cameras end their pictures, and with filling behind it.
        let (jpeg, layout) = try TestPicture(size: size).jpeg()
        let request = PictureRequest(encoding: .bgr, dimensions: size)
        #expect(try failure(jpeg.dropLast(2) + [0, 0, 0xFF, 0xD9], layout, request) == nil)
        #expect(try failure(jpeg + [UInt8](repeating: 0, count: 700), layout, request) == nil)
    }

    @Test func toleratesAnotherVersionOfJFIF() throws {
        var (jpeg, layout) = try TestPicture(size: size).jpeg()
        try #require(jpeg[6..<12] == [0x4A, 0x46, 0x49, 0x46, 0, 1])
        jpeg[11] = 3
        #expect(try failure(jpeg, layout, PictureRequest(encoding: .bgr, dimensions: size)) == nil)
    }
}

@Suite struct HuffmanTableTests {
    /// The picture without its `DHT` segments, as UVC cameras send it.
    private func stripped(_ jpeg: [UInt8]) -> [UInt8] {
        var (result, index) = (Array(jpeg[..<2]), 2)
        while jpeg[index + 1] != 0xDA {
            let length = 2 + Int(jpeg[index + 2]) << 8 + Int(jpeg[index + 3])
            if jpeg[index + 1] != 0xC4 { result += jpeg[index..<index + length] }
            index += length
        }
        return result + jpeg[index...]
    }

    @Test(arguments: [Rendition.Encoding.jpeg, .bgr, .gray, .i420])
    func decodesPicturesWithoutTables(_ encoding: Rendition.Encoding) throws {
        let (jpeg, layout) = try TestPicture(size: size).jpeg()
        let bare = stripped(jpeg)
        #expect(bare.count < jpeg.count - 400)
        #expect(try failure(bare, layout, PictureRequest(encoding: encoding, dimensions: size)) == nil)
    }

    @Test func putsTheStandardTablesIn() throws {
        let (jpeg, _) = try TestPicture(size: size).jpeg()
        let bare = stripped(jpeg)
        let output = PictureBuffer()
        let memory = try GuardedMemory(bare)
        #expect(memory.read(JPEGStream.lacksHuffmanTables))
        #expect(try memory.read { try JPEGStream.complete($0, into: output) })
        // The encoder wrote the standard tables itself, in the same order and place.
        #expect(Array(output.bytes) == jpeg)
        let whole = try GuardedMemory(jpeg)
        #expect(!whole.read(JPEGStream.lacksHuffmanTables))
        #expect(try !whole.read { try JPEGStream.complete($0, into: output) })
    }

    @Test func survivesMarkersThatMakeNoSense() throws {
        let (jpeg, _) = try TestPicture(size: size).jpeg()
        for length in 0..<min(700, jpeg.count) {
            let memory = try GuardedMemory(Array(jpeg.prefix(length)))
            #expect(!memory.read(JPEGStream.lacksHuffmanTables))
        }
        for bytes in [
            [0xFF, 0xD8, 0xFF, 0xE0, 0, 0, 0xFF, 0xDA], [0xFF, 0xD8, 0xFF, 0xFF, 0xFF, 0xFF], [0xFF, 0xD8, 0, 0, 0, 0],
        ] as [[UInt8]] {
            let memory = try GuardedMemory(bytes)
            #expect(!memory.read(JPEGStream.lacksHuffmanTables))
        }
    }
}
