import CameraBusTesting
import CaptureCore
import FFmpeg
import Glibc
import LinuxIO
import Testing

@testable import MovieFile

/// A file system of a few megabytes.
private final class SmallDisk: Sendable {
    let scratch: TemporaryDirectory
    var path: String { "\(scratch.path)/disk" }

    init(megabytes: Int) async throws {
        scratch = try TemporaryDirectory()
        mkdir(path, 0o700)
        let mounted = try await run("mount", ["-t", "tmpfs", "-o", "size=\(megabytes)m", "tmpfs", path], scratch)
        guard mounted.status == 0 else { throw TestingError(mounted.description) }
    }

    /// Whether this process may mount one (`CAP_SYS_ADMIN`).
    static let isPossible: Bool = {
        let status = (try? File.read("/proc/self/status", limit: 1 << 16)) ?? []
        let line = String(decoding: status, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("CapEff:") }
        let mask = line.flatMap { UInt64($0.dropFirst(7).drop { $0 == "\t" }, radix: 16) } ?? 0
        return geteuid() == 0 && mask >> 21 & 1 == 1
    }()

    /// Runs the body, and takes the disk away.
    func use(_ body: (String) async throws -> Void) async throws {
        do {
            try await body(path)
        } catch {
            _ = try await run("umount", ["-l", path], scratch)
            throw error
        }
        _ = try await run("umount", ["-l", path], scratch)
    }
}

@Suite struct LimitTests {
    private let scratch: TemporaryDirectory
    init() throws { scratch = try TemporaryDirectory() }

    private static let size = Dimensions(width: Material.width, height: Material.height)

    /// Writes frames until the movie ends by itself.
    private func record(
        _ path: String, _ type: MovieFileType, _ limits: MovieLimits, most: Int = 20000
    ) async throws -> MovieWriter {
        let material = try await Material.motionJPEG(10, in: scratch)
        var configuration = MovieConfiguration(type, video: .motionJPEG(.jpeg(Self.size)))
        configuration.limits = limits
        configuration.movieFragmentInterval = 500_000_000
        let writer = try MovieWriter(path, configuration)
        for index in 0..<most {
            let isTaken = try material.frames[index % 10].withUnsafeBytes {
                try writer.append($0, at: Int64(index) * 40_000_000)
            }
            if !isTaken { break }
        }
        _ = try writer.finishWriting()
        return writer
    }

    private func plays(_ writer: MovieWriter) async throws {
        let judge = Judge(path: writer.path, scratch: scratch)
        #expect(try await judge.complaints() == "")
        #expect(try await judge.times("v:0").count > 10)
    }

    @Test(arguments: MovieFileType.allCases) func endsAtItsDuration(_ type: MovieFileType) async throws {
        let writer = try await record(
            "\(scratch.path)/movie", type, MovieLimits(maxRecordedDuration: 2_000_000_000))
        #expect(writer.end == .maximumDurationReached && writer.end?.isSuccess == true)
        #expect(writer.statistics.frames == 50 && writer.statistics.recordedDuration == 2_000_000_000)
        #expect(try MovieRepair.inspect(writer.path).condition == .whole)
        try await plays(writer)
    }

    @Test(arguments: MovieFileType.allCases) func isNoLargerThanItMay(_ type: MovieFileType) async throws {
        let writer = try await record("\(scratch.path)/movie", type, MovieLimits(maxRecordedFileSize: 1_000_000))
        #expect(writer.end == .maximumFileSizeReached)
        let found = try MovieRepair.inspect(writer.path)
        #expect(found.condition == .whole && found.fileSize <= 1_000_000 && found.fileSize > 800_000)
        try await plays(writer)
    }

    @Test(.enabled(if: SmallDisk.isPossible, "may not mount a disk"), arguments: MovieFileType.allCases)
    func keepsWhatWasWrittenWhenTheDiskIsFull(_ type: MovieFileType) async throws {
        try await SmallDisk(megabytes: 2).use { path in
            do {
                let writer = try await record("\(path)/movie", type, MovieLimits())
                #expect(writer.end == .diskFull && writer.end?.isSuccess == false)
                #expect(writer.statistics.fragments > 3)
                let found = try MovieRepair.inspect(writer.path)
                #expect(found.condition == (type == .mkv ? .playable : .whole))
                #expect(found.wholeSize == found.fileSize)
                try await plays(writer)
                unlink(writer.path)
            }
            // With room again, the next one works.
            let next = try await record("\(path)/next", type, MovieLimits(maxRecordedDuration: 1_000_000_000))
            #expect(next.end == .maximumDurationReached)
        }
    }

    @Test(arguments: [MovieFileType.mov, .mkv]) func isNoLargerThanItMayThoughItsSoundGrows(_ type: MovieFileType)
        throws
    {
        var configuration = MovieConfiguration(
            type, video: nil,
            audio: MovieAudio(
                AudioFormat(.int16, rate: 8000, channels: 1),
                AudioSettings(.pcm, rate: 192_000, channels: 8, bitRate: 64000)))
        configuration.limits.maxRecordedFileSize = 2_000_000
        let writer = try MovieWriter("\(scratch.path)/movie", configuration)
        // A tenth of a second.
        let block = [UInt8](repeating: 1, count: 1600)
        for index in 0..<100 {
            let isTaken = try block.withUnsafeBytes { try writer.append(sound: $0, at: Int64(index) * 100_000_000) }
            if !isTaken { break }
        }
        _ = try writer.finishWriting()
        #expect(writer.end == .maximumFileSizeReached)
        let found = try MovieRepair.inspect(writer.path)
        #expect(found.condition == .whole && found.fileSize <= 2_000_000 && found.fileSize > 1_000_000)
    }

    @Test func noFrameIsTakenToBeLargerThanItsPixels() throws {
        var settings = MovieFileType.mp4.recommendedVideoSettings(Self.size, frameRate: 1)
        (settings.preset, settings.bitRate) = ("ultrafast", 100_000_000)
        let layout = try #require(FrameLayout.packed(.i420, Self.size))
        var configuration = MovieConfiguration(.mp4, video: .encoded(layout, settings))
        configuration.constantFrameRate = 0.01
        configuration.limits.maxRecordedFileSize = 1_000_000
        let writer = try MovieWriter("\(scratch.path)/movie", configuration)
        let picture = MovieWriterTests.picture(layout, 1)
        #expect(try picture.withUnsafeBytes { try writer.append($0, at: 0) } && writer.end == nil)
        writer.cancelWriting()
    }

    @Test func moreThanAnyDiskHasIsNeverFree() {
        #expect(MovieWriter.room(0, leaving: .max, for: 100) == nil)
        #expect(MovieWriter.room(1 << 40, leaving: .max, for: 100) == nil)
        #expect(MovieWriter.room(1 << 40, leaving: 1 << 39, for: 100) == Int64(1 << 39) - 100)
        #expect(MovieWriter.room(1000, leaving: 900, for: 100) == 0)
    }

    @Test(.enabled(if: SmallDisk.isPossible, "may not mount a disk"))
    func leavesSoMuchOfTheDiskFree() async throws {
        try await SmallDisk(megabytes: 4).use { path in
            let writer = try await record("\(path)/movie", .mp4, MovieLimits(minFreeDiskSpaceLimit: 2 << 20))
            #expect(writer.end == .minimumFreeDiskSpaceReached)
            var status = statvfs()
            #expect(statvfs(path, &status) == 0)
            let free = Int(status.f_bavail) * Int(status.f_frsize)
            #expect(free >= 2 << 20 && free < 3 << 20)
            try await plays(writer)
        }
    }
}
