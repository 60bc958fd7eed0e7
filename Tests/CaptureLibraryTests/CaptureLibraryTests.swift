import CameraBusTesting
import CaptureLibrary
import Glibc
import JSON
import LinuxIO
import Testing

@Suite struct CaptureLibraryTests {
    private let scratch: TemporaryDirectory
    private let library: CaptureLibrary

    init() throws {
        scratch = try TemporaryDirectory()
        library = try CaptureLibrary("\(scratch.path)/deep/library/")
    }

    private func entry(_ id: String, started: Int64 = 1_795_333_303_000_000_000) -> LibraryEntry {
        var entry = LibraryEntry(
            id: id, path: "\(library.directory)/2026-11-22/\(id).mp4",
            sideCar: "\(library.directory)/2026-11-22/\(id).frames.jsonl",
            devices: [LibraryDevice(device: "front", uniqueID: "usb-1", name: "Front door")],
            microphone: LibraryDevice(device: "desk", uniqueID: "usb-2"), started: started, fileType: "mp4",
            video: ["codec": "mjpeg", "width": 1280, "height": 720], audio: ["codec": "aac"], take: "t1", part: 2,
            owner: LibraryOwner(uid: 1000, pid: 42, name: "camerabus"), lock: "/run/x/\(id).lock")
        entry.file = FileIdentity(device: 66306, inode: 1 << 40, born: 1_795_333_303_000_000_001)
        entry.sideCarFile = FileIdentity(device: 66306, inode: 13)
        entry.frames = 30
        entry.dropped = 0
        return entry
    }

    @Test func keepsWhatItIsGiven() throws {
        var entry = entry("aa11")
        try library.add(entry)
        #expect(try library.entry("aa11") == entry)
        #expect(throws: LibraryError.exists("aa11")) { try library.add(entry) }
        entry.state = .finished
        entry.reason = "stopped"
        entry.duration = 2000
        try library.replace(entry)
        #expect(try CaptureLibrary(library.directory).entry("aa11") == entry)
        try library.remove("aa11")
        #expect(try library.entry("aa11") == nil)
        try library.remove("aa11")
        #expect(scratch.contents().isEmpty, "nothing is left of it")
    }

    private func stamps() throws -> [String: CaptureLibrary.Stamp] {
        var stamps: [String: CaptureLibrary.Stamp] = [:]
        try library.forEachStamp { stamps[$0] = $1 }
        return stamps
    }

    @Test func whatChangesHasAnotherStamp() throws {
        for id in ["a", "b"] { try library.add(entry(id)) }
        let (before, folder) = (try stamps(), try library.stamp())
        #expect(before.keys.sorted() == ["a", "b"])
        #expect(try stamps() == before && library.stamp() == folder)
        var longer = entry("a")
        longer.reason = "stopped"
        try library.replace(longer)
        try library.remove("b")
        let after = try stamps()
        #expect(after.keys.sorted() == ["a"] && after["a"] != before["a"])
        let none = try CaptureLibrary("\(scratch.path)/none", isMade: false)
        #expect(try none.stamp() == nil)
        try none.forEachStamp { id, _ in Issue.record("\(id)") }
    }

    @Test func whatOtherVersionsAddIsKept() throws {
        var json = try #require(entry("aa11").json.object)
        json["chapters"] = [["at": 5]]
        json["path"] = "2026-11-22/aa11.mp4"
        try File.replace(
            "\(library.entriesDirectory)/aa11.json", with: JSONValue.object(json).serialized, mode: 0o640)
        var found = try #require(try library.entry("aa11"))
        #expect(found.path == "\(library.directory)/2026-11-22/aa11.mp4")
        found.state = .recovered
        try library.replace(found)
        let kept = try JSONValue(parsing: try File.read("\(library.entriesDirectory)/aa11.json", limit: 10000))
        #expect(kept["chapters"] == [["at": 5]] && kept["state"] == "recovered")
        #expect(kept["path"] == "2026-11-22/aa11.mp4", "the library can be moved")
        #expect(kept["sideCar"] == "2026-11-22/aa11.frames.jsonl")
    }

