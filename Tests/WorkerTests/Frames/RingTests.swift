import BusClient
import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureSources
import FrameRing
import Glibc
import JSON
import LinuxIO
import Testing

@testable import Worker

@Suite("Rings of a worker", .serialized, .timeLimit(.minutes(3)))
struct RingTests {
    private func fixture(_ pixelFormat: String = "YUYV", _ width: Int = 640, _ height: Int = 360) throws
        -> WorkerFixture
    {
        try WorkerFixture {
            $0.configuration = [
                "generation": 1, "frameDuration": "1/30", "controls": [],
                "activeFormat": [
                    "pixelFormat": .string(pixelFormat), "width": JSONValue(width), "height": JSONValue(height),
                ],
            ]
        } _: {
            VirtualCamera(index: 0)
        }
    }

    private func layout(_ header: FrameHeader) throws -> FrameLayout {
        FrameLayout(
            pixelFormat: try #require(PixelFormat(header.format)),
            dimensions: Dimensions(width: header.width, height: header.height),
            planes: header.planes.map { PlaneLayout(offset: $0.offset, stride: $0.stride, bytes: $0.bytes) })
    }

    /// Reads frames until that many were whole, and holds each against the number in its picture.
    private func read(_ rings: RingConnection, _ count: Int, _ order: RingReader.Order = .next) throws -> [FrameHeader]
    {
        var headers: [FrameHeader] = []
        while headers.count < count {
            let frame = try #require(try rings.next(order, timeout: .seconds(20)))
            let header = try #require(rings.header(of: frame))
            let layout = try layout(header)
            guard let counter = rings.use(frame, { PictureCounterReader.read($0, layout) }) else { continue }
            #expect(counter.map { UInt64($0.counter) } == header.captureSequence)
            #expect(counter.map { Int64($0.microseconds) } == header.monotonic / 1000)
            headers.append(header)
        }
        return headers
    }

    @Test(
        "the frames in a ring are those that their records name",
        arguments: ["native", "gray:320x0@15", "nv12:320x180", "i420"])
    func pictures(_ rendition: String) throws {
        let worker = try fixture()
        let rings = try RingConnection(worker.room.directory, "cam0", rendition)
        let headers = try read(rings, 8)
        #expect(headers[0].rendition == rendition && headers[0].device == "cam0" && headers[0].generation == 1)
        for (before, after) in zip(headers, headers.dropFirst()) {
            #expect(after.sequence > before.sequence && after.captureSequence > before.captureSequence)
            #expect(after.stream == before.stream)
        }
        #expect(rings.counters.unusable == 0)
    }

    @Test("a compressed picture is as long as its record says")
    func jpeg() throws {
        let worker = try fixture("MJPG")
        let rings = try RingConnection(worker.room.directory, "cam0", "native")
        let frame = try #require(try rings.next(timeout: .seconds(20)))
        #expect(rings.header(of: frame)?.planes == [.init(offset: 0, stride: 0, bytes: frame.record.bytes)])
        let end = rings.use(frame) { Array($0.suffix(2)) }
        #expect(end == [0xFF, 0xD9])
    }

