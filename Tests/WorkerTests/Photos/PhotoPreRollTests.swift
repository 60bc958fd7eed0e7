import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureSources
import JSON
import LinuxIO
import Testing

@testable import Worker

@Suite("A worker's photos of a moment that is over", .serialized, .timeLimit(.minutes(5)))
struct PhotoPreRollTests {
    private func fixture(_ pixelFormat: String = "MJPG", preRoll: Int = 2000) throws -> WorkerFixture {
        let worker = try WorkerFixture {
            $0.configuration = [
                "generation": 1, "frameDuration": "1/30", "controls": [],
                "activeFormat": ["pixelFormat": .string(pixelFormat), "width": 320, "height": 240],
            ]
        } _: {
            VirtualCamera(index: 0)
        }
        _ = try worker.coordinator.order(.session(isRunning: true, preRoll: preRoll)).get()
        return worker
    }

    private func order(_ job: String, _ moment: Int64, _ settings: PhotoSettings = PhotoSettings()) -> PhotoOrder {
        var settings = settings
        settings.ago = max(1_000_000, MonotonicClock.now() - moment)
        return PhotoOrder(job: job, settings: settings, attaches: true, moment: moment)
    }

    private struct Capture {
        var resolution: PhotoResolution
        var photo: PhotoResult
        var counter: PictureCounter
        var stages: [PhotoProgress]
    }

    private func capture(_ worker: WorkerFixture, _ order: PhotoOrder) throws -> Capture {
        let coordinator = try worker.coordinator
        let prepared = try coordinator.order(.preparePhoto(order)).get()
        let answer = try coordinator.order(.takePhoto(job: order.job)).get()
        let told = coordinator.progress.filter { $0.job == order.job }
        let file = try #require(told.compactMap(\.file).first)
        return Capture(
            resolution: try PhotoResolution(json: try #require(prepared["resolution"])),
            photo: try PhotoResult(json: try #require(answer["photos"]?.array?.first)),
            counter: try #require(file.withUnsafeBytes { PictureCounterReader.read(jpeg: $0) }),
            stages: told.map(\.stage))
    }

    @Test("are of the frame that there was then, as the camera gave it")
    func own() throws {
        let worker = try fixture()
        let subscriber = try worker.subscriber("frame/cam0/native/")
        let then = try subscriber.next()
        let (sequence, moment) = (
            try #require(then.header["captureSequence"]?.integer),
            try #require(then.header["timestamp"]?["monotonic"]?.integer)
        )
        _ = try subscriber.next { $0.header["captureSequence"]?.integer ?? 0 >= sequence + 20 }
        let taken = try capture(worker, order("a", moment, PhotoSettings(thumbnail: PhotoThumbnail())))
        #expect(taken.photo.sequence == UInt64(sequence) && taken.photo.timestamp.monotonic == moment)
        #expect(Int64(taken.counter.counter) == sequence && taken.photo.isSettled && taken.photo.index == 0)
        #expect(taken.photo.exposure == nil && taken.photo.thumbnail == taken.resolution.thumbnail)
        #expect(taken.resolution.pixelFormat == .motionJPEG && taken.resolution.photos == 1)
        #expect(taken.stages == [.willCapture, .didCapture, .processed])
        // Between two frames it is the nearer one.
        let later = try capture(worker, order("b", moment + 10_000_000))
        #expect(later.photo.sequence == UInt64(sequence))
        let next = try capture(worker, order("c", moment + 25_000_000))
        #expect(next.photo.sequence == UInt64(sequence) + 1)
    }

    @Test("are encoded where the camera gives no JPEG")
    func encoded() throws {
        let worker = try fixture("YUYV")
        let subscriber = try worker.subscriber("frame/cam0/native/")
        let asked = MonotonicClock.now()
        _ = try subscriber.next { $0.header["captureSequence"]?.integer ?? 0 >= 30 }
        let taken = try capture(worker, order("a", MonotonicClock.now() - 200_000_000))
        #expect(taken.counter.counter == UInt32(truncatingIfNeeded: taken.photo.sequence))
        #expect(taken.photo.timestamp.monotonic > asked && taken.resolution.pixelFormat == .yuyv)
        #expect(taken.photo.dimensions == Dimensions(width: 320, height: 240))
    }

    @Test("come while another photo has the camera")
    func beside() throws {
        let worker = try fixture()
        let subscriber = try worker.subscriber("frame/cam0/native/")
        let then = try subscriber.next()
        let moment = try #require(then.header["timestamp"]?["monotonic"]?.integer)
        let coordinator = try worker.coordinator
        _ = try coordinator.order(
            .preparePhoto(PhotoOrder(job: "now", settings: PhotoSettings(), attaches: true))
        ).get()
        #expect(try capture(worker, order("then", moment)).photo.timestamp.monotonic == moment)
        let now = try coordinator.order(.takePhoto(job: "now")).get()
        #expect(now["photos"]?[0]?["timestamp"]?["monotonic"]?.integer ?? 0 > moment)
    }

    @Test("that are not held are refused with what is")
    func notHeld() throws {
        func refusal(_ worker: WorkerFixture, _ moment: Int64) throws -> BusError? {
            let answer = try worker.coordinator.order(.preparePhoto(order("\(moment)", moment)))
            guard case .failure(let error) = answer else { return nil }
            return error
        }
        let worker = try fixture(preRoll: 100)
        let subscriber = try worker.subscriber("frame/cam0/native/")
        let before = MonotonicClock.now() - 5_000_000_000
        _ = try subscriber.next { $0.header["captureSequence"]?.integer ?? 0 >= 5 }
        let early = try #require(try refusal(worker, before))
        #expect(early.reason == .momentNotHeld && early.data["preRoll"] == 100)
        #expect(early.data["oldest"]?.double ?? .infinity < 5000)
        // Nobody wants them to be held any more; frames go on for the subscriber.
        _ = try worker.coordinator.order(.session(isRunning: true)).get()
        let last = try subscriber.next()
        _ = try subscriber.next {
            $0.header["captureSequence"]?.integer ?? 0 > last.header["captureSequence"]?.integer ?? 0
        }
        let none = try #require(try refusal(worker, MonotonicClock.now()))
        #expect(none.reason == .momentNotHeld && none.data["preRoll"] == 0 && none.data["oldest"] == .null)
        // What is given up is over.
        #expect(try worker.coordinator.order(.dropPhoto(job: "nobody")).get() == [:])
    }

    @Test("what is held is kept when more is wanted, and goes with its stream")
    func longer() throws {
        let worker = try fixture(preRoll: 3000)
        let subscriber = try worker.subscriber("frame/cam0/native/")
        let then = try subscriber.next()
        let moment = try #require(then.header["timestamp"]?["monotonic"]?.integer)
        _ = try worker.coordinator.order(.session(isRunning: true, preRoll: 8000)).get()
        #expect(try capture(worker, order("a", moment)).photo.timestamp.monotonic == moment)
        try worker.coordinator.waitForStatus("streaming") { $0["isStreaming"] == true }
        _ = try worker.coordinator.order(.halt(true)).get()
        try worker.coordinator.waitForStatus("halted") { $0["isStreaming"] == false }
        _ = try worker.coordinator.order(.halt(false)).get()
        _ = try subscriber.next { $0.header["stream"] != then.header["stream"] }
        let answer = try worker.coordinator.order(.preparePhoto(order("b", moment)))
        guard case .failure(let error) = answer else { return #expect(Bool(false), "\(answer)") }
        #expect(error.reason == .momentNotHeld)
    }
}
