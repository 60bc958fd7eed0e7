import BusProtocol
import JSON
import Testing

@testable import CaptureCore

@Suite final class PhotoQueueTests {
    private var queue = PhotoQueue()

    private func resolution(_ device: String, photos: Int = 1) -> PhotoResolution {
        PhotoResolution(
            device: device, format: .jpeg, dimensions: Dimensions(width: 640, height: 480), pixelFormat: .yuyv,
            photos: photos)
    }

    private func photo(_ device: String, _ index: Int = 0, at time: Int64 = 0) -> PhotoResult {
        PhotoResult(
            device: device, index: index, fileType: .jpeg, dimensions: Dimensions(width: 640, height: 480), bytes: 10,
            timestamp: .init(monotonic: time, realtime: 0, source: "dequeue"), sequence: 0, stream: "s")
    }

    private func stages(_ steps: [PhotoStep]) -> [PhotoJobStage] {
        steps.compactMap { if case .tell(_, let stage, _) = $0 { stage } else { nil } }
    }

    private func outcome(_ steps: [PhotoStep]) -> Result<PhotoOutcome, BusError>? {
        steps.compactMap { if case .finish(_, let result) = $0 { result } else { nil } }.first
    }

    private func readiness(_ device: String, isThere: Bool = true, isStreaming: Bool = true) -> String {
        let (readiness, waiting) = queue.readiness(of: device, isThere: isThere, isStreaming: isStreaming)
        return "\(readiness) \(waiting)"
    }

    private let gone = BusError(.workerCrashed, "It ended.")

    @Test func aPhotoGoesThroughItsStages() throws {
        #expect(try queue.add("a", devices: ["cam0"]) == [.prepare(job: "a", device: "cam0")])
        let ready = queue.prepared("a", "cam0", .success(resolution("cam0")))
        #expect(stages(ready) == [.willBeginCapture] && ready.last == .take(job: "a", devices: ["cam0"]))
        #expect(stages(queue.progressed("a", "cam0", .willCapture)) == [.willCapturePhoto])
        #expect(stages(queue.progressed("a", "cam0", .didCapture)) == [.didCapturePhoto])
        let processed = queue.progressed("a", "cam0", .processed, photo: photo("cam0"))
        #expect(stages(processed) == [.didFinishProcessingPhoto])
        let end = queue.taken("a", "cam0", .success([photo("cam0")]))
        #expect(stages(end) == [.didFinishCapture])
        #expect(try outcome(end)?.get().photos == [photo("cam0")])
        #expect(queue.count == 0)
    }

    @Test func aMomentThatIsOverWaitsForNoDevice() throws {
        _ = try queue.add("a", devices: ["cam0"])
        #expect(try queue.add("b", devices: ["cam0"]).isEmpty)
        let steps = try queue.add("past", devices: ["cam0", "cam1"], isPast: true)
        #expect(steps == [.prepare(job: "past", device: "cam0"), .prepare(job: "past", device: "cam1")])
        // Nor does anybody wait for it.
        #expect(try queue.add("c", devices: ["cam1"]) == [.prepare(job: "c", device: "cam1")])
        #expect(queue.prepared("past", "cam0", .success(resolution("cam0"))).isEmpty)
        let ready = queue.prepared("past", "cam1", .success(resolution("cam1")))
        #expect(stages(ready) == [.willBeginCapture] && readiness("cam0") == "waitingForCapture 1")
        _ = queue.taken("past", "cam0", .success([photo("cam0")]))
        let end = queue.taken("past", "cam1", .success([photo("cam1")]))
        #expect(stages(end).last == .didFinishCapture && queue.ids == ["a", "b", "c"])
    }

