import CameraBusTesting
import CaptureLibrary
import Glibc
import JSON
import LinuxIO
import Testing

@Suite struct PhotoStoringTests {
    private let scratch: TemporaryDirectory
    private let library: CaptureLibrary
    private let bytes = Array("what a camera sees".utf8)

    init() throws {
        scratch = try TemporaryDirectory()
        library = try CaptureLibrary("\(scratch.path)/library")
    }

    @Test func aPhotoIsStoredWholeAndEntered() throws {
        let stored = try library.store(.photo("aa11", in: library, index: 3), bytes)
        #expect(stored.state == .finished && stored.size == Int64(bytes.count))
        #expect(try library.entry("aa11") == stored)
        #expect(stored.photo?.index == 3 && stored.photo?.details["flashFired"] == false)
        #expect(try File.read(stored.path, limit: 1000) == bytes)
        let file = try FileDescriptor(opening: stored.path, O_RDONLY)
        #expect(try FileIdentity(file.rawValue) == stored.file)
        #expect(scratch.contents() == ["library/2026-11-22/aa11.jpg", "library/entries/aa11.json"])
        #expect(!library.isBeingStored("aa11") && !library.isBeingStored("none"))
    }

    @Test func nothingIsOverwritten() throws {
        let first = try library.store(.photo("aa11", in: library), bytes)
        var second = LibraryEntry.photo("bb22", in: library)
        second.path = first.path
        let taken = #expect(throws: LibraryError.self) { try library.store(second, [1]) }
        guard case .file(let error)? = taken, error.code == EEXIST else {
            Issue.record("\(String(describing: taken))")
            return
        }
        var same = LibraryEntry.photo("aa11", in: library)
        same.path = "\(library.directory)/2026-11-22/other.jpg"
        #expect(throws: LibraryError.exists("aa11")) { try library.store(same, [1]) }
        #expect(try File.read(first.path, limit: 1000) == bytes && library.entry("aa11") == first)
        #expect(scratch.contents().count == 2)
    }

    @Test func whatIsGivenUpLeavesNothing() throws {
        for steps in 0...3 {
            let photo = try NewPhoto(.photo("aa11", in: library), size: bytes.count, in: library)
            #expect(library.isBeingStored("aa11"))
            if steps > 0 { try photo.write(bytes) }
            if steps > 1 { try photo.publish() }
            if steps > 2 { try photo.finish() }
            photo.discard()
            #expect(scratch.contents() == [], "\(steps)")
        }
    }

    /// Its name is taken by somebody between its entry and itself.
    @Test func whoComesFirstKeepsTheName() throws {
        let photo = try NewPhoto(.photo("aa11", in: library), size: 1, in: library)
        try File.replace(photo.entry.path, with: [7], mode: 0o600)
        #expect(throws: LibraryError.self) { try photo.publish() }
        photo.discard()
        #expect(scratch.contents() == ["library/2026-11-22/aa11.jpg"])
    }

    // MARK: Live photos

    /// More than is copied at once.
    private let content = [UInt8](repeating: 5, count: 300_000)

    private func live(_ id: String = "aa11") -> LibraryEntry {
        var entry = LibraryEntry.photo(id, in: library)
        entry.movie = "\(library.directory)/2026-11-22/\(id).mov"
        return entry
    }

    /// Its name is gone by then.
    private func movie() throws -> LivePhotoFile {
        let path = "\(scratch.path)/made.mov"
        try File.replace(path, with: content, mode: 0o600)
        defer { File.remove(path) }
        return try LivePhotoFile(path, size: content.count)
    }

    @Test func aLivePhotoIsStoredAsBothOfItsFiles() throws {
        let stored = try library.store(live(), bytes, movie: movie())
        #expect(stored.state == .finished && stored.size == Int64(bytes.count))
        #expect(try library.entry("aa11") == stored && stored.movieFile != nil && stored.movieFile != stored.file)
        #expect(try File.read(stored.path, limit: 1000) == bytes)
        #expect(try File.read(try #require(stored.movie), limit: 1 << 20) == content)
        // Both are told from where the library lies.
        try #require(rename(library.directory, "\(scratch.path)/moved") == 0)
        let moved = try #require(try CaptureLibrary("\(scratch.path)/moved").entry("aa11"))
        #expect(moved.movie == "\(scratch.path)/moved/2026-11-22/aa11.mov")
        #expect(moved.path == "\(scratch.path)/moved/2026-11-22/aa11.jpg")
    }

    /// Before its files are made, and between its entry and its names.
    @Test(arguments: ["jpg", "mov"], [true, false]) func aNameOfALivePhotoThatIsTakenStays(
        _ ending: String, isBefore: Bool
    ) throws {
        let entry = live()
        try library.makeFolder(for: entry.path)
        let taken = "\(library.directory)/2026-11-22/aa11.\(ending)"
        func take() throws { try File.replace(taken, with: [7], mode: 0o600) }
        if isBefore { try take() }
        let error = #expect(throws: LibraryError.self) {
            try library.store(entry, bytes, movie: movie(), isWanted: { false })
        }
        guard case .file(let cause)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(cause.code == (isBefore ? EEXIST : ECANCELED))
        if !isBefore {
            let photo = try NewPhoto(entry, size: bytes.count, in: library)
            try take()
            #expect(throws: LibraryError.self) {
                try photo.publish()
                try photo.publishMovie()
            }
            photo.discard()
        }
        #expect(scratch.contents() == ["library/2026-11-22/aa11.\(ending)"])
    }

    @Test func aMovieThatIsNotWholeIsNone() throws {
        let path = "\(scratch.path)/made.mov"
        try File.replace(path, with: content, mode: 0o600)
        #expect(throws: LibraryError.self) { _ = try LivePhotoFile(path, size: content.count + 1) }
        #expect(throws: LibraryError.self) { _ = try LivePhotoFile(scratch.path, size: 4096) }
        let opened = try LivePhotoFile(path, size: content.count)
        try #require(truncate(path, 10) == 0)
        #expect(throws: LibraryError.self) { try library.store(live(), bytes, movie: opened) }
        #expect(scratch.contents() == ["made.mov"])
    }

    @Test func whatIsGivenUpOfALivePhotoLeavesNothing() throws {
        for steps in 0...5 {
            let photo = try NewPhoto(live(), size: bytes.count, in: library)
            if steps > 0 { try photo.write(bytes) }
            if steps > 1 { try photo.writeMovie(movie()) }
            if steps > 2 { try photo.publish() }
            if steps > 3 { try photo.publishMovie() }
            if steps > 4 { try photo.finish() }
            photo.discard()
            #expect(scratch.contents() == [], "\(steps)")
        }
    }

    @Test func aPhotoThatIsNoneIsUnreadable() throws {
        var json = try #require(try library.store(.photo("aa11", in: library), bytes).json.object)
        for photo: JSONValue in [
            1, [:], ["uniqueID": "a", "index": -1, "width": 1, "height": 1], ["index": 0, "width": 1, "height": 1],
        ] {
            json["photo"] = photo
            #expect(throws: LibraryEntry.Unreadable.self) { try LibraryEntry(json: .object(json)) }
        }
    }
}
