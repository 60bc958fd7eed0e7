import BusProtocol
import JSON
import Testing

@testable import CaptureCore

@Suite final class LivePhotoJobTests {
    private var queue = PhotoQueue()
    private var told: [PhotoJobStage] = []
    private var result: Result<PhotoOutcome, BusError>?

    private let gone = BusError(.workerCrashed, "It ended.")
    private let photo = PhotoResult(
        device: "cam0", index: 0, fileType: .jpeg, dimensions: Dimensions(width: 640, height: 480), bytes: 10,
        timestamp: .init(monotonic: 7, realtime: 0, source: "dequeue"), sequence: 0, stream: "s")

    private func movie(path: String? = nil) throws -> LivePhotoMovie {
        LivePhotoMovie(
            identifier: try #require(LivePhotoIdentifier(digits: String(repeating: "a1", count: 16))),
            dimensions: Dimensions(width: 640, height: 480), bytes: 20, duration: 3_000_000_000,
            photoDisplayTime: 1_500_000_000, dropped: 7, path: path)
    }

    /// - Returns: what is to be done beside telling.
    private func take(_ steps: [PhotoStep]) -> [PhotoStep] {
        steps.filter { step in
            switch step {
            case .tell(_, let stage, _): told.append(stage)
            case .finish(_, let result): self.result = result
            default: return true
            }
            return false
        }
    }

    /// To where the picture is taken and its movie goes on.
    private func capture() throws {
        #expect(take(try queue.add("a", devices: ["cam0"], isLive: true)) == [.prepare(job: "a", device: "cam0")])
        let resolution = PhotoResolution(
            device: "cam0", format: .jpeg, dimensions: photo.dimensions, pixelFormat: .yuyv)
        #expect(take(queue.prepared("a", "cam0", .success(resolution))) == [.take(job: "a", devices: ["cam0"])])
        #expect(take(queue.progressed("a", "cam0", .willCapture)).isEmpty)
        #expect(take(queue.progressed("a", "cam0", .didCapture)) == [.record(job: "a", device: "cam0")])
    }

    private static let allStages: [PhotoJobStage] = [
        .willBeginCapture, .willCapturePhoto, .didCapturePhoto, .didFinishProcessingPhoto,
        .didFinishRecordingLivePhotoMovie, .didFinishProcessingLivePhotoToMovieFile, .didFinishCapture,
    ]

