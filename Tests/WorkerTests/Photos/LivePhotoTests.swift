import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureLibrary
import Delivery
import Glibc
import JSON
import LinuxIO
import Testing

@testable import Worker

@Suite("A worker's live photos", .serialized, .timeLimit(.minutes(5)))
struct LivePhotoTests {
    private let folder: TemporaryDirectory
    private let worker: WorkerFixture
    private let identifier: LivePhotoIdentifier
    /// More than is copied at once.
    private let content = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 / 3) }

    /// One frame has room, and a few files.
    private static let budget = 7000

    init() throws {
        folder = try TemporaryDirectory()
        worker = try WorkerFixture(TestBench()) { $0.photoBudget = Self.budget }
        identifier = try #require(LivePhotoIdentifier(digits: "0123456789abcdef0123456789abcdef"))
    }

    private var library: String { "\(folder.path)/library" }

    private func place(_ library: String) -> PhotoPlace {
        PhotoPlace(
            library: library, directory: "\(library)/2026-11-22", stem: "photo-120000-a", ids: ["p0"],
            owner: LockHolder(uid: 1, gid: 1, pid: 7, name: "test"), session: "s1",
            device: PhotoPlace.Device(id: "cam0", uniqueID: "virtual-0", name: "Virtual"))
    }

    /// Of the movie that a recorder has made.
    private func movie(_ name: String = "made.mov") throws -> (facts: LivePhotoMovie, file: String) {
        let path = "\(folder.path)/\(name)"
        try File.replace(path, with: content, mode: 0o600)
        let facts = LivePhotoMovie(
            identifier: identifier, dimensions: Dimensions(width: 64, height: 48), bytes: content.count,
            duration: 3_000_000_000, photoDisplayTime: 1_500_000_000)
        return (facts, path)
    }

    /// Takes one: the answer to `takePhoto`.
    private func take(
        _ job: String = "a", attaches: Bool = false, in library: String? = nil
    ) throws -> Result<JSONValue, BusError> {
        let coordinator = try worker.coordinator
        let order = PhotoOrder(
            job: job, settings: PhotoSettings(), attaches: attaches, place: place(library ?? self.library),
            identifier: identifier)
        _ = try coordinator.order(.preparePhoto(order)).get()
        return try coordinator.order(.takePhoto(job: job))
    }

    private func publish(
        _ movie: (facts: LivePhotoMovie, file: String), job: String = "a"
    ) throws -> Result<JSONValue, BusError> {
        try worker.coordinator.order(.publishPhoto(job: job, movie: movie.facts, file: movie.file))
    }

    private func refusal(_ result: Result<JSONValue, BusError>) -> BusError? {
        if case .failure(let error) = result { error } else { nil }
    }

    /// What is in the library.
    private func stored() -> [String] { folder.contents().filter { $0.hasPrefix("library/") } }

    private func contains(_ bytes: [UInt8], _ text: String) -> Bool {
        bytes.indices.contains { bytes[$0...].starts(with: text.utf8) }
    }

    @Test("are in the library when their movie is, and not before")
    func published() throws {
        let coordinator = try worker.coordinator
        let answer = try take(attaches: true).get()
        let told = coordinator.progress.filter { $0.job == "a" }
        #expect(told.map(\.stage) == [.willCapture, .didCapture, .processed])
        let photo = try PhotoResult(json: try #require(answer["photos"]?[0]))
        #expect(told[1].members["moment"] == .integer(photo.timestamp.monotonic))
        #expect(photo.path == nil && photo.id == nil && stored() == [])
        let jpeg = try #require(told[2].file)
        #expect(contains(jpeg, identifier.digits) && contains(jpeg, "Apple iOS") && contains(jpeg, identifier.text))

        let (facts, file) = try movie()
        let published = try publish((facts, file)).get()
        let result = try PhotoResult(json: try #require(published["photo"]))
        let library = try CaptureLibrary(self.library, isMade: false)
        let entry = try #require(try library.entry("p0"))
        #expect(entry.state == .finished && result.id == "p0" && entry.path == result.path)
        #expect(entry.path.hasSuffix("/2026-11-22/photo-120000-a.jpg") && result.sequence == photo.sequence)
        #expect(entry.movie == published["movie"]?.string && entry.movie?.hasSuffix("/photo-120000-a.mov") == true)
        #expect(try File.read(entry.path, limit: 1 << 20) == jpeg && entry.size == Int64(jpeg.count))
        #expect(try File.read(try #require(entry.movie), limit: 1 << 20) == content && entry.movieFile != nil)
        #expect(entry.photo?.details["livePhotoMovie"] == facts.json)
        // It is not kept any longer.
        #expect(try refusal(publish((facts, file)))?.reason == .interrupted)
    }

    @Test("have one name for both files, which neither of them has yet", arguments: ["jpg", "mov"])
    func taken(ending: String) throws {
        let place = place(library)
        _ = try CaptureLibrary(library)
        mkdir(place.directory, 0o700)
        try File.replace("\(place.directory)/\(place.stem).\(ending)", with: [7], mode: 0o600)
        _ = try take().get()
        _ = try publish(movie()).get()
        let entry = try #require(try CaptureLibrary(library, isMade: false).entry("p0"))
        #expect(entry.path.hasSuffix("/\(place.stem)_2.jpg") && entry.movie?.hasSuffix("/\(place.stem)_2.mov") == true)
        #expect(stored().count == 4)
    }

    @Test("whose movie can't be had are neither of both")
    func unreadable() throws {
        let (facts, file) = try movie()
        var cut = facts
        cut.bytes += 1
        var other = facts
        other.identifier = try #require(LivePhotoIdentifier(digits: String(repeating: "f", count: 32)))
        func expect(_ reason: BusError.Reason, of movie: (facts: LivePhotoMovie, file: String)) throws {
            // Also the same job can be taken anew each time.
            _ = try take().get()
            #expect(try refusal(publish(movie))?.reason == reason)
            #expect(try refusal(publish(movie))?.reason == .interrupted)
        }
        try expect(.internalError, of: (facts, "\(folder.path)/none.mov"))
        try expect(.internalError, of: (facts, folder.path))
        try expect(.internalError, of: (cut, file))
        try expect(.invalidParams, of: (other, file))
        #expect(stored() == [])
    }

    @Test("that nobody wants any more leave their memory to others")
    func dropped() throws {
        let coordinator = try worker.coordinator
        var jobs: [String] = []
        var refused: BusError?
        while refused == nil, jobs.count < 32 {
            let job = "\(jobs.count)"
            jobs.append(job)
            refused = try refusal(take(job))
        }
        #expect(refused?.data["limit"] == "photoMemory", "\(jobs.count)")
        for job in jobs { #expect(try coordinator.order(.dropPhoto(job: job)).get() == [:]) }
        #expect(try refusal(publish(movie(), job: "0"))?.reason == .interrupted)
        for job in jobs.dropLast() { _ = try take(job).get() }
        #expect(stored() == [])
    }

    @Test("that are given up while they are stored are both or neither, and over by the answer")
    func droppedLate() throws {
        let coordinator = try worker.coordinator
        _ = try take().get()
        let (facts, file) = try movie()
        let publishing = try coordinator.send(.publishPhoto(job: "a", movie: facts, file: file))
        let dropping = try coordinator.send(.dropPhoto(job: "a"))
        var published: Result<JSONValue, BusError>?
        _ = try coordinator.wait("it is dropped") { report in
            guard case .reply(let number, let result) = report else { return false }
            if number == publishing { published = result }
            return number == dropping
        }
        let result = try #require(published, "it is answered first")
        let error = refusal(result)
        #expect(error == nil || error?.reason == .cancelled, "\(result)")
        #expect(stored().count == (error == nil ? 3 : 0))
        #expect(try refusal(publish((facts, file)))?.reason == .interrupted)
    }

    @Test("are gone with the coordinator that wanted them")
    func abandoned() throws {
        _ = try take().get()
        worker.killCoordinator()
        try worker.startCoordinator()
        #expect(try refusal(publish(movie()))?.reason == .interrupted)
        #expect(stored() == [])
        _ = try take().get()
        _ = try publish(movie()).get()
    }

    @Test("are one at a time, and without a library nothing is kept of them")
    func others() throws {
        let coordinator = try worker.coordinator
        let burst = PhotoOrder(
            job: "b", settings: PhotoSettings(burst: 2), attaches: true, identifier: identifier)
        #expect(try refusal(coordinator.order(.preparePhoto(burst)))?.reason == .invalidParams)
        let plain = PhotoOrder(job: "c", settings: PhotoSettings(), attaches: true, identifier: identifier)
        _ = try coordinator.order(.preparePhoto(plain)).get()
        _ = try coordinator.order(.takePhoto(job: "c")).get()
        let jpeg = try #require(coordinator.progress.compactMap(\.file).first)
        #expect(contains(jpeg, identifier.text))
        #expect(try refusal(publish(movie(), job: "c"))?.reason == .interrupted)
        // One that waits for its movie keeps its job, and holds up no end.
        _ = try take().get()
        let again = PhotoOrder(job: "a", settings: PhotoSettings(), attaches: true)
        #expect(try refusal(coordinator.order(.preparePhoto(again)))?.reason == .invalidParams)
        #expect(try worker.stop() == ProcessEnding.inOrder.rawValue)
    }

    @Test(
        "are neither of both on a full disk, which says what is missing",
        .enabled(if: SmallDisk.obstacle == nil, "may not mount a disk"))
    func diskFull() async throws {
        let disk = try await SmallDisk(megabytes: 1)
        let filler = try disk.fill(leaving: 100_000)
        _ = try take(in: disk.path).get()
        let error = try #require(try refusal(publish(movie())))
        #expect(error.reason == .diskFull, "\(error)")
        #expect((error.data["needed"]?.integer ?? 0) > Int64(content.count))
        var left: [String] = []
        try CaptureLibrary(disk.path, isMade: false).forEachStamp { id, _ in left.append(id) }
        #expect(left == [] && access("\(place(disk.path).directory)/photo-120000-a.jpg", F_OK) != 0)
        File.remove(filler)
        _ = try take(in: disk.path).get()
        _ = try publish(movie()).get()
    }
}
