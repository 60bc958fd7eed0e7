import BusProtocol
import CaptureCore
import CaptureSources
import JSON
import Testing

@testable import Worker

/// A driver's rectangle, which the format of its pictures may follow.
@Suite("A rectangle of the sensor's picture", .serialized, .timeLimit(.minutes(5)))
struct CropRectangleTests {
    private let bench = TestBench()

    private func worker(scales: Bool, _ configuration: JSONValue? = nil) throws -> WorkerFixture {
        bench.set { $0.cropScales = scales }
        return try WorkerFixture(bench) {
            $0.configuration = configuration
            $0.idleCloseMilliseconds = 60_000
        }
    }

    @discardableResult
    private func change(
        _ worker: WorkerFixture, _ members: JSONValue, mode: ConfigurationMode = .exact
    ) throws -> JSONValue {
        var change = members.object ?? [:]
        change["device"] = "cam0"
        let order = { (action: WorkerOrder.Action) in try worker.coordinator.order(action, fence: 1).get() }
        _ = try order(.prepare(transaction: "t", change: .object(change), path: "", mode: mode))
        let applied = try order(.apply(transaction: "t"))
        _ = try order(.finish(transaction: "t"))
        return applied
    }

    private func part(_ x: Int, _ y: Int, _ width: Int, _ height: Int) -> JSONValue {
        ["x": JSONValue(x), "y": JSONValue(y), "width": JSONValue(width), "height": JSONValue(height)]
    }

    private func committed(_ worker: WorkerFixture) throws -> JSONValue {
        try #require(try worker.coordinator.status["committed"])
    }

    @Test("what the driver made of it is reported, and kept")
    func rounding() throws {
        let worker = try worker(scales: true)
        let applied = try change(worker, ["controls": ["cropRectangle": part(4, 2, 33, 24)]])
        #expect(applied["controls"] == ["cropRectangle": part(4, 2, 32, 24)])
        let adjusted = try #require(applied["adjusted"]?.array)
        #expect(adjusted.count == 1 && adjusted[0]["path"] == "controls.cropRectangle")
        #expect(adjusted[0]["asked"] == part(4, 2, 33, 24) && adjusted[0]["given"] == part(4, 2, 32, 24))
        let status = try worker.coordinator.waitForStatus("cropped") { $0["generation"] == 1 }
        #expect(status["controls"]?["cropRectangle"] == part(4, 2, 32, 24))
        #expect(status["controls"]?["crop_rectangle"] == [4, 2, 32, 24])
        #expect(try committed(worker)["controls"] == [["name": "crop_rectangle", "value": [4, 2, 32, 24]]])
        #expect(try change(worker, ["controls": ["cropRectangle": part(4, 2, 32, 24)]])["adjusted"] == [])
    }

    @Test("a driver that doesn't scale delivers another size: a new stream with a true header, and the format says so")
    func otherSize() throws {
        let worker = try worker(scales: false)
        let subscriber = try worker.subscriber("frame/cam0/native/")
        let before = try FrameHeader(try subscriber.next { $0.header["width"] == 64 }.header)
        let applied = try change(worker, ["controls": ["cropRectangle": part(8, 8, 40, 30)]])
        let adjusted = try #require(applied["adjusted"]?.array)
        #expect(adjusted.count == 1 && adjusted[0]["path"] == "activeFormat")
        #expect(adjusted[0]["given"]?["width"] == 40 && adjusted[0]["asked"]?["width"] == 64)
        let after = try subscriber.next { $0.header["width"] != 64 }
        let header = try FrameHeader(after.header)
        #expect(header.stream != before.stream && header.generation == 1)
        #expect(after.header["width"] == 40 && after.header["height"] == 30 && after.payload.count == 40 * 30 * 2)
        let status = try worker.coordinator.waitForStatus("cropped") { $0["activeFormat"]?["width"] == 40 }
        #expect(status["activeFormat"]?["id"] == .null)
        #expect(try committed(worker)["activeFormat"]?["width"] == 40)
        #expect(status["notRestored"] == [])
        // The whole again, and with it the size.
        try change(worker, ["controls": ["cropRectangle": part(0, 0, 64, 48)]])
        _ = try subscriber.next { $0.header["width"] == 64 }
    }

