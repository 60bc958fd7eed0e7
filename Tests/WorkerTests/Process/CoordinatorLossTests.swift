import BusProtocol
import CaptureCore
import Glibc
import JSON
import Testing

@testable import Worker

@Suite("A worker whose coordinator dies", .serialized, .timeLimit(.minutes(5)))
struct CoordinatorLossTests {
    private let bench = TestBench()

    @Test("goes on, and tells a new one all that it has to know")
    func goesOn() throws {
        let worker = try WorkerFixture(bench)
        let subscriber = try worker.subscriber("frame/cam0/native/")
        let before = try subscriber.next { $0.topic == "frame/cam0/native/" }
        worker.killCoordinator()
        _ = try subscriber.next { $0.header["sequence"]?.integer ?? 0 > 50 }
        try worker.startCoordinator()
        let status = try worker.coordinator.waitForStatus("streaming") { $0["isStreaming"] == true }
        #expect(status["stream"] == before.header["stream"])
        #expect(try worker.coordinator.waitForDescription()["formats"]?.array?.count == 2)
    }

    /// Who has the description takes the worker for ready.
    @Test("says how its device is before what it can be, at the start and to a new one")
    func statusFirst() throws {
        let worker = try WorkerFixture(bench)
        for isNew in [false, true] {
            if isNew {
                worker.killCoordinator()
                try worker.startCoordinator()
            }
            let coordinator = try worker.coordinator
            try coordinator.waitForDescription()
            #expect(coordinator.status["controls"]?["brightness"] == 50, "\(coordinator.status)")
        }
    }

