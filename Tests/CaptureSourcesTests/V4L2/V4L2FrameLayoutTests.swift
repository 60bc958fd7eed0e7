import CaptureCore
import CaptureSources
import Testing
import Video4Linux

@Suite struct V4L2FrameLayoutTests {
    private func layout(
        _ code: String, _ width: UInt32, _ height: UInt32, _ planes: [(UInt32, UInt32)], regions: [Int]? = nil
    ) -> [PlaneLayout] {
        let format = V4L2Format(
            type: .capture, width: width, height: height, pixelFormat: fourCC(code),
            planes: planes.map { .init(bytesPerLine: $0.0, sizeImage: $0.1) })
        return FrameLayout(format, regions: regions ?? planes.map { Int($0.1) }).planes
    }

    private func planes(_ values: (Int, Int, Int)...) -> [PlaneLayout] {
        values.map { PlaneLayout(offset: $0.0, stride: $0.1, bytes: $0.2) }
    }

    @Test func packed() {
        #expect(layout("YUYV", 640, 480, [(1280, 614_400)]) == planes((0, 1280, 614_400)))
        // Padded lines, and room that isn't picture.
        #expect(layout("YUYV", 640, 480, [(1536, 800_000)], regions: [802_816]) == planes((0, 1536, 737_280)))
    }

    @Test func contiguous() {
        #expect(layout("NV12", 640, 480, [(704, 506_880)]) == planes((0, 704, 337_920), (337_920, 704, 168_960)))
        #expect(layout("NV16", 8, 4, [(8, 64)]) == planes((0, 8, 32), (32, 8, 32)))
        #expect(layout("NV24", 8, 4, [(8, 96)]) == planes((0, 8, 32), (32, 16, 64)))
        #expect(layout("YU12", 8, 4, [(8, 48)]) == planes((0, 8, 32), (32, 4, 8), (40, 4, 8)))
        #expect(layout("422P", 8, 4, [(8, 64)]) == planes((0, 8, 32), (32, 4, 16), (48, 4, 16)))
    }

    @Test func oddHeight() {
        #expect(layout("NV12", 8, 5, [(8, 64)]) == planes((0, 8, 40), (40, 8, 24)))
        #expect(layout("NV12", 8, 5, [(8, 56)]) == planes((0, 8, 40), (40, 8, 16)))
    }

    /// Where the planes can't be as the format says, they aren't told.
    @Test func thatDoesNotFit() {
        #expect(layout("NV12", 8, 4, [(8, 40)]) == planes((0, 8, 40)))
        #expect(layout("NV12", 8, 4, [(0, 48)]) == planes((0, 0, 48)))
        #expect(layout("YUYV", 8, 4, [(16, 40)]) == planes((0, 16, 40)))
    }

    @Test func severalRegions() {
        #expect(
            layout("NM12", 8, 4, [(8, 32), (8, 16)], regions: [4096, 4096]) == planes((0, 8, 32), (4096, 8, 16)))
        #expect(
            layout("YM12", 8, 4, [(16, 80), (8, 16), (8, 16)], regions: [80, 16, 16])
                == planes((0, 16, 64), (80, 8, 16), (96, 8, 16)))
    }

    @Test func unknownFormat() {
        #expect(layout("ZZZZ", 8, 4, [(8, 1000)], regions: [4096]) == planes((0, 8, 1000)))
        #expect(layout("ZZZZ", 8, 4, [(8, 5000)], regions: [4096]) == planes((0, 8, 4096)))
    }

    @Test func compressed() {
        #expect(layout("MJPG", 640, 480, [(1280, 600_000)]) == planes((0, 0, 600_000)))
    }

    /// Numbers of a driver's that would overflow 32 bits.
    @Test func absurd() {
        #expect(layout("NV12", .max, .max, [(.max, .max)], regions: [100]) == planes((0, Int(UInt32.max), 100)))
        #expect(layout("YUYV", .max, .max, [(.max, .max)], regions: [100]) == planes((0, Int(UInt32.max), 100)))
    }
}
