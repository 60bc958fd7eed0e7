import BusProtocol
import CaptureCore
import CaptureSources
import Imaging
import JSON
import Testing

@testable import Worker

/// A camera that can't zoom: the worker zooms the pictures that it makes, and leaves the camera's own alone.
@Suite("Digital zoom", .serialized, .timeLimit(.minutes(5)))
struct DigitalZoomTests {
    private let bench = TestBench()

    /// Four strips from left to right: black, dark, grey, bright.
    private func worker(_ change: @escaping (inout WorkerOptions) -> Void = { _ in }) throws -> WorkerFixture {
        bench.set { $0.scene = [0, 0.3, 1, 2] }
        return try WorkerFixture(bench, change)
    }

    @discardableResult
    private func change(_ worker: WorkerFixture, _ change: JSONValue, fence: UInt64 = 1) throws -> JSONValue {
        let order = { (action: WorkerOrder.Action) in try worker.coordinator.order(action, fence: fence).get() }
        _ = try order(.prepare(transaction: "t", change: change, path: "", mode: .exact))
        let answer = try order(.apply(transaction: "t"))
        _ = try order(.finish(transaction: "t"))
        return answer
    }

    private func zoom(_ worker: WorkerFixture, _ factor: JSONValue) throws {
        try change(worker, ["device": "cam0", "controls": ["videoZoomFactor": factor]])
    }

    /// Which strips a grey picture of 64x48 shows at its left and right edge.
    private func edges(_ picture: ArraySlice<UInt8>) -> [Int] {
        let lumas = [16, 46, 117, 218].map { (Double($0) - 16) * 255 / 219 }
        let line = picture.dropFirst(24 * 64).prefix(64)
        return [line.first, line.last].compactMap { value in
            lumas.indices.min { abs(lumas[$0] - Double(value ?? 0)) < abs(lumas[$1] - Double(value ?? 0)) }
        }
    }

    private let made = "frame/cam0/gray/", native = "frame/cam0/native/"

    @Test("what is made is zoomed from one frame on, and says so; the camera's own is not")
    func factor() throws {
        let worker = try worker()
        let subscriber = try worker.subscriber(made, native)
        let whole = try subscriber.next { $0.topic == made }
        #expect(whole.header["zoom"] == nil && edges(whole.payload[...]) == [0, 3])
        try zoom(worker, 2)
        let controls = try worker.coordinator.status["controls"]
        #expect(controls?["videoZoomFactor"] == 2 && controls?["digital_zoom"] == 2000)
        var isZoomed = false
        var natives = 0
        while !isZoomed || natives < 3 {
            let frame = try subscriber.next { $0.topic == made || $0.topic == native }
            if frame.topic == native {
                #expect(frame.header["zoom"] == nil)
                if isZoomed { natives += 1 }
                continue
            }
            // Header and picture never disagree, and there is no way back.
            let says = frame.header["zoom"] == 2
            #expect(frame.header["zoom"] == (says ? 2 : nil) && (says || !isZoomed))
            #expect(edges(frame.payload[...]) == (says ? [1, 2] : [0, 3]))
            isZoomed = says
        }
        try zoom(worker, 1)
        let again = try subscriber.next { $0.topic == made && $0.header["zoom"] == nil }
        #expect(edges(again.payload[...]) == [0, 3])
        // Nothing of it has come to the camera.
        #expect(!bench.now.calls.contains { $0.hasPrefix("set ") })
        try worker.stop()
    }

    @Test("all renditions of a frame show the same part")
    func renditions() throws {
        let worker = try worker()
        let topics = ["gray", "jpeg:32x24", "i420;rotate=180", "gray:0x20@30"].map { "frame/cam0/\($0)/" }
        let subscriber = try Subscriber(worker.room.directory.mediaSocket("cam0"), topics, highWaterMark: 100)
        for topic in topics { _ = try subscriber.next { $0.topic == topic } }
        try zoom(worker, .number(1.5))
        _ = try worker.coordinator.order(
            .rampZoom(ZoomRequest(target: .factor(3), rate: 2)), fence: 1
        ).get()
        var told: [JSONValue: JSONValue] = [:]
        var seen: Set<String> = []
        while seen.count < topics.count {
            let frame = try subscriber.next { topics.contains($0.topic) }
            let (number, zoom) = (frame.header["captureSequence"] ?? .null, frame.header["zoom"] ?? 1)
            #expect(told[number] ?? zoom == zoom)
            told[number] = zoom
            if zoom == 3 { seen.insert(frame.topic) }
        }
        try worker.stop()
    }

    @Test("a ramp goes from frame to frame, and stays where it ends")
    func ramp() throws {
        let worker = try worker()
        let subscriber = try worker.subscriber(made)
        _ = try subscriber.next { $0.topic == made }
        let answer = try worker.coordinator.order(
            .rampZoom(ZoomRequest(target: .value(1), rate: 1)), fence: 1
        ).get()
        #expect(answer["to"]?.double == 3)
        var last = 1.0
        var steps = 0
        while last < 3 {
            let frame = try subscriber.next { $0.topic == made }
            let now = frame.header["zoom"]?.double ?? 1
            #expect(now >= last && now <= 3)
            if now > last { steps += 1 }
            last = now
        }
        #expect(steps > 1)
        try worker.coordinator.waitForStatus("the end") { $0["controls"]?["rampingVideoZoom"] == false }
        #expect(try worker.coordinator.status["controls"]?["videoZoomFactor"] == 3)
        try worker.stop()
    }

