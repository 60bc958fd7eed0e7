import BusProtocol
import CaptureCore
import CaptureSources
import JSON
import LinuxIO
import Testing

@testable import Worker

@Suite("Orders to a worker", .serialized, .timeLimit(.minutes(5)))
struct OrderTests {
    private let bench = TestBench()

    private func change(_ members: JSONValue) -> JSONValue {
        var change = members.object ?? [:]
        change["device"] = "cam0"
        return .object(change)
    }

    private func prepare(
        _ worker: WorkerFixture, _ members: JSONValue, mode: ConfigurationMode = .exact, fence: UInt64 = 1,
        transaction: String = "t"
    ) throws -> Result<JSONValue, BusError> {
        try worker.coordinator.order(
            .prepare(transaction: transaction, change: change(members), path: "changes[0]", mode: mode), fence: fence)
    }

    private func apply(_ worker: WorkerFixture, fence: UInt64 = 1, transaction: String = "t") throws -> Result<
        JSONValue, BusError
    > {
        try worker.coordinator.order(.apply(transaction: transaction), fence: fence)
    }

    @Test("a lock keeps the device open; its end lets it close")
    func lock() throws {
        let worker = try WorkerFixture(bench) { $0.idleCloseMilliseconds = 50 }
        _ = try worker.coordinator.order(.lock, fence: 5).get()
        for _ in 0..<2 { _ = try worker.coordinator.wait("a second") { if case .alive = $0 { true } else { false } } }
        try worker.coordinator.waitForStatus("open") { $0["isOpen"] == true }
        _ = try worker.coordinator.order(.unlock, fence: 5).get()
        try worker.coordinator.waitForStatus("closed") { $0["isOpen"] == false }
    }

    @Test("a session that runs has the device stream, also without a subscriber; its end lets it close")
    func session() throws {
        let worker = try WorkerFixture(bench) { $0.idleCloseMilliseconds = 50 }
        _ = try worker.coordinator.order(.session(isRunning: true)).get()
        try worker.coordinator.waitForStatus("streaming") { $0["isStreaming"] == true }
        _ = try worker.coordinator.order(.session(isRunning: false)).get()
        try worker.coordinator.waitForStatus("closed") { $0["isOpen"] == false }
        for isRunning in [true, false] {
            let order = WorkerOrder(number: 1, fence: nil, action: .session(isRunning: isRunning))
            #expect(WorkerOrder(json: order.json) == order)
        }
    }

    @Test("an order with an older fence is refused, and names the newer one")
    func fences() throws {
        let worker = try WorkerFixture(bench)
        _ = try worker.coordinator.order(.lock, fence: 5).get()
        _ = try prepare(worker, ["controls": ["gain": 3]], fence: 5).get()
        _ = try worker.coordinator.order(.lock, fence: 7).get()
        for result in [
            try apply(worker, fence: 5), try prepare(worker, [:], fence: 6),
            try worker.coordinator.order(.unlock, fence: 5), try worker.coordinator.order(.lock, fence: 6),
        ] {
            let error = #expect(throws: BusError.self) { try result.get() }
            #expect(error?.reason == .lockLost)
            #expect(error?.data["fence"] == 7)
        }
        let error = #expect(throws: BusError.self) { try worker.coordinator.order(.apply(transaction: "t")).get() }
        #expect(error?.reason == .lockRequired)
        #expect(!bench.now.calls.contains("set gain"))
        #expect(try apply(worker, fence: 7).get()["controls"] == ["gain": 3])
    }

