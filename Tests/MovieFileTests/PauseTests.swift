import CameraBusTesting
import CaptureCore
import FFmpeg
import Glibc
import LinuxIO
import MovieFile
import Testing

@Suite struct PauseTests {
    private let scratch: TemporaryDirectory
    init() throws { scratch = try TemporaryDirectory() }

    private static let size = Dimensions(width: Material.width, height: Material.height)
    private static let rate = 48000
    private static let start: Int64 = 9_000_000_000

    private static func frameTime(_ index: Int) -> Int64 { start + Int64(index) * 33_333_333 }
    private static func soundTime(_ sample: Int) -> Int64 { start + Int64(sample) * 1_000_000_000 / Int64(rate) }
    /// Each tells its place.
    private static func sample(_ index: Int) -> Int16 { Int16(truncatingIfNeeded: index * 7 % 28007 - 14000) }

    private enum Step {
        case pause(Int64)
        case resume(Int64)
    }

    /// Writes pictures and, so much later, the sound that goes with them; each step before the frame of that number.
    private func record(
        _ material: Material, _ video: MovieVideo, _ path: String, _ steps: [Int: Step],
        audio: AudioCodec? = .pcm, fileType: MovieFileType = .mov, soundDelay: Int64 = 100_000_000,
        atPause: (MovieWriter) throws -> Void = { _ in }
    ) throws -> MovieWriter {
        let sound = audio.map {
            MovieAudio(
                AudioFormat(.int16, rate: Self.rate, channels: 1),
                AudioSettings($0, rate: Self.rate, channels: 1, bitRate: 64000))
        }
        let writer = try MovieWriter(path, MovieConfiguration(fileType, video: video, audio: sound))
        writer.startSession(atSourceTime: Self.start)
        var next = 0
        for (index, frame) in material.frames.enumerated() {
            switch steps[index] {
            case .pause(let time):
                try writer.pause(at: time)
                #expect(writer.isPaused)
                try atPause(writer)
            case .resume(let time):
                writer.resume(at: time)
                #expect(!writer.isPaused)
            case nil: break
            }
            _ = try frame.withUnsafeBytes {
                try writer.append($0, at: Self.frameTime(index), isKeyFrame: material.isKeyFrame[index])
            }
            while audio != nil, Self.soundTime(next + 480) + soundDelay < Self.frameTime(index + 1) {
                let block = (next..<next + 480).map(Self.sample)
                _ = try block.withUnsafeBytes { try writer.append(sound: $0, at: Self.soundTime(next)) }
                next += 480
            }
        }
        // Until the sound has come that goes with the last picture.
        while audio != nil, Self.soundTime(next) < Self.frameTime(material.frames.count) {
            let block = (next..<next + 480).map(Self.sample)
            _ = try block.withUnsafeBytes { try writer.append(sound: $0, at: Self.soundTime(next)) }
            next += 480
        }
        #expect(try writer.finishWriting() == nil)
        return writer
    }

