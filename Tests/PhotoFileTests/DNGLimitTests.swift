import BusProtocol
import CaptureCore
import PhotoFile
import Testing

/// Frames of which no digital negative can be made, and those of which one just can.
@Suite struct DNGLimitTests {
    @Test func otherFormatsHaveNone() {
        for format in [PixelFormat.yuyv, .nv12, .bgr24, .motionJPEG, .h264] {
            #expect(PhotoEncoder.available(for: format).raw == [])
            let layout = FrameLayout.packed(format, Dimensions(width: 16, height: 16))
            let error = #expect(throws: BusError.self) {
                _ = try PhotoEncoder(try #require(layout), PhotoMaking(fileType: .dng))
            }
            #expect(error?.reason == .photoFormatUnavailable)
        }
        for format in RawMaterial.formats { #expect(PhotoEncoder.available(for: format).raw == [format]) }
    }

    /// A frame that ends too early is told so, to the byte.
    @Test(arguments: ["RGGB", "RG10", "pRAA", "pRCC", "Y14P"])
    func endsTooEarly(_ name: String) throws {
        let material = try RawMaterial(try #require(PixelFormat(name)), padding: 3, offset: 2)
        let encoder = try PhotoEncoder(material.layout, PhotoMaking(fileType: .dng))
        // The last line needs no padding.
        let needed = material.bytes.count - 3
        func photo(_ count: Int) throws -> EncodedPhoto {
            try material.bytes.withUnsafeBytes { bytes in
                let some = UnsafeRawBufferPointer(rebasing: bytes[..<count])
                return try encoder.encode(PhotoPicture(material.layout, some), RawMaterial.facts)
            }
        }
        #expect(try photo(needed).dimensions == material.layout.dimensions)
        for count in [needed - 1, 1, 0] {
            #expect(throws: PhotoFileError.truncated(needed: needed, delivered: count)) { try photo(count) }
        }
    }

    @Test func layoutsThatCanNotBe() throws {
        let memory = [UInt8](repeating: 0, count: 4096)
        func layout(_ width: Int, _ height: Int, _ planes: [PlaneLayout]) -> FrameLayout {
            FrameLayout(
                pixelFormat: .bayerRGGB12, dimensions: Dimensions(width: width, height: height), planes: planes)
        }
        let plane = PlaneLayout(offset: 0, stride: 64, bytes: 2048)
        var wrong = [layout(32, 32, [])]
        for (width, height) in [(0, 32), (32, 0), (-1, 32), (32, .min), (.max, 1), (1, .max), (.max, .max), (33, 32)] {
            wrong.append(layout(width, height, [plane]))
        }
        for (offset, stride) in [(-1, 64), (.max, 64), (0, 63), (0, -64), (0, Int.max), (Int.min, .min)] {
            wrong.append(layout(32, 32, [PlaneLayout(offset: offset, stride: stride, bytes: 2048)]))
        }
        for layout in wrong {
            #expect(throws: (any Error).self, "\(layout)") {
                let encoder = try PhotoEncoder(layout, PhotoMaking(fileType: .dng))
                try memory.withUnsafeBytes { _ = try encoder.encode(PhotoPicture(layout, $0), RawMaterial.facts) }
            }
        }
    }

    /// Sizes down to a single pixel, and those that are no whole groups of pixels.
    @Test(arguments: ["RGGB", "pGAA", "pBCC", "Y10P", "GREY", "pREE"])
    func smallAndOddSizes(_ name: String) throws {
        let format = try #require(PixelFormat(name))
        for (width, height) in [(1, 1), (1, 7), (2, 2), (3, 5), (17, 3), (33, 31)] {
            let layout = try #require(FrameLayout.packed(format, Dimensions(width: width, height: height)))
            let memory = [UInt8](repeating: 0x55, count: layout.totalBytes)
            for zoom in [DigitalZoom.whole, 3333, 100_000, .max, 0, -1] {
                let encoder = try PhotoEncoder(layout, PhotoMaking(fileType: .dng, thumbnail: PhotoThumbnail()))
                let photo = try memory.withUnsafeBytes {
                    try encoder.encode(PhotoPicture(layout, $0, zoom: zoom), RawMaterial.facts)
                }
                #expect(photo.dimensions == layout.dimensions)
                #expect(photo.bytes.starts(with: [0x49, 0x49, 42, 0]))
            }
        }
    }
}
