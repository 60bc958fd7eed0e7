import CameraBusTesting
import CaptureCore
import FFmpeg
import Foundation
import JSON
import LinuxIO
import MovieFile
import Testing

/// What movies state of their rate and of their date, as other programs read it.
@Suite struct RateTests {
    private let scratch: TemporaryDirectory
    init() throws { scratch = try TemporaryDirectory() }

    private static let size = Dimensions(width: Material.width, height: Material.height)

    enum Codec: String, CaseIterable { case encoded, motionJPEG, h264 }

    /// Five seconds of frames that come at that rate.
    private func record(
        _ type: MovieFileType, _ codec: Codec, every duration: FrameDuration, stated: FrameDuration?
    ) async throws -> String {
        let count = Int(5 * duration.framesPerSecond)
        let isH264 = codec == .h264
        var material = try await isH264 ? Material.h264(count, in: scratch) : .motionJPEG(1, in: scratch)
        var layout = try #require(FrameLayout.packed(.i420, Self.size))
        layout.description.frameDuration = stated
        let video: MovieVideo
        switch codec {
        case .encoded:
            var settings = type.recommendedVideoSettings(Self.size, frameRate: stated?.framesPerSecond)
            settings.preset = "ultrafast"
            video = .encoded(layout, settings)
            material.frames = [MovieWriterTests.picture(layout, 0)]
        case .motionJPEG:
            var description = FormatDescription.jpeg(Self.size)
            description.frameDuration = stated
            video = .motionJPEG(description)
        case .h264:
            var description = FormatDescription.h264(Self.size)
            description.frameDuration = stated
            video = .h264(description, parameterSets: material.parameterSets)
        }
        let path = "\(scratch.path)/\(codec).\(type)"
        var configuration = MovieConfiguration(type, video: video)
        configuration.creationDate = Self.date
        let writer = try MovieWriter(path, configuration)
        for number in 0..<count {
            let time = Int64(Double(number) * duration.seconds * 1e9)
            let frame = material.frames[isH264 ? number : 0]
            let isKeyFrame = isH264 ? material.isKeyFrame[number] : true
            _ = try frame.withUnsafeBytes { try writer.append($0, at: time, isKeyFrame: isKeyFrame) }
        }
        #expect(try writer.finishWriting() == nil)
        #expect(writer.statistics.frames == UInt64(count))
        return path
    }

    private func output(_ program: String, _ arguments: [String]) async throws -> String {
        let result = try await run(program, arguments, scratch)
        guard result.status == 0 else { throw TestingError("\(program) \(arguments): \(result)") }
        return result.standardOutput + result.standardError
    }

    private func probe(_ path: String, _ entry: String) async throws -> [String] {
        let text = try await output(
            "ffprobe", ["-v", "error", "-select_streams", "v:0", "-show_entries", entry, "-of", "csv=p=0", path])
        return text.split(separator: "\n").map(String.init)
    }

    // MARK: Rates

    private static let durations = [(1, 5), (1001, 24000), (1001, 30000), (1, 60)].compactMap { FrameDuration($0, $1) }

    @Test(arguments: durations, MovieFileType.allCases)
    func aMovieStatesTheRateOfItsCamera(_ duration: FrameDuration, _ type: MovieFileType) async throws {
        for codec in Codec.allCases {
            let path = try await record(type, codec, every: duration, stated: duration)
            let fraction = "\(duration.denominator)/\(duration.numerator)"
            #expect(try await probe(path, "stream=r_frame_rate") == [fraction], "\(codec)")
            let told = try await output("mediainfo", ["--Output=Video;%FrameRate%", path])
            #expect(told == String(format: "%.3f\n", duration.framesPerSecond), "\(codec)")
            if type == .mkv {
                let nanoseconds = String(format: "%09d", duration.nanoseconds)
                let told = try await output("mkvinfo", [path])
                #expect(told.contains("Default duration: 00:00:00.\(nanoseconds)"), "\(codec): \(told)")
            }
            // Whoever converts it to another container gets each frame once.
            let other = "\(scratch.path)/other.mp4"
            _ = try await output("ffmpeg", ["-v", "error", "-y", "-i", path, other])
            #expect(try await probe(other, "packet=pts").count == probe(path, "packet=pts").count, "\(codec)")
            guard codec == .encoded else { continue }
            let packets = try await probe(path, "packet=pts_time,flags").map { $0.split(separator: ",") }
            let keys = packets.filter { $0[1].hasPrefix("K") }.compactMap { Double($0[0]) }
            #expect(keys.count == 3 && zip(keys, keys.dropFirst()).allSatisfy { abs($1 - $0 - 2) < 0.1 }, "\(keys)")
            let headers = try await output(
                "ffmpeg",
                [
                    "-v", "trace", "-i", path, "-c", "copy", "-bsf:v", "trace_headers", "-frames:v", "1", "-f", "null",
                    "-",
                ])
            let ticks = Self.number(headers, "num_units_in_tick")
            let rate = Double(Self.number(headers, "time_scale") ?? 0) / Double(2 * (ticks ?? 1))
            #expect(abs(rate - duration.framesPerSecond) < 0.001)
        }
    }

    /// What ffmpeg prints of a syntax element of H.264.
    private static func number(_ headers: String, _ name: String) -> Int? {
        let line = headers.split(separator: "\n").first { $0.contains(" \(name) ") }
        return line?.split(separator: " ").last.flatMap { Int($0) }
    }

    @Test("a rate that isn't known isn't stated", arguments: Codec.allCases)
    func unknown(_ codec: Codec) async throws {
        let path = try await record(.mkv, codec, every: FrameDuration(framesPerSecond: 12), stated: nil)
        #expect(try await !output("mkvinfo", [path]).contains("Default duration"))
        let times = try await Judge(path: path, scratch: scratch).times("v:0")
        #expect(times.count == 60)
        #expect(times.enumerated().allSatisfy { abs($1 - Double($0) / 12) < 0.00051 })
        #expect(try await Judge(path: path, scratch: scratch).complaints() == "")
    }

    // MARK: Dates

    private static let date: Int64 = 1_795_926_896_250_000_000

    @Test(arguments: MovieFileType.allCases)
    func aMovieSaysWhenItWasMade(_ type: MovieFileType) async throws {
        let duration = FrameDuration(framesPerSecond: 5)
        let path = try await record(type, .motionJPEG, every: duration, stated: duration)
        let (joined, small) = ("\(scratch.path)/joined.mp4", "\(scratch.path)/small.mp4")
        try MovieJoin.join([path, path], to: joined)
        try MovieJoin.join([path], to: small, preset: .size640x480)
        for path in [path, joined, small] {
            #expect(try await output("exiftool", ["-s3", "-CreateDate", path]) == "2026:11:29 04:34:56\n")
            let told = try await output(
                "ffprobe", ["-v", "error", "-show_entries", "format_tags=creation_time", "-of", "csv=p=0", path])
            #expect(told.hasPrefix("2026-11-29T04:34:56."))
        }
        guard type != .mkv else { return }
        #expect(try await output("exiftool", ["-s3", "-TrackCreateDate", path]) == "2026:11:29 04:34:56\n")
    }
}
