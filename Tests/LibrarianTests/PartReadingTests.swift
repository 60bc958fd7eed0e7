import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureLibrary
import Glibc
import JSON
import Librarian
import LinuxIO
import Testing

@Suite struct PartReadingTests {
    private let place: LibraryPlace
    private var scratch: TemporaryDirectory { place.scratch }
    private var library: CaptureLibrary { place.library }
    private var librarian: Librarian { place.librarian }

    init() throws { place = try LibraryPlace() }

    private func read(
        _ id: String, file: String = "path", at offset: Int64 = 0, _ length: Int = 100, uid: UInt32? = nil
    ) throws -> (answer: JSONValue, bytes: [UInt8]) {
        let memory = try FilledMemory(name: "a test", count: max(1, length))
        let part = LibrarianRequest.Part(id: id, file: file, offset: offset, length: length)
        let request = try #require(LibrarianRequest(json: LibrarianRequest(.read(part), uid: uid).json))
        #expect(request == LibrarianRequest(.read(part), uid: uid))
        let answer = try librarian.answer(request, output: memory.rawValue)
        return (answer, [UInt8](memory.view.bytes.prefix(Int(try #require(answer["bytes"]?.integer)))))
    }

    private func refusal(_ id: String, file: String = "path", uid: UInt32? = nil) -> BusError? {
        do {
            _ = try read(id, file: file, uid: uid)
            return nil
        } catch {
            return error as? BusError
        }
    }

    @Test func aPartIsWhatTheFileHasThere() throws {
        let stored = try StoredFile(library, id: "one", bytes: Array(0..<250))
        let first = try read("one")
        #expect(first.bytes == Array(0..<100))
        #expect(first.answer["name"] == "one.mp4" && first.answer["size"] == 250 && first.answer["offset"] == 0)
        #expect(first.answer["file"] == "path" && first.answer["state"] == "finished")
        let last = try read("one", at: 200)
        #expect(last.bytes == Array(200..<250) && last.answer["revision"] == first.answer["revision"])
        #expect(try read("one", at: 250).bytes.isEmpty && read("one", at: .max).bytes.isEmpty)
        let known = try read("one", 0)
        #expect(known.bytes.isEmpty && known.answer["size"] == 250)
        withExtendedLifetime(stored) {}
    }

    @Test func aFileThatWasWrittenToHasAnotherRevision() throws {
        let stored = try StoredFile(library, id: "one", bytes: [1, 2, 3])
        let before = try read("one").answer["revision"]
        let file = try FileDescriptor(opening: stored.path, O_WRONLY)
        var times = [timespec(tv_sec: 1, tv_nsec: 1), timespec(tv_sec: 1, tv_nsec: 1)]
        #expect(futimens(file.rawValue, &times) == 0)
        let touched = try read("one").answer["revision"]
        #expect(touched != before)
        #expect(ftruncate(file.rawValue, 4) == 0 && futimens(file.rawValue, &times) == 0)
        #expect(try read("one").answer["revision"] != touched)
    }

    @Test func whatIsSomebodyElsesIsNotThere() throws {
        _ = try StoredFile(library, id: "theirs", bytes: [1], uid: 4242)
        #expect(refusal("theirs", uid: 4243)?.reason == .entryNotFound)
        #expect(try read("theirs", uid: 4242).bytes == [1] && read("theirs").bytes == [1])
        #expect(refusal("nothing")?.reason == .entryNotFound && refusal("../entries/theirs")?.reason == .entryNotFound)
    }

    @Test func onlyTheFileThatWasMadeIsGivenOut() throws {
        let secret = "\(scratch.path)/secret"
        try File.replace(secret, with: [9], mode: 0o600)
        let replaced = try StoredFile(library, id: "replaced", bytes: [1])
        #expect(rename(secret, replaced.path) == 0)
        let refused = refusal("replaced")
        #expect(refused?.reason == .entryNotFound && refused?.data["file"] == "path", "\(String(describing: refused))")
        let linked = try StoredFile(library, id: "linked", bytes: [1])
        #expect(rename(linked.path, "\(scratch.path)/moved") == 0)
        #expect(symlink("\(scratch.path)/moved", linked.path) == 0)
        #expect(refusal("linked")?.reason == .entryNotFound)
        // The folder of the day leads elsewhere.
        let day = try StoredFile(library, id: "day", bytes: [1])
        let folder = "\(library.directory)/2026-11-22"
        #expect(rename(folder, "\(scratch.path)/elsewhere") == 0 && symlink("\(scratch.path)/elsewhere", folder) == 0)
        #expect(access(day.path, F_OK) == 0)
        #expect(refusal("day")?.reason == .entryNotFound)
    }

    @Test func aFileThatAnEntryHasNotIsNotThere() throws {
        let stored = try StoredFile(library, id: "one", bytes: [1])
        for file in ["sideCar", "cover", "movie"] {
            let refused = refusal("one", file: file)
            #expect(refused?.reason == .entryNotFound && refused?.data["file"] == .string(file))
        }
        unlink(stored.path)
        #expect(refusal("one")?.data["file"] == "path")
    }

    @Test func whatLiesElsewhereIsToBeHadThere() throws {
        _ = try StoredFile(library, id: "own", bytes: [1], at: "\(scratch.path)/own.mp4")
        let refused = refusal("own")
        #expect(refused?.reason == .pathNotAllowed && refused?.data["roots"] == [.string(library.directory)])
    }

    @Test func whatIsBeingMadeIsNotGivenOut() throws {
        let path = "\(scratch.path)/recorder.lock"
        let lock = try LockFile(path)
        _ = try LeftMovie(library, id: "live", cut: 0.8, lock: path)
        #expect(refusal("live")?.reason == .recordingInProgress)
        withExtendedLifetime(lock) {}
        _ = try LeftMovie(library, id: "left", cut: 0.8)
        #expect(try read("left").answer["state"] == "damaged")
        #expect(try read("left", file: "sideCar", 1 << 16).bytes.starts(with: LeftMovie.wholeLines))
    }
}
