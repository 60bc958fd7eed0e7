import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureSources
import JSON
import Testing

@testable import Worker

@Suite("A worker with a virtual camera", .serialized, .timeLimit(.minutes(5)))
struct VirtualCameraTests {
    private func fixture(_ pixelFormat: String = "YUYV", _ width: Int = 640, _ height: Int = 360) throws
        -> WorkerFixture
    {
        try WorkerFixture {
            $0.configuration = [
                "generation": 1, "frameDuration": "1/30", "controls": [],
                "activeFormat": [
                    "pixelFormat": .string(pixelFormat), "width": JSONValue(width), "height": JSONValue(height),
                ],
            ]
        } _: {
            VirtualCamera(index: 0)
        }
    }

    private func layout(_ header: FrameHeader) throws -> FrameLayout {
        FrameLayout(
            pixelFormat: try #require(PixelFormat(header.format)),
            dimensions: Dimensions(width: header.width, height: header.height),
            planes: header.planes.map { PlaneLayout(offset: $0.offset, stride: $0.stride, bytes: $0.bytes) })
    }

    @Test(
        "each rendition is the picture of the frame that its header names",
        arguments: [
            "native", "jpeg", "jpeg:320x180;q=60", "bgr@10", "rgb:320x0", "gray:0x180", "yuyv", "nv12:320x180", "i420",
        ])
    func renditions(_ rendition: String) throws {
        let worker = try fixture()
        let topic = "frame/cam0/\(rendition)/"
        let subscriber = try worker.subscriber(topic)
        var last: FrameHeader?
        for _ in 0..<4 {
            let frame = try subscriber.next { $0.topic == topic }
            let header = try FrameHeader(frame.header)
            #expect(header.rendition == rendition)
            #expect(header.planesFit(in: frame.payload.count))
            let counter = try #require(PictureCounterReader.read(frame.payload, try layout(header)))
            #expect(UInt64(counter.counter) == header.captureSequence)
            #expect(Int64(counter.microseconds) == header.monotonic / 1000)
            if let last {
                #expect(header.sequence > last.sequence)
                #expect(header.captureSequence > last.captureSequence)
            }
            last = header
        }
    }

    @Test("jpeg of an MJPEG camera is the camera's own bytes, and native is the same")
    func passThrough() throws {
        let worker = try fixture("MJPG")
        let subscriber = try worker.subscriber("frame/cam0/native/", "frame/cam0/jpeg/")
        var native: [Int64: [UInt8]] = [:]
        var jpeg: [Int64: [UInt8]] = [:]
        while Set(native.keys).intersection(jpeg.keys).count < 3 {
            let frame = try subscriber.next { $0.topic.hasPrefix("frame/") }
            let sequence = try #require(frame.header["captureSequence"]?.integer)
            #expect(frame.header["format"] == "MJPG")
            if frame.topic == "frame/cam0/jpeg/" {
                jpeg[sequence] = frame.payload
            } else {
                native[sequence] = frame.payload
            }
        }
        for sequence in Set(native.keys).intersection(jpeg.keys) { #expect(native[sequence] == jpeg[sequence]) }
    }

    @Test("equal renditions are produced once, and each gets its own topic")
    func equalWishes() throws {
        let worker = try fixture()
        let topics = ["frame/cam0/gray:320x180@10/", "frame/cam0/gray:320x180@10.0/"]
        let subscriber = try worker.subscriber(topics[0], topics[1])
        for topic in topics {
            let frame = try subscriber.next { $0.topic == topic }
            #expect(topic == "frame/cam0/\(frame.header["rendition"]?.string ?? "")/")
        }
        _ = try worker.coordinator.wait("counters") {
            if case .alive(let counters) = $0 { counters["renditions"]?.object?.count == 1 } else { false }
        }
        #expect(try worker.coordinator.counters["subscriptions"] == 2)
    }

    @Test("a change of format under renditions goes on in the new one; what can't be made any more says so")
    func changeOfFormat() throws {
        let worker = try fixture()
        let subscriber = try worker.subscriber("frame/cam0/gray:320x180/", "frame/cam0/bgr:640x360/")
        let before = try subscriber.next { $0.topic == "frame/cam0/bgr:640x360/" }
        let change: JSONValue = [
            "device": "cam0", "activeFormat": ["pixelFormat": "NV12", "width": 320, "height": 240],
        ]
        _ = try worker.coordinator.order(
            .prepare(transaction: "t", change: change, path: "changes[0]", mode: .exact), fence: 1
        ).get()
        _ = try worker.coordinator.order(.apply(transaction: "t"), fence: 1).get()
        let after = try subscriber.next {
            $0.topic == "frame/cam0/gray:320x180/" && $0.header["stream"] != before.header["stream"]
        }
        #expect(after.header["generation"] == 2)
        let refused = try subscriber.next { $0.topic == "frame/cam0/bgr:640x360/" && $0.header["error"] != nil }
        #expect(refused.header["error"]?["reason"] == "formatUnsupported")
        #expect(refused.header["error"]?["data"]?["nearest"]?["width"] == 320)
    }

    @Test("a busy device says so, and is tried again by itself")
    func busy() throws {
        let worker = try fixture()
        _ = try worker.coordinator.order(.fault(["fault": "busy"])).get()
        let subscriber = try worker.subscriber("frame/cam0/native/")
        let refused = try subscriber.next { $0.header["error"] != nil }
        #expect(refused.header["error"]?["reason"] == "deviceInUse")
        _ = try subscriber.next { $0.topic == "frame/cam0/native/" && $0.header["error"] == nil }
    }

    @Test("a stalled camera shows in the heartbeat, and recovers")
    func stall() throws {
        let worker = try fixture()
        let subscriber = try worker.subscriber("frame/cam0/native/", "heartbeat/")
        _ = try subscriber.next { $0.topic == "frame/cam0/native/" }
        _ = try worker.coordinator.order(.fault(["fault": "stall"])).get()
        let silent = try subscriber.next {
            guard let now = $0.header["monotonic"]?.integer, let last = $0.header["lastFrame"]?.integer else {
                return false
            }
            return now - last > 500_000_000
        }
        #expect(silent.header["streaming"] == true)
        _ = try worker.coordinator.order(.fault(["fault": "none"])).get()
        let last = silent.header["lastFrame"]?.integer ?? 0
        _ = try subscriber.next { $0.header["timestamp"]?["monotonic"]?.integer ?? 0 > last }
    }
}
