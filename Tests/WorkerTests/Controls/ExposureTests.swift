import BusProtocol
import CaptureCore
import CaptureSources
import JSON
import Testing

@testable import Worker

/// A camera that can be exposed by hand, or for the whole picture: the worker meters its frames around the point and
/// drives it.
@Suite("Exposure for a point", .serialized, .timeLimit(.minutes(5)))
struct ExposureTests {
    private let bench = TestBench()

    private func worker(
        _ scene: [Double] = [0.1, 1, 4], _ configuration: JSONValue? = nil, longest: Int64 = 10_000
    ) throws -> WorkerFixture {
        bench.set {
            $0.scene = scene
            $0.extra = [
                CaptureControl(
                    name: "auto_exposure", title: "", id: 0x9A0901, type: .menu, minimum: 1, maximum: 3,
                    menu: [1: .name("Manual"), 3: .name("Aperture Priority")]),
                CaptureControl(
                    name: "exposure_time_absolute", title: "", id: 0x9A0902, type: .integer, minimum: 5,
                    maximum: longest, defaultValue: 100),
            ]
            $0.meddled = ["auto_exposure": .integer(3), "exposure_time_absolute": .integer(100)]
        }
        return try WorkerFixture(bench) { $0.configuration = configuration }
    }

    @discardableResult
    private func set(_ worker: WorkerFixture, _ controls: JSONValue) throws -> JSONValue {
        let change: JSONValue = ["device": "cam0", "controls": controls]
        let order = { (action: WorkerOrder.Action) in try worker.coordinator.order(action, fence: 1).get() }
        _ = try order(.prepare(transaction: "t", change: change, path: "", mode: .exact))
        let answer = try order(.apply(transaction: "t"))
        _ = try order(.finish(transaction: "t"))
        return answer
    }

    private func point(_ x: Double, _ mode: String) -> JSONValue {
        ["exposurePointOfInterest": ["x": .number(x), "y": .number(0.5)], "exposureMode": .string(mode)]
    }

    private func isNear(_ strip: Int) -> Bool { (95...145).contains(bench.now.luma(strip)) }

    @Test("goes on for the point, tells so, and follows the light")
    func continuous() throws {
        let worker = try worker()
        _ = try worker.coordinator.order(.session(isRunning: true)).get()
        try worker.coordinator.waitForStatus("streaming") { $0["isStreaming"] == true }
        #expect(worker.present?.status["controls"]?["adjustingExposure"] == .null)
        try set(worker, point(0.9, "continuousAutoExposure"))
        // It is said before it is answered that it was set.
        #expect(try worker.coordinator.status["controls"]?["adjustingExposure"] == true)
        #expect(try worker.coordinator.status["controls"]?["exposureMode"] == "continuousAutoExposure")
        let settled = try worker.coordinator.waitForStatus("settled") { $0["controls"]?["adjustingExposure"] == false }
        #expect(isNear(2), "\(bench.now.set)")
        #expect(settled["controls"]?["exposureMode"] == "continuousAutoExposure")
        #expect(settled["controls"]?["exposure_time_absolute"] == bench.now.set["exposure_time_absolute"]?.json)
        #expect(settled["supports"]?["exposurePointOfInterest"] == true)
        // Somebody draws the curtains.
        bench.set { $0.scene = [0.1, 1, 0.5] }
        try worker.coordinator.waitForStatus("adjusting again") { $0["controls"]?["adjustingExposure"] == true }
        try worker.coordinator.waitForStatus("settled again") { $0["controls"]?["adjustingExposure"] == false }
        #expect(isNear(2), "\(bench.now.set)")
        try set(worker, point(0.5, "continuousAutoExposure"))
        #expect(bench.now.set["auto_exposure"] == .integer(3))
        #expect(try worker.coordinator.status["controls"]?["adjustingExposure"] == .null)
        try worker.stop()
    }

    @Test("a frame's time is kept, and the gain does the rest")
    func gain() throws {
        let worker = try worker([0.2])
        try set(worker, point(0.1, "autoExpose"))
        try worker.coordinator.waitForStatus("locked") { $0["controls"]?["exposureMode"] == "locked" }
        // A hundred frames a second.
        #expect(bench.now.set["exposure_time_absolute"] == .integer(100))
        #expect((bench.now.set["gain"]?.number ?? 0) > 3 && isNear(0), "\(bench.now.set)")
        try worker.stop()
    }

    @Test("a camera that never exposes by itself keeps within the bound that was set")
    func bounded() throws {
        bench.setExposureTime(scene: 0.5)
        let worker = try WorkerFixture(bench)
        _ = try worker.coordinator.order(.session(isRunning: true)).get()
        try set(worker, ["exposureMode": "continuousAutoExposure"])
        try worker.coordinator.waitForStatus("settled") { $0["controls"]?["adjustingExposure"] == false }
        #expect(bench.now.set["exposure_time_absolute"] == .integer(100) && isNear(0), "\(bench.now.set)")
        try set(worker, ["activeMaxExposureDuration": 0.004])
        let status = try worker.coordinator.status
        #expect(status["controls"]?["activeMaxExposureDuration"] == .number(0.004))
        try worker.coordinator.waitForStatus("settled again") {
            $0["controls"]?["adjustingExposure"] == false && $0["controls"]?["exposure_time_absolute"] == 40
        }
        #expect(isNear(0), "\(bench.now.set)")
        try worker.stop()
    }

