import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureLibrary
import Glibc
import JSON
import LinuxIO
import SQLite
import Testing

@testable import Librarian

/// What the entries say is what is listed, whatever becomes of the index.
@Suite struct LibraryIndexTests {
    private let scratch: TemporaryDirectory
    private let library: CaptureLibrary
    private let runtime: RuntimeDirectory
    private var path: String { "\(library.directory)/index.sqlite3" }

    init() throws {
        scratch = try TemporaryDirectory()
        library = try CaptureLibrary("\(scratch.path)/library")
        runtime = try RuntimeDirectory("\(scratch.path)/bus")
    }

    /// Long after everything that was done: stamps are believed.
    private var later: Int64 { MonotonicClock.realtime() + 60_000_000_000 }

    private func enter(
        _ id: String, started: Int64 = 1, state: LibraryEntry.State = .finished, kind: LibraryEntry.Kind = .movie,
        uid: UInt32 = 1000, devices: [String] = ["cam0"], take: String? = nil, photo: String? = nil, size: Int64 = 0
    ) throws {
        var entry = LibraryEntry(
            id: id, kind: kind, path: "\(library.directory)/\(id).mp4",
            devices: devices.map { LibraryDevice(device: $0, uniqueID: "usb-\($0)") }, started: started,
            fileType: "mp4", photo: photo.map { LibraryPhoto(uniqueID: $0, index: 0, width: 1, height: 1) },
            take: take, owner: LibraryOwner(uid: uid, pid: 1, name: "a test"))
        entry.state = state
        entry.size = size
        try library.replace(entry)
    }

    private func list(_ filter: LibrarianRequest.Filter = .init(), uid: UInt32? = nil) throws -> JSONValue {
        try Librarian(library.directory, runtimeDirectory: runtime).answer(LibrarianRequest(.list(filter), uid: uid))
    }

    private func ids(_ filter: LibrarianRequest.Filter = .init(), uid: UInt32? = nil) throws -> [String] {
        try list(filter, uid: uid)["entries"]?.array?.compactMap { $0["id"]?.string } ?? []
    }

    /// As the index has it.
    private func places(_ index: LibraryIndex? = nil, count: Int = 1000) throws -> [String] {
        try (index ?? LibraryIndex(of: library, now: later)).places(.init(), user: nil, after: nil, count: count)
            .map(\.id)
    }

    // MARK: What is told

    @Test func theNewestComesFirst() throws {
        for (id, started) in [("b", 2), ("c", 3), ("a", 1), ("d", 3)] { try enter(id, started: Int64(started)) }
        #expect(try ids() == ["d", "c", "b", "a"])
        for limit in 0...5 {
            let answer = try list(.init(limit: limit))
            #expect(answer["entries"]?.array?.count == min(limit, 4) && answer["more"] == .bool(limit < 4))
        }
    }

    @Test func usageIsWhatTheEntriesOfEachUserHave() throws {
        func usage() throws -> [JSONValue] {
            let librarian = try Librarian(library.directory, runtimeDirectory: runtime)
            return try librarian.answer(LibrarianRequest(.usage))["users"]?.array ?? []
        }
        #expect(try usage() == [])
        try enter("m1", size: 1_000_000)
        try enter("m2", state: .damaged, size: 20)
        try enter("m3", uid: 1001, size: 7)
        var live = try #require(try library.entry("m3"))
        (live.id, live.kind) = ("p1", .photo)
        live.photo = LibraryPhoto(
            uniqueID: "r", index: 0, width: 1, height: 1, details: ["livePhotoMovie": ["bytes": 500]])
        try library.add(live)
        try File.replace("\(library.entriesDirectory)/bad.json", with: [], mode: 0o600)
        #expect(try usage() == [["uid": 1000, "bytes": 1_000_020], ["uid": 1001, "bytes": 514]])
        try library.remove("m1")
        try enter("huge", uid: 1001, size: .max)
        #expect(try usage() == [["uid": 1000, "bytes": 20], ["uid": 1001, "bytes": .integer(.max)]])
    }