    @Test("a change under streaming gives a new stream and generation, and frames of the new format")
    func applyWhileStreaming() throws {
        let worker = try WorkerFixture(bench)
        let subscriber = try worker.subscriber("frame/cam0/native/")
        let before = try FrameHeader(try subscriber.next { $0.topic == "frame/cam0/native/" }.header)
        let prepared = try prepare(worker, ["activeFormat": "f1", "frameRate": 50, "controls": ["brightness": 60]])
            .get()
        #expect(prepared["activeFormat"]?["width"] == 32)
        #expect(prepared["adjusted"] == [])
        #expect(!bench.now.calls.contains { $0.hasPrefix("setFormat") })
        let applied = try apply(worker).get()
        #expect(applied["generation"] == 1)
        #expect(applied["activeFormat"]?["id"] == "f1")
        #expect(applied["frameDuration"] == "1/50")
        #expect(applied["controls"] == ["brightness": 60])
        let after = try subscriber.next { $0.header["width"] == 32 }
        let header = try FrameHeader(after.header)
        #expect(header.stream != before.stream)
        #expect(header.generation == 1)
        #expect(header.sequence == 0)
        #expect(after.payload.count == 32 * 24 * 2)
        let status = try worker.coordinator.waitForStatus("new format") { $0["activeFormat"]?["id"] == "f1" }
        #expect(status["generation"] == 1)
        #expect(status["frameRate"] == 50)
        _ = try worker.coordinator.order(.finish(transaction: "t"), fence: 1).get()
    }

    @Test("controls alone are set while frames go on")
    func controlsOnly() throws {
        let worker = try WorkerFixture(bench)
        let subscriber = try worker.subscriber("frame/cam0/native/")
        let before = try FrameHeader(try subscriber.next { $0.topic == "frame/cam0/native/" }.header)
        _ = try prepare(worker, ["controls": ["gain": 4]]).get()
        _ = try apply(worker).get()
        let after = try FrameHeader(try subscriber.next { $0.header["generation"] == 1 }.header)
        #expect(after.stream == before.stream)
        #expect(bench.now.starts == 1)
    }

    @Test("what is taken back is as before, with a generation of its own, and so are the frames")
    func rollBack() throws {
        let worker = try WorkerFixture(bench)
        let subscriber = try worker.subscriber("frame/cam0/native/")
        _ = try prepare(worker, ["activeFormat": "f1", "controls": ["gain": 4]]).get()
        _ = try apply(worker).get()
        _ = try subscriber.next { $0.header["width"] == 32 }
        _ = try worker.coordinator.order(.rollBack(transaction: "t"), fence: 1).get()
        let back = try subscriber.next { $0.header["width"] == 64 }
        #expect(back.header["generation"] == 2)
        let status = try worker.coordinator.waitForStatus("old format") { $0["generation"] == 2 }
        #expect(status["controls"]?["gain"] == 0)
        #expect(status["activeFormat"]?["id"] == "f0")
        // As it was before anybody had committed anything, and told as such: null would be no news to the coordinator.
        #expect(status["committed"]?["generation"] == 2 && status["committed"]?["controls"] == [])
        #expect(status["committed"]?["activeFormat"]?["width"] == 64)
    }

