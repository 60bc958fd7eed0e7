import BusClient
import CameraBusTesting
import JSON
import LinuxIO
import Testing

@testable import camerabus

/// What the command line makes of movies.
@Suite struct MovieTextTests {
    private func places(
        _ output: String, rig: String? = nil, count: Int = 1, folders: Set<String> = []
    ) throws -> MovieFileNames {
        try MovieFileNames(
            output, rig: rig, fileType: "mp4", count: count, time: "20260314-091500",
            isFolder: { folders.contains($0) })
    }

    @Test func `several cameras have a file each`() throws {
        #expect(try places("take.mp4").path(of: "cam0") == "take.mp4")
        #expect(try places("take.mp4", count: 2).path(of: "cam0") == "take-cam0.mp4")
        #expect(try places("a.b/take", count: 2).path(of: "cam0") == "a.b/take-cam0")
        #expect(try places("/v/%s-100%%.mkv", count: 2).path(of: "cam1") == "/v/cam1-100%.mkv")
        #expect(throws: (any Error).self) { try places("%d.mp4") }
    }

    @Test func `a folder has names made in it`() throws {
        #expect(try places("/v/").path(of: "cam0") == "/v/cam0-20260314-091500.mp4")
        let named = try places("100%", count: 2, folders: ["100%"])
        #expect(named.path(of: "cam1") == "100%/cam1-20260314-091500.mp4" && named.common == nil)
    }

    @Test func `those of a rig are called as the bus calls them`() throws {
        let places = try places("take.mov", rig: "stereo", count: 2)
        #expect(places.common == "take.mov" && places.path(of: "left") == "take-left.mov")
        let folder = try self.places("v/", rig: "stereo", count: 2)
        #expect(folder.common == "v/stereo-20260314-091500.mp4")
        #expect(folder.path(of: "left") == "v/stereo-20260314-091500-left.mp4")
        #expect(throws: (any Error).self) { try self.places("%s.mov", rig: "stereo", count: 2) }
    }

    @Test func `a path is absolute for the bus`() throws {
        let folder = try TemporaryDirectory()
        let path = try MovieFileNames.resolved("\(folder.path)/../\(folder.path.dropFirst(5))/a.mp4")
        #expect(path == "\(folder.path)/a.mp4")
        #expect(try MovieFileNames.resolved("/a.mp4") == "/a.mp4")
        #expect(throws: Failure.self) { try MovieFileNames.resolved("\(folder.path)/no/a.mp4") }
    }

    @Test func `numbers of bytes have letters of a thousand`() throws {
        #expect(ByteSize(argument: "1500000")?.value == 1_500_000)
        #expect(ByteSize(argument: "2.5G")?.value == 2_500_000_000)
        #expect(ByteSize(argument: "700k")?.value == 700_000)
        for wrong in ["", "G", "-1", "0", "1X", "1e30T", "nan"] {
            #expect(ByteSize(argument: wrong) == nil, "\(wrong)")
        }
        #expect(FreeBytes(argument: "0")?.value == 0 && FreeBytes(argument: "2M")?.value == 2_000_000)
        #expect(FreeBytes(argument: "-1") == nil && FreeBytes(argument: "none") == nil)
        #expect(ByteSize.text(999) == "999 B" && ByteSize.text(740_200) == "740 kB")
        #expect(ByteSize.text(24_650_000) == "24.6 MB" && ByteSize.text(1_320_000_000) == "1.32 GB")
    }

    @Test func `how far a movie is stands in a line`() {
        #expect(MovieText.time(.milliseconds(12345)) == "0:12.3" && MovieText.time(.seconds(3725)) == "1:02:05.0")
        let state = MovieState([
            "id": "m", "state": "recording", "recordedDuration": 62300, "recordedFileSize": 24_600_000, "frames": 1869,
            "dropped": 0, "encoderLoad": 0.123,
        ])
        #expect(MovieText.progress(state) == "1:02.3  24.6 MB  1869 frames  load 12 %")
        let late = MovieState(["state": "paused", "dropped": 3, "encoderLoad": 1])
        #expect(MovieText.progress(late) == "0:00.0  0 B  0 frames  3 dropped  load 100 %  paused")
        let waiting = MovieState(["state": "recording", "frames": 3, "waitingFor": ["cam0"]])
        #expect(MovieText.progress(waiting) == "0:00.0  0 B  3 frames  waiting for cam0  load 0 %")
        #expect(MoviesCommand.table([waiting]).lines.last?.contains("waits for cam0: ") == true)
    }

    @Test func `an end that nobody asked for is no success`() throws {
        func isWanted(_ reason: String, _ isSuccess: Bool, isInterrupted: Bool = false) -> Bool {
            let json: JSONValue = ["id": "m", "end": ["reason": .string(reason), "success": .bool(isSuccess)]]
            return MovieState(json).ending.map { MovieText.isWanted($0, isInterrupted: isInterrupted) } ?? false
        }
        #expect(isWanted("maximumDurationReached", true) && isWanted("stopped", true, isInterrupted: true))
        for reason in ["stopped", "shuttingDown", "ownerGone", "somethingNew"] { #expect(!isWanted(reason, true)) }
        #expect(!isWanted("deviceLost", false, isInterrupted: true))
    }

    @Test func `what is in the way is set aside with its side-car, and comes back where there is nothing new`() throws {
        let folder = try TemporaryDirectory()
        let (one, other) = ("\(folder.path)/a.mp4", "\(folder.path)/b.mp4")
        for path in [one, MovieFileNames.sideCar(of: one), other] {
            try File.replace(path, with: Array(path.utf8), mode: 0o600)
        }
        var aside = BackupFiles()
        for path in [one, other, "\(folder.path)/c.mp4"] {
            try aside.move(path, with: [MovieFileNames.sideCar(of: path)])
        }
        let pid = CurrentProcess.pid
        #expect(folder.contents() == ["a.mp4.\(pid).old", "a.mp4.frames.jsonl.\(pid).old", "b.mp4.\(pid).old"])
        try File.replace(one, with: [1], mode: 0o600)
        aside.settle(replaced: [one])
        #expect(folder.contents() == ["a.mp4", "b.mp4"])
        #expect(try File.read(one, limit: 100) == [1] && File.read(other, limit: 1000) == Array(other.utf8))
        // Another file of its name that is there by now is not written over.
        try aside.move(one, with: [])
        try File.replace(one, with: [2], mode: 0o600)
        aside.settle(replaced: [])
        #expect(try File.read(one, limit: 100) == [2] && folder.contents().contains("a.mp4.\(pid).old"))
        #expect(throws: Failure.self) { try aside.move(one, with: []) }
        aside.settle(replaced: [])
        #expect(try File.read(one, limit: 100) == [2])
    }

    @Test func `a copy is whole, and takes no other file's place unless told to`() throws {
        let folder = try TemporaryDirectory()
        let (from, to) = ("\(folder.path)/from", "\(folder.path)/to")
        let bytes = [UInt8](repeating: 7, count: 3_000_000)
        try File.replace(from, with: bytes, mode: 0o600)
        try AtomicFile.copy(from, to: to, replaces: false)
        #expect(try File.read(to, limit: 1 << 24) == bytes)
        try File.replace(from, with: [1], mode: 0o600)
        #expect(throws: SystemError.self) { try AtomicFile.copy(from, to: to, replaces: false) }
        #expect(try File.read(to, limit: 1 << 24) == bytes)
        try AtomicFile.copy(from, to: to, replaces: true)
        #expect(try File.read(to, limit: 1 << 24) == [1])
        #expect(folder.contents() == ["from", "to"])
    }
}
