import CameraBusTesting
import CaptureCore
import FFmpeg
import Glibc
import LinuxIO
import MovieFile
import Testing

@Suite struct JoinTests {
    private let scratch: TemporaryDirectory
    init() throws { scratch = try TemporaryDirectory() }

    private static let size = Dimensions(width: Material.width, height: Material.height)
    private static let rate = 48000

    /// A second of grey that is a little brighter in each picture, and a click in the middle of its sound, which may
    /// end before the picture.
    private func segment(
        _ name: String, _ size: Dimensions = size, grey: Int = 60, count: Int = 30, sound pieces: Int = 30,
        audio: AudioCodec? = .aac, type: MovieFileType = .mp4
    ) throws -> String {
        let path = "\(scratch.path)/\(name).\(type)"
        let layout = try #require(FrameLayout.packed(.i420, size))
        var settings = type.recommendedVideoSettings(size, frameRate: 30)
        settings.preset = "ultrafast"
        let sound = audio.map {
            MovieAudio(
                AudioFormat(.int16, rate: Self.rate, channels: 1),
                AudioSettings($0, rate: Self.rate, channels: 1, bitRate: 64000))
        }
        let writer = try MovieWriter(
            path, MovieConfiguration(type, video: .encoded(layout, settings), audio: sound))
        for index in 0..<count {
            let picture = [UInt8](repeating: UInt8(grey + index), count: size.width * size.height)
            let whole = picture + [UInt8](repeating: 128, count: layout.totalBytes - picture.count)
            _ = try whole.withUnsafeBytes { try writer.append($0, at: Int64(index) * 33_333_333) }
            guard audio != nil, index < pieces else { continue }
            let block = (0..<1600).map { sample in
                index == count / 2 && sample < 24 ? Int16(20000) : 0
            }
            _ = try block.withUnsafeBytes { try writer.append(sound: $0, at: Int64(index) * 33_333_333) }
        }
        #expect(try writer.finishWriting() == nil)
        return path
    }

    /// When each click is heard, seconds.
    private func clicks(_ judge: Judge) async throws -> [Double] {
        let samples = try await judge.samples(rate: Self.rate)
        let start = try await judge.soundStart()
        var found: [Int] = []
        for (index, sample) in samples.enumerated() where sample.magnitude > 4000 {
            if index - (found.last ?? -48000) > 9600 { found.append(index) }
        }
        return found.map { start + Double($0) / Double(Self.rate) }
    }

    /// What ffprobe says of the movie's pictures: the codec, the size, and whether it is the cover.
    private func pictures(_ path: String) async throws -> [String] {
        let result = try await run(
            "ffprobe",
            [
                "-v", "error", "-select_streams", "v", "-show_entries",
                "stream=codec_name,width,height:stream_disposition=attached_pic", "-of", "csv=p=0", path,
            ], scratch)
        return result.standardOutput.split(separator: "\n").map(String.init)
    }

    /// - Parameter line: nil: the one in the middle.
    private func brightness(_ path: String, line: Int? = nil) throws -> [Int] {
        let reader = try MovieReader(path, delivers: .pictures)
        let (width, height) = (reader.track.width, reader.track.height)
        var picture = [UInt8](repeating: 0, count: width * height)
        var found: [Int] = []
        while try reader.next() != nil {
            try picture.withUnsafeMutableBytes { bytes in
                let base = try #require(bytes.baseAddress)
                try reader.copyPicture(
                    as: ImageDescription(.gray8, width: width, height: height, range: .full),
                    to: ImagePlanes(base, stride: width))
            }
            found.append(Int(picture[width * (line ?? height / 2) + width / 2]))
        }
        return found
    }

