import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureSources
import Imaging
import JSON
import LinuxIO
import Testing

@testable import Worker

@Suite("A worker's photos", .serialized, .timeLimit(.minutes(5)))
struct PhotoTests {
    func fixture(
        _ width: Int = 320, _ height: Int = 240, _ change: @escaping (inout WorkerOptions) -> Void = { _ in }
    ) throws -> WorkerFixture {
        try WorkerFixture {
            $0.configuration = [
                "generation": 1, "frameDuration": "1/60", "controls": [],
                "activeFormat": ["pixelFormat": "YUYV", "width": JSONValue(width), "height": JSONValue(height)],
            ]
            change(&$0)
        } _: {
            VirtualCamera(index: 0)
        }
    }

    func order(
        _ job: String = "a", _ settings: PhotoSettings = PhotoSettings(), attaches: Bool = true,
        place: PhotoPlace? = nil
    ) -> PhotoOrder {
        PhotoOrder(job: job, settings: settings, attaches: attaches, place: place)
    }

    struct Capture {
        var resolution: PhotoResolution
        var photos: [PhotoResult]
        var files: [[UInt8]]
        var stages: [PhotoProgress]
    }

    func capture(
        _ worker: WorkerFixture, _ order: PhotoOrder, at time: Int64? = nil, meanwhile: () throws -> Void = {}
    ) throws -> Capture {
        let coordinator = try worker.coordinator
        let prepared = try coordinator.order(.preparePhoto(order)).get()
        let number = try coordinator.send(.takePhoto(job: order.job, at: time))
        try meanwhile()
        let answer = try coordinator.reply(to: number).get()
        let told = coordinator.progress.filter { $0.job == order.job }
        return Capture(
            resolution: try PhotoResolution(json: try #require(prepared["resolution"])),
            photos: try #require(answer["photos"]?.array).map { try PhotoResult(json: $0) },
            files: told.compactMap(\.file), stages: told.map(\.stage))
    }

    private func counter(_ jpeg: [UInt8]) throws -> PictureCounter {
        try #require(jpeg.withUnsafeBytes { PictureCounterReader.read(jpeg: $0) })
    }

    func light(_ jpeg: [UInt8], _ size: Dimensions) throws -> Double {
        let layout = try #require(FrameLayout.packed(.jpeg, size))
        let converter = try PictureConverter(from: layout, to: PictureRequest(encoding: .gray, dimensions: size))
        let output = PictureBuffer()
        let count = try jpeg.withUnsafeBytes {
            try converter.convert([$0], bytesUsed: [jpeg.count], zoom: DigitalZoom.whole, into: output)
        }
        return Double(output.bytes.prefix(count).reduce(0) { $0 + Int($1) }) / Double(count)
    }

    func bias(_ worker: WorkerFixture) throws -> JSONValue? {
        try worker.coordinator.status["controls"]?["exposureTargetBias"]
    }

    let bracket = PhotoSettings(bracket: .exposureBias([-2, 0, 2]))

    // MARK: One photo

    @Test("of a camera that nobody uses shows a moment after it was asked for, and the camera is closed again")
    func cold() throws {
        let worker = try fixture()
        try worker.coordinator.waitForStatus("closed") { $0["isOpen"] == false }
        let asked = MonotonicClock.now()
        let capture = try capture(worker, order("cold", PhotoSettings(thumbnail: PhotoThumbnail())))
        #expect(capture.stages == [.willCapture, .didCapture, .processed])
        let photo = try #require(capture.photos.first)
        let file = try #require(capture.files.first)
        #expect(capture.photos.count == 1 && capture.files.count == 1 && photo.bytes == file.count)
        let counter = try counter(file)
        #expect(UInt64(counter.counter) == photo.sequence)
        #expect(Int64(counter.microseconds) == photo.timestamp.monotonic / 1000)
        #expect(photo.timestamp.monotonic > asked && photo.isSettled && photo.device == "cam0" && photo.index == 0)
        #expect(photo.dimensions == Dimensions(width: 320, height: 240) && photo.path == nil)
        #expect(capture.resolution.dimensions == photo.dimensions && capture.resolution.format == .jpeg)
        #expect(capture.resolution.thumbnail == photo.thumbnail && photo.thumbnail != nil)
        #expect(photo.exposure?.duration == 15_600_000 && photo.exposure?.iso == 100 && photo.exposure?.bias == 0)
        try worker.coordinator.waitForStatus("closed") { $0["isOpen"] == false }
    }

    @Test("at a moment is the nearest frame; frames to others go on")
    func moment() throws {
        let worker = try fixture()
        let subscriber = try worker.subscriber("frame/cam0/native/")
        let before = try subscriber.next()
        let coordinator = try worker.coordinator
        _ = try coordinator.order(.preparePhoto(order())).get()
        let wanted = MonotonicClock.now() + 100_000_000
        let answer = try coordinator.order(.takePhoto(job: "a", at: wanted)).get()
        let photo = try PhotoResult(json: try #require(answer["photos"]?.array?.first))
        // Frames may be missed, and none is earlier than half its time before.
        #expect(photo.timestamp.monotonic > wanted - 8_500_000)
        #expect(before.header["stream"]?.string == photo.stream)
        // That frame went to everybody.
        _ = try subscriber.next { $0.header["captureSequence"]?.integer == Int64(photo.sequence) }
        _ = try subscriber.next { $0.header["captureSequence"]?.integer ?? 0 > Int64(photo.sequence) }
    }

    @Test("a burst takes frame after frame")
    func burst() throws {
        let worker = try fixture()
        let capture = try capture(worker, order("b", PhotoSettings(burst: 5)))
        #expect(capture.photos.map(\.index) == [0, 1, 2, 3, 4] && capture.files.count == 5)
        let sequences = capture.photos.map(\.sequence)
        #expect(sequences == sequences.sorted() && Set(sequences).count == 5)
        #expect(capture.stages.filter { $0 != .processed } == [.willCapture, .didCapture])
        #expect(capture.stages.count == 7 && capture.resolution.photos == 5)
    }

    @Test("two requests at once have the camera one after the other")
    func overlapping() throws {
        let worker = try fixture()
        let coordinator = try worker.coordinator
        _ = try coordinator.order(.preparePhoto(order("a"))).get()
        let second = try coordinator.send(.preparePhoto(order("b")))
        let early = try coordinator.order(.takePhoto(job: "b"))
        if case .failure(let error) = early { #expect(error.reason == .interrupted) } else { #expect(Bool(false)) }
        #expect(throws: BusError.self) { try coordinator.order(.preparePhoto(order("a"))).get() }
        _ = try coordinator.send(.takePhoto(job: "a"))
        _ = try coordinator.wait("the second is ready") { $0.answers(second) }
        let answer = try coordinator.order(.takePhoto(job: "b")).get()
        let photo = try PhotoResult(json: try #require(answer["photos"]?.array?.first))
        let first = try #require(coordinator.progress.first { $0.job == "a" && $0.photo != nil }?.photo)
        // The camera was not let go of in between.
        #expect(photo.sequence > first.sequence && photo.stream == first.stream)
    }

    @Test("a photo that nobody wants any more is over, and the next one goes on")
    func dropped() throws {
        let worker = try fixture()
        let coordinator = try worker.coordinator
        _ = try coordinator.order(.preparePhoto(order("a", bracket))).get()
        #expect(try bias(worker) == -2)
        #expect(try coordinator.order(.dropPhoto(job: "a")).get() == [:])
        #expect(try bias(worker) == 0)
        #expect(throws: BusError.self) { try coordinator.order(.takePhoto(job: "a")).get() }
        #expect(try coordinator.order(.dropPhoto(job: "none")).get() == [:])
        #expect(try capture(worker, order("b")).photos.count == 1)
    }

    // MARK: Settings

    @Test("a bracket becomes brighter from step to step, and the exposure is as it was afterwards")
    func bracketed() throws {
        let worker = try fixture()
        let capture = try capture(worker, order("a", bracket))
        #expect(capture.resolution.bracket == .exposureBias([-2, 0, 2]))
        let lights = try capture.photos.map { try light(capture.files[$0.index], $0.dimensions) }
        #expect(lights[0] * 1.5 < lights[1] && lights[1] * 1.1 < lights[2], "\(lights)")
        #expect(capture.photos.map(\.exposure?.bias) == [-2, 0, 2])
        #expect(capture.photos.map(\.exposure?.duration) == [3_900_000, 15_600_000, 62_400_000])
        #expect(capture.photos.allSatisfy { $0.isSettled })
        // The camera finds its exposure again if it streams for long enough.
        try worker.coordinator.waitForStatus("as it was") {
            $0["controls"]?["exposureTargetBias"] == 0
                && ($0["controls"]?["exposureDuration"] == .number(0.0156)
                    || $0["controls"]?["adjustingExposure"] == true)
        }
        #expect(try worker.coordinator.status["committed"]?["controls"] == [])
    }

    @Test("where the camera can't be told to be brighter, its exposure time is")
    func bracketByTime() throws {
        let bench = TestBench()
        bench.setExposureTime(scene: 1)
        let worker = try WorkerFixture(bench)
        let capture = try capture(worker, order("a", PhotoSettings(bracket: .exposureBias([-1, 0, 1]))))
        #expect(capture.photos.map(\.exposure?.duration) == [5_000_000, 10_000_000, 20_000_000])
        #expect(capture.photos.map(\.exposure?.bias) == [-1, 0, 1])
        let lights = try capture.photos.map { try light(capture.files[$0.index], $0.dimensions) }
        #expect(lights[0] + 20 < lights[1] && lights[1] + 20 < lights[2], "\(lights)")
        #expect(try worker.coordinator.order(.dropPhoto(job: "a")).get() == [:])
        try worker.coordinator.waitForStatus("as it was") {
            $0["controls"]?["exposure_time_absolute"] == 100
        }
        #expect(bench.now.set["exposure_time_absolute"] == .integer(100))
    }

    @Test("a flash lights the frame that is the photo")
    func flash() throws {
        let worker = try fixture()
        let plain = try capture(worker, order("plain"))
        #expect(plain.photos.first?.flashFired != true && !plain.resolution.flash)
        let lit = try capture(worker, order("lit", PhotoSettings(flash: .on)))
        let photo = try #require(lit.photos.first)
        #expect(lit.resolution.flash && photo.flashFired == true)
        let size = photo.dimensions
        #expect(try light(lit.files[0], size) > light(plain.files[0], size) * 1.2)
        #expect(try worker.coordinator.order(.dropPhoto(job: "lit")).get() == [:])
        #expect(try worker.coordinator.status["controls"]?["flashMode"] == "off")
        // It is light enough.
        let automatic = try capture(worker, order("auto", PhotoSettings(flash: .auto)))
        #expect(!automatic.resolution.flash && automatic.photos.first?.flashFired != true)
    }

    @Test("a flash has its photo also where one frame has room at a time", arguments: [160_000, 320_000])
    func flashInLittleMemory(budget: Int) throws {
        let worker = try fixture { $0.photoBudget = budget }
        let lit = try capture(worker, order("lit", PhotoSettings(flash: .on)))
        #expect(lit.photos.first?.flashFired == true && lit.files.count == 1)
    }

    @Test("frames that come while the flash is being fired leave room for the lit one")
    func slowFlash() throws {
        let bench = TestBench()
        bench.set {
            $0.heldControl = "strobe"
            $0.extra = [
                CaptureControl(
                    name: "led_mode", title: "", id: 0x9C0901, type: .menu, maximum: 2,
                    menu: [0: .name("Off"), 1: .name("Flash"), 2: .name("Torch")]),
                CaptureControl(name: "strobe", title: "", id: 0x9C0903, type: .button),
            ]
        }
        // Two frames.
        let worker = try WorkerFixture(bench) { $0.photoBudget = 13_000 }
        let subscriber = try worker.subscriber("frame/cam0/native/", highWaterMark: 1000)
        defer { bench.release() }
        let capture = try capture(worker, order("lit", PhotoSettings(flash: .on))) {
            try bench.wait(forCall: "set strobe")
            let now = MonotonicClock.now()
            for _ in 0..<6 { _ = try subscriber.next { $0.header["timestamp"]?["monotonic"]?.integer ?? 0 > now } }
            bench.release()
        }
        #expect(capture.photos.first?.flashFired == true)
    }

    @Test("flashes of a burst are as far apart as they were asked to be")
    func flashes() throws {
        let worker = try fixture()
        let capture = try capture(worker, order("lit", PhotoSettings(flash: .on, burst: 2, interval: 500_000_000)))
        let times = capture.photos.map(\.timestamp.monotonic)
        #expect(capture.photos.map(\.flashFired) == [true, true])
        #expect(times.count == 2 && times[1] - times[0] > 450_000_000, "\(times)")
    }

    @Test("at the highest resolution the stream stands still for a moment and comes back as it was")
    func highResolution() throws {
        let bench = TestBench()
        let worker = try WorkerFixture(bench) {
            $0.configuration = [
                "generation": 5, "frameDuration": "1/100", "controls": [],
                "activeFormat": ["pixelFormat": "YUYV", "width": 32, "height": 24],
            ]
        }
        let subscriber = try worker.subscriber("frame/cam0/native/")
        let before = try subscriber.next()
        #expect(before.header["generation"] == 5 && before.header["width"] == 32)
        let capture = try capture(worker, order("a", PhotoSettings(highResolution: true)))
        #expect(capture.photos.first?.dimensions == Dimensions(width: 64, height: 48))
        #expect(capture.resolution.highResolution && capture.resolution.dimensions == Dimensions(width: 64, height: 48))
        _ = try subscriber.next { $0.header["generation"] == 6 && $0.header["width"] == 64 }
        _ = try subscriber.next { $0.header["generation"] == 7 && $0.header["width"] == 32 }
        #expect(try worker.coordinator.status["committed"]?["activeFormat"]?["width"] == 32)
        // Where it is the largest already nothing is changed.
        let large = try WorkerFixture(TestBench())
        #expect(try self.capture(large, order("b", PhotoSettings(highResolution: true))).photos.count == 1)
        #expect(try large.coordinator.status["generation"] == 0)
    }

    @Test("a size of one's choice is had for a moment, smaller or larger, and no size within it is refused")
    func ofASize() throws {
        let worker = try fixture(640, 480)
        func size(_ width: Int, _ height: Int) -> PhotoSettings {
            PhotoSettings(maxDimensions: Dimensions(width: width, height: height))
        }
        for (number, (asked, given)) in [
            (size(1900, 1080), Dimensions(width: 1280, height: 720)),
            (size(400, 400), Dimensions(width: 320, height: 240)),
        ].enumerated() {
            let capture = try capture(worker, order("s\(number)", asked))
            #expect(capture.photos.map(\.dimensions) == [given] && capture.resolution.dimensions == given)
            try worker.coordinator.waitForStatus("as before") { $0["activeFormat"]?["width"] == 640 }
        }
        let before = try worker.coordinator.status["generation"]
        #expect(try capture(worker, order("same", size(640, 480))).photos.first?.dimensions.width == 640)
        #expect(try worker.coordinator.status["generation"] == before)
        let refused = try worker.coordinator.order(.preparePhoto(order("small", size(319, 480))))
        guard case .failure(let error) = refused else { return #expect(Bool(false), "\(refused)") }
        #expect(
            error.reason == .formatUnsupported && error.data["nearest"] == ["width": 320, "height": 240], "\(error)")
        #expect(error.data["supportedMaxPhotoDimensions"]?.array?.first == ["width": 320, "height": 240])
        #expect(error.message.contains("its sizes are 320x240, "))
    }

    @Test("what somebody sets meanwhile finds the camera as it was, and the photo is told")
    func interrupted() throws {
        let worker = try fixture()
        let coordinator = try worker.coordinator
        _ = try coordinator.order(.preparePhoto(order("a", bracket))).get()
        let taking = try coordinator.send(.takePhoto(job: "a", at: MonotonicClock.now() + 5_000_000_000))
        let change: JSONValue = ["device": "cam0", "controls": ["brightness": 7]]
        let setting = try coordinator.send(
            .prepare(transaction: "t", change: change, path: "", mode: .exact), fence: 1)
        let failed = try coordinator.wait("the photo's end") { $0.answers(taking) }
        #expect(failed.error?.reason == .interrupted && failed.error?.data["interruption"] == "reconfiguration")
        _ = try coordinator.wait("it is prepared") { $0.answers(setting) }
        #expect(try bias(worker) == 0)
        _ = try coordinator.order(.apply(transaction: "t"), fence: 1).get()
        _ = try coordinator.order(.finish(transaction: "t")).get()
        #expect(try coordinator.status["controls"]?["brightness"] == 7 && bias(worker) == 0)
    }
}

extension WorkerReport {
    /// It is the answer to that order.
    func answers(_ number: UInt64) -> Bool { if case .reply(number, _) = self { true } else { false } }

    var error: BusError? { if case .reply(_, .failure(let error)) = self { error } else { nil } }
}
