import CaptureCore
import Imaging
import Testing

@Suite struct LumaMeterTests {
    private static let size = Dimensions(width: 64, height: 48)

    /// Left half of one luma, right half of another; a byte between where luma has pairs.
    private func mean(
        _ format: PixelFormat, around x: Double, _ left: UInt8, _ right: UInt8, lumaAt offset: Int = 0,
        every bytes: Int = 1
    ) throws -> Double {
        let layout = try #require(FrameLayout.packed(format, Self.size))
        var picture = [UInt8](repeating: 77, count: layout.totalBytes)
        for line in 0..<Self.size.height {
            for column in 0..<Self.size.width {
                picture[line * layout.planes[0].stride + column * bytes + offset] =
                    column < Self.size.width / 2 ? left : right
            }
        }
        let meter = try #require(LumaMeter(layout))
        return try picture.withUnsafeBytes {
            try #require(
                meter.mean(of: MeteredRegion(aroundX: x, y: 0.3), in: [$0], bytesUsed: [picture.count]))
        }
    }

    @Test func meansOfWhatLiesAroundThePoint() throws {
        for (format, offset, bytes) in [
            (PixelFormat.yuyv, 0, 2), (.uyvy, 1, 2), (.nv12, 0, 1), (.i420, 0, 1),
        ] {
            // 16 is black and 235 white there.
            #expect(try mean(format, around: 0.1, 16, 235, lumaAt: offset, every: bytes) == 0, "\(format)")
            #expect(try mean(format, around: 0.9, 16, 235, lumaAt: offset, every: bytes) == 255, "\(format)")
            let half = try mean(format, around: 0.5, 16, 235, lumaAt: offset, every: bytes)
            #expect((120...135).contains(half), "\(format) \(half)")
        }
        #expect(try mean(.grey, around: 0, 10, 200) == 10)
        #expect(try mean(.grey, around: 1, 10, 200) == 200)
        #expect(try mean(.nv12FullRange, around: 1, 10, 200) == 200)
    }

    @Test func theWholePictureInTheMiddle() {
        let whole = MeteredRegion(aroundX: 0.5, y: 0.5)
        #expect(whole.left == 0 && whole.top == 0 && whole.width == 1 && whole.height == 1)
        for x in [0.0, 0.05, 0.5, 1] {
            let part = MeteredRegion(aroundX: x, y: 1)
            #expect(part.left >= 0 && part.left + part.width <= 1.000001 && part.top + part.height <= 1.000001)
        }
    }

    @Test func whatHasNoLumaOrEndsTooEarly() throws {
        #expect(LumaMeter(try #require(FrameLayout.packed(.motionJPEG, Self.size))) == nil)
        #expect(LumaMeter(try #require(FrameLayout.packed(.rgb24, Self.size))) == nil)
        let layout = try #require(FrameLayout.packed(.yuyv, Self.size))
        let meter = try #require(LumaMeter(layout))
        let picture = [UInt8](repeating: 100, count: layout.totalBytes)
        picture.withUnsafeBytes {
            let region = MeteredRegion(aroundX: 0.2, y: 0.2)
            #expect(meter.mean(of: region, in: [$0], bytesUsed: [picture.count - 1]) == nil)
            #expect(meter.mean(of: region, in: [], bytesUsed: []) == nil)
        }
    }

    @Test func oddSizesAndASinglePixel() throws {
        for size in [
            Dimensions(width: 1, height: 1), Dimensions(width: 3, height: 5), Dimensions(width: 25, height: 1),
        ] {
            let layout = try #require(FrameLayout.packed(.grey, size))
            let meter = try #require(LumaMeter(layout))
            let picture = [UInt8](repeating: 42, count: layout.totalBytes)
            picture.withUnsafeBytes { bytes in
                for x in [0, 0.5, 1] {
                    let region = MeteredRegion(aroundX: x, y: 1)
                    #expect(meter.mean(of: region, in: [bytes], bytesUsed: [picture.count]) == 42)
                }
            }
        }
    }
}
