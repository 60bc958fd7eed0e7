import BusProtocol
import JSON
import Testing
import Worker

@Suite("A camera that falls silent", .timeLimit(.minutes(5)))
struct SilenceTests {
    private let bench = TestBench()

    @Test("is opened anew, again and again, says so, and its frames come back by themselves")
    func silence() throws {
        let worker = try WorkerFixture(bench) { $0.silenceLimitMilliseconds = 300 }
        let subscriber = try worker.subscriber("frame/cam0/native/")
        let first = try subscriber.next { $0.topic == "frame/cam0/native/" && $0.header["error"] == nil }
        #expect(bench.now.starts == 1)
        bench.set { $0.isSilent = true }
        let told = try subscriber.next { $0.header["error"] != nil }
        #expect(told.header["error"]?["message"]?.string?.contains("no frame arrived for 300 ms") == true)
        #expect(told.header["error"]?["reason"] == "interrupted")
        #expect(told.header["error"]?["data"]?["interruption"] == "noFrames")
        let opened = { bench.now.calls.filter { $0 == "open" }.count }
        while opened() < 3 { _ = try subscriber.next { $0.header["error"] != nil } }
        bench.set { $0.isSilent = false }
        let back = try subscriber.next { $0.topic == "frame/cam0/native/" && $0.header["error"] == nil }
        #expect(back.header["stream"] != first.header["stream"])
        try worker.coordinator.waitForStatus("no error") { $0["error"] == .null && $0["isStreaming"] == true }
    }

    @Test("is left alone where no limit is set")
    func patience() throws {
        let worker = try WorkerFixture(bench) { $0.silenceLimitMilliseconds = 0 }
        bench.set { $0.isSilent = true }
        let subscriber = try worker.subscriber("heartbeat/", "frame/cam0/native/")
        try worker.coordinator.waitForStatus("streams") { $0["isStreaming"] == true }
        // Three heartbeats, a second each, are longer than any limit that might be set by mistake in this test.
        for _ in 0..<3 { _ = try subscriber.next { $0.topic == "heartbeat/" && $0.header["streaming"] == true } }
        #expect(bench.now.starts == 1)
    }
}