    @Test(arguments: [true, false]) func itHasSevenStages(isPhotoFirst: Bool) throws {
        try capture()
        let store = [PhotoStep.store(job: "a", device: "cam0")]
        let recorded = { [self] in take(queue.recorded("a", .success(try movie()))) }
        if !isPhotoFirst { #expect(try recorded().isEmpty) }
        #expect(take(queue.progressed("a", "cam0", .processed, photo: photo)).isEmpty)
        #expect(take(queue.taken("a", "cam0", .success([photo]))) == (isPhotoFirst ? [] : store))
        // The camera is free for the next one by then.
        #expect(queue.readiness(of: "cam0", isThere: true, isStreaming: true).readiness == .ready)
        if isPhotoFirst { #expect(try recorded() == store) }
        #expect(result == nil && told == Array(Self.allStages.dropLast(2)))
        var stored = photo
        (stored.path, stored.id) = ("/v/a.jpg", "77")
        #expect(take(queue.stored("a", .success(try movie(path: "/v/a.mov")), photo: stored)).isEmpty)
        #expect(told == Self.allStages && queue.count == 0)
        let outcome = try #require(try result?.get())
        #expect(outcome.photos == [stored] && outcome.movie?.path == "/v/a.mov")
        #expect(outcome.json(attaches: false)["resolved"]?["livePhotoMovie"] == ["width": 640, "height": 480])
        let json = outcome.json(attaches: true)
        #expect(json["livePhotoMovie"]?["attachment"] == 1 && json["attachments"]?.array?.count == 2)
        #expect(json["attachments"]?[1]?["name"] == "a.mov" && json["livePhotoMovie"]?["photoDisplayTime"] == 1.5)
    }

    @Test func withoutItsMovieThereIsNoPhoto() throws {
        try capture()
        #expect(take(queue.progressed("a", "cam0", .processed, photo: photo)).isEmpty)
        #expect(take(queue.taken("a", "cam0", .success([photo]))).isEmpty)
        // It may be there, and only found no room in the reply.
        #expect(
            take(queue.recorded("a", .failure(gone))) == [.unrecord(job: "a"), .drop(job: "a", device: "cam0")])
        #expect(take(queue.dropped("a", "cam0")).isEmpty)
        #expect(told == Array(Self.allStages.prefix(4)) + [.didFinishCapture])
        #expect(throws: BusError.self) { try result?.get() }
    }

    @Test func withoutItsPhotoThereIsNoMovie() throws {
        try capture()
        #expect(take(queue.taken("a", "cam0", .failure(gone))) == [.unrecord(job: "a")])
        #expect(told.last == .didFinishCapture && queue.count == 0)
        // It is over, whatever comes after.
        #expect(take(queue.recorded("a", .success(try movie()))).isEmpty)
    }

    @Test func whatCannotBeStoredIsNeither() throws {
        try capture()
        _ = take(queue.taken("a", "cam0", .success([photo])))
        #expect(take(queue.recorded("a", .success(try movie()))) == [.store(job: "a", device: "cam0")])
        // It is too late to give it up.
        #expect(take(queue.end("a", BusError(.cancelled, "It was given up."))).isEmpty)
        let full = BusError(.diskFull, "There is no room.")
        #expect(
            take(queue.stored("a", .failure(full))) == [.unrecord(job: "a"), .drop(job: "a", device: "cam0")])
        #expect(take(queue.dropped("a", "cam0")).isEmpty)
        guard case .failure(let error)? = result else { return #expect(Bool(false), "it was stored") }
        #expect(error.reason == .diskFull)
    }

    @Test func whatIsGivenUpIsNotTold() throws {
        try capture()
        #expect(take(queue.progressed("a", "cam0", .processed, photo: photo)).isEmpty)
        let steps = take(queue.end("a", BusError(.cancelled, "It was given up.")))
        #expect(steps == [.drop(job: "a", device: "cam0"), .unrecord(job: "a")])
        #expect(take(queue.dropped("a", "cam0")).isEmpty && told.last == .didFinishCapture)
        guard case .failure(let error)? = result else { return #expect(Bool(false), "it was finished") }
        #expect(error.reason == .cancelled && error.data["photos"] == nil)
    }

    @Test func whoIsGoneBeforeThePictureGetsNothing() throws {
        _ = take(try queue.add("a", devices: ["cam0"], isLive: true))
        let steps = take(queue.end("a", BusError(.cancelled, "It was given up."), keepsCaptured: true))
        #expect(steps == [.drop(job: "a", device: "cam0")])
        #expect(take(queue.dropped("a", "cam0")).isEmpty && told == [.didFinishCapture])
    }

    @Test func aWorkerThatDiesTakesBothAlong() throws {
        try capture()
        _ = take(queue.taken("a", "cam0", .success([photo])))
        #expect(take(queue.lost("cam0", gone)) == [.unrecord(job: "a")])
        #expect(told.last == .didFinishCapture && queue.count == 0)
    }

    @Test func theIdentifierIsTheSameInBothFiles() throws {
        let digits = "0123456789abcdef0123456789abcdef"
        let identifier = try #require(LivePhotoIdentifier(digits: digits.uppercased()))
        #expect(identifier.digits == digits && identifier.text == "01234567-89AB-CDEF-0123-456789ABCDEF")
        #expect(LivePhotoIdentifier(text: identifier.text) == identifier)
        for wrong in ["", "0123", digits + "0", String(digits.dropLast()) + "g"] {
            #expect(LivePhotoIdentifier(digits: wrong) == nil && LivePhotoIdentifier(text: wrong) == nil)
        }
        let movie = try movie(path: "/v/a.mov")
        #expect(try LivePhotoMovie(json: JSONValue(parsing: movie.json.description)) == movie)
        var members = try #require(movie.json.object)
        members["dropped"] = nil
        #expect(try LivePhotoMovie(json: .object(members)).dropped == 0)
    }
}