    @Test(arguments: [(.aac, .mp4), (nil, .mp4), (.opus, .mkv), (.aac, .mov)] as [(AudioCodec?, MovieFileType)])
    func whatIsAlikeIsPutTogetherAsItIsStored(_ audio: AudioCodec?, _ type: MovieFileType) async throws {
        let segments = try [60, 100, 140].map { try segment("\($0)", grey: $0, audio: audio, type: type) }
        let path = "\(scratch.path)/joined.mp4"
        var told: Int64 = 0
        let preset: ExportPreset? = audio == .opus ? nil : .size640x480
        let joined = try #require(
            try MovieJoin.join(segments, to: path, preset: preset) { done in
                told = done
                return true
            })
        #expect(!joined.isEncoded && told == joined.duration)
        #expect(joined.cover?.starts(with: [0xFF, 0xD8]) == true)
        let judge = Judge(path: path, scratch: scratch)
        let times = try await judge.times("v:0")
        try #require(times.count == 90)
        #expect(zip(times, times.dropFirst()).allSatisfy { $1 > $0 && $1 - $0 < 0.1 })
        #expect(try await pictures(path) == ["h264,320,240,0", "mjpeg,320,240,1"])
        #expect(abs(try await judge.duration() - Double(joined.duration) / 1e9) < 0.05)
        #expect(try MovieRepair.inspect(path).fileSize == joined.size)
        let complaints = try await judge.complaints()
        #expect(complaints == "")
        // The frames are those of the segments, one behind the other.
        let expected = try segments.flatMap { try brightness($0) }
        #expect(try brightness(path) == expected)
        guard audio != nil else { return }
        let clicks = try await clicks(judge)
        try #require(clicks.count == 3)
        for (number, click) in clicks.enumerated() {
            #expect(abs(click - times[number * 30 + 15]) < 0.015, "\(click), \(times[number * 30 + 15])")
        }
    }

    /// Each segment's sound is in whole pieces of its codec, which are longer than the segment.
    @Test(arguments: [false, true]) func lastsAsLongAsAllSegmentsTogether(_ isEncoded: Bool) async throws {
        let counts = [30, 17, 41, 23, 9, 30]
        let segments = try counts.enumerated().map { try segment("\($0)", grey: 60, count: $1, sound: $1) }
        let path = "\(scratch.path)/joined.mp4"
        let durations = counts.map { Int64($0) * 33_333_333 }
        let total = durations.reduce(0, +)
        let joined = try #require(
            try MovieJoin.join(segments, durations: durations, to: path, isEncoded: isEncoded))
        #expect(joined.isEncoded == isEncoded && abs(joined.duration - total) < 12_000_000, "\(joined.duration)")
        let judge = Judge(path: path, scratch: scratch)
        #expect(abs(try await judge.duration() - Double(total) / 1e9) < 0.012)
        let (times, clicks) = (try await judge.times("v:0"), try await clicks(judge))
        try #require(times.count == 150 && clicks.count == counts.count)
        for (number, click) in clicks.enumerated() {
            let first = counts[..<number].reduce(0, +)
            #expect(abs(times[first] - Double(durations[..<number].reduce(0, +)) / 1e9) < 0.012, "\(times[first])")
            #expect(abs(click - times[first + counts[number] / 2]) < 0.015, "\(number): \(click)")
        }
        let complaints = try await judge.complaints()
        #expect(complaints == "")
    }

    /// Also for those who count samples, and don't look at times.
    @Test(arguments: [false, true]) func soundThatEndsBeforeThePictureIsFollowedBySilence(
        _ isEncoded: Bool
    ) async throws {
        let segments = try [60, 100, 140].map { try segment("\($0)", grey: $0, sound: 27) }
        let path = "\(scratch.path)/joined.mp4"
        let joined = try #require(try MovieJoin.join(segments, to: path, isEncoded: isEncoded))
        #expect(joined.isEncoded == isEncoded)
        let judge = Judge(path: path, scratch: scratch)
        let times = try await judge.times("v:0")
        try #require(times.count == 90)
        let clicks = try await clicks(judge)
        try #require(clicks.count == 3)
        for (number, click) in clicks.enumerated() {
            #expect(abs(click - times[number * 30 + 15]) < 0.015, "\(click), \(times[number * 30 + 15])")
        }
        // Nor is the picture held longer than that takes.
        #expect(zip(times, times.dropFirst()).allSatisfy { $1 > $0 && $1 - $0 < 0.09 })
        let complaints = try await judge.complaints()
        #expect(complaints == "")
    }

    @Test func anotherShapeHasBlackBorders() throws {
        let segments = [
            try segment("first", grey: 180, count: 5, audio: nil),
            try segment("wide", Dimensions(width: 640, height: 360), grey: 180, count: 5, audio: nil),
        ]
        let path = "\(scratch.path)/joined.mp4"
        #expect(try MovieJoin.join(segments, to: path)?.isEncoded == true)
        let border = try brightness(path, line: 4)
        try #require(border.count == 10)
        #expect(border[..<5].allSatisfy { $0 > 150 } && border[5...].allSatisfy { $0 < 20 }, "\(border)")
        #expect(try brightness(path).allSatisfy { $0 > 150 })
    }

    /// Four quarters of colour, turned and with other pixels by what ffmpeg writes into the file.
    private func quarters(_ name: String, _ size: String, _ options: [String], turn: Int = 0) async throws -> String {
        let (plain, path) = ("\(scratch.path)/\(name)-plain.mp4", "\(scratch.path)/\(name).mp4")
        let picture =
            "color=red:s=\(size):r=10:d=0.5,format=gbrp,"
            + "drawbox=x=iw/2:w=iw/2:h=ih/2:c=lime:t=fill,drawbox=y=ih/2:w=iw/2:h=ih/2:c=blue:t=fill,"
            + "drawbox=x=iw/2:y=ih/2:w=iw/2:h=ih/2:c=white:t=fill,"
        _ = try await run(
            "ffmpeg",
            ["-v", "error", "-f", "lavfi", "-i", picture + options[0]] + options.dropFirst()
                + ["-c:v", "libx264", "-qp", "0", "-pix_fmt", "yuv420p", plain], scratch)
        _ = try await run(
            "ffmpeg", ["-v", "error", "-i", plain, "-c", "copy", "-metadata:s:v", "rotate=\(turn)", path], scratch)
        return path
    }

    /// The first picture as ffmpeg shows it, and the colours in the middle of its quarters.
    private func shown(_ path: String, cover: Bool = false) async throws -> (size: String, colors: [[Int]]) {
        let size = try await run(
            "ffprobe",
            [
                "-v", "error", "-select_streams", "V:0", "-show_entries",
                "stream=width,height,sample_aspect_ratio,color_space:stream_side_data=rotation", "-of", "csv=p=0",
                path,
            ], scratch)
        let raw = "\(scratch.path)/shown.rgb"
        _ = try await run(
            "ffmpeg",
            [
                "-v", "error", "-y", "-i", path, "-map", cover ? "0:v:1" : "0:V:0", "-frames:v", "1", "-vf",
                "scale=flags=accurate_rnd+full_chroma_int,format=rgb24,scale=8:8:flags=neighbor", "-f", "rawvideo", raw,
            ], scratch)
        let bytes = try File.read(raw, limit: 1000).map { Int($0) }
        return (
            size.standardOutput.split(separator: "\n").joined(separator: " "),
            [(2, 2), (6, 2), (2, 6), (6, 6)].map { Array(bytes[($0.1 * 8 + $0.0) * 3..<($0.1 * 8 + $0.0) * 3 + 3]) }
        )
    }

    @Test(
        "What is encoded anew is upright, with square pixels and the colours of its segments",
        arguments: [
            (0, "1/1", "bt709", "320,240"), (90, "1/1", "bt709", "240,320"), (180, "1/1", "bt2020", "320,240"),
            (270, "4/3", "smpte170m", "240,426"), (0, "4/3", "bt709", "426,240"),
        ])
    func whatIsEncodedAnewIsUpright(_ turn: Int, _ pixel: String, _ matrix: String, _ size: String) async throws {
        let scale = matrix == "smpte170m" ? "bt601" : matrix
        let space = matrix == "bt2020" ? "bt2020nc" : matrix
        let segment = try await quarters(
            "turned", "320x240",
            ["scale=out_color_matrix=\(scale):out_range=tv,setsar=\(pixel)", "-colorspace", space], turn: turn)
        let joined = try #require(try MovieJoin.join([segment], to: "\(scratch.path)/joined.mp4", isEncoded: true))
        #expect(joined.isEncoded)
        let dimensions = try #require(joined.dimensions)
        let (expected, found) = (try await shown(segment), try await shown("\(scratch.path)/joined.mp4"))
        #expect(found.size == "\(size),1:1,\(space)")
        let even = "\(dimensions.width & ~1),\(dimensions.height & ~1)"
        #expect(even == size, "the cover's size")
        for (one, other) in zip(expected.colors.joined(), found.colors.joined()) {
            #expect(abs(one - other) <= 8, "\(expected.colors) \(found.colors)")
        }
        let cover = try await shown("\(scratch.path)/joined.mp4", cover: true)
        for (one, other) in zip(expected.colors.joined(), cover.colors.joined()) {
            #expect(abs(one - other) <= 8, "the cover: \(cover.colors)")
        }
    }

    @Test func whatIsLargerThanItsPresetIsEncodedAnew() async throws {
        let large = try segment("large", Dimensions(width: 960, height: 540), count: 3, audio: nil)
        let jpeg = "\(scratch.path)/jpeg.mp4"
        let material = try await Material.motionJPEG(3, in: scratch)
        let writer = try MovieWriter(jpeg, MovieConfiguration(.mp4, video: .motionJPEG(.jpeg(Self.size))))
        for (index, frame) in material.frames.enumerated() {
            _ = try frame.withUnsafeBytes { try writer.append($0, at: Int64(index) * 33_333_333) }
        }
        #expect(try writer.finishWriting() == nil)
        for (name, segment, preset, isEncoded) in [
            ("a", large, .size640x480, true), ("b", large, .size960x540, false), ("c", jpeg, .size640x480, true),
        ] as [(String, String, ExportPreset, Bool)] {
            let path = "\(scratch.path)/joined-\(name).mp4"
            #expect(try MovieJoin.join([segment], to: path, preset: preset)?.isEncoded == isEncoded)
        }
        #expect(try await pictures("\(scratch.path)/joined-a.mp4") == ["h264,640,360,0", "mjpeg,640,360,1"])
        #expect(try await pictures("\(scratch.path)/joined-c.mp4").first == "h264,320,240,0")
    }

    @Test func aMovieIsFoundWhenItIsWhole() throws {
        let segment = try segment("segment", count: 5)
        let path = "\(scratch.path)/joined.mp4"
        for isEncoded in [false, true] {
            let whole = try #require(try MovieJoin.make([segment], at: path, isEncoded: isEncoded))
            #expect(try leftovers() == [])
            #expect(try whole.file.size() == whole.movie.size && whole.movie.isEncoded == isEncoded)
        }
        let whole = try #require(try MovieJoin.make([segment], at: path))
        try whole.file.publish()
        #expect(try MovieRepair.inspect(path).fileSize == whole.movie.size)
        #expect(try leftovers() == ["joined.mp4"])
        let second = try #require(throws: MovieError.self) { try MovieJoin.make([segment], at: path) }
        guard case .file(let error) = second else { throw second }
        #expect(error.code == EEXIST)
    }

    @Test func alsoTheCopyOfWhatWasEncodedTellsHowFarItIs() throws {
        let segment = try segment("segment")
        var told: [Int64] = []
        let joined = try #require(
            try MovieJoin.join([segment], to: "\(scratch.path)/joined.mp4", isEncoded: true) { done in
                told.append(done)
                return true
            })
        #expect(zip(told, told.dropFirst()).allSatisfy { $0 <= $1 })
        #expect(abs((told.last ?? 0) - joined.duration) < 50_000_000)
        // Each of thirty pictures, and the sound; encoding ends before.
        #expect(told.count { $0 >= joined.duration / 10 * 9 } >= 30, "\(told)")
    }

    @Test func whatIsNotAlikeIsEncodedAnew() async throws {
        let segments = [
            try segment("small"), try segment("large", Dimensions(width: 640, height: 360), grey: 100),
            try segment("silent", grey: 140, audio: nil), try segment("opus", audio: .opus, type: .mkv),
        ]
        let path = "\(scratch.path)/joined.mp4"
        let joined = try #require(try MovieJoin.join(segments, to: path))
        #expect(joined.isEncoded)
        // As the first one, and larger ones are made smaller.
        #expect(try await pictures(path) == ["h264,320,240,0", "mjpeg,320,240,1"])
        let judge = Judge(path: path, scratch: scratch)
        #expect(try await judge.codec("a:0") == "aac")
        let times = try await judge.times("v:0")
        try #require(times.count == 120)
        let complaints = try await judge.complaints()
        #expect(complaints == "")
        #expect(abs(try await judge.duration() - 4) < 0.3)
        let clicks = try await clicks(judge)
        try #require(clicks.count == 3)
        for (click, frame) in zip(clicks, [15, 45, 105]) { #expect(abs(click - times[frame]) < 0.02) }
        let seen = try brightness(path)
        for (segment, grey) in [60, 100, 140, 60].enumerated() {
            // Video's range, made full.
            let expected = (Double(grey + 15) - 16) * 255 / 219
            #expect(abs(Double(seen[segment * 30 + 15]) - expected) < 6)
        }
        #expect(try leftovers() == ["joined.mp4"])
    }

    @Test func theFirstOneNeedsNoPicture() async throws {
        let (aac, opus) = (try segment("aac"), try segment("opus", audio: .opus, type: .mkv))
        var sounds: [String] = []
        for (segment, name) in [(aac, "sound.mp4"), (opus, "sound.mkv")] {
            sounds.append("\(scratch.path)/\(name)")
            let made = try await run(
                "ffmpeg", ["-v", "error", "-i", segment, "-vn", "-c", "copy", sounds[sounds.count - 1]], scratch)
            try #require(made.status == 0, "\(made)")
        }
        let path = "\(scratch.path)/joined.mp4"
        let joined = try #require(try MovieJoin.join([sounds[0], aac, sounds[1]], to: path))
        #expect(joined.isEncoded && joined.cover != nil && abs(joined.duration - 3_000_000_000) < 150_000_000)
        let judge = Judge(path: path, scratch: scratch)
        let times = try await judge.times("v:0")
        // Sound comes in pieces, of which the last is not full.
        try #require(times.count == 30)
        #expect(abs(times[0] - 1) < 0.1, "\(times)")
        let complaints = try await judge.complaints()
        #expect(complaints == "")
        let clicks = try await clicks(judge)
        try #require(clicks.count == 3)
        #expect(abs(clicks[1] - times[15]) < 0.02, "\(clicks), \(times)")
        unlink(path)
        // What has no picture at all is not encoded.
        let error = #expect(throws: MovieError.self) { try MovieJoin.join(sounds, to: path) }
        #expect(error?.isOfContents == true)
        #expect(try leftovers() == [])
    }

    @Test(arguments: [
        (1920, 1080, "1280,720"), (1600, 1200, "960,720"), (1280, 720, "1280,720"), (642, 360, "642,360"),
        (1080, 1920, "720,1280"),
    ])
    func isExportedAtItsPreset(_ width: Int, _ height: Int, _ expected: String) async throws {
        let segment = try segment("segment", Dimensions(width: width, height: height), count: 3, audio: nil)
        let path = "\(scratch.path)/joined.mp4"
        let joined = try #require(try MovieJoin.join([segment], to: path, isEncoded: true))
        #expect(joined.isEncoded)
        #expect(try await pictures(path) == ["h264,\(expected),0", "mjpeg,\(expected),1"])
    }

    @Test func motionJPEGIsKept() async throws {
        let material = try await Material.motionJPEG(10, in: scratch)
        var segments: [String] = []
        for name in ["one", "two"] {
            segments.append("\(scratch.path)/\(name).mp4")
            let writer = try MovieWriter(
                segments[segments.count - 1], MovieConfiguration(.mp4, video: .motionJPEG(.jpeg(Self.size))))
            for (index, frame) in material.frames.enumerated() {
                _ = try frame.withUnsafeBytes { try writer.append($0, at: Int64(index) * 33_333_333) }
            }
            #expect(try writer.finishWriting() == nil)
        }
        let path = "\(scratch.path)/joined.mp4"
        #expect(try MovieJoin.join(segments, to: path)?.isEncoded == false)
        let reader = try MovieReader(path, delivers: .packets)
        for index in 0..<20 {
            #expect(try reader.next() != nil)
            #expect(reader.withPacket { Array($0) } == material.frames[index % 10])
        }
    }

    @Test func whatIsCutOffIsNotTakenForWhole() async throws {
        let segment = try segment("segment")
        let cut = "\(scratch.path)/cut.mp4"
        let made = try await run(
            "ffmpeg", ["-v", "error", "-i", segment, "-c", "copy", "-movflags", "+faststart", cut], scratch)
        #expect(made.status == 0, "\(made)")
        let path = "\(scratch.path)/joined.mp4"
        #expect(try MovieJoin.join([cut], to: path) != nil)
        unlink(path)
        let size = try File.read(cut, limit: 16 << 20).count
        #expect(truncate(cut, size - 10) == 0)
        #expect(throws: MovieError.self) { try MovieJoin.join([cut], to: path) }
        #expect(try leftovers() == [])
    }

    @Test func whatFailsLeavesNothing() throws {
        let segment = try segment("segment", count: 5)
        let path = "\(scratch.path)/joined.mp4"
        #expect(throws: MovieError.self) { try MovieJoin.join([], to: path) }
        #expect(throws: MovieError.self) { try MovieJoin.join([segment, "\(scratch.path)/none"], to: path) }
        try File.replace("\(scratch.path)/broken.mp4", with: [UInt8](repeating: 7, count: 5000), mode: 0o600)
        #expect(throws: MovieError.self) { try MovieJoin.join([segment, "\(scratch.path)/broken.mp4"], to: path) }
        #expect(try MovieJoin.join([segment], to: path) { _ in false } == nil)
        #expect(try MovieJoin.join([segment], to: path, isEncoded: true) { _ in false } == nil)
        #expect(try leftovers() == [])
        // Nothing is overwritten.
        try File.replace(path, with: [1], mode: 0o600)
        for isEncoded in [false, true] {
            #expect(throws: MovieError.self) { try MovieJoin.join([segment], to: path, isEncoded: isEncoded) }
        }
        #expect(try File.read(path, limit: 10) == [1])
        #expect(try leftovers() == ["joined.mp4"])
    }

    /// What begins as the movie that was to be.
    private func leftovers() throws -> [String] {
        guard let directory = opendir(scratch.path) else { throw TestingError("opendir") }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name.hasPrefix("joined") { names.append(name) }
        }
        return names
    }
}
