import BusClient
import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureSources
import FrameRing
import JSON
import LinuxIO
import Testing

@testable import Worker

/// A microphone's sound in shared memory.
@Suite(.serialized, .timeLimit(.minutes(3))) struct SoundRingTests {
    private func fixture(_ change: (inout WorkerOptions) -> Void = { _ in }) throws -> WorkerFixture {
        try WorkerFixture(microphone: { VirtualMicrophone(index: 0) }, change)
    }

    private struct Period: Hashable {
        var header: SoundHeader
        var samples: [UInt8]
    }

    /// The next so many, which have to be whole.
    private func periods(_ rings: RingConnection, _ count: Int) throws -> [Period] {
        try (0..<count).map { _ in
            let frame = try #require(try rings.next(timeout: .seconds(20)))
            let header = try #require(rings.soundHeader(of: frame))
            return Period(header: header, samples: try #require(rings.use(frame) { Array($0) }))
        }
    }

    @Test("periods lie in the ring as messages bring them, one after the other")
    func periods() throws {
        let worker = try fixture()
        let topic = "audio/mic0/native/"
        let subscriber = try worker.subscriber(topic)
        let rings = try RingConnection(worker.room.directory, "mic0")
        let read = try periods(rings, 20)
        let message = try subscriber.next { delivery in
            delivery.topic == topic
                && read.contains { delivery.header["firstFrame"] == JSONValue($0.header.firstFrame) }
        }
        let same = try #require(read.first { message.header["firstFrame"] == JSONValue($0.header.firstFrame) })
        var told = try SoundHeader(message.header)
        #expect(same.samples == message.payload)
        // Each topic counts for itself.
        told.sequence = same.header.sequence
        #expect(same.header == told && told.frames * 4 == same.samples.count)
        for (before, after) in zip(read, read.dropFirst()) {
            #expect(after.header.sequence == before.header.sequence + 1)
            #expect(after.header.firstFrame == before.header.firstFrame + UInt64(before.header.frames))
        }
        let ring = try #require(rings.ring)
        #expect(ring.sound == .init(sampleFormat: "s16", rate: 48000, channels: 2, frameBytes: 4))
        #expect(rings.counters.skipped == 0 && rings.counters.unusable == 0)
        try worker.stop()
    }

    @Test("periods stay for two seconds")
    func keep() throws {
        let worker = try fixture()
        let rings = try RingConnection(worker.room.directory, "mic0")
        let period = try #require(try periods(rings, 1).first)
        let ring = try #require(rings.ring)
        #expect(ring.keep * period.header.frames >= 2 * period.header.rate)
        #expect(ring.slots * ring.slotBytes <= 16 << 20)
        try worker.stop()
    }

    @Test("a rendition has a ring of its own, whose numbers go on when somebody comes again")
    func rendition() throws {
        let worker = try fixture()
        // Somebody else keeps the stream running.
        let subscriber = try worker.subscriber("audio/mic0/native/")
        _ = try subscriber.next()
        var rings: RingConnection? = try RingConnection(worker.room.directory, "mic0", "f32:16000x1")
        let first = try periods(try #require(rings), 20)
        for (before, after) in zip(first, first.dropFirst()) {
            #expect(after.header.firstFrame == before.header.firstFrame + UInt64(before.header.frames))
            #expect(after.header.framesFit(in: after.samples.count) && after.header.rate == 16000)
        }
        let last = try #require(first.last).header
        rings = nil
        let again = try RingConnection(worker.room.directory, "mic0", "f32:16000x1")
        let next = try #require(try periods(again, 1).first).header
        #expect(next.stream == last.stream && next.sequence > last.sequence && next.firstFrame > last.firstFrame)
        try worker.stop()
    }

    @Test("a reader has the microphone listen, and its end ends that")
    func demand() throws {
        let worker = try fixture()
        let coordinator = try worker.coordinator
        var rings: RingConnection? = try RingConnection(worker.room.directory, "mic0")
        _ = try periods(try #require(rings), 2)
        try coordinator.waitForStatus("streaming") { $0["isStreaming"] == true }
        rings = nil
        try coordinator.waitForStatus("closed again") { $0["isOpen"] == false }
        try worker.stop()
    }

    @Test("a change of format closes the ring, and the next one comes on the same connection")
    func change() throws {
        let worker = try fixture()
        let coordinator = try worker.coordinator
        let rings = try RingConnection(worker.room.directory, "mic0")
        let before = try #require(try periods(rings, 1).first).header
        _ = try coordinator.order(.lock, fence: 3).get()
        let change: JSONValue = ["device": "mic0", "activeFormat": ["rate": 44100]]
        _ = try coordinator.order(
            .prepare(transaction: "t", change: change, path: "", mode: .exact), fence: 3
        ).get()
        _ = try coordinator.order(.apply(transaction: "t"), fence: 3).get()
        var now = before
        while now.stream == before.stream { now = try #require(try periods(rings, 1).first).header }
        #expect(now.rate == 44100 && now.generation == 1 && now.firstFrame == 0 && now.sequence == 0)
        try worker.stop()
    }

    @Test(
        "what can't be had is refused",
        arguments: [("s16:1000x1", "formatUnsupported"), ("nonsense", "invalidParams"), ("jpeg", "invalidParams")])
    func refusal(_ rendition: String, _ reason: String) throws {
        let worker = try fixture()
        let rings = try RingConnection(worker.room.directory, "mic0", rendition)
        let error = #expect(throws: ClientError.self) { _ = try rings.next(timeout: .seconds(20)) }
        guard case .refused(let refusal) = error else {
            Issue.record("\(error as Any)")
            return
        }
        #expect(refusal.reason.rawValue == reason)
        try worker.stop()
    }
}
