import BusClient
import BusProtocol
import CaptureCore
import CaptureSources
import FrameRing
import JSON
import Testing

@testable import Worker

/// A camera's own H.264: who begins at a key frame can follow.
@Suite("H.264 of the camera", .serialized, .timeLimit(.minutes(5)))
struct H264FrameTests {
    private let bench = TestBench()

    private static let sets: [UInt8] = [0, 0, 0, 1, 0x67, 0x42, 0xC0, 0, 0, 0, 1, 0x68, 0xCE]
    private static func key(_ number: UInt8) -> [UInt8] { [0, 0, 0, 1, 0x65, 0x88, number] }
    private static func other(_ number: UInt8) -> [UInt8] { [0, 0, 0, 1, 0x41, 0x9A, number] }
    /// What makes no sense.
    private static let noise: [UInt8] = [0x12, 0x34]

    private func worker(_ pictures: [[UInt8]]) throws -> WorkerFixture {
        bench.set {
            $0.pictures = pictures
            $0.pictureFormat = .h264
        }
        return try WorkerFixture(bench)
    }

    @Test("frames say whether they are key frames, and frames that depend on a lost one are left out")
    func chain() throws {
        let worker = try worker([
            Self.sets + Self.key(1), Self.other(2), Self.other(3), Self.noise, Self.other(4), Self.other(5),
            Self.sets + Self.key(6), Self.other(7),
        ])
        let subscriber = try worker.subscriber("frame/cam0/native/")
        var numbers: [UInt8] = []
        var dropped: [Int64] = []
        var sequences: [Int64] = []
        while numbers.count < 11 {
            let frame = try subscriber.next { $0.topic == "frame/cam0/native/" }
            let isKey = frame.payload.starts(with: Self.sets)
            #expect(frame.header["keyframe"] == .bool(isKey))
            #expect(frame.header["format"] == "H264")
            #expect(frame.header["planes"]?[0]?["bytes"]?.integer == Int64(frame.payload.count))
            sequences.append(frame.header["sequence"]?.integer ?? -1)
            numbers.append(frame.payload.last ?? 0)
            dropped.append(frame.header["dropped"]?.integer ?? -1)
        }
        // Where each lies in a round. The fifth and sixth can't be decoded without the fourth.
        let places: [UInt8: Int] = [1: 0, 2: 1, 3: 2, 6: 6, 7: 7]
        for index in 1..<11 {
            let (last, this) = (try #require(places[numbers[index - 1]]), try #require(places[numbers[index]]))
            // What got lost on the way here is no matter.
            guard sequences[index] == sequences[index - 1] + 1 else { continue }
            #expect(numbers[index] == 1 || numbers[index] == 6 || numbers[index] == numbers[index - 1] + 1)
            #expect(dropped[index] - dropped[index - 1] == Int64((this - last + 7) % 8))
        }
        #expect(sequences[0] > 0 || numbers[0] == 1 || numbers[0] == 6)
    }

    private static func sets(_ sequence: [UInt8]) -> [UInt8] {
        [0, 0, 0, 1] + sequence + [0, 0, 0, 1, 0x68, 0xCE, 0x0F]
    }
    // As x264 writes them, for 64x48 and for 96x64; and for 64x48 in full range with the colours of BT.709.
    private static let small = sets([
        0x67, 0x42, 0xC0, 0x0A, 0xDA, 0x11, 0xEC, 0x04, 0x40, 0, 0, 3, 0, 0x40, 0, 0, 3, 0x02, 0x83, 0xC4, 0x89, 0xA8,
    ])
    private static let large = sets([
        0x67, 0x42, 0xC0, 0x0A, 0xDA, 0x18, 0x9B, 0x01, 0x10, 0, 0, 3, 0, 0x10, 0, 0, 3, 0, 0xA0, 0xF1, 0x22, 0x6A,
    ])
    private static let colourful = sets([
        0x67, 0x42, 0xC0, 0x0A, 0xDA, 0x11, 0xEC, 0x05, 0xB8, 0x08, 0x08, 0x0A, 0, 0, 3, 0, 0x02, 0, 0, 3, 0, 0x14,
        0x1E, 0x24, 0x4D, 0x40,
    ])

    // 64x48 of pixels that are 4 wide and 3 high.
    private static let wide = sets([
        0x67, 0x42, 0xC0, 0x0A, 0xD9, 0x04, 0x7B, 0x0E, 0x10, 0, 0, 3, 0, 0x10, 0, 0, 3, 0x01, 0x40, 0xF1, 0x22, 0x64,
        0x80,
    ])

    @Test("the shape of pixels that pictures state is in the header, as drivers say nothing of it")
    func pixelShape() throws {
        let worker = try worker([Self.wide + Self.key(1), Self.other(2)])
        let subscriber = try worker.subscriber("frame/cam0/native/")
        for _ in 0..<4 {
            let frame = try subscriber.next { $0.topic == "frame/cam0/native/" }
            #expect(frame.header["width"] == 64 && frame.header["pixelAspectRatio"] == "4:3")
        }
        #expect(bench.now.starts == 2)
    }

    @Test("pictures of another size than the driver's are a stream with true headers")
    func otherSize() throws {
        let worker = try worker([Self.large + Self.key(1), Self.other(2)])
        let subscriber = try worker.subscriber("frame/cam0/native/")
        for _ in 0..<4 {
            let frame = try subscriber.next { $0.topic == "frame/cam0/native/" }
            #expect(frame.header["width"] == 96 && frame.header["height"] == 64)
        }
        // The second is that of the true size.
        #expect(bench.now.starts == 2)
    }

    @Test("pictures with other colours than the driver's are a stream with true headers")
    func otherColours() throws {
        let worker = try worker([Self.colourful + Self.key(1), Self.other(2)])
        let subscriber = try worker.subscriber("frame/cam0/native/")
        for _ in 0..<4 {
            let frame = try subscriber.next { $0.topic == "frame/cam0/native/" }
            #expect(frame.header["width"] == 64 && frame.header["height"] == 48)
            #expect(frame.header["colorRange"] == "full" && frame.header["yCbCrMatrix"] == "bt709")
            #expect(frame.header["colorPrimaries"] == "bt709" && frame.header["transferFunction"] == "bt709")
        }
        #expect(bench.now.starts == 2)
    }

    @Test("no picture of another size, or with other colours, comes under an old header")
    func changesOnTheWay() throws {
        for other in [Self.large, Self.colourful] {
            let worker = try worker([
                Self.small + Self.key(1), Self.other(2), Self.other(3), other + Self.key(4), Self.other(5),
            ])
            let subscriber = try worker.subscriber("frame/cam0/native/")
            var streams: Set<String> = []
            while streams.count < 3 {
                let frame = try subscriber.next { $0.topic == "frame/cam0/native/" }
                #expect(frame.header["width"] == 64 && frame.header["colorRange"] == "video")
                #expect(frame.payload.last.map { $0 < 4 } == true)
                streams.insert(frame.header["stream"]?.string ?? "")
            }
        }
    }

    @Test("a key frame gets its parameter sets, where the device sends them once")
    func parameterSets() throws {
        let worker = try worker([Self.sets, Self.key(1), Self.other(2), Self.key(3), Self.other(4)])
        let subscriber = try worker.subscriber("frame/cam0/native/")
        var last: (number: UInt8, dropped: Int64, sequence: Int64)?
        for _ in 0..<10 {
            let frame = try subscriber.next { $0.topic == "frame/cam0/native/" }
            let number = frame.payload.last ?? 0
            #expect(frame.payload == (number % 2 == 1 ? Self.sets + Self.key(number) : Self.other(number)))
            let dropped = try #require(frame.header["dropped"]?.integer)
            let sequence = try #require(frame.header["sequence"]?.integer)
            if let last, sequence == last.sequence + 1 {
                // Parameter sets alone, the first of each five, are no picture and no loss.
                let between = (Int64(number) - Int64(last.number) + 4) % 5
                #expect(dropped - last.dropped == between - (number <= last.number ? 1 : 0))
            }
            last = (number, dropped, sequence)
        }
    }

    @Test("a topic that somebody subscribes to later begins with a key frame, which the device is asked for")
    func late() throws {
        let worker = try worker([Self.sets + Self.key(0)] + (1..<200).map { Self.other($0) })
        let first = try worker.subscriber("frame/cam0/native/")
        _ = try first.next { $0.payload.last == 3 }
        let second = try worker.subscriber("frame/cam0/native@1000/")
        let frame = try second.next { $0.topic == "frame/cam0/native@1000/" }
        #expect(frame.header["keyframe"] == true)
        #expect(frame.header["sequence"] == 0)
        #expect(bench.now.calls.contains("requestKeyframe"))
        let next = try second.next { $0.topic == "frame/cam0/native@1000/" }
        #expect(next.payload == Self.other(1) || next.header["keyframe"] == true || next.header["sequence"] != 1)
    }

    @Test("at a rate below the device's there are key frames only")
    func rate() throws {
        let pictures: [[UInt8]] = [
            Self.sets + Self.key(0), Self.other(1), Self.other(2), Self.sets + Self.key(3), Self.other(4),
        ]
        let worker = try worker(pictures)
        let subscriber = try worker.subscriber("frame/cam0/native@90/")
        for _ in 0..<6 {
            let frame = try subscriber.next { $0.topic == "frame/cam0/native@90/" }
            #expect(frame.header["keyframe"] == true)
        }
    }

    @Test("other pictures can't be made of it")
    func renditions() throws {
        let worker = try worker([Self.sets + Self.key(0), Self.other(1)])
        let subscriber = try worker.subscriber("frame/cam0/jpeg/", "frame/cam0/native/")
        let refused = try subscriber.next { $0.topic == "frame/cam0/jpeg/" }
        #expect(refused.header["error"]?["reason"] == "formatUnsupported")
        #expect(refused.payload.isEmpty)
        _ = try subscriber.next { $0.topic == "frame/cam0/native/" }
    }

    @Test("a ring's reader begins with a key frame, gets all frames after it, and resumes with one after a loss")
    func ring() throws {
        let worker = try worker([Self.sets + Self.key(0)] + (1..<30).map { Self.other($0) })
        let reader = try RingConnection(worker.room.directory, "cam0")
        func next() throws -> (number: UInt8, isKeyframe: Bool?)? {
            let frame = try #require(try reader.next(timeout: .seconds(20)))
            let number = reader.use(frame) { $0.last ?? 0xFF }
            return number.map { ($0, frame.record.isKeyframe) }
        }
        var last: UInt8?
        for _ in 0..<70 {
            guard let (number, isKeyframe) = try next() else {
                last = nil
                continue
            }
            #expect(isKeyframe == (number == 0))
            // Either the one after the last, or a key frame.
            #expect(number == 0 || number == last.map { $0 + 1 })
            last = number
        }
    }
}
