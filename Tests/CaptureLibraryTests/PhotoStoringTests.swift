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
