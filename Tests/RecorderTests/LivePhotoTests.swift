import BusProtocol
import CameraBusTesting
import CaptureCore
import FFmpeg
import Glibc
import JSON
import LinuxIO
import MovieFile
import Testing

@testable import Recorder

@Suite("Movies of live photos")
struct LivePhotoTests {
    private static let second = LivePhotoFixture.second
    /// From one picture to the next.
    private static let frame = second / 30

    private static func isNear(_ one: Int64, _ other: Double) -> Bool {
        abs(one - Int64(other * Double(second))) <= frame * 3 / 2
    }

    @Test("the photo stands in the middle of three seconds; at most four are made at a time")
    func whole() throws {
        let desk = try LivePhotoFixture()
        try desk.begin()
        try desk.film(0..<61)
        let photos = try (0..<4).map { try desk.make("p\($0)", at: desk.time(2) + Int64($0) * Self.frame) }
        let error = try desk.error(try desk.make("p4", at: desk.time(2)))
        #expect(error.reason == .limitExceeded && error.data["limit"] == "livePhotos")
        try desk.film(61..<120)
        for (index, photo) in photos.enumerated() {
            let movie = try desk.movie(photo)
            #expect(Self.isNear(movie.duration, 3) && Self.isNear(movie.photoDisplayTime, 1.5))
            #expect(movie.dimensions == LivePhotoFixture.size && movie.dropped == 0)
            let path = try desk.path("p\(index)")
            #expect(try MovieRepair.inspect(path).condition == .whole)
            #expect(try MovieRepair.inspect(path).fileSize == Int64(movie.bytes))
            var status = stat()
            #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
        }
        // There is room again.
        let again = try desk.make("p5", at: desk.time(3.5))
        #expect(try desk.answer(to: desk.drop("p5")).result == .success([:]))
        #expect(try desk.error(again).reason == .cancelled)
        #expect(try access(desk.path("p5"), F_OK) != 0)
        #expect(try access(desk.path("p1"), F_OK) == 0)
        _ = try desk.answer(to: desk.drop("p1"))
        #expect(try access(desk.path("p1"), F_OK) != 0)
        desk.end()
        #expect(try access(desk.path("p2"), F_OK) == 0, "what was answered is the coordinator's")
        #expect(desk.mailbox.takeNews().result?.isSuccess == true && desk.mailbox.figures.statistics.dropped == 0)
    }

    @Test("what was held less than a second and a half is all that there is of the past")
    func short() throws {
        let desk = try LivePhotoFixture()
        try desk.begin()
        try desk.film(0..<16)
        let photo = try desk.make("p", at: desk.time(0.5))
        try desk.film(16..<90)
        let movie = try desk.movie(photo)
        #expect(Self.isNear(movie.duration, 2) && Self.isNear(movie.photoDisplayTime, 0.5))
        #expect(desk.mailbox.figures.statistics.recordedDuration == LivePhotoWindow.reach)
    }

    @Test("suspending ends what is made, and what comes later holds nothing from before")
    func suspended() throws {
        let desk = try LivePhotoFixture()
        try desk.begin()
        try desk.film(0..<61)
        let photo = try desk.make("p", at: desk.time(2))
        try desk.suspend(true, at: desk.time(2.5))
        try desk.film(61..<91)
        let movie = try desk.movie(photo)
        #expect(Self.isNear(movie.duration, 2) && Self.isNear(movie.photoDisplayTime, 1.5))
        #expect(desk.mailbox.figures.statistics.recordedDuration == 0)
        #expect(try desk.error(try desk.make("q", at: desk.time(3))).reason == .invalidParams)
        try desk.suspend(false, at: desk.time(3))
        try desk.film(91..<121)
        let later = try desk.make("r", at: desk.time(4))
        try desk.film(121..<180)
        #expect(Self.isNear(try desk.movie(later).photoDisplayTime, 1))
    }

    @Test("a movie begins when the camera has come to rest, and ends when it is moved")
    func trimmed() throws {
        let desk = try LivePhotoFixture { $0.isAutoTrimming = true }
        try desk.begin()
        // Held still from 1.2 s to 2.9 s.
        let luma = { (number: Int) -> UInt8 in (36..<88).contains(number) || number % 2 == 0 ? 100 : 200 }
        try desk.film(0..<63, luma)
        let photo = try desk.make("p", at: desk.time(2))
        try desk.film(63..<95, luma)
        let movie = try desk.movie(photo)
        #expect(Self.isNear(movie.photoDisplayTime, 0.8), "\(movie)")
        #expect(Self.isNear(movie.duration, 1.75), "\(movie)")
        // At rest it is whole.
        try desk.film(95..<180)
        let still = try desk.make("q", at: desk.time(5))
        try desk.film(180..<200)
        #expect(Self.isNear(try desk.movie(still).duration, 3))
    }

