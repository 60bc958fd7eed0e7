import CameraBusTesting
import CaptureCore
import Glibc
import LinuxIO
import MovieFile
import Testing

/// What a power cut leaves of a movie.
@Suite struct CrashTests {
    private let scratch: TemporaryDirectory
    init() throws { scratch = try TemporaryDirectory() }

    /// Garbage where a time should be is no time, and no end of who reads it.
    @Test func aTimeThatNoMovieLastsIsNone() throws {
        let path = "\(scratch.path)/late.mkv"
        let bytes: [UInt8] =
            [0x1A, 0x45, 0xDF, 0xA3, 0x80, 0x18, 0x53, 0x80, 0x67, 0x01, 255, 255, 255, 255, 255, 255, 255]
            + [0x16, 0x54, 0xAE, 0x6B, 0x80, 0x1F, 0x43, 0xB6, 0x75, 0x8F]
            + [0xE7, 0x88, 0x7F, 255, 255, 255, 255, 255, 255, 255, 0xA3, 0x83, 0x81, 0x7F, 0xFF]
        try File.replace(path, with: bytes, mode: 0o600)
        let found = try MovieRepair.inspect(path)
        #expect(found.condition == .playable && found.duration == 0 && found.wholeSize == Int64(bytes.count))
    }

    private struct Synced: Equatable {
        var size: Int64
        var frames: Int
    }

    /// A movie that was never finished, and what of it was on the disk when.
    private func unfinished(_ type: MovieFileType, _ codec: VideoCodec) async throws -> (
        bytes: [UInt8], synced: [Synced]
    ) {
        let count = 60
        let size = Dimensions(width: Material.width, height: Material.height)
        var material: Material = try await codec == .h264 ? .h264(count, in: scratch) : .motionJPEG(count, in: scratch)
        let video: MovieVideo
        switch codec {
        case .h264: video = .h264(.h264(size), parameterSets: material.parameterSets)
        case .ffv1:
            let layout = try #require(FrameLayout.packed(.grey16, size))
            material.frames = (0..<count).map { MovieWriterTests.picture(layout, $0) }
            let settings = VideoSettings(
                codec: .ffv1, width: size.width, height: size.height, bitRate: 0, keyFrameInterval: 1)
            video = .encoded(layout, settings)
        default: video = .motionJPEG(.jpeg(size))
        }
        var configuration = MovieConfiguration(type, video: video)
        configuration.movieFragmentInterval = 200_000_000
        let path = "\(scratch.path)/unfinished"
        let writer = try MovieWriter(path, configuration)
        var synced: [Synced] = []
        for (index, time) in Material.times(count).enumerated() {
            let fragments = writer.statistics.fragments
            _ = try material.frames[index].withUnsafeBytes {
                try writer.append($0, at: time, isKeyFrame: material.isKeyFrame[index])
            }
            if writer.statistics.fragments > fragments {
                synced.append(Synced(size: writer.statistics.syncedSize, frames: index))
            }
        }
        try writer.endFragment()
        synced.append(Synced(size: writer.statistics.syncedSize, frames: count))
        let bytes = try File.read(path, limit: 64 << 20)
        writer.cancelWriting()
        #expect(synced.count >= 9 && Int64(bytes.count) == writer.statistics.syncedSize)
        return (bytes, synced)
    }

    @Test(
        arguments: [
            (.mp4, .mjpeg, 20), (.mp4, .h264, 10), (.mov, .mjpeg, 5), (.mkv, .mjpeg, 10), (.mkv, .h264, 5),
            (.mkv, .ffv1, 10), (.mov, .ffv1, 5),
        ] as [(MovieFileType, VideoCodec, Int)])
    func playsToTheLastFragment(_ type: MovieFileType, _ codec: VideoCodec, _ cuts: Int) async throws {
        let (bytes, synced) = try await unfinished(type, codec)
        var generator = SystemRandomNumberGenerator()
        for cut in 0..<cuts {
            let path = "\(scratch.path)/cut\(cut).\(type)"
            let length = Int.random(in: 0...bytes.count, using: &generator)
            // A file may have been made longer than what was written of it, though not so long that the fragment looks
            // whole.
            let next = synced.first { $0.size > length }
            let room = next.map { Int($0.size) - length - 1 } ?? 5000
            let tail = [UInt8](repeating: 0, count: cut % 2 * min(room, 5000))
            try File.replace(path, with: bytes[..<length] + tail, mode: 0o600)
            let kept = synced.last { $0.size <= length }
            let found = try MovieRepair.inspect(path)
            #expect(found.fileSize == Int64(length + tail.count))
            // In Matroska a cluster may end earlier than the fragment.
            if kept == nil, type == .mkv { continue }
            guard let kept else {
                #expect(found.condition == .unplayable, "cut at \(length)")
                #expect(try MovieRepair.repair(path) == found)
                continue
            }
            #expect(found.condition == .playable && found.wholeSize >= kept.size, "cut at \(length)")
            let repaired = try MovieRepair.repair(path)
            #expect(repaired.condition == (type == .mkv ? .playable : .whole))
            #expect(repaired.wholeSize == repaired.fileSize)
            let judge = Judge(path: path, scratch: scratch)
            let times = try await judge.times("v:0")
            #expect(times.count >= kept.frames, "cut at \(length): \(times.count) of \(kept.frames) frames")
            // Where a file ends in zeros a frame that was not on the disk yet may seem to be whole: FFV1's checksums
            // tell.
            let complaints = try await judge.complaints(frames: codec == .ffv1 ? kept.frames : nil)
            #expect(complaints == "", "cut at \(length)")
            let end = try #require(times.last)
            #expect(abs(Double(repaired.duration) / 1e9 - end) < 0.06)
            unlink(path)
        }
    }

    @Test func aMovieThatIsWholeIsLeftAlone() async throws {
        for type in MovieFileType.allCases {
            let path = "\(scratch.path)/whole.\(type)"
            let writer = try MovieWriter(
                path, MovieConfiguration(type, video: .motionJPEG(.jpeg(Dimensions(width: 320, height: 240)))))
            for (index, frame) in try await Material.motionJPEG(5, in: scratch).frames.enumerated() {
                _ = try frame.withUnsafeBytes { try writer.append($0, at: Int64(index) * 40_000_000) }
            }
            try writer.finishWriting()
            let bytes = try File.read(path, limit: 1 << 24)
            #expect(try MovieRepair.repair(path).condition == .whole)
            #expect(try File.read(path, limit: 1 << 24) == bytes)
        }
    }

    @Test func whatIsNoMovieIsUnplayable() throws {
        let path = "\(scratch.path)/none"
        for bytes in [
            [], [0, 0, 0, 8], Array("\0\0\0\u{10}ftypisom\0\0\0\0".utf8), [UInt8](repeating: 0x1A, count: 999),
        ]
            as [[UInt8]]
        {
            try File.replace(path, with: bytes, mode: 0o600)
            #expect(try MovieRepair.repair(path).condition == .unplayable)
            #expect(try File.read(path, limit: 1000) == bytes)
        }
        #expect(throws: MovieError.self) { try MovieRepair.inspect(scratch.path) }
    }
}
