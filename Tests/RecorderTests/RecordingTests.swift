import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureLibrary
import FFmpeg
import Glibc
import JSON
import LinuxIO
import MovieFile
import Recorder
import Testing
import ZeroMQ

@Suite("Recorders with virtual devices", .serialized)
struct RecordingTests {
    static func count(_ track: JSONValue) -> Int {
        track["nb_read_packets"]?.string.flatMap { Int($0) } ?? 0
    }

    @Test(
        "a movie is stored as the camera gives it, or encoded, and its side-car has each frame",
        arguments: [
            (.motionJPEG, .mp4, "mjpeg"), (.h264, .mp4, "h264"), (.yuyv, .mov, "h264"), (.nv12, .mkv, "h264"),
        ] as [(PixelFormat, MovieFileType, String)])
    func stored(_ format: PixelFormat, _ type: MovieFileType, _ codec: String) async throws {
        let fixture = try RecorderFixture()
        try fixture.startCamera("cam0", format)
        let request = fixture.request(type)
        let recorder = try fixture.record(request)
        try fixture.wait("hello") { if case .hello = $0 { true } else { false } }
        #expect(fixture.request == request, "the recorder reports the complete request")
        try fixture.wait(for: .didStartRecording)
        try fixture.waitForState("frames") { $0.frames >= 30 && $0.fragments >= 1 }
        #expect(fixture.progress.stage == .recording)
        #expect(fixture.progress.video["codec"]?.string == codec && fixture.progress.video["width"] == 640)
        let result = try fixture.stop()
        #expect(result.isSuccess && result.isKept && result.reason == .stopped && result.path == request.path)
        #expect(result.dropped == 0)
        #expect(try await recorder.end().status == 0)

        let tracks = try await fixture.tracks(request.path)
        try #require(tracks.count == 1)
        #expect(tracks[0]["codec_name"]?.string == codec)
        #expect(Self.count(tracks[0]) == Int(result.frames))
        let complaints = try await fixture.complaints(request.path)
        #expect(complaints == "")
        let inspection = try MovieRepair.inspect(request.path)
        #expect(inspection.condition == .whole && inspection.fileSize == result.size)
        let lines = try fixture.sideCar(request.path)
        #expect(lines.count == Int(result.frames) + 1)
        #expect(lines[0]["camera"]?["device"] == "cam0" && lines[0]["firstFrame"] == lines[1]["timestamp"])
        let sequences = lines.dropFirst().compactMap { $0["sequence"]?.integer }
        #expect(zip(sequences, sequences.dropFirst()).allSatisfy { $1 == $0 + 1 }, "none is missing")
    }

    @Test("sound is in the movie, and begins with the picture")
    func sound() async throws {
        let fixture = try RecorderFixture()
        try fixture.startCamera("cam0", .motionJPEG)
        try fixture.startMicrophone()
        let request = fixture.request(.mov, microphone: true)
        _ = try fixture.record(request)
        try fixture.wait(for: .didStartRecording)
        try fixture.waitForState("frames") { $0.frames >= 60 }
        #expect(fixture.progress.audio["codec"] == "aac")
        let result = try fixture.stop()
        #expect(result.isSuccess && result.dropped == 0)
        let tracks = try await fixture.tracks(request.path)
        try #require(tracks.count == 2)
        let durations = tracks.compactMap { $0["duration"]?.string.flatMap(Double.init) }
        try #require(durations.count == 2)
        #expect(abs(durations[0] - durations[1]) < 0.15)
        let complaints = try await fixture.complaints(request.path)
        #expect(complaints == "")
    }

    @Test("sound alone is a movie, too")
    func soundAlone() async throws {
        let fixture = try RecorderFixture()
        try fixture.startMicrophone()
        var request = fixture.request(.mkv, microphone: true)
        request.camera = nil
        _ = try fixture.record(request)
        try fixture.wait(for: .didStartRecording)
        try fixture.waitForState("a second") { $0.recordedDuration >= 1000 }
        let result = try fixture.stop()
        #expect(result.isSuccess && result.isKept && result.duration >= 1000)
        let tracks = try await fixture.tracks(request.path)
        #expect(tracks.count == 1 && tracks[0]["codec_name"] == "opus")
    }

