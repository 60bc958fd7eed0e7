import CameraBusTesting
import CaptureCore
import FFmpeg
import Glibc
import LinuxIO
import Testing

@testable import MovieFile

@Suite struct MovieWriterTests {
    private let scratch: TemporaryDirectory
    init() throws { scratch = try TemporaryDirectory() }

    private static let size = Dimensions(width: Material.width, height: Material.height)

    private func path(_ type: MovieFileType) -> String { "\(scratch.path)/movie.\(type)" }

    /// Grey that becomes brighter from frame to frame.
    static func picture(_ layout: FrameLayout, _ number: Int) -> [UInt8] {
        [UInt8](repeating: UInt8(40 + number % 160), count: layout.totalBytes)
    }

    enum Kind: String, CaseIterable { case motionJPEG, h264, i420, nv12, yuyv, rawYUYV }

    private func video(_ kind: Kind, _ material: Material, _ type: MovieFileType) throws -> MovieVideo {
        func layout(_ format: PixelFormat) throws -> FrameLayout { try #require(FrameLayout.packed(format, Self.size)) }
        var settings = type.recommendedVideoSettings(Self.size, frameRate: 30)
        settings.preset = "ultrafast"
        return switch kind {
        case .motionJPEG: .motionJPEG(.jpeg(Self.size))
        case .h264: .h264(.h264(Self.size), parameterSets: material.parameterSets)
        case .i420: .encoded(try layout(.i420), settings)
        case .nv12: .encoded(try layout(.nv12), settings)
        case .yuyv: .encoded(try layout(.yuyv), settings)
        case .rawYUYV: .raw(try layout(.yuyv))
        }
    }

    private func material(_ kind: Kind, _ count: Int) async throws -> Material {
        if kind == .h264 { return try await .h264(count, in: scratch) }
        var material = try await Material.motionJPEG(count, in: scratch)
        if kind != .motionJPEG {
            let format: PixelFormat = kind == .i420 ? .i420 : kind == .nv12 ? .nv12 : .yuyv
            let layout = try #require(FrameLayout.packed(format, Self.size))
            material.frames = (0..<count).map { Self.picture(layout, $0) }
        }
        return material
    }

    @Test(arguments: MovieFileType.allCases, Kind.allCases)
    func keepsEachFrameAndItsTime(_ type: MovieFileType, _ kind: Kind) async throws {
        let count = 45
        let material = try await material(kind, count)
        let path = path(type)
        var configuration = MovieConfiguration(type, video: try video(kind, material, type))
        configuration.movieFragmentInterval = 200_000_000
        if kind == .rawYUYV, type == .mp4 {
            #expect(throws: MovieError.self) { try MovieWriter(path, configuration) }
            #expect(access(path, F_OK) != 0, "what can't be leaves no file")
            return
        }
        let writer = try MovieWriter(path, configuration)
        let times = Material.times(count)
        for index in 0..<count {
            let isTaken = try material.frames[index].withUnsafeBytes {
                try writer.append($0, at: times[index], isKeyFrame: material.isKeyFrame[index])
            }
            #expect(isTaken)
        }
        #expect(try writer.finishWriting() == nil)
        #expect(writer.statistics.frames == UInt64(count) && writer.statistics.fragments >= 3)

        let judge = Judge(path: path, scratch: scratch)
        #expect(
            try await judge.codec("v:0") == (kind == .motionJPEG ? "mjpeg" : kind == .rawYUYV ? "rawvideo" : "h264"))
        let found = try await judge.times("v:0")
        try #require(found.count == count)
        // Matroska knows milliseconds.
        let tolerance = type == .mkv ? 0.00051 : 0.000002
        for index in 0..<count {
            let expected = Double(times[index] - times[0]) / 1e9
            #expect(abs(found[index] - expected) < tolerance, "frame \(index) at \(found[index]), not \(expected)")
        }
        let complaints = try await judge.complaints()
        #expect(complaints == "")
        let duration = Double(writer.statistics.recordedDuration) / 1e9
        #expect(abs(try await judge.duration() - duration) < 0.002)
        let inspection = try MovieRepair.inspect(path)
        #expect(inspection.condition == .whole && inspection.wholeSize == inspection.fileSize)
        #expect(writer.statistics.recordedFileSize == inspection.fileSize)
    }

