import BusProtocol
import CameraBusTesting
import CaptureCore
import CaptureSources
import Glibc
import Imaging
import LinuxIO
import Testing

/// Movies and pictures as cameras, of files that ffmpeg makes here, judged by what ffmpeg says of the same files.
@Suite(.serialized, .timeLimit(.minutes(5))) struct ReplayTests: ReplayTesting {
    let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    // MARK: What comes out

    @Test(
        "pictures are those that ffmpeg decodes",
        arguments: [
            ("a.y4m", ["-pix_fmt", "yuv420p"], "YU12", "yuv420p"),
            ("a.avi", ["-c:v", "rawvideo", "-pix_fmt", "bgr24"], "BGR3", "bgr24"),
            ("b.avi", ["-c:v", "rawvideo", "-pix_fmt", "yuyv422"], "YUYV", "yuyv422"),
            ("g.mkv", ["-c:v", "ffv1", "-pix_fmt", "gray"], "GREY", "gray"),
            ("m.mp4", ["-c:v", "mpeg4", "-pix_fmt", "yuv420p"], "YU12", "yuv420p"),
            ("f.mkv", ["-c:v", "ffv1", "-pix_fmt", "yuv444p"], "NV12", "nv12"),
        ])
    func decoded(_ name: String, _ options: [String], _ pixelFormat: String, _ ffmpegName: String) async throws {
        let path = try await movie(name, options)
        let camera = camera(path)
        let description = try camera.open()
        #expect(description.formats.map(\.pixelFormat.name) == [pixelFormat])
        #expect(description.formats[0].dimensions == Dimensions(width: 96, height: 64))
        #expect(try camera.frameDuration() == FrameDuration(framesPerSecond: 50))
        let (frames, end) = try play(camera)
        #expect(end?.kind == .disconnected)
        #expect(frames.map(\.sequence) == Array(0..<6))
        #expect(!frames.contains { $0.isCorrupt })
        let expected = try await ffmpeg([
            "-i", path, "-f", "rawvideo", "-pix_fmt", ffmpegName, "-sws_flags", "area", "-",
        ])
        let bytes = frames.flatMap(\.bytes)
        #expect(bytes.count == expected.count)
        // What is converted may be rounded otherwise.
        let isConverted = ffmpegName == "nv12"
        let worst = zip(bytes, expected).map { abs(Int($0) - Int($1)) }.max() ?? 0
        #expect(worst <= (isConverted ? 4 : 0))
    }

    @Test("Motion JPEG and H.264 are passed on as they are stored")
    func passThrough() async throws {
        let jpeg = try await movie("a.avi", ["-c:v", "mjpeg", "-q:v", "3"])
        let one = camera(jpeg)
        #expect(try one.open().formats.map(\.pixelFormat.name) == ["MJPG", "NV12"])
        let pictures = try play(one).frames
        #expect(pictures.count == 6)
        #expect(pictures.flatMap(\.bytes) == (try await ffmpeg(["-i", jpeg, "-c", "copy", "-f", "mjpeg", "-"])))

        let coded = try await movie("a.mp4", ["-c:v", "libx264", "-bf", "0", "-g", "3", "-pix_fmt", "yuv420p"])
        let other = camera(coded)
        #expect(try other.open().formats.map(\.pixelFormat.name) == ["H264", "YU12"])
        let size = Dimensions(width: 96, height: 64)
        #expect(try other.activeFormat() == FormatSelection(pixelFormat: .i420, dimensions: size))
        _ = try other.setFormat(FormatSelection(pixelFormat: .h264, dimensions: size))
        let frames = try play(other).frames
        #expect(frames.count == 6)
        let stored = try await ffmpeg(["-i", coded, "-c", "copy", "-bsf:v", "h264_mp4toannexb", "-f", "h264", "-"])
        #expect(frames.flatMap(\.bytes) == stored)
    }

    @Test("what is passed on can be had decoded")
    func decodedInstead() async throws {
        let path = try await movie("a.mp4", ["-c:v", "libx264", "-bf", "2", "-pix_fmt", "yuv420p"])
        let camera = camera(path)
        _ = try camera.open()
        let wish = FormatSelection(pixelFormat: .i420, dimensions: Dimensions(width: 1, height: 1))
        let given = try camera.setFormat(wish)
        #expect(given == FormatSelection(pixelFormat: .i420, dimensions: Dimensions(width: 96, height: 64)))
        let expected = try await ffmpeg(["-i", path, "-f", "rawvideo", "-pix_fmt", "yuv420p", "-"])
        #expect(try play(camera).frames.flatMap(\.bytes) == expected)
    }

    @Test("pictures of a folder come in the order of their numbers")
    func folder() async throws {
        let names = ["p-%d.png", "p-%d.jpg"]
        for (name, format) in zip(names, ["BGR3", "MJPG"]) {
            let path = "\(folder.path)/\(format)"
            mkdir(path, 0o700)
            _ = try await ffmpeg([
                "-f", "lavfi", "-i", "testsrc=size=64x48:rate=10", "-frames:v", "11", "\(path)/\(name)",
            ])
            try File.replace("\(path)/notes.txt", with: Array("no picture".utf8), mode: 0o600)
            let camera = camera(path, fps: 100)
            let formats = try camera.open().formats
            #expect(formats.first?.pixelFormat.name == (format == "BGR3" ? "RGB3" : format))
            let frames = try play(camera).frames
            #expect(frames.count == 11)
            #expect(!frames.contains { $0.isCorrupt })
            if format == "MJPG" {
                for (index, frame) in frames.enumerated() {
                    #expect(frame.bytes == (try File.read("\(path)/p-\(index + 1).jpg", limit: 1 << 20)))
                }
            } else {
                let expected = try await ffmpeg(["-i", "\(path)/\(name)", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"])
                #expect(frames.flatMap(\.bytes) == expected)
            }
        }
    }

    // MARK: When it comes

    @Test("frames have the times of the file")
    func times() async throws {
        let even = try await movie("e.mkv", ["-c:v", "ffv1"], frames: 5, rate: "40")
        let camera = camera(even)
        _ = try camera.open()
        let start = MonotonicClock.now()
        let frames = try play(camera).frames
        let first = try #require(frames.first?.time)
        #expect(first >= start)
        #expect(frames.map { ($0.time - first) / 1_000_000 } == [0, 25, 50, 75, 100])
        #expect(MonotonicClock.now() - start >= 125_000_000)
        // A frame that stays for four times as long.
        let uneven = "\(folder.path)/u.mkv"
        let filter = "setpts=if(gte(N\\,2)\\,(N+3)*25\\,N*25)/1000/TB"
        _ = try await ffmpeg(["-i", even, "-vf", filter, "-vsync", "passthrough", "-c:v", "ffv1", uneven])
        let other = self.camera(uneven)
        _ = try other.open()
        let played = try play(other).frames
        let begin = try #require(played.first?.time)
        #expect(played.map { ($0.time - begin + 500_000) / 1_000_000 } == [0, 25, 125, 150, 175])
    }

    @Test("pauses of a film are kept, or shortened", arguments: [nil, 200_000_000])
    func pauses(_ most: Int64?) async throws {
        let even = try await movie("e.mkv", ["-c:v", "ffv1"], frames: 5, rate: "40")
        let paused = "\(folder.path)/p.mkv"
        let filter = "setpts=if(gte(N\\,3)\\,N*25+2475\\,N*25)/1000/TB"
        _ = try await ffmpeg(["-i", even, "-vf", filter, "-vsync", "passthrough", "-c:v", "ffv1", paused])
        let camera = camera(paused, maxGap: most)
        _ = try camera.open()
        let frames = try play(camera).frames
        let begin = try #require(frames.first?.time)
        let pause = most.map { $0 / 1_000_000 } ?? 2500
        #expect(frames.map { ($0.time - begin + 500_000) / 1_000_000 } == [0, 25, 50, 50 + pause, 75 + pause])
    }

    @Test("pictures that are not in the order of their times have both", arguments: ["mp4", "mkv", "ts"])
    func reordered(_ ending: String) async throws {
        let path = try await movie("r.\(ending)", ["-c:v", "libx264", "-pix_fmt", "yuv420p"], frames: 20)
        let camera = camera(path)
        let size = try camera.open().formats[0].dimensions
        _ = try camera.setFormat(FormatSelection(pixelFormat: .h264, dimensions: size))
        let frames = try play(camera).frames
        #expect(frames.count == 20)
        #expect(zip(frames, frames.dropFirst()).allSatisfy { $0.time < $1.time && $0.presentation != $1.presentation })
        #expect(frames.allSatisfy { $0.presentation >= $0.time })
        let probe = try await run(
            "ffprobe",
            ["-v", "error", "-select_streams", "v", "-show_entries", "packet=pts_time", "-of", "csv=p=0", path])
        let times = String(decoding: probe, as: UTF8.self).split(separator: "\n").compactMap {
            $0.split(separator: ",").first.flatMap { Double($0) }
        }
        let (first, begin) = (try #require(times.first), try #require(frames.first?.presentation))
        #expect(times != times.sorted())
        let milliseconds = frames.map { (Double($0.presentation - begin) / 1e6).rounded() }
        #expect(milliseconds == times.map { (($0 - first) * 1e3).rounded() })
    }

    @Test("it begins again without a gap where it is to")
    func loops() async throws {
        let path = try await movie("a.y4m", ["-pix_fmt", "yuv420p"], frames: 3)
        let camera = camera(path, loops: true)
        _ = try camera.open()
        let (frames, end) = try play(camera, most: 8)
        #expect(end == nil)
        #expect(frames.map(\.sequence) == Array(0..<8))
        #expect(frames[0].bytes == frames[3].bytes && frames[1].bytes == frames[7].bytes)
        #expect(frames[0].bytes != frames[1].bytes)
        #expect(zip(frames, frames.dropFirst()).allSatisfy { $1.time - $0.time == 20_000_000 })
        try camera.stopStreaming()
    }

    @Test("one that has ended is gone until it is plugged in again, or another file is there")
    func ends() async throws {
        let path = try await movie("a.y4m", ["-pix_fmt", "yuv420p"], frames: 2)
        let camera = camera(path)
        _ = try camera.open()
        #expect(try play(camera).end?.kind == .disconnected)
        camera.close()
        #expect(throws: SourceError.self) { try camera.open() }
        try camera.injectFault(.replug)
        _ = try camera.open()
        #expect(try play(camera).frames.count == 2)
        camera.close()
        #expect(throws: SourceError.self) { try camera.open() }
        _ = try await movie("a.y4m", ["-pix_fmt", "yuv420p"], frames: 4)
        _ = try camera.open()
        #expect(try play(camera).frames.count == 4)
    }

    // MARK: What can go wrong

    private func failure(_ path: String) throws -> SourceError {
        do { _ = try camera(path).open() } catch { return error }
        throw TestingError("\(path) was opened")
    }

    @Test("what is no movie is told, with its path")
    func unusable() async throws {
        let missing = try failure("\(folder.path)/missing.mp4")
        #expect(missing.kind == .disconnected && missing.errno == ENOENT)
        #expect(missing.message.contains("missing.mp4"))
        let text = "\(folder.path)/text.mp4"
        try File.replace(text, with: Array(repeating: 65, count: 10_000), mode: 0o600)
        #expect(try failure(text).kind == .disconnected)
        let empty = "\(folder.path)/empty.y4m"
        try File.replace(empty, with: [], mode: 0o600)
        #expect(try failure(empty).kind == .disconnected)
        mkdir("\(folder.path)/nothing", 0o700)
        #expect(try failure("\(folder.path)/nothing").message.contains("no pictures"))
        try File.replace("\(folder.path)/nothing/a.png", with: [1, 2, 3], mode: 0o600)
        #expect(try failure("\(folder.path)/nothing").message.contains("a.png can't be played"))
        // Nobody is there to write to it: who opened it would wait for ever.
        mkfifo("\(folder.path)/pipe.mp4", 0o600)
        #expect(try failure("\(folder.path)/pipe.mp4").errno == EINVAL)
        let sound = "\(folder.path)/sound.wav"
        _ = try await ffmpeg(["-f", "lavfi", "-i", "sine=duration=1", sound])
        #expect(try failure(sound).kind == .disconnected)
    }

    @Test(
        "a playlist leads nowhere, neither to a server nor to another file",
        arguments: [
            ("list.m3u8", "#EXTM3U\n#EXTINF:1,\nhttp://127.0.0.1:1/a.ts\n"),
            ("list.m3u8", "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nother.ts\n#EXT-X-ENDLIST\n"),
            ("list.ffconcat", "ffconcat version 1.0\nfile other.ts\n"),
            ("list.mp4", "ffconcat version 1.0\nfile other.ts\n"),
        ])
    func playlist(_ name: String, _ text: String) async throws {
        let other = try await movie("other.ts", ["-c:v", "mpeg2video"])
        #expect(throws: Never.self) { try camera(other).open() }
        try File.replace("\(folder.path)/\(name)", with: Array(text.utf8), mode: 0o600)
        #expect(try failure("\(folder.path)/\(name)").kind == .disconnected)
    }

    @Test("a file that is cut off or overwritten in the middle plays what is whole")
    func damaged() async throws {
        let path = try await movie("a.mkv", ["-c:v", "mjpeg", "-q:v", "3"], frames: 20)
        var bytes = try File.read(path, limit: 1 << 24)
        bytes.removeLast(bytes.count / 3)
        for index in bytes.count / 2..<bytes.count / 2 + 600 { bytes[index] = 0x55 }
        try File.replace(path, with: bytes, mode: 0o600)
        for pixelFormat in [PixelFormat.motionJPEG, .nv12] {
            let camera = camera(path)
            _ = try camera.open()
            _ = try camera.setFormat(
                FormatSelection(pixelFormat: pixelFormat, dimensions: Dimensions(width: 96, height: 64)))
            let (frames, end) = try play(camera)
            #expect((5..<20).contains(frames.count))
            #expect(end?.kind == .disconnected)
        }
    }

    /// Pictures as servers send them to browsers, saved: ours, MJPG-streamer, and one that tells no lengths.
    @Test("pictures that were saved as a browser gets them are passed on", arguments: ["ours", "streamer", "bare"])
    func multipart(_ server: String) async throws {
        let separate = try await movie("a.avi", ["-c:v", "mjpeg", "-q:v", "3"])
        let one = camera(separate)
        _ = try one.open()
        let pictures = try play(one).frames.map(\.bytes)
        try #require(pictures.count == 6)
        let boundary = server == "ours" ? "--camerabus-frame" : "--boundarydonotcross"
        var bytes: [UInt8] = []
        func write(_ lines: String...) { bytes += Array(lines.joined(separator: "\r\n").utf8) }
        for picture in pictures {
            if bytes.isEmpty || server == "bare" { write(boundary, "") }
            switch server {
            case "ours": write("Content-Type: image/jpeg", "Content-Length: \(picture.count)", "", "")
            case "streamer":
                write(
                    "Content-Type: image/jpeg", "Content-Length: \(picture.count)", "X-Timestamp: 1700000000.123456",
                    "", "")
            default: write("Content-Type: image/jpeg", "", "")
            }
            bytes += picture
            if server == "bare" { write("", "") } else { write("", boundary, "") }
        }
        let whole = bytes
        // Our gateway's last part, the reason for the end, and a last part that was cut off.
        write("Content-Type: text/plain; charset=utf-8", "Content-Length: 5", "", "gone", "", "\(boundary)--", "")
        for (index, saved) in [whole, bytes, whole.dropLast(200)].enumerated() {
            let path = "\(folder.path)/\(index).mjpg"
            try File.replace(path, with: saved, mode: 0o600)
            let camera = camera(path, fps: 100)
            #expect(try camera.open().formats.map(\.pixelFormat) == [.motionJPEG, .nv12])
            #expect(try camera.frameDuration() == FrameDuration(framesPerSecond: 100))
            let (frames, end) = try play(camera)
            let count = index == 2 ? 5 : 6
            try #require(frames.count >= count)
            // Without lengths, the last picture is followed by an end of line.
            for (frame, picture) in zip(frames, pictures).prefix(count) {
                #expect(server == "bare" ? frame.bytes.starts(with: picture) : frame.bytes == picture)
            }
            #expect(end?.kind == .disconnected && end?.message.contains("played to its end") == true, "\(end as Any)")
            // They tell no times.
            for (first, second) in zip(frames, frames.dropFirst()) { #expect(second.time - first.time == 10_000_000) }
        }
    }

    @Test("a file that vanishes is told when it should begin again")
    func vanishes() async throws {
        let path = try await movie("a.y4m", ["-pix_fmt", "yuv420p"], frames: 3)
        let camera = camera(path, loops: true)
        _ = try camera.open()
        let stream = try camera.startStreaming()
        try stream.enqueue(nextFrame(stream))
        File.remove(path)
        var told: SourceError?
        do {
            for _ in 0..<100 { try stream.enqueue(nextFrame(stream)) }
        } catch {
            told = error as? SourceError
        }
        #expect(told?.kind == .disconnected && told?.errno == ENOENT)
        camera.close()
        #expect(throws: SourceError.self) { try camera.open() }
    }

    @Test("pictures of another size or orientation are fitted into the first one's; what can't be read is damaged")
    func mixedPictures() async throws {
        let path = "\(folder.path)/pictures"
        mkdir(path, 0o700)
        let source = "color=white:size=64x48:rate=10"
        _ = try await ffmpeg(["-f", "lavfi", "-i", source, "-frames:v", "5", "\(path)/p-%d.jpg"])
        _ = try await ffmpeg(["-f", "lavfi", "-i", "color=white:size=32x32", "-frames:v", "1", "\(path)/p-2.jpg"])
        for number in [0, 3] { try File.replace("\(path)/p-\(number).jpg", with: [1, 2, 3], mode: 0o600) }
        try orient("\(path)/p-4.jpg", 6)
        let camera = camera(path, fps: 100)
        #expect(try camera.open().orientation == .upright)
        // White in the middle; black where a square leaves the sides free, and where a picture is on edge.
        let edges = [false, true, true, false]
        let jpegs = try play(camera).frames
        #expect(jpegs.map(\.isCorrupt) == [true, false, false, true, false, false])
        for (frame, isFitted) in zip(jpegs.filter { !$0.isCorrupt }, edges) {
            let file = "\(folder.path)/frame.jpg"
            try File.replace(file, with: frame.bytes, mode: 0o600)
            let grey = try await ffmpeg(["-i", file, "-f", "rawvideo", "-pix_fmt", "gray", "-"])
            try #require(grey.count == 64 * 48)
            #expect(grey[24 * 64 + 32] > 230 && (grey[24 * 64 + 3] < 30) == isFitted)
        }
        _ = try camera.setFormat(FormatSelection(pixelFormat: .nv12, dimensions: Dimensions(width: 64, height: 48)))
        try camera.injectFault(.replug)
        let frames = try play(camera).frames
        #expect(frames.map(\.isCorrupt) == [true, false, false, true, false, false])
        for (frame, isFitted) in zip(frames.filter { !$0.isCorrupt }, edges) {
            try #require(frame.bytes.count == 4608)
            #expect(frame.bytes[24 * 64 + 32] > 220 && (frame.bytes[24 * 64 + 3] < 40) == isFitted)
        }
    }

    @Test("a name has the same uniqueID always, whatever file stands for it")
    func identity() {
        let one = ReplayDescription(name: "The Street", path: "/a/b.mp4")
        #expect(one.uniqueID == "replay-The-Street")
        #expect(one.uniqueID == ReplayDescription(name: "The Street", path: "/c.mkv").uniqueID)
        #expect(ReplayDescription.name(of: "/a/b.c/street.cam.mp4") == "street.cam")
        #expect(ReplayDescription.name(of: "/a/pictures/") == "pictures")
        #expect(ReplayDescription.name(of: "/.hidden") == ".hidden")
        #expect(ReplayDescription(json: one.json) == one)
    }
}
