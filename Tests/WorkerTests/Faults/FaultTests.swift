import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureSources
import JSON
import LinuxIO
import Testing

@testable import Worker

@Suite("Faults of a virtual camera, as the bus sees them", .serialized, .timeLimit(.minutes(5)))
struct FaultTests {
    private func fixture(_ change: (inout WorkerOptions) -> Void = { _ in }) throws -> WorkerFixture {
        try WorkerFixture {
            $0.configuration = [
                "generation": 1, "frameDuration": "1/60", "controls": [["name": "brightness", "value": 9]],
                "activeFormat": ["pixelFormat": "YUYV", "width": 320, "height": 240],
            ]
            change(&$0)
        } _: {
            VirtualCamera(index: 0)
        }
    }

    private static let topic = "frame/cam0/native/"

    private func reason(_ json: JSONValue) -> String? { json["error"]?["reason"]?.string }

    @Test("an unplugged camera is told as disconnected, and is set as it was when it is back")
    func unplug() throws {
        let worker = try fixture()
        let subscriber = try worker.subscriber(Self.topic)
        _ = try subscriber.next { $0.topic == Self.topic && $0.header["error"] == nil }
        #expect(try worker.coordinator.order(.fault(["fault": "unplug"])).get() == [:])
        _ = try worker.coordinator.waitForStatus("disconnected") { reason($0) == "deviceDisconnected" }
        let told = try subscriber.next { $0.header["error"] != nil }
        #expect(reason(told.header) == "deviceDisconnected")
        #expect(try worker.coordinator.order(.fault(["fault": "replug"])).get() == [:])
        let frame = try subscriber.next { $0.topic == Self.topic && $0.header["error"] == nil }
        #expect(frame.header["format"] == "YUYV" && frame.header["width"] == 320)
        _ = try worker.coordinator.waitForStatus("connected") { reason($0) == nil && $0["isStreaming"] == true }
    }

    @Test("a camera that nobody uses is missed too, and comes back by itself after its time")
    func unplugIdle() throws {
        let worker = try fixture()
        _ = try worker.coordinator.waitForStatus("closed") { $0["isOpen"] == false && reason($0) == nil }
        _ = try worker.coordinator.order(.fault(["fault": "unplug", "milliseconds": 1500])).get()
        _ = try worker.coordinator.waitForStatus("disconnected") { reason($0) == "deviceDisconnected" }
        _ = try worker.coordinator.waitForStatus("connected") { reason($0) == nil }
    }

    @Test("no room on the bus is limitExceeded, until there is room")
    func noSpace() throws {
        let worker = try fixture()
        _ = try worker.coordinator.order(.fault(["fault": "noSpace"])).get()
        let subscriber = try worker.subscriber(Self.topic)
        let told = try subscriber.next { $0.header["error"] != nil }
        #expect(reason(told.header) == "limitExceeded")
        #expect(told.header["error"]?["data"]?["limit"] == "deviceResources")
        _ = try worker.coordinator.order(.fault(["fault": "none"])).get()
        _ = try subscriber.next { $0.topic == Self.topic && $0.header["error"] == nil }
    }

    @Test("damaged frames are counted, and reach nobody")
    func corrupt() throws {
        let worker = try fixture()
        let subscriber = try worker.subscriber(Self.topic, "heartbeat/")
        _ = try subscriber.next { $0.topic == Self.topic }
        _ = try worker.coordinator.order(.fault(["fault": "corrupt", "frames": 5])).get()
        _ = try subscriber.next("the heartbeat") { $0.header["damaged"] == 5 }
    }

    @Test("a script's faults come at their times, and what became of them is told")
    func script() throws {
        let worker = try fixture()
        let steps: JSONValue = [
            ["at": 3000, "fault": "replug"], ["at": 50, "fault": "unplug"],
            ["at": 3100, "fault": "refuse", "control": "nothing"],
        ]
        let started = try worker.coordinator.order(.fault(["script": steps])).get()["started"]?.integer
        _ = try worker.coordinator.waitForStatus("disconnected") { reason($0) == "deviceDisconnected" }
        #expect(MonotonicClock.now() - (started ?? 0) >= 50_000_000)
        _ = try worker.coordinator.waitForStatus("connected") { reason($0) == nil }
        #expect(MonotonicClock.now() - (started ?? 0) >= 3_000_000_000)
        let deadline = MonotonicClock.now() + 10_000_000_000
        while true {
            let script = try worker.coordinator.order(.fault(["list": true])).get()["script"]
            let states = script?["steps"]?.array?.compactMap { $0["state"]?.string }
            #expect(script?["steps"]?.array?.compactMap { $0["at"]?.integer } == [50, 3000, 3100])
            if script?["isRunning"] == false, states == ["done", "done", "failed"] { break }
            try #require(MonotonicClock.now() < deadline, "\(script ?? .null)")
        }
    }

    @Test("a script that is cancelled, or replaced, does nothing more")
    func cancel() throws {
        let worker = try fixture()
        let later: JSONValue = ["script": [["at": 3_600_000, "fault": "crash"]]]
        _ = try worker.coordinator.order(.fault(later)).get()
        #expect(try worker.coordinator.order(.fault(["cancel": true])).get()["cancelled"] == true)
        #expect(try worker.coordinator.order(.fault(["cancel": true])).get()["cancelled"] == false)
        #expect(try worker.coordinator.order(.fault(["list": true])).get()["script"] == .null)
    }

    @Test("a script begins with the process where it was told so")
    func configured() throws {
        let worker = try fixture { $0.faults = [["at": 100, "fault": "unplug"]] }
        _ = try worker.coordinator.waitForStatus("disconnected") { reason($0) == "deviceDisconnected" }
    }

    private static let wrongSteps: [(step: JSONValue, path: String)] = [
        (["fault": "stall"], "at"), (["at": -1, "fault": "stall"], "at"), (["at": 1, "fault": "slow"], "milliseconds"),
        (["at": 1, "fault": "rate"], "percent"), (["at": 1, "fault": "explode"], "fault"),
        (["at": 1, "fault": "drift", "partsPerMillion": 1_000_000], "partsPerMillion"),
        (["at": 1, "fault": "pressure"], "level"), (["at": 1, "fault": "pressure", "level": "high"], "level"),
    ]

    @Test("a wrong step is refused with its place")
    func wrong() throws {
        for (step, path) in Self.wrongSteps {
            do throws(BusError) {
                _ = try FaultScript(json: [["at": 0, "fault": "none"], step], at: 0)
                Issue.record("\(step) was taken")
            } catch {
                #expect(error.data["path"]?.string == "steps[1].\(path)")
            }
        }
    }

    @Test("steps are due once each, in the order of their times")
    func due() throws {
        var script = try FaultScript(
            json: [["at": 20, "fault": "replug"], ["at": 10, "fault": "unplug"], ["at": 10, "fault": "none"]], at: 1000)
        #expect(script.nextTime == 10_001_000)
        #expect(script.due(at: 10_000_999) == [])
        #expect(script.due(at: 10_001_000) == [0, 1])
        #expect(script.steps.map(\.fault) == [.unplug, .none, .replug])
        #expect(script.due(at: Int64.max) == [2])
        #expect(script.nextTime == nil && script.due(at: Int64.max) == [])
    }
}