    @Test("a camera that goes away ends them, and what it gives later has no past")
    func cameraGoes() throws {
        let desk = try LivePhotoFixture()
        try desk.begin()
        try desk.film(0..<61)
        let photo = try desk.make("p", at: desk.time(2))
        #expect(desk.orders.give(.restart(at: desk.time(2.1))))
        try desk.film(90..<105)
        #expect(Self.isNear(try desk.movie(photo).duration, 1.5))
        let later = try desk.make("q", at: desk.time(3.4))
        try desk.film(105..<160)
        #expect(Self.isNear(try desk.movie(later).photoDisplayTime, 0.4))
    }

    @Test("what doesn't come in time is not waited for")
    func late() throws {
        let desk = try LivePhotoFixture(beginning: -10)
        try desk.begin()
        try desk.film(0..<61)
        #expect(Self.isNear(try desk.movie(desk.make("p", at: desk.time(2))).duration, 1.5))
        // Before all that is held, and after it.
        for (job, moment) in [("q", -9.0), ("r", 6)] {
            let error = try desk.error(desk.make(job, at: desk.time(moment)))
            #expect(error.reason == .interrupted && error.data["interruption"] == "livePhotoMovie")
            #expect(try access(desk.path(job), F_OK) != 0)
        }
        let none = try LivePhotoFixture(beginning: -10)
        try none.begin()
        #expect(try none.error(none.make("p", at: none.time(0))).reason == .interrupted)
    }

    @Test("at the end those that are being made end with what they have", arguments: [false, true])
    func ended(isCancelled: Bool) throws {
        let desk = try LivePhotoFixture { $0.isAutoTrimming = isCancelled }
        try desk.film(0..<61)
        let photo = try desk.make("p", at: desk.time(2))
        try desk.begin()
        try desk.film(61..<76)
        desk.end(isCancelled: isCancelled)
        if isCancelled {
            #expect(try desk.error(photo).reason == .cancelled)
            #expect(try access(desk.path("p"), F_OK) != 0)
        } else {
            #expect(try desk.movie(photo).photoDisplayTime > Self.second)
        }
        #expect(!desk.orders.give(.drop(order: 99, job: "p")), "nobody takes it")
    }

    @Test("pictures that never came are counted, as far as they are of its time")
    func missing() throws {
        let desk = try LivePhotoFixture()
        try desk.begin()
        // One of three comes, from before its window until after it.
        try desk.film((0..<130).filter { $0 % 3 == 0 }, missing: 2)
        let movie = try desk.movie(try desk.make("p", at: desk.time(2.5)))
        #expect((58...62).contains(movie.dropped), "\(movie)")
        #expect(movie.duration - movie.photoDisplayTime <= LivePhotoWindow.reach + 1_000_000, "\(movie)")
    }

