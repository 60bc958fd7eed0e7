import CameraBusTesting
import CaptureCore
import FFmpeg
import Glibc
import LinuxIO
import MovieFile
import Synchronization
import Testing

@Suite struct StreamTests {
    private let scratch: TemporaryDirectory
    init() throws { scratch = try TemporaryDirectory() }

    private static let size = Dimensions(width: Material.width, height: Material.height)
    private static let rate = 48000

    enum Kind: String, CaseIterable {
        case rtsp, srt, rtmp

        func url(_ port: Int) -> String { "\(rawValue)://127.0.0.1:\(port)\(self == .srt ? "" : "/live/front")" }

        /// What makes ffmpeg the server.
        func listening(_ port: Int) -> [String] {
            switch self {
            case .rtsp: ["-rtsp_flags", "listen", "-i", url(port)]
            case .srt: ["-f", "mpegts", "-i", "\(url(port))?mode=listener&tlpktdrop=0"]
            case .rtmp: ["-f", "flv", "-listen", "1", "-i", url(port)]
            }
        }

        /// A server that stores what it gets, or what it decodes of that, without loss.
        func serve(
            _ port: Int, to path: String, _ scratch: TemporaryDirectory, decodes: Bool = false
        ) throws -> RunningProgram {
            let codec = decodes ? ["-c:v", "ffv1", "-fps_mode", "passthrough"] : ["-c", "copy"]
            let environment = ["PATH": CurrentProcess.environment("PATH") ?? "/usr/bin:/bin"]
            return try RunningProgram(
                "ffmpeg", ["-v", "warning", "-nostdin"] + listening(port) + codec + ["-y", path],
                environment: environment, scratch: scratch)
        }
    }

    private func serve(_ kind: Kind, _ port: Int, to path: String) throws -> RunningProgram {
        try kind.serve(port, to: path, scratch)
    }

    private func configuration(_ kind: Kind, _ port: Int, _ video: MovieVideo, _ audio: AudioCodec?)
        -> StreamConfiguration
    {
        let sound = audio.map {
            MovieAudio(
                AudioFormat(.int16, rate: Self.rate, channels: 1),
                AudioSettings($0, rate: Self.rate, channels: 1, bitRate: 64000))
        }
        var configuration = StreamConfiguration(kind.url(port), video: video, audio: sound)
        configuration.retryDelays = 50_000_000...200_000_000
        configuration.queueDuration = 60_000_000_000
        return configuration
    }

    /// Frames, and the sound that goes with them.
    private func append(_ material: Material, _ indices: Range<Int>, to stream: MovieStream) {
        for index in indices {
            let number = index % material.frames.count
            material.frames[number].withUnsafeBytes {
                _ = stream.append($0, at: Int64(index) * 33_333_333, isKeyFrame: material.isKeyFrame[number])
            }
            guard stream.configuration.audio != nil else { continue }
            let block = (0..<1600).map { Int16(truncatingIfNeeded: ($0 + index * 1600) % 100 * 100) }
            block.withUnsafeBytes { _ = stream.append(sound: $0, at: Int64(index) * 33_333_333) }
        }
    }

    @Test(
        arguments: [(.rtsp, .aac), (.rtsp, nil), (.rtsp, .opus), (.srt, .aac), (.rtmp, .aac), (.rtmp, nil)]
            as [(Kind, AudioCodec?)])
    func aServerGetsAllOfIt(_ kind: Kind, _ audio: AudioCodec?) async throws {
        let count = 90
        let material = try await Material.h264(count, in: scratch)
        let video = MovieVideo.h264(.h264(Self.size), parameterSets: material.parameterSets)
        let port = try LocalPort.free(kind == .srt ? SOCK_DGRAM : SOCK_STREAM)
        let received = "\(scratch.path)/received.mkv"
        // It isn't there yet when the stream begins.
        let stream = try MovieStream(configuration(kind, port, video, audio))
        append(material, 0..<count, to: stream)
        let server = try serve(kind, port, to: received)
        try await eventually(by: .after(seconds: 60)) { stream.statistics.frames == UInt64(count) }
        stream.close(within: 60_000_000_000)
        #expect(stream.statistics.state == .closed && stream.statistics.connections == 1)
        #expect(stream.statistics.droppedFrames == 0 && stream.statistics.droppedSounds == 0)
        let result = try await server.end(by: .after(seconds: 60))
        #expect(result.status == 0, "\(result)")

        let judge = Judge(path: received, scratch: scratch)
        #expect(try await judge.codec("v:0") == "h264")
        let times = try await judge.times("v:0")
        #expect(times.count == count, "\(result)")
        // RTP tells the first time before that of the first frame, which this reader moves to zero.
        for (index, time) in times.enumerated().dropFirst() {
            #expect(abs(time - times[1] - Double(index - 1) / 30) < 0.003)
        }
        let complaints = try await judge.complaints()
        #expect(complaints == "")
        guard audio != nil else { return }
        let samples = try await judge.samples(rate: Self.rate)
        #expect(abs(samples.count - count * 1600) < 5000)
        #expect(abs(try await judge.soundStart() - times[0]) < 0.05)
    }

