import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureLibrary
import Glibc
import JSON
import Librarian
import LinuxIO
import MovieFile
import Testing

@Suite struct LibrarianTests {
    private let place: LibraryPlace
    private var scratch: TemporaryDirectory { place.scratch }
    private var library: CaptureLibrary { place.library }
    private var runtime: RuntimeDirectory { place.runtime }
    private var librarian: Librarian { place.librarian }

    init() throws { place = try LibraryPlace() }

    private func ask(_ action: LibrarianRequest.Action, uid: UInt32? = nil) throws(BusError) -> JSONValue {
        try librarian.answer(LibrarianRequest(action, uid: uid))
    }

    private func refusal(_ action: LibrarianRequest.Action, uid: UInt32? = nil) -> BusError? {
        do throws(BusError) {
            _ = try ask(action, uid: uid)
            return nil
        } catch {
            return error
        }
    }

    private func ids(_ filter: LibrarianRequest.Filter, uid: UInt32? = nil) throws -> [String] {
        try ask(.list(filter), uid: uid)["entries"]?.array?.compactMap { $0["id"]?.string } ?? []
    }

    private func read(_ path: String) throws -> [UInt8] { try File.read(path, limit: 16 << 20) }

    private func exists(_ path: String?) -> Bool { path.map { access($0, F_OK) == 0 } ?? false }

    private func run(_ program: String, _ arguments: [String]) async throws -> ProgramResult {
        let environment = ["PATH": CurrentProcess.environment("PATH") ?? "/usr/bin:/bin"]
        return try await RunningProgram(program, arguments, environment: environment, scratch: scratch)
            .end(by: .after(seconds: 60))
    }

    // MARK: What recorders leave