    @Test("it is put back when the worker starts, also when the camera was closed in between")
    func restored() throws {
        let configuration: JSONValue = [
            "generation": 7, "activeFormat": ["pixelFormat": "YUYV", "width": 64, "height": 48],
            "frameDuration": "1/100", "controls": [["name": "digital_zoom", "value": 2000]],
        ]
        let worker = try worker { $0.configuration = configuration }
        for _ in 0..<2 {
            let subscriber = try worker.subscriber(made)
            let frame = try subscriber.next { $0.topic == made }
            #expect(frame.header["zoom"] == 2 && edges(frame.payload[...]) == [1, 2])
            bench.clearCalls()
            try subscriber.unsubscribe(made)
            try bench.wait(forCall: "close")
        }
        #expect(try worker.coordinator.status["notRestored"]?.array?.isEmpty ?? true)
        try worker.stop()
    }

    @Test("another format takes the factor along, and one that is too far is refused")
    func formats() throws {
        let worker = try worker()
        try zoom(worker, 3)
        let refused = try worker.coordinator.order(
            .prepare(
                transaction: "r", change: ["device": "cam0", "controls": ["videoZoomFactor": .number(3.1)]], path: "",
                mode: .exact), fence: 1)
        #expect(throws: BusError.self) { try refused.get() }
        let answer = try change(worker, ["device": "cam0", "activeFormat": "f1"])
        #expect(answer["adjusted"]?[0]?["given"] == .number(1.5))
        #expect(try worker.coordinator.status["controls"]?["videoZoomFactor"] == .number(1.5))
        let subscriber = try worker.subscriber(made)
        let frame = try subscriber.next { $0.topic == made }
        #expect(frame.header["width"] == 32 && frame.header["zoom"] == .number(1.5))
        try worker.stop()
    }

    @Test("in shared memory the message and the record tell it")
    func rings() throws {
        let worker = try worker()
        try zoom(worker, .number(1.25))
        let subscriber = try worker.subscriber("buffer/cam0/gray/", "buffer/cam0/native/")
        let frame = try subscriber.next { $0.topic == "buffer/cam0/gray/" }
        #expect(frame.header["zoom"] == .number(1.25) && frame.header["buffer"] != nil)
        #expect(try subscriber.next { $0.topic == "buffer/cam0/native/" }.header["zoom"] == nil)
        try worker.stop()
    }

    @Test("a JPEG camera's own picture stays whole, also turned ones are zoomed")
    func motionJPEG() throws {
        let size = Dimensions(width: 64, height: 48)
        let layout = try #require(FrameLayout.packed(.grey, size))
        let converter = try PictureConverter(from: layout, to: PictureRequest(encoding: .jpeg, dimensions: size))
        let output = PictureBuffer()
        let picture = (0..<size.area).map { UInt8($0 % 64 / 16 * 80) }
        _ = try picture.withUnsafeBytes { try converter.convert([$0], bytesUsed: [picture.count], into: output) }
        let jpeg = Array(output.bytes)
        bench.set { $0.pictures = [jpeg] }
        let worker = try WorkerFixture(bench)
        try zoom(worker, 2)
        let subscriber = try worker.subscriber("frame/cam0/jpeg/", "frame/cam0/jpeg;rotate=180/", made)
        let own = try subscriber.next { $0.topic == "frame/cam0/jpeg/" }
        #expect(own.payload == jpeg && own.header["zoom"] == nil)
        let turned = try subscriber.next { $0.topic == "frame/cam0/jpeg;rotate=180/" }
        #expect(turned.header["zoom"] == 2 && turned.payload != jpeg)
        let gray = try subscriber.next { $0.topic == made }
        let line = gray.payload[(24 * 64)..<(25 * 64)]
        #expect(gray.header["zoom"] == 2 && abs(Int(line.first ?? 0) - 80) < 8 && abs(Int(line.last ?? 0) - 160) < 8)
        try worker.stop()
    }

    @Test("a driver that zooms is left to it")
    func driver() throws {
        bench.set {
            $0.extra = [
                CaptureControl(
                    name: "zoom_absolute", title: "", id: 0x9A090D, type: .integer, minimum: 100, maximum: 400,
                    defaultValue: 100)
            ]
        }
        let worker = try worker()
        let subscriber = try worker.subscriber(made)
        try zoom(worker, 2)
        #expect(bench.now.set["zoom_absolute"] == .integer(200))
        #expect(try worker.coordinator.status["controls"]?["digital_zoom"] == nil)
        for _ in 0..<3 { #expect(try subscriber.next { $0.topic == made }.header["zoom"] == nil) }
        try worker.stop()
    }

    @Test("nothing is zoomed where the configuration says 1")
    func off() throws {
        let worker = try worker { $0.maxZoom = 1 }
        _ = try worker.coordinator.order(.readControls).get()
        #expect(try worker.coordinator.status["controls"]?["digital_zoom"] == nil)
        #expect(try worker.coordinator.status["supports"]?["videoZoomFactor"] == false)
        try worker.stop()
    }
}