    @Test func everyFilterIsTheEntries() throws {
        try enter("m1", started: 5, take: "t1")
        try enter("m2", started: 4, state: .recovered, uid: 1001, devices: ["side", "front"], take: "t1")
        try enter("m3", started: 3, state: .recording, kind: .take)
        try enter("m4", started: 2, state: .damaged)
        try enter("p1", started: 1, kind: .photo, devices: ["side"], photo: "r1")
        // Their files are not there.
        #expect(try ids() == ["m1", "m2", "m4", "p1"] && ids(.init(state: "missing")) == ["m1", "m2", "m4", "p1"])
        #expect(try ids(.init(since: 2)) == ["m1", "m2", "m4"])
        #expect(try ids(.init(kind: "photo")) == ["p1"] && ids(.init(kind: "take")) == [])
        #expect(try ids(.init(take: "t1")) == ["m1", "m2"] && ids(.init(photo: "r1")) == ["p1"])
        #expect(try ids(.init(device: "side")) == ["m2", "p1"] && ids(.init(device: "usb-front")) == ["m2"])
        #expect(try ids(.init(device: "sid")) == [] && ids(.init(device: "side\nusb-side")) == [])
        #expect(try ids(.init(prefix: "m")) == ["m1", "m2", "m4"] && ids(.init(prefix: "m2")) == ["m2"])
        #expect(try ids(.init(prefix: "m22")) == [] && ids(.init(prefix: "~")) == [])
        #expect(try ids(uid: 1001) == ["m2"] && ids(.init(take: "t1"), uid: 1000) == ["m1"])
        #expect(try ids(.init(state: "finished")) == [])
    }

    /// Most of what the index offers isn't meant.
    @Test func itGoesOnBehindWhatIsNotMeant() throws {
        for number in 0..<40 { try enter("m\(100 + number)", started: Int64(number % 7)) }
        for number in [7, 33] {
            try File.replace("\(library.directory)/m\(100 + number).mp4", with: [1], mode: 0o600)
        }
        let answer = try list(.init(state: "finished", limit: 1))
        #expect(answer["entries"]?[0]?["id"] == "m133" && answer["more"] == true)
        #expect(try ids(.init(state: "finished", limit: 2)) == ["m133", "m107"])
        #expect(try list(.init(state: "finished", limit: 2))["more"] == false)
    }

    @Test func whatCannotBeReadIsTold() throws {
        try enter("good")
        try enter("later")
        for id in ["b-odd", "a-odd"] {
            try File.replace("\(library.entriesDirectory)/\(id).json", with: [], mode: 0o640)
        }
        for _ in 0..<2 {
            let answer = try list()
            #expect(answer["unreadable"]?.array?.map { $0["id"] } == ["a-odd", "b-odd"])
            #expect(answer["unreadable"]?[0]?["why"]?.string?.isEmpty == false)
            #expect(try list(uid: 1000)["unreadable"] == nil)
        }
        #expect(try list(.init(limit: 1))["unreadable"]?.array?.count == 1)
        // Another version of this program, whose index is believed, could read it.
        _ = try LibraryIndex(of: library, now: later)
        let file = "\(library.entriesDirectory)/later.json"
        do {
            let entry = try FileDescriptor(opening: file, O_WRONLY)
            let written = pwrite(entry.rawValue, "[", 1, 0)
            #expect(written == 1)
        }
        #expect(try list()["unreadable"]?.array?.map { $0["id"] } == ["a-odd", "b-odd", "later"])
        #expect(try ids() == ["good"])
    }

