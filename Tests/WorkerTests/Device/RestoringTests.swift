import BusProtocol
import CaptureCore
import CaptureSources
import Glibc
import JSON
import Testing

@testable import Worker

/// What a worker does with a configuration that was committed before it, and with those who change it.
@Suite("Settings that stick", .serialized, .timeLimit(.minutes(5)))
struct RestoringTests {
    let bench = TestBench()

    func committed(_ controls: [(String, JSONValue)], format: (Int, Int) = (64, 48)) -> JSONValue {
        [
            "generation": 7,
            "activeFormat": ["pixelFormat": "YUYV", "width": JSONValue(format.0), "height": JSONValue(format.1)],
            "frameDuration": "1/100",
            "controls": .array(controls.map { ["name": .string($0.0), "value": $0.1] }),
        ]
    }

    func worker(
        _ configuration: JSONValue?, _ change: (inout WorkerOptions) -> Void = { _ in }
    ) throws -> WorkerFixture {
        try WorkerFixture(bench) {
            $0.configuration = configuration
            // Events come while it is open.
            $0.idleCloseMilliseconds = 60_000
            change(&$0)
        }
    }

    func set(_ worker: WorkerFixture, _ controls: JSONValue, fence: UInt64 = 1) throws {
        let change: JSONValue = ["device": "cam0", "controls": controls]
        let order = { (action: WorkerOrder.Action) in try worker.coordinator.order(action, fence: fence).get() }
        _ = try order(.prepare(transaction: "t", change: change, path: "", mode: .exact))
        _ = try order(.apply(transaction: "t"))
        _ = try order(.finish(transaction: "t"))
    }

    func event(_ worker: WorkerFixture, _ cause: String) throws -> [String: JSONValue] {
        let report = try worker.coordinator.wait("an event of cause \(cause)") {
            if case .event("controlsChanged", let members) = $0 { members["cause"]?.string == cause } else { false }
        }
        guard case .event(_, let members) = report else { return [:] }
        return members
    }

    @Test("a format that stands in for another holds while the device is open, and is not put back")
    func standIn() throws {
        let change: JSONValue = ["device": "cam0", "activeFormat": "f0"]
        let prepare = WorkerOrder.Action.prepare(
            transaction: "t", change: change, path: "", mode: .exact, isStandIn: true)
        let order = WorkerOrder(number: 1, fence: 1, action: prepare)
        #expect(WorkerOrder(json: order.json) == order)
        let kept: JSONValue
        do {
            let worker = try worker(committed([], format: (32, 24))) { $0.idleCloseMilliseconds = 50 }
            let subscriber = try worker.subscriber("frame/cam0/native/")
            _ = try subscriber.next { $0.header["width"] == 32 }
            for action in [prepare, .apply(transaction: "t"), .finish(transaction: "t")] {
                _ = try worker.coordinator.order(action, fence: 1).get()
            }
            // The start reads what is committed, too.
            _ = try subscriber.next { $0.header["width"] == 64 }
            kept = try #require(try worker.coordinator.status["committed"])
            try subscriber.unsubscribe("frame/cam0/native/")
            try worker.coordinator.waitForStatus("closed") { $0["isOpen"] == false }
            try subscriber.subscribe("frame/cam0/native/")
            _ = try subscriber.next { $0.header["width"] == 32 }
            try worker.coordinator.waitForStatus("as asked") { $0["committed"]?["activeFormat"]?["width"] == 32 }
            try worker.stop()
        }
        #expect(kept["activeFormat"]?["width"] == 64)
        let worker = try worker(kept)
        let status = try worker.coordinator.waitForStatus("open") { $0["isOpen"] == true }
        #expect(status["activeFormat"]?["width"] == 32)
    }

    @Test("a rate that is asked for while a format stands in for another is put back with that other")
    func rateOfStandIn() throws {
        let worker = try worker(committed([], format: (32, 24))) { $0.idleCloseMilliseconds = 50 }
        let subscriber = try worker.subscriber("frame/cam0/native/")
        _ = try subscriber.next { $0.header["width"] == 32 }
        let changes: [(JSONValue, Bool)] = [
            (["device": "cam0", "activeFormat": "f0"], true), (["device": "cam0", "frameRate": 50], false),
        ]
        for (change, isStandIn) in changes {
            let prepare = WorkerOrder.Action.prepare(
                transaction: "t", change: change, path: "", mode: .exact, isStandIn: isStandIn)
            for action in [prepare, .apply(transaction: "t"), .finish(transaction: "t")] {
                _ = try worker.coordinator.order(action, fence: 1).get()
            }
        }
        _ = try subscriber.next { $0.header["width"] == 64 }
        try worker.coordinator.waitForStatus("slower") { $0["frameRate"] == 50 && $0["activeFormat"]?["width"] == 64 }
        try subscriber.unsubscribe("frame/cam0/native/")
        try worker.coordinator.waitForStatus("closed") { $0["isOpen"] == false }
        try subscriber.subscribe("frame/cam0/native/")
        _ = try subscriber.next { $0.header["width"] == 32 }
        try worker.coordinator.waitForStatus("as asked") {
            $0["isStreaming"] == true && $0["frameRate"] == 50 && $0["committed"]?["activeFormat"]?["width"] == 32
        }
    }