    @Test func unreadableEntriesAreReportedAndLeftAlone() throws {
        try library.add(entry("good"))
        var newer = try #require(entry("newer").json.object)
        newer["state"] = "beamed"
        var astray = try #require(entry("astray").json.object)
        astray["path"] = "../../etc/passwd"
        let contents: [(String, [UInt8])] = [
            ("newer", JSONValue.object(newer).serialized), ("astray", JSONValue.object(astray).serialized),
            ("other", entry("good").json.serialized), ("torn", Array(entry("torn").json.serialized.dropLast(9))),
            ("empty", []), ("list", Array("[1]".utf8)),
        ]
        for (id, bytes) in contents {
            try File.replace("\(library.entriesDirectory)/\(id).json", with: bytes, mode: 0o640)
        }
        try File.replace("\(library.entriesDirectory)/UPPER.json", with: [], mode: 0o640)
        try File.replace("\(library.entriesDirectory)/good.json.new", with: [], mode: 0o640)
        #expect(try stamps().keys.sorted() == ["astray", "empty", "good", "list", "newer", "other", "torn"])
        for (id, bytes) in contents {
            #expect(try File.read("\(library.entriesDirectory)/\(id).json", limit: 10000) == bytes)
            #expect(throws: LibraryError.self) { try library.entry(id) }
        }
    }

    @Test func idsAndPathsLeadNowhereElse() throws {
        for id in ["", "..", "../entries/a", "a/b", "A", "a.json", String(repeating: "a", count: 33)] {
            #expect(throws: LibraryError.invalidID(id)) { try library.entry(id) }
            #expect(throws: LibraryError.invalidID(id)) { try library.add(entry(id)) }
            #expect(throws: LibraryError.invalidID(id)) { try library.remove(id) }
        }
        for path in ["relative.mp4", "\(library.directory)/../x.mp4", "\(library.directory)/", "/a\0b"] {
            var entry = entry("aa11")
            entry.path = path
            #expect(throws: LibraryError.invalidPath(path)) { try library.add(entry) }
        }
        #expect(library.contains("\(library.directory)//day/a.mp4") && library.contains("/\(library.directory)/a"))
        for path in ["", "2/a.mp4", "/../a", "/./a"] { #expect(!library.contains(library.directory + path), "\(path)") }
        #expect(throws: LibraryError.invalidPath("library")) { try CaptureLibrary("library") }
        #expect(throws: LibraryError.invalidPath("/")) { try CaptureLibrary("/") }
    }

    @Test func aFileElsewhereIsToldWithItsWholePath() throws {
        var entry = entry("aa11")
        (entry.path, entry.sideCar) = ("/srv/movies/walk.mp4", nil)
        try library.add(entry)
        #expect(try library.entry("aa11")?.path == "/srv/movies/walk.mp4")
        try library.makeFolder(for: "\(scratch.path)/elsewhere/walk.mp4")
        #expect(FileModes.mode("\(scratch.path)/elsewhere") == 0)
    }

    /// The kernel compares bytes: a mark makes no other '/' of one, and two spellings of a letter are two names.
    @Test func pathsAreTakenByTheirBytes() throws {
        let library = try CaptureLibrary("\(scratch.path)/cam\u{E9}ra")
        #expect(library.contains("\(library.directory)/a.mp4"))
        #expect(!library.contains("\(scratch.path)/came\u{301}ra/a.mp4"))
        var entry = entry("aa11")
        entry.sideCar = nil
        entry.path = "\(library.directory)/../\u{301}a.mp4"
        #expect(!library.contains(entry.path))
        #expect(throws: LibraryError.invalidPath(entry.path)) { try library.add(entry) }
        for path in ["\(scratch.path)/came\u{301}ra/a.mp4", "\(library.directory)/\u{301}b/a.mp4"] {
            entry.path = path
            try library.replace(entry)
            #expect(try library.entry("aa11")?.path.utf8.elementsEqual(path.utf8) == true)
        }
    }

    @Test func aFileInThePlaceOfTheLibraryIsAnError() throws {
        let path = "\(scratch.path)/file"
        try File.replace(path, with: [], mode: 0o600)
        #expect(throws: LibraryError.self) { try CaptureLibrary(path) }
        #expect(throws: LibraryError.self) { try CaptureLibrary("\(path)/deeper") }
    }
}