    @Test("both sizes asked for at once: 'exact' refuses and leaves all as it was")
    func formatAndRectangle() throws {
        let worker = try worker(scales: false)
        let wish: JSONValue = ["activeFormat": "f1", "controls": ["cropRectangle": part(0, 0, 40, 30)]]
        let error = #expect(throws: BusError.self) { try change(worker, wish) }
        #expect(error?.reason == .formatUnsupported && error?.data["nearest"]?["width"] == 40)
        let status = try worker.coordinator.status
        #expect(status["controls"]?["crop_rectangle"] == [0, 0, 64, 48] && status["activeFormat"]?["id"] == "f0")
        let applied = try change(worker, wish, mode: .nearest)
        #expect(applied["adjusted"]?.array?.map { $0["path"] } == ["activeFormat"])
        #expect(applied["activeFormat"]?["width"] == 40)
    }

    @Test("it is put back at an opening, with the format that belongs to it", arguments: [true, false])
    func restored(_ scales: Bool) throws {
        let size = scales ? (64, 48) : (40, 30)
        let worker = try worker(
            scales: scales,
            [
                "generation": 7,
                "activeFormat": ["pixelFormat": "YUYV", "width": JSONValue(size.0), "height": JSONValue(size.1)],
                "frameDuration": "1/100", "controls": [["name": "crop_rectangle", "value": [8, 8, 40, 30]]],
            ])
        let subscriber = try worker.subscriber("frame/cam0/native/")
        let frame = try subscriber.next { $0.topic == "frame/cam0/native/" }
        #expect(frame.header["width"] == JSONValue(size.0) && frame.header["height"] == JSONValue(size.1))
        let status = try worker.coordinator.waitForStatus("open") { $0["isOpen"] == true }
        #expect(status["controls"]?["crop_rectangle"] == [8, 8, 40, 30] && status["notRestored"] == [])
    }

    @Test("a format keeps the rectangle where the driver can, and takes it away where it can't")
    func laterFormat() throws {
        do {
            let worker = try worker(scales: true)
            try change(worker, ["controls": ["cropRectangle": part(8, 8, 40, 30)]])
            #expect(try change(worker, ["activeFormat": "f1"])["adjusted"] == [])
            let status = try worker.coordinator.waitForStatus("f1") { $0["activeFormat"]?["id"] == "f1" }
            #expect(status["controls"]?["crop_rectangle"] == [8, 8, 40, 30])
            try worker.stop()
        }
        let worker = try worker(scales: false)
        try change(worker, ["controls": ["cropRectangle": part(8, 8, 40, 30)]])
        let adjusted = try change(worker, ["activeFormat": "f1"])["adjusted"]?.array ?? []
        #expect(adjusted.count == 1 && adjusted.first?["path"] == "controls.cropRectangle")
        #expect(adjusted.first?["asked"] == part(8, 8, 40, 30) && adjusted.first?["given"] == part(0, 0, 32, 24))
        let status = try worker.coordinator.waitForStatus("f1") { $0["activeFormat"]?["id"] == "f1" }
        #expect(status["controls"]?["crop_rectangle"] == [0, 0, 32, 24])
        #expect(try committed(worker)["controls"] == [["name": "crop_rectangle", "value": [0, 0, 32, 24]]])
    }

    @Test("a zoom by cropping takes the rectangle's place, and the rectangle the zoom's")
    func zoom() throws {
        bench.set {
            $0.extra = [
                CaptureControl(
                    name: "zoom_by_crop", title: "Zoom by Crop", id: 0x00CB_0001, type: .integer, minimum: 100,
                    maximum: 400, flags: [.volatile])
            ]
        }
        let worker = try worker(scales: true)
        func names() throws -> [String] {
            try committed(worker)["controls"]?.array?.compactMap { $0["name"]?.string } ?? []
        }
        try change(worker, ["controls": ["cropRectangle": part(8, 8, 40, 30)]])
        #expect(try names() == ["crop_rectangle"])
        try change(worker, ["controls": ["videoZoomFactor": 2]])
        #expect(try names() == ["zoom_by_crop"])
        try change(worker, ["controls": ["cropRectangle": part(0, 0, 40, 30)]])
        #expect(try names() == ["crop_rectangle"])
    }
}
