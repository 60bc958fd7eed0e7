import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureSources
import JSON
import LinuxIO
import Testing

@testable import Worker

/// Photos of cameras that go, are halted, or can't do what is asked of them.
extension PhotoTests {
    @Test("a camera that is pulled out ends the photo; the next one works when it is back")
    func unplugged() throws {
        let worker = try fixture()
        let coordinator = try worker.coordinator
        let burst = order("a", PhotoSettings(burst: 100, interval: 50_000_000))
        _ = try coordinator.order(.preparePhoto(burst)).get()
        let taking = try coordinator.send(.takePhoto(job: "a"))
        _ = try coordinator.wait("a photo") { if case .photo(_, .processed, _) = $0 { true } else { false } }
        try coordinator.send(.fault(["fault": "unplug"]))
        let failed = try coordinator.wait("the photo's end") { $0.answers(taking) }
        #expect(failed.error?.reason == .deviceDisconnected, "\(failed)")
        #expect(throws: BusError.self) { try coordinator.order(.preparePhoto(order("b"))).get() }
        _ = try coordinator.order(.fault(["fault": "replug"])).get()
        try coordinator.waitForStatus("it is back") { $0["error"] == .null }
        #expect(try capture(worker, order("c")).photos.count == 1)
    }

    @Test("a camera that was pulled out within a bracket has its exposure again when it is back")
    func bracketUnplugged() throws {
        let worker = try fixture()
        let coordinator = try worker.coordinator
        _ = try coordinator.order(.preparePhoto(order("a", bracket))).get()
        _ = try coordinator.order(.fault(["fault": "unplug"])).get()
        try coordinator.waitForStatus("it is gone") { $0["error"]?["reason"] == "deviceDisconnected" }
        #expect(throws: BusError.self) { try coordinator.order(.takePhoto(job: "a")).get() }
        _ = try coordinator.order(.fault(["fault": "replug"])).get()
        try coordinator.waitForStatus("it is as it was") {
            $0["error"] == .null && $0["controls"]?["exposureTargetBias"] == 0
        }
    }

    @Test("what a process had set for a photo when it died, the next one puts back")
    func standInHandedOn() throws {
        let bench = TestBench()
        bench.setExposureTime(scene: 1)
        let left: JSONValue
        do {
            let worker = try WorkerFixture(bench)
            let coordinator = try worker.coordinator
            let bracket = PhotoSettings(highResolution: true, bracket: .exposureBias([-1, 0, 1]))
            _ = try coordinator.order(.preparePhoto(order("a", bracket))).get()
            left = try #require(coordinator.status["standIn"])
            #expect(coordinator.status["controls"]?["exposure_time_absolute"] == 50)
            #expect(try coordinator.order(.dropPhoto(job: "a")).get() == [:])
            try coordinator.waitForStatus("put back") { $0["standIn"] == .null }
        }
        #expect(left["controls"]?.array?.contains("exposure_time_absolute") == true)
        // As it was when the process died.
        bench.set { $0.meddled = ["exposure_time_absolute": .integer(50)] }
        let worker = try WorkerFixture(bench) { $0.standIn = left }
        try worker.coordinator.waitForStatus("as it was") {
            $0["controls"]?["exposure_time_absolute"] == 100 && $0["standIn"] == .null
        }
        #expect(bench.now.set["exposure_time_absolute"] == .integer(100))
        // What can't be read keeps no camera from working.
        let other = try WorkerFixture(TestBench()) { $0.standIn = ["activeFormat": "none"] }
        try other.coordinator.waitForStatus("it is there") { $0["standIn"] == .null && $0["asOf"] != .null }
    }

    @Test("a coordinator that goes leaves the camera as it was")
    func abandoned() throws {
        let worker = try fixture()
        _ = try worker.coordinator.order(.preparePhoto(order("a", bracket))).get()
        #expect(try bias(worker) == -2)
        worker.killCoordinator()
        try worker.startCoordinator()
        try worker.coordinator.waitForStatus("as it was") { $0["controls"]?["exposureTargetBias"] == 0 }
        #expect(try capture(worker, order("a")).photos.count == 1)
    }

    @Test("a camera that is halted takes none")
    func halted() throws {
        let worker = try fixture()
        let coordinator = try worker.coordinator
        _ = try coordinator.order(.preparePhoto(order("a"))).get()
        let taking = try coordinator.send(.takePhoto(job: "a", at: MonotonicClock.now() + 5_000_000_000))
        try coordinator.send(.halt(true))
        let failed = try coordinator.wait("the photo's end") { $0.answers(taking) }
        #expect(failed.error?.reason == .interrupted)
        _ = try coordinator.order(.halt(false)).get()
        #expect(try capture(worker, order("b")).photos.count == 1)
    }

    @Test("a format that can't be had is told with those that can")
    func unavailable() throws {
        let worker = try fixture()
        for settings in [PhotoSettings(format: .dng), PhotoSettings(format: .jpeg, withRaw: true)] {
            let refused = try worker.coordinator.order(.preparePhoto(order("a", settings)))
            guard case .failure(let error) = refused else { return #expect(Bool(false), "\(refused)") }
            #expect(error.reason == .photoFormatUnavailable)
            #expect(error.data["available"] == ["photo": ["jpeg", "png", "tiff"], "raw": []])
        }
        #expect(try capture(worker, order("b")).photos.count == 1)
    }

    @Test("a flash that the camera hasn't is refused with the camera's name")
    func noFlash() throws {
        let worker = try WorkerFixture(TestBench())
        let refused = try worker.coordinator.order(.preparePhoto(order("a", PhotoSettings(flash: .on))))
        guard case .failure(let error) = refused else { return #expect(Bool(false), "\(refused)") }
        #expect(error.reason == .controlUnsupported && error.data["device"] == "cam0", "\(error)")
        #expect(error.message.hasPrefix("cam0 has no flash;"))
    }

    @Test("what there is no memory for is refused, and what there is less for comes later")
    func memory() throws {
        let small = try fixture { $0.photoBudget = 100_000 }
        #expect(throws: BusError.self) { _ = try capture(small, order("a")) }
        // Two frames and their files.
        let worker = try fixture { $0.photoBudget = 500_000 }
        #expect(try capture(worker, order("a", PhotoSettings(burst: 6))).photos.count == 6)
    }
}