    @Test(
        "samples that are stored as they come are those of the topic, bit by bit",
        arguments: [.mov, .mkv] as [MovieFileType])
    func asTheyCome(_ type: MovieFileType) throws {
        let fixture = try RecorderFixture()
        try fixture.startMicrophone()
        let listener = try Socket(try Context(), .subscribe)
        try listener.set(.receiveHighWaterMark, 20_000)
        try listener.set(.reconnectInterval, 10)
        try listener.connect(RuntimeDirectory.endpoint(fixture.directory.mediaSocket("mic0")))
        try listener.subscribe("audio/mic0/native/")
        let set = try PollSet([.socket(listener)])
        let deadline = Deadline.usual
        /// The next period: when it was taken, and its samples.
        func next() throws -> (time: Int64, samples: [UInt8]) {
            while !deadline.hasPassed {
                guard let frames = try listener.receive() else {
                    try set.wait(timeout: 100)
                    continue
                }
                let header = try SoundHeader(try JSONValue(parsing: frames[1].bytes))
                return (header.monotonic, Array(frames[2].bytes))
            }
            throw TestingError("no sound came")
        }
        var periods = [try next().samples]
        var request = fixture.request(type, microphone: true)
        request.camera = nil
        request.audio = MovieRequest.Audio(codec: .pcm)
        _ = try fixture.record(request)
        try fixture.wait(for: .didStartRecording)
        try fixture.waitForState("a second") { $0.recordedDuration >= 1000 }
        #expect(try fixture.stop().isSuccess)
        let end = MonotonicClock.now()
        while true {
            let period = try next()
            periods.append(period.samples)
            if period.time > end { break }
        }
        let reader = try SoundReader(request.path, as: AudioFormat(.int16, rate: 48000, channels: 2))
        var stored: [UInt8] = []
        while let piece = try reader.next() { stored.append(contentsOf: piece.samples) }
        #expect(stored.count >= 48000 * 4)
        let isThere = periods.indices.contains { first in
            var place = 0
            for period in periods[first...] where place < stored.count {
                guard stored[place...].starts(with: period) else { return false }
                place += period.count
            }
            return place == stored.count
        }
        #expect(isThere)
    }

    @Test("a pause is cut out, and what came before it is on the disk")
    func pause() async throws {
        let fixture = try RecorderFixture()
        let request = try fixture.film(frames: 15) { $0.fragmentInterval = 60_000 }.request
        #expect(try fixture.order(.pause(at: MonotonicClock.now())).get() == [:])
        try fixture.wait(for: .didPauseRecording)
        try fixture.waitForState("the pause") { $0.stage == .paused && $0.syncedDuration > 0 }
        #expect(try fixture.order(.pause(at: MonotonicClock.now())).get() == [:], "once is enough")
        #expect(try fixture.order(.resume(at: MonotonicClock.now())).get() == [:])
        try fixture.wait(for: .didResumeRecording)
        let before = fixture.progress.frames
        try fixture.waitForState("further frames") { $0.frames >= before + 15 && $0.stage == .recording }
        let result = try fixture.stop()
        #expect(result.isSuccess)
        // Each frame is a thirtieth of a second, and nothing lies between them.
        #expect(abs(Double(result.duration) - Double(result.frames) * 1000 / 30) < 200)
        let complaints = try await fixture.complaints(request.path)
        #expect(complaints == "")
    }

