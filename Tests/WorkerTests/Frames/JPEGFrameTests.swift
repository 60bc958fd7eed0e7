import BusProtocol
import CaptureCore
import CaptureSources
import JSON
import Testing

@testable import Worker

/// What becomes of a camera's own JPEG pictures.
@Suite("Motion JPEG of the camera", .serialized, .timeLimit(.minutes(5)))
struct JPEGFrameTests {
    private let bench = TestBench()

    /// Markers as a camera writes them: start, a quantisation table of nonsense, perhaps Huffman tables, a scan, the
    /// end.
    private static func picture(tables: Bool, end: Bool = true) -> [UInt8] {
        var bytes: [UInt8] = [0xFF, 0xD8, 0xFF, 0xDB, 0x00, 0x04, 0x01, 0x02]
        if tables { bytes += [0xFF, 0xC4, 0x00, 0x04, 0x03, 0x04] }
        bytes += [0xFF, 0xDA, 0x00, 0x04, 0x05, 0x06] + Array(repeating: 0x77, count: 200)
        return end ? bytes + [0xFF, 0xD9] : bytes
    }

    @Test("a picture without Huffman tables gets them as jpeg, and stays as it is as native")
    func tables() throws {
        let bare = Self.picture(tables: false)
        bench.set { $0.pictures = [bare] }
        let worker = try WorkerFixture(bench)
        let subscriber = try worker.subscriber("frame/cam0/native/", "frame/cam0/jpeg/")
        let native = try subscriber.next { $0.topic == "frame/cam0/native/" }
        #expect(native.payload == bare)
        let jpeg = try subscriber.next { $0.topic == "frame/cam0/jpeg/" }
        #expect(jpeg.header["planes"]?[0]?["bytes"]?.integer == Int64(jpeg.payload.count))
        #expect(jpeg.payload.prefix(8) == bare.prefix(8))
        #expect(jpeg.payload[8..<10] == [0xFF, 0xC4])
        #expect(jpeg.payload.suffix(208) == bare.suffix(208))
        #expect(jpeg.payload.count == bare.count + 432)
    }

    @Test("a picture with its tables is passed on as it is")
    func whole() throws {
        let picture = Self.picture(tables: true)
        bench.set { $0.pictures = [picture] }
        let worker = try WorkerFixture(bench)
        let subscriber = try worker.subscriber("frame/cam0/jpeg/")
        #expect(try subscriber.next { $0.topic == "frame/cam0/jpeg/" }.payload == picture)
    }

    @Test("torn pictures are counted and not passed on")
    func torn() throws {
        let whole = Self.picture(tables: true)
        bench.set { $0.pictures = [whole, Self.picture(tables: true, end: false), Array(whole.dropFirst(9)), []] }
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

    @Test("a picture that is torn in its middle is left out, and told only where no other comes")
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

    @Test("a camera that never ends its pictures is taken as it is")
    func endless() throws {
        let picture = Self.picture(tables: true, end: false)
        bench.set { $0.pictures = [picture] }
        let worker = try WorkerFixture(bench)
        let subscriber = try worker.subscriber("frame/cam0/native/")
        let frame = try subscriber.next { $0.topic == "frame/cam0/native/" }
        #expect(frame.payload == picture)
        #expect(frame.header["dropped"] == 0)
    }
}