    @Test func whatPairsItWithAPictureIsInTheFinishedFile() async throws {
        let material = try await material(.motionJPEG, 10)
        let path = path(.mov)
        var configuration = MovieConfiguration(.mov, video: try video(.motionJPEG, material, .mov))
        configuration.movieFragmentInterval = 100_000_000
        let identifier = "01234567-89AB-CDEF-0123-456789ABCDEF"
        configuration.tags = [MovieConfiguration.contentIdentifier: identifier]
        let writer = try MovieWriter(path, configuration)
        let times = Material.times(10)
        for index in 0..<10 {
            _ = try material.frames[index].withUnsafeBytes { try writer.append($0, at: times[index]) }
        }
        func tags() async throws -> String {
            let arguments = ["-v", "error", "-show_entries", "format_tags", "-of", "default=nw=1", path]
            return try await run("ffprobe", arguments, scratch).standardOutput
        }
        let line = "TAG:\(MovieConfiguration.contentIdentifier)=\(identifier)"
        // Also of a movie whose recorder dies before it is finished.
        #expect(try await tags().contains(line))
        #expect(try writer.finishWriting() == nil)
        #expect(try await tags().contains(line))
        #expect(try await Judge(path: path, scratch: scratch).times("v:0").count == 10)
    }

    @Test(
        arguments: [
            (.mp4, .aac), (.mp4, .opus), (.mov, .aac), (.mov, .pcm), (.mkv, .aac), (.mkv, .opus), (.mkv, .pcm),
        ] as [(MovieFileType, AudioCodec)])
    func soundAndPictureAreInStep(_ type: MovieFileType, _ codec: AudioCodec) async throws {
        let count = 60
        let material = try await Material.motionJPEG(count, in: scratch)
        let path = path(type)
        let format = AudioFormat(.int16, rate: 48000, channels: 1)
        let settings = AudioSettings(codec, rate: 48000, channels: 1, bitRate: 64000)
        var configuration = MovieConfiguration(
            type, video: .motionJPEG(.jpeg(Self.size)), audio: MovieAudio(format, settings))
        configuration.movieFragmentInterval = 500_000_000
        let writer = try MovieWriter(path, configuration)
        let start: Int64 = 9_000_000_000
        writer.startSession(atSourceTime: start)
        // The sound begins 100 ms before the picture, and a click comes with frame 30.
        var sound: Int64 = -4800
        for index in 0..<count {
            let time = Int64(index) * 33_333_333
            _ = try material.frames[index].withUnsafeBytes { try writer.append($0, at: start + time) }
            while sound * 1_000_000_000 / 48000 < time + 33_333_333 {
                let block = (0..<Int64(480)).map { (sound + $0) / 24 == 48000 / 24 ? Int16(20000) : 0 }
                _ = try block.withUnsafeBytes {
                    try writer.append(sound: $0, at: start + sound * 1_000_000_000 / 48000)
                }
                sound += 480
            }
        }
        #expect(try writer.finishWriting() == nil)
        let judge = Judge(path: path, scratch: scratch)
        let complaints = try await judge.complaints()
        #expect(complaints == "")
        let samples = try await judge.samples(rate: 48000)
        let loudest = try #require(samples.indices.max { samples[$0].magnitude < samples[$1].magnitude })
        try #require(samples[loudest].magnitude > 3000, "the click is heard")
        let click = try await judge.soundStart() + Double(loudest) / 48000
        let pictures = try await judge.times("v:0")
        try #require(pictures.count == count)
        #expect(abs(click - pictures[30]) < 0.004, "click at \(click), frame at \(pictures[30])")
        #expect(abs(Double(samples.count) / 48000 - 2) < 0.06)
    }