    @Test(arguments: [Kind.rtsp, .rtmp]) func goesOnWhenTheServerComesBack(_ kind: Kind) async throws {
        let layout = try #require(FrameLayout.packed(.i420, Self.size))
        var settings = MovieFileType.mp4.recommendedVideoSettings(Self.size, frameRate: 30)
        (settings.preset, settings.keyFrameInterval) = ("ultrafast", 1000)
        var material = try await Material.motionJPEG(30, in: scratch)
        material.frames = (0..<30).map { MovieWriterTests.picture(layout, $0) }
        let port = try LocalPort.free()
        let states = Mutex<[StreamState]>([])
        let configuration = configuration(kind, port, .encoded(layout, settings), .aac)
        let stream = try MovieStream(configuration) { state in states.withLock { $0.append(state) } }
        let first = try serve(kind, port, to: "\(scratch.path)/first.mkv")
        var next = 0
        func send(_ frames: Int) {
            append(material, next..<next + frames, to: stream)
            next += frames
        }
        send(30)
        try await eventually(by: .after(seconds: 60)) { stream.statistics.frames >= 30 }
        first.child.process.send(SIGKILL)
        _ = try await first.end()
        let second = try serve(kind, port, to: "\(scratch.path)/second.mkv")
        try await eventually(by: .after(seconds: 60)) {
            // The loss shows when something is sent.
            if stream.statistics.state == .connected, stream.statistics.connections == 1 { send(1) }
            return stream.statistics.connections == 2 && stream.statistics.state == .connected
        }
        send(60)
        stream.close(within: 60_000_000_000)
        #expect(!stream.append(UnsafeRawBufferPointer(start: nil, count: 0), at: 0), "it is closed")
        #expect(try await second.end(by: .after(seconds: 60)).status == 0)
        let judge = Judge(path: "\(scratch.path)/second.mkv", scratch: scratch)
        #expect(try await judge.times("v:0").count >= 60)
        let complaints = try await judge.complaints()
        #expect(complaints == "", "it begins with a key frame")
        let statistics = stream.statistics
        #expect(statistics.frames + statistics.droppedFrames == UInt64(next + 1) && statistics.failure != nil)
        #expect(states.withLock { $0.last } == .closed)
    }

    @Test func picturesOfAnotherSizeAreScaledToThatOfTheStream() async throws {
        let layout = try #require(FrameLayout.packed(.i420, Self.size))
        let wide = try #require(FrameLayout.packed(.nv12, Dimensions(width: 640, height: 240)))
        var settings = MovieFileType.mp4.recommendedVideoSettings(Self.size, frameRate: 30)
        settings.preset = "ultrafast"
        let port = try LocalPort.free()
        let received = "\(scratch.path)/received.mkv"
        let stream = try MovieStream(configuration(.rtsp, port, .encoded(layout, settings), nil))
        // Before there is a server, so that all wait in the queue.
        for index in 0..<60 {
            let isWide = (20..<40).contains(index)
            if index == 20 { try stream.setSource(wide) }
            if index == 40 { try stream.setSource(layout) }
            let white = [UInt8](repeating: 235, count: (isWide ? wide : layout).totalBytes)
            white.withUnsafeBytes { _ = stream.append($0, at: Int64(index) * 33_333_333) }
        }
        let server = try serve(.rtsp, port, to: received)
        try await eventually(by: .after(seconds: 60)) { stream.statistics.frames == 60 }
        stream.close(within: 60_000_000_000)
        #expect(stream.statistics.droppedFrames == 0)
        #expect(try await server.end(by: .after(seconds: 60)).status == 0)
        // A line at the top: 640x240 is 320x120 in 320x240.
        let top = try await run(
            "ffmpeg",
            [
                "-v", "error", "-i", received, "-vsync", "passthrough", "-vf", "crop=iw:2:0:20,format=gray,scale=1:1",
                "-f", "rawvideo", "-",
            ], scratch
        ).standardOutputBytes
        try #require(top.count == 60)
        for (index, level) in top.enumerated() {
            #expect((level < 60) == (20..<40).contains(index), "\(index): \(level)")
        }
        let complaints = try await Judge(path: received, scratch: scratch).complaints()
        #expect(complaints == "")
        let stored = try #require(FrameLayout.packed(.motionJPEG, Self.size))
        #expect(throws: MovieError.self) { try stream.setSource(stored) }
    }

