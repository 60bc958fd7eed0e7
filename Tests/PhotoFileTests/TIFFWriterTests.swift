import TIFF
import Testing

@Suite struct TIFFWriterTests {
    private let size: [TIFFField] = [
        TIFFField(.imageWidth, .integer(3)), TIFFField(.imageLength, .integer(2)),
        TIFFField(.bitsPerSample, .integer(8)), TIFFField(.samplesPerPixel, .integer(1)),
        TIFFField(.photometricInterpretation, .integer(1)), TIFFField(.rowsPerStrip, .integer(2)),
        TIFFField(.planarConfiguration, .integer(1)),
    ]

    @Test func writesAPicture() throws {
        let writer = try TIFFWriter()
        try writer.set(size)
        try writer.write([1, 2, 3, 4, 5, 6])
        try writer.writeDirectory()
        let bytes = writer.finish()
        // Least byte first, and the picture behind the eight bytes of the header.
        #expect(bytes.starts(with: [0x49, 0x49, 42, 0]))
        #expect(Array(bytes[8..<14]) == [1, 2, 3, 4, 5, 6])
        let directory = Int(bytes[4]) | Int(bytes[5]) << 8
        #expect(bytes[directory] == 10, "the seven that were set, the compression, and where the strip is and ends")
        #expect(writer.finish() == [])
    }

    @Test func refusesWhatAFieldCanNotHold() throws {
        let writer = try TIFFWriter()
        for field in [
            TIFFField(TIFFTag(65_000), .integer(1)), TIFFField(.exposureTime, .number(1)),
            TIFFField(.imageWidth, .text("3")), TIFFField(.imageWidth, .number(3)),
            TIFFField(.imageWidth, .integers([3, 3])), TIFFField(.imageWidth, .integers([])),
            TIFFField(.imageWidth, .integer(-1)), TIFFField(.imageWidth, .integer(1 << 32)),
            TIFFField(.bitsPerSample, .integer(65_536)), TIFFField(.make, .integer(1)),
            TIFFField(.make, .text("A\0B")), TIFFField(.dateTime, .text("yesterday")),
            TIFFField(.cfaRepeatPatternDim, .integers([2])), TIFFField(.cfaPlaneColor, .integers([256])),
            TIFFField(.blackLevel, .numbers([.nan])), TIFFField(.colorMatrix1, .numbers([])),
            TIFFField(.orientation, .integer(9)),
        ] {
            #expect(throws: TIFFError.self, "\(field)") { try writer.set([field]) }
        }
        // It goes on after that.
        try writer.set(size)
    }

    @Test func refusesAPictureBeforeItsSize() throws {
        let writer = try TIFFWriter()
        let error = #expect(throws: TIFFError.self) { try writer.write([1]) }
        #expect(error?.message.isEmpty == false)
        #expect(throws: TIFFError.self) { try writer.write([]) }
    }
}