    @Test("a JPEG without Huffman tables gets them in a ring of jpeg, and stays as it is in one of native")
    func tables() throws {
        let bench = TestBench()
        let (bare, place) = try TestPicture.bare()
        bench.set { $0.pictures = [bare] }
        let worker = try WorkerFixture(bench)
        for (rendition, more) in [("native", 0), ("jpeg", 432)] {
            let rings = try RingConnection(worker.room.directory, "cam0", rendition)
            let frame = try #require(try rings.next(timeout: .seconds(20)))
            let picture = try #require(rings.use(frame) { Array($0) })
            #expect(picture.count == bare.count + more && picture.suffix(bare.count - place) == bare[place...])
            #expect(rings.header(of: frame)?.planes == [.init(offset: 0, stride: 0, bytes: picture.count)])
            if more > 0 { #expect(picture[place..<place + 2] == [0xFF, 0xC4]) }
        }
    }

    @Test("references name the ring, the slot and the stamp under which a frame is found")
    func references() throws {
        let worker = try fixture()
        let path = worker.room.directory.ringSocket("cam0")
        let socket = try PacketSocket(connectingTo: path)
        #expect(try socket.send(Array(#"{"rendition":"gray:320x0"}"#.utf8)))
        let topic = "buffer/cam0/gray:320x0@30.0/"
        let same = "buffer/cam0/gray:320x0/"
        let subscriber = try worker.subscriber(topic, same)
        #expect(socket.waitUntilReadable(until: MonotonicClock.now() + 20_000_000_000))
        let packet = try #require(try socket.receive(maximumBytes: 4096))
        let view = try SharedMemoryView(try #require(packet.descriptor))
        let reader = try RingReader(view)
        var last: UInt64?
        var found = 0
        while found < 5 {
            let message = try subscriber.next { $0.topic == same }
            #expect(message.payload.isEmpty)
            let header = try FrameHeader(message.header)
            let buffer = try #require(header.buffer)
            #expect(header.rendition == "gray:320x0" && header.planesFit(in: buffer.bytes))
            #expect(buffer.ring == reader.plan.description.ring && buffer.bytes == 320 * 180)
            #expect(buffer.offset == reader.plan.pixels(buffer.slot))
            if let last { #expect(header.sequence == last + 1) }
            last = header.sequence
            let picture = Array(view.bytes[buffer.offset..<buffer.offset + buffer.bytes])
            let record = view.bytes.baseAddress.map { $0 + reader.plan.tableOffset + 64 * buffer.slot }
            guard SharedWord.load64(try #require(record)) == buffer.stamp else { continue }
            let counter = try picture.withUnsafeBytes { PictureCounterReader.read($0, try layout(header)) }
            #expect(counter.map { UInt64($0.counter) } == header.captureSequence)
            found += 1
        }
        // The other rate is another rendition, with a ring of its own.
        let other = try FrameHeader(try subscriber.next { $0.topic == topic }.header)
        #expect(other.buffer.map { $0.ring != reader.plan.description.ring } == true)
    }

    @Test("a stream that is wanted while the one before ends has a ring of its own")
    func wantedAgainAtOnce() throws {
        let worker = try fixture()
        let topic = "buffer/cam0/native/"
        let subscriber = try worker.subscriber(topic)
        var streams: [String: String] = [:]
        for _ in 0..<20 {
            let header = try FrameHeader(try subscriber.next { $0.topic == topic }.header)
            let ring = try #require(header.buffer?.ring)
            #expect((streams.updateValue(header.stream, forKey: ring) ?? header.stream) == header.stream)
            try subscriber.unsubscribe(topic)
            try subscriber.subscribe(topic)
        }
        #expect(Set(streams.values).count > 1)
    }

    @Test("references come again when the ring comes again within a stream")
    func referencesAgain() throws {
        let worker = try fixture()
        // The ring of native is there as long as the stream; others are while somebody wants them.
        let topic = "buffer/cam0/gray:320x0/"
        let subscriber = try worker.subscriber("frame/cam0/gray:160x0/", topic)
        let first = try FrameHeader(try subscriber.next { $0.topic == topic }.header)
        try subscriber.unsubscribe(topic)
        var before = first
        for message in try subscriber.answers(to: "frame/cam0/gray:64x0/") where message.topic == topic {
            before = try FrameHeader(message.header)
        }
        try subscriber.subscribe(topic)
        let next = try FrameHeader(
            try subscriber.next {
                $0.topic == topic && $0.header["buffer"]?["ring"]?.string != first.buffer?.ring
            }.header)
        #expect(next.stream == first.stream && next.sequence > before.sequence)
    }

    @Test("who reads a ring is among those who use the device")
    func users() throws {
        let worker = try fixture()
        let rings = try RingConnection(worker.room.directory, "cam0", "gray:320x0")
        _ = try rings.next(timeout: .seconds(20))
        guard case .success(let users) = try worker.coordinator.order(.who) else {
            Issue.record("no answer")
            return
        }
        let mine = users["subscribers"]?.array?.first { $0["pid"] == JSONValue(CurrentProcess.pid) }
        #expect(mine?["renditions"] == ["gray:320x0"])
    }

    @Test("many readers read one ring, beside subscribers")
    func many() throws {
        let worker = try fixture()
        let topic = "frame/cam0/native/"
        let subscriber = try worker.subscriber(topic)
        let readers = try (0..<8).map { _ in try RingConnection(worker.room.directory, "cam0") }
        var names: Set<String> = []
        for reader in readers {
            _ = try read(reader, 3, .newest)
            names.insert(try #require(reader.ring).ring)
        }
        #expect(names.count == 1)
        let message = try subscriber.next { $0.topic == topic }
        #expect(try FrameHeader(message.header).stream == readers[0].ring?.stream)
    }

    @Test("a ring's reader keeps the device streaming, and its end ends that")
    func subscription() throws {
        let worker = try fixture()
        var rings: RingConnection? = try RingConnection(worker.room.directory, "cam0")
        _ = try rings?.next(timeout: .seconds(20))
        let stream = rings?.ring?.stream
        #expect(stream != nil)
        try worker.coordinator.waitForStatus("streaming") { $0["isStreaming"] == true }
        rings = nil
        try worker.coordinator.waitForStatus("the end of the stream") { $0["isStreaming"] == false }
        let again = try RingConnection(worker.room.directory, "cam0")
        _ = try again.next(timeout: .seconds(20))
        #expect(again.ring?.stream != stream)
    }

    @Test("a new stream is a new ring, and readers continue in it")
    func streams() throws {
        let worker = try fixture()
        let rings = try RingConnection(worker.room.directory, "cam0")
        let before = try read(rings, 2)[0]
        let old = try #require(rings.ring)
        let change: JSONValue = ["device": "cam0", "activeFormat": ["width": 640, "height": 480]]
        let coordinator = try worker.coordinator
        for action in [
            WorkerOrder.Action.lock, .prepare(transaction: "t", change: change, path: "changes[0]", mode: .nearest),
            .apply(transaction: "t"), .finish(transaction: "t"),
        ] {
            guard case .success = try coordinator.order(action, fence: 1) else {
                Issue.record("\(action) was refused")
                return
            }
        }
        var after = before
        while after.stream == before.stream { after = try read(rings, 1)[0] }
        let new = try #require(rings.ring)
        #expect(new.ring != old.ring && new.height == 480 && after.height == 480)
    }

    @Test(
        "a malformed ring request is answered with an error and disconnected; a ring request without a rendition gets the native picture"
    )
    func requests() throws {
        let worker = try fixture()
        let path = worker.room.directory.ringSocket("cam0")
        for (request, reason) in [
            ("x", "invalidParams"), ("[]", "invalidParams"), (#"{"rendition":7}"#, "invalidParams"),
            (#"{"rendition":"png"}"#, "invalidParams"), (String(repeating: "x", count: 2000), "invalidParams"),
        ] {
            let socket = try PacketSocket(connectingTo: path)
            #expect(try socket.send(Array(request.utf8)))
            #expect(socket.waitUntilReadable(until: MonotonicClock.now() + 20_000_000_000))
            let answer = try #require(try socket.receive(maximumBytes: 4096))
            let json = try answer.bytes.withUnsafeBytes { try JSONValue(parsing: $0) }
            #expect(json["error"]?["reason"]?.string == reason, "\(request)")
            #expect(socket.waitUntilReadable(until: MonotonicClock.now() + 20_000_000_000))
            #expect(try socket.receive(maximumBytes: 4096)?.isEnd == true)
        }
        let silent = try PacketSocket(connectingTo: path)
        #expect(silent.waitUntilReadable(until: MonotonicClock.now() + 20_000_000_000))
        let packet = try #require(try silent.receive(maximumBytes: 4096))
        let reader = try RingReader(try #require(packet.descriptor))
        #expect(reader.plan.description.rendition == "native")
        let json = try packet.bytes.withUnsafeBytes { try JSONValue(parsing: $0) }
        #expect(json["ring"]?.string == reader.plan.description.ring)
        #expect(json["size"] == JSONValue(reader.plan.size) && json["keep"] == JSONValue(reader.plan.description.keep))
        // What it says now means nothing.
        #expect(try silent.send(Array("nonsense".utf8)))
        guard case .frame = reader.wait(until: MonotonicClock.now() + 20_000_000_000) else {
            Issue.record("no frame")
            return
        }
    }

    @Test("a rendition that can't be made is reported")
    func impossible() throws {
        let worker = try fixture()
        let rings = try RingConnection(worker.room.directory, "cam0", "gray:1280x720")
        let error = #expect(throws: ClientError.self) { try rings.next(timeout: .seconds(20)) }
        #expect(error?.reason == .formatUnsupported)
        // It is told once.
        #expect(try rings.next(timeout: .milliseconds(1500)) == nil)
    }

    @Test("connections beyond the limit are closed, and places become free")
    func limits() async throws {
        let worker = try WorkerFixture {
            $0.connectionsPerUser = 2
        } _: {
            VirtualCamera(index: 0)
        }
        let path = worker.room.directory.ringSocket("cam0")
        var first: PacketSocket? = try PacketSocket(connectingTo: path)
        let second = try PacketSocket(connectingTo: path)
        let third = try PacketSocket(connectingTo: path)
        #expect(third.waitUntilReadable(until: MonotonicClock.now() + 20_000_000_000))
        #expect(try third.receive(maximumBytes: 100)?.isEnd == true)
        #expect(first != nil)
        first = nil
        // Its end and the next beginning are told to the worker in any order.
        try await eventually {
            let socket = try PacketSocket(connectingTo: path)
            guard socket.waitUntilReadable(until: MonotonicClock.now() + 3_000_000_000) else { return false }
            return try socket.receive(maximumBytes: 4096)?.descriptor != nil
        }
        withExtendedLifetime(second) {}
    }

    @Test("a stopped reader disturbs nobody")
    func stopped() throws {
        let worker = try fixture()
        let stopped = try RingConnection(worker.room.directory, "cam0")
        let first = try #require(try stopped.next(timeout: .seconds(20)))
        let other = try RingConnection(worker.room.directory, "cam0")
        let headers = try read(other, 40)
        #expect(headers.last.map { $0.sequence } ?? 0 >= 39)
        #expect(stopped.use(first) { _ in true } == nil)
        let next = try #require(try stopped.next(.newest, timeout: .seconds(20)))
        #expect(next.skipped >= 30)
        #expect(stopped.counters.late == 1 && stopped.counters.skipped >= 30)
    }
}
