import BusProtocol
import CaptureCore
import CaptureSources
import Imaging
import JSON
import Testing

@testable import Worker

/// What becomes of a camera's own JPEG pictures.
@Suite("Motion JPEG of the camera", .serialized, .timeLimit(.minutes(5)))
struct JPEGFrameTests {
    private let bench = TestBench()

    @Test("a picture without Huffman tables gets them as jpeg, and stays as it is as native")
    func tables() throws {
        let (bare, place) = try TestPicture.bare()
        bench.set { $0.pictures = [bare] }
        let worker = try WorkerFixture(bench)
        let subscriber = try worker.subscriber("frame/cam0/native/", "frame/cam0/jpeg/")
        let native = try subscriber.next { $0.topic == "frame/cam0/native/" }
        #expect(native.payload == bare)
        let jpeg = try subscriber.next { $0.topic == "frame/cam0/jpeg/" }
        #expect(jpeg.header["planes"]?[0]?["bytes"]?.integer == Int64(jpeg.payload.count))
        #expect(jpeg.payload.prefix(place) == bare.prefix(place))
        #expect(jpeg.payload[place..<place + 2] == [0xFF, 0xC4])
        #expect(jpeg.payload.suffix(bare.count - place) == bare[place...])
        #expect(jpeg.payload.count == bare.count + 432)
    }

    @Test("a picture with its tables is passed on as it is")
    func whole() throws {
        let picture = try TestPicture.jpeg(luma: 20)
        bench.set { $0.pictures = [picture] }
        let worker = try WorkerFixture(bench)
        let subscriber = try worker.subscriber("frame/cam0/jpeg/")
        #expect(try subscriber.next { $0.topic == "frame/cam0/jpeg/" }.payload == picture)
    }

    @Test("torn pictures are counted and not passed on")
    func torn() throws {
        let whole = try TestPicture.jpeg(luma: 20)
        bench.set { $0.pictures = [whole, Array(whole.dropLast(30)), Array(whole.dropFirst(9)), []] }
        let worker = try WorkerFixture(bench)
        let subscriber = try worker.subscriber("frame/cam0/native/")
        var dropped: [Int64] = []
        for _ in 0..<3 {
            let frame = try subscriber.next { $0.topic == "frame/cam0/native/" }
            #expect(frame.payload == whole)
            dropped.append(frame.header["dropped"]?.integer ?? -1)
        }
        #expect(dropped[1] - dropped[0] == 3 && dropped[2] - dropped[1] == 3)
    }

    @Test("a header that would take a lot of memory to look behind is not believed")
    func enormous() throws {
        let layout = try #require(FrameLayout.packed(.motionJPEG, Dimensions(width: 64, height: 48)))
        let whole = try TestPicture.jpeg(luma: 20)
        let size = try #require(whole.withUnsafeBytes { JPEGHead($0)?.dimensions })
        var header = try #require(whole.indices.dropLast(8).first { whole[$0] == 0xFF && whole[$0 + 1] == 0xC0 })
        header += 5
        let judge = try #require(JPEGDamageDetector(layout))
        func found(_ jpeg: [UInt8]) -> JPEGDamageDetector.Finding {
            var jpeg = jpeg
            return jpeg.withUnsafeMutableBytes { bytes in
                let slot = FrameSlot(index: 0, regions: [bytes])
                slot.bytesUsed[0] = bytes.count
                return judge.look(at: slot.metadata, [UnsafeRawBufferPointer(bytes)])
            }
        }
        // The picture itself is whole, in whatever format it comes.
        let other = ActualPictures(dimensions: size, orientation: .upright)
        #expect(found(whole) == (size == layout.dimensions ? .whole : .changed(other)))
        for (width, height) in [(32768, 32768), (65535, 65535), (16384, 16384), (20000, 1)] {
            var jpeg = whole
            jpeg[header] = UInt8(height >> 8)
            jpeg[header + 1] = UInt8(height & 0xFF)
            jpeg[header + 2] = UInt8(width >> 8)
            jpeg[header + 3] = UInt8(width & 0xFF)
            // Nor is it passed on under another size.
            #expect(found(jpeg) == .damaged("it has \(width)x\(height) pixels instead of \(layout.dimensions)"))
        }
    }

