import BusProtocol
import CaptureCore
import JSON
import Testing

@Suite struct RunningMovieTests {
    private static let second: Int64 = 1_000_000_000

    private static func request(
        continues: Bool = false, crashes: [Instant] = [], maxDuration: Int64? = nil, part: Int = 1
    ) -> MovieRequest {
        MovieRequest(
            movie: "3f9c", path: part == 1 ? "/v/belt.mp4" : "/v/belt-\(part).mp4",
            camera: .init(id: "cam0", uniqueID: "virtual-0", name: "Camera"),
            microphone: .init(id: "mic0", uniqueID: "virtual-mic-0", name: "Microphone"), fileType: .mp4,
            limits: .init(maxDuration: maxDuration), beginsOnOrder: true, take: "9b1f", part: part,
            owner: LockHolder(uid: 1000, gid: 1000, pid: 42, startTime: 7, name: "probe"),
            note: RunningMovie.Note(continuesAfterCrash: continues, crashes: crashes).json)
    }

    private static func recording(_ request: MovieRequest) -> RunningMovie {
        var progress = MovieProgress(.recording)
        progress.syncedDuration = 4000
        progress.syncedFileSize = 500
        progress.fragments = 2
        return RunningMovie(request, progress: progress)
    }

    private static func ended(_ request: MovieRequest, _ result: MovieResult) -> RunningMovie {
        var movie = RunningMovie(request)
        _ = movie.finish(result)
        return movie
    }

    @Test func `it begins once, and ends once`() {
        var movie = RunningMovie(Self.request())
        let beginnings = [movie.begin(), movie.begin()]
        #expect(beginnings == [true, false])
        #expect(movie.json["state"] == "recording")
        let orders = [movie.end(for: .ownerGone), movie.end(for: .stopped)]
        #expect(orders == [.stop(.ownerGone), nil])
        #expect(movie.json["state"] == "finishing")
        let ends = [
            movie.finish(MovieResult(.ownerGone, path: "/v/belt.mp4", isKept: true)), movie.finish(movie.crash()),
        ]
        #expect(ends == [true, false])
        #expect(movie.json["state"] == "finished")
        #expect(movie.json["end"]?["reason"] == "ownerGone")
        var progress = movie.progress
        progress.frames += 1
        let isTaken = movie.update(progress)
        #expect(!isTaken)
    }

    @Test func `a part that finds a file already is followed by the one behind it`() throws {
        let taken = MovieResult(
            .writeFailed, error: .invalidParams("path", "this file exists"), path: "/v/belt-2.mp4", isKept: false
        )
        var request = Self.request(continues: true, crashes: [7], part: 2)
        for part in 3...10 {
            #expect(RunningMovie(request).isTold && RunningMovie(request).follower("n", at: 0) == nil)
            request = try #require(Self.ended(request, taken).follower("n\(part)", at: 0))
            #expect(request.part == part && request.path == "/v/belt-\(part).mp4" && request.movie == "n\(part)")
            #expect(RunningMovie.Note(json: request.note).crashes == [7])
        }
        #expect(Self.ended(request, taken).follower("n", at: 0) == nil)
        // Not the first, which the client has asked for, nor what has failed otherwise or was to end.
        let first = Self.ended(Self.request(continues: true), taken)
        #expect(!first.isTold && first.follower("n", at: 0) == nil)
        let lost = MovieResult(.deviceLost, path: "/v/belt-2.mp4", isKept: false)
        #expect(Self.ended(Self.request(continues: true, part: 2), lost).follower("n", at: 0) == nil)
        var stopped = RunningMovie(Self.request(continues: true, part: 2))
        _ = stopped.end(for: .stopped)
        _ = stopped.finish(taken)
        #expect(stopped.follower("n", at: 0) == nil)
    }