    /// The frames that are kept have their times, and the sound is that of the kept times to the sample.
    private func check(
        _ writer: MovieWriter, frames: [(index: Int, time: Int64)], cuts: [Range<Int64>], tolerance: Double = 0.000002
    ) async throws {
        let judge = Judge(path: writer.path, scratch: scratch)
        let found = try await judge.times("v:0")
        try #require(found.count == frames.count)
        for (found, frame) in zip(found, frames) {
            #expect(
                abs(found - Double(frame.time) / 1e9) < tolerance, "frame \(frame.index) at \(found), not \(frame.time)"
            )
        }
        #expect(writer.statistics.frames == UInt64(frames.count) && writer.statistics.dropped == 0)
        let complaints = try await judge.complaints()
        #expect(complaints == "")
        let samples = try await judge.samples(rate: Self.rate)
        let expected = (0..<200_000).filter { sample in
            !cuts.contains { $0.contains(Self.soundTime(sample)) }
        }
        try #require(samples.count > 30000 && samples.count <= expected.count)
        // The resampler's filter rounds the edges, a few samples at each; one sample too many or too few would be wrong
        // from there on.
        let right = samples.indices.filter { abs(Int(samples[$0]) - Int(Self.sample(expected[$0]))) <= 3 }
        #expect(right.count > samples.count * 98 / 100, "\(right.count) of \(samples.count)")
        let kept = Double(frames.last.map { $0.time } ?? 0) / 1e9 + 1.0 / 30
        #expect(abs(Double(samples.count) / Double(Self.rate) - kept) < 0.1)
    }

    enum Case: CaseIterable {
        /// Told in time, so that what is older still comes.
        case early
        /// Told late, when what is newer has come.
        case late
    }

    @Test(arguments: Case.allCases, [MovieKind.motionJPEG, .encoded])
    func whatLiesBetweenIsCutOut(_ told: Case, _ kind: MovieKind) async throws {
        var material = try await Material.motionJPEG(60, in: scratch)
        var video = MovieVideo.motionJPEG(.jpeg(Self.size))
        if kind == .encoded {
            let layout = try #require(FrameLayout.packed(.i420, Self.size))
            var settings = MovieFileType.mov.recommendedVideoSettings(Self.size, frameRate: 30)
            settings.preset = "ultrafast"
            video = .encoded(layout, settings)
            material.frames = (0..<60).map { MovieWriterTests.picture(layout, $0) }
        }
        // Not between two samples.
        let (pause, resume) = (Self.frameTime(21) + 1_234_567, Self.frameTime(43) - 7_654_321)
        let steps: [Int: Step] =
            told == .early ? [19: .pause(pause), 40: .resume(resume)] : [25: .pause(pause), 48: .resume(resume)]
        var synced: Int64 = 0
        let writer = try record(material, video, "\(scratch.path)/movie.mov", steps) { writer in
            synced = writer.statistics.syncedDuration
            #expect(writer.statistics.syncedSize == writer.statistics.recordedFileSize)
            let found = try MovieRepair.inspect(writer.path)
            #expect(found.condition == .playable && found.wholeSize == writer.statistics.syncedSize)
        }
        // What has come is not cut out, and what was cut out leaves no hole.
        let cut = told == .early ? pause..<resume : Self.frameTime(24) + 1..<Self.frameTime(47) + 1
        #expect(synced >= Self.frameTime(told == .early ? 18 : 24) - Self.start)
        let frames = (0..<60).filter { !cut.contains(Self.frameTime($0)) }.map { index in
            let time = Self.frameTime(index)
            return (
                index: index, time: time - Self.start - (time < cut.lowerBound ? 0 : cut.upperBound - cut.lowerBound)
            )
        }
        try await check(writer, frames: frames, cuts: [cut])
    }

    enum MovieKind: CaseIterable { case motionJPEG, encoded }

    @Test(arguments: [100_000_000, -50_000_000] as [Int64])
    func h264GoesOnAtAKeyFrameAndTheSoundWithIt(_ soundDelay: Int64) async throws {
        let material = try await Material.h264(80, in: scratch)
        let steps: [Int: Step] = [
            15: .pause(Self.frameTime(20)), 33: .resume(Self.frameTime(36)),
            47: .pause(Self.frameTime(50)), 58: .resume(Self.frameTime(61)),
            // Before a key frame has come.
            63: .pause(Self.frameTime(63)), 64: .resume(Self.frameTime(64)),
        ]
        let writer = try record(
            material, .h264(.h264(Self.size), parameterSets: material.parameterSets), "\(scratch.path)/movie.mov",
            steps,
            soundDelay: soundDelay)
        let cuts = [Self.frameTime(20)..<Self.frameTime(40), Self.frameTime(50)..<Self.frameTime(70)]
        let frames = (0..<80).filter { index in !cuts.contains { $0.contains(Self.frameTime(index)) } }.map { index in
            let time = Self.frameTime(index)
            let left = cuts.filter { $0.upperBound <= time }.reduce(0) { $0 + $1.upperBound - $1.lowerBound }
            return (index: index, time: time - Self.start - left)
        }
        try #require(frames.count == 20 + 10 + 10)
        try await check(writer, frames: frames, cuts: cuts)
    }

    @Test func whatComesLateFromBeforeThePauseIsSyncedToo() async throws {
        let material = try await Material.motionJPEG(30, in: scratch)
        let audio = MovieAudio(
            AudioFormat(.int16, rate: Self.rate, channels: 1),
            AudioSettings(.pcm, rate: Self.rate, channels: 1, bitRate: 0))
        let writer = try MovieWriter(
            "\(scratch.path)/movie.mov", MovieConfiguration(.mov, video: .motionJPEG(.jpeg(Self.size)), audio: audio))
        let silence = [Int16](repeating: 0, count: 4800)
        func frame(_ index: Int) throws {
            _ = try material.frames[index].withUnsafeBytes { try writer.append($0, at: Self.frameTime(index)) }
        }
        func sound(_ sample: Int) throws {
            _ = try silence.withUnsafeBytes { try writer.append(sound: $0, at: Self.soundTime(sample)) }
        }
        for index in 0..<9 { try frame(index) }
        try sound(0)
        try writer.pause(at: Self.frameTime(10))
        let early = writer.statistics.syncedDuration
        try frame(9)
        try frame(10)
        #expect(writer.statistics.syncedDuration == early, "its sound is still to come")
        try sound(4800)
        try sound(9600)
        try sound(14400)
        #expect(writer.statistics.syncedDuration > early)
        #expect(writer.statistics.syncedDuration == writer.statistics.recordedDuration)
        #expect(writer.statistics.frames == 10 && writer.statistics.recordedFileSize == writer.statistics.syncedSize)
        // A movie that is finished in its pause is whole.
        #expect(try writer.finishWriting() == nil)
        #expect(try MovieRepair.inspect(writer.path).condition == .whole)
        #expect(try await Judge(path: writer.path, scratch: scratch).complaints() == "")
    }

    @Test func aPauseCountsForNoLimit() async throws {
        let material = try await Material.motionJPEG(10, in: scratch)
        var configuration = MovieConfiguration(.mp4, video: .motionJPEG(.jpeg(Self.size)))
        configuration.limits.maxRecordedDuration = 1_000_000_000
        let writer = try MovieWriter("\(scratch.path)/movie.mp4", configuration)
        var taken = 0
        for index in 0..<200 {
            if index == 10 { try writer.pause(at: Self.frameTime(10)) }
            if index == 110 { writer.resume(at: Self.frameTime(110)) }
            if try material.frames[index % 10].withUnsafeBytes({ try writer.append($0, at: Self.frameTime(index)) }) {
                taken += 1
            }
        }
        #expect(writer.end == .maximumDurationReached && taken == 31)
        try writer.finishWriting()
    }
}