    @Test func aServerThatSaysNothingHoldsNobodyUp() async throws {
        // Connections wait in its queue, and nobody answers.
        let silent = FileDescriptor(owning: socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(silent.rawValue, $0, length) | listen(silent.rawValue, 100)
                    | getsockname(silent.rawValue, $0, &length)
            }
        }
        try #require(result == 0)
        let port = Int(UInt16(bigEndian: address.sin_port))
        for kind in [Kind.rtsp, .rtmp] {
            let tries = Mutex(0)
            let material = try await Material.h264(90, in: scratch)
            var configuration = configuration(
                kind, port, .h264(.h264(Self.size), parameterSets: material.parameterSets), nil)
            configuration.connectTimeout = 200_000_000
            configuration.queueDuration = 1_000_000_000
            let stream = try MovieStream(configuration) { state in
                if state == .connecting { tries.withLock { $0 += 1 } }
            }
            append(material, 0..<90, to: stream)
            try await eventually(by: .after(seconds: 60)) { tries.withLock { $0 } >= 3 }
            #expect(stream.statistics.connections == 0 && stream.statistics.failure != nil)
            // A second of them waits.
            #expect((50...90).contains(stream.statistics.droppedFrames))
            stream.close(within: 60_000_000_000)
            #expect(stream.statistics.state == .closed)
        }
    }

    /// As the system's look-up of a server's name may, which nobody can end.
    @Test func aConnectionThatHangsHoldsNoEndUp() async throws {
        let material = try await Material.h264(1, in: scratch)
        let video = MovieVideo.h264(.h264(Self.size), parameterSets: material.parameterSets)
        let gate = Semaphore()
        let isHeld = Mutex(false)
        let stream = try MovieStream(configuration(.rtsp, 1, video, nil)) { state in
            guard state == .connecting, !isHeld.withLock({ $0 }) else { return }
            isHeld.withLock { $0 = true }
            gate.wait()
        }
        try await eventually(by: .after(seconds: 60)) { isHeld.withLock { $0 } }
        let isClosed = Mutex(false)
        let closer = try NamedThread(name: "closer") {
            stream.close(within: 0)
            isClosed.withLock { $0 = true }
        }
        await #expect(throws: Never.self) {
            try await eventually(by: .after(seconds: 30)) { isClosed.withLock { $0 } }
        }
        gate.signal()
        closer.join()
        try await eventually(by: .after(seconds: 60)) { stream.statistics.state == .closed }
    }

    @Test func whatCannotBeSentIsRefused() async throws {
        let jpeg = MovieVideo.motionJPEG(.jpeg(Self.size))
        for url in ["http://a/b", "file:///tmp/x", "rtsp:", "", "/tmp/x.mp4", "tcp://127.0.0.1:1"] {
            #expect(throws: MovieError.self) { try MovieStream(StreamConfiguration(url, video: jpeg)) }
        }
        for url in ["rtsp://127.0.0.1:1/a", "rtmp://127.0.0.1:1/a", "srt://127.0.0.1:1"] {
            #expect(throws: MovieError.self) { try MovieStream(StreamConfiguration(url, video: jpeg)) }
        }
        #expect(throws: MovieError.self) { try MovieStream(StreamConfiguration("rtsp://127.0.0.1:1/a", video: nil)) }
    }
}
