import BusProtocol
import CaptureCore
import CaptureSources
import Delivery
import JSON
import LinuxIO
import Logging
import Testing

@testable import Worker

@Suite("A worker with a camera in memory", .serialized, .timeLimit(.minutes(5)))
struct WorkerTests {
    private let bench = TestBench()

    @Test("says hello, describes its device, tells how it is, and closes what nobody wants")
    func start() throws {
        let worker = try WorkerFixture(bench)
        try worker.coordinator.waitForStatus("closed") { $0["isOpen"] == true }
        #expect(try worker.coordinator.waitForDescription()["identity"]?["uniqueID"] == "test-0")
        #expect(try worker.coordinator.waitForDescription()["formats"]?.array?.count == 2)
        let status = try worker.coordinator.waitForStatus("closed") { $0["isOpen"] == false }
        #expect(status["isStreaming"] == false)
        #expect(status["stream"] == .null)
        #expect(status["activeFormat"]?["id"] == "f0")
        #expect(status["frameDuration"] == "1/100")
        #expect(status["frameRate"] == 100)
        #expect(status["generation"] == 0)
        #expect(status["controls"]?["brightness"] == 50)
        #expect(status["asOf"]?.integer != nil)
        #expect(!bench.now.isOpen)
        #expect(try worker.stop() == 0)
        #expect(!UnixSocket.isLive(worker.room.directory.mediaSocket("cam0")))
    }

    @Test("frames come with rising counters that are those in the pixels")
    func frames() throws {
        let worker = try WorkerFixture(bench)
        let subscriber = try worker.subscriber("frame/cam0/native/")
        var last: Delivery?
        for _ in 0..<20 {
            let frame = try subscriber.next { $0.topic == "frame/cam0/native/" }
            let header = try FrameHeader(frame.header)
            #expect(header.device == "cam0")
            #expect(header.rendition == "native")
            #expect(header.format == "YUYV")
            #expect(header.width == 64 && header.height == 48)
            #expect(header.planes == [.init(offset: 0, stride: 128, bytes: 6144)])
            #expect(header.timestampSource == "endOfFrame")
            #expect(frame.payload.count == 6144)
            #expect(number(in: frame.payload) == header.captureSequence)
            #expect(abs(header.realtime - MonotonicClock.realtime()) < 5_000_000_000)
            if let last {
                let previous = try FrameHeader(last.header)
                #expect(header.stream == previous.stream)
                #expect(header.sequence > previous.sequence)
                #expect(header.monotonic > previous.monotonic)
            } else {
                #expect(header.stream.utf8.count == 16)
            }
            last = frame
        }
    }

    @Test("the device streams as long as somebody subscribes, then stops, and closes after the idle time")
    func unsubscribe() throws {
        let worker = try WorkerFixture(bench)
        let subscriber = try worker.subscriber("frame/cam0/native/")
        let other = try worker.subscriber("frame/cam0/native/")
        let first = try subscriber.next { $0.topic == "frame/cam0/native/" }
        let status = try worker.coordinator.waitForStatus("streaming") { $0["isStreaming"] == true }
        #expect(status["stream"] == first.header["stream"])
        try subscriber.unsubscribe("frame/cam0/native/")
        _ = try other.next { $0.topic == "frame/cam0/native/" && $0.header["sequence"]?.integer ?? 0 > 50 }
        try other.unsubscribe("frame/cam0/native/")
        try worker.coordinator.waitForStatus("stopped") { $0["isStreaming"] == false && $0["isOpen"] == true }
        try worker.coordinator.waitForStatus("closed") { $0["isOpen"] == false }
        #expect(bench.now.slotsOut == 0)
        try subscriber.subscribe("frame/cam0/native/")
        let again = try subscriber.next { $0.topic == "frame/cam0/native/" }
        #expect(again.header["stream"] != first.header["stream"])
        #expect(again.header["sequence"] == 0)
    }

    @Test("a topic that comes back within the stream goes on counting")
    func comesBack() throws {
        let worker = try WorkerFixture(bench)
        let other = try worker.subscriber("frame/cam0/native/")
        _ = try other.next { $0.topic == "frame/cam0/native/" }
        let topic = "frame/cam0/native@50/"
        let subscriber = try worker.subscriber(topic)
        let before = try FrameHeader(
            try subscriber.next { $0.topic == topic && $0.header["sequence"]?.integer ?? 0 > 10 }.header)
        try subscriber.unsubscribe(topic)
        _ = try worker.coordinator.wait("one rendition") {
            if case .alive(let counters) = $0 { counters["renditions"]?.object?.count == 1 } else { false }
        }
        try subscriber.subscribe(topic)
        let after = try FrameHeader(
            try subscriber.next {
                $0.topic == topic && $0.header["captureSequence"]?.integer ?? 0 > Int64(before.captureSequence) + 50
            }
            .header)
        #expect(after.stream == before.stream)
        #expect(after.sequence > before.sequence)
    }

