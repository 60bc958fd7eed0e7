import CaptureCore
import CaptureSources
import Foundation
import Testing

extension KernelTests {
    /// The format and rate that are set, and what the driver makes of others.
    @Suite struct Formats {
        @Test(arguments: KernelRing.identities)
        func currentOnesAreV4L2ctls(_ identity: DeviceIdentity) throws {
            let camera = V4L2Camera(identity)
            defer { camera.close() }
            _ = try camera.open()
            let text = try v4l2ctl(["-d", try #require(identity.node), "--get-fmt-video", "--get-parm"])
            #expect(try camera.activeFormat() == selection(text))
            // v4l2-ctl 1.22 asks multi-planar nodes for the rate of a single-planar queue, which they don't have.
            guard KernelRing.topology != .multi else { return }
            let rate = try #require(text.firstMatch(of: /Frames per second: [0-9.]+ \((\d+)\/(\d+)\)/))
            let duration = FrameDuration(try #require(Int(rate.output.2)), try #require(Int(rate.output.1)))
            #expect(try camera.frameDuration() == duration)
        }

        @Test func nearestIsTheDrivers() throws {
            let test = try TestCamera()
            for (width, height) in [(1, 1), (321, 181), (700, 500), (1279, 721), (Int.max, Int.max), (-3, 0)] {
                let before = try test.camera.activeFormat()
                let ours = try test.camera.tryFormat(try test.format("NV12", width, height))
                #expect(try test.camera.activeFormat() == before)
                let size = "width=\(UInt32(clamping: width)),height=\(UInt32(clamping: height))"
                let theirs = try selection(test.v4l2ctl("--try-fmt-video", "\(size),pixelformat=NV12"))
                #expect(ours == theirs, "\(size)")
                #expect(try test.camera.setFormat(try test.format("NV12", width, height)) == ours)
                #expect(try test.camera.activeFormat() == ours)
            }
        }

        /// A pixel format that the device doesn't have: it answers with one that it has.
        @Test func unknownPixelFormatBecomesAnother() throws {
            let test = try TestCamera()
            let answer = try test.camera.tryFormat(try test.format("MJPG", 640, 480))
            #expect(test.description.formats.contains { $0.pixelFormat == answer.pixelFormat })
        }

        @Test func everyRateOfARowCanBeSet() throws {
            let test = try TestCamera()
            _ = try test.camera.setFormat(try test.format("YUYV", 640, 480))
            let row = try #require(
                test.description.formats.first { $0.dimensions == Dimensions(width: 640, height: 480) })
            #expect(row.frameRates.count > 5)
            for rate in row.frameRates {
                #expect(try test.camera.setFrameDuration(rate.minFrameDuration) == rate.minFrameDuration)
                #expect(try test.camera.frameDuration() == rate.minFrameDuration)
            }
        }

        private func selection(_ text: String) throws -> FormatSelection {
            let size = try #require(text.firstMatch(of: /Width\/Height +: (\d+)\/(\d+)/))
            let code = try #require(text.firstMatch(of: /Pixel Format +: '(.*?)'/))
            return FormatSelection(
                pixelFormat: try #require(PixelFormat(String(code.output.1))),
                dimensions: Dimensions(
                    width: try #require(Int(size.output.1)), height: try #require(Int(size.output.2))))
        }
    }
}