    @Test("modes are put back before the values that they govern, whatever order they were committed in")
    func order() throws {
        bench.set { $0.meddled = ["gain_automatic": .boolean(true)] }
        let worker = try worker(committed([("gain", 5), ("gain_automatic", false), ("brightness", 20)]))
        let status = try worker.coordinator.waitForStatus("open") { $0["controls"]?["brightness"] == 20 }
        #expect(status["controls"]?["gain"] == 5)
        #expect(status["notRestored"] == [])
        #expect(
            bench.now.calls.filter { $0.hasPrefix("set ") } == ["set gain_automatic", "set gain", "set brightness"])
    }

    @Test(
        "what can't be read of an earlier commitment keeps no camera from working",
        arguments: [
            [:], ["generation": -1], ["generation": 1, "activeFormat": "YUYV"],
        ] as [JSONValue])
    func unreadable(_ configuration: JSONValue) throws {
        let worker = try worker(configuration)
        let status = try worker.coordinator.waitForStatus("open") { $0["isOpen"] == true }
        #expect(status["committed"] == .null)
        try set(worker, ["gain": 6])
        _ = try worker.coordinator.waitForStatus("committed") { $0["committed"] != .null }
    }

    @Test("a value whose mode is automatic is left alone")
    func automatic() throws {
        let worker = try worker(committed([("gain", 5), ("gain_automatic", true)]))
        let status = try worker.coordinator.waitForStatus("open") { $0["controls"]?["gain_automatic"] == true }
        #expect(status["controls"]?["gain"] == 0)
        #expect(status["notRestored"] == [])
        #expect(!bench.now.calls.contains("set gain"))
    }

    @Test("the mode in which a value counts is committed with it")
    func modeBelongsToValue() throws {
        let configuration: JSONValue
        do {
            let worker = try worker(nil)
            try set(worker, ["gain": 6])
            configuration = try #require(
                try worker.coordinator.waitForStatus("committed") { $0["committed"] != .null }["committed"])
            try worker.stop()
        }
        // The camera comes back as it was made: automatic.
        bench.set { $0.meddled = ["gain_automatic": .boolean(true)] }
        let worker = try worker(configuration)
        let status = try worker.coordinator.waitForStatus("put back") { $0["controls"]?["gain"] == 6 }
        #expect(status["controls"]?["gain_automatic"] == false)
    }

    @Test("a mode that was committed as automatic is committed anew with a value that needs it off")
    func modeIsReplaced() throws {
        let worker = try worker(nil)
        try set(worker, ["gain_automatic": true])
        bench.set { $0.meddled = ["gain_automatic": .boolean(false)] }
        _ = try worker.coordinator.order(.readControls).get()
        try set(worker, ["gain": 6])
        let status = try worker.coordinator.waitForStatus("committed") { $0["generation"] == 2 }
        #expect(
            status["committed"]?["controls"] == [
                ["name": "gain_automatic", "value": false], ["name": "gain", "value": 6],
            ]
        )
    }

    @Test("a change of a control leaves the committed format as it was, whatever the device has now")
    func formatStaysCommitted() throws {
        let other = FormatSelection(pixelFormat: .yuyv, dimensions: Dimensions(width: 32, height: 24))
        bench.set {
            $0.meddledFormat = other
            $0.forcedFormat = other
        }
        let worker = try worker(committed([]))
        try worker.coordinator.waitForStatus("foreign") { $0["notRestored"]?[0]?["path"] == "activeFormat" }
        try set(worker, ["brightness": 20])
        let status = try worker.coordinator.waitForStatus("committed") { $0["generation"] == 8 }
        #expect(status["committed"]?["activeFormat"]?["width"] == 64)
        #expect(status["committed"]?["frameDuration"] == "1/100")
    }

    @Test("a stream starts in the committed format, though another was set since the opening")
    func startsAsCommitted() throws {
        let worker = try worker(committed([]))
        try worker.coordinator.waitForStatus("open") { $0["isOpen"] == true }
        bench.set {
            $0.meddledFormat = FormatSelection(pixelFormat: .yuyv, dimensions: Dimensions(width: 32, height: 24))
        }
        let subscriber = try worker.subscriber("frame/cam0/native/")
        #expect(try subscriber.next { $0.header["width"] != nil }.header["width"] == 64)
    }

    @Test("no stream starts in the format of another program that has the device and lets go just then")
    func startsInNobodysFormat() throws {
        let worker = try worker(committed([]))
        try worker.coordinator.waitForStatus("open") { $0["isOpen"] == true }
        bench.set {
            $0.meddledFormat = FormatSelection(pixelFormat: .yuyv, dimensions: Dimensions(width: 32, height: 24))
            $0.formatFailure = SourceError(.inUse, operation: "VIDIOC_S_FMT", errno: EBUSY, message: "busy")
        }
        let subscriber = try worker.subscriber("frame/cam0/native/")
        #expect(try subscriber.next { $0.header["width"] != nil }.header["width"] == 64)
        #expect(bench.now.starts == 2)
        try worker.coordinator.waitForStatus("put back") { $0["notRestored"] == [] && $0["error"]?.isNull == true }
    }

    @Test("what can't be put back is told, and keeps nothing else from it")
    func notRestored() throws {
        bench.set {
            $0.stubborn = ["gain": .integer(9)]
            $0.refusedControl = "auto"
            $0.missing = ["volume"]
            $0.forcedFormat = FormatSelection(pixelFormat: .yuyv, dimensions: Dimensions(width: 32, height: 24))
        }
        let worker = try worker(
            committed([("gain", 5), ("auto", true), ("volume", 3), ("brightness", 20)], format: (640, 480)))
        let status = try worker.coordinator.waitForStatus("told") { $0["notRestored"]?.array?.count == 4 }
        #expect(status["controls"]?["brightness"] == 20)
        var told: [String: JSONValue] = [:]
        for entry in status["notRestored"]?.array ?? [] { told[entry["path"]?.string ?? ""] = entry }
        #expect(told["controls.gain"]?["wanted"] == 5)
        #expect(told["controls.gain"]?["is"] == 9)
        #expect(told["controls.auto"]?["why"]?.string?.contains("refused") == true)
        #expect(told["controls.volume"]?["is"] == .null)
        #expect(told["activeFormat"]?["wanted"]?["width"] == 640)
        #expect(told["activeFormat"]?["is"]?["width"] == 32)
        #expect(status["error"] == .null)
        // It streams all the same, and what is committed anew is not told any more.
        let subscriber = try worker.subscriber("frame/cam0/native/")
        _ = try subscriber.next { $0.header["width"] == 32 }
        bench.set { $0.stubborn = [:] }
        try set(worker, ["gain": 4])
        let after = try worker.coordinator.waitForStatus("committed anew") { $0["controls"]?["gain"] == 4 }
        #expect(after["notRestored"]?.array?.contains { $0["path"] == "controls.gain" } == false)
    }

    @Test("a control's former name in what was committed is understood")
    func formerName() throws {
        bench.set {
            $0.extra = [
                CaptureControl(
                    name: "focus_automatic_continuous", title: "Focus, Automatic Continuous", id: 0x9A_090C,
                    type: .boolean,
                    maximum: 1)
            ]
        }
        let worker = try worker(committed([("focus_auto", 1)]))
        let status = try worker.coordinator.waitForStatus("open") {
            $0["controls"]?["focus_automatic_continuous"] == true
        }
        #expect(status["notRestored"] == [])
    }

    @Test("what was changed while the device was closed is put back, and told")
    func whileClosed() throws {
        let worker = try worker(nil) { $0.idleCloseMilliseconds = 50 }
        try set(worker, ["brightness": 30])
        try worker.coordinator.waitForStatus("closed") { $0["isOpen"] == false }
        bench.set { $0.meddled = ["brightness": .integer(3), "gain": .integer(2)] }
        try worker.coordinator.send(.readControls)
        #expect(try event(worker, "external")["controls"] == ["gain": ["old": 0, "new": 2]])
        #expect(try event(worker, "restored")["controls"] == ["brightness": ["old": 3, "new": 30]])
    }

    @Test("an error of starting is over when nobody wants frames any more")
    func errorOfStarting() throws {
        bench.set { $0.startFailure = SourceError(.inUse, operation: "VIDIOC_STREAMON", errno: 16, message: "busy") }
        let worker = try worker(nil)
        do {
            let subscriber = try worker.subscriber("frame/cam0/native/")
            _ = try subscriber.next { $0.header["error"] != nil }
            try worker.coordinator.waitForStatus("refused") { $0["error"]?["reason"] == "deviceInUse" }
        }
        try worker.coordinator.waitForStatus("over") { $0["error"] == .null }
        #expect(try worker.coordinator.status["isOpen"] == true)
    }

    @Test("a rate that a driver rounds is the committed one")
    func roundedRate() throws {
        let description = DeviceDescription(identity: TestSource(bench).identity, formats: [], controls: [])
        let format = FormatSelection(pixelFormat: .yuyv, dimensions: Dimensions(width: 64, height: 48))
        let duration = try FrameDuration(json: "333333/10000000", path: "")
        let now = DeviceSnapshot(
            description: description,
            configuration: DeviceConfiguration(formatID: nil, format: format, frameDuration: duration, controls: [:]),
            formatDescription: FormatDescription(pixelFormat: .yuyv, dimensions: format.dimensions), began: 0, asOf: 0)
        #expect(NotRestored(path: "frameRate", wanted: "1/30", present: .null, why: "").isSettled(now))
        #expect(!NotRestored(path: "frameRate", wanted: "1/25", present: .null, why: "").isSettled(now))
    }
}
