import BusProtocol
import CaptureCore
import JSON
import Testing

@testable import Worker

@Suite("A worker whose coordinator dies", .serialized, .timeLimit(.minutes(2)))
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
        #expect(try worker.coordinator.description["formats"]?.array?.count == 2)
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
        #expect(error?.reason == .invalidParams)
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
            $0.lockMemoryMilliseconds = 300
        }
        _ = try worker.coordinator.order(.lock, fence: 5).get()
        worker.killCoordinator()
        try worker.startCoordinator()
        _ = try worker.coordinator.order(.lock, fence: 5).get()
        for _ in 0..<2 { _ = try worker.coordinator.wait("a second") { if case .alive = $0 { true } else { false } } }
        try worker.coordinator.waitForStatus("open") { $0["isOpen"] == true }
        #expect(!bench.now.calls.contains("close"))
        worker.killCoordinator()
        try worker.startCoordinator()
        try worker.coordinator.waitForStatus("closed") { $0["isOpen"] == false }
        let error = #expect(throws: BusError.self) { try worker.coordinator.order(.lock, fence: 4).get() }
        #expect(error?.reason == .lockLost)
    }

    @Test("ends in order when no coordinator comes")
    func abandoned() throws {
        let worker = try WorkerFixture(bench) { $0.coordinatorGraceMilliseconds = 200 }
        worker.killCoordinator()
        #expect(worker.waitForEnd() == 0)
        #expect(!bench.now.isOpen)
    }
}