    @Test("a subscriber that is gone without a word ends the stream as well")
    func goneSubscriber() throws {
        let worker = try WorkerFixture(bench)
        do {
            let subscriber = try worker.subscriber("frame/cam0/native/")
            _ = try subscriber.next { $0.topic == "frame/cam0/native/" }
        }
        try worker.coordinator.waitForStatus("closed") { $0["isOpen"] == false }
    }

    @Test("a prefix sees what others asked for, and starts nothing")
    func prefix() throws {
        let worker = try WorkerFixture(bench)
        try worker.coordinator.waitForStatus("closed") { $0["isOpen"] == true }
        try worker.coordinator.waitForStatus("closed") { $0["isOpen"] == false }
        let watcher = try worker.subscriber("frame/")
        bench.clearCalls()
        _ = try worker.coordinator.wait("a second") { if case .alive = $0 { true } else { false } }
        #expect(bench.now.calls == [])
        let subscriber = try worker.subscriber("frame/cam0/native@50/")
        _ = try subscriber.next { $0.topic == "frame/cam0/native@50/" }
        #expect(try watcher.next().topic == "frame/cam0/native@50/")
    }

    @Test("a heartbeat a second tells a silent camera from a silent bus")
    func heartbeat() throws {
        let worker = try WorkerFixture(bench)
        let subscriber = try worker.subscriber("heartbeat/", "frame/cam0/native/")
        let frame = try subscriber.next { $0.topic == "frame/cam0/native/" }
        let beat = try subscriber.next { $0.topic == "heartbeat/" && $0.header["streaming"] == true }.header
        #expect(beat["device"] == "cam0")
        #expect(beat["stream"] == frame.header["stream"])
        #expect(try #require(beat["lastFrame"]?.integer) <= (try #require(beat["monotonic"]?.integer)))
        #expect(try #require(beat["frames"]?.integer) > 0)
    }

    @Test("a rate is kept by leaving frames out, which are not counted as dropped")
    func rate() throws {
        let worker = try WorkerFixture(bench)
        let subscriber = try worker.subscriber("frame/cam0/native@10/")
        let first = try FrameHeader(try subscriber.next { $0.topic == "frame/cam0/native@10/" }.header)
        var last = first
        for _ in 0..<5 {
            let next = try FrameHeader(try subscriber.next { $0.topic == "frame/cam0/native@10/" }.header)
            #expect(next.sequence > last.sequence)
            last = next
        }
        #expect(last.captureSequence >= first.captureSequence + 40)
        #expect(last.dropped == 0)
    }

    @Test("damaged frames are dropped and counted")
    func damaged() throws {
        let worker = try WorkerFixture(bench)
        bench.set { $0.damagedFrames = 5 }
        let subscriber = try worker.subscriber("frame/cam0/native/")
        let frame = try FrameHeader(try subscriber.next { $0.topic == "frame/cam0/native/" }.header)
        #expect(frame.sequence == 0)
        #expect(frame.captureSequence >= 6)
        #expect(frame.dropped == 5)
    }

    @Test("an impossible rendition reports its reason once a second on its own topic, also without shared memory")
    func impossible() throws {
        let worker = try WorkerFixture(bench)
        let topics = ["frame/cam0/png/", "buffer/cam0/jpeg:4000x3000/", "audio/cam0/s16/", "level/cam0/"]
        let subscriber = try worker.subscriber(topics[0], topics[1], topics[2], topics[3])
        for (index, topic) in topics.enumerated() {
            let reason = index == 0 ? "invalidParams" : "formatUnsupported"
            for _ in 0..<2 {
                let delivery = try subscriber.next(topic) { $0.topic == topic }
                #expect(delivery.payload.isEmpty)
                #expect(delivery.header["v"] == 1)
                #expect(delivery.header["device"] == "cam0")
                let rendition = delivery.header["rendition"]?.string
                #expect(rendition == (index == 3 ? "" : topic.split(separator: "/").last.map(String.init)))
                #expect(delivery.header["error"]?["reason"]?.string == reason)
            }
        }
    }