    @Test("a limit ends the movie whole, and the library says so")
    func limit() async throws {
        let fixture = try RecorderFixture()
        try fixture.startCamera("cam0", .motionJPEG)
        var request = fixture.request()
        request.library = "\(fixture.scratch.path)/library"
        request.path = "\(fixture.scratch.path)/library/2026-01-01/movie.mp4"
        request.limits.maxDuration = 1000
        let recorder = try fixture.record(request)
        try fixture.wait(for: .didStartRecording)
        let library = try CaptureLibrary(try #require(request.library))
        let begun = try #require(try library.entry("m1"))
        #expect(begun.state == .recording && begun.sideCar == request.path + ".frames.jsonl")
        do {
            let file = try FileDescriptor(opening: request.path, O_RDONLY)
            let made = try FileIdentity(file.rawValue)
            #expect(begun.file?.isSame(as: made) == true)
            let sideCar = try FileDescriptor(opening: request.path + ".frames.jsonl", O_RDONLY)
            let madeBeside = try FileIdentity(sideCar.rawValue)
            #expect(begun.sideCarFile?.isSame(as: madeBeside) == true)
        }
        let result = try fixture.waitForEnd()
        #expect(result.reason == .maximumDurationReached && result.isSuccess && result.frames == 30)
        #expect(try await recorder.end().status == 0)
        let entry = try #require(try library.entry("m1"))
        #expect(entry.state == .finished && entry.reason == "maximumDurationReached")
        #expect(entry.frames == 30 && entry.size == result.size && entry.path == request.path)
        #expect(entry.devices.map(\.device) == ["cam0"])
        // Whatever the umask says.
        #expect(FileModes.others(below: library.directory, files: 0o600, folders: 0o700) == [])
    }

    @Test("a movie begins with the first frame at or after its time")
    func notBefore() throws {
        let fixture = try RecorderFixture()
        try fixture.startCamera("cam0", .motionJPEG)
        var request = fixture.request()
        request.beginsOnOrder = true
        _ = try fixture.record(request)
        try fixture.waitForState("ready") { $0.isReady }
        let begin = MonotonicClock.now() + 1_000_000_000
        #expect(try fixture.order(.begin(at: begin)).get() == [:])
        try fixture.wait(for: .didStartRecording)
        let result = try fixture.stop()
        #expect(result.isKept)
        let lines = try fixture.sideCar(request.path)
        let first = try #require(lines[1]["timestamp"]?.integer)
        #expect(first >= begin && first < begin + 200_000_000)
        #expect(lines[0]["startOffset"]?.integer == first - begin)
    }

    @Test("a movie that ends at a time has all frames of before, and none of later")
    func endsAtATime() throws {
        let fixture = try RecorderFixture()
        try fixture.startMicrophone()
        try fixture.startCamera("cam0", .yuyv)
        let request = fixture.request(.mkv, microphone: true)
        _ = try fixture.record(request)
        try fixture.waitForState("frames") { $0.frames >= 10 }
        let end = MonotonicClock.now() + 1_000_000_000
        let order = try fixture.send(.stop(.stopped, at: end))
        // It is ending, and can't be paused any more.
        try fixture.waitForState("finishing") { $0.stage == .finishing }
        guard case .failure(let error) = try fixture.order(.pause(at: MonotonicClock.now())) else {
            throw TestingError("no error")
        }
        #expect(error.reason == .notRecording)
        let result = try #require(MovieResult(json: fixture.answer(to: order).get()))
        #expect(result.reason == .stopped && result.isKept && MonotonicClock.now() >= end)
        let times = try fixture.sideCar(request.path).compactMap { $0["timestamp"]?.integer }
        let last = try #require(times.last)
        #expect(last < end && last > end - 200_000_000, "\(end - last)")
        #expect(times.count == Int(result.frames))
    }

    @Test("what can't be recorded is told, and leaves nothing")
    func refused() async throws {
        let fixture = try RecorderFixture()
        try fixture.startCamera("cam0", .yuyv)
        var request = fixture.request()
        request.video.codec = .passThrough
        _ = try fixture.record(request)
        let first = try fixture.waitForEnd()
        #expect(!first.isSuccess && !first.isKept && first.error?.reason == .invalidParams)
        #expect(access(request.path, F_OK) != 0)

        // There is one already, of somebody else.
        request.video.codec = .automatic
        request.movie = "m2"
        try File.replace(request.path, with: [1, 2, 3], mode: 0o600)
        _ = try fixture.record(request)
        let second = try fixture.waitForEnd()
        #expect(!second.isSuccess && second.error?.data["path"] == "path")
        #expect(try File.read(request.path, limit: 100) == [1, 2, 3])
    }

    @Test("in the library there is no movie without an entry")
    func noEntry() async throws {
        let fixture = try RecorderFixture()
        try fixture.startCamera("cam0", .motionJPEG)
        var request = fixture.request()
        request.library = "\(fixture.scratch.path)/library"
        request.path = "\(fixture.scratch.path)/library/2026-01-01/movie.mp4"
        mkdir("\(fixture.scratch.path)/library", 0o700)
        // Where the entries were to be.
        try File.replace("\(fixture.scratch.path)/library/entries", with: [], mode: 0o600)
        _ = try fixture.record(request)
        let result = try fixture.waitForEnd()
        #expect(result.reason == .writeFailed && !result.isKept && result.error?.reason == .internalError)
        #expect(access(request.path, F_OK) != 0 && access(request.path + ".frames.jsonl", F_OK) != 0)
    }

    @Test("nothing is left of a movie that is given up")
    func cancel() async throws {
        let fixture = try RecorderFixture()
        let filming = try fixture.film { $0.library = "\(fixture.scratch.path)/library" }
        let request = filming.request
        let answer = try fixture.order(.cancel).get()
        #expect(answer["kept"] == false)
        _ = try await filming.recorder.end()
        #expect(access(request.path, F_OK) != 0 && access(request.path + ".frames.jsonl", F_OK) != 0)
        #expect(try CaptureLibrary(try #require(request.library)).entry("m1") == nil)
    }

    @Test("a movie begins with its first sound, and leaves out the picture before it")
    func startsWithSound() async throws {
        let fixture = try RecorderFixture()
        try fixture.startCamera("cam0", .nv12)
        var request = fixture.request(.mp4, microphone: true)
        request.startsWithSound = true
        _ = try fixture.record(request)
        try fixture.wait("hello") { if case .hello = $0 { true } else { false } }
        let before = MonotonicClock.now()
        try fixture.startMicrophone()
        try fixture.wait(for: .didStartRecording)
        try fixture.waitForState("frames") { $0.frames >= 30 }
        let result = try fixture.stop()
        #expect(result.isSuccess && result.dropped == 0)
        let lines = try fixture.sideCar(request.path)
        let zero = try #require(lines[0]["firstFrame"]?.integer)
        let picture = try #require(lines[1]["timestamp"]?.integer)
        #expect(zero > before - 1_000_000_000 && picture >= zero && picture - zero < 34_000_000)
        let tracks = try await fixture.tracks(request.path)
        let starts = tracks.compactMap { $0["start_time"]?.string.flatMap(Double.init) }
        try #require(starts.count == 2)
        // The sound's first piece is what its decoder needs to begin.
        #expect(starts[1] == 0 && starts[0] >= 0 && starts[0] < 0.06, "\(starts)")
        let complaints = try await fixture.complaints(request.path)
        #expect(complaints == "")
    }

    @Test("an encoder that can't keep up costs frames of the movie, which are counted and told")
    func overload() async throws {
        let fixture = try RecorderFixture()
        try fixture.startCamera("cam0", .nv12, width: 1920, height: 1080)
        var request = fixture.request()
        request.video.preset = "placebo"
        let end = try fixture.recordHere(request) { $0.queueMilliseconds = 100 }
        try fixture.wait("word of it") { if case .event(.didDropFrames) = $0 { true } else { false } }
        try fixture.waitForState("dropped frames in the movie") { $0.dropped > 0 && $0.encoderLoad > 0.2 }
        let result = try fixture.stop()
        #expect(end() == .inOrder)
        #expect(result.isSuccess && result.isKept && result.dropped > 0)
        let lines = try fixture.sideCar(request.path).dropFirst()
        #expect(lines.count == Int(result.frames))
        #expect(lines.compactMap { $0["dropped"]?.integer }.reduce(0, +) == Int64(result.dropped))
        let sequences = lines.compactMap { $0["sequence"]?.integer }
        let (first, last) = (try #require(sequences.first), try #require(sequences.last))
        #expect(last - first + 1 == Int64(result.frames + result.dropped), "each is in it or counted")
    }

    @Test("another size, turned: a picture that the camera's process makes is encoded")
    func changed() async throws {
        let fixture = try RecorderFixture()
        try fixture.startCamera("cam0", .motionJPEG)
        var request = fixture.request()
        request.orientation = 90
        request.video.width = 240
        _ = try fixture.record(request)
        try fixture.waitForState("frames") { $0.frames >= 10 }
        let result = try fixture.stop()
        #expect(result.isSuccess)
        let track = try #require(try await fixture.tracks(request.path).first)
        #expect(track["codec_name"] == "h264" && track["width"] == 240 && track["height"] == 320)
    }
}