    /// What another version couldn't read this one may.
    @Test func whatCanBeReadNowIsListed() throws {
        try enter("good")
        _ = try LibraryIndex(of: library, now: later)
        do {
            let database = try Database(path, patience: 0)
            try database.execute("UPDATE entry SET problem = 'of a later version', started = NULL, kind = NULL")
        }
        #expect(try ids() == ["good"] && list()["unreadable"] == nil)
    }

    // MARK: What changes

    @Test func itIsBelievedWhileNothingChanges() throws {
        for id in ["a", "b"] { try enter(id) }
        #expect(try places() == ["b", "a"])
        do {
            let database = try Database(path, patience: 0)
            try database.execute("DELETE FROM entry WHERE id = 'a'")
        }
        #expect(try places() == ["b"], "the entries were not looked at")
        FileClock.waitForTick()
        try enter("c")
        #expect(try places() == ["c", "b", "a"], "all of them were")
    }

    /// Clocks of files stand still for a moment: what has just changed is not believed to be over.
    @Test func everyChangeIsSeenAtOnce() throws {
        try enter("a", started: 0)
        for round in 1...20 {
            try enter("a", started: Int64(round))
            #expect(try ids(.init(since: Int64(round))) == ["a"])
            try enter("b", started: -1)
            #expect(try ids().count == 2)
            try library.remove("b")
            #expect(try ids() == ["a"])
        }
    }

    @Test func whatIsReplacedUnderItsNameIsReadAgain() throws {
        for id in ["a", "b", "c"] { try enter(id) }
        _ = try LibraryIndex(of: library, now: later)
        FileClock.waitForTick()
        try enter("b", started: 7)
        try library.remove("c")
        try enter("d", started: 3)
        #expect(try places() == ["b", "d", "a"])
    }

    @Test func whatNobodyVouchesForIsLookedAtAgain() throws {
        try enter("a")
        _ = try LibraryIndex(of: library, now: later)
        do {
            let database = try Database(path, patience: 0)
            try database.execute(
                "BEGIN IMMEDIATE; DELETE FROM folder; UPDATE entry SET started = 99, inode = 0; COMMIT")
        }
        let index = try LibraryIndex(of: library, now: later)
        let started = try index.places(.init(), user: nil, after: nil, count: 9).map(\.started)
        #expect(started == [1])
    }

