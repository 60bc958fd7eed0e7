import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureLibrary
import Glibc
import JSON
import Librarian
import LinuxIO
import Testing

/// What becomes of photos whose maker is ended between two steps.
@Suite struct PhotoRecoveryTests {
    private let place: LibraryPlace
    private var scratch: TemporaryDirectory { place.scratch }
    private var library: CaptureLibrary { place.library }
    private var librarian: Librarian { place.librarian }
    private let bytes = Array("what a camera sees".utf8)

    /// How far a photo has come.
    enum Step: Int, CaseIterable { case entered, written, published, finished }

    init() throws { place = try LibraryPlace() }

    private func ask(_ action: LibrarianRequest.Action) throws(BusError) -> JSONValue {
        try librarian.answer(LibrarianRequest(action))
    }

    // Beside what finds them.
    private func files() -> [String] { scratch.contents().filter { !$0.contains("index.sqlite3") } }

    private func photo(at step: Step) throws -> NewPhoto {
        let photo = try NewPhoto(.photo("aa11", in: library), size: bytes.count, in: library)
        if step.rawValue >= Step.written.rawValue { try photo.write(bytes) }
        if step.rawValue >= Step.published.rawValue { try photo.publish() }
        if step.rawValue >= Step.finished.rawValue { try photo.finish() }
        return photo
    }

    /// Everything that its process held is let go, as at its end.
    private func leave(_ step: Step) throws { _ = try photo(at: step) }

    @Test(arguments: Step.allCases) func whatIsLeftIsWholeOrNothing(_ step: Step) throws {
        try leave(step)
        let isThere = step.rawValue >= Step.published.rawValue
        let found = files().filter { !$0.hasPrefix("library/entries/") }
        #expect(found == (isThere ? ["library/2026-11-22/aa11.jpg"] : []), "never a part of it")
        #expect(try ask(.get("aa11"))["entry"]?["state"] == (isThere ? "finished" : "missing"))
        #expect(try ask(.left)["ids"] == (step == .finished ? [] : ["aa11"]))
        let answer = try ask(.recover("aa11"))
        #expect(answer["failed"] == [] && answer["recording"] == 0)
        #expect(answer["entries"]?.array?.map { $0["state"] } == (isThere ? ["finished"] : []))
        let entry = try library.entry("aa11")
        #expect(entry?.state == (isThere ? .finished : nil))
        guard let entry else { return }
        #expect(entry.size == Int64(bytes.count) && entry.problem == nil && entry.photo?.width == 1280)
        #expect(try File.read(entry.path, limit: 1000) == bytes)
        #expect(try ask(.delete("aa11"))["deleted"] == [.string(entry.path)])
        #expect(files() == [])
    }

    @Test(arguments: Step.allCases) func whatIsBeingStoredIsLeftAlone(_ step: Step) throws {
        let photo = try photo(at: step)
        let before = files()
        let answer = try ask(.recover(nil))
        #expect(answer == ["entries": [], "failed": [], "recording": step == .finished ? 0 : 1])
        #expect(try ask(.get("aa11"))["entry"]?["state"] == (step == .finished ? "finished" : "recording"))
        #expect(throws: BusError.self) { try ask(.delete("aa11")) }
        #expect(files() == before)
        withExtendedLifetime(photo) {}
    }

    /// How far a live photo has come.
    enum LiveStep: Int, CaseIterable { case entered, written, movieWritten, published, moviePublished, finished }

    /// Everything that its process held is let go, as at its end.
    private func leaveLive(_ step: LiveStep) throws {
        var entry = LibraryEntry.photo("aa11", in: library)
        entry.movie = "\(library.directory)/2026-11-22/aa11.mov"
        let photo = try NewPhoto(entry, size: bytes.count, in: library)
        if step.rawValue >= LiveStep.written.rawValue { try photo.write(bytes) }
        if step.rawValue >= LiveStep.movieWritten.rawValue {
            let made = "\(scratch.path)/made.mov"
            try File.replace(made, with: bytes + bytes, mode: 0o600)
            try photo.writeMovie(LivePhotoFile(made, size: 2 * bytes.count))
            File.remove(made)
        }
        if step.rawValue >= LiveStep.published.rawValue { try photo.publish() }
        if step.rawValue >= LiveStep.moviePublished.rawValue { try photo.publishMovie() }
        if step.rawValue >= LiveStep.finished.rawValue { try photo.finish() }
    }