    @Test("once, also of a camera that streams for nobody; what it has come to stays")
    func once() throws {
        let worker = try worker()
        let answer = try set(worker, point(0.9, "autoExpose"))
        #expect(answer["controls"]?["exposureMode"] == "autoExpose")
        let status = try worker.coordinator.waitForStatus("locked") { $0["controls"]?["exposureMode"] == "locked" }
        #expect(isNear(2), "\(bench.now.set)")
        #expect(status["controls"]?["adjustingExposure"] == false)
        try worker.coordinator.waitForStatus("closed") { $0["isOpen"] == false }
        let time = try #require(bench.now.set["exposure_time_absolute"])
        // As any value that was set, it is put back.
        bench.set { $0.meddled = ["exposure_time_absolute": .integer(7)] }
        _ = try worker.coordinator.order(.lock, fence: 2).get()
        try worker.coordinator.waitForStatus("open") { $0["isOpen"] == true }
        #expect(bench.now.set["exposure_time_absolute"] == time)
        #expect(try worker.coordinator.status["controls"]?["exposureMode"] == "locked")
        try worker.stop()
    }

    @Test("a lock keeps it as it is, and it is not put back to what was set by hand before")
    func locked() throws {
        let worker = try worker()
        _ = try worker.coordinator.order(.lock, fence: 1).get()
        _ = try worker.coordinator.order(.session(isRunning: true)).get()
        try set(worker, ["exposureDuration": .number(0.01)])
        try set(worker, point(0.9, "continuousAutoExposure"))
        try worker.coordinator.waitForStatus("settled") { $0["controls"]?["adjustingExposure"] == false }
        let time = try #require(bench.now.set["exposure_time_absolute"])
        #expect(time != .integer(100))
        try set(worker, ["exposureMode": "locked"])
        // Whatever is put back while it is locked, this is not.
        bench.set { $0.meddled = ["brightness": .integer(1)] }
        bench.told.tell(.control(ControlEvent(id: 0x98_0900, value: .integer(1), time: .max)))
        try set(worker, ["brightness": 9])
        #expect(bench.now.set["exposure_time_absolute"] == time)
        #expect(try worker.coordinator.status["controls"]?["exposureMode"] == "locked")
        try worker.stop()
    }

    @Test("what was committed goes on by itself, and makes nobody's camera stream")
    func restored() throws {
        let worker = try worker(
            [0.1, 1, 4],
            [
                "generation": 3, "activeFormat": ["pixelFormat": "YUYV", "width": 64, "height": 48],
                "frameDuration": "1/100",
                "controls": [
                    ["name": "exposure_point_x", "value": 9000], ["name": "auto_exposure", "value": 1],
                    ["name": "exposure_metering", "value": true],
                ],
            ])
        let status = try worker.coordinator.waitForStatus("known") { $0["controls"]?["exposureMode"] != nil }
        #expect(status["controls"]?["exposureMode"] == "continuousAutoExposure")
        #expect(status["controls"]?["adjustingExposure"] == false && status["notRestored"] == [])
        try worker.coordinator.waitForStatus("closed") { $0["isOpen"] == false }
        #expect(bench.now.starts == 0)
        _ = try worker.coordinator.order(.session(isRunning: true)).get()
        try worker.coordinator.waitForStatus("adjusting") { $0["controls"]?["adjustingExposure"] == true }
        try worker.coordinator.waitForStatus("settled") { $0["controls"]?["adjustingExposure"] == false }
        #expect(isNear(2), "\(bench.now.set)")
        try worker.stop()
    }

    @Test("compressed pictures are metered too")
    func compressed() throws {
        let worker = try worker([])
        let dark = try TestPicture.jpeg(luma: 20)
        bench.set { $0.pictures = [dark] }
        try set(worker, point(0.9, "autoExpose"))
        // They stay dark whatever is set, so that it ends where no more can be done.
        try worker.coordinator.waitForStatus("locked") { $0["controls"]?["exposureMode"] == "locked" }
        #expect(bench.now.set["exposure_time_absolute"] == .integer(100) && bench.now.set["gain"] == .integer(10))
        try worker.stop()
    }

    @Test("a picture that is torn in its middle is not metered, and ends nothing")
    func torn() throws {
        let worker = try worker([])
        let (dark, torn) = (try TestPicture.jpeg(luma: 20), try TestPicture.torn())
        bench.set { $0.pictures = [torn, torn, torn, dark] }
        try set(worker, point(0.9, "autoExpose"))
        try worker.coordinator.waitForStatus("locked") { $0["controls"]?["exposureMode"] == "locked" }
        #expect(bench.now.set["exposure_time_absolute"] == .integer(100) && bench.now.set["gain"] == .integer(10))
        try worker.stop()
    }

    @Test("a driver that refuses ends it, and frames that don't come do not keep it for ever")
    func refused() throws {
        let worker = try worker()
        bench.set { $0.refusedControl = "exposure_time_absolute" }
        try set(worker, point(0.9, "autoExpose"))
        try worker.coordinator.waitForStatus("ended") { $0["controls"]?["adjustingExposure"] == false }
        bench.set {
            $0.refusedControl = nil
            $0.isSilent = true
        }
        try set(worker, point(0.8, "autoExpose"))
        try worker.coordinator.waitForStatus("given up") { $0["controls"]?["adjustingExposure"] == false }
        try worker.stop()
    }
}
