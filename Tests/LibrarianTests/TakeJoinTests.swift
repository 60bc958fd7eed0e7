import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureLibrary
import Glibc
import JSON
import Librarian
import LinuxIO
import MovieFile
import Synchronization
import Testing

@Suite("Takes that are joined") struct TakeJoinTests {
    private let place: LibraryPlace
    private var scratch: TemporaryDirectory { place.scratch }
    private var library: CaptureLibrary { place.library }
    private var runtime: RuntimeDirectory { place.runtime }
    private var librarian: Librarian { place.librarian }

    init() throws { place = try LibraryPlace() }

    private var day: String { "\(library.directory)/2026-11-22" }
    private var path: String { "\(day)/take.mp4" }
    private var cover: String { "\(day)/take.jpg" }

    /// A segment of thirty pictures that a recorder has finished.
    @discardableResult
    private func segment(_ id: String, uid: UInt32? = nil, started: Int64 = 1) throws -> LibraryEntry {
        var entry = try LeftMovie(library, id: id, cut: nil, uid: uid, started: started).entry
        (entry.state, entry.take, entry.reason) = (.finished, "t1", "stopped")
        (entry.duration, entry.frames, entry.dropped) = (1200, 30, 1)
        try library.replace(entry)
        return entry
    }

    private func join(
        _ segments: [String], cover: String? = nil, preset: ExportPreset? = nil, path: String? = nil,
        root: String? = nil, uid: UInt32? = nil, progress: @escaping (Double) -> Bool = { _ in true }
    ) throws(BusError) -> JSONValue {
        try librarian.answer(
            LibrarianRequest(
                .join(
                    .init(
                        take: "t1", segments: segments, path: path ?? self.path, cover: cover, preset: preset,
                        root: root)),
                uid: uid), progress: progress)
    }

    private func refusal(
        _ segments: [String], cover: String? = nil, path: String? = nil, root: String? = nil, uid: UInt32? = nil,
        progress: @escaping (Double) -> Bool = { _ in true }
    ) -> BusError? {
        do throws(BusError) {
            _ = try join(segments, cover: cover, path: path, root: root, uid: uid, progress: progress)
            return nil
        } catch {
            return error
        }
    }

    private func ask(_ action: LibrarianRequest.Action) throws -> JSONValue {
        try librarian.answer(LibrarianRequest(action))
    }

    private func run(_ program: String, _ arguments: [String]) async throws -> ProgramResult {
        let environment = ["PATH": CurrentProcess.environment("PATH") ?? "/usr/bin:/bin"]
        return try await RunningProgram(program, arguments, environment: environment, scratch: scratch)
            .end(by: .after(seconds: 60))
    }

    private func files() -> [String] {
        scratch.contents().filter { $0.hasPrefix("library/") && !$0.contains("index.sqlite3") }
    }

