import BusProtocol
import CaptureCore
import JSON
import Testing

@testable import Worker

@Suite("What a scene wants of a photo", .serialized, .timeLimit(.minutes(5)))
struct SceneTests {
    private let bench = TestBench()

    @Test("is looked at for who wants to know")
    func watched() throws {
        bench.set { $0.scene = [0.1] }
        let worker = try WorkerFixture(bench)
        let coordinator = try worker.coordinator
        _ = try coordinator.order(.session(isRunning: true)).get()
        try coordinator.waitForStatus("streaming") { $0["isStreaming"] == true && $0["scene"] == .null }
        _ = try coordinator.order(.session(isRunning: true, watchesScene: true)).get()
        try coordinator.waitForStatus("dark") { $0["scene"] == ["flash": true, "stabilization": true] }
        bench.set { $0.scene = [1] }
        try coordinator.waitForStatus("light") { $0["scene"] == ["flash": false, "stabilization": false] }
        // Exposures and photos have meters of their own.
        let photo = PhotoOrder(job: "a", settings: PhotoSettings(), attaches: true)
        _ = try coordinator.order(.preparePhoto(photo)).get()
        #expect(try coordinator.order(.takePhoto(job: "a")).get()["photos"]?.array?.count == 1)
        bench.set { $0.scene = [0.1] }
        try coordinator.waitForStatus("dark again") { $0["scene"]?["flash"] == true }
        _ = try coordinator.order(.session(isRunning: false, watchesScene: true)).get()
        try coordinator.waitForStatus("over") { $0["scene"] == .null }
    }
}