    @Test func manyAtOnceSeeTheSame() async throws {
        for number in 0..<60 { try enter("m\(1000 + number)", started: Int64(number)) }
        let expected = try ids()
        try await withThrowingTaskGroup(of: [String].self) { group in
            for _ in 0..<8 { group.addTask { try ids() } }
            for try await found in group { #expect(found == expected) }
        }
        #expect(expected.count == 60)
    }

    @Test func oneAtATimeReadsMuch() throws {
        try enter("m1")
        do {
            let turn = try IndexTurn(library)
            #expect(throws: SQLiteError.self) { _ = try IndexTurn(library, patience: 0) }
            withExtendedLifetime(turn) {}
        }
        _ = try IndexTurn(library, patience: 0)
    }

    @Test func othersCannotReadOrHoldIt() throws {
        try enter("m1")
        func mode(_ path: String) -> mode_t {
            var status = stat()
            return stat(path, &status) == 0 ? status.st_mode & 0o777 : 0
        }
        _ = try LibraryIndex(of: library, now: later)
        _ = try IndexTurn(library)
        #expect(mode(path) == 0o600 && mode("\(library.directory)/index.turn") == 0o600)
        chmod(path, 0o644)
        // What SQLite makes beside it while it changes something has the mode that the index had when that was opened.
        _ = try LibraryIndex(of: library, now: later)
        #expect(mode(path) == 0o600)
    }

    // MARK: What becomes of it

    enum Damage: CaseIterable { case none, gone, empty, text, cut, flipped, otherVersion, otherTables, folder, pipe }

    @Test(arguments: Damage.allCases) func itIsNeverNeeded(_ damage: Damage) throws {
        for number in 0..<24 { try enter("m\(100 + number)", started: Int64(number), devices: ["cam\(number % 4)"]) }
        try File.replace("\(library.entriesDirectory)/odd.json", with: [], mode: 0o640)
        _ = try LibraryIndex(of: library, now: later)
        let expected = try list()
        var bytes = try File.read(path, limit: 16 << 20)
        #expect(bytes.count > 8192)
        switch damage {
        case .none: break
        case .gone: unlink(path)
        case .empty: try File.replace(path, with: [], mode: 0o600)
        case .text: try File.replace(path, with: Array("no index\n".utf8), mode: 0o600)
        case .cut: try File.replace(path, with: Array(bytes[..<5000]), mode: 0o600)
        case .flipped:
            for index in bytes.indices.dropFirst(100) where index % 512 < 64 { bytes[index] ^= 0xFF }
            try File.replace(path, with: bytes, mode: 0o600)
        case .otherVersion:
            try Database(path, patience: 0).execute("DELETE FROM entry; PRAGMA user_version = 77")
        case .otherTables:
            try Database(path, patience: 0).execute("DROP TABLE entry")
        case .folder:
            unlink(path)
            mkdir(path, 0o700)
        case .pipe:
            unlink(path)
            mkfifo(path, 0o600)
        }
        for _ in 0..<2 {
            #expect(try list() == expected)
            #expect(try ids(.init(device: "cam3", limit: 1000)).count == 6)
        }
        guard damage != .folder, damage != .pipe else { return }
        let database = try Database(path, isReadOnly: true, patience: 0)
        var count: Int64 = 0
        try Statement("SELECT count(*) FROM entry", in: database).rows { count = $0.integer(0) }
        #expect(count == 25, "it is whole again")
    }

    @Test(.enabled(if: SmallDisk.obstacle == nil, "left out: \(SmallDisk.obstacle ?? "")"))
    func aFullDiskChangesNothing() async throws {
        let disk = try await SmallDisk(megabytes: 8)
        let library = try CaptureLibrary("\(disk.path)/library")
        let librarian = try Librarian(library.directory, runtimeDirectory: runtime)
        func ids() throws -> [String] {
            try librarian.answer(LibrarianRequest(.list(.init())))["entries"]?.array?.compactMap { $0["id"]?.string }
                ?? []
        }
        for id in ["aa", "bb"] { try library.add(.photo(id, in: library)) }
        let filler = try disk.fill(leaving: 0)
        #expect(try ids() == ["bb", "aa"])
        unlink(filler)
        #expect(try ids() == ["bb", "aa"])
        // The index knows of two, and can't be told of their end.
        let second = try disk.fill(leaving: 0)
        try library.remove("aa")
        #expect(try ids() == ["bb"])
        unlink(second)
    }

    @Test(.enabled(if: SmallDisk.obstacle == nil, "left out: \(SmallDisk.obstacle ?? "")"), arguments: [true, false])
    func whatCannotBeWrittenIsReadAllTheSame(_ hasIndex: Bool) async throws {
        let disk = try await SmallDisk(megabytes: 8)
        let library = try CaptureLibrary("\(disk.path)/library")
        for id in ["aa", "bb"] { try library.add(.photo(id, in: library)) }
        if hasIndex { _ = try LibraryIndex(of: library) }
        // A child that another test has forked has what is written here open, too, until its program begins.
        try await eventually {
            let isDone = mount(nil, disk.path, nil, UInt(MS_REMOUNT | MS_RDONLY), nil) == 0
            try #require(isDone || errno == EBUSY)
            return isDone
        }
        #expect(try places(LibraryIndex(of: library, now: later)) == ["bb", "aa"])
    }

    @Test func aLibraryThatIsNotThereHasNoIndex() throws {
        let none = try CaptureLibrary("\(scratch.path)/none", isMade: false)
        #expect(try places(LibraryIndex(of: none)) == [])
        #expect(access(none.directory, F_OK) != 0)
    }
}