    @Test("what is taken back of a camera that has gone doesn't come into force when it is back")
    func rollBackOfGone() throws {
        let worker = try WorkerFixture(bench) { $0.idleCloseMilliseconds = 60_000 }
        _ = try prepare(worker, ["controls": ["brightness": 30]]).get()
        _ = try apply(worker).get()
        _ = try worker.coordinator.order(.finish(transaction: "t"), fence: 1).get()
        _ = try prepare(worker, ["controls": ["brightness": 60]], transaction: "u").get()
        _ = try apply(worker, transaction: "u").get()
        let gone = SourceError(.disconnected, operation: "VIDIOC_DQEVENT", message: "gone")
        bench.set { $0.openFailure = gone }
        bench.told.fail(gone)
        try worker.coordinator.waitForStatus("gone") { $0["isOpen"] == false && $0["error"] != .null }
        let error = #expect(throws: BusError.self) {
            try worker.coordinator.order(.rollBack(transaction: "u"), fence: 1).get()
        }
        #expect(error?.reason == .deviceDisconnected)
        let status = try worker.coordinator.waitForStatus("taken back") { $0["generation"] == 3 }
        #expect(status["committed"]?["controls"] == [["name": "brightness", "value": 30]])
        // Nothing is left of it.
        let unknown = #expect(throws: BusError.self) {
            try worker.coordinator.order(.rollBack(transaction: "u"), fence: 1).get()
        }
        #expect(unknown?.reason == .workerCrashed)
        bench.told.fail(nil)
        bench.set { $0.openFailure = nil }
        _ = try worker.coordinator.order(.lock, fence: 2).get()
        try worker.coordinator.waitForStatus("back") { $0["isOpen"] == true && $0["controls"]?["brightness"] == 30 }
    }

    @Test("a control that the device makes something else of is refused in exact mode, and all is put back")
    func exact() throws {
        bench.set { $0.stubborn = ["gain": .integer(9)] }
        let worker = try WorkerFixture(bench)
        _ = try prepare(worker, ["activeFormat": "f1", "controls": ["brightness": 70, "gain": 4]]).get()
        bench.set { $0.stubborn = ["gain": .integer(9)] }
        let error = #expect(throws: BusError.self) { try apply(worker).get() }
        #expect(error?.reason == .controlOutOfRange)
        #expect(error?.data["max"] == 10)
        let status = try worker.coordinator.waitForStatus("put back") { $0["controls"]?["brightness"] == 50 }
        #expect(status["activeFormat"]?["id"] == "f0")
        #expect(status["generation"] == 0)
    }

    @Test("in nearest mode it is an adjustment")
    func nearest() throws {
        bench.set { $0.stubborn = ["gain": .integer(9)] }
        let worker = try WorkerFixture(bench)
        _ = try prepare(worker, ["controls": ["gain": 4]], mode: .nearest).get()
        let applied = try apply(worker).get()
        #expect(applied["controls"] == ["gain": 9])
        #expect(applied["adjusted"]?[0]?["path"] == "changes[0].controls.gain")
        #expect(applied["adjusted"]?[0]?["asked"] == 4)
        #expect(applied["adjusted"]?[0]?["given"] == 9)
    }

    @Test("a rate that the driver sets with a format is reported", arguments: [25, 100])
    func rateOfFormat(_ rate: Int) throws {
        bench.set { $0.rateOfFormats = rate }
        let worker = try WorkerFixture(bench)
        #expect(try prepare(worker, ["activeFormat": "f2"]).get()["adjusted"] == [])
        let applied = try apply(worker).get()
        #expect(applied["frameDuration"] == .string("1/\(rate)"))
        #expect(applied["adjusted"]?.array?.count == (rate == 25 ? 1 : 0))
        guard rate == 25 else { return }
        #expect(applied["adjusted"]?[0]?["path"] == "changes[0].frameRate")
        #expect(applied["adjusted"]?[0]?["asked"] == "1/100" && applied["adjusted"]?[0]?["given"] == "1/25")
    }

    @Test("a format that the device makes something else of is refused in exact mode with what is nearest")
    func forcedFormat() throws {
        let worker = try WorkerFixture(bench)
        _ = try prepare(worker, ["activeFormat": "f1"]).get()
        bench.set {
            $0.forcedFormat = FormatSelection(pixelFormat: .yuyv, dimensions: Dimensions(width: 64, height: 48))
        }
        let error = #expect(throws: BusError.self) { try apply(worker).get() }
        #expect(error?.reason == .formatUnsupported)
        #expect(error?.data["nearest"]?["id"] == "f0")
    }

    @Test("a refused control undoes what was set before it")
    func refused() throws {
        let worker = try WorkerFixture(bench)
        _ = try prepare(worker, ["controls": ["brightness": 70, "gain": 4]]).get()
        bench.set { $0.refusedControl = "gain" }
        let error = #expect(throws: BusError.self) { try apply(worker).get() }
        #expect(error?.reason == .controlOutOfRange)
        let controls = try worker.coordinator.order(.readControls).get()["controls"]?.array
        #expect(controls?.first { $0["name"] == "brightness" }?["value"] == 50)
    }

    @Test("what the planner refuses is refused with its path, and changes nothing")
    func planner() throws {
        let worker = try WorkerFixture(bench)
        let error = #expect(throws: BusError.self) { try prepare(worker, ["controls": ["contrast": 1]]).get() }
        #expect(error?.reason == .controlUnsupported)
        let unknown = #expect(throws: BusError.self) { try apply(worker).get() }
        #expect(unknown?.reason == .workerCrashed)
        #expect(!bench.now.calls.contains { $0.hasPrefix("set") })
    }

    @Test("no more than eight changes are under way")
    func tooManyTransactions() throws {
        let worker = try WorkerFixture(bench)
        for number in 0..<8 { _ = try prepare(worker, [:], transaction: "t\(number)").get() }
        let error = #expect(throws: BusError.self) { try prepare(worker, [:], transaction: "t8").get() }
        #expect(error?.reason == .limitExceeded)
        _ = try worker.coordinator.order(.finish(transaction: "t0"), fence: 1).get()
        _ = try prepare(worker, [:], transaction: "t8").get()
    }

    @Test("a slow driver never holds up the frames, and is told as busy")
    func slowDriver() throws {
        let worker = try WorkerFixture(bench)
        let subscriber = try worker.subscriber("frame/cam0/native/", highWaterMark: 1000)
        _ = try subscriber.next { $0.topic == "frame/cam0/native/" }
        _ = try prepare(worker, ["controls": ["gain": 4]]).get()
        bench.set { $0.heldControl = "gain" }
        defer { bench.release() }
        let start = MonotonicClock.now()
        let number = try worker.coordinator.send(.apply(transaction: "t"), fence: 1)
        let status = try worker.coordinator.waitForStatus("busy") { $0["busySince"] != .null }
        #expect(try #require(status["busySince"]?.integer) >= start)
        for _ in 0..<51 {
            #expect(try subscriber.next { $0.topic == "frame/cam0/native/" }.header["generation"] == 0)
        }
        bench.release()
        _ = try subscriber.next { $0.topic == "frame/cam0/native/" && $0.header["generation"] != 0 }
        _ = try worker.coordinator.waitForStatus("not busy") { $0["busySince"] == .null }
        #expect(number > 0)
    }

    @Test("after a restart the committed configuration is put back when the device is opened")
    func committed() throws {
        let committed: JSONValue
        do {
            let worker = try WorkerFixture(bench)
            _ = try prepare(worker, ["activeFormat": "f1", "frameRate": 50, "controls": ["gain": 4]]).get()
            _ = try apply(worker).get()
            _ = try worker.coordinator.order(.finish(transaction: "t"), fence: 1).get()
            committed = try #require(
                try worker.coordinator.waitForStatus("committed") { $0["committed"] != .null }["committed"])
            try worker.stop()
        }
        let worker = try WorkerFixture(bench) { $0.configuration = committed }
        let subscriber = try worker.subscriber("frame/cam0/native/")
        let header = try FrameHeader(try subscriber.next { $0.topic == "frame/cam0/native/" }.header)
        #expect(header.width == 32)
        #expect(header.generation == 1)
        let status = try worker.coordinator.waitForStatus("as committed") { $0["controls"]?["gain"] == 4 }
        #expect(status["frameDuration"] == "1/50")
    }

    @Test("faults go to the device, and nonsense is refused")
    func faults() throws {
        let worker = try WorkerFixture(bench)
        _ = try worker.coordinator.order(.fault(["fault": "slow", "milliseconds": 5])).get()
        #expect(bench.now.calls.contains { $0.contains("slow") })
        for fault: JSONValue in [["fault": "x"], [:], ["fault": "slow"], ["fault": "stall", "milliseconds": -1], 3] {
            let error = #expect(throws: BusError.self) { try worker.coordinator.order(.fault(fault)).get() }
            #expect(error?.reason == .invalidParams)
        }
    }

    @Test("an order whose time is over before its turn comes is refused, but what ends a transaction is not")
    func deadline() throws {
        let worker = try WorkerFixture(bench)
        _ = try prepare(worker, ["controls": ["gain": 3]]).get()
        bench.set { $0.heldControl = "gain" }
        defer { bench.release() }
        bench.clearCalls()
        let applying = try worker.coordinator.send(.apply(transaction: "t"), fence: 1)
        try bench.wait(forCall: "set gain")
        let soon = MonotonicClock.now() + 1_000_000
        let late = try worker.coordinator.send(.readControls, deadline: soon)
        let finishing = try worker.coordinator.send(.finish(transaction: "t"), deadline: soon)
        while MonotonicClock.now() <= soon {}
        bench.release()
        var answers: [UInt64: Result<JSONValue, BusError>] = [:]
        _ = try worker.coordinator.wait("three answers") {
            if case .reply(let order, let result) = $0 { answers[order] = result }
            return answers.count == 3
        }
        _ = try answers[applying]?.get()
        _ = try answers[finishing]?.get()
        let error = #expect(throws: BusError.self) { try answers[late]?.get() }
        #expect(error?.reason == .limitExceeded && error?.data["limit"] == "orderWait")
    }

    private func zooming() throws -> WorkerFixture {
        bench.set {
            $0.extra = [
                CaptureControl(
                    name: "zoom_absolute", title: "Zoom, Absolute", id: 0x9A_090D, type: .integer, minimum: 100,
                    maximum: 400)
            ]
        }
        return try WorkerFixture(bench) { $0.idleCloseMilliseconds = 60_000 }
    }

    private static let ramp = WorkerOrder.Action.rampZoom(ZoomRequest(target: .factor(4), rate: 0.01))

    @Test("the end of a zoom ramp needs no room among the orders that wait, and does not wait for them")
    func cancelZoomOfBusy() throws {
        let worker = try zooming()
        let coordinator = try worker.coordinator
        _ = try coordinator.order(Self.ramp, fence: 1).get()
        try coordinator.waitForStatus("ramping") { $0["controls"]?["rampingVideoZoom"] == true }
        _ = try prepare(worker, ["controls": ["gain": 3]]).get()
        bench.set { $0.heldControl = "gain" }
        defer { bench.release() }
        bench.clearCalls()
        try coordinator.send(.apply(transaction: "t"), fence: 1)
        try bench.wait(forCall: "set gain")
        let reads = try (0..<70).map { _ in try coordinator.send(.readControls) }
        let cancels = try (0..<3).map { _ in try coordinator.send(.cancelZoom(), fence: 1) }
        // When this one is refused, all before it have been taken, or refused.
        let overfull = try coordinator.send(.readControls)
        var answers: [(UInt64, Result<JSONValue, BusError>)] = []
        _ = try coordinator.wait("a refusal", seconds: 60) {
            guard case .reply(let order, let result) = $0 else { return false }
            answers.append((order, result))
            return order == overfull
        }
        bench.release()
        _ = try coordinator.wait("all answers", seconds: 60) {
            if case .reply(let order, let result) = $0 { answers.append((order, result)) }
            return answers.count == 1 + reads.count + cancels.count + 1
        }
        let refused = answers.filter {
            if case .failure(let error) = $0.1 { error.data["limit"] == "orders" } else { false }
        }
        #expect(refused.count == 70 - 64 + 1)
        for cancel in cancels { _ = try answers.first { $0.0 == cancel }?.1.get() }
        let last = try #require(answers.lastIndex { reads.contains($0.0) })
        #expect(answers[..<last].count { cancels.contains($0.0) } == cancels.count)
        try coordinator.waitForStatus("at rest") { $0["controls"]?["rampingVideoZoom"] == false }
    }

    @Test("the end of a zoom ramp ends one that waits to begin, too", arguments: [false, true])
    func cancelZoomOfWaiting(isBeginning: Bool) throws {
        let worker = try zooming()
        let coordinator = try worker.coordinator
        _ = try prepare(worker, ["controls": ["gain": 3]]).get()
        let held = isBeginning ? "zoom_absolute" : "gain"
        bench.set { $0.heldControl = held }
        defer { bench.release() }
        bench.clearCalls()
        var orders: [UInt64] = []
        if !isBeginning { orders.append(try coordinator.send(.apply(transaction: "t"), fence: 1)) }
        if isBeginning { orders.append(try coordinator.send(Self.ramp, fence: 1)) }
        try bench.wait(forCall: "set \(held)")
        if !isBeginning { orders.append(try coordinator.send(Self.ramp, fence: 1)) }
        orders.append(try coordinator.send(.cancelZoom(), fence: 1))
        var answered: [UInt64] = []
        func take(_ report: WorkerReport) {
            if case .reply(let order, let result) = report, orders.contains(order), (try? result.get()) != nil {
                answered.append(order)
            }
        }
        // The driver isn't asked for the answer to this one: when it comes, those before it have been taken.
        let who = try coordinator.send(.who)
        _ = try coordinator.wait("who uses it", seconds: 60) {
            take($0)
            if case .reply(who, _) = $0 { return true }
            return false
        }
        bench.release()
        if answered.count < orders.count {
            _ = try coordinator.wait("the answers", seconds: 60) {
                take($0)
                return answered.count == orders.count
            }
        }
        #expect(answered == orders)
        let status = try coordinator.waitForStatus("told") { $0["controls"]?["rampingVideoZoom"] != nil }
        #expect(status["controls"]?["rampingVideoZoom"] == false)
    }

    @Test("the end of somebody's zoom ramp leaves alone that of another who has replaced it")
    func cancelZoomOfOne() throws {
        let worker = try zooming()
        let coordinator = try worker.coordinator
        let owners: [JSONValue] = [["holder": ["pid": 1]], ["holder": ["pid": 2]]]
        for owner in owners {
            let ramp = WorkerOrder.Action.rampZoom(ZoomRequest(target: .factor(4), rate: 0.01), by: owner)
            _ = try coordinator.order(ramp, fence: 1).get()
        }
        let cancel = WorkerOrder(number: 1, fence: nil, action: .cancelZoom(of: owners[0]))
        #expect(WorkerOrder(json: cancel.json) == cancel)
        _ = try coordinator.order(cancel.action).get()
        #expect(coordinator.status["zoomRamp"] == owners[1])
        try coordinator.waitForStatus("ramping") { $0["controls"]?["rampingVideoZoom"] == true }
        _ = try coordinator.order(.cancelZoom(of: owners[1])).get()
        try coordinator.waitForStatus("at rest") {
            $0["zoomRamp"] == .null && $0["controls"]?["rampingVideoZoom"] == false
        }
    }

    /// A format that found no room on the bus is waited with longer and longer; another one is tried at once, and has
    /// no error yet.
    @Test("a new format is tried at once where the one before found no room")
    func anotherFormatAfterNoRoom() throws {
        bench.set {
            $0.startFailure = SourceError(.noResources, operation: "VIDIOC_STREAMON", errno: 28, message: "no room")
        }
        let worker = try WorkerFixture(bench)
        let subscriber = try worker.subscriber("frame/cam0/native/")
        let refused = try subscriber.next { $0.header["error"] != nil }
        #expect(refused.header["error"]?["data"]?["limit"] == "deviceResources")
        try worker.coordinator.waitForStatus("no room") { $0["error"]?["reason"] == "limitExceeded" }
        _ = try prepare(worker, ["activeFormat": "f1"]).get()
        _ = try apply(worker).get()
        #expect(try worker.coordinator.status["error"] == .null)
        bench.set { $0.startFailure = nil }
        _ = try subscriber.next { $0.header["width"] == 32 }
    }
}
