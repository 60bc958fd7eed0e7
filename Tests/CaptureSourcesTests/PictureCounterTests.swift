import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureSources
import Imaging
import Testing

@Suite struct PictureCounterTests {
    @Test(arguments: [PixelFormat.yuyv, .nv12, .bgr24, .motionJPEG, .bayerRGGB8, .grey])
    func surviveEveryRendition(_ format: PixelFormat) throws {
        for (width, height) in [(320, 240), (640, 360)] {
            let camera = try openCamera(3, format, width, height)
            let stream = try camera.startStreaming()
            let slot = try nextFrame(stream)
            let regions = slot.regions.map { UnsafeRawBufferPointer($0) }
            for encoding in Rendition.Encoding.allCases where encoding != .native {
                for part in [1, 2, 4] {
                    // 5/8 as well, so that edges of cells and pixels don't fall together.
                    for size in [
                        Dimensions(width: width / part, height: height / part),
                        Dimensions(width: width * 5 / 8 / part & ~1, height: height / part & ~1),
                    ] where size.width >= 80 && size.height >= 60 {
                        let converter = try PictureConverter(
                            from: stream.layout, to: PictureRequest(encoding: encoding, dimensions: size, quality: 30))
                        let output = PictureBuffer()
                        _ = try converter.convert(regions, bytesUsed: slot.bytesUsed, into: output)
                        let counter = PictureCounterReader.read(output.bytes, converter.outputLayout)
                        #expect(
                            counter
                                == PictureCounter(
                                    counter: UInt32(slot.captureSequence),
                                    microseconds: UInt64(slot.monotonicTime / 1000), camera: 3),
                            "\(format) \(width)x\(height) to \(encoding) \(size)")
                    }
                }
            }
            try camera.stopStreaming()
        }
    }

    @Test func areNotReadFromOtherPictures() throws {
        let layout = try #require(FrameLayout.packed(.grey, Dimensions(width: 320, height: 240)))
        for value in [0, 77, 255] as [UInt8] {
            #expect(PictureCounterReader.read([UInt8](repeating: value, count: layout.totalBytes), layout) == nil)
        }
        #expect(PictureCounterReader.read([], layout) == nil)
        #expect(PictureCounterReader.read([1, 2, 3], FrameLayout.packed(.jpeg, layout.dimensions) ?? layout) == nil)
        let camera = try openCamera()
        let stream = try camera.startStreaming()
        var bytes = Array(payload(try nextFrame(stream)))
        #expect(PictureCounterReader.read(bytes, stream.layout) != nil)
        // One cell of the counter turned over.
        for y in 0..<10 { for x in 100..<110 { bytes[y * 320 + x] = 255 - bytes[y * 320 + x] } }
        #expect(PictureCounterReader.read(bytes, stream.layout) == nil)
        try camera.stopStreaming()
    }
}