    @Test("takes back a change that was not finished")
    func unfinished() throws {
        let worker = try WorkerFixture(bench)
        let change: JSONValue = ["device": "cam0", "activeFormat": "f1"]
        let subscriber = try worker.subscriber("frame/cam0/native/")
        for id in ["done", "open"] {
            let order = WorkerOrder.Action.prepare(transaction: id, change: change, path: "", mode: .exact)
            _ = try worker.coordinator.order(order, fence: 1).get()
        }
        _ = try worker.coordinator.order(.apply(transaction: "open"), fence: 1).get()
        _ = try subscriber.next { $0.header["width"] == 32 }
        worker.killCoordinator()
        let back = try subscriber.next { $0.header["width"] == 64 }
        #expect(back.header["generation"] == 2)
        try worker.startCoordinator()
        let error = #expect(throws: BusError.self) {
            try worker.coordinator.order(.apply(transaction: "done"), fence: 1).get()
        }
        #expect(error?.reason == .workerCrashed)
    }

    @Test("keeps a finished change")
    func finished() throws {
        let worker = try WorkerFixture(bench)
        let change: JSONValue = ["device": "cam0", "controls": ["gain": 3]]
        _ = try worker.coordinator.order(
            .prepare(transaction: "t", change: change, path: "", mode: .exact), fence: 1
        ).get()
        _ = try worker.coordinator.order(.apply(transaction: "t"), fence: 1).get()
        _ = try worker.coordinator.order(.finish(transaction: "t"), fence: 1).get()
        worker.killCoordinator()
        try worker.startCoordinator()
        let controls = try worker.coordinator.order(.readControls).get()["controls"]?.array
        #expect(controls?.first { $0["name"] == "gain" }?["value"] == 3)
    }

    @Test("holds the device open for a lock that the new one tells again, and not for one that it doesn't")
    func lock() throws {
        let worker = try WorkerFixture(bench) {
            $0.idleCloseMilliseconds = 50
            $0.lockMemoryMilliseconds = 1500
        }
        _ = try worker.coordinator.order(.lock, fence: 5).get()
        worker.killCoordinator()
        try worker.startCoordinator()
        _ = try worker.coordinator.order(.lock, fence: 5).get()
        // The first may come at once: at least two seconds, longer than it remembers.
        for _ in 0..<3 { _ = try worker.coordinator.wait("a second") { if case .alive = $0 { true } else { false } } }
        try worker.coordinator.waitForStatus("open") { $0["isOpen"] == true }
        #expect(!bench.now.calls.contains("close"))
        worker.killCoordinator()
        try worker.startCoordinator()
        try worker.coordinator.waitForStatus("closed") { $0["isOpen"] == false }
        let error = #expect(throws: BusError.self) { try worker.coordinator.order(.lock, fence: 4).get() }
        #expect(error?.reason == .lockLost)
    }

    @Test("that was halted stays so, and says so, until the new one tells it otherwise")
    func halted() throws {
        let worker = try WorkerFixture(bench)
        let subscriber = try worker.subscriber("frame/cam0/native/")
        _ = try subscriber.next { $0.topic == "frame/cam0/native/" && $0.header["error"] == nil }
        #expect(try worker.coordinator.waitForStatus("streaming") { $0["isStreaming"] == true }["isHalted"] == false)
        _ = try worker.coordinator.order(.halt(true)).get()
        try worker.coordinator.waitForStatus("halted") { $0["isHalted"] == true && $0["isStreaming"] == false }
        let starts = bench.now.starts
        worker.killCoordinator()
        try worker.startCoordinator()
        _ = try worker.coordinator.order(.session(isRunning: true)).get()
        #expect(try worker.coordinator.waitForStatus("told") { $0["isHalted"] != nil }["isHalted"] == true)
        _ = try worker.coordinator.order(.readControls).get()
        #expect(bench.now.starts == starts)
        _ = try worker.coordinator.order(.halt(false)).get()
        try worker.coordinator.waitForStatus("streaming") { $0["isHalted"] == false && $0["isStreaming"] == true }
    }

    @Test("ends in order when no coordinator comes")
    func abandoned() throws {
        let worker = try WorkerFixture(bench) { $0.coordinatorGraceMilliseconds = 200 }
        worker.killCoordinator()
        #expect(worker.waitForEnd() == 0)
        #expect(!bench.now.isOpen)
    }

    @Test("leaves a change that other devices have part in as it is, until the next one says what was decided")
    func inDoubt() throws {
        let worker = try WorkerFixture(bench)
        func apply(_ id: String, _ gain: Int64) throws {
            let change: JSONValue = ["device": "cam0", "controls": ["gain": .integer(gain)]]
            let prepare = WorkerOrder.Action.prepare(
                transaction: id, change: change, path: "", mode: .exact, isShared: true)
            _ = try worker.coordinator.order(prepare, fence: 1).get()
            _ = try worker.coordinator.order(.apply(transaction: id), fence: 1).get()
        }
        func gain() throws -> JSONValue? {
            try worker.coordinator.order(.readControls).get()["controls"]?.array?.first { $0["name"] == "gain" }?[
                "value"]
        }
        try apply("stays", 3)
        worker.killCoordinator()
        try worker.startCoordinator()
        #expect(try worker.coordinator.inDoubt == ["stays"])
        #expect(try gain() == 3)
        _ = try worker.coordinator.order(.finish(transaction: "stays")).get()
        try apply("goes", 4)
        for _ in 0..<2 {
            worker.killCoordinator()
            try worker.startCoordinator()
            #expect(try worker.coordinator.inDoubt == ["goes"])
        }
        _ = try worker.coordinator.order(.rollBack(transaction: "goes")).get()
        #expect(try gain() == 3)
        worker.killCoordinator()
        try worker.startCoordinator()
        #expect(try worker.coordinator.inDoubt == [])
    }

    @Test("takes back what is in doubt when no coordinator comes")
    func doubtAbandoned() throws {
        let worker = try WorkerFixture(bench) { $0.coordinatorGraceMilliseconds = 200 }
        let change: JSONValue = ["device": "cam0", "controls": ["gain": 3]]
        let prepare = WorkerOrder.Action.prepare(
            transaction: "t", change: change, path: "", mode: .exact, isShared: true)
        _ = try worker.coordinator.order(prepare, fence: 1).get()
        _ = try worker.coordinator.order(.apply(transaction: "t"), fence: 1).get()
        bench.clearCalls()
        worker.killCoordinator()
        #expect(worker.waitForEnd() == 0)
        #expect(bench.now.calls.contains("set gain"))
    }

    @Test(
        "takes back a change that was just being made, when it is made, and answers it to nobody",
        arguments: [false, true])
    func underWay(isShared: Bool) throws {
        let worker = try WorkerFixture(bench)
        let change: JSONValue = ["device": "cam0", "controls": ["gain": 3]]
        let prepare = WorkerOrder.Action.prepare(
            transaction: "t", change: change, path: "", mode: .exact, isShared: isShared)
        _ = try worker.coordinator.order(prepare, fence: 1).get()
        bench.set { $0.heldControl = "gain" }
        defer { bench.release() }
        bench.clearCalls()
        let number = try worker.coordinator.send(.apply(transaction: "t"), fence: 1)
        try bench.wait(forCall: "set gain")
        worker.killCoordinator()
        try worker.startCoordinator()
        #expect(try worker.coordinator.inDoubt == (isShared ? ["t"] : []))
        bench.release()
        // The new one's first orders have the numbers that the old one's had.
        if isShared { try worker.coordinator.send(.rollBack(transaction: "t")) }
        var answers: [UInt64] = []
        let last = try worker.coordinator.send(.readControls)
        let report = try worker.coordinator.wait("the controls") {
            if case .reply(let order, _) = $0 { answers.append(order) }
            if case .reply(last, _) = $0 { return true }
            return false
        }
        guard case .reply(_, let result) = report else { return }
        #expect(try result.get()["controls"]?.array?.first { $0["name"] == "gain" }?["value"] == 0)
        #expect(answers == (isShared ? [1, 2] : [1]), "the old order was number \(number)")
    }

    @Test("does nothing that was ordered over an earlier connection")
    func stale() throws {
        let worker = try WorkerFixture(bench)
        worker.killCoordinator()
        try worker.startCoordinator()
        let coordinator = try worker.coordinator
        #expect(coordinator.link == 2)
        try coordinator.send(.stop, link: 1)
        _ = try coordinator.order(.lock, fence: 5).get()
        _ = try coordinator.wait("the counters") {
            if case .alive(let value) = $0 { value["staleOrders"] == 1 } else { false }
        }
    }
}
