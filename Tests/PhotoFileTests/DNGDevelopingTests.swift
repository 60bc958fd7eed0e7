import CameraBusTesting
import CaptureCore
import Glibc
import LinuxIO
import PhotoFile
import Testing

/// Digital negatives as others develop them.
@Suite struct DNGDevelopingTests {
    /// Every sample is where it was, and none has changed.
    @Test(arguments: RawMaterial.formats)
    func samplesAreTheSensors(_ format: PixelFormat) async throws {
        let scratch = try TemporaryDirectory()
        let samples = try #require(format.rawSamples)
        let path = try write(RawMaterial(format).photo(), scratch)
        // As they are, in 16 bits.
        let raw = try DevelopedPicture(try await output("dcraw", ["-c", "-D", "-4", path], scratch))
        try #require(raw.width == 160 && raw.height == 80 && raw.channels == 1)
        var wrong = 0
        for y in 0..<80 {
            for x in 0..<160 where raw.sample(x, y) != RawMaterial.sample(x, y, samples) { wrong += 1 }
        }
        #expect(wrong == 0)
    }

    /// The colours are those of the light, to a hundredth of white.
    @Test(
        arguments: RawMaterial.formats.filter { $0.name != "Y16 -BE" },
        [["dcraw", "-c"], ["dcraw_emu", "-c", "0", "-Z", "-"]])
    func colorsAreTheLights(_ format: PixelFormat, _ developer: [String]) async throws {
        let scratch = try TemporaryDirectory()
        let path = try write(RawMaterial(format).photo(), scratch)
        try await expectColors(path, developer, scratch)
    }

    @Test func linesMayHavePadding() async throws {
        let scratch = try TemporaryDirectory()
        for name in ["RGGB", "BG12", "pgAA", "Y10P"] {
            let format = try #require(PixelFormat(name))
            let path = try write(RawMaterial(format, padding: 7, offset: 5).photo(), scratch)
            try await expectColors(path, ["dcraw", "-c"], scratch)
        }
    }

    /// The tag says how to turn it; the samples are never turned.
    @Test(arguments: [
        (CaptureOrientation.portrait, false), (.landscapeLeft, false), (.portraitUpsideDown, false),
        (.landscapeRight, true), (.portrait, true),
    ])
    func turnedByWhoDevelops(_ orientation: CaptureOrientation, _ isMirrored: Bool) async throws {
        let scratch = try TemporaryDirectory()
        let format = PixelFormat.bayerRGGB8
        let photo = try RawMaterial(format).photo(orientation: orientation, isMirrored: isMirrored)
        #expect(photo.dimensions == Dimensions(width: 160, height: 80))
        let path = try write(photo, scratch)
        let picture = try await developed(path, ["dcraw", "-c"], scratch)
        let turns = orientation.rotationAngle / 90
        try #require((picture.width, picture.height) == (turns % 2 == 0 ? (160, 80) : (80, 160)))
        for (index, color) in RawMaterial.colors.enumerated() {
            var (x, y) = (index % 4 * 40 + 20, index / 4 * 40 + 20)
            var size = (width: 160, height: 80)
            for _ in 0..<turns {
                (x, y) = (size.height - y, x)
                size = (size.height, size.width)
            }
            if isMirrored { x = size.width - x }
            #expect(isNear(picture.mean(around: x, y, radius: 8), color), "\(index)")
        }
    }

    /// The small picture for those who don't develop: the same, as it is to be seen.
    @Test(arguments: [PixelFormat.bayerRGGB8, .bayerRGGB12, .bayerRGGB10Packed, .grey16])
    func previewShowsIt(_ format: PixelFormat) async throws {
        let scratch = try TemporaryDirectory()
        let photo = try RawMaterial(format).photo(thumbnail: PhotoThumbnail(maximumSide: 80, quality: 95))
        #expect(photo.thumbnail == Dimensions(width: 80, height: 40))
        let path = try write(photo, scratch)
        let jpeg = try await output("exiftool", ["-b", "-PreviewImage", path], scratch)
        try #require(jpeg.starts(with: [0xFF, 0xD8]))
        let file = "\(scratch.path)/preview.jpg"
        try File.replace(file, with: jpeg, mode: 0o600)
        let kind = format == .grey16 ? "pgm" : "ppm"
        let preview = try DevelopedPicture(
            try await output(
                "ffmpeg", ["-v", "error", "-i", file, "-f", "image2pipe", "-c:v", kind, "-"], scratch))
        try #require(preview.width == 80 && preview.height == 40)
        for (index, color) in RawMaterial.colors.enumerated() {
            let shown = (format == .grey16 ? [color.reduce(0, +) / 3] : color).map { light in
                light <= 0.0031308 ? 12.92 * light : 1.055 * pow(light, 1 / 2.4) - 0.055
            }
            let mean = preview.mean(around: index % 4 * 20 + 10, index / 4 * 20 + 10, radius: 4)
            #expect(isNear(mean, shown, by: 0.03), "\(index): \(mean) \(shown)")
        }
    }

    private func write(_ photo: EncodedPhoto, _ scratch: TemporaryDirectory) throws -> String {
        let path = "\(scratch.path)/photo.dng"
        try File.replace(path, with: photo.bytes, mode: 0o600)
        return path
    }

    /// Linear, with the camera's own white and the screen's colours, each pixel of those beside it.
    private func developed(
        _ path: String, _ developer: [String], _ scratch: TemporaryDirectory
    ) async throws -> DevelopedPicture {
        try DevelopedPicture(
            try await output(
                developer[0], developer.dropFirst() + ["-4", "-w", "-o", "1", "-q", "0", path], scratch))
    }

    private func expectColors(_ path: String, _ developer: [String], _ scratch: TemporaryDirectory) async throws {
        let picture = try await developed(path, developer, scratch)
        try #require(picture.width == 160 && picture.height == 80)
        for (index, color) in RawMaterial.colors.enumerated() {
            let mean = picture.mean(around: index % 4 * 40 + 20, index / 4 * 40 + 20, radius: 10)
            let wanted = picture.channels == 1 ? [color.reduce(0, +) / 3] : color
            #expect(isNear(mean, wanted), "\(developer[0]), field \(index): \(mean) instead of \(wanted)")
        }
    }

    private func isNear(_ color: [Double], _ wanted: [Double], by tolerance: Double = 0.01) -> Bool {
        color.count == wanted.count && zip(color, wanted).allSatisfy { abs($0 - $1) <= tolerance }
    }
}
