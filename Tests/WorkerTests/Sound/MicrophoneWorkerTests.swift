import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureSources
import JSON
import LinuxIO
import Testing
import Worker

/// A microphone's process, with a virtual one.
@Suite(.serialized, .timeLimit(.minutes(3))) struct MicrophoneWorkerTests {
    private func fixture(_ change: (inout WorkerOptions) -> Void = { _ in }) throws -> WorkerFixture {
        try WorkerFixture(microphone: { VirtualMicrophone(index: 0) }, change)
    }

    private static let sound = "audio/mic0/native/"

    @Test("it is opened once at its start, described, and closed; opened again when somebody wants it")
    func life() throws {
        let worker = try fixture()
        let coordinator = try worker.coordinator
        _ = try coordinator.wait("the description") { if case .description = $0 { true } else { false } }
        #expect(coordinator.description["mediaType"] == "audio")
        #expect(coordinator.description["formats"]?.array?.isEmpty == false)
        try coordinator.waitForStatus("closed") { $0["isOpen"] == false && $0["activeFormat"]?["rate"] == 48000 }
        let subscriber = try worker.subscriber(Self.sound)
        _ = try subscriber.next { $0.topic == Self.sound }
        try coordinator.waitForStatus("streaming") { $0["isStreaming"] == true }
        try subscriber.unsubscribe(Self.sound)
        try coordinator.waitForStatus("closed again") { $0["isOpen"] == false }
        #expect(try worker.stop() == 0)
    }

    @Test("each period is a message with the header of its first frame")
    func header() throws {
        let worker = try fixture()
        let subscriber = try worker.subscriber(Self.sound)
        let first = try subscriber.next { $0.topic == Self.sound }
        let second = try subscriber.next { $0.topic == Self.sound }
        let header = try SoundHeader(first.header)
        #expect(header.device == "mic0" && header.sampleFormat == "s16" && header.channels == 2)
        #expect(header.framesFit(in: first.payload.count) && first.payload.count > 0)
        let next = try SoundHeader(second.header)
        #expect(next.sequence == header.sequence + 1)
        #expect(next.firstFrame == header.firstFrame + UInt64(header.frames) && next.stream == header.stream)
        try worker.stop()
    }

    @Test("a level alone has the microphone listen, and comes by the sound's own time")
    func level() throws {
        let worker = try fixture()
        let subscriber = try worker.subscriber("level/mic0/")
        let first = try SoundLevel(try subscriber.next { $0.topic == "level/mic0/" }.header)
        let second = try SoundLevel(try subscriber.next { $0.topic == "level/mic0/" }.header)
        #expect(second.sequence == first.sequence + 1)
        #expect(abs(second.monotonic - first.monotonic - 100_000_000) < 2_000_000)
        try worker.stop()
    }

    @Test("renditions are made beside one another, each with its numbers, and anew when somebody comes again")
    func renditions() throws {
        let worker = try fixture()
        let (other, bare) = ("audio/mic0/f32:16000x1/", "audio/mic0/s16:48000x2/")
        let subscriber = try worker.subscriber(other, bare, Self.sound)
        let made = try SoundHeader(try subscriber.next { $0.topic == other }.header)
        #expect(made.rendition == "f32:16000x1" && made.sampleFormat == "f32" && made.rate == 16000)
        var last = made
        for _ in 0..<20 {
            let message = try subscriber.next { $0.topic == other }
            let header = try SoundHeader(message.header)
            #expect(header.sequence == last.sequence + 1 && header.stream == made.stream && header.channels == 1)
            #expect(header.firstFrame == last.firstFrame + UInt64(last.frames))
            #expect(header.framesFit(in: message.payload.count) && header.frames > 0)
            let expected = made.monotonic + Int64(header.firstFrame - made.firstFrame) * 1_000_000_000 / 16000
            #expect(abs(header.monotonic - expected) < 1_000_000)
            last = header
        }
        // One that is the sound as it comes is the microphone's own bytes.
        let same = try subscriber.next { $0.topic == bare }
        let native = try subscriber.next {
            $0.topic == Self.sound && $0.header["firstFrame"] == same.header["firstFrame"]
        }
        #expect(same.payload == native.payload && same.header["sampleFormat"] == "s16")
        try subscriber.unsubscribe(other)
        let again = try worker.subscriber(other)
        let header = try SoundHeader(try again.next { $0.topic == other }.header)
        #expect(header.stream == made.stream && header.sequence > last.sequence && header.firstFrame > last.firstFrame)
        try worker.stop()
    }

    @Test("a connection's fifth rendition is refused, and made after another of its own has ended")
    func fifth() throws {
        let worker = try fixture()
        let topics = (1...5).map { "audio/mic0/f32:\($0 * 4000)x1/" }
        let reader = try worker.subscriber(topics[0], topics[1], topics[2], topics[3])
        for topic in topics.prefix(4) { _ = try reader.next { $0.topic == topic && $0.header["error"] == nil } }
        try reader.subscribe(topics[4])
        let refusal = try reader.next { $0.topic == topics[4] }
        #expect(refusal.header["error"]?["reason"] == "limitExceeded")
        try reader.unsubscribe(topics[3])
        _ = try reader.next { $0.topic == topics[4] && $0.header["error"] == nil }
        try worker.stop()
    }

    @Test(
        "what can't be had is refused on its topic",
        arguments: [
            ("audio/mic0/s16:1000x1/", "formatUnsupported"), ("audio/mic0/f32:48000x9/", "formatUnsupported"),
            ("audio/mic0/nonsense/", "invalidParams"),
            ("frame/mic0/native/", "formatUnsupported"),
        ])
    func refusal(_ topic: String, _ reason: String) throws {
        let worker = try fixture()
        let subscriber = try worker.subscriber(topic)
        let answer = try subscriber.next { $0.topic == topic }
        #expect(answer.header["error"]?["reason"]?.string == reason && answer.payload.isEmpty)
        try worker.stop()
    }

    @Test("a change is checked, made under its fence, told with its generation, and can be taken back")
    func change() throws {
        let worker = try fixture()
        let coordinator = try worker.coordinator
        let change: JSONValue = ["device": "mic0", "activeFormat": ["rate": 44100], "controls": ["gain": -600]]
        _ = try coordinator.order(.lock, fence: 3).get()
        let prepared = try coordinator.order(
            .prepare(transaction: "t", change: change, path: "", mode: .exact), fence: 3
        ).get()
        #expect(prepared["activeFormat"]?["rate"] == 44100)
        guard case .failure(let unlocked) = try coordinator.order(.apply(transaction: "t")) else {
            Issue.record("changed without a fence")
            return
        }
        #expect(unlocked.reason == .lockRequired)
        let applied = try coordinator.order(.apply(transaction: "t"), fence: 3).get()
        #expect(applied["generation"] == 1 && applied["controls"] == ["gain": -600])
        let subscriber = try worker.subscriber(Self.sound)
        let sound = try subscriber.next { $0.topic == Self.sound }
        #expect(sound.header["rate"] == 44100 && sound.header["generation"] == 1)
        _ = try coordinator.order(.rollBack(transaction: "t"), fence: 3).get()
        try coordinator.waitForStatus("taken back") {
            $0["activeFormat"]?["rate"] == 48000 && $0["controls"]?["gain"] == 0 && $0["generation"] == 2
        }
        _ = try subscriber.next { $0.header["rate"] == 48000 }
        guard case .failure(let stale) = try coordinator.order(.lock, fence: 2) else {
            Issue.record("locked under a lower fence")
            return
        }
        #expect(stale.reason == .lockLost)
        try worker.stop()
    }

    @Test("what was committed is put back by the next process")
    func restored() throws {
        let committed: JSONValue = [
            "generation": 7,
            "activeFormat": ["sampleFormat": "s16", "rate": 44100, "channels": 1, "periodFrames": 441],
            "controls": [["name": "mute", "value": true]],
        ]
        let worker = try fixture { $0.configuration = committed }
        try worker.coordinator.waitForStatus("put back") {
            $0["activeFormat"]?["rate"] == 44100 && $0["controls"]?["mute"] == true && $0["generation"] == 7
        }
        try worker.stop()
    }

    @Test("a subscriber that reads nothing costs the others nothing")
    func slow() throws {
        let worker = try fixture()
        let stopped = try worker.subscriber(Self.sound, highWaterMark: 1)
        let reader = try worker.subscriber(Self.sound)
        var continuity = SoundContinuity()
        // More than is kept for one that does not read.
        for _ in 0..<150 {
            let header = try SoundHeader(try reader.next { $0.topic == Self.sound }.header)
            #expect(
                continuity.receive(
                    stream: header.stream, sequence: header.sequence, firstFrame: header.firstFrame,
                    frames: header.frames) == 0)
        }
        // It finds a hole, and then the present.
        _ = try stopped.next { $0.topic == Self.sound }
        try worker.stop()
    }

    @Test("the heartbeat tells of the stream")
    func heartbeat() throws {
        let worker = try fixture()
        let subscriber = try worker.subscriber(Self.sound, "heartbeat/")
        let beat = try subscriber.next { $0.topic == "heartbeat/" && $0.header["streaming"] == true }
        #expect(beat.header["device"] == "mic0" && beat.header["lastFrame"]?.integer != nil)
        try worker.stop()
    }
}