    /// A camera was unplugged, and the movie ends soon after its return.
    @Test(arguments: MovieFileType.allCases)
    func aGapIsCountedOnce(_ type: MovieFileType) async throws {
        let material = try await Material.motionJPEG(12, in: scratch)
        let path = path(type)
        let writer = try MovieWriter(path, MovieConfiguration(type, video: .motionJPEG(.jpeg(Self.size))))
        for (index, frame) in material.frames.enumerated() {
            let time = Int64(index) * 33_333_333 + (index < 11 ? 0 : 1_900_000_000)
            #expect(try frame.withUnsafeBytes { try writer.append($0, at: time) })
        }
        let expected: Int64 = 12 * 33_333_333 + 1_900_000_000
        #expect(abs(writer.statistics.recordedDuration - expected) < 1_000_000)
        #expect(try writer.finishWriting() == nil)
        #expect(abs(writer.statistics.recordedDuration - expected) < 1_000_000)
        let duration = try await Judge(path: path, scratch: scratch).duration()
        #expect(abs(duration - Double(expected) / 1e9) < 0.002, "\(duration)")
    }

    @Test(arguments: [.mp4, .mov] as [MovieFileType])
    func theLastFrameIsShownUntilTheEnd(_ type: MovieFileType) async throws {
        let material = try await Material.motionJPEG(4, in: scratch)
        let path = path(type)
        let writer = try MovieWriter(path, MovieConfiguration(type, video: .motionJPEG(.jpeg(Self.size))))
        let start: Int64 = 9_000_000_000
        writer.startSession(atSourceTime: start)
        for index in 0..<4 {
            writer.endSession(atSourceTime: start + 1_000_000_000)
            _ = try material.frames[index].withUnsafeBytes {
                try writer.append($0, at: start + Int64(index) * 300_000_000)
            }
        }
        #expect(try writer.finishWriting() == nil)
        #expect(writer.statistics.recordedDuration == 1_000_000_000)
        #expect(abs(try await Judge(path: path, scratch: scratch).duration() - 1) < 0.002)
    }

    @Test func overwritesNothing() throws {
        let path = path(.mp4)
        try File.replace(path, with: [1, 2, 3], mode: 0o600)
        let configuration = MovieConfiguration(.mp4, video: .motionJPEG(.jpeg(Self.size)))
        do throws(MovieError) {
            _ = try MovieWriter(path, configuration)
            Issue.record("a file was overwritten")
        } catch {
            guard case .file(let error) = error, error.code == EEXIST else { throw error }
        }
        #expect(try File.read(path, limit: 100) == [1, 2, 3])
    }

    /// Whatever the umask is, and also while it is made.
    @Test(arguments: [true, false]) func isCalledSoWhenWhoMadeItKnowsIt(_ isNamed: Bool) throws {
        let folder = try TemporaryDirectory()
        let path = "\(folder.path)/movie.mp4"
        let configuration = MovieConfiguration(.mp4, video: .motionJPEG(.jpeg(Self.size)))
        var identity: FileIdentity?
        let writer = try MovieWriter(path, configuration, mode: 0o666, isNamed: isNamed) {
            identity = $0
            #expect(Directory.names(folder.path) == [])
        }
        #expect(Directory.names(folder.path) == (isNamed ? ["movie.mp4"] : []))
        let file = try FileDescriptor(opening: writer.openPath, O_RDONLY)
        var status = stat()
        #expect(fstat(file.rawValue, &status) == 0 && status.st_mode == S_IFREG | 0o666)
        #expect(try FileIdentity(file.rawValue) == identity)
        writer.cancelWriting()
        #expect(Directory.names(folder.path) == [])
    }

    @Test(arguments: MovieFileType.allCases) func whatTheEncoderHoldsBackIsInTheMovie(_ type: MovieFileType)
        async throws
    {
        let audio = MovieAudio(
            AudioFormat(.int16, rate: 48000, channels: 1), AudioSettings(.aac, rate: 48000, channels: 1, bitRate: 64000)
        )
        var counts: [Int] = []
        for name in ["whole", "ended"] {
            let path = "\(scratch.path)/\(name).\(type)"
            let writer = try MovieWriter(path, MovieConfiguration(type, video: nil, audio: audio))
            // A tenth of a second.
            let block = [UInt8](repeating: 1, count: 9600)
            for index in 0..<10 {
                _ = try block.withUnsafeBytes { try writer.append(sound: $0, at: Int64(index) * 100_000_000) }
            }
            if name == "ended" { try writer.endFragment() }
            try writer.finishWriting()
            counts.append(try await Judge(path: path, scratch: scratch).samples(rate: 48000).count)
        }
        #expect(counts[0] == counts[1] && counts[0] >= 48000)
    }