    /// A head that was half written, and that the file system has filled with zeros, tells another length than it was
    /// to have.
    @Test func aClusterWithATornHeadIsNone() async throws {
        let whole = try LeftMovie(library, id: "whole", fileType: .mkv, cut: 1).bytes
        let mark: [UInt8] = [0x1F, 0x43, 0xB6, 0x75]
        let last = try #require(whole.indices.last { whole[$0...].starts(with: mark) })
        for head in 4..<12 {
            let (id, cut) = ("torn\(head)", (Double(last + head) + 0.5) / Double(whole.count))
            let left = try LeftMovie(library, id: id, fileType: .mkv, cut: cut, zeros: 3000)
            #expect(left.wholeFrames > 0 && left.wholeFrames < 30)
            _ = try ask(.recover(nil))
            let entry = try #require(try library.entry(id))
            let least = Int64(left.wholeFrames - 1) * LeftMovie.interval / 1_000_000
            #expect(
                entry.state == .recovered && entry.duration >= least - 1, "\(head): \(entry.duration) ms, not \(least)")
            let played = try await run("ffmpeg", ["-v", "error", "-i", entry.path, "-f", "null", "-"])
            #expect(played.status == 0 && played.standardError == "", "\(head): \(played)")
        }
    }

    @Test(arguments: MovieFileType.allCases) func whatARecorderLeftIsMended(_ type: MovieFileType) async throws {
        var generator = SystemRandomNumberGenerator()
        for round in 0..<8 {
            let cut = round == 0 ? 1 : Double.random(in: 0.3...1, using: &generator)
            let left = try LeftMovie(library, id: "m\(round)", fileType: type, cut: cut, zeros: round % 2 * 3000)
            let before = try ask(.get("m\(round)"))["entry"]
            #expect(before?["state"] == "damaged", "nobody makes it, and nobody has mended it")
            let answer = try ask(.recover(nil))
            let entry = try #require(try library.entry("m\(round)"))
            #expect(answer["entries"]?.array?.map { $0["id"] } == [.string("m\(round)")])
            #expect(answer["failed"] == [] && answer["recording"] == 0)
            try #require(left.wholeFrames > 0)
            #expect(entry.state == .recovered && entry.reason == "recorderCrashed" && entry.problem == nil)
            #expect(entry.size == Int64(try read(entry.path).count))
            // A cluster of Matroska may hold a part of a fragment.
            let least = Int64(left.wholeFrames - 1) * LeftMovie.interval / 1_000_000
            #expect(entry.duration >= least - 1, "cut at \(cut): \(entry.duration) ms, not \(least)")
            let played = try await run("ffmpeg", ["-v", "error", "-i", entry.path, "-f", "null", "-"])
            #expect(played.status == 0 && played.standardError == "", "cut at \(cut)")
            let sideCar = try #require(entry.sideCar)
            #expect(try read(sideCar) == LeftMovie.wholeLines)
            #expect(try ask(.recover(nil))["entries"] == [], "once is enough")
        }
    }

    @Test func whatWasFinishedIsTakenAsItIs() throws {
        let left = try LeftMovie(library, id: "aa11", cut: nil)
        _ = try ask(.recover("aa11"))
        let entry = try #require(try library.entry("aa11"))
        #expect(entry.state == .recovered && entry.size == Int64(left.bytes.count))
        #expect(abs(entry.duration - 30 * LeftMovie.interval / 1_000_000) <= 41)
        #expect(try read(entry.path) == left.bytes)
        #expect(try ask(.recover("aa11"))["entries"]?[0]?["state"] == "recovered", "who asks again is told again")
    }

    @Test(arguments: [true, false]) func aLivingRecorderIsLeftAlone(_ isNamed: Bool) throws {
        let lock = isNamed ? "\(scratch.path)/elsewhere.lock" : nil
        let left = try LeftMovie(library, id: "aa11", cut: 0.6, lock: lock)
        let held = try LockFile(lock ?? runtime.movieLock("aa11"))
        let sideCar = try read(try #require(left.entry.sideCar))
        try withExtendedLifetime(held) {
            #expect(try ask(.recover(nil)) == ["entries": [], "failed": [], "recording": 1])
            #expect(refusal(.delete("aa11"))?.reason == .recordingInProgress)
            #expect(try library.entry("aa11") == left.entry)
            #expect(try read(left.entry.path) == left.bytes)
            #expect(try read(try #require(left.entry.sideCar)) == sideCar)
            let shown = try ask(.get("aa11"))["entry"]
            #expect(shown?["state"] == "recording" && shown?["size"] == JSONValue(left.bytes.count))
            #expect(shown?["lock"] == nil, "that is nobody else's business")
        }
    }

    /// Whichever bus that recorder is of: its lock file may be elsewhere, or gone.
    @Test func aFileThatIsWrittenIsLeftAlone() throws {
        let left = try LeftMovie(library, id: "aa11", cut: 0.6)
        do {
            let file = try FileDescriptor(opening: left.entry.path, O_RDWR)
            try WholeFileLock.take(file.rawValue)
            #expect(try ask(.recover(nil)) == ["entries": [], "failed": [], "recording": 1])
            #expect(try ask(.giveUp("aa11"))["recording"] == 1)
            #expect(refusal(.delete("aa11"))?.reason == .recordingInProgress)
            #expect(try ask(.get("aa11"))["entry"]?["state"] == "recording")
            #expect(try read(left.entry.path) == left.bytes)
            #expect(try library.entry("aa11") == left.entry)
            let flags = fcntl(file.rawValue, F_GETFD)
            #expect(flags >= 0, "locked until here")
        }
        #expect(try ask(.recover(nil))["entries"]?[0]?["state"] == "recovered")
    }

    /// Somebody else's file at the path of an entry is neither mended nor removed.
    @Test func anotherFileInItsPlaceIsLeftAlone() throws {
        let left = try LeftMovie(library, id: "aa11", cut: 0.6)
        let sideCar = try #require(left.entry.sideCar)
        let lines = try read(sideCar)
        // The old ones are kept, so that the new ones are not given their numbers.
        rename(left.entry.path, "\(scratch.path)/old.mp4")
        rename(sideCar, "\(scratch.path)/old.jsonl")
        try File.replace(left.entry.path, with: left.bytes, mode: 0o600)
        try File.replace(sideCar, with: lines, mode: 0o600)
        #expect(try ask(.get("aa11"))["entry"]?["state"] == "missing")
        #expect(try ask(.recover(nil))["failed"]?[0]?["id"] == "aa11")
        #expect(try ask(.delete("aa11"))["deleted"] == [])
        #expect(refusal(.get("aa11"))?.reason == .entryNotFound)
        #expect(try read(left.entry.path) == left.bytes && read(sideCar) == lines)
    }

    /// The recorder died between its entry and its file: what lies there may be somebody else's.
    @Test func aFileThatWasNeverEnteredIsLeftAlone() throws {
        let left = try LeftMovie(library, id: "aa11", cut: 0.6)
        var entry = left.entry
        (entry.file, entry.sideCarFile) = (nil, nil)
        try library.replace(entry)
        let lines = try read(try #require(entry.sideCar))
        #expect(try ask(.recover(nil))["entries"]?[0]?["state"] == "damaged")
        #expect(try ask(.left)["ids"] == [])
        #expect(try ask(.delete("aa11"))["deleted"] == [])
        #expect(try read(entry.path) == left.bytes && read(try #require(entry.sideCar)) == lines)
    }

    @Test func whatEndsTheLibrarianIsTakenForDamaged() throws {
        let pill = try LeftMovie(library, id: "pill", cut: 0.6, started: 2)
        _ = try LeftMovie(library, id: "good", cut: 0.6, started: 1)
        #expect(try ask(.left)["ids"] == ["pill", "good"])
        #expect(try ask(.giveUp("pill"))["entries"]?[0]?["state"] == "damaged")
        #expect(try read(pill.entry.path) == pill.bytes)
        // The next bus tries again, after all others: the librarian may have been killed for another reason.
        #expect(try ask(.left)["ids"] == ["good", "pill"])
        #expect(try ask(.recover("pill"))["entries"]?[0]?["state"] == "recovered")
        #expect(try library.entry("pill")?.problem == nil)
        #expect(try ask(.left)["ids"] == ["good"])
    }

    @Test func unrepairableFilesAreKept() throws {
        for (index, cut) in [0, 0.01].enumerated() {
            let left = try LeftMovie(library, id: "m\(index)", cut: cut, zeros: index * 4000)
            #expect(left.wholeFrames == 0)
            _ = try ask(.recover("m\(index)"))
            let entry = try #require(try library.entry("m\(index)"))
            #expect(entry.state == .damaged && entry.problem?.isEmpty == false && entry.duration == 0)
            #expect(try read(entry.path) == left.bytes)
        }
        var entry = try LeftMovie(library, id: "m9", cut: 1).entry
        // In its place: it is still the file that was made.
        do {
            let file = try FileDescriptor(opening: entry.path, O_WRONLY | O_TRUNC)
            let text = Array("no movie at all\n".utf8)
            let written = write(file.rawValue, text, text.count)
            #expect(written == text.count)
        }
        _ = try ask(.recover("m9"))
        entry = try #require(try library.entry("m9"))
        #expect(entry.state == .damaged)
        #expect(try ask(.get("m9"))["entry"]?["problem"]?.string?.isEmpty == false)
    }

    /// Its recorder was killed between the entry and the file's name, on a file system that has files without a name or
    /// on one that hasn't; or just after that.
    @Test(arguments: [nil, "temporary", "name"])
    func aMovieWhoseFileNeverHadItsNameIsRemoved(_ place: String?) throws {
        let left = try LeftMovie(library, id: "aa11", cut: 1)
        let (path, sideCar) = (left.entry.path, try #require(left.entry.sideCar))
        var entry = left.entry
        entry.isNamed = false
        try library.replace(entry)
        let folder = path[..<(try #require(path.lastIndex(of: "/")))]
        let (temporary, other) = ("\(folder)/.aa11.part", "\(folder)/.aa11.frames.part")
        if place == "temporary" {
            rename(path, temporary)
            rename(sideCar, other)
        } else if place == nil {
            unlink(path)
        }
        #expect(try ask(.left)["ids"] == ["aa11"])
        let answer = try ask(.recover("aa11"))
        if place == "name" {
            #expect(answer["entries"]?[0]?["state"] == "recovered" && answer["entries"]?[0]?["named"] == nil)
            #expect(try library.entry("aa11")?.isNamed == true)
        } else {
            #expect(answer == ["entries": [], "failed": [], "recording": 0])
            #expect(try library.entry("aa11") == nil)
            for path in [path, sideCar, temporary, other] { #expect(access(path, F_OK) != 0, "\(path)") }
        }
    }

    @Test func aFileThatIsNotThereIsLookedForAgain() throws {
        let left = try LeftMovie(library, id: "aa11", cut: 1)
        let (path, away) = (left.entry.path, "\(scratch.path)/away.mp4")
        rename(path, away)
        #expect(try ask(.recover(nil))["failed"]?[0]?["id"] == "aa11")
        #expect(try ask(.get("aa11"))["entry"]?["state"] == "missing")
        #expect(try library.entry("aa11")?.state == .recording)
        rename(away, path)
        #expect(try ask(.recover(nil))["entries"]?[0]?["state"] == "recovered")
    }

    // MARK: What there is

    @Test func listsWhatIsChosen() throws {
        for (index, type) in MovieFileType.allCases.enumerated() {
            var entry = try LeftMovie(library, id: "m\(index)", fileType: type, cut: 1, started: Int64(index)).entry
            entry.state = .finished
            if index == 1 { entry.devices = [LibraryDevice(device: "side", uniqueID: "usb-1")] }
            if index == 2 { entry.microphone = LibraryDevice(device: "desk", uniqueID: "usb-2") }
            try library.replace(entry)
        }
        unlink(try #require(try library.entry("m0")).path)
        #expect(try ids(.init()) == ["m2", "m1", "m0"])
        #expect(try ids(.init(since: 1)) == ["m2", "m1"])
        #expect(try ids(.init(device: "side")) == ["m1"] && ids(.init(device: "usb-2")) == ["m2"])
        #expect(try ids(.init(device: "nobody")) == [])
        #expect(try ids(.init(state: "missing")) == ["m0"] && ids(.init(state: "finished")) == ["m2", "m1"])
        #expect(try ids(.init(kind: "photo")) == [] && ids(.init(take: "take-m1")) == ["m1"])
        #expect(try ids(.init(limit: 2)) == ["m2", "m1"])
        #expect(try ask(.list(.init(limit: 2)))["more"] == true && ask(.list(.init(limit: 3)))["more"] == false)
        try File.replace("\(library.entriesDirectory)/odd.json", with: [], mode: 0o640)
        #expect(try ask(.list(.init()))["unreadable"]?[0]?["id"] == "odd")
        #expect(try ask(.list(.init()), uid: CurrentProcess.uid)["unreadable"] == nil)
    }

    @Test func aLibraryThatIsNotThereIsEmptyAndStaysAway() throws {
        let librarian = try Librarian("\(scratch.path)/none", runtimeDirectory: runtime)
        #expect(try librarian.answer(LibrarianRequest(.list(.init()))) == ["entries": [], "more": false])
        _ = try librarian.answer(LibrarianRequest(.recover(nil)))
        #expect(!exists("\(scratch.path)/none"))
    }

    @Test func othersAreNotThere() throws {
        _ = try LeftMovie(library, id: "mine", cut: 1, uid: 1000)
        let other = try LeftMovie(library, id: "theirs", cut: 1, uid: 1001)
        _ = try ask(.recover(nil))
        #expect(try ids(.init(), uid: 1000) == ["mine"] && ids(.init()).count == 2)
        for action: LibrarianRequest.Action in [.get("theirs"), .delete("theirs"), .get("nobodys"), .get("../theirs")] {
            #expect(refusal(action, uid: 1000)?.reason == .entryNotFound)
        }
        #expect(exists(other.entry.path))
        #expect(refusal(.get("theirs")) == nil)
    }

    // MARK: What is not wanted any more

    @Test func deletingTakesTheEntryLast() throws {
        let entry = try LeftMovie(library, id: "aa11", cut: 1).entry
        let sideCar = try #require(entry.sideCar)
        unlink(sideCar)
        mkdir(sideCar, 0o700)
        // What stands in the way leaves the entry, by which one can try again.
        #expect(refusal(.delete("aa11"))?.reason == .internalError)
        #expect(!exists(entry.path) && exists("\(library.entriesDirectory)/aa11.json"))
        rmdir(sideCar)
        #expect(try ask(.delete("aa11"))["deleted"] == [])
        #expect(refusal(.get("aa11"))?.reason == .entryNotFound)

        let second = try LeftMovie(library, id: "bb22", cut: 1).entry
        #expect(
            try ask(.delete("bb22"))["deleted"] == [.string(second.path), .string(try #require(second.sideCar))])
        #expect(scratch.contents().isEmpty)
    }

    /// Somebody who may write where a movie lies can't have another one deleted, or mended, in its place.
    @Test func linksLeadNowhere() throws {
        let victim = try LeftMovie(library, id: "aa11", cut: 1)
        let folder = "\(scratch.path)/shared"
        var entry = victim.entry
        (entry.id, entry.path, entry.sideCar) = ("bb22", "\(folder)/aa11.mp4", nil)
        try library.add(entry)
        let day = String(victim.entry.path[..<(try #require(victim.entry.path.lastIndex(of: "/")))])
        symlink(day, folder)
        #expect(try ask(.recover("bb22"))["failed"]?[0]?["id"] == "bb22")
        #expect(refusal(.delete("bb22"))?.reason == .internalError)
        #expect(try read(victim.entry.path) == victim.bytes)
        unlink(folder)
        mkdir(folder, 0o700)
        symlink(victim.entry.path, entry.path)
        #expect(try ask(.recover("bb22"))["failed"]?[0]?["id"] == "bb22")
        #expect(refusal(.delete("bb22"))?.reason == .internalError)
        #expect(try read(victim.entry.path) == victim.bytes)
        unlink(entry.path)
        rmdir(folder)
    }

    /// The library itself may lie on another disk.
    @Test func theLibraryMayBeALink() throws {
        let link = "\(scratch.path)/link"
        symlink(library.directory, link)
        let librarian = try Librarian(link, runtimeDirectory: runtime)
        _ = try LeftMovie(CaptureLibrary(link), id: "aa11", cut: 1)
        let answer = try librarian.answer(LibrarianRequest(.recover(nil)))
        #expect(answer["entries"]?[0]?["state"] == "recovered")
        #expect(try librarian.answer(LibrarianRequest(.delete("aa11")))["deleted"]?.array?.count == 2)
        unlink(link)
    }

    // MARK: The program

    @Test func requestsSurviveTheirForm() throws {
        let requests = [
            LibrarianRequest(.list(.init())), LibrarianRequest(.get("a"), uid: 5),
            LibrarianRequest(.delete("b"), uid: 0),
            LibrarianRequest(.recover(nil)), LibrarianRequest(.recover("c")), LibrarianRequest(.left),
            LibrarianRequest(.giveUp("d")),
            LibrarianRequest(
                .list(
                    .init(
                        since: 1, kind: "movie", device: "d", state: "missing", take: "t", photo: "p", prefix: "i",
                        limit: 7)),
                uid: .max),
            LibrarianRequest(.join(.init(take: "t", segments: ["a", "b"], path: "/l/t.mp4"))),
            LibrarianRequest(
                .join(
                    .init(
                        take: "t", segments: [], path: "/l/t.mp4", cover: "/l/t.jpg", preset: .size640x480, root: "/l")),
                uid: 7),
        ]
        for request in requests { #expect(LibrarianRequest(json: request.json) == request) }
        for json: JSONValue in [
            [:], ["do": "get"], ["do": "burn"], ["do": "list", "uid": -1], ["do": "list", "uid": "0"],
            ["do": "join", "take": "t", "segments": ["a"]], ["do": "join", "take": "t", "segments": [1], "path": "/t"],
            ["do": "join", "take": "t", "segments": ["a"], "path": "t"],
            ["do": "join", "take": "t", "segments": ["a"], "path": "/t", "cover": 1],
            ["do": "join", "take": "t", "segments": ["a"], "path": "/t", "preset": "huge"],
            ["do": "list", "limit": -1], ["do": "list", "limit": 1_000_000],
        ] {
            #expect(LibrarianRequest(json: json) == nil)
        }
        for report: LibrarianReport in [
            .progress(0.25), .answer(.success(["id": "t"])), .answer(.failure(BusError(.diskFull, "full"))),
        ] {
            #expect(LibrarianReport(json: report.json) == report)
        }
        #expect(LibrarianReport(json: ["entries": []]) == nil)
    }

    @Test func theProgramAnswersAndEnds() async throws {
        _ = try LeftMovie(library, id: "aa11", cut: 0.7)
        func ask(_ request: String) async throws -> ProgramResult {
            try await run(
                "camerabus-librarian",
                ["--library", library.directory, "--runtime-dir", runtime.path, "--request", request])
        }
        let recovered = try await ask(#"{"do": "recover"}"#)
        #expect(recovered.status == 0 && recovered.standardError == "")
        let answer = try JSONValue(parsing: recovered.standardOutputBytes)
        #expect(answer["result"]?["entries"]?[0]?["state"] == "recovered")
        let refused = try await ask(#"{"do": "get", "id": "nobody"}"#)
        #expect(refused.status == 0)
        #expect(
            try JSONValue(parsing: refused.standardOutputBytes)["error"]?["data"]?["reason"] == "entryNotFound")
        let wrong = try await ask(#"{"do": "burn"}"#)
        #expect(wrong.status == 64 && wrong.standardOutput == "")
    }
}
