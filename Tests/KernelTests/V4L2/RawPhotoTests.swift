import CameraBusTesting
import CaptureCore
import CaptureSources
import Foundation
import LinuxIO
import PhotoFile
import Testing

extension KernelTests {
    /// Digital negatives of vivid's raw formats, developed by others.
    @Suite(.enabled(if: access("/usr/bin/dcraw", X_OK) == 0, "missing package: dcraw (deploy/install-dependencies)"))
    struct RawPhotos {
        /// Each pattern, and each number of bits.
        static let formats = [
            "BA81", "GBRG", "GRBG", "RGGB", "BG10", "GB12", "BA10", "RG16", "GREY", "Y10", "Y12", "Y16",
        ]

        /// The colours are those of the same picture in plain red, green and blue; grey is that of the plain grey
        /// picture.
        @Test(arguments: formats)
        func colorsAreThoseOfThePlainPicture(_ pixelFormat: String) throws {
            let test = try TestCamera()
            let isGrey = pixelFormat == "GREY" || pixelFormat.hasPrefix("Y")
            let plain = try frame(test, isGrey ? "GREY" : "RGB3")
            let (raw, layout) = try frame(test, pixelFormat)
            let path = "/tmp/camerabus-\(pixelFormat)-\(getpid())"
            defer { for end in [".dng", ".ppm", ".pgm"] { unlink(path + end) } }

            let encoder = try PhotoEncoder(layout, PhotoMaking(fileType: .dng))
            let photo = try raw.withUnsafeBytes {
                try encoder.encode(
                    PhotoPicture(layout, $0),
                    PhotoFacts(uniqueID: String(repeating: "0", count: 32), realtime: 0, utcOffset: 0))
            }
            try File.replace(path + ".dng", with: photo.bytes, mode: 0o600)
            // Linear, with the camera's own white and the screen's colours, a pixel for two by two.
            let result = try run("/usr/bin/dcraw", ["-4", "-w", "-o", "1", "-h", path + ".dng"])
            try #require(result.status == 0, "\(result.output)")
            let developed = try DevelopedPicture(
                File.read(path + (isGrey ? ".pgm" : ".ppm"), limit: 64 << 20))
            let scale = layout.dimensions.width / developed.width
            // In the middle of each of the eight bars, from white to black.
            for bar in 0..<8 {
                let x = (2 * bar + 1) * layout.dimensions.width / 16
                let y = layout.dimensions.height / 2
                let channels = isGrey ? 1 : 3
                let index = y * plain.layout.planes[0].stride + x * channels
                let wanted = plain.bytes[index..<index + channels].map { Double($0) / 255 }
                let mean = developed.mean(around: x / scale, y / scale, radius: 3)
                #expect(
                    mean.count == wanted.count && zip(mean, wanted).allSatisfy { abs($0 - $1) < 0.02 },
                    "\(pixelFormat), bar \(bar): \(mean) instead of \(wanted)")
            }
        }

        private func frame(_ test: TestCamera, _ pixelFormat: String) throws -> (bytes: [UInt8], layout: FrameLayout) {
            try test.use(pixelFormat, 320, 180)
            let stream = try test.camera.startStreaming()
            defer { try? test.camera.stopStreaming() }
            return (bytes(try nextFrame(stream)), stream.layout)
        }
    }
}