    @Test("a torn picture is left out, and reported only if no other comes")
    func undecodable() throws {
        let (whole, torn) = (try TestPicture.jpeg(luma: 20), try TestPicture.torn())
        bench.set { $0.pictures = [whole, torn, torn, torn] }
        let worker = try WorkerFixture(bench)
        let subscriber = try worker.subscriber("frame/cam0/gray/")
        // Some seconds of a hundred frames each: once a second it would be told again.
        var last: JSONValue = .null
        while (last["captureSequence"]?.integer ?? 0) < 400 {
            last = try subscriber.next { $0.topic == "frame/cam0/gray/" }.header
            try #require(last["error"] == nil, "\(last)")
        }
        #expect((last["dropped"]?.integer ?? 0) > 0)
        try worker.stop()

        bench.set { $0.pictures = [torn] }
        let broken = try WorkerFixture(bench)
        let error = try broken.subscriber("frame/cam0/gray/").next { $0.header["error"] != nil }.header["error"]
        #expect(error?["reason"] == "internalError" && error?["data"]?["missing"] == nil)
    }

    @Test("an undecodable picture is reported on every lane, with its reason")
    func undecodableEverywhere() throws {
        let torn = try TestPicture.torn()
        for pictures in [[torn], [Array(torn.dropLast(2))], [[0x47, 0x49, 0x46]]] {
            bench.set { $0.pictures = pictures }
            let worker = try WorkerFixture(bench)
            let topics = ["native", "jpeg", "gray", "jpeg:32x0"].map { "frame/cam0/\($0)/" }
            let subscriber = try worker.subscriber(topics[0], topics[1], topics[2], topics[3])
            for topic in topics {
                let message = try subscriber.next { $0.topic == topic }
                let error = message.header["error"]
                #expect(error?["reason"] == "internalError" && message.payload.isEmpty, "\(topic): \(message.header)")
                #expect(error?["message"]?.string?.contains("damaged: ") == true)
            }
            try worker.stop()
        }
    }

    @Test("a camera whose pictures are damaged from some moment on gives none from then on, and some again later")
    func goesBad() throws {
        let (whole, torn) = (try TestPicture.jpeg(luma: 20), try TestPicture.torn())
        let many = 100
        bench.set { $0.pictures = Array(repeating: whole, count: many) + Array(repeating: torn, count: many) }
        let worker = try WorkerFixture(bench)
        // Who decodes tells those who don't.
        let subscriber = try worker.subscriber("frame/cam0/native/", "frame/cam0/gray/")
        _ = try subscriber.next { $0.topic == "frame/cam0/native/" && $0.payload == torn }
        _ = try subscriber.next { $0.topic == "frame/cam0/native/" && $0.header["error"] != nil }
        let again = try subscriber.next { $0.topic == "frame/cam0/native/" && $0.header["error"] == nil }
        #expect(again.payload == whole && (again.header["dropped"]?.integer ?? 0) > many / 2)
    }

    @Test("a picture that lacks its end alone gets it")
    func endless() throws {
        let whole = try TestPicture.jpeg(luma: 20)
        bench.set { $0.pictures = [Array(whole.dropLast(2))] }
        let worker = try WorkerFixture(bench)
        let subscriber = try worker.subscriber("frame/cam0/native/", "frame/cam0/jpeg/", "frame/cam0/gray/")
        for topic in ["native", "jpeg", "gray"].map({ "frame/cam0/\($0)/" }) {
            let frame = try subscriber.next { $0.topic == topic }
            #expect(frame.payload == whole || topic.hasSuffix("gray/"))
            #expect(frame.header["dropped"] == 0)
        }
    }
}