    @Test(arguments: LiveStep.allCases) func aLivePhotoIsBothOfItsFilesOrNeither(_ step: LiveStep) throws {
        try leaveLive(step)
        let isWhole = step.rawValue >= LiveStep.moviePublished.rawValue
        #expect(try ask(.get("aa11"))["entry"]?["state"] == (isWhole ? "finished" : "missing"))
        #expect(try ask(.left)["ids"] == (step == .finished ? [] : ["aa11"]))
        let answer = try ask(.recover("aa11"))
        #expect(answer["failed"] == [] && answer["recording"] == 0)
        let entry = try library.entry("aa11")
        #expect(entry?.state == (isWhole ? .finished : nil))
        guard let entry, let movie = entry.movie else { return #expect(files() == [], "nothing of it is left") }
        #expect(try File.read(entry.path, limit: 1000) == bytes && File.read(movie, limit: 1000) == bytes + bytes)
        let shown = try ask(.get("aa11"))["entry"]
        #expect(shown?["movie"] == .string(movie) && shown?["movieFile"] == nil && shown?["problem"] == nil)
        #expect(try ask(.delete("aa11"))["deleted"] == [.string(entry.path), .string(movie)])
        #expect(files() == [])
    }

    @Test(arguments: [true, false]) func aLivePhotoLacksWhatSomebodyTookAway(isMovie: Bool) throws {
        try leaveLive(.finished)
        let entry = try #require(try library.entry("aa11"))
        let movie = try #require(entry.movie)
        let gone = isMovie ? movie : entry.path
        // Another one in its place is not its own, not even where it gets the same inode.
        File.remove(gone)
        FileClock.waitForTick()
        try File.replace(gone, with: [7], mode: 0o600)
        let shown = try ask(.get("aa11"))["entry"]
        #expect(shown?["state"] == "missing" && shown?["problem"] == (isMovie ? "its movie is not there" : nil))
        #expect(try ask(.list(.init(state: "missing")))["entries"]?.array?.count == 1)
        #expect(try ask(.delete("aa11"))["deleted"]?.array?.count == 1)
        #expect(try File.read(gone, limit: 10) == [7] && files().count == 1)
    }

    @Test func anotherFileInItsPlaceStays() throws {
        try leave(.written)
        let path = try #require(try library.entry("aa11")).path
        FileClock.waitForTick()
        try File.replace(path, with: [7], mode: 0o600)
        #expect(try ask(.recover(nil)) == ["entries": [], "failed": [], "recording": 0])
        #expect(try library.entry("aa11") == nil && File.read(path, limit: 10) == [7])
    }

    /// Where files can't be without a name, it has another one before it is whole.
    @Test func aPartOfItGoes() throws {
        try leave(.written)
        var entry = try #require(try library.entry("aa11"))
        let folder = "\(library.directory)/2026-11-22"
        func make(_ name: String) throws -> FileIdentity {
            try File.replace("\(folder)/\(name)", with: [7], mode: 0o600)
            let file = try FileDescriptor(opening: "\(folder)/\(name)", O_RDONLY)
            return try FileIdentity(file.rawValue)
        }
        entry.file = try make(LibraryEntry.temporary("aa11"))
        entry.movie = "\(folder)/aa11.mov"
        entry.movieFile = try make(LibraryEntry.temporaryMovie("aa11"))
        try library.replace(entry)
        _ = try ask(.recover("aa11"))
        #expect(files() == [])
    }

    @Test func photosAreChosen() throws {
        for (id, request, index) in [("p0", "one", 0), ("p1", "one", 1), ("p2", "two", 0)] {
            _ = try library.store(
                .photo(id, in: library, request: request, index: index, started: Int64(index)), [1])
        }
        _ = try LeftMovie(library, id: "movie", cut: nil)
        func ids(_ filter: LibrarianRequest.Filter) throws -> [String] {
            try ask(.list(filter))["entries"]?.array?.compactMap { $0["id"]?.string } ?? []
        }
        #expect(try ids(.init(kind: "photo")) == ["p1", "p2", "p0"])
        #expect(try ids(.init(photo: "one")) == ["p1", "p0"])
        #expect(try ids(.init(kind: "movie", photo: "one")) == [] && ids(.init(photo: "none")) == [])
        let listed = try ask(.list(.init(photo: "two")))["entries"]?[0]
        #expect(
            listed?["photo"] == ["uniqueID": "two", "index": 0, "width": 1280, "height": 720, "flashFired": false])
    }
}
