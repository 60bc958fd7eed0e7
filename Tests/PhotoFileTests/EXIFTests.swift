import EXIF
import Testing

/// The wrapper over libexif.
@Suite struct EXIFTests {
    private func read(_ bytes: [UInt8]) throws -> EXIFData {
        try bytes.withUnsafeBytes { try EXIFData(reading: $0) }
    }

    private func sample() throws -> EXIFData {
        let data = try EXIFData()
        try data.set(.make, .text("Müller & Söhne"))
        try data.set(.orientation, .shorts([6]))
        try data.set(.exposureTime, .rationals([EXIFRational(1, 8000)]))
        try data.set(.exposureBiasValue, .signedRationals([EXIFSignedRational(-2, 3)]))
        try data.set(.pixelXDimension, .longs([70000]))
        try data.set(.exifVersion, .undefined(Array("0232".utf8)))
        try data.set(EXIFTag(.gps, number: 0), .bytes([2, 3, 0, 0]))
        return data
    }

    @Test func `what is set is read back, also from what was written`() throws {
        let data = try sample()
        let written = try read(try data.serialized())
        for data in [data, written] {
            #expect(data.value(.make) == .text("Müller & Söhne"))
            #expect(data.value(.orientation) == .shorts([6]))
            #expect(data.value(.exposureTime) == .rationals([EXIFRational(1, 8000)]))
            #expect(data.value(.exposureBiasValue) == .signedRationals([EXIFSignedRational(-2, 3)]))
            #expect(data.value(.pixelXDimension) == .longs([70000]))
            #expect(data.value(.exifVersion) == .undefined(Array("0232".utf8)))
            #expect(data.value(EXIFTag(.gps, number: 0)) == .bytes([2, 3, 0, 0]))
            #expect(data.value(.model) == nil && data.thumbnail == nil)
            // Nothing is there that nobody put there.
            #expect(data.tags.count == 7)
        }
    }

    @Test func `a field is replaced and removed`() throws {
        let data = try sample()
        try data.set(.make, .text("Other\0 and more"))
        #expect(data.value(.make) == .text("Other"))
        try data.set(.orientation, .longs([1, 2, 3]))
        #expect(data.value(.orientation) == .longs([1, 2, 3]))
        data.remove(.make)
        data.remove(.model)
        #expect(data.value(.make) == nil && data.tags.count == 6)
        #expect(throws: EXIFError.self) { try data.set(.make, .text(String(repeating: "x", count: 70000))) }
    }

    @Test func `numbers with the highest byte first are read`() throws {
        // One field, ISOSpeedRatings 1600, in the Exif IFD; the 0th has the pointer to it and Orientation 8.
        let bytes: [UInt8] =
            EXIFData.header + [0x4D, 0x4D, 0, 0x2A, 0, 0, 0, 8] + [0, 2]
            + [0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, 8, 0, 0] + [0x87, 0x69, 0, 4, 0, 0, 0, 1, 0, 0, 0, 38] + [0, 0, 0, 0]
            + [0, 1] + [0x88, 0x27, 0, 3, 0, 0, 0, 1, 0x06, 0x40, 0, 0] + [0, 0, 0, 0]
        let data = try read(bytes)
        #expect(data.value(.orientation) == .shorts([8]) && data.value(.isoSpeedRatings) == .shorts([1600]))
        #expect(try read(try data.serialized()).value(.isoSpeedRatings) == .shorts([1600]))
    }

    @Test func `a thumbnail goes with it`() throws {
        let data = try sample()
        let picture: [UInt8] = [0xFF, 0xD8, 1, 2, 3, 0xFF, 0xD9]
        for bytes in [[9, 9], picture] { try data.setThumbnail(bytes) }
        try data.set(.thumbnailCompression, .shorts([6]))
        let written = try read(try data.serialized())
        #expect(written.thumbnail == picture && written.value(.thumbnailCompression) == .shorts([6]))
    }

    @Test func `fields of another are taken over where they are missing and wanted`() throws {
        let data = try EXIFData()
        try data.set(.make, .text("Ours"))
        try data.adopt(from: try sample()) { tag, bytes in tag != .orientation && bytes > 1 }
        #expect(data.value(.make) == .text("Ours") && data.value(.orientation) == nil)
        #expect(data.value(.exposureTime) == .rationals([EXIFRational(1, 8000)]))
        #expect(data.tags.count == 6)
    }

    @Test func `what is broken gives less, and harms nothing`() throws {
        let data = try sample()
        try data.setThumbnail([UInt8](repeating: 7, count: 300))
        let whole = try data.serialized()
        for length in 0..<whole.count {
            #expect(try read(Array(whole[..<length])).tags.count <= 7)
        }
        var noise = Noise()
        for _ in 0..<2000 {
            var broken = whole
            for _ in 0..<3 {
                broken[6 + Int(noise.next()) % (whole.count - 6)] = UInt8(truncatingIfNeeded: noise.next())
            }
            let data = try read(broken)
            for tag in data.tags { _ = data.value(tag) }
            let copy = try EXIFData()
            try copy.adopt(from: data) { _, _ in true }
            _ = try copy.serialized()
        }
        #expect(try read([]).tags.isEmpty && read(noise.bytes(5000)).tags.isEmpty)
    }
}