    @Test("impossible renditions are refused before the first frame of the possible ones")
    func refusedAtTheStart() throws {
        let worker = try WorkerFixture(bench)
        let subscriber = try worker.subscriber("heartbeat/")
        // It may come before it is known that the subscriptions are in force.
        let early = try subscriber.answers(to: "frame/cam0/jpeg:4000x3000/", "frame/cam0/native/")
        func isFrame(_ delivery: Delivery) -> Bool { delivery.topic.hasPrefix("frame/") }
        let first = try early.first(where: isFrame) ?? subscriber.next(where: isFrame)
        #expect(first.topic == "frame/cam0/jpeg:4000x3000/")
        #expect(first.header["error"]?["reason"] == "formatUnsupported")
    }

    @Test(
        "who subscribes to what can't be had while the device streams is told at once, also as the second one",
        arguments: ["png", "jpeg:4000x3000"])
    func refusedWhileStreaming(rendition: String) throws {
        let worker = try WorkerFixture(bench)
        let first = try worker.subscriber("frame/cam0/native/", "heartbeat/")
        _ = try first.next { $0.topic == "frame/cam0/native/" }
        for subscriber in [first, try worker.subscriber("heartbeat/")] {
            #expect(try refusal(of: "frame/cam0/\(rendition)/", subscriber) != nil)
        }
    }

    @Test("a device that can't be started says so as soon as it is known")
    func failureAtOnce() throws {
        bench.set { $0.startFailure = SourceError(.inUse, operation: "VIDIOC_STREAMON", message: "busy") }
        let worker = try WorkerFixture(bench)
        let subscriber = try worker.subscriber("heartbeat/")
        #expect(try refusal(of: "frame/cam0/native/", subscriber) == "deviceInUse")
    }

    // What is told again and again comes after each heartbeat: what comes between two is told at once.
    private func refusal(of topic: String, _ subscriber: Subscriber) throws -> String? {
        // On a busy machine the next heartbeat may come in between.
        for _ in 0..<5 {
            if let reason = try firstAnswer(to: topic, subscriber) { return reason }
            try subscriber.unsubscribe(topic)
        }
        return nil
    }

    private func firstAnswer(to topic: String, _ subscriber: Subscriber) throws -> String? {
        _ = try subscriber.next { $0.topic == "heartbeat/" }
        // Past the round that comes with this one.
        _ = try subscriber.answers(to: "frame/nothing/")
        let before = try subscriber.answers(to: topic)
        func isAnswer(_ delivery: Delivery) -> Bool {
            delivery.topic == "heartbeat/" || delivery.topic == topic && delivery.header["error"] != nil
        }
        let answer = try before.first(where: isAnswer) ?? subscriber.next(where: isAnswer)
        return answer.header["error"]?["reason"]?.string
    }

    @Test("the ninth rendition is refused, and made after another has ended")
    func tooMany() throws {
        let worker = try WorkerFixture(bench)
        let renditions = (1...9).map { "native@\($0 * 10)" }
        // One connection gets half of them.
        let subscribers = try [worker.subscriber(), worker.subscriber(), worker.subscriber()]
        for (index, rendition) in renditions.enumerated() {
            try subscribers[index / 4].subscribe("frame/cam0/\(rendition)/")
        }
        let refused = try subscribers[2].next { $0.header["error"] != nil }
        #expect(refused.topic == "frame/cam0/native@90/")
        #expect(refused.header["error"]?["reason"] == "limitExceeded")
        for (index, rendition) in renditions.dropLast().enumerated() {
            _ = try subscribers[index / 4].next(rendition) {
                $0.topic == "frame/cam0/\(rendition)/" && $0.header["error"] == nil
            }
        }
        try subscribers[0].unsubscribe("frame/cam0/native@10/")
        _ = try subscribers[2].next { $0.topic == "frame/cam0/native@90/" && $0.header["error"] == nil }
    }

    @Test("one connection gets half of the renditions, and native and jpeg besides")
    func share() throws {
        let worker = try WorkerFixture(bench)
        let subscriber = try worker.subscriber()
        for rendition in (1...5).map({ "native@\($0 * 10)" }) + ["native", "jpeg"] {
            try subscriber.subscribe("frame/cam0/\(rendition)/")
        }
        let refused = try subscriber.next { $0.header["error"] != nil }
        #expect(refused.topic == "frame/cam0/native@50/")
        #expect(refused.header["error"]?["data"]?["maximum"] == 4)
        for rendition in ["native@40", "native", "jpeg"] {
            _ = try subscriber.next(rendition) {
                $0.topic == "frame/cam0/\(rendition)/" && $0.header["error"] == nil
            }
        }
    }

