import BusProtocol
import CaptureCore
import Imaging
import Testing
import TurboJPEG

private let colorFormats = [
    "YUYV", "YVYU", "UYVY", "VYUY", "NV12", "NV21", "NV16", "NV61", "NV24", "NV42", "YU12", "YV12", "422P", "411P",
    "YUV9", "YM24", "BGR3", "RGB3", "XR24", "AR24", "BX24", "XB24", "RX24", "RGBP", "RGBR", "XR15", "VUYX", "AYUV",
    "BA81", "GBRG", "GRBG", "RGGB", "RG10", "BG12", "RG16", "MJPG",
]
private let grayFormats = ["GREY", "Y10", "Y12", "Y16", "Y16 -BE"]
private let encodings: [Rendition.Encoding] = [.jpeg, .bgr, .rgb, .gray, .yuyv, .nv12, .i420]

/// Converts a test picture whose memory ends at a forbidden page, and compares the middle of each patch.
private func roundTrip(_ format: String, _ size: Dimensions, _ request: PictureRequest) throws {
    let picture = TestPicture(size: size)
    let payload = try picture.payload(format)
    let (bytes, layout) = try #require(payload)
    let memory = try GuardedMemory(bytes)
    let converter = try PictureConverter(from: layout, to: request)
    let output = PictureBuffer()
    // Twice: the second one uses what the first one made.
    for _ in 0..<2 {
        let count = try memory.read { try converter.convert([$0], bytesUsed: [bytes.count], into: output) }
        #expect(count == output.bytes.count)
    }
    let reader = try PayloadReader(output.bytes, converter.outputLayout)
    #expect(reader.size == request.dimensions)
    let isGray = request.encoding == .gray || grayFormats.contains(format)
    // Few bits a colour, chroma of many pixels, or JPEG's rounding in small patches.
    let isCoarse =
        ["RGBP", "RGBR", "XR15", "YUV9", "411P", "MJPG"].contains(format) || request.encoding == .jpeg
    for (x, y, color) in TestPicture.centers(request.dimensions) {
        let wanted = isGray ? Color(color.y, color.y, color.y) : color
        let got = reader.color(x, y)
        #expect(
            got.isNear(wanted, isCoarse ? 13 : 5),
            "\(format) \(size) to \(request.encoding) \(request.dimensions) at \(x),\(y): \(got) for \(wanted)")
    }
}

@Suite struct ConversionTests {
    @Test(arguments: colorFormats + grayFormats, encodings)
    func keepsColoursAtTheSameSize(_ format: String, _ encoding: Rendition.Encoding) throws {
        let size = Dimensions(width: 64, height: 48)
        try roundTrip(format, size, PictureRequest(encoding: encoding, dimensions: size, quality: 95))
    }

    @Test(arguments: colorFormats + grayFormats, encodings)
    func keepsColoursWhenScaled(_ format: String, _ encoding: Rendition.Encoding) throws {
        for size in [
            Dimensions(width: 48, height: 36), Dimensions(width: 32, height: 24), Dimensions(width: 40, height: 18),
        ] {
            try roundTrip(
                format, Dimensions(width: 96, height: 72),
                PictureRequest(encoding: encoding, dimensions: size, quality: 95))
        }
    }

    @Test(arguments: colorFormats + grayFormats)
    func takesOddSizes(_ format: String) throws {
        let odd = Dimensions(width: 67, height: 51)
        for encoding in [Rendition.Encoding.jpeg, .bgr, .rgb, .gray] {
            try roundTrip(format, odd, PictureRequest(encoding: encoding, dimensions: odd, quality: 95))
            try roundTrip(
                format, odd,
                PictureRequest(encoding: encoding, dimensions: Dimensions(width: 41, height: 33), quality: 95))
        }
        for encoding in [Rendition.Encoding.yuyv, .nv12, .i420] {
            try roundTrip(
                format, odd,
                PictureRequest(encoding: encoding, dimensions: Dimensions(width: 66, height: 50), quality: 95))
        }
    }

    @Test(arguments: ["YUYV", "NV12", "NM12", "YU12", "422P", "BGR3", "XR24", "RGBP", "RGGB", "GREY", "Y16", "MJPG"])
    func readsNoByteTooManyAtAnyWidth(_ format: String) throws {
        for width in [40, 42, 46, 62, 66, 110] {
            let size = Dimensions(width: width, height: 32)
            for encoding in encodings {
                try roundTrip(format, size, PictureRequest(encoding: encoding, dimensions: size, quality: 95))
                let smaller = Dimensions(width: width * 2 / 3 & ~1, height: 20)
                try roundTrip(format, size, PictureRequest(encoding: encoding, dimensions: smaller, quality: 95))
            }
        }
    }

    @Test(arguments: [ChromaSubsampling.s444, .s422, .s420, .gray, .s440, .s411], encodings)
    func takesJPEGOfAnySubsampling(_ subsampling: ChromaSubsampling, _ encoding: Rendition.Encoding) throws {
        let picture = TestPicture(size: Dimensions(width: 128, height: 96))
        let (bytes, layout) = try picture.jpeg(subsampling)
        for size in [
            picture.size, Dimensions(width: 64, height: 48), Dimensions(width: 50, height: 38),
            Dimensions(width: 16, height: 12),
        ] {
            let converter = try PictureConverter(
                from: layout, to: PictureRequest(encoding: encoding, dimensions: size, quality: 95))
            let output = PictureBuffer()
            let memory = try GuardedMemory(bytes)
            _ = try memory.read { try converter.convert([$0], bytesUsed: [bytes.count], into: output) }
            let reader = try PayloadReader(output.bytes, converter.outputLayout)
            for (x, y, color) in TestPicture.centers(size) {
                let isGray = subsampling == .gray || encoding == .gray
                let wanted = isGray ? Color(color.y, color.y, color.y) : color
                // Chroma of 16x12 pixels reaches over the patches' borders.
                guard size.width > 16 || isGray else { continue }
                let got = reader.color(x, y)
                #expect(
                    got.isNear(wanted, 6), "\(subsampling) to \(encoding) \(size) at \(x),\(y): \(got) for \(wanted)")
            }
        }
    }

    @Test(arguments: encodings)
    func keepsBlackWhiteAndMiddleGrey(_ encoding: Rendition.Encoding) throws {
        // Each value of limited-range luma must come out as the same brightness, whichever way it takes.
        let size = Dimensions(width: 32, height: 16)
        for format in ["YUYV", "NV12", "YU12"] {
            for luma in [16, 17, 60, 125, 126, 180, 234, 235] as [UInt8] {
                let pixelFormat = try #require(PixelFormat(format))
                let layout = try #require(FrameLayout.packed(pixelFormat, size))
                var bytes = [UInt8](repeating: 128, count: layout.totalBytes)
                if format == "YUYV" {
                    for index in stride(from: 0, to: bytes.count, by: 2) { bytes[index] = luma }
                } else {
                    for index in 0..<size.area { bytes[index] = luma }
                }
                let converter = try PictureConverter(
                    from: layout, to: PictureRequest(encoding: encoding, dimensions: size, quality: 100))
                let output = PictureBuffer()
                let memory = try GuardedMemory(bytes)
                _ = try memory.read { try converter.convert([$0], bytesUsed: [bytes.count], into: output) }
                let exact = Color(limitedY: Double(luma), u: 128, v: 128)
                let got = try PayloadReader(output.bytes, converter.outputLayout).color(9, 9)
                #expect(got.isNear(exact, 2), "\(format) \(luma) to \(encoding): \(got) for \(exact)")
            }
        }
    }
}
