import CaptureCore
import Testing

@testable import PhotoFile

@Suite struct JPEGPartsTests {
    private func parts<Result>(_ bytes: [UInt8], _ body: (JPEGParts) throws -> Result) throws -> Result {
        try bytes.withUnsafeBytes { try body(try JPEGParts($0)) }
    }

    private func segment(_ marker: UInt8, _ contents: [UInt8]) -> [UInt8] {
        [0xFF, marker, UInt8((contents.count + 2) >> 8), UInt8((contents.count + 2) & 255)] + contents
    }

    @Test func `segments, the scan and the end are found`() throws {
        let jpeg: [UInt8] =
            [0xFF, 0xD8] + segment(0xE0, Array("JFIF\0".utf8)) + [0xFF, 0xFF, 0xFF]
            + segment(0xFE, [0xFF, 0xD9]).dropFirst()
            + segment(0xE2, Array("ICC_PROFILE\0x".utf8)) + segment(0xE1, Array("Exif\0\0y".utf8))
        // Two scans with tables between them; in the data FF00, a restart and a filled marker.
        let scan: [UInt8] =
            segment(0xDA, [1, 2]) + [7, 0xFF, 0x00, 8, 0xFF, 0xD3, 9] + segment(0xC4, [0xFF, 0xD9]) + segment(0xDA, [3])
            + [5, 0xFF, 0xFF, 0xD9]
        try parts(jpeg + scan + [0, 0, 0xFF, 0xD9, 1]) { parts in
            #expect(parts.segments.map(\.marker) == [0xE0, 0xFE, 0xE2, 0xE1])
            #expect(parts.scan == jpeg.count && parts.end == jpeg.count + scan.count)
            #expect(Array(parts.segments[1].bytes) == segment(0xFE, [0xFF, 0xD9]))
            #expect(parts.segments[2].isProfile && !parts.segments[2].isEXIF && parts.segments[3].isEXIF)
            #expect(parts.segments[0].isApplication && parts.segments[1].isComment)
        }
        for length in 0..<(jpeg.count + scan.count) {
            #expect(throws: PhotoFileError.self) { try parts(Array((jpeg + scan)[..<length])) { _ in } }
        }
    }

    @Test func `what makes no sense is refused`() {
        let start: [UInt8] = [0xFF, 0xD8]
        for broken: [UInt8] in [
            [], [0xFF, 0xD8], [0, 0, 0, 0, 0, 0], start + [0xFF, 0xD9, 0, 0], start + start + [0, 0],
            start + [0xFF, 0xE0, 0, 1, 0], start + segment(0xDA, [1]) + [1, 2] + start + [0xFF, 0xD9],
            start + [1, 2, 3, 4, 5],
        ] {
            let error = #expect(throws: PhotoFileError.self) { try parts(broken) { _ in } }
            #expect(error?.isOfFrame == true)
        }
    }
}