    @Test func linesThatHaveNoRoomInTheirFrameAreRefused() throws {
        let settings = MovieFileType.mkv.recommendedVideoSettings(Self.size, frameRate: 30)
        var layout = try #require(FrameLayout.packed(.yuyv, Self.size))
        let (stride, bytes) = (layout.planes[0].stride, layout.planes[0].bytes)
        func opens(_ planes: [PlaneLayout]) -> [Bool] {
            layout.planes = planes
            return [.raw(layout), .encoded(layout, settings)].map { (video: MovieVideo) in
                let writer = try? MovieWriter(path(.mkv), MovieConfiguration(.mkv, video: video))
                writer?.cancelWriting()
                return writer != nil
            }
        }
        for plane in [
            PlaneLayout(offset: 0, stride: stride, bytes: bytes - 1),
            PlaneLayout(offset: 0, stride: stride + 1, bytes: bytes),
            PlaneLayout(offset: 0, stride: stride - 1, bytes: bytes),
            PlaneLayout(offset: 0, stride: .max, bytes: bytes), PlaneLayout(offset: -1, stride: stride, bytes: bytes),
            PlaneLayout(offset: .max, stride: stride, bytes: bytes), PlaneLayout(offset: 0, stride: 0, bytes: bytes),
        ] {
            #expect(opens([plane]) == [false, false], "\(plane)")
        }
        #expect(opens([]) == [false, false])
        // Behind the last line there need be nothing.
        let padded = PlaneLayout(offset: 8, stride: stride + 60, bytes: (stride + 60) * (Self.size.height - 1) + stride)
        #expect(opens([padded]) == [true, true])
    }

    @Test func whatFollowsThePixelsIsNotKept() throws {
        let layout = try #require(FrameLayout.packed(.yuyv, Self.size))
        let path = path(.mkv)
        let writer = try MovieWriter(path, MovieConfiguration(.mkv, video: .raw(layout)))
        let picture = Self.picture(layout, 1) + [UInt8](repeating: 7, count: 5000)
        #expect(try picture.withUnsafeBytes { try writer.append($0, at: 0) })
        try writer.finishWriting()
        let reader = try MovieReader(path, delivers: .packets)
        #expect(try reader.next() != nil)
        #expect(reader.withPacket { $0.count } == layout.totalBytes)
    }

    @Test func dropsWhatIsOutOfOrder() async throws {
        let material = try await Material.h264(3, in: scratch)
        let configuration = MovieConfiguration(
            .mp4, video: .h264(.h264(Self.size), parameterSets: material.parameterSets))
        let writer = try MovieWriter(path(.mp4), configuration)
        func append(_ frame: Int, _ time: Int64) throws -> Bool {
            try material.frames[frame].withUnsafeBytes {
                try writer.append($0, at: time, isKeyFrame: material.isKeyFrame[frame])
            }
        }
        #expect(try !append(1, 500), "a movie begins with a key frame")
        #expect(try append(0, 1000))
        #expect(try !append(1, 1000))
        #expect(try !append(1, 900))
        #expect(try append(1, 34_000_000))
        writer.noteDropped(4)
        #expect(writer.statistics.dropped == 7 && writer.statistics.frames == 2)
        writer.cancelWriting()
        #expect(access(path(.mp4), F_OK) != 0)
    }

    @Test func holdsNoMoreThanAFragmentInMemory() throws {
        var configuration = MovieConfiguration(.mp4, video: .motionJPEG(.jpeg(Self.size)))
        configuration.fragmentSize = 1 << 20
        let writer = try MovieWriter(path(.mp4), configuration)
        let frame = [UInt8](repeating: 7, count: 100_000)
        for index in 0..<Int64(400) {
            _ = try frame.withUnsafeBytes { try writer.append($0, at: index * 1_000_000) }
            #expect(writer.statistics.recordedFileSize - writer.statistics.syncedSize <= 1 << 20)
        }
        #expect(writer.statistics.fragments >= 39)
        writer.cancelWriting()
    }
}