    @Test("what a camera took is known of a time, though little of it has come")
    func taken() {
        let past = LivePhotoBuffer(LivePhotoFixture.size, frameRate: 30, soundRate: nil)
        let picture = [UInt8](repeating: 1, count: 100)
        picture.withUnsafeBytes { bytes in
            #expect(past.hold(bytes, at: 1000, missing: 5) && past.hold(bytes, at: 2000, missing: 9))
            #expect(!past.hold(bytes, at: 2000, missing: 9), "the same")
        }
        // Every 100 from 1000 to 2000.
        #expect(past.taken(from: 0, to: 3000) == 11 && past.taken(from: 1000, to: 2000) == 11)
        #expect(past.taken(from: 1150, to: 1450) == 3 && past.taken(from: 1950, to: 2500) == 1)
        #expect(past.taken(from: 2001, to: 2500) == 0 && past.taken(from: .min, to: .max) == 11)
        // What has not come half a second later does not come any more.
        #expect(
            past.taken(from: 1000, to: 2550, isAll: true) == 16 && past.taken(from: 2101, to: 2350, isAll: true) == 2)
    }

    @Test("what a movie needs is held until it is made, and what was held is known of each moment")
    func kept() {
        let past = LivePhotoBuffer(LivePhotoFixture.size, frameRate: 30, soundRate: 1000)
        let bytes = [UInt8](repeating: 1, count: 100)
        func film(_ frames: ClosedRange<Int64>) {
            for frame in frames {
                bytes.withUnsafeBytes {
                    #expect(past.hold($0, at: frame * Self.frame))
                    past.hold(sound: $0, at: frame * Self.frame, until: (frame + 1) * Self.frame)
                }
            }
        }
        film(0...200)
        let most = LivePhotoBuffer.duration / Self.frame
        #expect(past.oldestPicture == (200 - most) * Self.frame)
        past.keep(from: 150 * Self.frame)
        film(201...400)
        #expect(past.oldestPicture == 150 * Self.frame)
        #expect(past.withSound(from: 0) { place, _ in place.time } == 150 * Self.frame)
        // Of a photo that was taken then, its movie could have begun with that.
        #expect(past.oldestPicture(at: 200 * Self.frame + 1) == (200 - most) * Self.frame)
        #expect(past.oldestPicture(at: 20 * Self.frame) == 0)
        past.keep(from: nil)
        film(401...401)
        #expect(past.oldestPicture == (401 - most) * Self.frame)
    }

    @Test("a movie whose order comes late says what is missing of its past")
    func orderedLate() async throws {
        let desk = try LivePhotoFixture()
        try desk.begin()
        try desk.film(0..<150)
        try await eventually { desk.pictures.count == 0 }
        // Its window was over long before, and the ring has let go of the beginning.
        let movie = try desk.movie(try desk.make("p", at: desk.time(2)))
        let missing = Int((LivePhotoWindow.reach - movie.photoDisplayTime) / Self.frame)
        #expect(movie.dropped > 0 && abs(movie.dropped - missing) <= 1, "\(movie)")
    }

    @Test("pictures that are held no more, or damaged, are counted")
    func lost() throws {
        let desk = try LivePhotoFixture()
        try PrivateDirectory.make(desk.directory.livePhotos, mode: 0o700)
        let photo = LivePhotoOrder(job: "p", moment: 0, identifier: try desk.identifier("p"))
        let movie = LivePhotoMovieFile(1, photo, try desk.path("p"))
        let layout = try #require(FrameLayout.packed(.i420, LivePhotoFixture.size))
        let request = MovieRequest(
            movie: "m", path: "", camera: nil, fileType: .mov, owner: LockHolder(uid: 0, gid: 0, pid: 1, name: "t"))
        try movie.begin(
            at: LivePhotoBuffer.Place(number: 5, time: 1000), since: 1000,
            LivePhotoMovieFile.Source(picture: layout),
            request)
        let picture = [UInt8](repeating: 128, count: layout.totalBytes)
        for (number, isWhole) in [(5, true), (8, true), (9, false), (10, true)] as [(UInt64, Bool)] {
            let place = LivePhotoBuffer.Place(number: number, time: Int64(number) * Self.frame)
            try picture.withUnsafeBytes {
                try movie.add(isWhole ? $0 : nil, damage: isWhole ? nil : "torn", place, until: .max)
            }
        }
        #expect(movie.lost == 3 && movie.nextPicture == 11)
        let made = try movie.finish(LivePhotoWindow(moment: 7 * Self.frame)) { start, end in
            #expect(start == 1000 && end == 7 * Self.frame + LivePhotoWindow.reach)
            return 9
        }
        #expect(made.bytes > 0 && made.dropped == 6)
        movie.remove()
        #expect(try access(desk.path("p"), F_OK) != 0)
    }
}