    private static func changed(canContinue: Bool = true) -> MovieResult {
        var result = MovieResult(
            .formatChanged, error: BusError(.formatUnsupported, "cam0 delivers MJPG 320x200 now.", ["nearest": .null]),
            path: "/v/belt.mp4", duration: 4000, isKept: true)
        result.canContinue = canContinue
        return result
    }

    @Test func `what its file can't hold is had by the movie that follows it`() throws {
        var movie = Self.recording(Self.request(maxDuration: 10_000))
        _ = movie.finish(try #require(MovieResult(json: .object(Self.changed().members))))
        let next = try #require(movie.follower("n1", at: 7))
        #expect(next.movie == "n1" && next.follows == "3f9c" && next.part == 2 && next.path == "/v/belt-2.mp4")
        #expect(next.take == "9b1f" && next.limits.maxDuration == 6000 && !next.beginsOnOrder)
        #expect(RunningMovie.Note(json: next.note).before == ["3f9c"])
        #expect(movie.json["end"]?["success"] == false && movie.json["end"]?["canContinue"] == nil)
        movie.setNext("n1")
        #expect(movie.json["end"]?["success"] == true && movie.json["end"]?["error"] == .null)
        #expect(movie.json["end"]?["next"] == "n1" && RunningMovie(next).json["follows"] == "3f9c")

        var other = Self.recording(Self.request())
        _ = other.finish(Self.changed(canContinue: false))
        #expect(other.follower("n", at: 7) == nil)
        var late = Self.recording(Self.request(maxDuration: 4000))
        _ = late.finish(Self.changed())
        #expect(late.follower("n", at: 7) == nil)
    }

    @Test func `one that was to end when its pictures changed has ended as it was told`() {
        var movie = Self.recording(Self.request())
        _ = movie.end(for: .stopped)
        _ = movie.finish(Self.changed())
        #expect(movie.follower("n", at: 0) == nil)
        #expect(movie.json["end"]?["reason"] == "stopped" && movie.json["end"]?["success"] == true)
    }

    @Test func `a camera that changes all the time does not fill the disk with movies`() throws {
        func follower(_ request: MovieRequest, at now: Instant) -> MovieRequest? {
            var movie = Self.recording(request)
            _ = movie.finish(Self.changed())
            return movie.follower("n\(request.part)", at: now)
        }
        var request = Self.request()
        for number in 0..<8 { request = try #require(follower(request, at: Int64(number) * Self.second)) }
        #expect(request.part == 9 && RunningMovie.Note(json: request.note).before.count == 8)
        #expect(follower(request, at: 59 * Self.second) == nil)
        #expect(follower(request, at: 61 * Self.second) != nil)
        request.part = RunningMovie.maximumParts
        #expect(follower(request, at: 1000 * Self.second) == nil)
    }

    @Test func `one that has not begun leaves nothing when it ends`() {
        var movie = RunningMovie(Self.request())
        let order = movie.end(for: .stopped)
        #expect(order == .cancel)
    }

    @Test func `what is told of it is what the contract says`() {
        var movie = RunningMovie(Self.request())
        #expect(Schema.definitions["Movie"]?.validate(movie.json) == nil)
        var progress = MovieProgress(.paused)
        progress.video = ["codec": "h264", "width": 640, "height": 480]
        progress.startOffset = 2.5
        _ = movie.update(progress)
        #expect(Schema.definitions["Movie"]?.validate(movie.json) == nil)
        #expect(Schema.definitions["MovieStarted"]?.validate(movie.started) == nil)
        #expect(movie.started["devices"] == ["cam0", "mic0"])
        for result in [
            movie.crash(), MovieResult(.stopped, path: "/v", isKept: true),
            MovieResult(.diskFull, error: BusError(.diskFull, "Full.", ["free": 0]), path: "/v", isKept: false),
        ] {
            let members = JSONValue.object(movie.members(of: result))
            #expect(Schema.definitions["MovieEnd"]?.validate(members) == nil)
        }
        _ = movie.finish(movie.crash())
        #expect(Schema.definitions["Movie"]?.validate(movie.json) == nil)
    }

    @Test func `a crash keeps what was on the disk`() {
        let movie = Self.recording(Self.request())
        #expect(movie.crash().reason == .recorderCrashed)
        #expect(movie.crash("signal 4").error?.message.contains("has died (signal 4); its file plays") == true)
        #expect(movie.crash().isKept && movie.crash().duration == 4000 && movie.crash().size == 500)
        #expect(!RunningMovie(Self.request()).crash().isKept)
    }

    @Test func `a movie that is to go on after a crash does, in the next part of its take`() throws {
        let movie = Self.recording(Self.request(continues: true, maxDuration: 60_000))
        let next = try #require(movie.successor("5e0c", at: 10 * Self.second))
        #expect(next.movie == "5e0c")
        #expect(next.path == "/v/belt-2.mp4")
        #expect(next.part == 2)
        #expect(next.take == "9b1f")
        #expect(!next.beginsOnOrder)
        #expect(next.limits.maxDuration == 56_000)
        #expect(RunningMovie.Note(json: next.note).crashes == [10 * Self.second])
    }

    @Test func `one that is not to, was stopped, had not begun, or dies again and again does not`() {
        #expect(Self.recording(Self.request()).successor("n", at: 0) == nil)
        #expect(RunningMovie(Self.request(continues: true)).successor("n", at: 0) == nil)
        var stopped = Self.recording(Self.request(continues: true))
        _ = stopped.end(for: .stopped)
        #expect(stopped.successor("n", at: 0) == nil)
        let now = 100 * Self.second
        let twice = [now - 50 * Self.second, now - 10 * Self.second]
        #expect(Self.recording(Self.request(continues: true, crashes: twice)).successor("n", at: now) == nil)
        let longAgo = [now - 70 * Self.second, now - 10 * Self.second]
        #expect(Self.recording(Self.request(continues: true, crashes: longAgo, part: 3)).successor("n", at: now) != nil)
        #expect(Self.recording(Self.request(continues: true, maxDuration: 4000)).successor("n", at: now) == nil)
    }

    @Test func `its note is read as it was written`() {
        let note = RunningMovie.Note(isDetached: true, continuesAfterCrash: true, crashes: [1, 2], misses: 3)
        #expect(RunningMovie.Note(json: note.json) == note)
        #expect(RunningMovie.Note(json: .null) == RunningMovie.Note())
    }

    @Test func `what may not be had any more is blank where that was asked for, as long as something is real`() throws {
        var request = Self.request(continues: true)
        #expect(Self.recording(request).withdrawal(of: [.audio]) == nil, "nobody asked for it")
        var note = RunningMovie.Note(json: request.note)
        note.isBlankWhenDenied = true
        request.note = note.json
        #expect(RunningMovie(request).withdrawal(of: [.audio]) == nil, "it has not begun")
        var movie = Self.recording(request)
        #expect(movie.withdrawal(of: [.libraryAdd]) == [] && movie.json["blank"] == nil)
        #expect(movie.withdrawal(of: [.audio, .video]) == nil)
        #expect(movie.withdrawal(of: [.audio]) == [.audio])
        movie.withdraw(.audio)
        #expect(movie.withdrawal(of: [.audio]) == [] && movie.json["blank"] == ["audio"])
        #expect(movie.withdrawal(of: [.audio, .video]) == nil)
        // So it is in the next part, too.
        let next = try #require(movie.successor("b", at: 0))
        #expect(next.blank.media == [.audio])
    }

    @Test func `its user and administrators may end it`() {
        let movie = RunningMovie(Self.request())
        #expect(throws: Never.self) { try movie.check(Editor(uid: 1000, isAdmin: false)) }
        #expect(throws: Never.self) { try movie.check(Editor(uid: 1, isAdmin: true)) }
        #expect(throws: BusError.self) { try movie.check(Editor(uid: 1, isAdmin: false)) }
    }
}