    @Test("a subscriber that reads nothing costs the others nothing")
    func stoppedSubscriber() throws {
        let worker = try WorkerFixture(bench)
        let stopped = try worker.subscriber("frame/cam0/native/", highWaterMark: 1)
        let subscriber = try worker.subscriber("frame/cam0/native/", highWaterMark: 1000)
        let first = try FrameHeader(try subscriber.next { $0.topic == "frame/cam0/native/" }.header).sequence
        var last = first
        for _ in 0..<300 {
            last = try FrameHeader(try subscriber.next { $0.topic == "frame/cam0/native/" }.header).sequence
        }
        // Some may be lost to a busy machine; what the stopped one would take with it is all but a few.
        #expect(last - first < 330)
        withExtendedLifetime(stopped) {}
    }

    @Test("who never subscribed can't end the frames of others")
    func spuriousUnsubscription() throws {
        let worker = try WorkerFixture(bench)
        let subscriber = try worker.subscriber("frame/cam0/native/", highWaterMark: 1000)
        _ = try subscriber.next { $0.topic == "frame/cam0/native/" }
        let stranger = try RawSubscriber(worker.room.directory.mediaSocket("cam0"))
        try stranger.send([0] + Array("frame/cam0/native/".utf8))
        try stranger.send([1] + Array("frame/cam0/native@1/".utf8))
        // The worker has read both when it makes what the second asks for.
        _ = try worker.coordinator.wait("the second wish") {
            if case .alive(let counters) = $0 { counters["renditions"]?["native@1"] != nil } else { false }
        }
        let now = try #require(
            try subscriber.next { $0.topic == "heartbeat/" || $0.header["sequence"] != nil }.header["sequence"]?.integer
        )
        _ = try subscriber.next { $0.header["sequence"]?.integer ?? 0 > now + 200 }
    }

    @Test("a device that can't be opened or started says why to its subscribers, and is tried again")
    func failures() throws {
        bench.set { $0.startFailure = SourceError(.inUse, operation: "VIDIOC_STREAMON", message: "busy") }
        let worker = try WorkerFixture(bench)
        let subscriber = try worker.subscriber("frame/cam0/native/")
        let refused = try subscriber.next { $0.header["error"] != nil }
        #expect(refused.topic == "frame/cam0/native/")
        #expect(refused.header["error"]?["reason"] == "deviceInUse")
        let status = try worker.coordinator.waitForStatus("error") { $0["error"] != .null }
        #expect(status["error"]?["reason"] == "deviceInUse")
        bench.set { $0.startFailure = nil }
        _ = try subscriber.next { $0.header["error"] == nil && $0.topic == "frame/cam0/native/" }
        try worker.coordinator.waitForStatus("no error") { $0["error"] == .null && $0["isStreaming"] == true }

        bench.set { $0.streamFailure = SourceError(.disconnected, operation: "VIDIOC_DQBUF", message: "gone") }
        try worker.coordinator.waitForStatus("lost") { $0["error"]?["reason"] == "deviceDisconnected" }
        bench.set { $0.streamFailure = nil }
        let stream = try worker.coordinator.waitForStatus("back") { $0["isStreaming"] == true && $0["error"] == .null }
        _ = try subscriber.next { $0.header["stream"] == stream["stream"] }
    }

    @Test("a first opening that fails is tried again though nobody asks")
    func probeAgain() throws {
        bench.set { $0.openFailure = SourceError(.notPermitted, operation: "open", message: "no") }
        let worker = try WorkerFixture(bench)
        try worker.coordinator.waitForStatus("error") { $0["error"]?["reason"] == "unauthorized" }
        bench.set { $0.openFailure = nil }
        try worker.coordinator.waitForStatus("open") { $0["isOpen"] == true && $0["error"] == .null }
    }

    @Test("a second worker for the same device does not start")
    func secondWorker() throws {
        let worker = try WorkerFixture(bench)
        let error = #expect(throws: StartError.self) {
            _ = try Worker(
                WorkerOptions(device: "cam0", runtimeDirectory: worker.room.directory.path), source: TestSource(bench),
                logger: .init(label: "test"))
        }
        #expect(error?.ending == .deviceTaken)
        let subscriber = try worker.subscriber("frame/cam0/native/")
        _ = try subscriber.next { $0.topic == "frame/cam0/native/" }
    }

    private func number(in payload: [UInt8]) -> UInt64 {
        payload.prefix(4).reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
}