    @Test func whatHasFailedGoesOnToItsEnd() throws {
        _ = try queue.add("a", devices: ["cam0"])
        _ = queue.prepared("a", "cam0", .success(resolution("cam0", photos: 2)))
        _ = queue.progressed("a", "cam0", .didCapture)
        queue.fail("a", BusError(.limitExceeded, "They are too large."))
        queue.fail("a", gone)
        #expect(
            stages(queue.progressed("a", "cam0", .processed, photo: photo("cam0"))) == [.didFinishProcessingPhoto])
        let end = queue.taken("a", "cam0", .success([photo("cam0"), photo("cam0", 1)]))
        #expect(stages(end) == [.didFinishProcessingPhoto, .didFinishCapture])
        guard case .tell(_, .didFinishCapture, let told)? = end.dropFirst().first,
            case .failure(let error)? = outcome(end)
        else {
            Issue.record("\(end)")
            return
        }
        #expect(told["error"]?["data"]?["reason"] == "limitExceeded" && told["photos"] == 2)
        #expect(error.reason == .limitExceeded && error.data["photos"]?.array?.count == 2)
    }

    @Test func whatIsAbandonedHasItsEndAtOnce() throws {
        _ = try queue.add("a", devices: ["cam0", "cam1"])
        for device in ["cam0", "cam1"] { _ = queue.prepared("a", device, .success(resolution(device))) }
        _ = queue.progressed("a", "cam0", .didCapture)
        _ = queue.progressed("a", "cam0", .processed, photo: photo("cam0"))
        _ = try queue.add("b", devices: ["cam1"])
        _ = try queue.add("c", devices: ["cam2"])
        _ = queue.end("c", gone)
        let end = queue.abandon(BusError(.shuttingDown, "The bus ends."))
        #expect(
            stages(end)
                == [
                    .didCapturePhoto, .didFinishProcessingPhoto, .didFinishCapture, .didFinishCapture,
                    .didFinishCapture,
                ])
        let reasons = end.compactMap { step in
            if case .finish(let id, .failure(let error)) = step { "\(id) \(error.reason)" } else { nil }
        }
        #expect(reasons == ["a shuttingDown", "b shuttingDown", "c workerCrashed"])
        #expect(queue.count == 0)
    }

    @Test func whatIsNotReportedIsToldInItsOrderAllTheSame() throws {
        _ = try queue.add("a", devices: ["cam0"])
        _ = queue.prepared("a", "cam0", .success(resolution("cam0")))
        #expect(
            stages(queue.taken("a", "cam0", .success([photo("cam0")])))
                == [.willCapturePhoto, .didCapturePhoto, .didFinishProcessingPhoto, .didFinishCapture])
    }

    @Test func whatIsFinishedBeforeAllAreCapturedIsHeldBack() throws {
        _ = try queue.add("a", devices: ["cam0", "cam1"])
        _ = queue.prepared("a", "cam1", .success(resolution("cam1")))
        let members = queue.prepared("a", "cam0", .success(resolution("cam0", photos: 2)))
        guard case .tell(_, .willBeginCapture, let told)? = members.first else {
            Issue.record("\(members)")
            return
        }
        #expect(told["expectedPhotoCount"] == 3 && told["devices"] == ["cam0", "cam1"])
        #expect(told["resolved"]?["devices"]?[1]?["device"] == "cam1")
        #expect(stages(queue.progressed("a", "cam1", .willCapture)) == [.willCapturePhoto])
        #expect(stages(queue.progressed("a", "cam0", .willCapture)) == [])
        #expect(queue.progressed("a", "cam0", .didCapture) == [])
        #expect(queue.progressed("a", "cam0", .processed, photo: photo("cam0", 1, at: 50)) == [])
        #expect(queue.progressed("a", "cam0", .processed, photo: photo("cam0", 0, at: 30)) == [])
        #expect(
            stages(queue.progressed("a", "cam1", .didCapture))
                == [.didCapturePhoto, .didFinishProcessingPhoto, .didFinishProcessingPhoto])
        #expect(queue.taken("a", "cam0", .success([photo("cam0"), photo("cam0", 1)])) == [])
        let end = try #require(outcome(queue.taken("a", "cam1", .success([photo("cam1", 0, at: 33)])))).get()
        #expect(end.photos.map(\.device) == ["cam0", "cam0", "cam1"] && end.photos.map(\.index) == [0, 1, 0])
        #expect(end.spread == 3)
        let json = end.json(attaches: true)
        #expect(json["attachments"]?[1]?["name"] == "photo-a-cam0-1.jpg" && json["photos"]?[2]?["attachment"] == 2)
        #expect(MethodTable["photo.capture"]?.result.validate(json) == nil)
        #expect(end.json(attaches: false)["attachments"] == [])
    }

    @Test func aDeviceIsFreeForTheNextWhenItHasCaptured() throws {
        _ = try queue.add("a", devices: ["cam0"])
        #expect(try queue.add("b", devices: ["cam0"]) == [])
        #expect(readiness("cam0") == "waitingForCapture 1")
        _ = queue.prepared("a", "cam0", .success(resolution("cam0")))
        #expect(queue.progressed("a", "cam0", .didCapture).last == .prepare(job: "b", device: "cam0"))
        #expect(outcome(queue.taken("a", "cam0", .success([photo("cam0")]))) != nil)
        #expect(queue.ids == ["b"])
    }

    @Test func processingIsBounded() throws {
        for number in 1...6 { _ = try queue.add("\(number)", devices: ["cam0"]) }
        for number in 1...4 {
            _ = queue.prepared("\(number)", "cam0", .success(resolution("cam0")))
            _ = queue.progressed("\(number)", "cam0", .didCapture)
        }
        #expect(readiness("cam0") == "waitingForProcessing 2")
        let steps = queue.taken("2", "cam0", .success([photo("cam0")]))
        #expect(steps.last == .prepare(job: "5", device: "cam0"))
    }

    @Test func aLaterRequestDoesNotGetADeviceBefore() throws {
        _ = try queue.add("a", devices: ["cam0"])
        #expect(try queue.add("b", devices: ["cam0", "cam1"]) == [])
        #expect(try queue.add("c", devices: ["cam1"]) == [])
        #expect(try queue.add("d", devices: ["cam2"]) == [.prepare(job: "d", device: "cam2")])
        let steps = queue.prepared("a", "cam0", .failure(gone))
        #expect(
            Array(steps.suffix(2)) == [.prepare(job: "b", device: "cam0"), .prepare(job: "b", device: "cam1")])
    }

    @Test func readinessNamesTheReasonToWait() throws {
        #expect(readiness("cam0", isThere: false, isStreaming: false) == "notReady 0")
        #expect(readiness("cam0", isStreaming: false) == "notRunning 0")
        #expect(readiness("cam0") == "ready 0")
        _ = try queue.add("a", devices: ["cam1"])
        _ = try queue.add("b", devices: ["cam0", "cam1"])
        #expect(readiness("cam0") == "waitingForCapture 1")
    }

    @Test func theQueueIsBounded() throws {
        for number in 1...100 { _ = try queue.add("\(number)", devices: ["cam0"]) }
        let error = #expect(throws: BusError.self) { try queue.add("101", devices: ["cam1"]) }
        #expect(error?.reason == .limitExceeded && error?.data == ["limit": "photos", "maximum": 100])
        #expect(throws: BusError.self) { try queue.add("1", devices: ["cam1"]) }
    }

    @Test func aDeviceThatCannotGetReadyEndsTheRequestForAll() throws {
        _ = try queue.add("a", devices: ["cam0", "cam1"])
        _ = queue.prepared("a", "cam0", .success(resolution("cam0")))
        #expect(queue.prepared("a", "cam1", .failure(gone)) == [.drop(job: "a", device: "cam0")])
        let end = queue.dropped("a", "cam0")
        #expect(stages(end) == [.didFinishCapture] && outcome(end) == .failure(gone))
        guard case .tell(_, _, let members)? = end.first else { return }
        #expect(members["error"] == gone.json && members["photos"] == 0)
    }

    @Test func aDeviceThatFailsLaterLeavesTheOthersTheirs() throws {
        _ = try queue.add("a", devices: ["cam0", "cam1"])
        _ = queue.prepared("a", "cam0", .success(resolution("cam0")))
        _ = queue.prepared("a", "cam1", .success(resolution("cam1")))
        _ = queue.progressed("a", "cam0", .didCapture)
        _ = queue.progressed("a", "cam0", .processed, photo: photo("cam0"))
        #expect(stages(queue.lost("cam1", gone)) == [.didCapturePhoto, .didFinishProcessingPhoto])
        let end = queue.taken("a", "cam0", .success([photo("cam0")]))
        guard case .failure(let error)? = outcome(end) else {
            Issue.record("\(end)")
            return
        }
        #expect(error.reason == .workerCrashed && error.data["photos"]?[0]?["device"] == "cam0")
    }

    @Test func aClientThatLeavesLosesUncapturedPhotos() throws {
        let cancelled = BusError(.cancelled, "Its process has ended.")
        _ = try queue.add("a", devices: ["cam0"])
        _ = queue.prepared("a", "cam0", .success(resolution("cam0")))
        _ = queue.progressed("a", "cam0", .didCapture)
        #expect(queue.end("a", cancelled, keepsCaptured: true) == [])
        #expect(try outcome(queue.taken("a", "cam0", .success([photo("cam0")])))?.get() != nil)
        _ = try queue.add("b", devices: ["cam0"])
        _ = try queue.add("c", devices: ["cam0"])
        #expect(outcome(queue.end("c", cancelled, keepsCaptured: true)) == .failure(cancelled))
        #expect(queue.end("b", cancelled, keepsCaptured: true) == [.drop(job: "b", device: "cam0")])
        #expect(outcome(queue.dropped("b", "cam0")) == .failure(cancelled))
        #expect(queue.count == 0)
    }

    @Test func devicesMayBeRenamedMeanwhile() throws {
        _ = try queue.add("a", devices: ["cam0", "cam1"])
        _ = queue.prepared("a", "cam0", .success(resolution("cam0")))
        queue.rename(["cam0": "cam1", "cam1": "door"])
        let steps = queue.prepared("a", "door", .success(resolution("door")))
        #expect(steps.last == .take(job: "a", devices: ["cam1", "door"]))
        _ = queue.taken("a", "cam1", .success([photo("cam1")]))
        let end = try #require(outcome(queue.taken("a", "door", .success([photo("door")])))).get()
        #expect(end.resolutions.map(\.device) == ["cam1", "door"])
    }

    @Test func howManyCameLateIsTold() throws {
        var late = photo("a", 1)
        late.late = 7
        let outcome = PhotoOutcome(
            uniqueID: "u", resolutions: [resolution("a", photos: 2)], photos: [photo("a"), late])
        #expect(outcome.json(attaches: false)["late"] == 1)
        #expect(outcome.json(attaches: false)["photos"]?[1]?["late"] == 7)
        #expect(try PhotoResult(json: late.json) == late)
        let none = PhotoOutcome(uniqueID: "u", resolutions: [resolution("a")], photos: [photo("a")])
        #expect(none.json(attaches: false)["late"] == nil)
    }

    @Test func whoHasADeviceIsKnown() throws {
        _ = try queue.add("one", devices: ["a"], owner: ["pid": 1])
        _ = try queue.add("two", devices: ["a", "b"], owner: ["pid": 2])
        #expect(queue.holder(of: "a") == ["pid": 1] && queue.holder(of: "b") == nil)
        _ = queue.prepared("one", "a", .success(resolution("a")))
        #expect(queue.holder(of: "a") == ["pid": 1])
        _ = queue.progressed("one", "a", .didCapture)
        #expect(queue.holder(of: "a") == ["pid": 2] && queue.holder(of: "b") == ["pid": 2])
    }

    @Test func twoFilesOfOneFrameAreTwoPhotosOfOneMoment() throws {
        var plan = resolution("cam0", photos: 4)
        plan.raw = plan.dimensions
        var files = [
            photo("cam0", 0, at: 7), photo("cam0", 0, at: 7), photo("cam0", 1, at: 9), photo("cam0", 1, at: 9),
        ]
        for index in files.indices { files[index].late = files[index].index == 1 ? 5 : nil }
        (files[1].fileType, files[3].fileType) = (.dng, .dng)
        _ = try queue.add("a", devices: ["cam0"])
        let ready = queue.prepared("a", "cam0", .success(plan))
        guard case .tell(_, .willBeginCapture, let members)? = ready.first else { throw Unexpected() }
        #expect(members["expectedPhotoCount"] == 4)
        _ = queue.progressed("a", "cam0", .didCapture)
        // In whatever order they come, and each once.
        for file in [files[1], files[3]] {
            #expect(stages(queue.progressed("a", "cam0", .processed, photo: file)) == [.didFinishProcessingPhoto])
        }
        let end = queue.taken("a", "cam0", .success(files))
        #expect(stages(end) == [.didFinishProcessingPhoto, .didFinishProcessingPhoto, .didFinishCapture])
        let outcome = try #require(try outcome(end)?.get())
        #expect(outcome.photos == files && outcome.spread == nil)
        let json = outcome.json(attaches: true)
        #expect(json["late"] == 1 && json["photos"]?[3]?["attachment"] == 3)
        let names = json["attachments"]?.array?.map { $0["name"] }
        #expect(names == ["photo-a-0.jpg", "photo-a-0.dng", "photo-a-1.jpg", "photo-a-1.dng"])
    }

    private struct Unexpected: Error {}

    @Test func rawFilesAreKnownToBeLarge() throws {
        var raw = resolution("a", photos: 3)
        #expect(raw.leastBytes == nil)
        raw.format = .dng
        #expect(raw.leastBytes == nil)
        for (name, bytes) in [("RGGB", 1), ("GREY", 1), ("RG12", 2), ("pRAA", 2)] {
            raw.pixelFormat = try #require(PixelFormat(name))
            #expect(raw.leastBytes == Int64(640 * 480 * bytes * 3), "\(name)")
        }
        raw.format = .tiff
        for (name, bytes) in [("YUYV", 3), ("RGGB", 3), ("RG12", 6), ("GREY", 1), ("Y10", 2), ("Z16", 2)] {
            raw.pixelFormat = try #require(PixelFormat(name))
            #expect(raw.leastBytes == Int64(640 * 480 * bytes * 3), "\(name)")
        }
        raw.format = .png
        #expect(raw.leastBytes == nil, "it is compressed")
        (raw.raw, raw.photos) = (raw.dimensions, 4)
        raw.pixelFormat = try #require(PixelFormat("RG12"))
        #expect(raw.leastBytes == Int64(640 * 480 * 2 * 2))
        raw.format = .tiff
        #expect(raw.leastBytes == Int64(640 * 480 * (2 + 6) * 2))
    }
}
