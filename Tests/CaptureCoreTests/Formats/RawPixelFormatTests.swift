import CaptureCore
import Testing

@testable import BusProtocol

@Suite struct RawPixelFormatTests {
    /// As the kernel's documentation of the formats has them: name, samples, bytes of a line of 12 pixels.
    static let formats: [(String, RawSamples.Pattern, Int, Int)] = [
        ("BA81", .bggr, 8, 12), ("GBRG", .gbrg, 8, 12), ("GRBG", .grbg, 8, 12), ("RGGB", .rggb, 8, 12),
        ("BG10", .bggr, 10, 24), ("GB10", .gbrg, 10, 24), ("BA10", .grbg, 10, 24), ("RG10", .rggb, 10, 24),
        ("BG12", .bggr, 12, 24), ("GB12", .gbrg, 12, 24), ("BA12", .grbg, 12, 24), ("RG12", .rggb, 12, 24),
        ("BG14", .bggr, 14, 24), ("GB14", .gbrg, 14, 24), ("GR14", .grbg, 14, 24), ("RG14", .rggb, 14, 24),
        ("BYR2", .bggr, 16, 24), ("GB16", .gbrg, 16, 24), ("GR16", .grbg, 16, 24), ("RG16", .rggb, 16, 24),
        ("pBAA", .bggr, 10, 15), ("pGAA", .gbrg, 10, 15), ("pgAA", .grbg, 10, 15), ("pRAA", .rggb, 10, 15),
        ("pBCC", .bggr, 12, 18), ("pGCC", .gbrg, 12, 18), ("pgCC", .grbg, 12, 18), ("pRCC", .rggb, 12, 18),
        ("pBEE", .bggr, 14, 21), ("pGEE", .gbrg, 14, 21), ("pgEE", .grbg, 14, 21), ("pREE", .rggb, 14, 21),
        ("GREY", .grey, 8, 12), ("Y10", .grey, 10, 24), ("Y12", .grey, 12, 24), ("Y14", .grey, 14, 24),
        ("Y16", .grey, 16, 24), ("Y16 -BE", .grey, 16, 24), ("Y10P", .grey, 10, 15), ("Y12P", .grey, 12, 18),
        ("Y14P", .grey, 14, 21), ("Z16", .grey, 16, 24),
    ]

    @Test(arguments: formats)
    func samplesAreTheKernels(_ name: String, _ pattern: RawSamples.Pattern, _ bits: Int, _ bytes: Int) throws {
        let format = try #require(PixelFormat(name))
        let samples = try #require(format.rawSamples)
        #expect((samples.pattern, samples.bits) == (pattern, bits))
        #expect(samples.largest == 1 << bits - 1)
        let layout = try #require(FrameLayout.packed(format, Dimensions(width: 12, height: 3)))
        #expect(layout.planes == [PlaneLayout(offset: 0, stride: bytes, bytes: 3 * bytes)])
    }

    @Test func groupsThatAreNotFullTakeTheirRoom() throws {
        for (name, bytes) in [("pRAA", 5), ("pRCC", 3), ("pREE", 7), ("RG10", 2), ("RGGB", 1)] {
            #expect(try #require(PixelFormat(name)?.rawSamples).lineBytes(width: 1) == bytes)
        }
        #expect(try #require(PixelFormat("pRAA")?.rawSamples).lineBytes(width: 5) == 10)
    }

    @Test("a client can send the formats that the protocol lists, and no other") func clientsFormats() {
        #expect(MethodTable.sourceFormats.compactMap { PixelFormat($0) }.count == MethodTable.sourceFormats.count)
        #expect(Set(MethodTable.sourceFormats) == Set(ClientSource.pixelFormats.map(\.name)))
        for format in ClientSource.pixelFormats {
            #expect(FrameLayout.packed(format, Dimensions(width: 6, height: 4)) != nil, "\(format)")
        }
    }

    @Test func othersAreNotRaw() {
        for format in [PixelFormat.yuyv, .nv12, .bgr24, .rgb24, .motionJPEG, .jpeg, .h264] {
            #expect(format.rawSamples == nil)
        }
        // As compressed by the sensor.
        #expect(PixelFormat("BD10")?.rawSamples == nil)
    }
}