extension RecordingTests {
    @Test("live photos of a camera and a microphone: three seconds with sound, as their orders say")
    func livePhotos() async throws {
        let fixture = try RecorderFixture()
        // As large as it is common, and no JPEG: the camera's process makes it.
        try fixture.startCamera("cam0", .yuyv)
        try fixture.startMicrophone()
        var request = fixture.request(.mov, microphone: true)
        request.path = ""
        request.live = MovieRequest.Live(isAutoTrimming: false)
        let recorder = try fixture.record(request)
        try fixture.waitForState("the past") { $0.recordedDuration >= 1500 }
        #expect(
            fixture.request == request && fixture.progress.stage == .recording && fixture.progress.video["width"] == 640
        )
        guard case .failure(let refused) = try fixture.order(.pause(at: MonotonicClock.now())) else {
            throw TestingError("no error")
        }
        #expect(refused.reason == .invalidParams)
        let identifier = try #require(LivePhotoIdentifier(digits: String(repeating: "a1", count: 16)))
        let photo = LivePhotoOrder(job: "p1", moment: MonotonicClock.now(), identifier: identifier, attaches: true)
        let order = try fixture.send(.live(photo))
        let answer = try #require(LivePhotoAnswer(json: try fixture.answer(to: order).get()))
        #expect(
            answer.movie.identifier == identifier && answer.file == fixture.directory.livePhotoFile(identifier.digits))
        #expect(abs(answer.movie.photoDisplayTime - 1_500_000_000) < 100_000_000)
        #expect(abs(answer.movie.duration - 3_000_000_000) < 100_000_000)
        #expect(fixture.files[order] == (try File.read(answer.file, limit: 1 << 26)))
        #expect(fixture.files[order]?.count == answer.movie.bytes)
        let tracks = try await fixture.tracks(answer.file)
        #expect(tracks.compactMap { $0["codec_name"]?.string } == ["h264", "aac"])
        let durations = tracks.compactMap { $0["duration"]?.string.flatMap(Double.init) }
        #expect(durations.count == 2 && durations.allSatisfy { abs($0 - 3) < 0.15 }, "\(durations)")
        let starts = tracks.compactMap { $0["start_time"]?.string.flatMap(Double.init) }
        #expect(starts.count == 2 && starts.allSatisfy { abs($0) < 0.05 }, "\(starts)")
        let tags = try await fixture.run(
            "ffprobe", ["-v", "error", "-show_entries", "format_tags", "-of", "json", answer.file])
        let known = try JSONValue(parsing: tags.standardOutputBytes)["format"]?["tags"]
        #expect(known?["com.apple.quicktime.content.identifier"]?.string == identifier.text)
        let moment = MonotonicClock.realtime(of: photo.moment)
        for (name, ending) in [("creation_time", "Z"), ("com.apple.quicktime.creationdate", "+0000")] {
            let date = try #require(known?[name]?.string)
            #expect(date.hasSuffix(ending))
            let seconds = try await fixture.run("date", ["-u", "-d", date.prefix(19) + "Z", "+%s"])
            let found = try #require(Int64(seconds.standardOutput.split(separator: "\n").first ?? ""))
            // The clock may be set by a little meanwhile.
            #expect(abs(found * 1_000_000_000 - moment) < 1_200_000_000, "\(name): \(date)")
        }
        let complaints = try await fixture.complaints(answer.file)
        #expect(complaints == "")
        #expect(try fixture.order(.dropLive("p1")).get() == [:])
        #expect(access(answer.file, F_OK) != 0)

        // The end of the recorder is theirs, too.
        let other = try #require(LivePhotoIdentifier(digits: String(repeating: "b2", count: 16)))
        let last = try fixture.send(.live(LivePhotoOrder(job: "p2", moment: MonotonicClock.now(), identifier: other)))
        let stop = try fixture.send(.stop(.stopped))
        let ended = try #require(LivePhotoAnswer(json: try fixture.answer(to: last).get()))
        #expect(ended.movie.duration > 1_000_000_000 && ended.movie.duration < 2_500_000_000)
        #expect(MovieResult(json: try fixture.answer(to: stop).get())?.isSuccess == true)
        #expect(try await recorder.end().status == 0)
        #expect(access(ended.file, F_OK) == 0)
    }

    @Test("a recorder of live photos outlives its camera's process, ends with its coordinator, and leaves nothing")
    func livePhotosAlone() async throws {
        let fixture = try RecorderFixture()
        let camera = try fixture.startCamera("cam0", .motionJPEG)
        var request = fixture.request(.mov)
        request.path = ""
        request.live = MovieRequest.Live()
        let recorder = try fixture.record(request)
        try fixture.waitForState("the past") { $0.recordedDuration > 0 }
        camera.process.send(SIGKILL)
        _ = try await camera.end()
        try fixture.waitForState("no past") { $0.recordedDuration == 0 && $0.waitingFor == ["cam0"] }
        try fixture.startCamera("cam0", .motionJPEG)
        try fixture.waitForState("the past") { $0.recordedDuration > 0 && $0.waitingFor == [] }
        let identifier = try #require(LivePhotoIdentifier(digits: String(repeating: "a1", count: 16)))
        try fixture.send(.live(LivePhotoOrder(job: "p", moment: MonotonicClock.now(), identifier: identifier)))
        let path = fixture.directory.livePhotoFile(identifier.digits)
        try await eventually { access(path, F_OK) == 0 }
        fixture.endCoordinator()
        #expect(try await recorder.end().status == 0)
        #expect(access(path, F_OK) != 0)
    }
}