    @Test(
        "one movie is made of the segments, with a cover, and entered",
        arguments: [nil, .size640x480] as [ExportPreset?])
    func joined(_ preset: ExportPreset?) async throws {
        for (index, id) in ["s1", "s2", "s3"].enumerated() { try segment(id, started: Int64(index + 1)) }
        let before = files()
        let told = Mutex<[Double]>([])
        let answer = try join(["s1", "s3"], cover: cover, preset: preset) { part in
            told.withLock { $0.append(part) }
            return true
        }
        #expect(answer["id"] == "t1" && answer["path"] == .string(path) && answer["cover"] == .string(cover))
        // Motion JPEG is none of what a preset has.
        #expect(answer["encoded"] == .bool(preset != nil))
        #expect(abs((answer["duration"]?.integer ?? 0) - 2400) < 50, "\(answer)")
        let parts = told.withLock { $0 }
        #expect(
            parts.first == 0 && zip(parts, parts.dropFirst()).allSatisfy { $0 <= $1 } && parts.allSatisfy { $0 <= 1 })
        #expect(
            Set(files())
                == Set(
                    before + ["take.mp4", "take.jpg"].map { "library/2026-11-22/\($0)" } + ["library/entries/t1.json"]))
        #expect(try File.read(cover, limit: 1 << 20).starts(with: [0xFF, 0xD8]))
        #expect([path, cover].map(FileModes.mode) == [0o600, 0o600])

        let entry = try #require(try library.entry("t1"))
        #expect(entry.kind == .take && entry.state == .finished && entry.take == "t1" && entry.started == 1)
        #expect(entry.path == path && entry.cover == cover && entry.frames == 60 && entry.dropped == 2)
        #expect(entry.size == Int64(try File.read(path, limit: 16 << 20).count))
        #expect(entry.video?["codec"] == (preset == nil ? "mjpeg" : "h264") && entry.video?["width"] == 64)
        #expect(try ask(.get("t1"))["entry"] == answer["entry"])
        #expect(answer["entry"]?["coverFile"] == nil && answer["entry"]?["cover"] == .string(cover))
        let probed = try await run(
            "ffprobe",
            [
                "-v", "error", "-count_packets", "-select_streams", "v:0", "-show_entries", "stream=nb_read_packets",
                "-of", "csv=p=0", path,
            ])
        #expect(probed.standardOutput.hasPrefix("60"), "\(probed)")
        let played = try await run("ffmpeg", ["-v", "error", "-i", path, "-f", "null", "-"])
        #expect(played.status == 0 && played.standardError == "")

        // Once is enough; and then it can be removed as a whole.
        #expect(refusal(["s1"])?.data["path"] == "take")
        let deleted = try ask(.delete("t1"))
        #expect(deleted["deleted"] == [.string(path), .string(cover)])
        #expect(files() == before)
    }

    @Test("what can't be joined is told, and nothing is left of it")
    func refused() throws {
        try segment("s1", uid: 1000)
        try segment("s2", uid: 1001)
        let lost = try segment("lost", uid: 1000)
        unlink(lost.path)
        let dead = try LeftMovie(library, id: "dead", cut: 0.6, uid: 1000).entry
        let held = try LockFile(runtime.movieLock("dead"))
        let before = files()
        #expect(refusal([])?.data["path"] == "segments")
        #expect(refusal(["s1", "none"])?.reason == .entryNotFound)
        #expect(refusal(["s1", "s2"], uid: 1000)?.data["id"] == "s2", "somebody else's")
        #expect(refusal(["s1", "lost"])?.data["path"] == "segments")
        withExtendedLifetime(held) { #expect(refusal(["s1", dead.id])?.reason == .recordingInProgress) }
        #expect(refusal(["s1"]) { _ in false }?.reason == .cancelled)
        #expect(refusal(["s1"], path: "\(scratch.path)/elsewhere.mp4", root: day)?.data["path"] == "path")
        #expect(refusal(["s1"], path: "\(day)/../take.mp4", root: day)?.data["path"] == "path")
        #expect(refusal(["s1"], path: "\(day)/none/../take.mp4")?.data["path"] != nil)
        #expect(refusal(["s1"], path: "\(scratch.path)/none/take.mp4")?.data["path"] == "path")
        #expect(files() == before)

        // Another's file is in the way.
        try File.replace(cover, with: [1], mode: 0o600)
        #expect(refusal(["s1"], cover: cover)?.data["path"] == "cover")
        rename(cover, path)
        #expect(refusal(["s1"], cover: cover)?.data["path"] == "path")
        #expect(try File.read(path, limit: 10) == [1])
        unlink(path)
        #expect(files() == before)

        // A link leads out of the library.
        mkdir("\(scratch.path)/other", 0o700)
        symlink("\(scratch.path)/other", "\(library.directory)/link")
        #expect(refusal(["s1"], path: "\(library.directory)/link/take.mp4")?.data["path"] == "path")
        #expect(Set(files()) == Set(before + ["library/link"]))
        #expect(scratch.contents().allSatisfy { !$0.hasPrefix("other/") })
        // Nor is a segment read in the place of another.
        let other = try segment("s3", uid: 1000)
        rename(other.path, "\(scratch.path)/other/s3.mp4")
        symlink("\(scratch.path)/other/s3.mp4", other.path)
        #expect(refusal(["s3"]) != nil)
        #expect(!files().contains("library/entries/t1.json"))
    }

    @Test("a movie that lacks something of its segments is not kept")
    func short() throws {
        var entry = try segment("s1")
        try segment("s2")
        entry.duration += 1400
        try library.replace(entry)
        let before = files()
        for segments in [["s1"], ["s2", "s1"]] {
            let refusal = refusal(segments, cover: cover)
            #expect(refusal?.reason == .internalError && refusal?.message.contains("shorter") == true)
        }
        #expect(files() == before)
        entry.duration -= 1000
        try library.replace(entry)
        _ = try join(["s2", "s1"])
    }

    @Test("a take outside of the library is found again where links lead to it", arguments: [true, false])
    func linked(_ hasRoot: Bool) throws {
        try segment("s1")
        let (real, link) = ("\(scratch.path)/other", "\(scratch.path)/link")
        #expect(mkdir(real, 0o700) == 0 && symlink(real, link) == 0)
        let before = scratch.contents()
        let answer = try join(
            ["s1"], cover: "\(link)/take.jpg", path: "\(link)/take.mp4", root: hasRoot ? link : nil)
        #expect(answer["path"] == .string("\(real)/take.mp4") && answer["cover"] == .string("\(real)/take.jpg"))
        #expect(answer["entry"]?["state"] == "finished")
        // As a librarian leaves it that is ended at the last moment.
        var entry = try #require(try library.entry("t1"))
        entry.state = .recording
        try library.replace(entry)
        _ = try join(["s1"], cover: "\(link)/take.jpg", path: "\(link)/take.mp4", root: hasRoot ? link : nil)
        #expect(try ask(.delete("t1"))["deleted"] == [.string("\(real)/take.mp4"), .string("\(real)/take.jpg")])
        #expect(scratch.contents() == before)
    }

    @Test("there is one who joins a take")
    func taken() throws {
        try segment("s1")
        let held = try LockFile(runtime.movieLock("t1"))
        withExtendedLifetime(held) {
            #expect(refusal(["s1"])?.reason == .recordingInProgress)
            // What becomes of it can't be told yet.
            for (uid, reason) in [(nil, .recordingInProgress), (1000, .entryNotFound)] as [(UInt32?, BusError.Reason)] {
                let error = #expect(throws: BusError.self) {
                    try librarian.answer(LibrarianRequest(.get("t1"), uid: uid))
                }
                #expect(error?.reason == reason)
            }
        }
    }

    @Test("a take that was not joined to its end is not there, and what was made of it is removed")
    func unfinished() throws {
        let segment = try segment("s1")
        _ = try join(["s1"], cover: cover)
        // As a librarian leaves it that is ended at the last moment.
        var entry = try #require(try library.entry("t1"))
        entry.state = .recording
        try library.replace(entry)
        #expect(try ask(.list(.init()))["entries"]?.array?.count == 1)
        #expect(throws: BusError.self) { try ask(.get("t1")) }
        #expect(try ask(.left)["ids"] == ["t1"])
        #expect(try ask(.recover("t1")) == ["entries": [], "failed": [], "recording": 0])
        #expect(try library.entry("t1") == nil && library.entry("s1") == segment)
        #expect(access(path, F_OK) != 0 && access(cover, F_OK) != 0)

        // Or who joins it again does it.
        _ = try join(["s1"])
        entry = try #require(try library.entry("t1"))
        entry.state = .recording
        try library.replace(entry)
        _ = try join(["s1"], cover: cover)
        #expect(try library.entry("t1")?.state == .finished)
    }

    @Test("a librarian that is killed leaves the segments, and nothing else", arguments: [0, 1, 2, 4])
    func killed(_ lines: Int) throws {
        try segment("s1")
        let before = files()
        let request = LibrarianRequest(
            .join(
                .init(
                    take: "t1", segments: Array(repeating: "s1", count: 200), path: path, cover: cover,
                    preset: .size640x480)))
        do {
            let output = try ProcessOutput(
                program: Programs.path("camerabus-librarian"),
                arguments: [
                    "--library", library.directory, "--runtime-dir", runtime.path, "--request", "\(request.json)",
                ])
            var set = pollfd(fd: output.rawValue, events: Int16(POLLIN), revents: 0)
            while output.bytes.count(where: { $0 == 10 }) < lines, !output.isComplete {
                let count = poll(&set, 1, 20_000)
                try #require(count == 1)
                _ = output.read()
            }
            for line in output.bytes.split(separator: 10).prefix(lines) {
                guard case .progress = LibrarianReport(json: try JSONValue(parsing: Array(line))) else {
                    throw TestingError("it was too quick: \(String(decoding: line, as: UTF8.self))")
                }
            }
            output.kill()
            set.fd = output.process.rawValue
            let count = poll(&set, 1, 20_000)
            #expect(count == 1)
        }
        #expect(files() == before)
        #expect(try ask(.recover(nil))["failed"] == [])
        _ = try join(["s1"], cover: cover)
    }

    @Test(
        "a full disk leaves the segments, and nothing else",
        .enabled(if: SmallDisk.obstacle == nil, "left out: \(SmallDisk.obstacle ?? "")"))
    func full() async throws {
        let disk = try await SmallDisk(megabytes: 8)
        let library = try CaptureLibrary("\(disk.path)/library")
        let librarian = try Librarian(library.directory, runtimeDirectory: runtime)
        var entry = try LeftMovie(library, id: "s1", cut: nil).entry
        (entry.state, entry.duration) = (.finished, 1200)
        try library.replace(entry)
        let day = "\(library.directory)/2026-11-22"
        for (left, preset) in [(8192, nil), (8192, .size640x480), (0, nil)] as [(Int, ExportPreset?)] {
            let filler = try disk.fill(leaving: left)
            let free = disk.free
            let error = #expect(throws: BusError.self) {
                try librarian.answer(
                    LibrarianRequest(
                        .join(
                            .init(
                                take: "t1", segments: Array(repeating: "s1", count: 50), path: "\(day)/take.mp4",
                                cover: "\(day)/take.jpg", preset: preset))))
            }
            #expect(error?.reason == .diskFull, "\(String(describing: error))")
            #expect(access("\(day)/take.mp4", F_OK) != 0)
            // A program that another test has just started may hold it open until it is loaded.
            try await eventually { disk.free == free }
            var ids: [String] = []
            try library.forEachStamp { id, _ in ids.append(id) }
            #expect(ids == ["s1"])
            unlink(filler)
        }
        let answer = try librarian.answer(
            LibrarianRequest(.join(.init(take: "t1", segments: ["s1"], path: "\(day)/take.mp4"))))
        #expect(answer["cover"] == .null)
    }
}
